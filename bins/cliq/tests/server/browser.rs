//! The dashboard in a real Chromium: `browser.mjs` and `answers.mjs` are people, this is the machine. `pages.mjs` looks at pages.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cliq_scripted_model::{Behavior, ScriptedModel};
use cliq_testkit::machine::{Machine, wait_for};
use serde_json::{Value, json};

use crate::reviews::comments::{DEVELOPER, TEAM as TEAM_OF_COMMENTS, repository};

/// Each phase goes on when the script says so, however slow the machine is.
const TEAM: &str = "description: Builds, checks, mends.
inputs: [{name: who, description: Whom it is for, required: true}]
workflow:
  phases:
    - name: build
      type: exec
      commands: [{name: build, run: 'until test -e ../../go-build; do sleep 0.05; done; echo built for $(inputs.who)'}]
    - name: quality
      type: gate
      agent: rules
      depends_on: [build]
      max_iterations: 3
      commands: [{name: good, run: 'test -e mended || { echo it is broken; exit 4; }'}]
      rules: {good: mend}
    - name: ship
      type: exec
      depends_on: [quality]
      commands: [{name: ship, run: 'echo line 1; until test -e ../../go-ship; do sleep 0.05; done; for n in 2 3 4 5 6 7 8; do echo line $n; sleep 0.1; done'}]
  support:
    - name: mend
      type: exec
      commands: [{name: mend, run: 'until test -e ../../go-mend; do sleep 0.05; done; touch mended'}]
";

/// Returns the directory of the browser driver, if it is installed.
pub(super) fn modules() -> Option<PathBuf> {
    let modules = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/node/node_modules");
    let has = |program: &str| {
        Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
    };
    if has("node")
        && has("chromium")
        && modules.join("playwright-core").exists()
        && modules.join("axe-core").exists()
    {
        return Some(modules.canonicalize().unwrap());
    }
    cliq_testkit::not_run(
        "there is no chromium, node, or target/node with playwright-core and axe-core (./test makes it)",
    );
    None
}

/// Runs a script of the browser with these arguments. Lines that `machine` handles are acknowledged to the script.
#[expect(clippy::print_stdout, reason = "the steps of the person, shown when a test fails")]
pub(super) fn drive(
    modules: &Path,
    script: &str,
    arguments: &[&str],
    mut machine: impl FnMut(&str, &str) -> bool,
) {
    let tests = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/server");
    let pictures = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("dashboard");
    std::fs::create_dir_all(&pictures).unwrap();
    let mut node = Command::new("node")
        .arg(tests.join(script))
        .args(arguments)
        .env("NODE_MODULES", modules)
        .env("PICTURES", pictures)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut reply = node.stdin.take().unwrap();
    let mut said = Vec::new();
    for line in BufReader::new(node.stdout.take().unwrap()).lines().map_while(Result::ok) {
        println!("{line}");
        let (word, rest) = line.split_once(' ').unwrap_or((&line, ""));
        if machine(word, rest) {
            writeln!(reply, "done").unwrap();
        }
        said.push(line);
    }
    assert!(node.wait().unwrap().success(), "{}", said.join("\n"));
    assert_eq!(said.last().map(String::as_str), Some("ALL DONE"));
}

#[test]
fn a_person_at_the_dashboard() {
    let Some(modules) = modules() else { return };
    let machine = Machine::new();
    machine.team("show", TEAM);
    machine.chain("long", &["sleep 600"]);
    let mut server = Some(machine.serve());
    machine.keep_port(server.as_ref().unwrap());
    let link = machine.ok(&["server", "open"]);
    drive(&modules, "browser.mjs", &[link.trim()], |word, phase| {
        match word {
            "RESTART" => {
                server.take().unwrap().kill();
                server = Some(machine.serve());
            }
            "GO" => std::fs::write(machine.home.join(format!("go-{phase}")), "").unwrap(),
            "WAIT" => std::fs::remove_file(machine.home.join(format!("go-{phase}"))).unwrap(),
            _ => return false,
        }
        true
    });
}

/// Files of several kinds, and a person who is to approve them.
const PUBLICATION: &str = "description: Makes files and asks a person.
workflow:
  phases:
    - name: make
      type: exec
      commands:
        - {name: files, run: 'cp -r PUBLISHED/. .'}
        - {name: rows, run: 'printf \"name,n\\nAda,36\\n=1+1,2\\n\" > table.csv'}
    - name: approval
      type: hug
      depends_on: [make]
      commands: [{name: has-report, run: test -f report.pdf}]
      review: {reviewer: ann}
";

