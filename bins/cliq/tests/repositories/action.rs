//! The action of GitHub: its step, run as a runner does, with the events that GitHub publishes and an API behind Prism that checks requests
//! and answers against the published description.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use cliq_testkit::env::{CommandOutput, Env, done};
use serde_json::{Value, json};

use super::{deployed, path, repository};

/// A job of GitHub Actions.
struct Job {
    env: Env,
    name: &'static str,
    event: Value,
    api: String,
}

impl Job {
    fn new(name: &'static str, event: Value) -> Self {
        Self { env: repository(), name, event, api: "http://127.0.0.1:1".to_owned() }
    }

    /// Runs the first step with its inputs.
    fn run(&self, inputs: &[(&str, &str)]) -> CommandOutput {
        done(&self.first_step(inputs).output().unwrap())
    }

    fn first_step(&self, inputs: &[(&str, &str)]) -> Command {
        self.env.write("../event.json", &self.event.to_string());
        self.step("run.sh", &[&[("CLIQ_ACTION_TEAM", "team")], inputs].concat())
    }

    /// Runs the second step with a token, if the first asks for it.
    fn comment(&self, token: &str) -> Option<CommandOutput> {
        if self.output("comment") != "true" {
            return None;
        }
        let (report, number) = (self.output("report"), self.output("number"));
        let inputs =
            [("CLIQ_ACTION_REPORT", &*report), ("CLIQ_ACTION_NUMBER", &number), ("CLIQ_ACTION_TOKEN", token)];
        Some(done(&self.step("comment.sh", &inputs).output().unwrap()))
    }

    fn step(&self, script: &str, inputs: &[(&str, &str)]) -> Command {
        let mut command = Command::new("bash");
        command
            .arg(deployed("github-action").join(script))
            .current_dir(self.env.work())
            .env("PATH", path())
            .env("HOME", self.env.home())
            .envs([
                ("GITHUB_EVENT_NAME", self.name),
                ("GITHUB_API_URL", &*self.api),
                ("GITHUB_JOB", "review"),
            ])
            .envs([("GITHUB_REPOSITORY", "acme/calc"), ("GITHUB_RUN_ID", "42")])
            .env_remove("GITHUB_SERVER_URL");
        for (variable, file) in [
            ("GITHUB_EVENT_PATH", "../event.json"),
            ("GITHUB_OUTPUT", "../output"),
            ("GITHUB_ENV", "../environment"),
            ("GITHUB_STEP_SUMMARY", "../summary.md"),
            ("RUNNER_TEMP", ".."),
        ] {
            command.env(variable, self.env.path(file));
        }
        command.envs(inputs.iter().copied());
        command
    }

    /// The last value of an output.
    fn output(&self, name: &str) -> String {
        let all = self.env.read("../output");
        all.lines()
            .rev()
            .find_map(|line| line.strip_prefix(&format!("{name}=")))
            .unwrap_or_default()
            .to_owned()
    }
}

/// Whether this machine has what those of GitHub have.
fn has_programs() -> bool {
    let has = |program: &str| {
        Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
    };
    let missing: Vec<&str> = ["bash", "jq", "curl"].into_iter().filter(|program| !has(program)).collect();
    if !missing.is_empty() {
        cliq_testkit::not_run(&format!("the action of GitHub needs {}", missing.join(", ")));
    }
    missing.is_empty()
}

fn pull_request(head: &str, association: &str) -> Value {
    let repository = |name: &str| json!({"repo": {"full_name": name}});
    json!({"pull_request": {
        "number": 7, "title": "Sums $(touch injected)", "body": "A function `touch injected` that adds.",
        "author_association": association, "head": repository(head), "base": repository("acme/calc"),
    }})
}

fn issue(association: &str, comment: Option<&str>) -> Value {
    let issue = json!({"number": 7, "title": "Sums", "body": null, "author_association": association});
    match comment {
        Some(association) => {
            json!({"issue": issue, "comment": {"body": "Please do.", "author_association": association}})
        }
        None => json!({"issue": issue}),
    }
}

