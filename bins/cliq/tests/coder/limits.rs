//! Limits of a loop: budgets, turns, context; and what changes its course: steering, bad calls, selections of tools.

use cliq_scripted_model::{Behavior, RecordedRequest};
use serde_json::{Value, json};

use crate::coder::world::{APIS, TEAM, World, call, calls, says, script};

/// A model that never ends by itself.
fn endless() -> Value {
    // Equal calls with equal results would be noticed as a repetition.
    let step = |n: usize| {
        calls("Once more.", &[call("run_command", json!({"command": format!("echo x >> lines # {n}")}))])
    };
    script(&(0..400).map(step).collect::<Vec<_>>())
}

fn lines(world: &World) -> usize {
    world.env.read("lines").lines().count()
}

#[test]
fn a_budget_stops_a_loop_within_one_reply() {
    for (agent, _) in APIS {
        let world = World::new(agent, TEAM, &endless(), Behavior::default());
        world.env.cliq(["run", "--headless", "--budget-tokens", "9000"]).expect(3).says("budget");
        let status = world.env.cliq(["status", "--json"]).json();
        let work = status["phases"].as_array().unwrap().iter().find(|phase| phase["name"] == "work").unwrap();
        assert_eq!(work["limited"], json!({"limit": "budget.tokens", "value": 9000}), "{work}");
        let used = world.env.cliq(["status", "--json"]).json()["usage"].clone();
        let used = used["tokens_in"].as_u64().unwrap() + used["tokens_out"].as_u64().unwrap();
        let largest = world.model.requests().iter().map(|request| request.tokens_in).max().unwrap() + 100;
        assert!(
            used > 3000 && used < 9000 + largest,
            "{used} of 9000, and the largest request had {largest}"
        );
    }
}

#[test]
fn limit_of_turns_escalates_with_a_partial_handoff_and_a_larger_one_completes() {
    // The server goes on with calls, although a reply without tools is demanded: it is told, and the text of its last reply stays.
    let mut replies: Vec<Value> = endless()["scenes"][0]["replies"].as_array().unwrap()[..8].to_vec();
    replies.push(says("All is done."));
    // A limit is not retried.
    let team = TEAM.replace("agent: AGENT}", "agent: AGENT, retry: {attempts: 3}}");
    let world = World::new("openai-api", &team, &script(&replies), Behavior::default());
    world.env.cliq(["settings", "set", "agents.openai-api.max_turns", "4"]).expect(0);
    let said =
        world.env.cliq(["run", "--headless"]).expect(3).says("stopped at max_turns (4): partial handoff");
    assert!(said.stdout.contains("escalated at max_turns (4)"), "{}", said.stdout);
    assert_eq!(lines(&world), 3);
    let requests = world.model.requests();
    assert_eq!(requests.len(), 5);
    assert_eq!(
        (&requests[3].body["tool_choice"], &requests[2].body["tool_choice"]),
        (&json!("none"), &Value::Null)
    );
    assert!(requests[3].body.to_string().contains("limit of 4 replies"));
    let limited = json!({"limit": "max_turns", "value": 4});
    let handoff = world.env.read_json(".cliq/channels/work--after/handoff.json");
    assert_eq!((&handoff["text"], &handoff["limited"]), (&json!("Once more."), &limited));
    assert!(
        world.env.read(".cliq/channels/work--after/handoff.md").contains("Partial: stopped at max_turns (4)")
    );
    let phases = || world.env.cliq(["status", "--json"]).json()["phases"].as_array().unwrap().clone();
    assert_eq!(phases()[0]["limited"], limited);
    world.env.cliq(["explain"]).says("stopped at max_turns (4)");

    // The same limit says so at once.
    world.env.cliq(["run", "--headless", "--resume"]).expect(3).says("stopped at max_turns (4)");
    assert_eq!(world.model.requests().len(), 5);
    // A larger one goes on in the same conversation.
    world.env.cliq(["settings", "set", "agents.openai-api.max_turns", "20"]).expect(0);
    world.env.cliq(["run", "--headless", "--resume"]).expect(0);
    let requests = world.model.requests();
    let last = requests.last().unwrap().body.to_string();
    assert!(last.contains("was raised") && last.contains("limit of 4 replies"), "{last}");
    let handoff = world.env.read_json(".cliq/channels/work--after/handoff.json");
    assert_eq!((&handoff["text"], &handoff["limited"]), (&json!("All is done."), &Value::Null));
    assert!(phases().iter().all(|phase| phase["limited"].is_null()));
}

#[test]
fn limited_gate_gives_no_verdict() {
    let team = "workflow:
  phases:
    - {name: work, type: exec, commands: [{name: c, run: 'true'}]}
    - {name: review, type: gate, depends_on: [work], agent: AGENT, agent_tools: full}
";
    // The reply that the limit demands looks like a verdict.
    let look = |n: usize| calls("PASS", &[call("run_command", json!({"command": format!("echo {n}")}))]);
    let replies: Vec<Value> = (0..4).map(look).chain([says("PASS: all is well")]).collect();
    let world = World::new("claude-api", team, &script(&replies), Behavior::default());
    world.env.cliq(["settings", "set", "agents.claude-api.max_turns", "2"]).expect(0);
    world.env.cliq(["run", "--headless"]).expect(3).says("stopped at max_turns (2): no verdict");
    assert!(!world.env.read(".cliq/journal.jsonl").contains("\"type\":\"verdict\""));
    world.env.cliq(["settings", "set", "agents.claude-api.max_turns", "20"]).expect(0);
    world.env.cliq(["run", "--headless", "--resume"]).expect(0).says("all is well");
}

