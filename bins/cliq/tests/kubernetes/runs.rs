//! Display of a run in a cluster: the same as of any other run.

use std::time::Duration;

use cliq_testkit::chain;
use cliq_testkit::env::{Env, done};
use cliq_testkit::steps::{begun, steps};
use cliq_testkit::wire::Wire;
use rustix::process::{Pid, Signal, kill_process};

use crate::kubernetes::cluster::{kubectl, mount, of_run, project, said};

#[test]
#[ignore = "needs a cluster: scripts/kubernetes"]
fn a_run_works_in_a_pod_with_limits() {
    let look = "hostname > where; id -u > user; cat /proc/self/status > status; touch /x 2> readonly; \
        touch /tmp/x ~/x; ls /var/run/secrets > token 2>&1; ls $CLIQ_HOME > home";
    let team = chain(&[look, "echo second >> where"]);
    let env = project(&team, &[("env.PASSPHRASE", "hush-hush")]);
    let run = env.cliq(["run"]).expect(0).says("p0: completed").says("COMPLETED");
    assert!(!run.stdout.contains('\u{1b}'), "no colour in a pipe");
    let id = env.run_id();
    let place = env.read("where");
    assert!(place.starts_with(&format!("cliq-{id}")) && place.ends_with("\nsecond\n"), "{place}");
    assert_eq!(env.read("user").trim(), rustix::process::getuid().as_raw().to_string());
    let status = env.read("status");
    for line in ["CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"] {
        assert!(status.contains(line), "{line}\n{status}");
    }
    assert!(env.read("readonly").contains("Read-only file system"));
    assert!(env.read("token").contains("No such file"), "no token of a service account");
    // Nothing secret is in what others can look at, and what was secret is gone.
    let shown = said(&["get", "jobs,pods", "-o", "yaml", "-l", &format!("cliq.dev/run={id}")]);
    assert!(shown.contains("readOnlyRootFilesystem: true") && !shown.contains("hush"), "{shown}");
    assert!(of_run("secrets", &id).is_empty());
    let job = &of_run("jobs", &id)[0];
    assert_eq!(job["spec"]["backoffLimit"], 0);
    assert_eq!(job["spec"]["ttlSecondsAfterFinished"], 3600);
    assert_eq!(env.phases()["p1"], ("completed".to_owned(), 1));
    env.cliq(["logs"]).expect(0).says("p1");
    env.cliq(["attach"]).expect(1);
    // The flag goes before the setting.
    env.cliq(["run", "-f", "--no-docker"]).expect(0);
    assert!(!env.read("where").starts_with("cliq-"));
}

#[test]
#[ignore = "needs a cluster: scripts/kubernetes"]
fn variables_come_along_and_events_are_those_of_the_run() {
    let team = chain(&["test \"$PASSPHRASE\" = hush", "exit 7"]);
    let env = project(&team, &[("env.PASSPHRASE", "hush")]);
    let run = env.cliq(["run", "--json"]).expect(3);
    let kinds: Vec<String> =
        run.events().iter().map(|event| event["event"].as_str().unwrap().to_owned()).collect();
    assert_eq!((kinds[0].as_str(), kinds[kinds.len() - 1].as_str()), ("run_started", "run_finished"));
    let first = env.run_id();
    // The same run goes on, in a Job of the same name.
    let again = env.cliq(["run", "--resume"]).expect(3).says("p1: escalated");
    assert!(!again.stdout.contains("p0: started"), "{}", again.stdout);
    assert_eq!(env.run_id(), first);
    assert_eq!(of_run("jobs", &first).len(), 1);
}

#[test]
#[ignore = "needs a cluster: scripts/kubernetes"]
fn a_run_is_cancelled_by_a_signal_and_by_cancel() {
    let env = project(&steps(), &[]);
    let run = begun(&env, &["run", "--headless"]);
    kill_process(Pid::from_raw(run.id().cast_signed()).unwrap(), Signal::INT).unwrap();
    done(&run.wait_with_output().unwrap()).expect(130).says("CANCELLED");

    std::fs::remove_file(env.path("second")).unwrap();
    let run = begun(&env, &["run", "--headless", "-f"]);
    env.cliq(["run", "-f"]).expect(4);
    env.cliq(["cancel"]).expect(0).says("it has stopped");
    done(&run.wait_with_output().unwrap()).expect(130);
    env.write("go", "");
    env.cliq(["run", "--resume"]).expect(0);
    assert!(env.read("ran").ends_with("1\n1\n2\n"), "{}", env.read("ran"));
}

