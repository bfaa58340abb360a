//! A phase that runs on another machine: cliq as a client of cliq.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use cliq_testkit::agent::{machine, token};
use cliq_testkit::machine::{Machine, Running, wait_for};
use serde_json::{Value, json};

/// A project on a machine of its own whose team hands work to the server of another.
struct Local {
    machine: Machine,
    project: PathBuf,
    token: String,
}

impl Local {
    fn new(server: &Running, token: &str, skill: &str, version: &str) -> Self {
        let machine = Machine::new();
        let team = format!(
            r#"name: "@local/outer"
inputs: [{{name: topic, default: cats}}]
workflow:
  phases:
    - {{name: first, type: exec, commands: [{{name: c, run: "true"}}]}}
    - name: away
      type: standard
      agent: a2a
      depends_on: [first]
      config: {{url: "{}{version}", token_env: REMOTE_TOKEN, skill: "{skill}"}}
    - {{name: last, type: exec, depends_on: [away], commands: [{{name: c, run: "cp .cliq/files/away/report.md got.md; echo $(inputs.topic) > topic"}}]}}
"#,
            server.url
        );
        let dir = machine.path("team");
        fs::create_dir_all(dir.join("roles")).unwrap();
        fs::write(dir.join("team.yml"), team).unwrap();
        let project = machine.project("project");
        let local = Self { machine, project, token: token.to_owned() };
        local.cliq(&["assemble", "../team"]);
        local.cliq(&["req", "-m", "Write about it"]);
        local
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cliq"));
        command
            .args(arguments)
            .current_dir(&self.project)
            .env("CLIQ_HOME", &self.machine.home)
            .env("REMOTE_TOKEN", &self.token);
        command
    }

    fn cliq(&self, arguments: &[&str]) -> Output {
        let output = self.command(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output
    }

    fn handoff(&self) -> Value {
        serde_json::from_slice(
            &fs::read(self.project.join(".cliq/channels/away--last/handoff.json")).unwrap(),
        )
        .unwrap()
    }
}

#[test]
fn a_phase_runs_on_another_machine() {
    let machine = machine();
    let server = machine.serve();
    let token = token(&machine, "remote", "run");
    let local = Local::new(&server, &token, "@local/steps", "");
    local.cliq(&["run", "--headless"]);
    assert_eq!(fs::read_to_string(local.project.join("got.md")).unwrap(), "# Done\n");
    let handoff = local.handoff();
    let artifacts = handoff["data"]["artifacts"].as_array().unwrap();
    assert_eq!(artifacts.len(), 2, "{handoff}");
    let task = handoff["data"]["task_id"].as_str().unwrap();
    let requirement = server.run(task)["requirement"].as_str().unwrap().to_owned();
    assert!(requirement.contains("Write about it") && requirement.contains("topic: cats"), "{requirement}");
    // What the remote agent said is in the phase's log; the token is nowhere.
    let log = fs::read_to_string(local.project.join(".cliq/logs/away.1.log")).unwrap();
    assert!(log.contains("Phase completed: p2"), "{log}");
    let everything = Command::new("grep").args(["-r", &token]).arg(&local.project).output().unwrap();
    assert!(everything.stdout.is_empty(), "{}", String::from_utf8_lossy(&everything.stdout));
}

#[test]
fn failures_of_the_remote_agent_are_reported() {
    let machine = machine();
    machine.chain("fails", &["exit 9"]);
    let server = machine.serve();
    let good = token(&machine, "remote", "run");
    for (token, skill, path, text) in [
        (good.as_str(), "@local/fails", "", "exit status 9"),
        (good.as_str(), "@local/nosuch", "", "is not offered by this agent"),
        ("wrong", "@local/steps", "", "401"),
        (good.as_str(), "@local/steps", "/nosuch", "404"),
    ] {
        let local = Local::new(&server, token, skill, path);
        let output = local.command(&["run", "--headless"]).output().unwrap();
        let said =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(said.contains(text), "{text}: {said}");
    }
    // What failed is done anew by a resumed run, and not looked up.
    let local = Local::new(&server, &good, "@local/fails", "");
    assert_eq!(local.command(&["run", "--headless"]).status().unwrap().code(), Some(3));
    let before = server.get("/api/v1/runs?team=@local/fails").json()["runs"].as_array().unwrap().len();
    assert_eq!(local.command(&["run", "--headless", "--resume"]).status().unwrap().code(), Some(3));
    let after = server.get("/api/v1/runs?team=@local/fails").json()["runs"].as_array().unwrap().len();
    assert_eq!(after, before + 1);
}

#[test]
fn a_cancellation_is_passed_on() {
    let machine = machine();
    let server = machine.serve();
    let token = token(&machine, "remote", "run");
    let local = Local::new(&server, &token, "@local/slow", "");
    let mut run = local.command(&["run", "--headless"]).spawn().unwrap();
    let remote = wait_for("the remote task works", || {
        let runs = server.get("/api/v1/runs?state=running").json();
        runs["runs"][0]["id"].as_str().map(str::to_owned)
    });
    // The phase knows its task once the first update came.
    wait_for("the phase follows it", || {
        let log = fs::read_to_string(local.project.join(".cliq/logs/away.1.log")).unwrap_or_default();
        log.contains("Running: p0").then_some(())
    });
    local.cliq(&["cancel"]);
    assert_eq!(run.wait().unwrap().code(), Some(130));
    assert_eq!(server.ended(&remote)["state"], "cancelled");
}

#[test]
fn remote_task_survives_kills_of_both_sides() {
    let machine = machine();
    machine.team(
        "steps",
        r#"description: Some steps
outputs: [{name: report.md}]
workflow:
  phases:
    - {name: p0, type: exec, commands: [{name: c, run: "sleep 1.5"}]}
    - {name: p1, type: exec, depends_on: [p0], commands: [{name: c, run: "sleep 1.5; echo '# Done' > report.md"}]}
"#,
    );
    let server = machine.serve();
    machine.keep_port(&server);
    let token = token(&machine, "remote", "run");
    let local = Local::new(&server, &token, "@local/steps", "");
    let mut run = local.command(&["run", "--headless"]).spawn().unwrap();
    let log = local.project.join(".cliq/logs/away.1.log");
    wait_for("the phase follows it", || {
        fs::read_to_string(&log).unwrap_or_default().contains("Running: p0").then_some(())
    });
    server.kill();
    let server = machine.serve();
    // Now the run itself: with all of its processes.
    run.kill().unwrap();
    run.wait().unwrap();
    local.cliq(&["run", "--headless", "--resume"]);
    assert_eq!(fs::read_to_string(local.project.join("got.md")).unwrap(), "# Done\n");
    let runs = server.get("/api/v1/runs").expect(200).json();
    assert_eq!(runs["runs"].as_array().unwrap().len(), 1, "the same remote task: {runs}");
    assert_eq!(json!("completed"), runs["runs"][0]["state"]);
}
