//! Failures of containers, and their messages.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use cliq_testkit::chain;

use crate::containers::engine::{containers, docker, inspect, project, said};

#[test]
fn want_of_memory_is_told() {
    let Some(env) =
        project(&chain(&["head -c 300000000 /dev/zero | tail > /dev/null"]), &[("memory", "64m")])
    else {
        return;
    };
    env.cliq(["run"]).expect(3).says("out of memory").says("64 MiB").says("docker.memory");
}

#[test]
fn a_container_that_is_killed_or_removed_can_be_resumed() {
    let commands = ["echo 0 >> ran", "touch second; test -e go || sleep 60.5"];
    let Some(env) = project(&chain(&commands), &[]) else { return };
    for (args, expected) in [(&["kill"][..], "ended by signal 9"), (&["rm", "-f"], "ended by signal 9")] {
        let run = env.spawn(["run", "--headless", "-f"]);
        env.wait_for("the second phase", || env.exists("second"));
        let container = containers(&env.home()).remove(0);
        said(&[args, &[container.as_str()][..]].concat());
        let done = cliq_testkit::env::done(&run.wait_with_output().unwrap()).expect(1);
        assert!(done.stderr.contains(expected) || done.stderr.contains("was removed"), "{}", done.stderr);
        done.says("cliq run --resume");
        std::fs::remove_file(env.path("second")).unwrap();
    }
    env.write("go", "");
    env.cliq(["run", "--resume"]).expect(0);
    assert_eq!(env.read("ran"), "0\n0\n", "what was complete is not run again");
}

#[test]
fn images_networks_and_engines_that_are_not_there() {
    let Some(env) = project(&chain(&["true"]), &[]) else { return };
    let set = |key: &str, value: &str| {
        drop(env.cliq(["settings", "set", "-g", &format!("docker.{key}"), value]).expect(0))
    };
    set("image", "localhost:1/no/such:image");
    env.cliq(["run"])
        .expect(1)
        .says("there is no image `localhost:1/no/such:image`")
        .says("deploy/Dockerfile");
    // An image without cliq.
    set("image", "cliq-base:local");
    env.cliq(["run", "-f"]).expect(1).says("cliq").says("not found");
    set("image", "cliq-runner:test");
    set("network_mode", "no-such-network");
    env.cliq(["run", "-f"]).expect(1).says("no-such-network");
    assert_eq!(containers(&env.home()), [""; 0], "nothing is left");
    for (host, expected) in [
        ("unix:///no/such.sock", "there is no socket /no/such.sock"),
        ("tcp://127.0.0.1:1", "refused"),
        ("nonsense", "nonsense"),
    ] {
        set("host", host);
        env.cliq(["run", "-f"])
            .expect(1)
            .says("no container engine answers")
            .says(expected)
            .says("--no-docker");
    }
    env.cliq(["run", "-f", "--no-docker"]).expect(0);
    // Words of the command line.
    env.cliq(["run", "--docker", "--no-docker"]).expect(2);
    env.cliq(["settings", "set", "docker.memory", "much"]).expect(2).says("4g");
}

/// An engine of the test's own, which may be ended.
struct OwnEngine {
    dir: tempfile::TempDir,
    daemon: Option<Child>,
}

impl OwnEngine {
    fn new() -> Self {
        let mut this = Self { dir: tempfile::tempdir().unwrap(), daemon: None };
        this.start();
        this
    }

    fn host(&self) -> String {
        format!("unix://{}/docker.sock", self.dir.path().display())
    }

    fn start(&mut self) {
        let dir = self.dir.path();
        let log = std::fs::File::options().create(true).append(true).open(dir.join("log")).unwrap();
        let path = |name: &str| dir.join(name).display().to_string();
        // In a network of its own: one without a bridge removes that of the other engine.
        let daemon = Command::new("unshare")
            .args(["--net", "dockerd"])
            .args(["--data-root", &path("data"), "--exec-root", &path("exec"), "--pidfile", &path("pid")])
            .args(["-H", &self.host(), "--bridge", "none", "--iptables=false"])
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        self.daemon = Some(daemon);
        cliq_testkit::machine::wait_for("the engine", || {
            docker(&["-H", &self.host(), "version"]).status.success().then_some(())
        });
    }

    fn stop(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            let pid = rustix::process::Pid::from_raw(daemon.id().cast_signed()).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
            daemon.wait().unwrap();
        }
    }
}

impl Drop for OwnEngine {
    fn drop(&mut self) {
        self.stop();
    }
}

#[test]
fn an_engine_that_restarts_under_a_run() {
    let commands = ["echo 0 >> ran", "touch second; test -e go || sleep 60.5", "echo 2 >> ran"];
    let Some(env) = project(&chain(&commands), &[]) else { return };
    if !rustix::process::getuid().is_root() || !Path::new("/usr/sbin/dockerd").exists() {
        return cliq_testkit::not_run("an engine of its own needs root and dockerd");
    }
    let mut engine = OwnEngine::new();
    let image = env.path("../image.tar");
    said(&["save", "-o", image.to_str().unwrap(), "cliq-runner:test"]);
    said(&["-H", &engine.host(), "load", "-qi", image.to_str().unwrap()]);
    for (key, value) in [("host", engine.host()), ("network_mode", "none".to_owned())] {
        env.cliq(["settings", "set", "-g", &format!("docker.{key}"), &value]).expect(0);
    }
    let run = env.spawn(["run", "--headless"]);
    env.wait_for("the second phase", || env.exists("second"));
    engine.stop();
    engine.start();
    // It ends containers as it stops: those get SIGTERM first, which cancels the run.
    let done = cliq_testkit::env::done(&run.wait_with_output().unwrap());
    assert!([1, 130].contains(&done.code), "{done:?}");
    assert!(done.stderr.contains("waiting for it") || done.code == 130, "{}", done.stderr);
    env.write("go", "");
    env.cliq(["run", "--resume"]).expect(0);
    assert_eq!(env.read("ran"), "0\n2\n");
    let left = said(&["-H", &engine.host(), "ps", "-aq"]);
    assert_eq!(left, "");
}

#[test]
fn inspect_shows_the_run() {
    let Some(env) = project(&chain(&["touch second; while ! test -e go; do sleep 0.1; done"]), &[]) else {
        return;
    };
    let run = env.spawn(["run", "--headless"]);
    env.wait_for("the phase", || env.exists("second"));
    let shown = inspect(&containers(&env.home()).remove(0));
    assert_eq!(shown["Name"], format!("/cliq-{}", env.run_id()));
    assert_eq!(shown["Config"]["Labels"]["dev.cliq.run"], env.run_id());
    assert_eq!(shown["Config"]["Labels"]["dev.cliq.workspace"], env.work().to_str().unwrap());
    env.write("go", "");
    cliq_testkit::env::done(&run.wait_with_output().unwrap()).expect(0);
}
