//! Push phases.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cliq_testkit::env::Env;

use crate::outside::site::{ReceivedRequest, Reply, Site, reply};

type Files = Arc<Mutex<BTreeMap<String, Vec<u8>>>>;

/// A place that takes files.
fn store() -> (Site, Files) {
    let files = Files::default();
    let own = Arc::clone(&files);
    let site = Site::start(move |asked: &ReceivedRequest| -> Reply {
        let mut files = own.lock().unwrap();
        match (asked.method.as_str(), files.get(&asked.path)) {
            ("PUT", _) => {
                files.insert(asked.path.clone(), asked.body.clone());
                reply(201, "text/plain", "")
            }
            (_, Some(bytes)) => reply(200, "application/octet-stream", bytes.clone()),
            _ => reply(404, "text/plain", ""),
        }
    });
    (site, files)
}

fn team(targets: &str) -> String {
    format!("workflow:\n  phases:\n    - name: publish\n      type: push\n      targets:\n{targets}")
}

fn target(file: &str, to: &str, more: &str) -> String {
    format!("        - {{file: {file}, to: \"{to}\"{more}}}\n")
}

#[test]
fn modes() {
    let (site, files) = store();
    let to = |path: &str| format!("{}{path}", site.base);
    let targets = [
        target("report.md", &to("/new.md"), ""),
        target("report.md", &to("/there.md"), ", mode: replace"),
        target("report.md", &to("/log.md"), ", mode: append"),
        target("report.md", &to("/dir/"), ", mode: create, name: \"report-$(date).md\""),
    ];
    files
        .lock()
        .unwrap()
        .extend([("/there.md".to_owned(), b"old".to_vec()), ("/log.md".to_owned(), b"first\n".to_vec())]);
    let env = Env::new(&team(&targets.concat()), &[]);
    env.write("report.md", "new\n");
    env.cliq(["run", "--headless"]).expect(0);
    let files = files.lock().unwrap().clone();
    let text = |path: &str| String::from_utf8(files[path].clone()).unwrap();
    assert_eq!(
        (text("/new.md"), text("/there.md"), text("/log.md")),
        ("new\n".into(), "new\n".into(), "first\nnew\n".into())
    );
    let dated = files.keys().find(|path| path.starts_with("/dir/report-20")).unwrap();
    assert!(dated.ends_with(".md"));
}

#[test]
fn unchanged_file_is_not_published_again() {
    let (site, _) = store();
    let env = Env::new(&team(&target("report.md", &format!("{}/a.md", site.base), ", mode: replace")), &[]);
    env.write("report.md", "one");
    env.cliq(["run", "--headless"]).expect(0);
    env.cliq(["run", "--headless", "-f"]).expect(0).says("published before");
    assert_eq!(site.count("PUT"), 1);
    env.write("report.md", "two");
    env.cliq(["run", "--headless", "-f"]).expect(0);
    assert_eq!(site.count("PUT"), 2);
    let records = env.read(".cliq/push/publish.jsonl");
    let last: serde_json::Value = serde_json::from_str(records.lines().last().unwrap()).unwrap();
    assert_eq!(
        (last["state"].as_str(), last["to"].as_str()),
        (Some("done"), Some(format!("{}/a.md", site.base).as_str()))
    );
    assert_eq!(last["sha256"].as_str().unwrap().len(), 64);
}

#[test]
fn create_does_not_overwrite() {
    let (site, files) = store();
    files.lock().unwrap().insert("/a.md".to_owned(), b"theirs".to_vec());
    let env = Env::new(&team(&target("report.md", &format!("{}/a.md", site.base), "")), &[]);
    env.write("report.md", "mine");
    env.cliq(["run", "--headless"]).expect(3).says("has a file there already").says("mode: replace");
    assert_eq!(files.lock().unwrap()["/a.md"], b"theirs");
}

#[test]
fn denied_files_are_not_published() {
    let (site, _) = store();
    for (file, setting, expected) in [
        (".cliq/settings.json", None, "denies it"),
        ("link", None, "outside of the workspace"),
        ("keys/a.pem", Some("keys/**"), "denies it"),
        ("missing.md", None, "no phase has written it"),
    ] {
        let targets = target("fine.md", &format!("{}/fine", site.base), "")
            + &target(file, &format!("{}/x", site.base), "");
        let env = Env::new(&team(&targets), &[]);
        env.write("fine.md", "x");
        env.write("keys/a.pem", "secret");
        std::os::unix::fs::symlink("/etc/hostname", env.path("link")).unwrap();
        env.cliq(["settings", "set", "max_parallel", "2"]).expect(0);
        if let Some(deny) = setting {
            env.cliq(["settings", "set", "push.deny", deny]).expect(0);
        }
        env.cliq(["run", "--headless"]).expect(3).says(expected).says(file);
    }
    // What can be known to fail is found before the first file goes.
    assert_eq!(site.count("PUT"), 0);
}

