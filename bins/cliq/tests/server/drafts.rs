//! Drafts of teams by the API: files, versions, problems, trials, installation.

use std::fs;

use cliq_testkit::machine::{Machine, Running};
use serde_json::{Value, json};

fn put(server: &Running, token: &str, path: &str, body: &Value) -> (u16, Value) {
    let headers =
        [("authorization", format!("Bearer {token}")), ("content-type", "application/json".to_owned())];
    let headers = headers.each_ref().map(|(name, value)| (*name, value.as_str()));
    let answer = server.send("PUT", path, &headers, Some(&body.to_string()));
    (answer.status, serde_json::from_str(&answer.body).unwrap_or_default())
}

fn token(machine: &Machine, scope: &str) -> String {
    let made = machine.ok(&["server", "token", "create", "--label", scope, "--scope", scope, "--json"]);
    serde_json::from_str::<Value>(&made).unwrap()["token"].as_str().unwrap().to_owned()
}

const TEAM: &str = "name: '@local/words'
workflow:
  phases:
    - {name: writer, type: standard, agent: claude-api}
    - {name: check, type: gate, agent: rules, depends_on: [writer], commands: [{name: there, run: 'touch /tried-for-real'}], rules: {there: writer}}
";

#[test]
fn a_draft_from_the_first_file_to_the_installed_team() {
    let machine = Machine::new();
    let server = machine.serve();
    let edit = token(&machine, "edit");
    let made = server.post("/api/v1/drafts", &json!({"name": "words"})).expect(201).json();
    assert_eq!(made["files"][0]["path"], "team.yml");
    server.post("/api/v1/drafts", &json!({"name": "words"})).expect(409);
    let file = "/api/v1/drafts/words/file?path=team.yml";
    let version = server.get(file).expect(200).json()["version"].clone();
    let (status, saved) = put(&server, &edit, file, &json!({"text": TEAM, "version": version}));
    assert_eq!(status, 200, "{saved}");
    // Another one has read the first version.
    let (status, problem) = put(&server, &edit, file, &json!({"text": "name: x", "version": version}));
    assert_eq!(
        (status, problem["detail"].as_str().unwrap()),
        (409, "team.yml was saved by someone else since it was read")
    );
    assert_eq!(server.get(file).json()["text"], TEAM);
    let validated = server.post("/api/v1/drafts/words/validate", &json!({})).expect(200).json();
    assert_eq!(validated["valid"], false);
    let missing = &validated["problems"][0];
    assert_eq!((&missing["file"], &missing["line"]), (&"team.yml".into(), &4.into()), "{validated:#}");
    // A role that is not saved yet counts.
    let unsaved = json!({"files": {"roles/writer.md": "Write.", "tests/phases.yml": "tests: [{name: a, expect: {runs: {missing: 1}}}]\n"}});
    let validated = server.post("/api/v1/drafts/words/validate", &unsaved).expect(200).json();
    let problem = &validated["problems"][0];
    assert_eq!(
        (&problem["file"], &problem["code"]),
        (&"tests/phases.yml".into(), &"unknown-phase".into()),
        "{validated:#}"
    );
    assert!(validated["graph"].as_str().unwrap().starts_with("<svg"));
    let (status, _) =
        put(&server, &edit, "/api/v1/drafts/words/file?path=roles/writer.md", &json!({"text": "Write.\n"}));
    assert_eq!(status, 200);
    let tests = server.get("/api/v1/drafts/words/file?path=tests/phases.yml").json()["version"]
        .as_str()
        .unwrap()
        .to_owned();
    server.delete("/api/v1/drafts/words/file?path=tests/phases.yml&version=0").expect(409);
    server.delete(&format!("/api/v1/drafts/words/file?path=tests/phases.yml&version={tests}")).expect(204);
    assert!(!machine.home.join("drafts/words/tests").exists());

    let trial = json!({"requirement": "Write a word.", "replies": {"writer": [{"text": "one"}, {"text": "two"}]}, "commands": {"check": {"there": ["fail", "pass"]}}});
    let tried = server.post("/api/v1/drafts/words/try", &trial).expect(200).json();
    assert_eq!(
        (&tried["end"], &tried["order"]),
        (&"completed".into(), &json!(["writer", "check", "writer", "check"])),
        "{tried:#}"
    );
    assert!(tried["activations"][0]["prompt"].as_str().unwrap().contains("Write a word."));
    assert!(!std::path::Path::new("/tried-for-real").exists(), "no command of a draft runs");
    let wrong =
        server.post("/api/v1/drafts/words/try", &json!({"replies": {"missing": []}})).expect(409).json();
    assert_eq!(wrong["errors"][0], "the team has no phase `missing`");

    let installed = server.post("/api/v1/drafts/words/install", &json!({})).expect(200).json();
    assert_eq!((&installed["team"], &installed["replaced"]), (&"@local/words".into(), &false.into()));
    assert_eq!(server.get("/api/v1/teams/@local/words").json()["valid"], true);
    let refused = server.post("/api/v1/drafts/words/publish", &json!({})).expect(409).json();
    assert!(refused["detail"].as_str().unwrap().contains("@local is for teams of this machine"), "{refused}");
    server.delete("/api/v1/drafts/words").expect(204);
    server.get("/api/v1/drafts/words").expect(404);
}

