//! The commands themselves: what they say, what they refuse, their exit codes.

use std::io::Write;
use std::process::Stdio;

use cliq_testkit::env::Env;

#[test]
fn the_four_steps_say_what_comes_next() {
    let env = Env::bare();
    env.cliq(["run"]).expect(2).says("is not inside a cliq project").says("cliq init");
    env.cliq(["init"]).expect(0).says("next: `cliq assemble TEAM`");
    env.cliq(["init"]).expect(0).says("is a cliq project already");
    env.cliq(["run"]).expect(2).says("no team is assembled");
    env.cliq(["assemble", "nowhere"]).expect(2).says("there is no team.yml in nowhere");
    env.cliq(["assemble", "@cliq/dmeo"]).expect(2).says("did you mean @cliq/demo?");
    env.cliq(["assemble", "@cliq/demo"]).expect(0).says("next: `cliq req -m TEXT`");
    env.cliq(["req"]).expect(2);
    env.cliq(["req", "-m", "  "]).expect(2).says("the requirement is empty");
    env.cliq(["req", "-f", "missing.md"]).expect(2).says("missing.md");
    env.cliq(["req", "-m", "Do it."]).expect(0).says("next: `cliq run`");
    assert_eq!(env.read(".cliq/requirement.md"), "Do it.\n");
    let mut child =
        env.command(["req", "-f", "-"]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"# From a pipe\n").unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(env.read(".cliq/requirement.md"), "# From a pipe\n");
}

#[test]
fn a_team_with_errors_is_not_assembled_and_the_old_one_stays() {
    let env = Env::new(
        "workflow:\n  phases:\n    - name: a\n      type: exec\n      commands: [{name: t, run: 'true'}]\n",
        &[],
    );
    let before = env.read(".cliq/team.yml");
    env.write(
        "../team/team.yml",
        "name: \"@local/test\"\nworkflow:\n  phases:\n    - {name: a, type: exce}\n",
    );
    env.cliq(["assemble", "../team"])
        .expect(2)
        .says("`type` cannot be \"exce\"")
        .says("did you mean `exec`?")
        .says("team.yml:4:23");
    assert_eq!(env.read(".cliq/team.yml"), before);
}

#[test]
fn validate_reports_all_problems_to_people_and_programs() {
    let env = Env::bare();
    env.write("team.yml", "name: \"@local/x\"\nworkflow:\n  phases:\n    - {name: b, type: standard, depends_on: [a]}\n    - {name: a, type: standard, depends_on: [b]}\n");
    let done = env
        .cliq(["team", "validate"])
        .expect(2)
        .says("phases wait for one another: b → a → b")
        .says("invalid:")
        .says("4 errors");
    assert!(!done.stdout.contains('\u{1b}') && !done.stderr.contains('\u{1b}'), "no colour in a pipe");
    let report = env.cliq(["team", "validate", "--json"]).expect(2).json();
    assert_eq!(report["valid"], false);
    let codes: Vec<&str> =
        report["diagnostics"].as_array().unwrap().iter().map(|d| d["code"].as_str().unwrap()).collect();
    assert_eq!(codes, ["missing-role", "dependency-cycle", "no-root", "missing-role"]);
    assert_eq!(report["diagnostics"][0]["line"], 4);
    env.write("roles/a.md", "A.");
    env.write("roles/b.md", "B.");
    env.write("team.yml", "name: \"@local/x\"\nphases:\n  - {name: a, type: standard}\n  - {name: b, type: gate, depends_on: [a]}\n");
    env.cliq(["team", "validate"])
        .expect(0)
        .says("valid: @local/x (2 phases, at most 6 activations) with 1 warning")
        .says("gate-without-commands");
    env.cliq(["team", "validate", "team.yml"]).expect(0);
    env.cliq(["team", "validate", "@cliq/demo"]).expect(0);
    env.cliq(["team", "validate", "nothing"]).expect(2);
    std::fs::write(env.path("team.yml"), b"name: \xff\n").unwrap();
    env.cliq(["team", "validate"]).expect(2).says("is not UTF-8: byte 6 (line 1)");
}

