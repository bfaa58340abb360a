//! Display of a run in a container: the same as of any other run.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::time::Duration;

use cliq_testkit::chain;
use cliq_testkit::env::{Env, done};
use cliq_testkit::steps::{begun, steps};

use crate::containers::engine::{containers, inspect, project, said};
use crate::telemetry::collector::Collector;

#[test]
fn a_run_works_in_a_container_and_leaves_none() {
    let Some(env) = project(&chain(&["hostname > where", "echo second >> where"]), &[]) else { return };
    let done = env.cliq(["run"]).expect(0).says("p0: completed").says("COMPLETED");
    assert!(!done.stdout.contains('\u{1b}'), "no colour in a pipe");
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let place = env.read("where");
    assert!(place.ends_with("\nsecond\n") && !place.starts_with(host.trim()), "{place}");
    assert_eq!(containers(&env.home()), [""; 0]);
    // Journal, logs, status are where they always are.
    assert_eq!(env.phases()["p1"], ("completed".to_owned(), 1));
    env.cliq(["logs"]).expect(0).says("p1");
    // The flag goes before the setting.
    env.cliq(["run", "-f", "--no-docker"]).expect(0);
    assert!(env.read("where").starts_with(host.trim()));
}

#[test]
fn what_a_container_could_not_export_is_sent_from_here() {
    // Nothing in the container reaches the receiver: its own 127.0.0.1 is another one.
    let Some(collector) = Collector::start("200", "0") else { return };
    let Some(env) = project(&chain(&["true"]), &[]) else { return };
    let mut run = env.command(["run", "--headless"]);
    run.env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.endpoint);
    done(&run.output().expect("it starts")).expect(0);
    let spans = collector.spans();
    let names: BTreeSet<&str> = spans.iter().filter_map(|span| span["name"].as_str()).collect();
    assert_eq!(names.len(), 3, "the run, its phase and its command: {names:?}");
    assert_eq!(spans.len(), 3, "each once");
    assert_eq!(spans[0]["attributes"]["cliq.run.id"], env.run_id());
}

#[test]
fn events_and_exit_codes_are_those_of_the_run() {
    let Some(env) = project(&chain(&["true", "exit 7"]), &[]) else { return };
    let done = env.cliq(["run", "--json"]).expect(3);
    let kinds: Vec<String> =
        done.events().iter().map(|event| event["event"].as_str().unwrap().to_owned()).collect();
    assert_eq!((kinds[0].as_str(), kinds[kinds.len() - 1].as_str()), ("run_started", "run_finished"));
    env.cliq(["run", "--resume"]).expect(3).says("p1: escalated");
}

