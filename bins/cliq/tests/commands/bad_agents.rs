//! Agents that do everything wrong. Each run ends in a clear status, with the reason, and with no process left over.

use cliq_testkit::env::{CommandOutput, Env};

fn one(script: &str, extra: &str) -> Env {
    let workflow =
        format!("workflow:\n  phases:\n    - name: worker\n      type: standard\n      agent: bad\n{extra}");
    Env::new(&workflow, &[("bad", script)])
}

#[track_caller]
fn ends(env: &Env, code: i32, reason: &str) -> CommandOutput {
    let done = env.cliq(["run", "--headless"]).expect(code).says(reason);
    let status = env.read(".cliq/signals/_pipeline_status");
    assert_eq!(status, if code == 0 { "COMPLETED" } else { "ESCALATED" });
    assert_eq!(env.left_over(), Vec::<String>::new(), "processes are left over");
    assert!(env.read(".cliq/orchestrator.log").contains(reason));
    done
}

#[test]
fn garbage_in_the_signal_file() {
    let env = one(
        "head -c 3000 /dev/urandom >> \"$CLIQ_SIGNAL_FILE\"; printf '\\n{\"ts\":1}\\n[]\\n' >> \"$CLIQ_SIGNAL_FILE\"\n",
        "",
    );
    ends(&env, 3, "agent bad ended without a terminal message (exit status 0)")
        .says("is not a message and is skipped");
}

#[test]
fn garbage_among_good_messages_does_no_harm() {
    let env = one("ok\necho garbage >> \"$CLIQ_SIGNAL_FILE\"\nok\ncomplete\n", "");
    ends(&env, 0, "a second `ok`").says("is not a message and is skipped");
}

#[test]
fn nothing_at_all() {
    ends(&one("exit 0\n", ""), 3, "agent bad ended without a terminal message (exit status 0)");
}

/// `json.dumps` of Python writes a name in Latin-1 with a lone surrogate.
#[test]
fn messages_and_handoffs_with_half_a_character_count() {
    let team = "workflow:
  phases:
    - {name: a, type: standard, agent: x}
    - {name: b, type: exec, depends_on: [a], commands: [{name: t, run: 'printf %s \"$(handoff.a.file)\" > file'}]}
";
    let script = r#"ok
progress 'found caf\udce9'
hand b '{"version":1,"phase_type":"standard","phase":"a","agent":"x","data":{"file":"caf\udce9.txt"},"text":"\ud83d"}'
complete
"#;
    let env = Env::new(team, &[("x", script)]);
    let events = env.cliq(["run", "--json"]).expect(0).events();
    assert!(!events.iter().any(|event| event["event"] == "warning"), "{events:?}");
    assert!(events.iter().any(|event| event["message"] == "found caf\u{fffd}"), "{events:?}");
    assert_eq!(env.read("file"), "caf\u{fffd}.txt");
}

#[test]
fn dies_after_ok() {
    let env = one("ok\necho the disk is on fire >&2\nexit 1\n", "");
    ends(&env, 3, "agent bad ended without a terminal message (exit status 1)")
        .says("the disk is on fire")
        .says("cliq logs worker");
}

#[test]
fn is_killed() {
    ends(&one("ok\nkill -KILL $$\n", ""), 3, "agent bad ended without a terminal message (signal 9)");
}

#[test]
fn completes_without_ok() {
    ends(&one("complete\n", ""), 3, "`complete` before `ok`");
}

#[test]
fn reports_an_error() {
    let env = one("ok\nsay '\"status\":\"error\",\"error\":\"no model\"'\nexit 1\n", "");
    ends(&env, 3, "agent bad reports: no model");
}

#[test]
fn never_says_anything_and_ignores_term() {
    let env = one("ok\ntrap '' TERM\nwhile :; do sleep 1; done\n", "      timeout: 1s\n");
    ends(&env, 3, "it did not finish within 1 s");
}

#[test]
fn never_exits_after_completing() {
    let env = one("ok\ncomplete\nsleep 1000\n", "");
    ends(&env, 0, "agent bad did not exit within 5 s of its terminal message and was ended");
}

#[test]
fn fails_after_completing() {
    ends(&one("ok\ncomplete\nexit 4\n", ""), 0, "agent bad completed and then ended with exit status 4");
}

#[test]
fn completes_twice() {
    let env = one("ok\ncomplete\ncomplete\nsay '\"status\":\"error\",\"error\":\"late\"'\n", "");
    ends(&env, 0, "`complete` after the terminal message")
        .says("agent bad completed and then reported: late");
}

#[test]
fn floods_its_output() {
    let env = one("ok\nhead -c 1073741824 /dev/zero\necho the very end\ncomplete\n", "");
    ends(&env, 0, "worker: completed");
    let size = env.path(".cliq/logs/worker.1.log").metadata().unwrap().len();
    assert!((16 << 20..18 << 20).contains(&size), "{size}");
    let log = std::fs::read(env.path(".cliq/logs/worker.1.log")).unwrap();
    assert!(log.ends_with(b"the very end\n"));
    let note = b"bytes of output left out here";
    assert!(log.windows(note.len()).any(|w| w == note));
}

#[test]
fn leaves_children_behind() {
    // One in its group, one that ignores TERM, one that left the group; all hold its output open.
    let env = one(
        "ok\nsleep 1000 &\n(trap '' TERM; while :; do sleep 1; done) &\nsetsid sleep 1000 &\nsetsid sh -c 'trap \"\" TERM; while :; do sleep 1; done' &\nsleep 0.2\ncomplete\n",
        "",
    );
    ends(&env, 0, "that it left behind were ended");
}

#[test]
fn routes_to_an_unknown_phase() {
    let workflow = "workflow:
  phases:
    - name: work
      type: exec
      commands: [{name: t, run: 'true'}]
    - name: judge
      type: gate
      agent: bad
      depends_on: [work]
";
    let env = Env::new(
        workflow,
        &[(
            "bad",
            "ok\nprintf '%s' \"$message\" > message.$(ls message.* 2>/dev/null | wc -l | tr -d ' ')\nverdict '{\"outcome\":\"ROUTE\",\"target\":\"nobody\",\"reason\":\"x\"}'\n",
        )],
    );
    ends(&env, 3, "cannot route to `nobody`: this gate may route to work")
        .says("gave no valid verdict twice");
    assert!(!env.read("message.0").contains("rejected"));
    assert!(env.read("message.1").contains("\"rejected\": \"cannot route to `nobody`"));
}

#[test]
fn a_gate_without_a_verdict() {
    let workflow = "workflow:\n  phases:\n    - name: judge\n      type: gate\n      agent: bad\n";
    ends(&Env::new(workflow, &[("bad", "ok\ncomplete\n")]), 3, "the result of `complete` has no `verdict`");
}

#[test]
fn cannot_be_started() {
    let env = one("#!/no/such/interpreter\n", "");
    ends(&env, 3, "cannot start ");
}

#[test]
fn does_not_read_its_message() {
    ends(
        &one(
            &format!(
                "#!/bin/sh\nexec < /dev/null\n{}",
                "sig() { printf '{\"ts\":\"x\",\"version\":1,\"type\":\"phase\",\"status\":\"%s\"}\\n' $1 >> \"$CLIQ_SIGNAL_FILE\"; }\nsig ok\nsig complete\n"
            ),
            "",
        ),
        0,
        "worker: completed",
    );
}
