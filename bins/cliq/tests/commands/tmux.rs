//! Panes: the real tmux, on sockets of its own.

use std::process::Command;
use std::time::Duration;

use camino::Utf8PathBuf;
use cliq_orchestrator::internals::end_dead_run;
use cliq_orchestrator::{CliqDir, Job, Launcher as _, TmuxLauncher};
use cliq_testkit::env::{Env, done, not_run};

const THREE: &str = "workflow:
  phases:
    - {name: a, type: standard, agent: x}
    - {name: b, type: standard, agent: x}
    - {name: c, type: exec, depends_on: [a], commands: [{name: one, run: echo first}, {name: two, run: 'echo second; test -f fine'}]}
";
/// Works until it may go.
const AGENT: &str = "ok\necho \"this is $CLIQ_PHASE\"\n[ -t 0 ] || echo \"read $(printf '%s' \"$message\" | grep -c '\"type\": \"phase\"')\"\ntouch at-$CLIQ_PHASE\nwhile [ ! -f go ]; do sleep 0.02; done\ncomplete\n";

pub(crate) fn no_tmux() -> bool {
    let missing = Command::new("tmux").arg("-V").output().is_err();
    if missing {
        not_run("there is no tmux here");
    }
    missing
}

/// Lists panes or windows that people see. Spare panes have a session of their own and are left out.
fn seen(env: &Env, what: &str, format: &str) -> String {
    env.tmux(&[&format!("list-{what}"), "-a", "-f", "#{?#{m:*-next,#{session_name}},0,1}", "-F", format])
}

fn titles(env: &Env) -> Vec<String> {
    let mut titles: Vec<String> = seen(env, "panes", "#{pane_title}").lines().map(str::to_owned).collect();
    titles.sort();
    titles
}

#[test]
fn a_pane_per_phase() {
    if no_tmux() {
        return;
    }
    let env = Env::new(THREE, &[("x", AGENT)]);
    env.write("fine", "");
    let run = env.spawn(["run", "--launcher", "tmux"]);
    env.wait_for("both", || env.exists("at-a") && env.exists("at-b"));
    env.wait_for("their titles", || titles(&env) == ["▸ a running", "▸ b running"]);
    let shown = |pane: &str| env.tmux(&["capture-pane", "-p", "-t", pane]);
    env.wait_for("what they print", || {
        let all = ["%0", "%1"].map(shown).concat();
        all.contains("this is a\nread 1\n") && all.contains("this is b\nread 1\n")
    });
    assert_eq!(seen(&env, "windows", "#{session_name}"), "work\n");
    env.write("go", "");
    done(&run.wait_with_output().unwrap()).expect(0).says("cliq attach");
    assert_eq!(env.read(".cliq/logs/a.1.log"), "this is a\nread 1\n", "as with plain processes");
    assert_eq!(env.read(".cliq/logs/c.1.2-two.log"), "second\n");
    assert_eq!(titles(&env), Vec::<String>::new(), "nothing is left of the session");
    assert_eq!(env.files(".cliq/messages"), ["a.1.json", "b.1.json"]);
    assert_eq!(env.left_over(), Vec::<String>::new());
}

#[test]
fn a_session_can_be_kept() {
    if no_tmux() {
        return;
    }
    let env = Env::new(THREE, &[("x", AGENT)]);
    env.write("go", "");
    env.cliq(["settings", "set", "tmux.keep_session", "true"]).expect(0);
    env.cliq(["run", "--launcher", "tmux"]).expect(3).says("exit");
    env.wait_for("the last title", || titles(&env) == ["✓ a completed", "✓ b completed", "✗ c escalated"]);
    env.cliq(["attach", "c"]).expect(2).says("no terminal");
    env.cliq(["attach", "d"]).expect(2).says("no phase `d`");
    env.write("fine", "");
    env.cliq(["run", "--resume", "--launcher", "tmux"]).expect(0);
    env.wait_for("a session of its own", || titles(&env) == ["✓ c completed"]);
    env.cliq(["attach", "a"]).expect(1).says("`a` has no pane").says("cliq logs a");
    env.cliq(["clean"]).expect(0);
    assert_eq!(titles(&env), Vec::<String>::new());
    env.cliq(["attach"]).expect(1).says("nothing is running");
}

