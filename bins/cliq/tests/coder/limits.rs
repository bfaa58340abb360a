//! Limits of a loop: budgets, turns, context; and what changes its course: steering, bad calls, selections of tools.

use cliq_scripted_model::{Behavior, RecordedRequest};
use serde_json::{Value, json};

use crate::world::{APIS, TEAM, World, call, calls, says, script};

/// A model that never ends by itself.
fn endless() -> Value {
    script(&[calls("Once more.", &[call("run_command", json!({"command": "echo x >> lines"}))])])
}

fn lines(world: &World) -> usize {
    world.env.read("lines").lines().count()
}

#[test]
fn a_budget_stops_a_loop_within_one_reply() {
    for (agent, _) in APIS {
        let world = World::new(agent, TEAM, &endless(), Behavior::default());
        // The last replies are an answer without tools, unless they exceed the budget.
        let said = world.env.cliq(["run", "--headless", "--budget-tokens", "9000"]);
        assert!(matches!(said.code, 0 | 3), "{}{}", said.stdout, said.stderr);
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
fn a_limit_of_turns_leads_to_a_handoff() {
    // The server goes on with calls: a reply without tools is demanded, and its text is the answer.
    let world = World::new("openai-api", TEAM, &endless(), Behavior::default());
    world.env.cliq(["settings", "set", "agents.openai-api.max_turns", "4"]).expect(0);
    world.env.cliq(["run", "--headless"]).expect(0);
    assert_eq!(lines(&world), 3);
    let requests = world.model.requests();
    assert_eq!(requests.len(), 4);
    assert_eq!(
        (&requests[3].body["tool_choice"], &requests[2].body["tool_choice"]),
        (&json!("none"), &Value::Null)
    );
    assert!(requests[3].body.to_string().contains("limit of 4 replies"));
    assert_eq!(world.env.read_json(".cliq/channels/work--after/handoff.json")["text"], "Once more.");
}

#[test]
fn the_context_stays_below_its_limit() {
    for (agent, _) in APIS {
        let big = call("run_command", json!({"command": "seq 1 3000; echo x >> lines"}));
        let step = |n: usize| {
            let mut reply = calls(&format!("Step {n}."), std::slice::from_ref(&big));
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
    // The script goes by the number of replies, which a summary makes small again: the run may end either way.
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
    let big = call("run_command", json!({"command": "seq 1 5000; echo x >> lines"}));
    let mut replies: Vec<Value> = (0..8).map(|_| calls("", std::slice::from_ref(&big))).collect();
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
        .map(|_| {
            let mut reply = calls("", &[call("run_command", json!({"command": "echo x >> lines"}))]);
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
        (0, "unknown field `file`, expected one of `path`"),
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
    assert_eq!(offered(1), ["read_file", "list_files", "search", "report_progress"]);
    assert_eq!(offered(2), [""; 0]);
    assert_eq!(offered(3), ["read_file", "list_files", "search", "report_progress"]);
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
        world.env.write("docs/dot.png", "not really a picture");
        world.env.cliq(["req", "-m", "Say what ![the dot](docs/dot.png) shows."]).expect(0);
        world.env.cliq(["settings", "set", &format!("agents.{agent}.images"), "true"]).expect(0);
        world.env.cliq(["run", "--headless"]).expect(0);
        let body = world.model.requests()[0].body.to_string();
        assert!(
            body.contains("bm90IHJlYWxseSBhIHBpY3R1cmU=") && body.contains("image/png"),
            "{agent}: {body}"
        );
    }
}
