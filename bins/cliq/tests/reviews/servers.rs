//! Reviews at a server: that of the machine, and one elsewhere that the settings name.

use cliq_testkit::machine::{Machine, wait_for};
use serde_json::{Value, json};

use crate::reviews::waiting::{Waiting, decision, send, submit, team};

#[test]
fn the_server_of_the_machine_has_the_page_and_the_dashboard() {
    let waiting = Waiting::new("reviewer: [ann, bob]\nartifacts: [notes.md]");
    let server = waiting.machine.serve();
    waiting.start(&["--headless"]);
    let (link, id) = (waiting.link("ann"), waiting.review()["id"].as_str().unwrap().to_owned());
    assert!(link.starts_with(&format!("{}/review/{id}/", server.url)), "{link}");
    assert_eq!(waiting.status()["phases"][1]["review"]["page"], format!("{}/reviews/{id}", server.url));
    // The link works without signing in, the dashboard does not.
    send("GET", &link, &[], None).expect(200);
    assert_eq!(send("GET", &format!("{}/reviews/{id}", server.url), &[], None).status, 303);
    for path in ["/reviews".to_owned(), format!("/reviews/{id}")] {
        let page = server.get(&path).expect(200).body;
        assert!(page.contains("ann, bob"), "{page}");
    }
    assert!(server.get(&format!("/reviews/{id}")).body.contains("Answer in the name of"));
    // The link is in no log and no file that callers may read.
    let token = link.rsplit('/').next().unwrap();
    let log = wait_for("the log", || {
        let text =
            std::fs::read_to_string(waiting.machine.home.join("server/access.log")).unwrap_or_default();
        text.contains("/review/").then_some(text)
    });
    assert!(!log.contains(token), "{log}");
    for file in [".cliq/messages/approval.1.json", ".cliq/signals/approval.jsonl"] {
        assert!(waiting.project.join(file).exists(), "{file}");
    }
    let answer =
        server.post(&format!("/api/v1/reviews/{id}/decision"), &decision("approve")).expect(200).json();
    assert_eq!(answer["state"], "decided");
    assert_eq!(waiting.end(), 0);
    let page = server.get(&format!("/reviews/{id}")).expect(200).body;
    assert!(page.contains("This review is over") && page.contains("disabled"), "{page}");
}

#[test]
fn the_api_has_the_same_rules() {
    let waiting = Waiting::new(
        "reviewer: {policy: all, members: [ann, bob]}\ninputs: [{name: version, required: true}]",
    );
    let server = waiting.machine.serve();
    waiting.start(&["--headless"]);
    let id = waiting.review()["id"].as_str().unwrap().to_owned();
    let path = format!("/api/v1/reviews/{id}");
    let review = server.get(&path).expect(200).json();
    assert_eq!(review["waits_for"], json!(["ann", "bob"]));
    assert!(review.get("links").is_none());
    assert_eq!(
        server.get("/api/v1/reviews?pending=true").expect(200).json()["reviews"].as_array().unwrap().len(),
        1
    );
    assert!(
        server.get(&format!("{path}/content")).expect(200).json()["checks"][0]["pass"].as_bool().unwrap()
    );
    assert_eq!(server.get("/api/v1/reviews/0123").status, 404);
    let decide = |body: Value| server.post(&format!("{path}/decision"), &body);
    assert_eq!(decide(decision("approve")).status, 422, "it is not said who");
    assert_eq!(decide(json!({"verdict": "approve", "reviewer": "eve"})).status, 422);
    assert_eq!(decide(json!({"verdict": "approve", "reviewer": "ann"})).status, 422, "a field is missing");
    assert_eq!(decide(json!({"verdict": "maybe"})).status, 422);
    assert_eq!(decide(json!({"verdict": "request-changes", "reviewer": "ann", "to": "writer"})).status, 422);
    decide(json!({"verdict": "approve", "reviewer": "ann", "inputs": {"version": "1"}})).expect(200);
    decide(json!({"verdict": "approve", "reviewer": "ann", "inputs": {"version": "1"}})).expect(409);
    // An answer does not come as an event.
    let event =
        json!({"event": "answer", "reviewer": "bob", "actor": "x", "via": "api", "verdict": "approve"});
    assert_eq!(server.post(&format!("{path}/events"), &event).status, 422);
    decide(json!({"verdict": "approve", "reviewer": "bob", "inputs": {"version": "2"}})).expect(200);
    assert_eq!(waiting.end(), 0);
    assert_eq!(waiting.json(".cliq/channels/approval--after/handoff.json")["data"]["inputs"]["version"], "2");
    // A token that may only read decides nothing.
    let token = waiting.machine.ok(&["server", "token", "create", "--label", "looker", "--scope", "read"]);
    let token = token.split_whitespace().find(|word| word.starts_with("cliq_")).unwrap().to_owned();
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    server.send("GET", &path, &headers, None).expect(200);
    server.send("POST", &format!("{path}/decision"), &headers, Some("{\"verdict\":\"approve\"}")).expect(403);
}

