//! Agents that leave something else than a file where cliq reads or writes one: a FIFO, on which a plain `open` waits for
//! ever, a device without end, a link to a private file, a directory, a file too large or too deep. Nothing hangs,
//! each ends in a clear status that names the file, and a run can be cancelled in all of them.

use std::process::{Child, Output};
use std::time::{Duration, Instant};

use cliq_testkit::env::{CommandOutput, Env, done};

/// Far more than any of these takes. Without the guards they take for ever.
const BOUND: Duration = Duration::from_secs(60);

/// A phase whose agent runs `script`, a phase that uses its handoff in a command, and a phase with a role.
const TEAM: &str = "workflow:
  phases:
    - name: first
      type: standard
      agent: hostile
    - name: second
      type: exec
      depends_on: [first]
      commands: [{name: show, run: 'echo \"$(handoff.first.x)\"'}]
    - name: third
      type: standard
      agent: good
      depends_on: [second]
";

/// A handoff that is in order, for scripts that spoil something else.
const HANDOFF: &str = r#"hand second '{"version":1,"phase":"first","agent":"hostile","phase_type":"standard","data":{"x":"1"}}'
"#;

fn env(script: &str) -> Env {
    Env::new(TEAM, &[("hostile", script), ("good", "ok\ncomplete\n")])
}

