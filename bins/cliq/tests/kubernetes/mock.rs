//! Runs with a mock of the API server that others wrote (kmock): what is asked of a cluster, and what its answers mean.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use cliq_backends::internals::RIGHTS;
use cliq_testkit::chain;
use cliq_testkit::env::{CommandOutput, Env, done, python_with};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// The mock, and a project whose runs work in it.
struct Mock {
    env: Env,
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Drop for Mock {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Mock {
    fn start(workflow: &str, scenario: &Value) -> Option<Self> {
        let python = python_with("kmock")?;
        let env = Env::new(workflow, &[]);
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/kubernetes/mock.py");
        let mut process = Command::new(python)
            .args([script, &scenario.to_string()])
            .env("CLIQ_PROGRAM", env!("CARGO_BIN_EXE_cliq"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        let mut mock = Self { env, process, input, output: BufReader::new(output) };
        let port = mock.line();
        let config = format!(
            "apiVersion: v1\nkind: Config\nclusters: [{{name: m, cluster: {{server: \"http://127.0.0.1:{}\"}}}}]\n\
             users: [{{name: m, user: {{}}}}]\ncontexts: [{{name: m, context: {{cluster: m, user: m}}}}]\ncurrent-context: m\n",
            port.trim()
        );
        mock.env.write("../kubeconfig", &config);
        let mount = mock.env.work().parent().unwrap().display().to_string();
        for (key, value) in [
            ("kubernetes.enabled", "true"),
            ("kubernetes.mount_path", &mount),
            ("kubernetes.start_timeout", "8s"),
            ("kubernetes.env.PASSPHRASE", "hush-hush"),
            ("database.url", "postgresql://cliq@127.0.0.1:1/none"),
        ] {
            mock.env.cliq(["settings", "set", "-g", key, value]).expect(0);
        }
        Some(mock)
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line
    }

    fn ask(&mut self, what: &str) -> Value {
        writeln!(self.input, "{what}").unwrap();
        serde_json::from_str(&self.line()).unwrap()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.env.command(arguments);
        command.env("KUBECONFIG", self.env.path("../kubeconfig"));
        command
    }

    fn cliq(&self, arguments: &[&str]) -> CommandOutput {
        done(&self.command(arguments).output().unwrap())
    }
}

#[test]
fn a_run_asks_for_what_it_may_and_leaves_no_secret() {
    let team = chain(&["test \"$PASSPHRASE\" = hush-hush", "exit 7"]);
    let Some(mut mock) = Mock::start(&team, &json!({})) else { return };
    let run = mock.cliq(&["run", "--json"]).expect(3);
    let kinds: Vec<String> =
        run.events().iter().map(|event| event["event"].as_str().unwrap().to_owned()).collect();
    assert_eq!((kinds[0].as_str(), kinds[kinds.len() - 1].as_str()), ("run_started", "run_finished"));
    assert!(!run.stderr.contains("hush"));
    let jobs = mock.ask("objects jobs");
    assert!(!jobs.to_string().contains("hush"), "{jobs}");
    assert_eq!(mock.ask("objects secrets"), json!([]));
    for asked in mock.ask("requests").as_array().unwrap() {
        let (verb, resource) = asked.as_str().unwrap().split_once(' ').unwrap();
        let right = RIGHTS.iter().find(|right| right.resource == resource);
        assert!(right.is_some_and(|right| right.verbs.contains(&verb)), "{asked} is not a right");
    }
}

#[test]
fn a_watch_that_is_too_old_begins_anew() {
    let Some(mut mock) = Mock::start(&chain(&["sleep 1; touch done"]), &json!({"expire": true})) else {
        return;
    };
    mock.cliq(&["run"]).expect(0).says("COMPLETED");
    let asked = mock.ask("requests");
    let watched = asked.as_array().unwrap().iter().filter(|asked| *asked == "watch pods").count();
    // The first is to see whether it may.
    assert!(watched > 2, "{asked}");
}

/// A follower without the right to watch leaves the run of another process alone.
#[test]
fn a_run_of_another_is_not_removed() {
    let status = json!({"phase": "Pending", "conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}]});
    let Some(mut mock) = Mock::start(&chain(&["touch begun"]), &json!({"status": status})) else { return };
    mock.env.cliq(["settings", "set", "-g", "kubernetes.start_timeout", "10m"]).expect(0);
    let again = ["run", "--headless", "--run-id", "0199aaaa-bbbb-7ccc-8ddd-eeeeffff0000"];
    let said = std::fs::File::create(mock.env.path("said")).unwrap();
    let mut run = mock.command(&again).stderr(said).stdout(Stdio::null()).spawn().unwrap();
    mock.env.wait_for("it is followed", || mock.env.read("said").contains("waits for a node: Unschedulable"));
    // The first watch only asks for the right. The second is the follower's, and stays open.
    while mock.ask("requests").as_array().unwrap().iter().filter(|asked| *asked == "watch pods").count() < 2 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    mock.ask("forbid watch pods");
    mock.cliq(&again).expect(1).says("following it").says("the cluster forbids to watch the run");
    assert_eq!(mock.ask("objects jobs").as_array().unwrap().len(), 1);
    kill_process(Pid::from_raw(run.id().cast_signed()).unwrap(), Signal::INT).unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(130));
    assert_eq!(mock.ask("objects jobs"), json!([]));
}

#[test]
fn cluster_conditions_are_reported() {
    let waiting = |reason: &str| {
        json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True"}], "containerStatuses": [
            {"name": "run", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": {"waiting": {"reason": reason, "message": "because"}}},
        ]})
    };
    let ended = |reason: &str, code: i32| {
        json!({"phase": "Failed", "containerStatuses": [
            {"name": "run", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": {"terminated": {"reason": reason, "exitCode": code, "message": "error: it broke\n"}}},
        ]})
    };
    let cases = [
        (json!({"status": waiting("ImagePullBackOff")}), "waited for its image: ImagePullBackOff: because"),
        (json!({"status": waiting("InvalidImageName")}), "waited for its image: InvalidImageName"),
        (
            json!({"status": waiting("CreateContainerConfigError")}),
            "waited for its container: CreateContainerConfigError",
        ),
        (
            json!({"status": {"phase": "Pending", "conditions": [
                {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}]}}),
            "waited for a node: Unschedulable: 0/3 nodes",
        ),
        (
            json!({"status": {"phase": "Failed", "reason": "Evicted", "message": "low on memory"}}),
            "evicted from its node: low on memory",
        ),
        (
            json!({"status": {"phase": "Failed", "conditions": [
                {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager", "message": "silent"}]}}),
            "took the run's node from it: DeletionByTaintManager: silent",
        ),
        (json!({"status": ended("OOMKilled", 137)}), "out of memory, limit 4 GiB (`kubernetes.memory`)"),
        (json!({"status": ended("Error", 143)}), "ended by signal 15"),
        (json!({"status": ended("StartError", 128)}), "waited for its container: error: it broke"),
        (json!({"status": ended("Error", 1)}), "error: it broke"),
        (json!({"no_pod": true}), "waited for its pod"),
        (json!({"no_claim": true}), "there is no PersistentVolumeClaim `cliq-data`"),
        (json!({"forbid": ["create jobs"]}), "the cluster forbids to make a Job"),
        (json!({"forbid": ["create secrets"]}), "the cluster forbids to make a Secret"),
        (json!({"forbid": ["list pods"]}), "the cluster forbids to watch the run"),
        (json!({"forbid": ["watch pods"]}), "the cluster forbids to watch the run"),
        (json!({"forbid": ["watch jobs"]}), "the cluster forbids to watch the run"),
    ];
    // Side by side: some wait until the run has waited for long enough.
    std::thread::scope(|scope| {
        for (scenario, says) in &cases {
            scope.spawn(move || tells(scenario, says));
        }
    });
}

/// A run in such a cluster ends with an error that says this, without having begun.
#[track_caller]
fn tells(scenario: &Value, says: &str) {
    let Some(mut mock) = Mock::start(&chain(&["touch begun"]), scenario) else { return };
    let run = mock.cliq(&["run", "--headless"]).expect(1).says(says);
    assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
    assert!(!mock.env.exists("begun"), "{scenario}");
    let is_over = says.contains("it broke");
    if says.contains("waited for") && !is_over || says.contains("make a Secret") || says.contains("watch") {
        assert_eq!(mock.ask("objects jobs"), json!([]), "{scenario}: one that did not begin is removed");
    }
}

#[test]
fn nobody_answers() {
    let Some(mut mock) = Mock::start(&chain(&["touch begun"]), &json!({})) else { return };
    mock.process.kill().unwrap();
    mock.process.wait().unwrap();
    mock.cliq(&["run"]).expect(1).says("does not answer: ").says("hint: ");
    mock.cliq(&["doctor"]).expect(1).says("does not answer: ");
    mock.cliq(&["run", "--no-docker"]).expect(0);
}

#[test]
fn manifests_are_valid() {
    let Some(python) = python_with("kubernetes_validate") else { return };
    let snapshot = |name: &str| {
        let path = format!(
            "{}/../../crates/cliq-backends/src/kubernetes/snapshots/cliq_backends__kubernetes__manifest__tests__{name}.snap",
            env!("CARGO_MANIFEST_DIR")
        );
        let text = std::fs::read_to_string(path).unwrap();
        text.splitn(3, "---\n").nth(2).unwrap().to_owned()
    };
    let dir = tempfile::tempdir().unwrap();
    for (name, versions) in
        [("a_job_has_limits_and_no_secret", ["1.30", "1.37"]), ("a_secret_is_the_jobs", ["1.26", "1.37"])]
    {
        let file = dir.path().join(format!("{name}.yaml"));
        std::fs::write(&file, snapshot(name)).unwrap();
        for version in versions {
            let checked = Command::new(&python)
                .args(["-m", "kubernetes_validate", "--strict", "-k", version])
                .arg(&file)
                .output()
                .unwrap();
            assert!(
                checked.status.success(),
                "{name} {version}: {}{}",
                String::from_utf8_lossy(&checked.stdout),
                String::from_utf8_lossy(&checked.stderr)
            );
        }
    }
}