#[test]
fn cut_reply_is_continued_and_completes_only_with_its_end() {
    let cut = |text: &str| json!({"text": text, "is_cut_off": true});
    for (agent, _) in APIS {
        let world = World::new(
            agent,
            TEAM,
            &script(&[cut("The answer is fo"), says("rty-two.")]),
            Behavior::default(),
        );
        world.env.cliq(["run", "--headless"]).expect(0);
        let handoff = world.env.read_json(".cliq/channels/work--after/handoff.json");
        assert_eq!(handoff["text"], "The answer is forty-two.", "{agent}");
    }
    // Cut off again, it is a failure, and no result after `--resume` either.
    let world = World::new("openai-api", TEAM, &script(&[cut("The answer is fo")]), Behavior::default());
    world.env.cliq(["run", "--headless"]).expect(3).says("still cut off after its continuation");
    assert_eq!(world.model.requests().len(), 2);
    world.env.cliq(["run", "--headless", "--resume"]).expect(3).says("still cut off after its continuation");
    assert_eq!(world.model.requests().len(), 4);
    assert!(!world.env.exists(".cliq/channels/work--after/handoff.json"));
}

#[test]
fn calls_that_repeat_with_the_same_result_are_stopped() {
    let script =
        script(&[calls("Again.", &[call("edit_file", json!({"path": "gone", "old": "a", "new": "b"}))])]);
    let world = World::new("gemini-api", TEAM, &script, Behavior::default());
    world
        .env
        .cliq(["run", "--headless"])
        .expect(3)
        .says("`edit_file` with the same arguments and the same result 5 times");
    assert_eq!(world.model.requests().len(), 5);
}

#[test]
fn context_that_cannot_be_kept_is_named_as_the_limit() {
    // The task alone is longer than what the server takes.
    let behavior = Behavior { context_tokens: Some(300), ..Behavior::default() };
    let world = World::new("openai-api", TEAM, &script(&[says("Done.")]), behavior);
    world.env.cliq(["req", "-m", &"Write the greeting. ".repeat(100)]).expect(0);
    world.env.cliq(["run", "--headless"]).expect(3).says("stopped at context_tokens (");
    // No request is sent again that is not shorter.
    assert_eq!(world.model.requests().len(), 1);
}

#[test]
fn the_context_stays_below_its_limit() {
    for (agent, _) in APIS {
        let step = |n: usize| {
            let big = call("run_command", json!({"command": format!("seq 1 3000; echo x >> lines # {n}")}));
            let mut reply = calls(&format!("Step {n}."), &[big]);
            reply["thinking"] = format!("Thought {n}.").into();
            reply
        };
        let mut replies: Vec<Value> = (0..40).map(step).collect();
        replies.push(says("Done."));
        let behavior = Behavior { context_tokens: Some(16_000), binds_thinking: true, ..Behavior::default() };
        let world = World::new(agent, TEAM, &script(&replies), behavior);
        world.env.cliq(["settings", "set", &format!("agents.{agent}.context_tokens"), "16000"]).expect(0);
        world.env.cliq(["run", "--headless"]).expect(0);
        assert_eq!(lines(&world), 40);
        let requests = world.model.requests();
        let largest = requests.iter().map(|request| request.tokens_in).max().unwrap();
        assert!(
            largest <= 16_000 && requests.len() == 41,
            "{agent}: {largest} in {} requests",
            requests.len()
        );
        assert!(requests.last().unwrap().body.to_string().contains("[result removed to save space"));
    }
}

#[test]
fn a_conversation_that_is_too_long_is_summarized() {
    // Arguments stay in the conversation: only a summary makes room.
    let write = |n: usize| {
        calls(
            "",
            &[call("write_file", json!({"path": format!("{n}.txt"), "content": "word ".repeat(2_000)}))],
        )
    };
    let mut replies: Vec<Value> = (0..6).map(write).collect();
    replies.push(says("I have written six files; nothing is left."));
    let world = World::new("claude-api", TEAM, &script(&replies), Behavior::default());
    world.env.cliq(["settings", "set", "agents.claude-api.context_tokens", "16000"]).expect(0);
    // The script counts replies, and a summary resets the count: the run may end either way.
    let _ = world.env.cliq(["run", "--headless"]);
    let asked = world.model.requests();
    let of_summary: Vec<&RecordedRequest> = asked
        .iter()
        .filter(|request| request.body.to_string().contains("Summarize it for yourself"))
        .collect();
    assert!(!of_summary.is_empty() && of_summary[0].body["tool_choice"]["type"] == "none");
    assert!(asked.iter().all(|request| request.tokens_in <= 16_000));
    assert!(world.env.exists("1.txt"));
}