/// The end of a process, which has to come within the bound.
#[track_caller]
fn ended(mut child: Child) -> CommandOutput {
    let deadline = Instant::now() + BOUND;
    while child.try_wait().expect("it can be waited for").is_none() {
        if Instant::now() > deadline {
            let _ = child.kill();
            panic!("it hangs");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let output: Output = child.wait_with_output().expect("it has ended");
    done(&output)
}

/// Runs the team after the agent did `deed`, and expects that the run ends with `code` and says `words`. Then runs it again
/// with an agent that stays after its deed, and cancels that run.
#[track_caller]
fn case(deed: &str, code: i32, words: &[&str]) -> Env {
    let stays = env(&format!("ok\n{deed}\ntouch did-it\nsleep 1000\n"));
    let child = stays.spawn(["run", "--headless"]);
    stays.wait_for("the deed", || stays.exists("did-it"));
    ended(stays.spawn(["cancel"])).expect(0);
    ended(child).expect(130);
    assert_eq!(stays.left_over(), Vec::<String>::new(), "processes are left over");

    let env = env(&format!("ok\n{deed}\ncomplete\n"));
    let mut done = ended(env.spawn(["run", "--headless"])).expect(code);
    for word in words {
        done = done.says(word);
    }
    let status = ["COMPLETED", "FAILED", "", "ESCALATED"][usize::try_from(code).expect("a code")];
    assert_eq!(env.read(".cliq/signals/_pipeline_status"), status);
    assert_eq!(env.left_over(), Vec::<String>::new(), "processes are left over");
    env
}

const CHANNEL: &str = "$CLIQ_DIR/channels/first--second";

#[test]
fn a_handoff_that_is_a_fifo() {
    case(&format!("mkfifo {CHANNEL}/handoff.json"), 3, &["first--second/handoff.json", "it is a FIFO"]);
}

#[test]
fn a_handoff_that_has_no_end() {
    case(&format!("ln -s /dev/zero {CHANNEL}/handoff.json"), 3, &["handoff.json", "leads out of"]);
}

#[test]
fn a_handoff_that_links_out_of_the_project() {
    case(&format!("ln -s /etc/passwd {CHANNEL}/handoff.json"), 3, &["handoff.json", "to /etc/passwd"]);
}

#[test]
fn a_handoff_behind_a_link_to_a_directory() {
    let deed = format!(
        "mkdir ../../elsewhere; rmdir {CHANNEL}; ln -s \"$(cd ../..; pwd)/elsewhere\" {CHANNEL}; echo '{{}}' > ../../elsewhere/handoff.json"
    );
    let deed = deed.replace("../../elsewhere", "../elsewhere").replace("cd ../..;", "cd ..;");
    case(&deed, 3, &["handoff.json", "leads out of"]);
}

#[test]
fn a_handoff_that_is_a_directory() {
    case(&format!("mkdir {CHANNEL}/handoff.json"), 3, &["handoff.json", "it is a directory"]);
}

#[test]
fn a_handoff_that_is_too_large() {
    let deed = format!("truncate -s 1073741825 {CHANNEL}/handoff.json");
    case(&deed, 3, &["handoff.json", "more than 1073741824 bytes", "max_file_bytes"]);
}

#[test]
fn a_handoff_larger_than_the_setting() {
    let env = env(&format!("ok\n{HANDOFF}complete\n"));
    env.cliq(["settings", "set", "max_file_bytes", "50"]).expect(0);
    ended(env.spawn(["run", "--headless"])).expect(3).says("more than 50 bytes");
    env.cliq(["settings", "set", "max_file_bytes", "5000"]).expect(0);
    ended(env.spawn(["run", "--headless", "--resume"])).expect(0);
}

#[test]
fn a_handoff_that_is_too_deep() {
    let deed = format!("(printf '%0100000d' 0 | tr 0 '[') > {CHANNEL}/handoff.json");
    case(&deed, 3, &["handoff.json is not a valid handoff", "recursion limit"]);
}

#[test]
fn a_handoff_that_links_within_the_project() {
    let deed = format!(
        "{HANDOFF}mv {CHANNEL}/handoff.json ./moved.json; ln -s ../../../moved.json {CHANNEL}/handoff.json"
    );
    case(&deed, 0, &["second: completed"]);
}

#[test]
fn a_signal_file_that_is_a_fifo() {
    // Its later messages go into the FIFO, which has no reader.
    let env = env("ok\nrm \"$CLIQ_SIGNAL_FILE\"; mkfifo \"$CLIQ_SIGNAL_FILE\"; touch did-it; sleep 1000\n");
    let child = env.spawn(["run", "--headless"]);
    ended(child).expect(3).says("first.jsonl").says("it is a FIFO");
    assert_eq!(env.left_over(), Vec::<String>::new());
}

#[test]
fn a_signal_file_that_has_no_end() {
    let env = env("ok\nln -sf /dev/zero \"$CLIQ_SIGNAL_FILE\"; sleep 1000\n");
    ended(env.spawn(["run", "--headless"])).expect(3).says("first.jsonl").says("leads out of");
}

#[test]
fn signal_files_of_other_phases() {
    let deed =
        format!("{HANDOFF}mkfifo $CLIQ_DIR/signals/second.jsonl; mkdir -p $CLIQ_DIR/signals/third.jsonl/x");
    case(&deed, 0, &["third: completed"]);
}

/// Without the journal nobody could see, cancel or resume the run.
#[test]
fn the_directory_of_the_run_is_deleted() {
    let env = env("ok\necho \"$CLIQ_RUN_ID\" > run\nrm -rf \"$CLIQ_DIR\"\nsleep 1000\n");
    ended(env.spawn(["run", "--headless"]))
        .expect(1)
        .says("its journal was deleted: ")
        .says("start it again");
    assert_eq!(
        env.marked(&format!("CLIQ_RUN_ID={}", env.read("run").trim())),
        Vec::<String>::new(),
        "processes are left over"
    );
}

/// Everything is still written, to a place that no reader of the project looks at.
#[test]
fn moved_project_ends_its_run() {
    let env = env("ok\nmv \"$CLIQ_DIR\" \"$CLIQ_DIR.moved\"\nsleep 1000\n");
    ended(env.spawn(["run", "--headless"])).expect(1).says("its journal was moved: ").says("start it again");
}

#[test]
fn a_role_that_is_a_fifo() {
    let deed = format!("{HANDOFF}rm $CLIQ_DIR/roles/third.md; mkfifo $CLIQ_DIR/roles/third.md");
    case(&deed, 3, &["roles/third.md", "it is a FIFO"]);
}

#[test]
fn a_role_that_links_out_of_the_project() {
    let deed = format!("{HANDOFF}ln -sf /etc/passwd $CLIQ_DIR/roles/third.md");
    case(&deed, 3, &["roles/third.md", "leads out of"]);
}

#[test]
fn a_directory_of_another_phase() {
    // The orchestrator cannot go on without its own directories: that is a failure of the run, with its reason.
    let deed = format!("{HANDOFF}mkfifo $CLIQ_DIR/files/third");
    case(&deed, 1, &["files/third", "File exists"]);
}

#[test]
fn results_and_logs_of_other_phases() {
    let deed = format!(
        "{HANDOFF}mkfifo $CLIQ_DIR/signals/second_command_results.json $CLIQ_DIR/logs/second.1.show.log $CLIQ_DIR/logs/third.1.log $CLIQ_DIR/messages/third.1.json"
    );
    case(&deed, 0, &["third: completed"]);
}

#[test]
fn the_status_of_the_run() {
    let deed = format!("{HANDOFF}mkfifo $CLIQ_DIR/signals/_pipeline_status");
    case(&deed, 0, &["third: completed"]);
    let deed = format!("{HANDOFF}mkdir -p $CLIQ_DIR/signals/_pipeline_status/x");
    case(&deed, 0, &["third: completed"]);
}

#[test]
fn settings_during_a_run() {
    let deed = format!("{HANDOFF}rm $CLIQ_DIR/settings.json; mkfifo $CLIQ_DIR/settings.json");
    let env = case(&deed, 0, &["third: completed"]);
    ended(env.spawn(["run", "-f", "--headless"])).expect(1).says("settings.json").says("it is a FIFO");
    ended(env.spawn(["doctor"])).expect(1).says("it is a FIFO");
}

#[test]
fn the_record_of_a_run() {
    let env = env(&format!("ok\n{HANDOFF}complete\n"));
    ended(env.spawn(["run", "--headless"])).expect(0);
    for (file, commands) in [
        ("journal.jsonl", &[&["status"][..], &["explain"], &["run", "--resume", "--headless"]][..]),
        ("lock", &[&["status"], &["run", "-f", "--headless"]]),
        ("team.yml", &[&["status"], &["run", "-f", "--headless"], &["team", "validate", ".cliq"]]),
    ] {
        let path = env.path(&format!(".cliq/{file}"));
        let aside = path.with_extension("aside");
        std::fs::rename(&path, &aside).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        for command in commands {
            let done = ended(env.spawn(*command)).says(file).says("it is a FIFO");
            assert_ne!(done.code, 0, "{command:?}");
        }
        std::fs::rename(&aside, &path).unwrap();
    }
}

#[test]
fn instructions_that_a_new_task_keeps() {
    let env = env(&format!("ok\n{HANDOFF}mkfifo {CHANNEL}/instructions.md; complete\n"));
    ended(env.spawn(["run", "--headless"])).expect(0);
    ended(env.spawn(["req", "-m", "next"])).expect(0);
}

#[test]
fn files_in_the_inbox() {
    let env = Env::bare();
    env.cliq(["init"]).expect(0);
    env.write("plan.md", "# P\n\nGoal.\n\n## Wave 1\n\n### Task 1: t\n\nDo.\n");
    env.cliq(["plan", "add", "plan.md", "--name", "p"]).expect(0);
    let inbox = env.path(".cliq/signals/inbox");
    std::fs::create_dir_all(&inbox).unwrap();
    let file = inbox.join("planner-finished-p");
    assert!(std::process::Command::new("mkfifo").arg(&file).status().unwrap().success());
    let mut daemon = env.spawn(["daemon", "run"]);
    let reason = inbox.join("failed/planner-finished-p.reason");
    let deadline = Instant::now() + BOUND;
    while !reason.exists() {
        assert!(Instant::now() < deadline, "the inbox hangs");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(std::fs::read_to_string(&reason).unwrap().contains("it is a FIFO"));
    ended(env.spawn(["daemon", "stop"])).expect(0);
    let _ = daemon.wait();
}
