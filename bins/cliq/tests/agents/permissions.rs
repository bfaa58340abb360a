//! Agents that ask people about permissions, and people who answer their questions (docs/agents.md).

use std::fs;
use std::process::{Child, Stdio};

use cliq_testkit::env::{CommandOutput, done, has_program};
use cliq_testkit::machine::Machine;
use serde_json::{Value, json};

use super::acp::{FIXTURE, WORK, World, of_type, world};
use crate::editors::editor::{Editor, selected};

const ASKS: &[(&str, &str)] = &[("permissions", "ask")];

impl World {
    /// Starts the run in the background.
    fn start(&self, args: &[&str]) -> Child {
        let mut command = self.env.command([&["run", "--headless"], args].concat());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Requests that wait for a person.
    pub(super) fn waiting(&self) -> Vec<Value> {
        let listed = self.env.cliq(["review", "list", "--json"]).expect(0).json();
        let all = listed["reviews"].as_array().or_else(|| listed.as_array()).cloned().unwrap_or_default();
        all.into_iter().filter(|review| review["state"] == "pending").collect()
    }

    /// Waits for a request. Returns its id.
    fn request(&self) -> String {
        self.env.wait_for("a request", || !self.waiting().is_empty());
        self.waiting()[0]["id"].as_str().unwrap().to_owned()
    }

    pub(super) fn answer(&self, args: &[&str]) -> CommandOutput {
        self.env.cliq([&["review"], args].concat())
    }

    fn park(&self) {
        self.env.cliq(["run", "--headless", "--park"]).expect(6);
    }

    fn resume(&self) -> CommandOutput {
        self.env.cliq(["run", "--headless", "--resume"])
    }

    /// Lines of a file of the fixture.
    fn noted(&self, name: &str) -> Vec<String> {
        let text = fs::read_to_string(self.state.join(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    pub(super) fn reviews(&self) -> Vec<Value> {
        let all = self.env.cliq(["review", "list", "--all", "--json"]).expect(0).json();
        all["reviews"].as_array().or_else(|| all.as_array()).cloned().unwrap_or_default()
    }
}

#[test]
fn a_person_allows_a_call_while_the_agent_waits() {
    let Some(world) = world(WORK, &[], ASKS) else { return };
    let run = world.start(&[]);
    let id = world.request();
    assert!(!world.env.exists("turn-1.txt"), "nothing happens before the answer");
    let shown = world.answer(&["show", &id]).expect(0);
    shown.says("mine asks for permission: edit: Write turn-1.txt").says("turn-1.txt");
    world
        .env
        .wait_for("the state", || world.env.cliq(["status"]).stdout.contains("mine asks for permission"));
    world.answer(&["approve", &id, "--as", "operator"]).expect(0);
    done(&run.wait_with_output().unwrap()).expect(0);
    assert!(world.env.exists("turn-1.txt"));
    let lines = world.transcript("work.1");
    let asked = of_type(&lines, "permission");
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0]["decision"], "allowed");
    assert!(asked[0]["reason"].as_str().unwrap().contains("operator"), "{}", asked[0]);
    world.env.cliq(["explain"]).expect(0).says("mine asks for permission").says("allowed it once");
    assert_eq!(world.env.left_over(), Vec::<String>::new());
    // The record of who allowed it.
    let record = world.env.read(".cliq/reviews/work.1.md");
    assert!(record.contains("mine asks for permission: edit: Write turn-1.txt"), "{record}");
}

#[test]
fn a_refusal_reaches_the_agent_with_its_words() {
    for options in [&[][..], &["ends-on-refusal"]] {
        let team = WORK.replace("= 1", "= 2");
        let Some(world) = world(&team, options, ASKS) else { return };
        let run = world.start(&[]);
        let id = world.request();
        world.answer(&["reject", &id, "--as", "operator", "-m", "Use another name."]).expect(0);
        // The agent is told, and asks for the next file.
        let id = world.request();
        world.answer(&["approve", &id, "--as", "operator"]).expect(0);
        done(&run.wait_with_output().unwrap()).expect(0);
        assert!(!world.env.exists("turn-1.txt") && world.env.exists("turn-2.txt"));
        let prompts = world.prompts("session-1");
        assert_eq!(prompts.len(), 2);
        assert!(prompts[1].contains("Use another name."), "{}", prompts[1]);
        let lines = world.transcript("work.1");
        assert_eq!(of_type(&lines, "permission")[0]["decision"], "refused");
    }
}

#[test]
fn a_run_parks_and_goes_on_with_the_answer() {
    let team = WORK.replace("= 1", "= 2");
    let Some(world) = world(&team, &["one-file"], ASKS) else { return };
    world.park();
    assert_eq!(world.env.left_over(), Vec::<String>::new(), "a parked run has no process");
    let id = world.request();
    world.env.cliq(["status"]).expect(0).says("mine asks for permission");
    // Nobody has answered: the run parks again, and asks nobody twice.
    world.env.cliq(["run", "--headless", "--resume", "--park"]).expect(6);
    assert_eq!(world.request(), id);
    world.answer(&["approve", &id, "--as", "operator", "-m", "Once."]).expect(0);
    world.resume().expect(0);
    assert!(world.env.exists("turn.txt"));
    assert_eq!(world.reviews().len(), 1, "one request, one review");
    let explained = world.env.cliq(["explain"]).expect(0).stdout;
    assert_eq!(explained.matches("allowed it once: Once.").count(), 1, "{explained}");
    let prompts = world.prompts("session-1");
    assert_eq!(prompts.len(), 2, "the conversation goes on: {prompts:?}");
    assert!(prompts[0].contains("Write the greeting.") && !prompts[1].contains("Write the greeting."));
    assert!(prompts[1].contains("allowed it once: Once."), "{}", prompts[1]);
    let answers = world.noted("answers");
    assert!(answers.last().unwrap().contains("\"once\""), "{answers:?}");
    assert!(!world.env.exists(".cliq/transcripts/work.2.jsonl"), "it is the same activation");
}

#[test]
fn a_refusal_of_a_parked_run_reaches_the_agent() {
    let team = WORK.replace("= 1", "= 2");
    let Some(world) = world(&team, &["one-file"], ASKS) else { return };
    world.park();
    let id = world.request();
    world.answer(&["reject", &id, "--as", "operator", "-m", "Not this."]).expect(0);
    world.resume().expect(0);
    assert!(!world.env.exists("turn.txt"));
    assert_eq!(world.reviews().len(), 1);
    let prompts = world.prompts("session-1");
    assert!(prompts[1].contains("refused it: Not this."), "{}", prompts[1]);
}

#[test]
fn a_killed_run_asks_nobody_twice() {
    let team = WORK.replace("= 1", "= 2");
    let Some(world) = world(&team, &["one-file"], ASKS) else { return };
    let mut run = world.start(&[]);
    let id = world.request();
    run.kill().unwrap();
    run.wait().unwrap();
    world.answer(&["approve", &id, "--as", "operator"]).expect(0);
    world.resume().expect(0);
    assert!(world.env.exists("turn.txt"));
    assert_eq!(world.reviews().len(), 1);
    assert_eq!(world.env.left_over(), Vec::<String>::new());
}

#[test]
fn requests_wait_for_their_turn() {
    let Some(world) = world(WORK, &["two"], ASKS) else { return };
    let run = world.start(&[]);
    let first = world.request();
    assert_eq!(world.waiting().len(), 1);
    world.answer(&["approve", &first, "--as", "operator"]).expect(0);
    world.env.wait_for("the second request", || {
        world.waiting().iter().any(|review| review["id"] != first.as_str())
    });
    let second = world.request();
    world.answer(&["reject", &second, "--as", "operator"]).expect(0);
    done(&run.wait_with_output().unwrap()).expect(0);
    assert!(world.env.exists("turn-1.txt") && !world.env.exists("other.txt"));
}

#[test]
fn a_question_is_answered_by_a_form() {
    let Some(world) = world(WORK, &["question"], &[("permissions", "edit, other=ask")]) else { return };
    let run = world.start(&[]);
    let id = world.request();
    world.answer(&["show", &id]).expect(0).says("mine asks: Which database?").says("sqlite | postgres");
    world
        .answer(&["approve", &id, "--as", "operator", "--input", "base=mysql"])
        .expect(2)
        .says("sqlite, postgres");
    world
        .answer(&["approve", &id, "--as", "operator", "--input", "base=postgres", "--input", "size=3"])
        .expect(0);
    done(&run.wait_with_output().unwrap()).expect(0);
    let handoff = world.env.read(".cliq/channels/work--check/handoff.md");
    assert!(handoff.contains(r#"The answer: {"base": "postgres", "size": 3}"#), "{handoff}");
    let lines = world.transcript("work.1");
    let notices = of_type(&lines, "notice");
    assert!(notices[0]["text"].as_str().unwrap().contains("question: Which database?"), "{notices:?}");
}

#[test]
fn a_request_that_nobody_answers_in_time_is_refused() {
    let Some(world) = world(WORK, &[], ASKS) else { return };
    world.env.cliq(["settings", "set", "hug.ask_timeout", "2s"]).expect(0);
    world.run().expect(0);
    assert!(!world.env.exists("turn-1.txt"));
    let lines = world.transcript("work.1");
    let asked = of_type(&lines, "permission");
    assert_eq!(asked[0]["decision"], "refused");
    assert!(asked[0]["reason"].as_str().unwrap().contains("did not answer until"), "{}", asked[0]);
}

#[test]
fn time_in_which_people_are_asked_is_not_the_agents() {
    let team = WORK.replace("agent: mine}", "agent: mine, timeout: 4s}");
    let Some(world) = world(&team, &[], ASKS) else { return };
    let run = world.start(&[]);
    let id = world.request();
    std::thread::sleep(std::time::Duration::from_secs(6));
    world.answer(&["approve", &id, "--as", "operator"]).expect(0);
    done(&run.wait_with_output().unwrap()).expect(0);
}

#[test]
fn a_cancelled_run_asks_nobody_any_more() {
    let Some(world) = world(WORK, &[], ASKS) else { return };
    let run = world.start(&[]);
    let id = world.request();
    world.env.cliq(["cancel"]).expect(0);
    assert_ne!(done(&run.wait_with_output().unwrap()).code, 0);
    assert_eq!(world.waiting(), Vec::<Value>::new());
    world.answer(&["show", &id]).expect(0).says("cancelled");
    assert_eq!(world.env.left_over(), Vec::<String>::new());
}

#[test]
fn an_editor_decides_about_the_agents_of_phases() {
    let Some(world) = world(WORK, &[], ASKS) else { return };
    let (mut editor, session) = Editor::with_session(&world.env);
    let prompt = editor.prompt(&session, "Write the greeting.");
    let permission = editor.permission();
    let call = &permission["params"]["toolCall"];
    assert_eq!(call["title"], "work: mine asks for permission: edit: Write turn-1.txt");
    let names: Vec<&Value> =
        permission["params"]["options"].as_array().unwrap().iter().map(|option| &option["name"]).collect();
    assert_eq!(names, ["Allow once", "Refuse"]);
    editor.respond(&permission, selected("approve"));
    assert_eq!(editor.response(prompt)["result"]["_meta"]["cliq"]["status"], "completed");
    assert!(world.env.exists("turn-1.txt"));
}

#[test]
fn a_caller_of_a2a_decides_about_the_agents_of_phases() {
    if !has_program("python3") {
        return;
    }
    let state = tempfile::tempdir().unwrap();
    let settings = json!({
        "server": {"a2a": {"advertise": ["@local"]}, "sandbox": "off"},
        "agents": {"mine": {"kind": "acp", "command": "python3", "args": [FIXTURE, state.path(), "one-file"], "permissions": "ask"}},
    });
    let machine = Machine::new().settings(&settings).arguments(&["--a2a"]);
    machine.team("asks", "workflow:\n  phases:\n    - {name: work, type: standard, agent: mine}\n");
    fs::write(machine.home.join("teams/@local/asks/roles/work.md"), "You work.\n").unwrap();
    let server = machine.serve();
    let call = |message: Value| {
        let body =
            json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}})
                .to_string();
        let bearer = format!("Bearer {}", server.token);
        let headers = [
            ("authorization", bearer.as_str()),
            ("content-type", "application/json"),
            ("a2a-version", "1.0"),
        ];
        server.send("POST", "/a2a/jsonrpc", &headers, Some(&body)).expect(200).json()["result"]["task"]
            .clone()
    };
    let parts = json!([{"text": "Write the greeting."}, {"data": {"team": "@local/asks"}}]);
    let task = call(json!({"messageId": "m1", "role": "ROLE_USER", "parts": parts}));
    assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "{task}");
    let asked = task["status"]["message"]["parts"].to_string();
    assert!(asked.contains("mine asks for permission: edit: Write turn.txt"), "{asked}");
    let (id, context) = (task["id"].as_str().unwrap(), task["contextId"].as_str().unwrap());
    let parts = json!([{"data": {"verdict": "approve"}}]);
    let message =
        json!({"messageId": "a1", "taskId": id, "contextId": context, "role": "ROLE_USER", "parts": parts});
    let answer = call(message);
    assert_eq!(answer["status"]["state"], "TASK_STATE_COMPLETED", "{answer}");
}

