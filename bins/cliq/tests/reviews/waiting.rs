//! A project whose run waits for a review.

use std::cell::RefCell;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use cliq_testkit::machine::{Answer, Machine, wait_for};
use serde_json::{Value, json};

/// Returns a team with a review block and phases around it.
pub(crate) fn team(block: &str) -> String {
    format!(
        "workflow:
  phases:
    - name: writer
      type: exec
      commands:
        - name: write
          run: |
            echo \"round $(ls .cliq/channels/approval--writer 2>/dev/null | grep -c handoff.json)\" >> notes.md
    - name: approval
      type: hug
      depends_on: [writer]
      commands: [{{name: exists, run: test -f notes.md}}]
      review:
{block}
    - name: after
      type: exec
      depends_on: [approval]
      commands: [{{name: done, run: 'echo passed >> after.txt'}}]
"
    )
}

/// A machine with a project.
pub(crate) struct Waiting {
    pub(crate) machine: Machine,
    pub(crate) project: PathBuf,
    run: RefCell<Option<Child>>,
}

impl Waiting {
    /// A project with a team. `block` are the lines of the review block.
    pub(crate) fn new(block: &str) -> Self {
        Self::with(Machine::new(), &team(&indented(block)))
    }

    pub(crate) fn with(machine: Machine, workflow: &str) -> Self {
        machine.team("review", workflow);
        let project = machine.project("project");
        let this = Self { machine, project, run: RefCell::new(None) };
        this.ok(&["assemble", "@local/review"]);
        this.ok(&["req", "-m", "Write notes."]);
        this
    }

    fn in_project<'a>(&'a self, arguments: &[&'a str]) -> Vec<&'a str> {
        [&["-C", self.project.to_str().unwrap()], arguments].concat()
    }

    #[track_caller]
    pub(crate) fn ok(&self, arguments: &[&str]) -> String {
        self.machine.ok(&self.in_project(arguments))
    }

    pub(crate) fn cliq(&self, arguments: &[&str]) -> Output {
        self.machine.cliq(&self.in_project(arguments))
    }

    /// As [`Self::cliq`], for a command that fails with this exit status: gives its standard error.
    #[track_caller]
    pub(crate) fn fails(&self, code: i32, arguments: &[&str]) -> String {
        let output = self.cliq(arguments);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {error}");
        error
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.project.join(name)).unwrap_or_default()
    }

    pub(crate) fn json(&self, name: &str) -> Value {
        serde_json::from_str(&self.read(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Starts a run in the background. Its output goes to the file `out` beside the project.
    pub(crate) fn start(&self, arguments: &[&str]) {
        self.start_with(arguments, None);
    }

    /// As [`Self::start`], as if the person had come by SSH.
    pub(crate) fn start_with(&self, arguments: &[&str], ssh: Option<&str>) {
        let out = fs::File::options().create(true).append(true).open(self.machine.path("out")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_cliq"));
        command
            .args(self.in_project(&["run"]))
            .args(arguments)
            .env("CLIQ_HOME", &self.machine.home)
            .env_remove("SSH_CONNECTION")
            .stdin(Stdio::null())
            .stdout(out.try_clone().unwrap())
            .stderr(out);
        if let Some(ssh) = ssh {
            command.env("SSH_CONNECTION", ssh);
        }
        *self.run.borrow_mut() = Some(command.spawn().unwrap());
    }

    pub(crate) fn output(&self) -> String {
        fs::read_to_string(self.machine.path("out")).unwrap_or_default()
    }

    /// Kills the orchestrator without a warning.
    pub(crate) fn kill(&self) {
        let mut run = self.run.borrow_mut().take().unwrap();
        run.kill().unwrap();
        run.wait().unwrap();
    }

    pub(crate) fn pid(&self) -> u32 {
        self.run.borrow().as_ref().unwrap().id()
    }

    /// Whether the run that was started last goes on.
    pub(crate) fn is_running(&self) -> bool {
        let mut run = self.run.borrow_mut();
        run.as_mut().is_some_and(|run| run.try_wait().unwrap().is_none())
    }

    /// Waits for the end of the run. Gives its exit status.
    pub(crate) fn end(&self) -> i32 {
        let mut run = self.run.borrow_mut().take().unwrap();
        let status = wait_for("the run ends", || run.try_wait().unwrap());
        status.code().unwrap_or(-1)
    }

    /// All reviews of the project, newest first.
    pub(crate) fn reviews(&self) -> Vec<Value> {
        let list: Value = serde_json::from_str(&self.ok(&["review", "list", "--all", "--json"])).unwrap();
        list["reviews"].as_array().unwrap().clone()
    }

    /// Waits until a review waits that has a page, and is not `not`.
    #[track_caller]
    pub(crate) fn review_after(&self, not: Option<&str>) -> Value {
        wait_for("a review waits", || {
            let waiting = self.reviews().into_iter().find(|review| {
                review["state"] == "pending"
                    && review["id"].as_str() != not
                    && review["links"].as_object().is_some_and(|l| !l.is_empty())
            });
            if waiting.is_none() {
                assert!(self.is_running(), "the run has ended: {}", self.output());
                std::thread::sleep(std::time::Duration::from_millis(50));
            }
            waiting
        })
    }

    #[track_caller]
    pub(crate) fn review(&self) -> Value {
        self.review_after(None)
    }

    /// The link of a reviewer.
    pub(crate) fn link(&self, reviewer: &str) -> String {
        let review = self.review();
        review["links"][reviewer].as_str().unwrap_or_else(|| panic!("{review}")).to_owned()
    }

    pub(crate) fn status(&self) -> Value {
        serde_json::from_str(&self.ok(&["status", "--json"])).unwrap()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(mut run) = self.run.borrow_mut().take() {
            // The run ends its agents, which a kill would leave.
            let _ = Command::new("kill").arg(run.id().to_string()).status();
            let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
            while std::time::Instant::now() < deadline && run.try_wait().is_ok_and(|ended| ended.is_none()) {
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            let _ = run.kill();
            let _ = run.wait();
        }
    }
}

fn indented(block: &str) -> String {
    block.lines().map(|line| format!("        {line}\n")).collect()
}

/// A request to a whole address.
pub(crate) fn send(method: &str, url: &str, headers: &[(&str, &str)], body: Option<&str>) -> Answer {
    let mut request = ureq::http::Request::builder().method(method).uri(url);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    // A slow machine answers `Expect` late: a body that is sent without the answer races with the refusal.
    let config = ureq::Agent::config_builder().timeout_await_100(Some(std::time::Duration::from_secs(60)));
    let agent: ureq::Agent = config.http_status_as_error(false).max_redirects(0).build().into();
    let sent = match body {
        Some(body) => agent.run(request.body(body.to_owned()).unwrap()),
        None => agent.run(request.body(()).unwrap()),
    };
    let mut response = sent.unwrap_or_else(|error| panic!("{method}: {error}"));
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let body = response.body_mut().with_config().limit(64 << 20).read_to_string().unwrap_or_default();
    Answer { status, headers, body }
}

/// Sends the form of a review's page.
pub(crate) fn submit(link: &str, fields: &[(&str, &str)]) -> Answer {
    let encode = |text: &str| -> String { text.bytes().map(|b| format!("%{b:02X}")).collect() };
    let body: Vec<String> =
        fields.iter().map(|(name, value)| format!("{}={}", encode(name), encode(value))).collect();
    send("POST", link, &[("content-type", "application/x-www-form-urlencoded")], Some(&body.join("&")))
}

/// The decision that programs send.
pub(crate) fn decision(verdict: &str) -> Value {
    json!({"verdict": verdict})
}
