//! The links of reviewers: the right to decide one review, in one name, until it is decided.

use cliq_testkit::machine::wait_for;

use crate::reviews::waiting::{Waiting, send, submit};

const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

#[test]
fn a_link_is_a_right_of_its_own() {
    let waiting = Waiting::new("reviewer: {policy: all, members: [ann, bob]}");
    waiting.start(&["--headless"]);
    let (ann, bob) = (waiting.link("ann"), waiting.link("bob"));
    let page = send("GET", &ann, &[], None).expect(200);
    assert!(page.body.contains("You answer as <strong>ann</strong>"), "{}", page.body);
    assert!(!page.body.contains(bob.rsplit('/').next().unwrap()));
    assert_eq!(page.header("cache-control"), "no-store");
    assert_eq!(page.header("referrer-policy"), "same-origin");
    // Guessed: another token, another review, half a link.
    let (base, token) = ann.rsplit_once('/').unwrap();
    let (site, id) = base.rsplit_once('/').unwrap();
    let flipped = |text: &str| text.replacen(&text[..1], if text.starts_with('0') { "1" } else { "0" }, 1);
    for wrong in [
        format!("{base}/{}", flipped(token)),
        format!("{base}/{}", token.to_uppercase() + "0"),
        format!("{site}/{}/{token}", flipped(id)),
        format!("{site}/{id}"),
        format!("{base}/"),
        format!("{base}/{token}/x"),
        format!("{base}/..%2f{token}"),
    ] {
        assert_eq!(send("GET", &wrong, &[], None).status, 404, "{wrong}");
        assert_ne!(submit(&wrong, &[("verdict", "approve")]).status, 303, "{wrong}");
    }
    // The name in the form has no effect: the link says who it is.
    submit(&ann, &[("verdict", "approve"), ("reviewer", "bob")]).expect(303);
    let review = waiting.review();
    assert_eq!(review["waits_for"], serde_json::json!(["bob"]));
    // Used again by the same person: it is answered.
    submit(&ann, &[("verdict", "reject")]).expect(409);
    let page = send("GET", &ann, &[], None).expect(200).body;
    assert!(page.contains("has answered") && page.contains("<fieldset class=\"stack\" disabled"), "{page}");
    submit(&bob, &[("verdict", "approve")]).expect(303);
    assert_eq!(waiting.end(), 0);
}

#[test]
fn pages_of_other_sites_cannot_decide() {
    let waiting = Waiting::new("reviewer: ann");
    waiting.start(&["--headless"]);
    let link = waiting.link("ann");
    let host = link.split('/').nth(2).unwrap();
    for origin in ["http://evil.example", "null", "http://127.0.0.1:1", "https://127.0.0.1"] {
        let answer = send("POST", &link, &[FORM, ("origin", origin)], Some("verdict=approve"));
        assert_eq!(answer.status, 403, "{origin}");
    }
    // A name of another site that leads to this machine (DNS rebinding).
    let answer = send("GET", &link, &[("host", "evil.example")], None);
    assert_eq!(answer.status, 403);
    for (fields, status) in [
        ("verdict=maybe", 422),
        ("", 422),
        ("verdict=request-changes&to=nowhere&reason=x", 422),
        ("verdict=request-changes", 422),
    ] {
        assert_eq!(send("POST", &link, &[FORM], Some(fields)).status, status, "{fields}");
    }
    assert_eq!(send("POST", &link, &[("content-type", "application/json")], Some("{}")).status, 415);
    // It asks first: a refusal would otherwise race with the rest of the body.
    let large = "x".repeat(5 << 20);
    assert_eq!(send("POST", &link, &[FORM, ("expect", "100-continue")], Some(&large)).status, 413);
    assert_eq!(send("GET", &format!("http://{host}/"), &[], None).status, 404);
    assert_eq!(send("GET", &format!("http://{host}/runs"), &[], None).status, 404);
    let own = format!("http://{host}");
    assert_eq!(send("POST", &link, &[FORM, ("origin", &own)], Some("verdict=approve")).status, 303);
    assert_eq!(waiting.end(), 0);
}

#[test]
fn the_page_is_gone_with_the_review() {
    let waiting = Waiting::new("reviewer: ann");
    waiting.start(&["--headless"]);
    let link = waiting.link("ann");
    assert!(link.starts_with("http://127.0.0.1:"), "{link}");
    waiting.ok(&["review", "approve"]);
    assert_eq!(waiting.end(), 0);
    wait_for("the port is closed", || ureq::get(&link).call().is_err().then_some(()));
    // The secrets of the review are forgotten.
    let kept = std::fs::read_dir(waiting.machine.home.join("reviews")).unwrap().count();
    assert_eq!(kept, 0);
}

#[test]
fn over_ssh_the_hint_says_how_to_reach_the_page() {
    let waiting = Waiting::new("reviewer: ann");
    waiting.start_with(&["--headless"], Some("10.0.0.1 5 10.0.0.2 22"));
    let link = waiting.link("ann");
    let port = link.split(['/', ':']).nth(4).unwrap();
    let shown = waiting.ok(&["review", "show"]);
    assert!(shown.contains(&format!("ssh -L {port}:127.0.0.1:{port}")), "{shown}");
}