#[test]
fn killed_at_random_moments_it_publishes_once() {
    let appended = Files::default();
    let own = Arc::clone(&appended);
    let site = Site::start(move |asked: &ReceivedRequest| -> Reply {
        if asked.method == "PUT" {
            own.lock().unwrap().insert(asked.path.clone(), asked.body.clone());
            // The file is there before its answer.
            std::thread::sleep(Duration::from_millis(15));
            return reply(201, "text/plain", "");
        }
        match own.lock().unwrap().get(&asked.path) {
            Some(bytes) => reply(200, "text/plain", bytes.clone()),
            None => reply(404, "text/plain", ""),
        }
    });
    let targets: String = (0..6)
        .map(|n| target(&format!("f{n}.md"), &format!("{}/log", site.base), ", mode: append"))
        .collect();
    let rounds = std::env::var("CLIQ_TEST_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(12);
    for round in 0..rounds {
        appended.lock().unwrap().clear();
        let env = Env::new(&team(&targets), &[]);
        (0..6).for_each(|n| env.write(&format!("f{n}.md"), &format!("<{n}>")));
        let mut run = env.spawn(["run", "--headless"]);
        std::thread::sleep(Duration::from_millis(20 + 23 * round));
        run.kill().unwrap();
        run.wait().unwrap();
        let status = env.cliq(["run", "--headless", "--resume"]);
        if status.code != 0 {
            // It had ended, or had not begun.
            env.cliq(["run", "--headless", "-f"]).expect(0);
        }
        let text = String::from_utf8(appended.lock().unwrap()["/log"].clone()).unwrap();
        assert_eq!(text, "<0><1><2><3><4><5>", "round {round}");
    }
}

/// A place where each file goes, with the first answer lost.
fn forgetful_store() -> (Site, Files) {
    let files = Files::default();
    let own = Arc::clone(&files);
    let site = Site::start(move |asked: &ReceivedRequest| -> Reply {
        let mut files = own.lock().unwrap();
        match (asked.method.as_str(), files.get(&asked.path)) {
            ("PUT", _) => {
                let is_first = files.is_empty();
                files.insert(asked.path.clone(), asked.body.clone());
                reply(if is_first { 400 } else { 201 }, "text/plain", "")
            }
            (_, Some(bytes)) => reply(200, "text/plain", bytes.clone()),
            _ => reply(404, "text/plain", ""),
        }
    });
    (site, files)
}

#[test]
fn a_name_with_the_time_stays_what_it_was_first() {
    let (site, files) = forgetful_store();
    let env = Env::new(&team(&target("a.md", &format!("{}/$(timestamp)/a.md", site.base), "")), &[]);
    env.write("a.md", "text");
    env.cliq(["run", "--headless"]).expect(3);
    env.cliq(["run", "--headless", "--resume"]).expect(0);
    assert_eq!(files.lock().unwrap().len(), 1, "{:?}", site.calls());
}

#[test]
fn a_target_that_was_mended_is_another_one() {
    for (before, after) in [("/old/a.md", "/new/a.md"), ("/old-$(timestamp)/a.md", "/new/$(timestamp)/a.md")]
    {
        let (site, files) = forgetful_store();
        let env = Env::new(&team(&target("a.md", &format!("{}{before}", site.base), "")), &[]);
        env.write("a.md", "text");
        env.cliq(["run", "--headless"]).expect(3);
        let text = env.read(".cliq/team.yml").replace(before, after);
        env.write(".cliq/team.yml", &text);
        env.cliq(["run", "--headless", "--resume"]).expect(0);
        let places: Vec<String> = files.lock().unwrap().keys().cloned().collect();
        assert!(places.iter().any(|place| place.starts_with("/new/")), "{places:?}");
    }
}

/// Runs cliq where it has a terminal. The answer comes a second later.
fn in_terminal(env: &Env, answer: &str, args: &str) -> cliq_testkit::env::CommandOutput {
    let inherited = env.command(["run"]);
    let mut command = std::process::Command::new("sh");
    let cliq = env!("CARGO_BIN_EXE_cliq");
    command
        .args(["-c", &format!("sleep 1; echo {answer} | script -qec '{cliq} {args}' /dev/null")])
        .current_dir(env.work())
        .env_clear()
        .envs(inherited.get_envs().filter_map(|(key, value)| Some((key, value?))))
        .env("PATH", std::env::var_os("PATH").unwrap());
    cliq_testkit::env::done(&command.output().unwrap())
}

#[test]
fn a_run_in_the_background_asks_before_it_leaves() {
    if !cliq_testkit::env::has_program("tmux") {
        return;
    }
    let (site, _) = store();
    let env = Env::new(&team(&target("report.md", &format!("{}/a.md", site.base), "")), &[]);
    env.write("report.md", "text");
    in_terminal(&env, "n", "run --detach").expect(4).says("this team publishes");
    assert_eq!(site.count("PUT"), 0);
    in_terminal(&env, "y", "run --detach").expect(0);
    env.wait_for("the run", || env.exists(".cliq/signals/_pipeline_status"));
    assert_eq!(env.read(".cliq/signals/_pipeline_status").trim(), "COMPLETED");
    assert_eq!(site.count("PUT"), 1);
    env.write("report.md", "more");
    let done = in_terminal(&env, "n", "run --force --launcher process --yes").expect(3);
    assert!(!done.stdout.contains("Start it?"), "{}", done.stdout);
}

#[test]
fn a_person_is_asked_before_a_team_that_publishes() {
    let (site, _) = store();
    let env = Env::new(&team(&target("report.md", &format!("{}/a.md", site.base), "")), &[]);
    env.write("report.md", "text");
    let run = |answer: &str, more: &str| in_terminal(&env, answer, &format!("run --launcher process {more}"));
    run("n", "").expect(4).says("this team publishes").says("/a.md").says("nothing was started");
    assert_eq!(site.count("PUT"), 0);
    run("y", "").expect(0);
    assert_eq!(site.count("PUT"), 1);
    // What is there already is not a question; nor is one that was turned off.
    assert!(!run("n", "-f").expect(0).stdout.contains("Start it?"));
    env.write("report.md", "more");
    env.cliq(["settings", "set", "push.confirm", "false"]).expect(0);
    run("n", "-f").expect(3);
}