/// A gate that gives up.
const STRICT: &str = "workflow:
  phases:
    - {name: build, type: exec, commands: [{name: build, run: 'true'}]}
    - name: quality
      type: gate
      agent: rules
      depends_on: [build]
      max_iterations: 1
      commands: [{name: lint, run: 'echo tabs in line 7 of main.c >&2; exit 3'}]
      rules: {lint: mend}
  support:
    - {name: mend, type: exec, commands: [{name: mend, run: 'true'}]}
";

const PLAN: &str = "# Handbook search

Readers find pages by words in them.

## Wave 1

### Task 1: Index
Build an index of all pages at start.

### Task 2: Query syntax
Words, and phrases in quotes.

## Wave 2

### Task 1: Search page
A page with a field and the results.
";

const EXEC: &str = "workflow: {phases: [{name: work, type: exec, commands: [{name: work, run: COMMAND}]}]}\n";

const SUITE: &str = "name: answers
repeats: 3
cases:
  - {name: first, requirement: Answer.}
  - {name: second, requirement: Answer again.}
checks: [{name: answered, file: answer.txt}]
variants: [{name: hasty, team: \"@local/nothing\"}, {name: steady, team: \"@local/answers\"}]
";

/// A document of one page: a line of text.
fn pdf() -> Vec<u8> {
    let text = "BT /F1 24 Tf 40 100 Td (Quarterly report) Tj ET";
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 200] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>".to_owned(),
        format!("<< /Length {} >>\nstream\n{text}\nendstream", text.len()),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>".to_owned(),
    ];
    let mut out = String::from("%PDF-1.4\n");
    let mut offsets = Vec::new();
    for (object, number) in objects.iter().zip(1..) {
        offsets.push(out.len());
        writeln!(out, "{number} 0 obj\n{object}\nendobj").unwrap();
    }
    let table = out.len();
    writeln!(out, "xref\n0 6\n0000000000 65535 f ").unwrap();
    for offset in offsets {
        writeln!(out, "{offset:010} 00000 n ").unwrap();
    }
    writeln!(out, "trailer << /Size 6 /Root 1 0 R >>\nstartxref\n{table}\n%%EOF").unwrap();
    out.into_bytes()
}

/// The questions that a new user has, on real runs: a model that a gate sent back, a gate that gave up, a person who is waited for.
#[test]
fn a_new_user_finds_the_answers() {
    let Some(modules) = modules() else { return };
    let script = serde_json::from_str(cliq_project::internals::MODEL_DEMO_SCRIPT).unwrap();
    let model = ScriptedModel::start(script, Behavior::default()).unwrap();
    let machine = Machine::new().settings(&json!({
        "default_agent": "openai-api",
        "agents": {"openai-api": {"base_url": model.base("openai"), "model": "scripted"}},
        "prices": {"scripted": {"in": 2.0, "out": 8.0}},
    }));
    let published = machine.path("published");
    machine.team("publication", &PUBLICATION.replace("PUBLISHED", published.to_str().unwrap()));
    machine.team("strict", STRICT);
    let project = machine.project("handbook");
    for (path, text) in cliq_project::internals::MODEL_DEMO_FILES {
        std::fs::write(project.join(path), text).unwrap();
    }
    // Checkpoints are taken in git repositories.
    assert!(Command::new("git").args(["init", "-q"]).current_dir(&project).status().unwrap().success());
    std::fs::create_dir_all(&published).unwrap();
    std::fs::write(published.join("report.pdf"), pdf()).unwrap();
    std::fs::write(published.join("notes.md"), "# Notes\n\n- *one*\n- two\n").unwrap();
    std::fs::write(project.join("search.md"), PLAN).unwrap();
    let at = ["-C", project.to_str().unwrap()];
    machine.ok(&[&at[..], &["plan", "add", "search.md"]].concat());
    for kind in ["planner_finished", "implement_finished"] {
        machine.ok(&[&at[..], &["signal", "emit", kind, "search"]].concat());
    }
    machine.team("answers", &EXEC.replace("COMMAND", "echo right > answer.txt"));
    machine.team("nothing", &EXEC.replace("COMMAND", "true"));
    std::fs::write(machine.path("suite.yml"), SUITE).unwrap();
    let suite = machine.path("suite.yml");
    let report: Value =
        serde_json::from_str(&machine.ok(&["eval", suite.to_str().unwrap(), "--json"])).unwrap();
    let server = machine.serve();
    let instance = server.post("/api/v1/instances", &json!({"path": project})).expect(201).json();
    let start = |team: &str, title: &str, instance: &Value, inputs: Value| {
        let requirement = "greet.sh --polite NAME";
        server.start_run(&json!({"team": team, "title": title, "requirement": requirement, "inputs": inputs, "instance": instance}))
    };
    let check = json!({"check": "sh test.sh"});
    let coded = start("@cliq/code", "A polite greeting", &instance["id"], check);
    assert_eq!(server.ended(&coded)["state"], "completed");
    let failed = start("@local/strict", "A strict build", &Value::Null, json!({}));
    assert_eq!(server.ended(&failed)["state"], "escalated");
    let waiting = start("@local/publication", "The quarterly report", &Value::Null, json!({}));
    wait_for("the review waits", || {
        let reviews = server.get("/api/v1/reviews").expect(200).json();
        reviews.to_string().contains("approval").then_some(())
    });
    let runs =
        json!({"coded": coded, "failed": failed, "waiting": waiting, "project": instance["id"], "evaluation": report["id"]}).to_string();
    let link = machine.ok(&["server", "open"]);
    drive(&modules, "answers.mjs", &[link.trim(), &runs], |_, _| false);
}

