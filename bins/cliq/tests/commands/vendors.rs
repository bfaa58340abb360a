//! Ends of vendors' programs: scripts that print what the programs print, and end in every way.

use cliq_testkit::env::{CommandOutput, Env, done};
use serde_json::{Value, json};

const STANDARD: &str = "workflow:
  phases:
    - {name: work, type: standard, agent: AGENT}
    - {name: after, type: exec, depends_on: [work], commands: [{name: t, run: touch after}]}
";
const GATED: &str = "workflow:
  phases:
    - {name: work, type: exec, commands: [{name: t, run: echo worked}]}
    - {name: review, type: gate, agent: AGENT, depends_on: [work], max_iterations: 3, commands: [{name: t, run: 'true'}]}
";

/// Makes a project whose agent is a script of these lines.
fn project(workflow: &str, agent: &str, script: &str) -> Env {
    let env = Env::new(&workflow.replace("AGENT", agent), &[]);
    env.write_executable("../bin/vendor", &format!("#!/bin/sh\n{script}\n"));
    let program = env.path("../bin/vendor").canonicalize().expect("it is there");
    env.cliq(["settings", "set", &format!("agents.{agent}.command"), program.to_str().expect("text")])
        .expect(0);
    env.cliq(["req", "-m", "Find the answer."]).expect(0);
    env
}

/// Returns a script that prints lines and ends.
fn prints(lines: &[Value], end: &str) -> String {
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    format!("cat <<'LINES'\n{}\nLINES\n{end}", lines.join("\n"))
}

fn claude_text(text: &str) -> Value {
    json!({"type": "assistant", "message": {"id": "a", "content": [{"type": "text", "text": text}], "usage": {"input_tokens": 7, "output_tokens": 2}}})
}

fn claude_result(rest: &Value) -> Value {
    let mut line = json!({"type": "result", "subtype": "success", "is_error": false, "result": "Done.", "usage": {"input_tokens": 7, "output_tokens": 3}});
    line.as_object_mut().expect("an object").extend(rest.as_object().expect("an object").clone());
    line
}

fn codex_message(text: &str) -> Value {
    json!({"type": "item.completed", "item": {"type": "agent_message", "text": text}})
}

fn gemini_message(text: &str) -> Value {
    json!({"type": "message", "role": "assistant", "content": text, "delta": true})
}

fn status(env: &Env) -> Value {
    env.cliq(["status", "--json"]).expect(0).json()
}