#[test]
fn an_expired_review_is_gone_over_the_api() {
    let waiting = Waiting::new("reviewer: ann\ntimeout: 1s");
    let server = waiting.machine.serve();
    waiting.start(&["--headless"]);
    assert_eq!(waiting.end(), 3);
    let review = &waiting.reviews()[0];
    let id = review["id"].as_str().unwrap();
    server.post(&format!("/api/v1/reviews/{id}/decision"), &decision("approve")).expect(410);
    let page = server.get(&format!("/reviews/{id}")).expect(200).body;
    assert!(page.contains("This review has expired") && page.contains("disabled"), "{page}");
}

/// The server that `hug.server_url` names has the review; the machine of the run needs none.
#[test]
fn a_server_elsewhere_has_the_review() {
    let elsewhere = Machine::new();
    let server = elsewhere.serve();
    let machine = Machine::new().settings(&json!({"hug": {"server_url": server.url, "token": server.token}}));
    let waiting =
        Waiting::with(machine, &team("        reviewer: [ann, bob]\n        artifacts: [notes.md]\n"));
    waiting.start(&["--headless"]);
    let link = waiting.link("ann");
    assert!(link.starts_with(&server.url), "{link}");
    let first = waiting.review()["id"].as_str().unwrap().to_owned();
    // It is found from the command line of the run's machine, and from nowhere else on it.
    assert!(waiting.ok(&["review", "show"]).contains("notes.md"));
    waiting.ok(&["review", "request-changes", "-m", "again"]);
    let said = waiting.fails(4, &["review", "approve", &first]);
    assert!(said.contains("is decided already"), "{said}");
    let second = waiting.review_after(Some(&first))["id"].as_str().unwrap().to_owned();
    // The run dies, and goes on with the same review.
    waiting.kill();
    waiting.start(&["--resume", "--headless"]);
    std::thread::sleep(std::time::Duration::from_millis(1500));
    let page = server.get(&format!("/api/v1/reviews/{second}")).expect(200).json();
    assert_eq!(page["state"], "pending");
    submit(&waiting.link("bob"), &[("verdict", "approve"), ("reason", "from elsewhere")]).expect(303);
    assert_eq!(waiting.end(), 0);
    assert_eq!(server.get("/api/v1/reviews").json()["reviews"].as_array().unwrap().len(), 2);
    assert!(waiting.read(".cliq/reviews/approval.2.md").contains("from elsewhere"));
    assert!(waiting.ok(&["review", "show", &second]).contains("as it was written"));
}

/// A server that has both the run and its review parks the run, and wakes it where nothing of the first agent is known.
#[test]
fn run_parks_if_its_server_has_the_review() {
    let machine = Machine::new();
    machine.team("ask", &team("        reviewer: ann\n"));
    let server = machine.serve();
    machine.keep_port(&server);
    let settings = json!({"hug": {"server_url": server.url, "token": server.token}});
    let machine = machine.settings(&settings);
    server.kill();
    let server = machine.serve();
    let id = server.start_run(&json!({"team": "@local/ask"}));
    wait_for("the run is parked", || (server.run(&id)["state"] == "waiting").then_some(()));
    let kept = machine.home.join("reviews");
    std::fs::remove_dir_all(&kept).unwrap();
    let reviews = server.get("/api/v1/reviews").json()["reviews"].clone();
    let review = reviews[0]["id"].as_str().unwrap();
    let body = json!({"reviewer": "ann", "verdict": "approve"});
    server.post(&format!("/api/v1/reviews/{review}/decision"), &body).expect(200);
    assert_eq!(server.ended(&id)["state"], "completed");
    assert_eq!(server.get("/api/v1/reviews").json()["reviews"].as_array().unwrap().len(), 1);
}

#[test]
fn a_server_that_is_not_there_does_not_stop_a_review() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let machine =
        Machine::new().settings(&json!({"hug": {"server_url": format!("http://127.0.0.1:{port}")}}));
    let waiting = Waiting::with(machine, &team("        reviewer: ann\n"));
    waiting.start(&["--headless"]);
    let link = wait_for("the review is made here", || {
        let review = waiting.reviews().into_iter().find(|review| review["state"] == "pending")?;
        Some(review["links"]["ann"].as_str()?.to_owned())
    });
    assert!(waiting.output().contains("so the review is made on this machine"), "{}", waiting.output());
    submit(&link, &[("verdict", "approve")]).expect(303);
    assert_eq!(waiting.end(), 0);
}

/// The pages move to the run when the server goes, and back.
#[test]
fn pages_are_where_they_can_be() {
    let waiting = Waiting::new("reviewer: ann");
    let server = waiting.machine.serve();
    waiting.start(&["--headless"]);
    let before = waiting.link("ann");
    server.kill();
    let own = wait_for("the run has the page", || Some(waiting.link("ann")).filter(|link| *link != before));
    send("GET", &own, &[], None).expect(200);
    let server = waiting.machine.serve();
    let back = wait_for("the server has it again", || {
        Some(waiting.link("ann")).filter(|link| link.starts_with(&server.url))
    });
    submit(&back, &[("verdict", "approve")]).expect(303);
    assert_eq!(waiting.end(), 0);
}