#[test]
fn teams_can_be_made_listed_shown_and_drawn() {
    let env = Env::bare();
    env.cliq(["team", "create", "my-team"]).expect(0).says("created @local/my-team in my-team/");
    env.cliq(["team", "validate", "my-team"]).expect(0);
    env.cliq(["agent", "check", "--", "my-team/agents/worker.sh"]).expect(0);
    env.cliq(["init"]).expect(0);
    env.cliq(["assemble", "my-team"]).expect(0);
    env.cliq(["req", "-m", "Add a search page"]).expect(0);
    env.cliq(["run"]).expect(0).says("PASS: 1 of 1 commands pass.");
    assert!(env.read("work.md").contains("Add a search page"));
    env.cliq(["team", "create", "my-team"]).expect(4).says("is not empty");
    env.cliq(["team", "create", "My Team"]).expect(2).says("is not a valid team name");
    env.cliq(["team", "list"]).expect(0).says("@local/my-team").says("@cliq/demo");
    let list = env.cliq(["team", "list", "--json"]).expect(0).json();
    assert!(
        list.as_array()
            .unwrap()
            .iter()
            .any(|t| t["name"] == "@cliq/demo" && t["source"] == "bundled" && t["valid"] == true)
    );
    env.cliq(["team", "show", "@cliq/demo"])
        .expect(0)
        .says("agent: inspector (agents/inspector.sh)")
        .says("routes to fixer");
    assert_eq!(
        env.cliq(["team", "show", "my-team", "--json"]).expect(0).json()["phases"][1]["route_targets"][0],
        "fixer"
    );
    env.cliq(["team", "graph", "my-team"]).expect(0).says("2. quality");
    env.cliq(["team", "graph", "my-team", "--format", "mermaid"]).expect(0).says("flowchart TD");
    env.cliq(["team", "graph", "my-team", "--format", "dot"]).expect(0).says("digraph team");
    assert_eq!(env.cliq(["team", "schema"]).expect(0).json()["title"], "cliq team");
}

#[test]
fn installed_teams_and_agents_are_found() {
    let env = Env::bare();
    env.write_executable(
        "../home/agents/helper/run",
        &format!("{}ok\ncomplete\n", cliq_testkit::env::PRELUDE),
    );
    env.write(
        "../home/agents/helper/manifest.json",
        "{\"name\": \"helper\", \"entry\": \"run\", \"env\": []}",
    );
    env.write(
        "../home/teams/@me/tool/team.yml",
        "name: \"@me/tool\"\nworkflow:\n  phases:\n    - {name: a, type: standard, agent: helper}\n",
    );
    env.write("../home/teams/@me/tool/roles/a.md", "A.");
    env.cliq(["init"]).expect(0);
    env.cliq(["assemble", "@me/tool"]).expect(0);
    env.cliq(["agent", "list"]).expect(0).says("helper").says("rules");
    env.cliq(["run"]).expect(0);
}

#[test]
fn mistyped_commands_and_agents_are_suggested() {
    let env = Env::new(
        "workflow:\n  phases:\n    - name: a\n      type: exec\n      commands: [{name: one, run: 'true'}]\n",
        &[],
    );
    env.cliq(["rnu"]).expect(2).says("'run'");
    env.cliq(["team", "validte"]).expect(2).says("'validate'");
    // Also in a team without a phase that takes the default agent.
    env.cliq(["run", "--agent", "claude-cod"])
        .expect(2)
        .says("cannot run with the agent `claude-cod`: there is no such agent")
        .says("did you mean `claude-code`? the agents are: claude-code, ");
    env.cliq(["run", "--agent", "nope"]).expect(2).says("the agents are: ");
    env.cliq(["run", "--agent", "claude-code"]).expect(0);
}

