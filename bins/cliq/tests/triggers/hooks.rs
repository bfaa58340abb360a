//! Webhooks: right deliveries start one run each, wrong ones start nothing.

use cliq_testkit::machine::{Running, wait_for};
use serde_json::{Value, json};

use crate::triggers::sender::{
    Headers, SECRET, count_runs, decided, deliver, firings, github, headers, hex_mac, machine_with, now,
    plain, run_of, slack,
};

const TRIGGERS: &str = r#"
  - name: github
    webhook: { signature: github, secret: s }
    when: body.n >= 0
    team: "@local/quick"
    title: "Delivery $(body.n)"
    inputs: { text: "$(body.text)" }
  - name: gitlab
    webhook: { signature: gitlab, secret: s-gitlab }
    team: "@local/quick"
    inputs: { text: "$(body.text)" }
  - name: slack
    webhook: { signature: slack, secret: s-slack }
    team: "@local/quick"
    inputs: { text: "$(body.text)" }
  - name: timed
    webhook: { signature: hmac-timestamp, secret: s-timed }
    team: "@local/quick"
    inputs: { text: "$(body.text)" }
  - name: plain
    webhook: { signature: hmac, secret: s }
    team: "@local/quick"
    inputs: { text: "$(body.text)" }
  - name: unset
    webhook: { signature: hmac, secret: other }
    team: "@local/quick"
  - name: nightly
    schedule: { cron: "0 3 1 1 *" }
    team: "@local/quick"
"#;
const QUICK: &str = "inputs: [{name: text, required: true}]
workflow: {phases: [{name: p0, type: exec, commands: [{name: c, run: 'printf %s $(inputs.text) > text'}]}]}
";

fn body(n: i64) -> String {
    json!({"n": n, "text": format!("text {n}")}).to_string()
}

fn started(server: &Running, name: &str, n: i64) -> Value {
    let found = decided(server, name, 1);
    let run = server.ended(run_of(&found[0]));
    assert_eq!((&run["state"], &run["origin"]), (&json!("completed"), &json!("trigger")), "{run}");
    assert_eq!(run["inputs"]["text"], format!("text {n}"));
    assert_eq!(run["caller"], format!("trigger {name}"));
    found[0].clone()
}

/// `JSON.stringify` writes half of an emoji as an escape. The signature is that of the bytes.
#[test]
fn deliveries_with_half_an_emoji_are_accepted() {
    let machine = machine_with(TRIGGERS, json!({}));
    machine.team("quick", QUICK);
    let server = machine.serve();
    let body = r#"{"n": 1, "text": "cut \ud83d off"}"#;
    deliver(&server, "github", &github("push", "d1", body), body).expect(202);
    let firing = decided(&server, "github", 1)[0].clone();
    let run = server.ended(run_of(&firing));
    assert_eq!(
        (&run["state"], &run["inputs"]["text"]),
        (&json!("completed"), &json!("cut \u{fffd} off")),
        "{run}"
    );
    let wrong = body.replace("\\ud83d", "\\ufffd");
    let signed = github("push", "d2", body);
    deliver(&server, "github", &signed, &wrong).expect(401);
}