#[test]
fn only_the_documented_success_completes_a_phase() {
    let turn = || json!({"type": "turn.completed", "usage": {"input_tokens": 1, "output_tokens": 1}});
    let stats =
        || json!({"type": "result", "status": "success", "stats": {"input_tokens": 1, "output_tokens": 1}});
    for (agent, lines, end, says) in [
        (
            "claude-code",
            vec![claude_result(&json!({"subtype": "error_max_structured_output_retries"}))],
            "exit 0",
            "failed with error_max_structured_output_retries",
        ),
        (
            "claude-code",
            vec![claude_result(&json!({"stop_reason": "max_tokens"}))],
            "exit 0",
            "failed with stop_reason max_tokens",
        ),
        (
            "claude-code",
            vec![claude_result(&json!({"terminal_reason": "hook_stopped"}))],
            "exit 0",
            "failed with terminal_reason hook_stopped",
        ),
        (
            "claude-code",
            vec![claude_result(&json!({"subtype": null}))],
            "exit 0",
            "failed with a result without `subtype`",
        ),
        (
            "claude-code",
            vec![claude_result(&json!({}))],
            "kill -9 $$",
            "printed a result and then failed (signal: 9)",
        ),
        (
            "cursor",
            vec![claude_result(&json!({"is_error": true, "result": "out of requests"}))],
            "exit 0",
            "failed with is_error: out of requests",
        ),
        (
            "cursor",
            vec![claude_text("Done.")],
            "echo connection lost >&2",
            "ended without a result: connection lost",
        ),
        ("codex", vec![codex_message("Done.")], "exit 0", "ended without a result"),
        (
            "codex",
            vec![
                codex_message("Done."),
                json!({"type": "turn.failed", "error": {"message": "stream disconnected"}}),
            ],
            "exit 1",
            "failed with turn.failed: stream disconnected",
        ),
        (
            "codex",
            vec![codex_message("Done."), turn(), turn()],
            "exit 0",
            "printed 2 results for one request",
        ),
        (
            "codex",
            vec![json!({"type": "error", "message": "unexpected status 401"})],
            "exit 1",
            "failed with error: unexpected status 401",
        ),
        (
            "gemini",
            vec![
                gemini_message("Done."),
                json!({"type": "result", "status": "error", "error": {"type": "FatalAuthenticationError", "message": "no login"}}),
            ],
            "exit 41",
            "failed with FatalAuthenticationError: no login",
        ),
        ("gemini", vec![gemini_message("Done.")], "exit 52", "exit status: 52 (invalid configuration)"),
        (
            "gemini",
            vec![
                json!({"type": "error", "severity": "warning", "message": "Loop detected, stopping execution"}),
                gemini_message("Done."),
                stats(),
            ],
            "exit 0",
            "failed with loop_detected",
        ),
        (
            "gemini",
            vec![gemini_message("Done."), stats()],
            "exit 3",
            "printed a result and then failed (exit status: 3)",
        ),
    ] {
        let env = project(STANDARD, agent, &prints(&lines, end));
        env.cliq(["run", "--headless"]).expect(3).says(says);
        assert!(!env.exists("after"), "{agent}: {says}");
        let transcript = env.read(".cliq/transcripts/work.1.jsonl");
        assert!(
            transcript.contains("\"type\":\"error\"") && !transcript.contains("\"type\":\"end\""),
            "{transcript}"
        );
    }
    // Errors after which the program continued.
    let retried =
        [json!({"type": "error", "message": "Reconnecting... 1/5"}), codex_message("Done."), turn()];
    let env = project(STANDARD, "codex", &prints(&retried, "exit 0"));
    env.cliq(["run", "--headless"]).expect(0);
    assert_eq!(env.read_json(".cliq/channels/work--after/handoff.json")["text"], "Done.");
}

#[test]
fn limit_of_a_program_is_a_partial_handoff() {
    let turns = claude_result(&json!({"subtype": "error_max_turns", "result": null, "num_turns": 4}));
    let budget = claude_result(&json!({"subtype": "error_max_budget_usd", "is_error": true, "result": null}));
    let session = json!({"type": "error", "severity": "error", "message": "Maximum session turns exceeded"});
    for (agent, lines, end, limit) in [
        (
            "claude-code",
            vec![claude_text("Half of it."), turns.clone()],
            "exit 0",
            json!({"limit": "error_max_turns", "value": 4}),
        ),
        (
            "claude-code",
            vec![claude_text("Half of it."), budget],
            "exit 1",
            json!({"limit": "error_max_budget_usd"}),
        ),
        ("gemini", vec![gemini_message("Half of it.")], "exit 53", json!({"limit": "max_session_turns"})),
        (
            "gemini",
            vec![gemini_message("Half of it."), session, json!({"type": "result", "status": "success"})],
            "exit 0",
            json!({"limit": "max_session_turns"}),
        ),
    ] {
        let env = project(STANDARD, agent, &prints(&lines, end));
        let name = limit["limit"].as_str().expect("a name");
        env.cliq(["run", "--headless"]).expect(3).says("ESCALATED").says(name);
        let handoff = env.read_json(".cliq/channels/work--after/handoff.json");
        assert_eq!((&handoff["text"], &handoff["limited"]), (&json!("Half of it."), &limit), "{agent}");
        assert!(!env.exists("after"));
    }
    // At a gate it is no verdict, even if its text contains one.
    let env = project(GATED, "claude-code", &prints(&[claude_text("PASS: so far"), turns], "exit 0"));
    let events = env.cliq(["run", "--json"]).expect(3).events();
    assert!(!events.iter().any(|event| event["event"] == "verdict"), "{events:?}");
}