#[test]
fn dispatch_that_was_answered_is_not_answered_again() {
    let env = Env::new(
        "workflow:\n  phases:\n    - {name: g, type: gate, agent: rules, commands: [{name: c, run: 'true'}]}\n",
        &[("g", "G.")],
    );
    env.cliq(["run"]).expect(0);
    let message = std::fs::read(env.work().join(".cliq/messages/g.1.json")).unwrap();
    let channel = env.work().join(".cliq/signals/g.jsonl");
    let before = std::fs::read_to_string(&channel).unwrap();
    let repeat = || {
        use std::io::Write;
        let mut child = env
            .command(["agent", "handle"])
            .stdin(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(&message).unwrap();
        child.wait_with_output().unwrap()
    };
    let output = repeat();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("already has its last message") && said.contains("move this file away"), "{said}");
    assert_eq!(std::fs::read_to_string(&channel).unwrap(), before);
    std::fs::remove_file(&channel).unwrap();
    assert_eq!(repeat().status.code(), Some(0));
}

#[test]
fn broken_installed_agent_is_named_with_the_reason() {
    let env = Env::bare();
    env.write("../home/agents/helper/run", "#!/bin/sh\n");
    env.write("../home/agents/helper/manifest.json", "{\"entry\": \"run\"}");
    env.write("../home/agents/rules/manifest.json", "{");
    env.write(
        "team.yml",
        "name: \"@me/tool\"\nworkflow:\n  phases:\n    - {name: a, type: standard, agent: helper}\n    - {name: b, type: standard, agent: rules}\n",
    );
    env.write("roles/a.md", "A.");
    env.write("roles/b.md", "B.");
    env.cliq(["init"]).expect(0);
    let hint = "run is not executable; `chmod +x";
    env.cliq(["agent", "list"]).expect(0).says("helper").says(hint).says("is not a valid manifest");
    env.cliq(["doctor"]).expect(1).says("helper: cannot use the installed agent").says(hint);
    // An installed agent hides the built-in one of its name, also if it is broken.
    env.cliq(["team", "validate"]).expect(2).says("agent `helper`").says(hint).says("agent `rules`");
    env.cliq(["assemble", "."]).expect(2).says(hint);
}

#[test]
fn logs_show_what_was_printed() {
    let env = Env::new(
        "workflow:\n  phases:\n    - name: a\n      type: exec\n      commands: [{name: one, run: echo hello}, {name: two, run: 'true'}]\n",
        &[],
    );
    env.cliq(["logs"]).expect(0).says("printed nothing");
    env.cliq(["run"]).expect(0);
    env.cliq(["logs", "a"]).expect(0).says("==> a.1.1-one.log <==\nhello\n");
    env.cliq(["logs"]).expect(0).says("a: completed");
    env.cliq(["logs", "b"]).expect(2).says("the team has no phase `b`");
}

#[test]
fn logs_and_status_can_be_followed_to_the_end() {
    let env = Env::new(
        "workflow:\n  phases:\n    - name: a\n      type: exec\n      commands: [{name: t, run: 'echo begun; while [ ! -f go ]; do sleep 0.01; done; echo ended'}]\n",
        &[],
    );
    let run = env.spawn(["run"]);
    env.wait_for("the log", || env.files(".cliq/logs").iter().any(|f| f.starts_with("a.1.")));
    let into = |file: &str, args: &[&str]| {
        env.command(args).stdout(std::fs::File::create(env.path(file)).unwrap()).spawn().unwrap()
    };
    let mut logs = into("logs", &["logs", "a", "-f"]);
    let mut status = into("status", &["status", "--watch"]);
    env.wait_for("both follow", || {
        env.read("logs").contains("begun\n") && env.read("status").contains("running")
    });
    env.write("go", "");
    cliq_testkit::env::done(&run.wait_with_output().unwrap()).expect(0);
    assert!(logs.wait().unwrap().success() && status.wait().unwrap().success());
    assert!(env.read("logs").contains("begun\nended\n"), "{}", env.read("logs"));
    assert!(env.read("status").contains("completed"), "{}", env.read("status"));
}