#[test]
fn a_pane_that_dies_ends_its_phase_at_once() {
    if no_tmux() {
        return;
    }
    let ways: [(&[&str], &str); 3] = [
        (&["kill-pane", "-t", "%0"], "signal 1"),
        (&["kill-server"], "signal 1"),
        (&["send-keys", "-t", "%0", "C-c"], "signal 2"),
    ];
    for (how, reason) in ways {
        let env = Env::new(
            "workflow:\n  phases:\n    - {name: a, type: standard, agent: x}\n",
            &[("x", "ok\ntouch at-a\nsleep 1000\n")],
        );
        let run = env.spawn(["run", "--launcher", "tmux"]);
        env.wait_for("a", || env.exists("at-a"));
        env.wait_for("its title", || titles(&env) == ["▸ a running"]);
        let sessions = env.tmux(&["list-sessions", "-F", "#{session_name}"]);
        assert_eq!(sessions, "work\n", "no pane is prepared for a job that cannot come");
        env.tmux(how);
        done(&run.wait_with_output().unwrap()).expect(3).says("without a terminal message").says(reason);
        assert_eq!(env.left_over(), Vec::<String>::new());
    }
}

#[test]
fn exit_statuses_and_signals_are_reported() {
    if no_tmux() {
        return;
    }
    let workflow = "workflow:
  phases:
    - name: a
      type: exec
      commands:
        - {name: code, run: exit 7, escalate_on_fail: false}
        - {name: signal, run: kill -9 $$, escalate_on_fail: false}
        - {name: missing, run: ./nothing-there, escalate_on_fail: false}
        - {name: slow, run: sleep 1000, timeout: 1s, escalate_on_fail: false}
        - {name: long, run: 'echo LONG | wc -c'}
";
    let workflow = workflow.replace("LONG", &"x".repeat(40_000));
    for launcher in ["process", "tmux"] {
        let env = Env::new(&workflow, &[]);
        env.cliq(["run", "--launcher", launcher]).expect(0);
        let results = env.read_json(".cliq/signals/a_command_results.json");
        let of = |n: usize, key: &str| results[n][key].clone();
        assert_eq!(
            (of(0, "exit_code"), of(1, "signal"), of(2, "exit_code")),
            (7.into(), 9.into(), 127.into())
        );
        assert_eq!(of(3, "timed_out"), true, "{results:#}");
        assert_eq!(of(4, "output_tail"), "40001\n");
        assert_eq!(env.left_over(), Vec::<String>::new());
    }
}

#[test]
fn background_processes_end_with_their_phase() {
    if no_tmux() {
        return;
    }
    let workflow = "workflow:
  phases:
    - name: a
      type: exec
      commands:
        - {name: serve, run: '(for i in 1 2 3 4 5 6 7 8 9; do sleep 0.1; echo served $i; done; touch served; sleep 1000) & echo started'}
        - {name: use, run: 'for i in $(seq 100); do [ -f served ] && exit 0; sleep 0.1; done; exit 1'}
";
    for launcher in ["process", "tmux"] {
        let env = Env::new(workflow, &[]);
        env.cliq(["run", "--launcher", launcher]).expect(0);
        let log = env.read(".cliq/logs/a.1.1-serve.log");
        assert!(log.starts_with("started\n") && log.ends_with("served 9\n"), "{launcher}: {log}");
        assert_eq!(env.left_over(), Vec::<String>::new());
    }
}

#[test]
fn panes_that_would_be_too_small_get_windows() {
    if no_tmux() {
        return;
    }
    let mut workflow = "workflow:\n  phases:\n".to_owned();
    for n in 0..20 {
        workflow.extend([&*format!("    - {{name: p{n}, type: standard, agent: x}}\n")]);
    }
    let env = Env::new(&workflow, &[("x", AGENT)]);
    let run = env.spawn(["run", "--launcher", "tmux"]);
    env.wait_for("all", || (0..20).all(|n| env.exists(&format!("at-p{n}"))));
    let windows = seen(&env, "windows", "#{window_panes}");
    assert_eq!(windows, "12\n8\n");
    let sizes = seen(&env, "panes", "#{pane_width} #{pane_height}");
    for size in sizes.lines() {
        let (width, height) = size.split_once(' ').unwrap();
        assert!(width.parse::<u32>().unwrap() >= 50 && height.parse::<u32>().unwrap() >= 8, "{sizes}");
    }
    env.write("go", "");
    done(&run.wait_with_output().unwrap()).expect(0);
}