#[test]
fn items_in_worktrees_park_and_keep_their_work() {
    let team = "workflow:
  phases:
    - name: fix
      type: standard
      agent: mine
      for_each: '[\"a\", \"b\"]'
      max_items: 2
      workspace: worktree
";
    let Some(world) = world(team, &["item"], ASKS) else { return };
    let git = |args: &[&str]| {
        let mut command = std::process::Command::new("git");
        command
            .args(["-c", "user.email=a@b.c", "-c", "user.name=a"])
            .args(args)
            .current_dir(world.env.work());
        assert!(command.status().unwrap().success(), "{args:?}");
    };
    git(&["init", "-q"]);
    world.env.write(".gitignore", ".cliq/\n");
    git(&["add", "."]);
    git(&["commit", "-qm", "first"]);
    world.park();
    let waiting = world.waiting();
    assert_eq!(waiting.len(), 2, "{waiting:#?}");
    let work = world.env.work().canonicalize().unwrap();
    assert!(waiting.iter().all(|review| review["project"] == work.to_str().unwrap()), "{waiting:#?}");
    for review in waiting {
        world.answer(&["approve", review["id"].as_str().unwrap(), "--as", "operator"]).expect(0);
    }
    world.resume().expect(0);
    for item in ["fix.0", "fix.1"] {
        assert!(world.env.exists(&format!("done-{item}.txt")));
        // A worktree that was made anew would have one line.
        assert_eq!(world.env.read(&format!("started-{item}.txt")), "started\nstarted\n");
    }
    assert_eq!(world.reviews().len(), 2);
}