#[test]
fn doctor_reports_what_is_missing() {
    let env = Env::bare();
    env.cliq(["doctor"]).expect(0).says("no project here");
    env.cliq(["init"]).expect(0);
    env.team("workflow:\n  phases:\n    - name: a\n      type: standard\n      agent: claude-code\n", &[]);
    let yml = env.read("../team/team.yml").replace("workflow:", "tools: [no-such-tool]\nworkflow:");
    env.write("../team/team.yml", &yml);
    env.cliq(["assemble", "../team"]).expect(0);
    let report = env.cliq(["doctor", "--json"]).expect(1).json();
    assert_eq!(report["healthy"], false);
    env.cliq(["doctor"]).expect(1).says("no-such-tool is not on the PATH").says("agent `claude-code`");
    env.cliq(["run"]).expect(2).says("not on the PATH: no-such-tool");
}

#[test]
fn usage_errors_are_code_2_and_help_is_0() {
    let env = Env::bare();
    env.cliq(["frobnicate"]).expect(2);
    env.cliq(["run", "--max-parallel", "0"]).expect(2);
    env.cliq(["--help"]).expect(0).says("Runs teams of agents");
    env.cliq(["--version"]).expect(0).says("cliq 0.1.0");
    for shell in ["bash", "zsh", "fish"] {
        env.cliq(["completions", shell]).expect(0).says("assemble");
    }
    env.cliq(["-C", "nowhere", "init"]).expect(2).says("cannot work in nowhere");
}

#[test]
fn a_project_is_found_from_below() {
    let env = Env::new(
        "workflow:\n  phases:\n    - name: a\n      type: exec\n      commands: [{name: t, run: 'pwd > where'}]\n",
        &[],
    );
    env.write("deep/er/x", "");
    env.cliq(["-C", "deep/er", "run"]).expect(0);
    assert_eq!(env.read("where").trim(), env.work().to_str().unwrap());
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let env = Env::new(
        "workflow:\n  phases:\n    - name: a\n      type: exec\n      commands: [{name: t, run: 'touch ran'}]\n",
        &[],
    );
    let mut child = env.command(["run"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let done = cliq_testkit::env::done(&child.wait_with_output().unwrap());
    assert_eq!((done.code, done.stderr.as_str()), (0, ""));
    assert!(env.exists("ran"));
}

#[test]
fn broken_state_is_named_and_nothing_panics() {
    let env = Env::new(
        "workflow:\n  phases:\n    - name: a\n      type: exec\n      commands: [{name: t, run: 'true'}]\n",
        &[],
    );
    env.cliq(["run"]).expect(0);
    let journal = env.read(".cliq/journal.jsonl");
    env.write(".cliq/journal.jsonl", &format!("{journal}{{\"torn"));
    env.cliq(["status"]).expect(0).says("completed");
    env.write(".cliq/journal.jsonl", &format!("garbage\n{journal}"));
    env.cliq(["status"]).expect(1).says("journal.jsonl, line 1").says("cliq clean");
    env.write(".cliq/journal.jsonl", &journal.replacen("\"version\":1", "\"version\":9", 1));
    env.cliq(["status"]).expect(1).says("version 9").says("use the cliq that wrote it");
    env.cliq(["clean"]).expect(0);
    env.cliq(["run"]).expect(0);
    env.write(".cliq/team.yml", "name: [");
    env.cliq(["run", "-f"]).expect(2).says("yaml-syntax").says("assemble it again");
    env.write(".cliq/settings.json", "{");
    env.cliq(["assemble", "../team"]).expect(0);
    env.cliq(["run", "-f"]).expect(2).says("settings.json");
}