#[test]
fn each_scheme_starts_a_run_and_the_same_delivery_starts_no_other() {
    let machine = machine_with(TRIGGERS, json!({}));
    machine.team("quick", QUICK);
    let server = machine.serve();
    let accepted = deliver(&server, "github", &github("push", "d1", &body(1)), &body(1)).expect(202).json();
    assert_eq!(accepted["status"], "accepted");
    let firing = started(&server, "github", 1);
    assert_eq!(firing["cause"], "delivery d1");
    let digest = ring::digest::digest(&ring::digest::SHA256, body(1).as_bytes());
    assert_eq!(firing["digest"], hex::encode(digest.as_ref()));
    assert_eq!(server.run(run_of(&firing))["title"], "Delivery 1");
    // The same again is known; the same content under another id was not sent by GitHub.
    let again = deliver(&server, "github", &github("push", "d1", &body(1)), &body(1)).expect(200).json();
    assert_eq!((&again["status"], &again["firing"]), (&json!("known"), &firing["id"]));
    deliver(&server, "github", &github("push", "d2", &body(1)), &body(1)).expect(409);
    // GitLab: the token, or a signature of Standard Webhooks.
    let token = headers(&[
        ("content-type", "application/json"),
        ("x-gitlab-token", SECRET),
        ("x-gitlab-event-uuid", "u1"),
    ]);
    deliver(&server, "gitlab", &token, &body(2)).expect(202);
    started(&server, "gitlab", 2);
    deliver(&server, "gitlab", &token, &body(2)).expect(200);
    // Slack repeats a delivery with a new timestamp.
    deliver(&server, "slack", &slack(now() - 200, &body(3)), &body(3)).expect(202);
    started(&server, "slack", 3);
    deliver(&server, "slack", &slack(now(), &body(3)), &body(3)).expect(200);
    let challenge = json!({"type": "url_verification", "challenge": "3eZbrw1a"}).to_string();
    assert_eq!(deliver(&server, "slack", &slack(now(), &challenge), &challenge).expect(200).body, "3eZbrw1a");
    // A form, as slash commands send it, and a plain sender with a timestamp.
    deliver(&server, "plain", &plain("p1", &body(4)), &body(4)).expect(202);
    started(&server, "plain", 4);
    let form = "text=text+5&command=%2Fgo";
    let time = now().to_string();
    let timed = headers(&[
        ("content-type", "application/x-www-form-urlencoded"),
        ("x-timestamp", &time),
        ("x-signature", &hex_mac(SECRET, &[&time, ".", form])),
    ]);
    deliver(&server, "timed", &timed, form).expect(202);
    let found = decided(&server, "timed", 1);
    assert_eq!(server.ended(run_of(&found[0]))["inputs"]["text"], "text 5");
    // A secret signs what the trigger says: the same delivery elsewhere, and its text as a body, start nothing.
    let refused = deliver(&server, "plain", &timed, form).expect(401).body;
    assert!(refused.contains("write `signature: hmac-timestamp`"), "{refused}");
    let replayed = format!("{time}.{form}");
    let untimed: Headers = timed.iter().filter(|(name, _)| name != "x-timestamp").cloned().collect();
    deliver(&server, "plain", &untimed, &replayed).expect(401);
    deliver(&server, "timed", &untimed, &replayed).expect(401);
    assert_eq!(count_runs(&server), 5);
    // A condition that does not hold is a row with its reason.
    deliver(&server, "github", &github("push", "d3", &body(-1)), &body(-1)).expect(202);
    let found = decided(&server, "github", 2);
    assert_eq!((&found[1]["state"], &found[1]["run_id"]), (&json!("skipped"), &Value::Null));
    assert!(found[1]["reason"].as_str().unwrap().contains("body.n >= 0"), "{}", found[1]);
    // Paused: accepted and recorded, and nothing starts.
    server.post("/api/v1/triggers/github/pause", &json!({})).expect(200);
    deliver(&server, "github", &github("push", "d4", &body(6)), &body(6)).expect(202);
    let found = decided(&server, "github", 3);
    assert_eq!(found[2]["reason"], "the trigger is paused");
    server.post("/api/v1/triggers/github/resume", &json!({})).expect(200);
    assert_eq!(count_runs(&server), 5);
}