#[test]
#[ignore = "needs a cluster: scripts/kubernetes"]
fn a_run_that_waits_for_a_node_is_cancelled() {
    let env = project(&steps(), &[("cpu_request", "900"), ("cpus", "900")]);
    for how in ["signal", "cancel"] {
        let mut run = env.spawn(["run", "--headless", "-f"]);
        let waits = || String::from_utf8(kubectl(&["get", "pods", "-o", "json"]).stdout).unwrap();
        let place = env.work().display().to_string();
        env.wait_for("the pod waits", || waits().contains(&place));
        env.cliq(["run", "-f"]).expect(4).says("is running");
        if how == "signal" {
            kill_process(Pid::from_raw(run.id().cast_signed()).unwrap(), Signal::TERM).unwrap();
        } else {
            env.cliq(["cancel"]).expect(0);
        }
        let ended = run.wait().unwrap();
        assert_eq!(ended.code(), Some(130), "{how}");
        assert!(!waits().contains(&place), "{how}: nothing is left");
    }
    assert!(!env.exists("ran"));
}

#[test]
#[ignore = "needs a cluster: scripts/kubernetes"]
fn a_run_outlives_what_started_it_and_is_followed_again() {
    let env = project(&steps(), &[]);
    let mut run = begun(&env, &["run", "--headless"]);
    run.kill().unwrap();
    run.wait().unwrap();
    env.cliq(["run", "-f"]).expect(4).says("works in the cluster");
    let followers = ["one", "other"].map(|name| {
        let said = std::fs::File::create(env.path(name)).unwrap();
        let mut command = env.command(["run", "--resume"]);
        let follower = command.stdout(std::process::Stdio::piped()).stderr(said).spawn().unwrap();
        env.wait_for("it follows", || env.read(name).contains("following it"));
        follower
    });
    std::thread::sleep(Duration::from_millis(500));
    env.write("go", "");
    for follower in followers {
        let ended = done(&follower.wait_with_output().unwrap()).expect(0).says("COMPLETED");
        assert_eq!(ended.stdout.matches("p2: started").count(), 1, "{}", ended.stdout);
    }
    assert_eq!(env.read("ran"), "0\n1\n2\n", "nothing ran twice");
    assert!(of_run("secrets", &env.run_id()).is_empty());
}

#[test]
#[ignore = "needs a cluster: scripts/kubernetes"]
fn the_api_server_goes_away_and_comes_back() {
    let env = project(&steps(), &[]);
    let config = said(&["config", "view", "--raw", "--minify", "--flatten"]);
    let port = config.lines().find_map(|line| line.trim().strip_prefix("server: https://127.0.0.1:"));
    let Some(port) = port.and_then(|port| port.parse::<u16>().ok()) else {
        cliq_testkit::not_run("the API server is not on this machine: it cannot be cut off");
        return;
    };
    let wire = Wire::to(port);
    let own = config.replace(&format!("127.0.0.1:{port}"), &format!("127.0.0.1:{}", wire.port));
    env.write("../kubeconfig", &own);
    let mut command = env.command(["run", "--headless"]);
    command.env("KUBECONFIG", env.path("../kubeconfig"));
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let run = command.spawn().unwrap();
    env.wait_for("the second phase", || env.exists("second"));
    wire.cut();
    std::thread::sleep(Duration::from_secs(2));
    env.write("go", "");
    env.wait_for("the third phase", || env.read("ran").ends_with("2\n"));
    wire.mend();
    let ended = done(&run.wait_with_output().unwrap()).expect(0).says("does not answer").says("COMPLETED");
    assert_eq!(ended.stdout.matches("p2: started").count(), 1, "{}", ended.stdout);
    assert_eq!(env.read("ran"), "0\n1\n2\n");
}

#[test]
#[ignore = "needs a cluster: scripts/kubernetes"]
fn teams_within() {
    let env = Env::bare();
    env.write("../inner/team.yml", &format!("name: \"@local/inner\"\n{}", chain(&["echo inner >> ran"])));
    let workflow = "workflow:
  phases:
    - {name: inner, type: team, team: ../inner}
    - {name: last, type: exec, depends_on: [inner], commands: [{name: c, run: 'echo last >> ran'}]}
";
    env.team(workflow, &[]);
    env.cliq(["init"]).expect(0);
    env.cliq(["assemble", "../team"]).expect(0);
    for (key, value) in crate::kubernetes::cluster::settings() {
        env.cliq(["settings", "set", "-g", &format!("kubernetes.{key}"), &value]).expect(0);
    }
    env.cliq(["settings", "set", "-g", "database.url", "postgresql://cliq@127.0.0.1:1/none"]).expect(0);
    env.cliq(["run", "--kubernetes", "--headless"]).expect(0);
    assert_eq!(env.read("ran"), "inner\nlast\n");
    assert!(env.work().starts_with(mount()));
}