fn reviewed(mut event: Value, association: &str) -> Value {
    event["review"] = json!({"body": "Please mend it.", "author_association": association});
    event
}

#[test]
fn strangers_give_no_tasks() {
    if !has_programs() {
        return;
    }
    let refused = [
        ("pull_request_target", pull_request("eve/calc", "NONE")),
        ("pull_request_review", reviewed(pull_request("acme/calc", "NONE"), "MEMBER")),
        ("pull_request_review", reviewed(pull_request("acme/calc", "MEMBER"), "NONE")),
        ("pull_request_review", reviewed(pull_request("eve/calc", "MEMBER"), "MEMBER")),
        ("pull_request_target", pull_request("eve/calc", "MEMBER")),
        ("issues", issue("NONE", None)),
        ("issues", issue("FIRST_TIME_CONTRIBUTOR", None)),
        ("issue_comment", issue("OWNER", Some("CONTRIBUTOR"))),
        ("issue_comment", issue("NONE", Some("OWNER"))),
        ("discussion", json!({"discussion": {"title": "Sums", "author_association": "OWNER"}})),
        ("issues", json!({"issue": {"number": 7, "title": "Sums"}})),
        ("workflow_run", json!({})),
    ];
    for (name, event) in refused {
        let job = Job::new(name, event.clone());
        job.run(&[("CLIQ_ACTION_COMMENT", "false")]).expect(1).says("no team is run");
        assert!(!job.env.exists(".cliq"), "{name} {event}");
        assert_eq!(job.output("status"), "none");
    }
    let allowed = [
        ("pull_request", pull_request("eve/calc", "NONE")),
        ("pull_request", pull_request("acme/calc", "MEMBER")),
        ("pull_request_target", pull_request("acme/calc", "COLLABORATOR")),
        ("pull_request_review", reviewed(pull_request("acme/calc", "MEMBER"), "OWNER")),
        ("issues", issue("MEMBER", None)),
        ("issue_comment", issue("OWNER", Some("COLLABORATOR"))),
        ("workflow_dispatch", json!({})),
    ];
    for (name, event) in allowed {
        let job = Job::new(name, event);
        let inputs: &[(&str, &str)] = match name {
            "workflow_dispatch" => {
                &[("CLIQ_ACTION_REQUIREMENT", "Add sums."), ("CLIQ_ACTION_COMMENT", "false")]
            }
            _ => &[("CLIQ_ACTION_COMMENT", "false")],
        };
        job.run(inputs).expect(0);
        assert_eq!(job.output("status"), "COMPLETED", "{name}");
    }
    // The task is a member's, and nothing of the issue is in it.
    let job = Job::new("issue_comment", issue("NONE", Some("OWNER")));
    job.run(&[("CLIQ_ACTION_REQUIREMENT", "Add sums."), ("CLIQ_ACTION_COMMENT", "false")]).expect(0);
    let job = Job::new("issues", issue("NONE", None));
    job.run(&[("CLIQ_ACTION_TRUST", "everyone"), ("CLIQ_ACTION_COMMENT", "false")]).expect(0);
    let job = Job::new("issues", issue("OWNER", None));
    job.run(&[("CLIQ_ACTION_TRUST", "all")]).expect(1).says("members or everyone");
}

#[test]
fn task_is_text_and_agents_do_not_speak_to_the_runner() {
    if !has_programs() {
        return;
    }
    let job = Job::new("pull_request", pull_request("eve/calc", "NONE"));
    job.run(&[]).expect(0).says("a pull request from a fork has no right to comment");
    let seen = job.env.read("seen");
    assert!(seen.contains("A function `touch injected` that adds."), "{seen}");
    for file in ["GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_STEP_SUMMARY", "TOKEN"] {
        assert!(!seen.contains(file), "agents get {file}: {seen}");
    }
    assert!(job.comment("job-token").is_none());
    assert!(!job.env.exists("injected"), "nothing of a title is executed");
    let summary = job.env.read("../summary.md");
    assert!(
        summary.contains("**COMPLETED**") && summary.contains("https://github.com/acme/calc/actions/runs/42"),
        "{summary}"
    );
    assert_eq!(job.output("run-id"), job.env.run_id());
}