#[test]
fn hostile_names_and_neighbours() {
    if no_tmux() {
        return;
    }
    let workflow = "workflow:\n  phases:\n    - {name: a, type: standard, agent: x}\n";
    let names = ["it's #(touch pwned) \"$HOME\" #{pane_id};", "-t 東京"];
    let envs = names.map(|name| Env::new_in(name, workflow, &[("x", AGENT)]));
    let runs = envs.each_ref().map(|env| env.spawn(["run", "--launcher", "tmux"]));
    for env in &envs {
        env.wait_for("a", || env.exists("at-a") && titles(env) == ["▸ a running"]);
    }
    assert_eq!(seen(&envs[1], "windows", "#{session_name}"), "t\n");
    for env in &envs {
        env.write("go", "");
    }
    for run in runs {
        done(&run.wait_with_output().unwrap()).expect(0);
    }
    assert!(envs.iter().all(|env| !env.exists("pwned")));
}

/// A launcher whose panes take a while to begin with their job.
fn hesitant(dir: &CliqDir) -> TmuxLauncher {
    let shim = ["sh", "-c", r#"sleep 0.3; exec "$0" pane "$@""#, env!("CARGO_BIN_EXE_cliq")];
    TmuxLauncher::new(dir, shim.map(str::to_owned).into(), false, None)
}

fn beginning(env: &Env) -> (CliqDir, Job) {
    let workspace = Utf8PathBuf::from_path_buf(env.work().to_owned()).expect("UTF-8");
    let dir = CliqDir::create(&workspace).expect("a project");
    let job = Job::new("a", "sh", workspace.clone(), dir.logs().join("a.log"))
        .with_args(["-c", "touch began; sleep 1000"])
        .with_env("CLIQ_RUN_PATH", "run/a");
    (dir, job)
}

#[tokio::test]
async fn a_job_that_is_ended_before_it_begins_never_begins() {
    if no_tmux() {
        return;
    }
    let env = Env::new(THREE, &[("x", AGENT)]);
    let (dir, job) = beginning(&env);
    let launcher = hesitant(&dir);
    let mut running = launcher.launch(&job).await.expect("a pane");
    running.end(Duration::from_secs(10)).await;
    assert!(!running.wait().await.expect("an end").success());
    assert!(!env.exists("began"));
    launcher.close().await;
}

#[tokio::test]
async fn a_dead_orchestrators_job_never_begins() {
    if no_tmux() {
        return;
    }
    let env = Env::new(THREE, &[("x", AGENT)]);
    let (dir, job) = beginning(&env);
    let launcher = hesitant(&dir);
    let mut running = launcher.launch(&job).await.expect("a pane");
    // What whoever goes on after it does.
    end_dead_run(&dir, &cliq_protocol::RunId::parse("run").unwrap(), Duration::from_secs(1));
    assert!(!running.wait().await.expect("an end").success());
    assert!(!env.exists("began"));
    launcher.close().await;
}

/// A terminal for people, in a tmux of its own beside the tests' ones.
struct Terminal<'a> {
    env: &'a Env,
    socket: String,
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        let _ = cliq_testkit::env::tmux().args(["-S", &self.socket, "kill-server"]).output();
    }
}

impl<'a> Terminal<'a> {
    fn new(env: &'a Env, script: &str) -> Self {
        let socket = env.path("../tmux/person").to_string_lossy().into_owned();
        let cliq = env.command([""; 0]);
        let mut command = cliq_testkit::env::tmux();
        command.args([
            "-S",
            &socket,
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            "120",
            "-y",
            "40",
            script,
        ]);
        for (key, value) in cliq.get_envs() {
            if let Some(value) = value {
                command.env(key, value);
            }
        }
        command.env("CLIQ", cliq.get_program()).current_dir(env.work());
        assert!(command.status().expect("tmux").success());
        Self { env, socket }
    }