/// Programs, the agent `exec`, pulls and notifications of a draft do not run in a trial either.
#[test]
fn nothing_of_a_draft_is_executed() {
    let machine = Machine::new();
    let server = machine.serve();
    let edit = token(&machine, "edit");
    let mark = machine.path("executed");
    let team = format!(
        "name: '@local/evil'
agents: {{own: {{entry: agents/own.sh}}}}
tools: [no-such-program]
workflow:
  phases:
    - {{name: program, type: standard, agent: own}}
    - {{name: messenger, type: standard, agent: exec, depends_on: [program], commands: [{{name: c, run: 'touch {0}'}}]}}
    - {{name: fetch, type: pull, depends_on: [messenger], sources: [{{name: s, url: '{1}/api/v1/never'}}]}}
    - {{name: list, type: exec, depends_on: [fetch], commands: [{{name: c, if: 'touch {0}', run: 'touch {0}', scope: repo}}]}}
    - {{name: inner, type: team, team: 'oci://127.0.0.1:1/x/y:1.0.0', depends_on: [list]}}
",
        mark.display(),
        server.url
    );
    server.post("/api/v1/drafts", &json!({"name": "evil"})).expect(201);
    for (path, text) in [
        ("agents/own.sh", format!("#!/bin/sh\ntouch {}\n", mark.display())),
        ("roles/program.md", "x".to_owned()),
        ("roles/messenger.md", "x".to_owned()),
    ] {
        let (status, body) =
            put(&server, &edit, &format!("/api/v1/drafts/evil/file?path={path}"), &json!({"text": text}));
        assert_eq!(status, 200, "{path}: {body}");
    }
    let file = "/api/v1/drafts/evil/file?path=team.yml";
    let version = server.get(file).json()["version"].clone();
    assert_eq!(put(&server, &edit, file, &json!({"text": team, "version": version})).0, 200);
    let problems =
        server.post("/api/v1/drafts/evil/validate", &json!({"files": {"tests/phases.yml": null}})).json();
    let tried = server.post("/api/v1/drafts/evil/try", &json!({}));
    assert_eq!(tried.status, 200, "{} {problems:#}", tried.body);
    let tried = tried.json();
    assert_eq!(tried["end"], "completed", "{tried:#}");
    assert_eq!(tried["order"], json!(["program", "messenger", "fetch", "list", "inner"]));
    assert!(!mark.exists());
}

#[test]
fn drafts_stay_in_their_folders() {
    let machine = Machine::new();
    let server = machine.serve();
    let (edit, run) = (token(&machine, "edit"), token(&machine, "run"));
    server.post("/api/v1/drafts", &json!({"name": "safe"})).expect(201);
    for path in ["../x", "/etc/passwd", "roles/../../x", ".cliq-package.json", "a//b", "a%00b", ""] {
        let (status, _) =
            put(&server, &edit, &format!("/api/v1/drafts/safe/file?path={path}"), &json!({"text": "x"}));
        assert_eq!(status, 422, "{path}");
    }
    for name in ["..", "%2e%2e", "Safe", ".lock", "a%2fb"] {
        assert_eq!(server.get(&format!("/api/v1/drafts/{name}")).status, 404, "{name}");
    }
    // Links are neither read nor written through.
    let secret = machine.path("secret");
    fs::write(&secret, "hush").unwrap();
    std::os::unix::fs::symlink(&secret, machine.home.join("drafts/safe/link.md")).unwrap();
    std::os::unix::fs::symlink(machine.home.parent().unwrap(), machine.home.join("drafts/safe/dir")).unwrap();
    assert_eq!(server.get("/api/v1/drafts/safe/file?path=link.md").status, 404);
    for path in ["link.md", "dir/new.md"] {
        let (status, body) =
            put(&server, &edit, &format!("/api/v1/drafts/safe/file?path={path}"), &json!({"text": "x"}));
        assert_eq!(status, 409, "{path}: {body}");
    }
    assert_eq!(fs::read_to_string(&secret).unwrap(), "hush");
    assert!(!server.get("/api/v1/drafts/safe").body.contains("hush"));
    // Without the scope nothing is written.
    let (status, _) = put(&server, &run, "/api/v1/drafts/safe/file?path=new.md", &json!({"text": "x"}));
    assert_eq!(status, 403);
    let (status, body) = put(
        &server,
        &edit,
        "/api/v1/drafts/safe/file?path=big.md",
        &json!({"text": "x".repeat((1 << 20) + 1)}),
    );
    assert_eq!(status, 413, "{body}");
}

/// Many writers at once: each version is saved over the one that it was made from.
#[test]
fn no_text_of_two_people_is_lost() {
    let machine = Machine::new();
    let server = machine.serve();
    let edit = token(&machine, "edit");
    server.post("/api/v1/drafts", &json!({"name": "shared"})).expect(201);
    let file = "/api/v1/drafts/shared/file?path=notes.md";
    assert_eq!(put(&server, &edit, file, &json!({"text": ""})).0, 200);
    std::thread::scope(|scope| {
        for person in 0..4 {
            let (server, edit) = (&server, &edit);
            scope.spawn(move || {
                for n in 0..10 {
                    loop {
                        let now = server.get(file).json();
                        let text = format!("{}{person} {n}\n", now["text"].as_str().unwrap());
                        if put(server, edit, file, &json!({"text": text, "version": now["version"]})).0 == 200
                        {
                            break;
                        }
                    }
                }
            });
        }
    });
    let text = server.get(file).json()["text"].as_str().unwrap().to_owned();
    let mut lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 40, "{text}");
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines.len(), 40);
}