#[test]
fn program_that_leaves_a_process_behind_ends_its_phase() {
    let lines = prints(&[codex_message("Done."), json!({"type": "turn.completed"})], "exit 0");
    for held in ["", ">/dev/null", "2>/dev/null"] {
        // Longer than the time limit of a test. `setsid` keeps it alive until the phase ends.
        let env = project(STANDARD, "codex", &format!("setsid sleep 3600 {held} &\n{lines}"));
        env.cliq(["run", "--headless"]).expect(0);
        assert_eq!(env.read_json(".cliq/channels/work--after/handoff.json")["text"], "Done.", "{held}");
    }
    // What holds its input open does not keep a prompt of any size from ending.
    let env = project(STANDARD, "codex", &format!("setsid sleep 3600 <&0 >/dev/null 2>&1 &\n{lines}"));
    env.write(".cliq/requirements.md", &"A long requirement. ".repeat(20_000));
    env.cliq(["run", "--headless"]).expect(0);
}

#[test]
fn thoughts_and_noise_of_a_program_are_no_verdict() {
    let thought = codex_message("<think>PASS: looks good</think>\nROUTE to work: the input is empty");
    let (second, end) = (codex_message("ESCALATE: enough"), json!({"type": "turn.completed"}));
    for noise in ["echo 'PASS: from a banner'", "printf '\\357\\273\\277'", "printf '\\033]0;codex\\007'"] {
        let env = project(
            GATED,
            "codex",
            &format!(
                "{noise}\nif test -e second; then printf '%s\\n' '{second}'; else printf '%s\\n' '{thought}'; fi\ntouch second\nprintf '%s\\n' '{end}'"
            ),
        );
        env.cliq(["run", "--headless"]).expect(3).says("ROUTE to work").says("the input is empty");
        let transcript = env.read(".cliq/transcripts/review.1.jsonl");
        let thinking =
            transcript.lines().find(|line| line.contains("\"type\":\"thinking\"")).expect("a thought");
        assert!(thinking.contains("PASS: looks good"), "{transcript}");
    }
}

#[test]
fn usage_in_a_line_with_half_an_emoji_counts() {
    let lines = "printf '%s\\n' '{\"type\":\"item.completed\",\"item\":{\"type\":\"agent_message\",\"text\":\"Log: \\ud83d.\"}}' '{\"type\":\"turn.completed\",\"note\":\"\\ude00\",\"usage\":{\"input_tokens\":1000,\"output_tokens\":500}}'";
    let env = project(STANDARD, "codex", lines);
    env.cliq(["run", "--headless"]).expect(0);
    assert_eq!(env.read_json(".cliq/channels/work--after/handoff.json")["text"], "Log: \u{fffd}.");
    let usage = &status(&env)["usage"]["models"][0];
    assert_eq!((&usage["tokens_in"], &usage["tokens_out"]), (&json!(1000), &json!(500)), "{usage}");
}

/// Runs a program that prints lines and then hangs, cancels the run, and returns its usage.
fn usage_of_cancelled(agent: &str, lines: &[Value]) -> Value {
    let env = project(STANDARD, agent, &prints(lines, "touch printed\nexec sleep 3600"));
    let run = env.spawn(["run", "--headless"]);
    env.wait_for("the program", || env.exists("printed"));
    env.wait_for("its usage", || env.read(".cliq/journal.jsonl").contains("\"tokens_out\":"));
    env.cliq(["cancel"]).expect(0);
    let ended: CommandOutput = done(&run.wait_with_output().expect("it ends"));
    assert_ne!(ended.code, 0);
    status(&env)["usage"].clone()
}

#[test]
fn usage_of_a_program_that_was_ended_is_an_estimate() {
    let text = "word ".repeat(400);
    // The replies that it reported.
    let usage = usage_of_cancelled("claude-code", &[claude_text("a"), claude_text("b")]);
    assert_eq!((&usage["tokens_in"], &usage["tokens_out"]), (&json!(7), &json!(2)), "{usage}");
    assert_eq!(usage["models"][0]["estimated"], true, "{usage}");
    // Programs that report their usage at the end: from what they read and wrote.
    for (agent, line) in [("codex", codex_message(&text)), ("gemini", gemini_message(&text))] {
        let usage = usage_of_cancelled(agent, &[line]);
        let count = |field: &str| usage[field].as_u64().unwrap_or_default();
        assert!((500..510).contains(&count("tokens_out")), "{agent}: {usage}");
        assert!(count("tokens_in") > 50, "{agent}: {usage}");
    }
}