    fn screen(&self) -> String {
        let output = cliq_testkit::env::tmux()
            .args(["-S", &self.socket, "capture-pane", "-p"])
            .output()
            .expect("tmux");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    #[track_caller]
    fn shows(&self, text: &str) {
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
        while !self.screen().contains(text) {
            assert!(
                std::time::Instant::now() < deadline,
                "{text:?} is not on the screen:\n{}",
                self.screen()
            );
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }

    fn keys(&self, keys: &[&str]) {
        let status = cliq_testkit::env::tmux().args(["-S", &self.socket, "send-keys"]).args(keys).status();
        assert!(status.expect("tmux").success(), "{}", self.env.work().display());
    }
}

#[test]
fn a_person_attaches_and_leaves() {
    if no_tmux() {
        return;
    }
    let env = Env::new(THREE, &[("x", AGENT)]);
    let run = env.spawn(["run", "--launcher", "tmux"]);
    env.wait_for("both", || env.exists("at-a") && env.exists("at-b"));
    let terminal = Terminal::new(&env, "sh");
    terminal.keys(&["\"$CLIQ\" attach b", "Enter"]);
    terminal.shows("this is b");
    terminal.shows("▸ a running");
    terminal.shows("cliq: work");
    assert_eq!(env.tmux(&["display-message", "-p", "#{@cliq_phase}"]), "b\n", "it is in front");
    // Within the outer tmux its prefix twice is the inner one's.
    terminal.keys(&["C-b", "d"]);
    terminal.shows("detached");
    env.write("go", "");
    env.write("fine", "");
    done(&run.wait_with_output().unwrap()).expect(0);
}

#[test]
fn commands_of_child_processes_have_no_terminal() {
    if no_tmux() {
        return;
    }
    let env = Env::new(
        "workflow:\n  phases:\n    - {name: a, type: exec, timeout: 10m, commands: [{name: ask, run: 'read answer < /dev/tty'}]}\n    - {name: b, type: standard, agent: x, timeout: 10m}\n",
        &[("x", "ok\nread answer < /dev/tty\n")],
    );
    let terminal = Terminal::new(&env, "sh");
    terminal.keys(&["\"$CLIQ\" run --headless > said 2>&1; echo over: $?", "Enter"]);
    terminal.shows("over: 3");
    let said = env.read("said");
    assert!(
        said.contains("command `ask` asked for something on a terminal, and there is no terminal"),
        "{said}"
    );
    assert!(said.contains("agent x asked for something on a terminal, and there is no terminal"), "{said}");
}

#[test]
fn a_person_answers_a_command_in_its_pane() {
    if no_tmux() {
        return;
    }
    let ask = "until read answer < /dev/tty; do sleep 0.1; done; echo \"$answer\" > said; sleep 1000 & echo $! > left";
    let workflow = format!(
        "workflow:\n  phases:\n    - name: a\n      type: exec\n      commands:\n        - {{name: ask, run: '{ask}'}}\n        - {{name: after, run: 'kill -0 `cat left`'}}\n"
    );
    let env = Env::new(&workflow, &[]);
    let run = env.spawn(["run", "--launcher", "tmux"]);
    let pane = || {
        let panes = env.tmux(&["list-panes", "-a", "-F", "#{pane_id} #{@cliq_phase}"]);
        panes.lines().find_map(|line| line.strip_suffix(" a").map(str::to_owned))
    };
    env.wait_for("the pane", || pane().is_some());
    let pane = pane().unwrap();
    // The command may not ask yet; what is typed before is there when it does.
    env.tmux(&["send-keys", "-t", &pane, "yes", "Enter"]);
    env.wait_for("the answer", || env.has_text("said"));
    assert_eq!(env.read("said"), "yes\n");
    // What the command left goes on until the phase ends, although its pane is done.
    cliq_testkit::env::done(&run.wait_with_output().unwrap()).expect(0);
}

#[test]
fn a_person_attaches_to_an_agent_of_a_plan() {
    if no_tmux() {
        return;
    }
    let env = cliq_testkit::daemon::project();
    let git = |args: &[&str]| {
        let status = Command::new("git").args(args).current_dir(env.work()).status();
        assert!(status.expect("git").success());
    };
    git(&["init", "-q"]);
    git(&["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-q", "--allow-empty", "-m", "first"]);
    let coder = r#"echo "this is $CLIQ_TASK"; touch "$CLIQ_PROJECT/at-$CLIQ_TASK"; while [ ! -f "$CLIQ_PROJECT/go" ]; do sleep 0.02; done"#;
    env.cliq(["settings", "set", "roles.coder.command", coder]).expect(0);
    env.cliq(["settings", "set", "launcher", "tmux"]).expect(0);
    // Each in a worktree of its own, which names its session.
    env.write(
        "p.md",
        "Goal.\n\nBranches: yes\n\n## Wave 1\n\n### Task 1: a\nDo a.\n\n### Task 2: b\nDo b.\n",
    );
    env.cliq(["plan", "add", "p.md"]).expect(0);
    env.cliq(["plan", "attach", "p"]).expect(1).says("no agent works on plan p");
    env.cliq(["plan", "start", "p"]).expect(0);
    let _daemon = cliq_testkit::daemon::daemon(&env);
    env.wait_for("both", || env.exists("at-w1-t1") && env.exists("at-w1-t2"));
    env.cliq(["attach"]).expect(1).says("cliq plan attach PLAN");
    env.cliq(["plan", "attach", "p"]).expect(2).says("several agents are at work: name one of w1-t1, w1-t2");
    env.cliq(["plan", "attach", "p", "w2-t1"]).expect(2).says("there is w1-t1, w1-t2");
    let terminal = Terminal::new(&env, "sh");
    terminal.keys(&["\"$CLIQ\" plan attach p w1-t2", "Enter"]);
    terminal.shows("this is w1-t2");
    terminal.keys(&["C-b", "d"]);
    terminal.shows("detached");
    env.write("go", "");
    env.cliq(["plan", "cancel", "p"]).expect(0);
}

#[test]
fn an_interactive_run_uses_tmux_and_touches_no_other() {
    if no_tmux() {
        return;
    }
    let env = Env::new(THREE, &[("x", AGENT)]);
    env.write("fine", "");
    let terminal = Terminal::new(&env, "sh");
    terminal.keys(&["\"$CLIQ\" run; echo over: $?", "Enter"]);
    terminal.shows("cliq attach");
    env.wait_for("both", || env.exists("at-a") && env.exists("at-b"));
    env.wait_for("the panes", || titles(&env) == ["▸ a running", "▸ b running"]);
    env.write("go", "");
    terminal.shows("over: 0");
    terminal.keys(&["\"$CLIQ\" run -f --headless; echo over: headless", "Enter"]);
    terminal.shows("over: headless");
    assert_eq!(titles(&env), Vec::<String>::new());
}

#[test]
fn a_run_is_left_to_the_session() {
    if no_tmux() {
        return;
    }
    let env = Env::new(THREE, &[("x", AGENT)]);
    env.write("fine", "");
    env.cliq(["run", "--detach"]).expect(0).says("running in the background").says("cliq attach");
    env.wait_for("both", || env.exists("at-a") && env.exists("at-b"));
    assert_eq!(env.cliq(["status", "--json"]).expect(0).json()["state"], "running");
    env.cliq(["run", "--detach"]).expect(4).says("another cliq");
    env.wait_for("the panes", || titles(&env).iter().filter(|title| title.contains("running")).count() == 2);
    assert_eq!(seen(&env, "windows", "#{window_name} #{window_panes}"), "cliq 1\nphases 2\n");
    env.write("go", "");
    env.cliq(["status", "--watch"]).expect(0).says("completed");
    env.wait_for("the end of the session", || titles(&env).is_empty());
    assert_eq!(env.read(".cliq/signals/_pipeline_status"), "COMPLETED");
    assert_eq!(env.left_over(), Vec::<String>::new());
    env.cliq(["run", "--detach"]).expect(4).says("the last run completed");
}

#[test]
fn a_detached_run_can_be_cancelled_and_resumed() {
    if no_tmux() {
        return;
    }
    let env = Env::new(THREE, &[("x", AGENT)]);
    env.write("fine", "");
    env.cliq(["run", "--detach", "--max-parallel", "1"]).expect(0);
    env.wait_for("a", || env.exists("at-a"));
    assert!(!env.exists("at-b"), "one at a time");
    env.cliq(["cancel"]).expect(0);
    env.wait_for("the end of the session", || titles(&env).is_empty());
    assert_eq!(env.left_over(), Vec::<String>::new());
    env.write("go", "");
    env.cliq(["run", "--detach", "--resume"]).expect(0);
    env.cliq(["status", "--watch"]).expect(0).says("completed");
}

#[test]
fn a_detached_run_that_cannot_begin_says_why() {
    if no_tmux() {
        return;
    }
    let env = Env::new("workflow:\n  phases:\n    - {name: a, type: standard}\n", &[]);
    env.without_models();
    env.cliq(["run", "--detach"]).expect(2).says("names no agent");
    assert_eq!(titles(&env), Vec::<String>::new());
}

#[test]
fn the_launcher_is_a_setting() {
    if no_tmux() {
        return;
    }
    let env = Env::new(
        "workflow:\n  phases:\n    - {name: a, type: exec, commands: [{name: t, run: 'echo ${TMUX:-none}'}]}\n",
        &[],
    );
    env.cliq(["settings", "set", "launcher", "tmux"]).expect(0);
    env.cliq(["run"]).expect(0);
    assert!(env.read(".cliq/logs/a.1.1-t.log").contains("/cliq-"));
    env.cliq(["run", "-f", "--headless"]).expect(0);
    assert_eq!(env.read(".cliq/logs/a.1.1-t.log"), "none\n");
    env.cliq(["run", "--headless", "--launcher", "tmux"]).expect(2);
    let no_tmux = env.command(["run", "-f"]).env("PATH", "/nowhere").output().unwrap();
    done(&no_tmux).expect(2).says("tmux is not installed").says("--launcher process");
}
