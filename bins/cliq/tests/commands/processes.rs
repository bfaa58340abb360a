//! Processes of commands and agents: values of any size, programs that cannot be started, terminals, suspensions.

use cliq_testkit::env::{Env, done};
use rustix::process::{Pid, Signal, kill_process};

/// An agent that hands over `data.diff`: `$1` bytes.
fn reviewer(size: usize) -> String {
    format!(
        "ok\nhand save \"$(printf '{{\"version\":1,\"phase_type\":\"standard\",\"phase\":\"review\",\"agent\":\"x\",\"data\":{{\"diff\":\"'; head -c {size} /dev/zero | tr '\\0' x; printf '\"}}}}')\"\ncomplete\n"
    )
}

#[test]
fn commands_receive_values_of_any_size() {
    let workflow = "workflow:
  phases:
    - {name: review, type: standard, agent: x}
    - name: save
      type: exec
      depends_on: [review]
      commands: [{name: t, run: 'printf %s \"$(handoff.review.diff)\" > saved'}]
";
    for launcher in ["process", "tmux"] {
        if launcher == "tmux" && crate::commands::tmux::no_tmux() {
            return;
        }
        let env = Env::new(workflow, &[("x", &reviewer(1_000_000))]);
        env.cliq(["run", "--launcher", launcher]).expect(0);
        assert!(env.read("saved") == "x".repeat(1_000_000));
        let temporary = env.files(".cliq/messages").into_iter().find(|file| file.contains(".tmp-"));
        assert_eq!(temporary, None, "the value's file is removed");
    }
}

#[test]
fn nul_is_refused_by_the_name_of_its_value() {
    let hand = r#"ok
hand save '{"version":1,"phase_type":"standard","phase":"review","agent":"x","data":{"text":"a\u0000b"}}'
complete
"#;
    let workflow = "workflow:
  phases:
    - {name: review, type: standard, agent: x}
    - {name: save, type: exec, depends_on: [review], commands: [{name: t, run: 'touch started; echo $(handoff.review.text)'}]}
    - {name: other, type: exec, commands: [{name: t, run: 'until grep -q work_failed .cliq/journal.jsonl; do sleep 0.02; done; touch other'}]}
";
    let env = Env::new(workflow, &[("x", hand)]);
    let said = env.cliq(["run", "--headless"]).expect(3);
    said.says("command `t` cannot start: `$(handoff.review.text)` contains a NUL character at byte 1");
    assert!(!env.exists("started"));
    assert!(env.exists("other"), "an unrelated phase goes on");
}

#[test]
fn agent_that_cannot_be_started_is_a_failure_of_its_phase() {
    let workflow = "workflow:
  phases:
    - {name: a, type: standard, agent: x, retry: {attempts: 2, on: [exit]}}
    - {name: other, type: exec, commands: [{name: t, run: 'until grep -q phase_escalated .cliq/journal.jsonl; do sleep 0.02; done; touch other'}]}
";
    for launcher in ["process", "tmux"] {
        if launcher == "tmux" && crate::commands::tmux::no_tmux() {
            return;
        }
        let env = Env::new(workflow, &[("x", "#!/no/such/interpreter\n")]);
        let said = env.cliq(["run", "--launcher", launcher]).expect(3);
        said.says("phase `a`: agent x could not be started").says("interpreter that the first line of");
        let journal = env.read(".cliq/journal.jsonl");
        assert!(journal.contains("retry_scheduled"), "{launcher}: {journal}");
        assert!(env.exists("other"), "an unrelated phase goes on");
    }
}

#[test]
fn command_that_cannot_be_started_is_a_failed_command() {
    let workflow = "workflow:
  phases:
    - name: a
      type: exec
      commands:
        - {name: large, run: '{LARGE}', escalate_on_fail: false}
        - {name: next, run: 'touch next'}
";
    for launcher in ["process", "tmux"] {
        if launcher == "tmux" && crate::commands::tmux::no_tmux() {
            return;
        }
        // A script is one argument, which the system limits to 128 KiB.
        let env = Env::new(&workflow.replace("{LARGE}", &format!("true {}", "x".repeat(140_000))), &[]);
        env.cliq(["run", "--launcher", launcher]).expect(0);
        assert!(env.exists("next"), "{launcher}: the phase goes on");
        let results = env.read(".cliq/signals/a_command_results.json");
        assert!(results.contains("larger than the system allows"), "{launcher}: {results}");
    }
}

#[test]
fn command_that_ended_while_cliq_was_suspended_did_not_time_out() {
    let workflow = "workflow:
  phases:
    - {name: c, type: exec, timeout: 5s, commands: [{name: t, run: 'touch command; until [ -f go ]; do sleep 0.02; done'}]}
    - {name: a, type: standard, agent: x, timeout: 5s}
";
    let env =
        Env::new(workflow, &[("x", "ok\ntouch agent\nuntil [ -f go ]; do sleep 0.02; done\ncomplete\n")]);
    let run = env.spawn(["run", "--headless"]);
    env.wait_for("both", || env.exists("command") && env.exists("agent"));
    let orchestrator = Pid::from_raw(run.id() as i32).unwrap();
    kill_process(orchestrator, Signal::STOP).unwrap();
    env.write("go", "");
    // After the timeouts, also on a slow machine.
    std::thread::sleep(std::time::Duration::from_millis(6500));
    kill_process(orchestrator, Signal::CONT).unwrap();
    done(&run.wait_with_output().unwrap()).expect(0).says("COMPLETED");
}