#[test]
fn a_run_is_cancelled_by_a_signal_and_by_cancel() {
    let Some(env) = project(&steps(), &[]) else { return };
    let run = begun(&env, &["run", "--headless"]);
    let pid = rustix::process::Pid::from_raw(run.id().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let ended = done(&run.wait_with_output().unwrap()).expect(130).says("CANCELLED");
    assert!(ended.stdout.contains("cancelled by a signal"), "{}", ended.stdout);
    assert_eq!(containers(&env.home()), [""; 0]);

    std::fs::remove_file(env.path("second")).unwrap();
    let run = begun(&env, &["run", "--headless", "-f"]);
    env.cliq(["attach"]).expect(1).says("works in a container");
    env.cliq(["run", "-f"]).expect(4).says("is running");
    env.cliq(["cancel"]).expect(0).says("it has stopped");
    done(&run.wait_with_output().unwrap()).expect(130);
    assert_eq!(containers(&env.home()), [""; 0]);
    env.write("go", "");
    env.cliq(["run", "--resume"]).expect(0);
    assert!(env.read("ran").ends_with("1\n1\n2\n"), "{}", env.read("ran"));
}

#[test]
fn a_run_outlives_what_started_it_and_is_followed_again() {
    let Some(env) = project(&steps(), &[]) else { return };
    let mut run = begun(&env, &["run", "--headless"]);
    run.kill().unwrap();
    run.wait().unwrap();
    assert_eq!(containers(&env.home()).len(), 1, "the container goes on");
    let said = std::fs::File::create(env.path("said")).unwrap();
    let mut command = env.command(["run", "--resume"]);
    let follower = command.stdout(Stdio::piped()).stderr(said).spawn().unwrap();
    env.wait_for("it follows", || env.read("said").contains("following it"));
    std::thread::sleep(Duration::from_millis(500));
    env.write("go", "");
    let done = done(&follower.wait_with_output().unwrap()).expect(0).says("COMPLETED");
    assert_eq!(done.stdout.matches("p2: started").count(), 1, "{}", done.stdout);
    assert_eq!(env.read("ran"), "0\n1\n2\n", "nothing ran twice");
    assert_eq!(env.phases()["p1"], ("completed".to_owned(), 1));
    assert_eq!(containers(&env.home()), [""; 0]);
}

#[test]
fn next_follower_cleans_up_after_a_killed_one() {
    let Some(env) = project(&steps(), &[]) else { return };
    let mut run = begun(&env, &["run", "--headless"]);
    run.kill().unwrap();
    run.wait().unwrap();
    env.write("go", "");
    env.wait_for("the end", || env.exists(".cliq/signals/_pipeline_status"));
    let left = containers(&env.home());
    assert_eq!(left.len(), 1);
    env.wait_for("the container ends", || inspect(&left[0])["State"]["Running"] == false);
    // One that was made and never begun, by a cliq that died in between.
    let label = format!("dev.cliq.home={}", env.home().display());
    said(&["create", "--label", &label, "--label", "dev.cliq.run=x", "cliq-runner:test", "--version"]);
    env.cliq(["run", "-f"]).expect(0);
    assert_eq!(containers(&env.home()), [""; 0]);
}

#[test]
fn a_run_in_the_background() {
    let Some(env) = project(&chain(&["echo done > made"]), &[]) else { return };
    if !cliq_testkit::env::has_program("tmux") {
        return;
    }
    env.cliq(["run", "--detach"]).expect(0);
    env.wait_for("the end", || env.exists(".cliq/signals/_pipeline_status"));
    assert_eq!(env.read(".cliq/signals/_pipeline_status").trim(), "COMPLETED");
    env.wait_for("the container goes", || containers(&env.home()).is_empty());
}

#[test]
fn teams_within_and_people_who_review() {
    let workflow = "workflow:
  phases:
    - {name: inner, type: team, team: ../inner}
    - {name: ask, type: hug, depends_on: [inner], review: {reviewer: ada, timeout: 5m}}
    - {name: last, type: exec, depends_on: [ask], commands: [{name: c, run: 'echo last >> ran'}]}
";
    let Some(image) = crate::containers::engine::image() else { return };
    let env = Env::bare();
    env.write("../inner/team.yml", &format!("name: \"@local/inner\"\n{}", chain(&["echo inner >> ran"])));
    env.team(workflow, &[]);
    env.cliq(["init"]).expect(0);
    env.cliq(["assemble", "../team"]).expect(0);
    env.cliq(["settings", "set", "-g", "docker.image", image]).expect(0);
    let run = env.spawn(["run", "--docker", "--headless"]);
    let waiting = || env.cliq(["review", "list", "--json"]);
    env.wait_for("the review", || waiting().stdout.contains("ask"));
    let id = waiting().json()["reviews"][0]["id"].as_str().unwrap().to_owned();
    // Its page is served on this machine.
    env.wait_for("a link", || env.cliq(["review", "show", &id]).stdout.contains("http://127.0.0.1:"));
    env.cliq(["review", "approve", &id]).expect(0);
    done(&run.wait_with_output().unwrap()).expect(0);
    assert_eq!(env.read("ran"), "inner\nlast\n");
}

#[test]
fn containers_are_bounded_and_who_comes_first_begins_first() {
    let until_go = ["touch begun; while ! test -e go; do sleep 0.1; done"];
    let Some(env) = project(&chain(&until_go), &[("max_containers", "1")]) else { return };
    let mut runs = Vec::new();
    for n in 0..3 {
        let (dir, said) = (env.path(&format!("sub{n}")), format!("sub{n}.stderr"));
        std::fs::create_dir_all(&dir).unwrap();
        let at = |args: &[&str]| {
            let mut command = env.command(args);
            command.current_dir(&dir).stdout(Stdio::piped()).stderr(Stdio::piped());
            command
        };
        assert!(at(&["init"]).output().unwrap().status.success());
        assert!(at(&["assemble", "../../team"]).output().unwrap().status.success());
        let stderr = std::fs::File::create(env.path(&said)).unwrap();
        runs.push(at(&["run", "--headless"]).stderr(stderr).spawn().unwrap());
        env.wait_for("it works, or waits for the one before", || {
            if n == 0 { env.exists("sub0/begun") } else { env.read(&said).contains("waiting for a place") }
        });
    }
    assert!(!env.read("sub0.stderr").contains("waiting for a place"));
    (0..3).for_each(|n| env.write(&format!("sub{n}/go"), ""));
    let mut times = Vec::new();
    for (n, run) in runs.into_iter().enumerate() {
        done(&run.wait_with_output().unwrap()).expect(0);
        let journal = env.read(&format!("sub{n}/.cliq/journal.jsonl"));
        let ts = |line: Option<&str>| {
            let event: serde_json::Value = serde_json::from_str(line.unwrap()).unwrap();
            event["ts"].as_str().unwrap().to_owned()
        };
        times.push((ts(journal.lines().next()), ts(journal.lines().last())));
    }
    assert!(times.windows(2).all(|pair| pair[0].1 <= pair[1].0), "one after the other, in order: {times:?}");
}

#[test]
fn a_run_that_waits_for_its_place_is_cancelled() {
    let Some(env) = project(&steps(), &[("max_containers", "1")]) else { return };
    let first = begun(&env, &["run", "--headless"]);
    let dir = env.path("other");
    std::fs::create_dir_all(&dir).unwrap();
    let at = |args: &[&str]| {
        let mut command = env.command(args);
        command.current_dir(&dir).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    assert!(at(&["init"]).output().unwrap().status.success());
    assert!(at(&["assemble", "../../team"]).output().unwrap().status.success());
    let waiting = at(&["run", "--headless"]).spawn().unwrap();
    env.wait_for("it waits", || env.exists("other/.cliq/follower") && env.has_text("other/.cliq/follower"));
    // No other is started beside it.
    done(&at(&["run", "--headless"]).output().unwrap()).expect(4).says("is running");
    done(&at(&["cancel"]).output().unwrap()).expect(0).says("it has stopped");
    let ended = done(&waiting.wait_with_output().unwrap()).expect(130);
    ended.says("cancelled before the run began");
    assert!(!env.exists("other/ran"));
    env.write("go", "");
    done(&first.wait_with_output().unwrap()).expect(0);
}
