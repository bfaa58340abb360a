//! Plans with real agents and a real daemon, which is killed for real.

use std::process::{Child, Command};
use std::time::Duration;

use cliq_testkit::daemon::{daemon, project, start, status, wait_for_state};
use cliq_testkit::env::Env;
use rustix::process::{Pid, Signal, kill_process};

/// Everybody does all well, by markers. `hook` is shell that comes first.
fn crew(env: &Env, task_loop: &str, hook: &str) {
    let script = format!(
        r#"set -eu
{hook}
echo "$CLIQ_ROLE $CLIQ_TASK" >> "$CLIQ_PROJECT/done"
case $CLIQ_ROLE in
planner) printf 'Goal.\n\n## Wave 1\n\n### Task 1: a\nDo a.\n' > "$CLIQ_PLAN_FILE" ;;
coder) w=${{CLIQ_TASK#w}} w=${{w%-t*}} t=${{CLIQ_TASK#*-t}}
  cliq signal emit implement_task_finished "$CLIQ_PLAN" --payload "{{\"wave_number\":$w,\"task_number\":$t}}" ;;
developer) echo "READY_FOR_REVIEW: $CLIQ_TASK" ;;
critic) echo "REVIEW_PASSED: $CLIQ_TASK" ;;
auditor) echo "AUDIT_PASSED: $CLIQ_TASK" ;;
fixer) cliq signal emit implement_finished "$CLIQ_PLAN" ;;
reviewer) cliq signal emit review_approved "$CLIQ_PLAN" ;;
master) cliq signal emit verify_approved "$CLIQ_PLAN" ;;
remediation) echo REMEDIATION_COMPLETE ;;
health-auditor) echo "HEALTH_AUDIT: HEALTHY" ;;
esac
"#
    );
    env.write("../agent.sh", &script);
    for role in [
        "planner",
        "coder",
        "developer",
        "critic",
        "auditor",
        "fixer",
        "reviewer",
        "master",
        "remediation",
        "health-auditor",
    ] {
        let command = format!("sh '{}'", env.path("../agent.sh").display());
        env.cliq(["settings", "set", &format!("roles.{role}.command"), &command]).expect(0);
    }
    env.cliq(["settings", "set", "task_loop", task_loop]).expect(0);
}

const PLAN: &str = "Goal.\n\n## Wave 1\n\n### Task 1: a\nDo a.\n\n### Task 2: b\nDo b.\n\n## Wave 2\n\n### Task 1: c\nDo c.\n";

/// Agents of the project that are alive.
fn agents(env: &Env) -> Vec<String> {
    env.marked(&format!("CLIQ_PROJECT={}", env.work().display()))
}