/// An agent that says what is in a file, until it is ended.
const SPEAKER: &str = r#"#!/bin/sh
cat > /dev/null
say() { printf '{"ts":"2026-01-01T00:00:00.000Z","version":1,"type":"phase",%s}\n' "$1" >> "$CLIQ_SIGNAL_FILE"; }
say '"status":"ok"'
while :; do
  words=$(cat WORDS)
  if [ "$words" != "$last" ]; then say '"status":"progress","message":"'"$words"'"'; last=$words; fi
  sleep 0.05
done
"#;

/// Mission control: agents at work, and a person who is needed.
#[test]
fn a_person_at_mission_control() {
    let Some(modules) = modules() else { return };
    let machine = Machine::new();
    let words = machine.path("words");
    std::fs::write(&words, "reads the first file").unwrap();
    machine.team(
        "long",
        "agents: {speaker: {entry: agents/speaker}}
workflow: {phases: [{name: work, type: standard, agent: speaker}]}
",
    );
    machine.agent("long", "speaker", &SPEAKER.replace("WORDS", words.to_str().unwrap()), &["work"]);
    machine.chain("short", &["true"]);
    machine.team(
        "decide",
        "workflow:
  phases:
    - {name: make, type: exec, commands: [{name: make, run: 'true'}]}
    - {name: approval, type: hug, depends_on: [make], review: {reviewer: ann}}
",
    );
    let server = machine.serve();
    let start = |team: &str, title: &str| server.start_run(&json!({"team": team, "title": title}));
    let short = start("@local/short", "Short work");
    assert_eq!(server.ended(&short)["state"], "completed");
    start("@local/long", "Long work");
    let link = machine.ok(&["server", "open"]);
    drive(&modules, "mission.mjs", &[link.trim()], |word, rest| {
        match word {
            "SAY" => std::fs::write(&words, rest).unwrap(),
            "START" => drop(start("@local/decide", rest)),
            _ => return false,
        }
        true
    });
}

/// Writes notes, and works on until it is ended.
const AT_WORK: &str = "agents: {waiter: {entry: agents/waiter}}
workflow:
  phases:
    - {name: make, type: exec, commands: [{name: make, run: 'echo by nobody > notes.md'}]}
    - {name: work, type: standard, agent: waiter, depends_on: [make]}
";

const WAITER: &str = "#!/bin/sh
cat > /dev/null
printf '{\"ts\":\"2026-01-01T00:00:00.000Z\",\"version\":1,\"type\":\"phase\",\"status\":\"ok\"}\\n' >> \"$CLIQ_SIGNAL_FILE\"
sleep 600
";

/// Writes 150 files of 37 lines.
const MANY: &str = "workflow: {phases: [{name: make, type: exec, commands: [{name: make, run: 'for d in 1 2 3 4 5; do mkdir -p many/part$d; for f in $(seq 30); do seq -f \"line %g of 37\" 37 > many/part$d/file$f.txt; done; done'}]}]}
";

/// Comments on the lines of changes, which reach the agents.
#[test]
fn a_reviewer_comments_on_lines() {
    let Some(modules) = modules() else { return };
    let machine = Machine::new();
    machine.team("code", TEAM_OF_COMMENTS);
    machine.agent("code", "dev", DEVELOPER, &["developer"]);
    machine.team("atwork", AT_WORK);
    machine.agent("atwork", "waiter", WAITER, &["work"]);
    machine.team("many", MANY);
    let server = machine.serve();
    let link = machine.ok(&["server", "open"]);
    drive(&modules, "comments.mjs", &[link.trim()], |word, title| {
        if word != "START" {
            return false;
        }
        let project = machine.project(&title.replace(' ', "-").to_lowercase());
        repository(&project);
        let instance = server.post("/api/v1/instances", &json!({"path": project})).expect(201).json();
        let team = match title {
            "Still at work" => "@local/atwork",
            "Many files" => "@local/many",
            _ => "@local/code",
        };
        server.start_run(&json!({"team": team, "title": title, "instance": instance["id"]}));
        true
    });
}
