//! Agents in other languages, written from docs/protocol.md: the page's own ones are run as they stand there.

use cliq_testkit::env::{Env, has_program};

const DOCS: &str = include_str!("../../../../docs/protocol.md");

/// The code block behind `<!-- name -->` in the page.
fn from_docs(name: &str) -> String {
    let rest = DOCS.split_once(&format!("<!-- {name} -->\n```")).expect("the page has it").1;
    let code = rest.split_once('\n').expect("a language").1;
    code.split_once("\n```").expect("an end").0.to_owned() + "\n"
}

#[test]
fn the_pages_agents_keep_every_rule() {
    if !has_program("python3") {
        return;
    }
    for name in ["agent.sh", "agent.py"] {
        let env = Env::bare();
        env.write_executable(name, &from_docs(name));
        env.cliq(["agent", "check", "--", &format!("./{name}")]).expect(0).says("the agent keeps every rule");
        let report = env.cliq(["agent", "check", "--json", "--", &format!("./{name}")]).expect(0).json();
        assert_eq!(report["conforms"], true);
    }
}

#[test]
fn the_pages_agents_work_in_a_team() {
    if !has_program("python3") {
        return;
    }
    let workflow = "workflow:
  phases:
    - name: lines
      type: standard
      agent: lines
    - name: words
      type: standard
      agent: words
      depends_on: [lines]
    - name: check
      type: exec
      depends_on: [words]
      commands:
        - {name: t, run: 'test \"$(handoff.words.words)-$(handoff.words.heard_from[0])\" = 4-lines'}
";
    let env = Env::new(workflow, &[("lines", &from_docs("agent.sh")), ("words", &from_docs("agent.py"))]);
    env.cliq(["req", "-m", "one two\nthree four"]).expect(0);
    env.cliq(["run"]).expect(0).says("words: counted 4 words");
    assert_eq!(env.read_json(".cliq/channels/lines--words/handoff.json")["data"]["lines"], 2);
}

#[test]
fn the_sdks_examples_keep_every_rule() {
    let examples = std::path::Path::new(env!("CARGO_BIN_EXE_cliq")).with_file_name("examples");
    for (name, role) in [("word_count", "standard"), ("failing_checks", "gate")] {
        let program = examples.join(name);
        assert!(program.exists(), "{program:?} is not built: ./test builds it");
        let env = Env::bare();
        env.cliq(["agent", "check", "--as", role, "--", program.to_str().unwrap()]).expect(0);
    }
    let source = include_str!("../../../../crates/cliq-sdk/examples/word_count.rs");
    assert!(source.lines().count() < 30);
}

#[track_caller]
fn breaks(script: &str, rules: &[&str]) {
    let env = Env::bare();
    env.write_executable("agent", &format!("#!/bin/sh\nmessage=$(cat)\n{script}"));
    let report = env.cliq(["agent", "check", "--json", "--timeout", "2", "--", "./agent"]).expect(1).json();
    let broken: Vec<&str> = report["findings"]
        .as_array()
        .expect("findings")
        .iter()
        .filter(|f| f["kept"] == false)
        .map(|f| f["rule"].as_str().expect("a name"))
        .collect();
    for rule in rules {
        assert!(broken.contains(rule), "{rule} is not among {broken:?}");
    }
}

#[test]
fn each_broken_rule_is_named() {
    let good = "t=phase; case $message in *'\"type\":\"test\"'*) t=test;; esac
s() { printf '{\"ts\":\"2026-01-01T00:00:00.000Z\",\"version\":1,\"type\":\"%s\",%s}\\n' $t \"$1\" >> \"$CLIQ_SIGNAL_FILE\"; }
ok() { s '\"status\":\"ok\"'; }
complete() { s '\"status\":\"complete\"'; }
";
    let with = |rest: &str| format!("{good}{rest}\n");
    breaks("exit 0\n", &["acks-first", "one-end", "answers-test"]);
    breaks(&with("complete"), &["acks-first"]);
    breaks(&with("ok; ok; complete"), &["one-ok"]);
    breaks(&with("ok; complete; complete"), &["one-end", "nothing-after-end"]);
    breaks(&with("ok; echo garbage >> \"$CLIQ_SIGNAL_FILE\"; complete"), &["valid-lines"]);
    breaks(&with("ok; complete; printf x >> \"$CLIQ_SIGNAL_FILE\""), &["newline"]);
    breaks(&with("t=notify; ok; complete"), &["echoes-type"]);
    breaks(
        &with(
            "ok; printf '{\"ts\":\"now\",\"version\":1,\"type\":\"%s\",\"status\":\"complete\"}\\n' $t >> \"$CLIQ_SIGNAL_FILE\"",
        ),
        &["timestamps"],
    );
    breaks(&with("ok; sleep 100"), &["exits", "one-end"]);
    breaks(&with("ok; complete; exit 3"), &["exit-status"]);
    breaks(&with("ok; complete; sleep 100 &"), &["leaves-nothing"]);
    breaks(
        &with("ok; echo '{}' > \"$CLIQ_DIR/channels/checked--publisher/handoff.json\"; complete"),
        &["handoffs", "test-does-no-work"],
    );
    breaks(&with("ok; echo x > \"$CLIQ_DIR/signals/other.jsonl\"; complete"), &["own-files-only"]);
    let env = Env::bare();
    env.cliq(["agent", "check", "--", "./no-such-agent"]).expect(1).says("cannot start ./no-such-agent");
    env.write_executable("gate", &format!("#!/bin/sh\nmessage=$(cat)\n{good}ok; s '\"status\":\"complete\",\"result\":{{\"verdict\":\"ROUTE:nobody\"}}'\n"));
    env.cliq(["agent", "check", "--as", "gate", "--", "./gate"])
        .expect(1)
        .says("which is not among the route targets");
}
