//! The record of a review: what it tells, and that it cannot be changed unnoticed.

use std::fs;

use serde_json::Value;

use crate::reviews::waiting::{Waiting, submit};

#[test]
fn a_record_tells_all_of_it() {
    let waiting = Waiting::new("reviewer: [ann, bob]\nartifacts: [notes.md]");
    waiting.start(&["--headless"]);
    let first = waiting.review();
    let shown: Value = serde_json::from_str(&waiting.ok(&["review", "show", "--json"])).unwrap();
    waiting.ok(&["review", "request-changes", "-m", "more, please", "--as", "bob"]);
    waiting.review_after(first["id"].as_str());
    submit(&waiting.link("ann"), &[("verdict", "approve"), ("reason", "fine now")]).expect(303);
    assert_eq!(waiting.end(), 0);
    let record = waiting.json(".cliq/reviews/approval.1.json");
    assert_eq!(record["review"]["answers"][0]["reviewer"], "bob");
    assert_eq!(record["review"]["answers"][0]["reason"], "more, please");
    assert_eq!(record["shown"]["artifacts"][0]["sha256"], shown["content"]["artifacts"][0]["sha256"]);
    assert_eq!(record["shown"]["checks"][0]["name"], "exists");
    assert_eq!(record["verdict"]["outcome"], "ROUTE");
    let second = waiting.json(".cliq/reviews/approval.2.json");
    assert_eq!(second["number"], 2);
    assert_eq!(second["previous"].as_str().unwrap().len(), 64);
    let text = waiting.read(".cliq/reviews/approval.2.md");
    for said in ["ann", "fine now", "(link)", "notes.md"] {
        assert!(text.contains(said), "{said}: {text}");
    }
    // No secret is in it.
    assert!(!text.contains("/review/") && !second.to_string().contains("sha256\":\"links"));
    assert!(second["review"].get("links").is_none());
    let told = waiting.ok(&["review", "show", first["id"].as_str().unwrap()]);
    for said in ["bob (by ", "requested changes", "more, please", "as it was written"] {
        assert!(told.contains(said), "{said}: {told}");
    }
}

#[test]
fn a_changed_record_is_noticed() {
    let waiting = Waiting::new("reviewer: ann");
    waiting.start(&["--headless"]);
    let first = waiting.review()["id"].as_str().unwrap().to_owned();
    waiting.ok(&["review", "request-changes", "-m", "x"]);
    let second = waiting.review_after(Some(&first))["id"].as_str().unwrap().to_owned();
    waiting.ok(&["review", "approve"]);
    assert_eq!(waiting.end(), 0);
    let show = |id: &str| {
        let output = waiting.cliq(&["review", "show", "--json", id]);
        let value: Value = serde_json::from_slice(&output.stdout).unwrap();
        (
            output.status.code().unwrap(),
            value["record"]["state"].as_str().unwrap().to_owned(),
            value["record"]["problems"].to_string(),
        )
    };
    assert_eq!(show(&first), (0, "intact".to_owned(), "null".to_owned()));
    let tamper = |name: &str, change: &dyn Fn(String) -> Option<String>| {
        let path = waiting.project.join(".cliq/reviews").join(name);
        let before = fs::read_to_string(&path).unwrap();
        match change(before.clone()) {
            Some(text) => fs::write(&path, text).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
        let found = [show(&first), show(&second)];
        fs::write(&path, before).unwrap();
        found
    };
    let forged = |text: String| Some(text.replace("ROUTE", "PASS "));
    let [one, two] = tamper("approval.1.json", &forged);
    assert_eq!((one.0, two.0), (1, 1), "{one:?} {two:?}");
    assert!(one.2.contains("was changed"), "{one:?}");
    let [_, two] = tamper("approval.2.json", &|text| Some(text.replace("approved", "rejected")));
    assert_eq!(two.1, "broken");
    let [one, _] = tamper("approval.1.md", &|text| Some(text + "\n"));
    assert!(one.2.contains("approval.1.md"), "{one:?}");
    let [one, two] = tamper("approval.1.json", &|_| None);
    assert!(one.2.contains("is not there") && two.2.contains("number 1 is missing"), "{one:?} {two:?}");
    assert_eq!(show(&first).1, "intact");
    // The next run puts the records aside, and they are still found.
    waiting.start(&["--headless", "-f"]);
    waiting.review();
    assert!(!waiting.project.join(".cliq/reviews/approval.1.json").exists());
    assert_eq!(show(&first).1, "intact");
}
