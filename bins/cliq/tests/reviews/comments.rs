//! Comments on lines: they go along with a request for changes, and the next round shows what became of each line.

use std::fs;
use std::process::Command;

use cliq_testkit::machine::Machine;
use serde_json::{Value, json};

use crate::reviews::waiting::{Waiting, send, submit};

/// A developer who works in two rounds, and answers comments in the second.
pub(crate) const DEVELOPER: &str = r#"#!/bin/sh
cat > message.json
if ! test -e first; then
  touch first
  cat > src/greet.js <<'END'
// Greets people.
export function greet(name) {
  var greeting = "Hello, " + name;
  return greeting;
}
END
  rm src/old.js
  echo "A greeting." > .cliq/channels/developer--approval/handoff.md
else
  cp .cliq/channels/approval--developer/handoff.json feedback.json
  sed -i 's/  var greeting = .*/  const greeting = `Hello, ${name}`;/' src/greet.js
  sed -i '1i // Version 2' src/greet.js
  printf 'Mended.\n\n[1] Uses a template now.\n- **[2]** The name is right:\n  it is what the page calls.\n' > .cliq/channels/developer--approval/handoff.md
fi
printf '{"ts":"2026-01-01T00:00:00.000Z","version":1,"type":"phase","status":"ok"}\n' >> "$CLIQ_SIGNAL_FILE"
printf '{"ts":"2026-01-01T00:00:00.000Z","version":1,"type":"phase","status":"complete","result":{}}\n' >> "$CLIQ_SIGNAL_FILE"
"#;

pub(crate) const TEAM: &str = "agents: {dev: {entry: agents/dev}}
workflow:
  phases:
    - {name: developer, type: standard, agent: dev}
    - {name: approval, type: hug, depends_on: [developer], route_to: [developer], max_iterations: 3, review: {reviewer: ann}}
";

/// A repository with the files that the developer changes.
pub(crate) fn repository(project: &std::path::Path) {
    fs::create_dir_all(project.join("src")).unwrap();
    fs::write(
        project.join("src/greet.js"),
        "// Greets people.\nexport function greet() {\n  return \"Hello\";\n}\n",
    )
    .unwrap();
    fs::write(project.join("src/old.js"), "legacy();\n").unwrap();
    fs::write(project.join(".gitignore"), "first\nmessage.json\nfeedback.json\n").unwrap();
    let git = |arguments: &[&str]| {
        let identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
        let done = Command::new("git").args(identity).args(arguments).current_dir(project).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    };
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["commit", "-qm", "The beginning"]);
}

fn waiting() -> Waiting {
    let machine = Machine::new();
    repository(&machine.project("project"));
    machine.team("review", TEAM);
    machine.agent("review", "dev", DEVELOPER, &["developer"]);
    Waiting::with(machine, TEAM)
}

fn shown(waiting: &Waiting) -> Value {
    serde_json::from_str(&waiting.ok(&["review", "show", "--json"])).unwrap()
}