#[test]
fn job_that_cannot_run_says_why() {
    if !has_programs() {
        return;
    }
    let job = Job::new("pull_request", pull_request("acme/calc", "MEMBER"));
    job.run(&[("CLIQ_ACTION_TEAM", "")]).expect(1).says("the input team is missing");
    job.run(&[("CLIQ_ACTION_DIRECTORY", "no/such")]).expect(1).says("working directory");
    job.run(&[("CLIQ_ACTION_RELEASE", "/nowhere")]).expect(1).says("the release has no install.sh");
    job.run(&[("CLIQ_ACTION_ARGUMENTS", "--no-such-option")])
        .expect(2)
        .says("--no-such-option")
        .says("did not begin");
    assert_eq!(job.output("status"), "none");
    job.run(&[("CLIQ_ACTION_TEAM", "no-such-team")]).expect(2).says("no-such-team").says("did not begin");
    job.run(&[("CLIQ_ACTION_COMMENT", "yes")]).expect(1).says("true or false");
    job.env.write("fail", "");
    job.run(&[]).expect(3);
    assert_eq!(job.output("status"), "ESCALATED");
    // The report stays where there is no way to comment.
    job.comment("job-token").unwrap().expect(0).says("the comment was refused");
    job.comment("").unwrap().expect(0).says("there is no token");
    let push = Job::new("push", json!({"ref": "refs/heads/main"}));
    push.run(&[]).expect(1).says("there is no task");
    push.env.write("../event.json", "no JSON");
    done(&push.step("run.sh", &[("CLIQ_ACTION_TEAM", "team")]).output().unwrap())
        .expect(1)
        .says("cannot be read");
}

#[test]
fn cancelled_job_cancels_the_run_and_reports_it() {
    if !has_programs() {
        return;
    }
    let job = Job::new("pull_request", pull_request("acme/calc", "MEMBER"));
    let team = "name: \"@local/slow\"\nphases:\n  - {name: a, type: exec, commands: [{name: a, run: 'touch begun; sleep 1000'}]}\n";
    job.env.write("slow/team.yml", team);
    let mut step = job.first_step(&[("CLIQ_ACTION_TEAM", "slow")]);
    let step = step.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    job.env.wait_for("the command", || job.env.exists("begun"));
    assert!(Command::new("kill").args(["-TERM", &step.id().to_string()]).status().unwrap().success());
    done(&step.wait_with_output().unwrap()).expect(130);
    assert_eq!(job.output("status"), "CANCELLED");
    assert!(job.env.read("../summary.md").contains("**CANCELLED**"));
}

#[test]
fn release_is_installed_for_the_step() {
    if !has_programs() {
        return;
    }
    let job = Job::new("pull_request", pull_request("acme/calc", "MEMBER"));
    let script = "#!/bin/sh\nwhile [ \"$1\" != --to ]; do shift; done\nmkdir -p \"$2\"\nln -s \"$CLIQ_UNDER_TEST\" \"$2/cliq\"\n";
    job.env.write("../release/install.sh", script);
    let release = job.env.path("../release");
    job.run(&[
        ("PATH", "/usr/bin:/bin"),
        ("CLIQ_UNDER_TEST", env!("CARGO_BIN_EXE_cliq")),
        ("CLIQ_ACTION_RELEASE", release.to_str().unwrap()),
        ("CLIQ_ACTION_COMMENT", "false"),
    ])
    .expect(0);
    job.run(&[("PATH", "/usr/bin:/bin")]).expect(1).says("cliq is not on the PATH");
}

/// The API of comments, with Prism before it.
struct Api {
    programs: [Child; 2],
    port: u16,
    said: BufReader<ChildStdout>,
    _dir: tempfile::TempDir,
}

impl Drop for Api {
    fn drop(&mut self) {
        for program in &mut self.programs {
            let _ = program.kill();
            let _ = program.wait();
        }
    }
}