/// A wrong delivery: trigger, headers, body, and the status of its refusal.
type Wrong = (&'static str, Headers, String, u16);

fn replaced(mut headers: Headers, name: &str, value: &str) -> Headers {
    headers.retain(|(known, _)| known != name);
    if !value.is_empty() {
        headers.push((name.to_owned(), value.to_owned()));
    }
    headers
}

/// Forged: no signature, or that of another secret, body, scheme or form.
fn forged() -> Vec<Wrong> {
    let (good, other) = (body(7), body(8));
    let mut all: Vec<Wrong> = Vec::new();
    let right = hex_mac(SECRET, &[&good]);
    let signatures = [
        String::new(),
        "sha256=".to_owned(),
        right.clone(),
        format!("sha1={right}"),
        format!("sha256={}", right.to_uppercase().replace(|c: char| c.is_ascii_digit(), "0")),
        format!("sha256={}", &right[..63]),
        format!("sha256={right}00"),
        format!("sha256={}", "0".repeat(64)),
        format!("sha256={}", hex_mac("another secret", &[&good])),
        format!("sha256={}", hex_mac("", &[&good])),
        format!("sha256={}", hex_mac(SECRET, &[&other])),
        format!("sha256={}", hex_mac(SECRET, &[&good, "\n"])),
        format!("sha256={}g", &right[..63]),
        format!("SHA256={right}"),
    ];
    for signature in signatures {
        let headers = replaced(github("push", "f", &good), "x-hub-signature-256", &signature);
        all.push(("github", headers, good.clone(), 401));
    }
    for token in ["", "wrong", "a secret of the test", "a secret of the tests!", "A secret of the tests"] {
        let headers = replaced(headers(&[("content-type", "application/json")]), "x-gitlab-token", token);
        all.push(("gitlab", headers, good.clone(), 401));
    }
    for (id, time, signature) in
        [("m", now(), "v1,AAAA"), ("m", now(), "v1a,AAAA"), ("m", now(), ""), ("m", now() - 1000, "v1,AAAA")]
    {
        let time = time.to_string();
        let pairs = [
            ("content-type", "application/json"),
            ("webhook-id", id),
            ("webhook-timestamp", time.as_str()),
            ("webhook-signature", signature),
            // The token of the older scheme does not help a wrong signature.
            ("x-gitlab-token", SECRET),
        ];
        all.push(("gitlab", headers(&pairs), good.clone(), 401));
    }
    all.push(("slack", replaced(slack(now(), &good), "x-slack-signature", ""), good.clone(), 401));
    all.push(("slack", replaced(slack(now(), &good), "x-slack-signature", "v0=00"), good.clone(), 401));
    all.push(("slack", slack(now(), &other), good.clone(), 401));
    // The signature of a plain sender is none of Slack, and the other way round.
    all.push(("slack", plain("x", &good), good.clone(), 401));
    all.push(("plain", slack(now(), &good), good.clone(), 401));
    all.push(("plain", github("push", "x", &good), good.clone(), 401));
    all.push(("plain", replaced(plain("x", &good), "x-signature-256", ""), good.clone(), 401));
    all.push(("plain", replaced(plain("x", &good), "x-signature-256", "sha256=zz"), good.clone(), 401));
    all.push(("plain", plain("x", &other), good.clone(), 401));
    // A token of the server is no signature.
    all.push(("plain", headers(&[("content-type", "application/json")]), good.clone(), 401));
    all
}

/// Old, or from the future.
fn stale() -> Vec<Wrong> {
    let good = body(9);
    let mut all: Vec<Wrong> = Vec::new();
    for time in [now() - 301 - 5, now() - 86_400, now() + 400, 0] {
        all.push(("slack", slack(time, &good), good.clone(), 401));
    }
    for time in ["", "now", "-5", "1e9", "99999999999999999999999"] {
        let headers = replaced(slack(now(), &good), "x-slack-request-timestamp", time);
        all.push(("slack", headers, good.clone(), 401));
    }
    for time in [now() - 400, now() + 400] {
        let time = time.to_string();
        let pairs = [
            ("content-type", "application/json"),
            ("x-timestamp", time.as_str()),
            ("x-signature-256", &hex_mac(SECRET, &[&time, ".", &good])),
        ];
        all.push(("timed", headers(&pairs), good.clone(), 401));
    }
    all
}

/// Malformed and oversized bodies with right signatures, and names without a webhook.
fn malformed() -> Vec<Wrong> {
    let mut all: Vec<Wrong> = Vec::new();
    let deep = "[".repeat(100_000);
    let bodies = [
        "",
        "{",
        "{\"n\": 1,}",
        "nothing",
        "{\"n\": 01}",
        "\u{feff}{}",
        "{} {}",
        "{\"n\": NaN}",
        deep.as_str(),
    ];
    for text in bodies {
        all.push(("github", github("push", "m", text), text.to_owned(), 400));
    }
    let form = "payload=%7B";
    let headers = replaced(plain("m", form), "content-type", "application/x-www-form-urlencoded");
    all.push(("plain", headers, form.to_owned(), 400));
    let large = json!({"n": 1, "text": "x".repeat(1 << 20)}).to_string();
    all.push(("github", github("push", "l", &large), large.clone(), 413));
    all.push(("plain", plain("l", &large), large, 413));
    for name in ["nowhere", "nightly", "GITHUB", "%2e%2e"] {
        all.push((name, plain("n", &body(1)), body(1), 404));
    }
    all.push(("unset", plain("n", &body(1)), body(1), 503));
    all
}

#[test]
fn wrong_deliveries_start_nothing() {
    let machine = machine_with(TRIGGERS, json!({}));
    machine.team("quick", QUICK);
    let server = machine.serve();
    let wrong: Vec<Wrong> = [forged(), stale(), malformed()].concat();
    assert!(wrong.len() >= 60, "{}", wrong.len());
    for (name, headers, body, status) in &wrong {
        let answer = deliver(&server, name, headers, body);
        let shown: String = body.chars().take(60).collect();
        assert_eq!(answer.status, *status, "{name} {headers:?} {shown}: {}", answer.body);
        assert!(!answer.body.contains(SECRET), "{}", answer.body);
    }
    for method in ["GET", "PUT", "DELETE"] {
        assert_eq!(server.send(method, "/hooks/github", &[], None).status, 405, "{method}");
    }
    // One right delivery comes after them: what was before it would have started.
    deliver(&server, "github", &github("push", "right", &body(1)), &body(1)).expect(202);
    let found = decided(&server, "github", 1);
    server.ended(run_of(&found[0]));
    for name in ["github", "gitlab", "slack", "plain", "unset"] {
        assert_eq!(firings(&server, name).len(), usize::from(name == "github"), "{name}");
    }
    assert_eq!(count_runs(&server), 1);
    let log = std::fs::read_to_string(machine.path("log")).unwrap();
    assert!(log.contains("refused a delivery") && !log.contains(SECRET));
}

#[test]
fn run_of_a_webhook_is_in_a_sandbox_unless_its_trigger_says_otherwise() {
    let triggers = r#"
  - name: inside
    webhook: { signature: hmac, secret: s }
    team: "@local/look"
  - name: outside
    webhook: { signature: hmac, secret: s }
    team: "@local/look"
    sandbox: "off"
"#;
    let machine = machine_with(triggers, json!({}));
    let settings = machine.home.join("settings.json");
    machine.chain("look", &[&format!("cat {} > seen 2>/dev/null || true", settings.display())]);
    let server = machine.serve();
    for (name, is_seen) in [("inside", false), ("outside", true)] {
        deliver(&server, name, &plain(name, "{}"), "{}").expect(202);
        let found = decided(&server, name, 1);
        let run = server.ended(run_of(&found[0]));
        assert_eq!(run["state"], "completed", "{run}");
        let seen = wait_for("the file is there", || {
            std::fs::read_to_string(machine.home.join("workspaces").join(run_of(&found[0])).join("seen")).ok()
        });
        assert_eq!(seen.contains(SECRET), is_seen, "{name}");
    }
}