fn done(env: &Env) -> Vec<String> {
    let mut lines: Vec<String> = env.read("done").lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn the_demo_goes_through_everything() {
    let env = Env::bare();
    let demo = env.cliq(["demo", "--plan", "d"]).expect(0);
    for part in [
        "critic: REVIEW_FAILED w1-t1",
        "developer: INFRA_BLOCKED w1-t2",
        "infrastructure is healthy again",
        "? Question: which greeting",
        "cliq plan answer toolbox Bonjour",
        "kill -9",
        "auditor: AUDIT_FAILED w2-t1",
        "verifying → done",
        "toolbox  done",
    ] {
        assert!(demo.stdout.contains(part), "{part:?} is not in\n{}", demo.stdout);
    }
    let run = |args: &[&str]| {
        let output = Command::new("sh").args(args).current_dir(env.path("d")).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(run(&["tools/menu.sh", "kilometres", "16"]), "9\n");
    assert_eq!(run(&["tools/menu.sh", "greeting", "Ada"]), "Bonjour, Ada!\n");
    env.cliq(["demo", "--plan", "d"]).expect(4).says("is not empty");
}

#[test]
fn tasks_that_are_done_by_signals() {
    let env = project();
    crew(&env, "signals", "");
    start(&env, PLAN);
    let daemon = daemon(&env);
    env.cliq(["plan", "status", "ship", "--watch"]).expect(0).says("done");
    assert_eq!(done(&env), ["coder w1-t1", "coder w1-t2", "coder w2-t1", "master plan", "reviewer plan"]);
    env.cliq(["plan", "start", "ship"]).expect(4).says("plan ship is done").says("start-over");
    env.cliq(["plan", "reopen", "ship"]).expect(4).says("cancelled");
    env.cliq(["plan", "request-review", "ship"]).expect(0).says("reviewing");
    wait_for_state(&env, "done");
    env.cliq(["plan", "reimplement", "ship"]).expect(0);
    wait_for_state(&env, "done");
    assert_eq!(done(&env).iter().filter(|line| *line == "coder w1-t1").count(), 2);
    drop(daemon);
    env.cliq(["plan", "start-over", "ship"]).expect(0).says("planning").says("no daemon is running");
    env.cliq(["plan", "cancel", "ship"]).expect(0).says("cancelled");
    env.cliq(["plan", "cancel", "ship"]).expect(4).says("already");
    env.cliq(["plan", "reopen", "ship"]).expect(0).says("ready");
    let events = env.cliq(["plan", "events", "ship", "--json"]).expect(0).events();
    assert!(
        events
            .iter()
            .any(|e| e["kind"] == "task_complete" && e["detail"]["task"] == "w2-t1" && e["signal"].is_i64())
    );
    env.cliq(["plan", "events", "ship"]).expect(0).says("task_complete task=w2-t1");
    env.cliq(["plan", "list"]).expect(0).says("ship  ready");
    env.cliq(["plan", "show", "ship"]).expect(0).says("Do a.");
}

#[test]
fn output_without_a_marker_is_a_warning_and_then_an_error() {
    let env = project();
    crew(&env, "markers", "case $CLIQ_ROLE in developer) echo 'I am done!'; exit ;; esac");
    start(&env, "Goal.\n\n## Wave 1\n\n### Task 1: a\nDo a.\n");
    let daemon = daemon(&env);
    env.wait_for("a person is asked", || {
        status(&env)["questions"].as_array().is_some_and(|all| !all.is_empty())
    });
    drop(daemon);
    let log = env.read("../daemon.log");
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("without a known marker")).collect();
    let levels: Vec<bool> = lines.iter().map(|line| line.contains("warning: ship")).collect();
    assert_eq!(levels, [true, false, false, true, false, false], "{log}");
    assert!(lines[1].contains("error: ship: ") && lines[2].contains("3 times in a row"), "{log}");
}

#[test]
fn a_goal_without_waves_is_planned_first() {
    let env = project();
    crew(&env, "signals", "");
    start(&env, "Only a goal.\n");
    let _daemon = daemon(&env);
    wait_for_state(&env, "done");
    assert_eq!(done(&env), ["coder w1-t1", "master plan", "planner plan", "reviewer plan"]);
}

#[test]
fn a_plan_that_is_none_is_refused_whole() {
    let env = project();
    env.write("bad.md", "## Wave 2\n\n### Task 1\n");
    env.cliq(["plan", "add", "bad.md"])
        .expect(2)
        .says("bad.md:1: the goal is missing")
        .says("bad.md:1: here `## Wave 1` is expected")
        .says("bad.md:3: the task has no title");
    env.cliq(["plan", "add", "missing.md"]).expect(2).says("missing.md");
    env.write("a b.md", "Goal.\n");
    env.cliq(["plan", "add", "a b.md"]).expect(2).says("--name");
    env.cliq(["plan", "add", "a b.md", "--name", "ab"]).expect(0);
    env.cliq(["plan", "add", "a b.md", "--name", "ab"]).expect(4).says("already");
    env.cliq(["plan", "status", "nobody"]).expect(2).says("there is no plan `nobody`");
    env.cliq(["plan", "answer", "ab", "yes"]).expect(4).says("no question is open");
    env.cliq(["plan", "list"]).expect(0).says("ab  ready");
}

/// Wherever the daemon dies, the next one goes on, and nothing is done that was done.
#[test]
fn the_daemon_is_killed_again_and_again() {
    let env = project();
    crew(&env, "markers", "sleep 0.05");
    start(&env, PLAN);
    let mut kills = 0;
    for n in 0..60_u64 {
        let daemon = daemon(&env);
        std::thread::sleep(Duration::from_millis(20 + n * 37 % 160));
        daemon.kill();
        kills += 1;
        if status(&env)["state"] == "done" {
            break;
        }
    }
    let last = daemon(&env);
    wait_for_state(&env, "done");
    assert!(kills > 4, "{kills}");
    let events = env.cliq(["plan", "events", "ship", "--json"]).expect(0).events();
    let count = |kind: &str| events.iter().filter(|event| event["kind"] == kind).count();
    assert_eq!((count("task_complete"), count("wave_over"), count("done")), (3, 2, 1));
    let signals = env.cliq(["signal", "list", "--json"]).expect(0).json();
    let failed: Vec<_> =
        signals["signals"].as_array().unwrap().iter().filter(|s| s["status"] != "done").collect();
    // A reviewer that was killed after it had spoken, and spoke again, is one too many: that is refused, and harmless.
    assert!(
        failed
            .iter()
            .all(|s| s["status"] == "failed" && s["result"].as_str().unwrap().contains("does not fit")),
        "{failed:#?}"
    );
    drop(last);
    assert_eq!(agents(&env), Vec::<String>::new());
}

#[test]
fn one_daemon_per_home() {
    let env = project();
    env.cliq(["daemon", "status"]).expect(0).says("no daemon is running");
    env.cliq(["daemon", "stop"]).expect(0).says("no daemon is running");
    env.cliq(["daemon", "start"]).expect(0).says("the daemon is running, process");
    let status = env.cliq(["daemon", "status", "--json"]).expect(0).json();
    assert_eq!(status["running"], true);
    // As when the terminal that started it is closed.
    let pid = status["pid"].as_i64().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
    kill_process(pid.expect("a process"), Signal::HUP).expect("a signal");
    env.cliq(["daemon", "run"]).expect(4).says("another daemon (process").says("cliq daemon stop");
    env.cliq(["daemon", "start"]).expect(4).says("another daemon (process");
    env.cliq(["daemon", "stop"]).expect(0).says("has stopped");
    assert_eq!(env.cliq(["daemon", "status", "--json"]).expect(0).json()["running"], false);
    assert!(std::fs::read_to_string(env.home().join("daemon/daemon.log")).unwrap().contains("stopped"));
}

#[test]
fn daemon_restart_restarts_running_agents() {
    let env = project();
    crew(
        &env,
        "signals",
        r#"if [ "$CLIQ_ROLE $CLIQ_TASK" = "coder w1-t1" ]; then echo x >> "$CLIQ_PROJECT/begun"; [ -e "$CLIQ_PROJECT/go" ] || sleep 60; fi"#,
    );
    start(&env, PLAN);
    let first = daemon(&env);
    env.wait_for("it begins", || env.has_text("begun"));
    drop(first);
    assert_eq!(agents(&env), Vec::<String>::new(), "its agents have gone");
    env.write("go", "");
    let _second = daemon(&env);
    wait_for_state(&env, "done");
    assert_eq!(env.read("begun"), "x\nx\n");
}

#[test]
fn cancelling_ends_the_agents() {
    let env = project();
    crew(&env, "signals", r#"echo x >> "$CLIQ_PROJECT/begun"; sleep 60"#);
    start(&env, PLAN);
    let _daemon = daemon(&env);
    env.wait_for("they begin", || env.has_text("begun"));
    env.cliq(["plan", "cancel", "ship"]).expect(0);
    env.wait_for("their end", || agents(&env).is_empty());
    assert_eq!(status(&env)["state"], "cancelled");
}

#[test]
fn a_role_without_an_agent_is_a_question() {
    let env = project();
    env.write("ship.md", PLAN);
    env.cliq(["plan", "add", "ship.md"]).expect(0);
    env.cliq(["plan", "start", "ship"]).expect(0);
    let _daemon = daemon(&env);
    env.wait_for("a question", || status(&env)["questions"].as_array().is_some_and(|q| q.len() == 2));
    env.cliq(["plan", "status", "ship"])
        .expect(0)
        .says("nobody works as coder")
        .says("cliq plan answer ship --question");
    env.cliq(["plan", "answer", "ship", "go on"]).expect(4).says("there are several questions");
    crew(&env, "signals", "");
    for question in status(&env)["questions"].as_array().unwrap() {
        env.cliq(["plan", "answer", "ship", "go on", "--question", &question["id"].to_string()]).expect(0);
    }
    wait_for_state(&env, "done");
}

#[test]
fn a_wave_that_fails_is_retried_or_left_behind() {
    let env = project();
    let hook = r#"if [ "$CLIQ_ROLE $CLIQ_TASK" = "critic w1-t1" ] && [ ! -e "$CLIQ_PROJECT/better" ]; then echo "REVIEW_FAILED: w1-t1"; exit 0; fi"#;
    crew(&env, "markers", hook);
    start(&env, PLAN);
    let _daemon = daemon(&env);
    env.wait_for("it is stuck", || status(&env)["stuck"] == true);
    env.cliq(["plan", "status", "ship"]).expect(0).says("3 reviews or audits failed").says("retry_wave");
    assert_eq!(status(&env)["tasks"][0]["failures"], 3);
    env.cliq(["signal", "emit", "retry_wave", "ship"]).expect(0);
    env.wait_for("it is stuck again", || {
        let events = env.cliq(["plan", "events", "ship", "--json"]).expect(0).events();
        events.iter().filter(|event| event["kind"] == "task_failed").count() == 2
    });
    env.write("better", "");
    env.cliq(["signal", "emit", "retry_wave", "ship"]).expect(0);
    wait_for_state(&env, "done");
}

#[test]
fn a_plan_that_is_verified_in_vain_is_done_and_says_so() {
    let env = project();
    let hook = r#"if [ "$CLIQ_ROLE" = master ]; then cliq signal emit verify_failed "$CLIQ_PLAN" --payload "not yet"; exit 0; fi"#;
    crew(&env, "signals", hook);
    env.cliq(["settings", "set", "readiness_max_verify_cycles", "2"]).expect(0);
    start(&env, PLAN);
    let _daemon = daemon(&env);
    wait_for_state(&env, "done");
    assert_eq!((&status(&env)["force_promoted"], &status(&env)["verify_cycles"]), (&true.into(), &2.into()));
    env.cliq(["plan", "status", "ship"]).expect(0).says("done without being verified");
    let signals = env.cliq(["signal", "list", "--json"]).expect(0).json();
    let of = |kind: &str| {
        signals["signals"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|s| s["type"] == kind)
            .cloned()
            .collect::<Vec<_>>()
    };
    assert!(of("verify_approved").is_empty(), "none is ever made of it");
    assert!(of("verify_failed").len() == 2 && of("verify_failed").iter().all(|s| s["status"] == "done"));
}

fn git(env: &Env, dir: &str, args: &[&str]) -> String {
    let output = Command::new("git")
        .args(args)
        .current_dir(env.path(dir))
        .envs([
            ("GIT_AUTHOR_NAME", "t"),
            ("GIT_AUTHOR_EMAIL", "t@t"),
            ("GIT_COMMITTER_NAME", "t"),
            ("GIT_COMMITTER_EMAIL", "t@t"),
        ])
        .output()
        .expect("git");
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Each task in a worktree of its own; branches that conflict are a person's to bring together, and nothing is lost.
#[test]
fn branches() {
    let env = project();
    env.write("file.txt", "one\n");
    env.write(".gitignore", "/.cliq/\n/done\n");
    git(&env, ".", &["init", "--quiet", "--initial-branch", "main"]);
    git(&env, ".", &["config", "user.name", "t"]);
    git(&env, ".", &["config", "user.email", "t@t"]);
    git(&env, ".", &["add", "file.txt", ".gitignore"]);
    git(&env, ".", &["commit", "--quiet", "-m", "first"]);
    crew(
        &env,
        "signals",
        r#"case $CLIQ_ROLE in coder) echo "$CLIQ_TASK" >> file.txt; echo "$CLIQ_TASK" > "$CLIQ_TASK.txt" ;; reviewer) cat file.txt > "$CLIQ_PROJECT/seen" ;; esac"#,
    );
    start(&env, &PLAN.replace("Goal.", "Goal.\n\nBranches: yes"));
    let _daemon = daemon(&env);
    env.wait_for("the conflict", || status(&env)["questions"].as_array().is_some_and(|q| !q.is_empty()));
    let question = status(&env)["questions"][0]["text"].as_str().unwrap().to_owned();
    assert!(question.contains("cliq/ship-w1-t2 conflicts with cliq/ship: file.txt"), "{question}");
    assert_eq!(env.read("file.txt"), "one\n", "what a person has checked out is not touched");
    assert_eq!(git(&env, ".", &["status", "--porcelain"]), "?? ship.md\n", "and nothing else shows");
    assert_eq!(env.read(".worktrees/ship/file.txt"), "one\nw1-t1\n");
    // A person does as the question says.
    let merge = Command::new("git")
        .args(["merge", "cliq/ship-w1-t2"])
        .current_dir(env.path(".worktrees/ship"))
        .output()
        .unwrap();
    assert!(!merge.status.success());
    env.write(".worktrees/ship/file.txt", "one\nw1-t1\nw1-t2\n");
    // An answer that comes too early takes nothing of it back.
    env.cliq(["plan", "answer", "ship", "nearly"]).expect(0);
    env.wait_for("the question again", || {
        status(&env)["questions"][0]["text"]
            .as_str()
            .is_some_and(|text| text.contains("a merge is under way"))
    });
    assert_eq!(env.read(".worktrees/ship/file.txt"), "one\nw1-t1\nw1-t2\n");
    git(&env, ".worktrees/ship", &["commit", "--quiet", "--all", "-m", "both"]);
    env.cliq(["plan", "answer", "ship", "merged"]).expect(0);
    wait_for_state(&env, "done");
    assert_eq!(env.read("seen"), "one\nw1-t1\nw1-t2\nw2-t1\n", "the reviewer sees all of it");
    assert_eq!(git(&env, ".", &["show", "cliq/ship:w1-t2.txt"]), "w1-t2\n");
    assert_eq!(git(&env, ".", &["branch", "--show-current"]), "main\n");
}

#[test]
fn branches_need_a_repository() {
    let env = project();
    crew(&env, "signals", "");
    start(&env, &PLAN.replace("Goal.", "Goal.\n\nBranches: yes"));
    let _daemon = daemon(&env);
    env.wait_for("a question", || status(&env)["questions"].as_array().is_some_and(|q| !q.is_empty()));
    assert!(status(&env)["questions"][0]["text"].as_str().unwrap().contains("is not a git repository"));
}

/// Models have no shell: what they say by markers is as good as a signal.
#[test]
fn models_play_roles() {
    let answer = |text: &str| crate::commands::models::anthropic(text);
    let server = crate::commands::server::Server::start(vec![
        answer("The task is done.\n\nREADY_FOR_REVIEW: w1-t1\n\nSummary: small\n"),
        answer("Not quite.\n\nREVIEW_FAILED: ship\n\nRequired Fixes:\n- name it better\n"),
        answer("```\nREADY_FOR_REVIEW: ship\n```\n"),
        answer("REVIEW_PASSED: ship\n"),
        answer("AUDIT_PASSED: ship\n"),
    ]);
    let env = project();
    for (key, value) in [
        ("default_agent", "claude-api"),
        ("agents.claude-api.base_url", server.base.as_str()),
        ("agents.claude-api.api_key", "sk-test-secret"),
    ] {
        env.cliq(["settings", "set", key, value]).expect(0);
    }
    start(&env, "Goal.\n\n## Wave 1\n\n### Task 1: a\nDo a, and nothing else.\n");
    let _daemon = daemon(&env);
    wait_for_state(&env, "done");
    let asked = server.asked();
    let prompts: Vec<String> = asked.iter().map(crate::commands::models::prompt_of).collect();
    for (n, part) in [
        (0, "Do a, and nothing else."),
        (0, "You implement one task of a plan."),
        (0, "READY_FOR_REVIEW: w1-t1"),
        (1, "REVIEW_FAILED: ship"),
        (2, "> - name it better"),
        (4, "You have the last word."),
    ] {
        assert!(prompts[n].contains(part), "{part:?} is not in prompt {n}:\n{}", prompts[n]);
    }
    assert_eq!(prompts.len(), 5);
}

/// Plans of the same name in two projects have nothing to do with each other, and what is wrong with one project is not the
/// other's trouble.
#[test]
fn projects_do_not_meet() {
    let env = project();
    crew(&env, "signals", "");
    start(&env, PLAN);
    let other = env.path("../other");
    std::fs::create_dir_all(&other).unwrap();
    let there =
        |args: &[&str]| cliq_testkit::env::done(&env.command(args).current_dir(&other).output().unwrap());
    there(&["init"]).expect(0);
    let slow =
        format!("echo x >> '{}'; sleep 1; echo READY_FOR_REVIEW: $CLIQ_TASK", other.join("begun").display());
    for role in ["coder", "reviewer", "master"] {
        let command = if role == "coder" {
            slow.clone()
        } else {
            format!("sh '{}'", env.path("../agent.sh").display())
        };
        there(&["settings", "set", &format!("roles.{role}.command"), &command]).expect(0);
    }
    std::fs::write(other.join("ship.md"), PLAN).unwrap();
    there(&["plan", "add", "ship.md"]).expect(0);
    there(&["plan", "start", "ship"]).expect(0);
    // An inbox that is not a directory.
    let broken = env.path("../aaa");
    std::fs::create_dir_all(broken.join(".cliq/signals")).unwrap();
    std::fs::write(broken.join(".cliq/signals/inbox"), "a file").unwrap();
    env.cliq(["signal", "emit", "plan_start", "p", "--project", broken.to_str().unwrap()]).expect(0);
    let _daemon = daemon(&env);
    wait_for_state(&env, "done");
    env.wait_for("the other one", || there(&["plan", "status", "ship", "--json"]).json()["state"] == "done");
    assert_eq!(
        std::fs::read_to_string(other.join("begun")).unwrap(),
        "x\n".repeat(3),
        "none was ended and begun anew"
    );
    assert!(env.read("../daemon.log").contains("inbox"), "{}", env.read("../daemon.log"));
}

/// Agents whose daemon was killed, of a plan that was cancelled meanwhile: they are ended.
#[test]
fn orphans_of_a_dead_daemon_are_killed() {
    let env = project();
    crew(&env, "signals", r#"echo x >> "$CLIQ_PROJECT/begun"; sleep 100"#);
    start(&env, PLAN);
    let first = daemon(&env);
    env.wait_for("they begin", || env.has_text("begun"));
    first.kill_by(|daemon| crate::commands::watchdog::kill_unwatched(&env, daemon));
    env.cliq(["plan", "cancel", "ship"]).expect(0);
    assert!(!agents(&env).is_empty());
    let _second = daemon(&env);
    env.wait_for("their end", || agents(&env).is_empty());
}

#[test]
fn several_planners_draft_and_one_merges() {
    let env = project();
    // A draft goes where the brief says; the merging planner reads the drafts and writes the plan.
    let hook = r#"if test "$CLIQ_ROLE" = planner && test -n "${CLIQ_DRAFT_FILE:-}"; then
  echo "$CLIQ_TASK" >> "$CLIQ_PROJECT/drafted"; printf '## Wave 1\n\n### Task 1: by %s\n' "$CLIQ_TASK" > "$CLIQ_DRAFT_FILE"; exit 0
fi
if test "$CLIQ_ROLE" = planner; then cat "$(dirname "$CLIQ_PLAN_FILE")"/drafts/*.md > "$CLIQ_PROJECT/seen"; fi"#;
    crew(&env, "markers", hook);
    env.cliq(["settings", "set", "planners", "3"]).expect(0);
    start(&env, "Goal.\n");
    let _daemon = daemon(&env);
    wait_for_state(&env, "done");
    assert_eq!(env.read("drafted").lines().count(), 3);
    let seen = env.read("seen");
    assert!((1..=3).all(|n| seen.contains(&format!("by draft-{n}"))), "{seen}");
}

#[test]
fn a_role_is_played_by_an_agent_of_the_projects_team_and_its_usage_counts() {
    let env = Env::new(
        "workflow:\n  phases:\n    - {name: own, type: standard, agent: worker}\n",
        &[(
            "worker",
            "ok\nsay '\"status\":\"progress\",\"usage\":{\"model\":\"m\",\"tokens_in\":10,\"tokens_out\":2,\"cost_usd\":0.5}'\necho READY_FOR_REVIEW: $CLIQ_TASK\ncomplete\n",
        )],
    );
    crew(&env, "markers", "");
    env.cliq(["settings", "unset", "roles.developer.command"]).expect(0);
    env.cliq(["settings", "set", "roles.developer.agent", "worker"]).expect(0);
    start(&env, PLAN);
    let _daemon = daemon(&env);
    wait_for_state(&env, "done");
    let status = status(&env);
    assert_eq!(status["usage"]["tokens_in"], 30);
    assert_eq!(status["usage_by_task"]["w1-t2"]["developer"]["cost_usd"], 0.5);
    env.cliq(["plan", "status", "ship"])
        .expect(0)
        .says("usage: 30 tokens in, 6 out, $1.50")
        .says("12 tokens, $0.5000");
    env.cliq(["plan", "events", "ship"]).expect(0).says("tokens_in=10");
}

#[test]
fn two_adds_of_one_name_at_the_same_moment() {
    for _ in 0..5 {
        let env = project();
        let adds: Vec<Child> = (0..6)
            .map(|n| {
                env.write(
                    &format!("p{n}.md"),
                    &format!("Goal {n}.\n\n## Wave 1\n\n### Task 1: t\nDo {n}.\n"),
                );
                env.spawn(["plan", "add", &format!("p{n}.md"), "--name", "same"])
            })
            .collect();
        let codes: Vec<Option<i32>> =
            adds.into_iter().map(|mut add| add.wait().expect("it ends").code()).collect();
        assert_eq!(codes.iter().filter(|code| **code == Some(0)).count(), 1, "{codes:?}");
        assert!(codes.iter().all(|code| matches!(code, Some(0 | 4))), "{codes:?}");
        // The file is that of the plan that was added.
        let shown = env.cliq(["plan", "show", "same", "--json"]).expect(0).json();
        let goal = shown["file"]["goal"].as_str().expect("a goal").to_owned();
        assert!(env.read(".cliq/plans/same/plan.md").starts_with(&goal), "{goal}");
    }
}

#[test]
fn the_inbox_of_a_project_without_plans_is_read() {
    let env = project();
    let _daemon = daemon(&env);
    env.write(".cliq/signals/inbox/planner-finished-ghost", "");
    let failed = || {
        let list = env.cliq(["signal", "list", "--status", "failed", "--json"]).expect(0).json();
        list["signals"].as_array().is_some_and(|signals| signals.len() == 1)
    };
    env.wait_for("the signal", failed);
    env.cliq(["signal", "list"]).expect(0).says("there is no plan `ghost`");
    assert!(!env.exists(".cliq/signals/inbox/planner-finished-ghost"));
}