#[test]
fn a_refusal_as_too_long_shortens_the_conversation() {
    // The server has less context than the settings say.
    let step = |n: usize| {
        calls("", &[call("run_command", json!({"command": format!("seq 1 5000; echo x >> lines # {n}")}))])
    };
    let mut replies: Vec<Value> = (0..8).map(step).collect();
    replies.push(says("Done."));
    let behavior = Behavior { context_tokens: Some(16_000), ..Behavior::default() };
    let world = World::new("openai-api", TEAM, &script(&replies), behavior);
    world.env.cliq(["settings", "set", "agents.openai-api.context_tokens", "60000"]).expect(0);
    world.env.cliq(["run", "--headless"]).expect(0);
    assert_eq!(lines(&world), 8);
}

#[test]
fn steering_changes_the_next_turn() {
    let mut replies: Vec<Value> = (0..12)
        .map(|n| {
            let mut reply =
                calls("", &[call("run_command", json!({"command": format!("echo x >> lines # {n}")}))]);
            reply["delay_ms"] = 150.into();
            reply
        })
        .collect();
    replies.push(says("Done."));
    let world = World::new("claude-api", TEAM, &script(&replies), Behavior::default());
    let mut run = world.env.spawn(["run", "--headless"]);
    world.env.wait_for("the loop works", || world.env.has_text("lines"));
    world.env.cliq(["steer", "Greet Ana too."]).expect(0);
    let before = world.model.requests().len();
    assert_eq!(run.wait().unwrap().code(), Some(0));
    let requests = world.model.requests();
    let first =
        requests.iter().position(|request| request.body.to_string().contains("Greet Ana too.")).unwrap();
    assert!(first <= before + 1, "request {first}, and there were {before}");
    let text = requests[first].body.to_string();
    assert!(text.contains("adds to the task and does not replace it"), "{text}");
    let journal = world.env.read(".cliq/journal.jsonl");
    assert_eq!(journal.matches("steering_delivered").count(), 1);
}

#[test]
fn bad_calls_are_tool_errors() {
    let world = World::new(
        "claude-api",
        TEAM,
        &script(&[
            calls(
                "",
                &[
                    call("read_file", json!({"file": "x"})),
                    call("bash", json!({"command": "ls"})),
                    call("edit_file", json!({"path": "gone", "old": "a", "new": "b"})),
                ],
            ),
            says("Done."),
        ]),
        Behavior::default(),
    );
    world.env.cliq(["run", "--headless"]).expect(0);
    let results = world.results("work.1");
    assert!(results.iter().all(|(_, is_error)| *is_error), "{results:?}");
    for (n, part) in [
        (0, "missing field `path`; it has the arguments: path, start_line, end_line"),
        (1, "there is no tool `bash`; there are: read_file"),
        (2, "no such file"),
    ] {
        assert!(results[n].0.contains(part), "{}", results[n].0);
    }
}

#[test]
fn phases_and_settings_choose_tools() {
    let team = "workflow:
  phases:
    - {name: work, type: standard, agent: AGENT, agent_tools: [read_file, search]}
    - {name: free, type: standard, agent: AGENT, depends_on: [work]}
    - {name: none, type: standard, agent: AGENT, depends_on: [free], agent_tools: none}
    - {name: gate, type: gate, agent: AGENT, depends_on: [none]}
";
    let world = World::new("openai-api", team, &script(&[says("PASS: good")]), Behavior::default());
    world.env.cliq(["settings", "set", "agents.openai-api.tools", "read"]).expect(0);
    world.env.cliq(["run", "--headless"]).expect(0);
    let offered = |n: usize| {
        let tools = world.model.requests()[n].body["tools"].as_array().cloned().unwrap_or_default();
        tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(offered(0), ["read_file", "search"]);
    assert_eq!(offered(1), ["read_file", "list_files", "search", "report_progress", "todo"]);
    assert_eq!(offered(2), [""; 0]);
    assert_eq!(offered(3), ["read_file", "list_files", "search", "report_progress", "todo", "give_verdict"]);
    world
        .env
        .cliq(["settings", "set", "agents.openai-api.tools", "everything"])
        .expect(2)
        .says("`none`, `read`, `full`");
}

#[test]
fn images_of_a_task_are_sent() {
    for (agent, _) in APIS {
        let world = World::new(agent, TEAM, &script(&[says("A red dot.")]), Behavior::default());
        world.env.write("docs/dot.png", "");
        std::fs::write(world.env.path("docs/dot.png"), b"\x89PNG\r\n\x1a\nIEND").unwrap();
        world.env.cliq(["req", "-m", "Say what ![the dot](docs/dot.png) shows."]).expect(0);
        world.env.cliq(["settings", "set", &format!("agents.{agent}.images"), "true"]).expect(0);
        world.env.cliq(["run", "--headless"]).expect(0);
        let body = world.model.requests()[0].body.to_string();
        assert!(body.contains("iVBORw0KGgpJRU5E") && body.contains("image/png"), "{agent}: {body}");
    }
}