impl Api {
    fn start() -> Option<Self> {
        let modules = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/node/node_modules");
        if !has_programs() {
            return None;
        }
        if !["@octokit/openapi", ".bin/prism"].iter().all(|name| modules.join(name).exists()) {
            cliq_testkit::not_run("target/node has no description of GitHub's API (./test makes it)");
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let filtered = dir.path().join("description.json");
        let mut server = Command::new("node")
            .arg(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/repositories/comments.mjs"))
            .args([&modules.join("@octokit/openapi/generated/api.github.com.json"), &filtered])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(server.stdout.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let proxy = Command::new(modules.join(".bin/prism"))
            .args(["proxy", "--errors", "--host", "127.0.0.1", "--port", &port.to_string()])
            .arg(&filtered)
            .arg(format!("http://127.0.0.1:{}", line.trim()))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let deadline = Instant::now() + Duration::from_secs(120);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < deadline, "Prism does not listen");
            std::thread::sleep(Duration::from_millis(100));
        }
        Some(Self { programs: [server, proxy], port, said, _dir: dir })
    }

    /// The next request that changed something.
    fn change(&mut self) -> Value {
        let mut line = String::new();
        self.said.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }
}

#[test]
fn report_becomes_one_comment() {
    let Some(mut api) = Api::start() else { return };
    let mut job = Job::new("pull_request", pull_request("acme/calc", "MEMBER"));
    job.api = format!("http://127.0.0.1:{}", api.port);
    job.run(&[]).expect(0);
    let first = job.comment("job-token").unwrap().expect(0);
    assert!(first.stdout.is_empty(), "{}", first.stdout);
    let posted = api.change();
    assert_eq!(posted["method"], "POST", "the comment of a person with the same marker is left alone");
    assert!(posted["body"].as_str().unwrap().contains("**COMPLETED**"), "{posted}");
    job.env.write("fail", "");
    job.run(&[]).expect(3);
    job.comment("job-token").unwrap().expect(0);
    let changed = api.change();
    assert_eq!((&changed["method"], &changed["id"]), (&"PATCH".into(), &posted["id"]));
    assert!(changed["body"].as_str().unwrap().contains("**ESCALATED**"), "{changed}");
    // Another token than that of the job is refused, and the report stays in the summary.
    job.comment("other").unwrap().expect(0).says("the comment was refused").says("Resource not accessible");
}

#[test]
fn action_is_valid() {
    let action: Value =
        serde_yaml::from_str(&fs::read_to_string(deployed("github-action/action.yml")).unwrap()).unwrap();
    let inputs: Vec<&String> = action["inputs"].as_object().unwrap().keys().collect();
    let steps = action["runs"]["steps"].as_array().unwrap();
    let mut passed_on = std::collections::BTreeSet::new();
    for (step, script) in steps.iter().zip(["run.sh", "comment.sh"]) {
        let text = fs::read_to_string(deployed("github-action").join(script)).unwrap();
        assert!(step["run"].as_str().unwrap().contains(script));
        assert!(!step["run"].as_str().unwrap().contains("${{"), "an expression in a script is executed");
        for (name, value) in step["env"].as_object().unwrap() {
            assert!(text.contains(name), "{name} is not read by {script}");
            if let Some(input) = value.as_str().unwrap().strip_prefix("${{ inputs.") {
                let input = input.trim_end_matches(" }}");
                assert!(inputs.iter().any(|known| *known == input), "{name}: {input}");
                passed_on.insert(input.to_owned());
            }
        }
    }
    assert_eq!(passed_on.len(), inputs.len(), "each input is passed on");
    assert!(!steps[0]["env"].to_string().contains("token"), "agents are processes of the first step");
    let program = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../target/node/node_modules/.bin/action-validator");
    if !program.exists() {
        return cliq_testkit::not_run("target/node has no action-validator (./test makes it)");
    }
    done(&Command::new(program).arg(deployed("github-action/action.yml")).output().unwrap()).expect(0);
}