#[test]
fn comments_reach_the_phase_and_the_next_round_shows_what_became_of_them() {
    let waiting = waiting();
    waiting.start(&["--headless"]);
    let first = waiting.review();
    // Lines that the changes do not show are refused with those that they do.
    let error = waiting.fails(2, &["review", "comment", "--at", "src/other.js:1", "-m", "x"]);
    assert!(error.contains("src/greet.js, src/old.js"), "{error}");
    let error = waiting.fails(2, &["review", "comment", "--at", "src/greet.js:99", "-m", "x"]);
    assert!(error.contains("they show 1-5"), "{error}");
    for strange in ["src/greet.js", "src/greet.js:", "src/greet.js:0", "src/greet.js:x", ":3"] {
        waiting.fails(2, &["review", "comment", "--at", strange, "-m", "x"]);
    }
    waiting.fails(2, &["review", "comment", "--at", "src/greet.js:3", "-m", " "]);
    waiting.fails(2, &["review", "comment"]);

    waiting.ok(&["review", "comment", "--at", "src/greet.js:3", "-m", "A template is shorter.\nAnd safer."]);
    waiting.ok(&["review", "comment", "--at", "src/greet.js:2", "-m", "Is the name right?"]);
    waiting.ok(&["review", "comment", "--at", "src/old.js:1", "--removed", "-m", "Why is it gone?"]);
    waiting.ok(&["review", "comment", "--at", "src/greet.js:4", "-m", "By mistake."]);
    waiting.ok(&["review", "comment", "-m", "On the whole it is fine."]);
    let comments = shown(&waiting)["comments"].clone();
    assert_eq!(comments.as_array().map(Vec::len), Some(5));
    assert_eq!(
        comments[0]["place"],
        json!({"path": "src/greet.js", "side": "new", "line": 3, "text": "  var greeting = \"Hello, \" + name;"})
    );
    waiting.ok(&["review", "comment", "--withdraw", comments[3]["id"].as_str().unwrap()]);
    waiting.fails(2, &["review", "comment", "--withdraw", comments[3]["id"].as_str().unwrap()]);

    // No other words are needed.
    waiting.ok(&["review", "request-changes"]);
    waiting.review_after(first["id"].as_str());
    let feedback = waiting.json("feedback.json");
    let reason = feedback["data"]["verdict"]["reason"].as_str().unwrap();
    for part in [
        "[1] src/greet.js, line 3\n    >   var greeting = \"Hello, \" + name;\n    A template is shorter.\n    And safer.\n",
        "[2] src/greet.js, line 2\n    > export function greet(name) {\n    Is the name right?\n",
        "[3] src/old.js, removed line 1\n    > legacy();\n    Why is it gone?\n",
    ] {
        assert!(reason.contains(part), "{reason}");
    }
    assert!(!reason.contains("By mistake") && !reason.contains("On the whole"), "{reason}");
    let second = &feedback["data"]["verdict"]["comments"][1];
    assert_eq!(
        *second,
        json!({"number": 2, "path": "src/greet.js", "side": "new", "line": 2, "line_text": "export function greet(name) {", "text": "Is the name right?"})
    );

    let earlier = shown(&waiting)["content"]["earlier_comments"].clone();
    assert_eq!(
        earlier[0]["fate"],
        json!({"fate": "changed", "now": 4, "lines": ["  const greeting = `Hello, ${name}`;"]})
    );
    assert_eq!(earlier[0]["answer"], "Uses a template now.");
    assert_eq!(earlier[1]["fate"], json!({"fate": "kept", "now": 3}));
    assert_eq!(earlier[1]["answer"], "The name is right:\nit is what the page calls.");
    assert_eq!(earlier[2]["fate"], json!({"fate": "file_gone"}));
    assert_eq!(earlier[2]["answer"], Value::Null);
    let text = waiting.ok(&["review", "show"]);
    for part in [
        "[1] src/greet.js, line 3: changed, now line 4",
        ">   const greeting = `Hello, ${name}`;",
        "answer: Uses a template now.",
        "[2] src/greet.js, line 2: the line is as it was, now line 3",
        "[3] src/old.js, removed line 1: there is still no file of this name",
        "no answer",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let explained = waiting.ok(&["explain"]);
    assert!(
        explained.contains("A template is shorter.") && explained.contains("src/greet.js, line 3"),
        "{explained}"
    );

    waiting.ok(&["review", "approve"]);
    assert_eq!(waiting.end(), 0);
    let record = waiting.json(".cliq/reviews/approval.1.json");
    assert_eq!(record["review"]["comments"][1]["place"]["line"], 2);
    let record = waiting.read(".cliq/reviews/approval.2.md");
    assert!(
        record.contains("comment [1] of the round before, by") && record.contains("Uses a template now."),
        "{record}"
    );
    waiting.ok(&["review", "show"]);
}

#[test]
fn comments_over_the_api_follow_the_same_rules() {
    let waiting = waiting();
    let server = waiting.machine.serve();
    waiting.start(&["--headless"]);
    let review = waiting.review();
    let address = format!("/api/v1/reviews/{}/comments", review["id"].as_str().unwrap());
    let at = json!({"path": "src/greet.js", "line": 3});
    let new = json!({"text": "A template is shorter.", "at": at, "id": "c1"});
    let made = server.post(&address, &new).expect(201).json();
    assert_eq!(made["comments"][0]["place"]["text"], "  var greeting = \"Hello, \" + name;");
    // The same again changes nothing.
    assert_eq!(server.post(&address, &new).expect(201).json()["comments"].as_array().map(Vec::len), Some(1));
    for (body, said) in [
        (json!({"text": ""}), "1 byte"),
        (json!({"text": "x", "at": {"path": "src/greet.js", "line": 0}}), "counted from 1"),
        (json!({"text": "x", "at": {"path": "src/greet.js", "line": 9, "side": "old"}}), "no removed line 9"),
        (json!({"text": "x", "at": {"path": "../../etc/passwd", "line": 1}}), "not among the changes"),
        (json!({"text": "x", "at": {"path": "a\u{0}b", "line": 1}}), "not the path"),
        (json!({"text": "x", "id": "a b"}), "visible ASCII"),
        (json!({"text": "x", "at": {"path": "src/greet.js"}}), "line"),
    ] {
        let answer = server.post(&address, &body).expect(422);
        assert!(answer.body.contains(said), "{body}: {}", answer.body);
    }
    server.delete(&format!("{address}/c1")).expect(200);
    server.delete(&format!("{address}/c1")).expect(200);
    let decision = format!("/api/v1/reviews/{}/decision", review["id"].as_str().unwrap());
    server.post(&decision, &json!({"verdict": "request-changes"})).expect(422);
    server.post(&address, &new).expect(201);
    server.post(&decision, &json!({"verdict": "request-changes"})).expect(200);
    server.post(&address, &json!({"text": "late"})).expect(409);
    waiting.review_after(review["id"].as_str());
    waiting.ok(&["review", "approve"]);
    assert_eq!(waiting.end(), 0);
}

#[test]
fn comments_by_a_link_need_no_script_and_no_server() {
    let waiting = waiting();
    waiting.start(&["--headless"]);
    let first = waiting.review();
    let link = waiting.link("ann");
    let page = send("GET", &format!("{link}?file=src%2Fgreet.js&at=n3"), &[], None).expect(200).body;
    assert!(page.contains("Comment on line 3") && page.contains("id=\"comment\""), "{page}");
    let comments = format!("{link}/comments");
    let post = |url: &str, fields: &[(&str, &str)]| submit(url, fields);
    let say = |at: &str, text: &str| {
        post(&comments, &[("path", "src/greet.js"), ("at", at), ("text", text), ("id", "c1")])
    };
    for wrong in ["n99", "o1", "x3", "n0", "n", ""] {
        say(wrong, "x").expect(422);
    }
    say("n3", " ").expect(422);
    post(&comments.replace(&link[link.len() - 8..], "00000000"), &[("withdraw", "c1")]).expect(404);
    let said = say("n3", "A <b>template</b> is shorter.").expect(303);
    assert!(
        said.header("location").ends_with("?file=src%2Fgreet.js&said=n3#said"),
        "{}",
        said.header("location")
    );
    let page = send("GET", &link, &[], None).expect(200).body;
    assert!(
        page.contains("A &lt;b&gt;template&lt;/b&gt; is shorter.") && page.contains("Withdraw"),
        "{page}"
    );
    post(&comments, &[("withdraw", "c1")]).expect(303);
    assert!(!send("GET", &link, &[], None).expect(200).body.contains("template"));
    say("n3", "A template is shorter.").expect(303);
    post(&link, &[("verdict", "request-changes"), ("to", "developer"), ("reason", "")]).expect(303);
    waiting.review_after(first["id"].as_str());
    let reason = waiting.json("feedback.json")["data"]["verdict"]["reason"].clone();
    assert!(
        reason.as_str().unwrap().starts_with("Comments on lines:\n\n[1] src/greet.js, line 3"),
        "{reason}"
    );
    waiting.ok(&["review", "approve"]);
    assert_eq!(waiting.end(), 0);
}
