//! One table of behaviors for all APIs: each row is a test.

use cliq_scripted_model::Behavior;
use serde_json::{Value, json};

use crate::coder::world::{TEAM, World, call, calls, says, script};

/// Agents of the four APIs.
macro_rules! rows {
    ($($name:ident),* $(,)?) => {
        mod messages { $(#[test] fn $name() { super::$name("claude-api"); })* }
        mod chat_completions { $(#[test] fn $name() { super::$name("openai-api"); })* }
        mod responses { $(#[test] fn $name() { super::$name("responses"); })* }
        mod gemini { $(#[test] fn $name() { super::$name("gemini-api"); })* }
    };
}

rows! {
    answer_is_handed_over,
    calls_run_and_their_results_are_returned,
    thoughts_are_returned_as_they_came,
    role_is_an_instruction_of_the_system,
    usage_is_counted_with_its_cached_part,
    cut_answer_is_continued,
    reply_without_a_stream_is_read,
    broken_streams_are_requested_again,
    long_conversation_is_shortened,
    verdict_is_a_call,
    call_without_a_verdict_is_refused,
    verdicts_that_differ_are_refused,
    verdict_without_tools_has_a_schema,
    unusable_verdict_is_asked_for_with_a_schema,
    data_that_violate_the_schema_are_sent_back_once,
    parameters_of_phase_and_agent_are_sent,
}

const GATE: &str = "workflow:
  phases:
    - {name: work, type: exec, commands: [{name: c, run: 'true'}]}
    - {name: review, type: gate, agent: AGENT, depends_on: [work], route_to: [work], max_iterations: 1, agent_tools: TOOLS}
";

const OUTPUTS: &str = "workflow:
  phases:
    - name: work
      type: standard
      agent: AGENT
      agent_tools: TOOLS
      outputs: {schema: {type: object, required: [files], properties: {files: {type: array, items: {type: string}}}}}
    - {name: after, type: exec, depends_on: [work], commands: [{name: c, run: 'echo $(handoff.work.files) > files'}]}
";

fn world(agent: &str, replies: &[Value]) -> World {
    World::new(agent, TEAM, &script(replies), Behavior::default())
}

fn bodies(world: &World) -> Vec<Value> {
    world.model.requests().into_iter().map(|request| request.body).collect()
}

/// Texts and results of the last message or messages of a request.
fn tail(body: &Value) -> String {
    let list = ["messages", "input", "contents"].into_iter().find_map(|name| body[name].as_array());
    let list = list.expect("messages");
    list[list.len().saturating_sub(3)..].iter().map(Value::to_string).collect()
}

/// Schema that a reply was requested with.
fn schema(body: &Value) -> Value {
    let places = [
        "/output_config/format/schema",
        "/response_format/json_schema/schema",
        "/text/format/schema",
        "/generationConfig/responseJsonSchema",
    ];
    places.into_iter().find_map(|place| body.pointer(place)).cloned().unwrap_or_default()
}

fn answer_is_handed_over(agent: &str) {
    let world = world(agent, &[says("Greetings are **written**.")]);
    world.env.cliq(["run", "--headless"]).expect(0);
    let handoff = world.env.read(".cliq/channels/work--after/handoff.json");
    assert!(handoff.contains("Greetings are **written**."), "{handoff}");
    assert_eq!(bodies(&world).len(), 1);
}

fn calls_run_and_their_results_are_returned(agent: &str) {
    let write = |n: u32| call("write_file", json!({"path": format!("{n}.txt"), "content": format!("{n}\n")}));
    let read = |n: u32| call("read_file", json!({"path": format!("{n}.txt")}));
    let world = world(
        agent,
        &[calls("", &[write(1), write(2)]), calls("", &[read(2), read(1), read(3)]), says("Done.")],
    );
    world.env.cliq(["run", "--headless"]).expect(0);
    assert_eq!((world.env.read("1.txt"), world.env.read("2.txt")), ("1\n".to_owned(), "2\n".to_owned()));
    let last = tail(&bodies(&world)[2]);
    let place = |text: &str| last.find(text).unwrap_or_else(|| panic!("no {text}: {last}"));
    assert!(place("1\\t2") < place("1\\t1") && place("1\\t1") < place("cannot open 3.txt"), "{last}");
}

fn thoughts_are_returned_as_they_came(agent: &str) {
    let mut first = calls("I look.", &[call("list_files", json!({}))]);
    first["thinking"] = "Which files are there?".into();
    let world = world(agent, &[first, says("Done.")]);
    world.env.cliq(["run", "--headless"]).expect(0);
    let thought =
        world.transcript("work.1").into_iter().find(|entry| entry["type"] == "thinking").expect("a thought");
    assert_eq!(thought["text"], "Which files are there?");
    // Chat Completions have no place for thoughts.
    let is_returned = bodies(&world)[1].to_string().contains("signature-");
    assert_eq!(is_returned, agent != "openai-api");
}

fn role_is_an_instruction_of_the_system(agent: &str) {
    let world = world(agent, &[says("Done.")]);
    world.env.cliq(["run", "--headless"]).expect(0);
    let body = bodies(&world).remove(0);
    let (system, first) = match agent {
        "claude-api" => (&body["system"], &body["messages"][0]),
        "openai-api" => (&body["messages"][0], &body["messages"][1]),
        "responses" => (&body["instructions"], &body["input"][0]),
        _ => (&body["systemInstruction"], &body["contents"][0]),
    };
    let (system, first) = (system.to_string(), first.to_string());
    assert!(system.contains("You are work.") && system.contains("## Tools"), "{system}");
    assert!(first.contains("Write the greeting.") && !first.contains("You are work."), "{first}");
}

fn usage_is_counted_with_its_cached_part(agent: &str) {
    let world = world(agent, &[calls("", &[call("list_files", json!({}))]), says("Done.")]);
    world.env.cliq(["run", "--headless"]).expect(0);
    let requests = world.model.requests();
    let usage = world.env.cliq(["status", "--json"]).expect(0).json()["phases"][0]["usage"].clone();
    let sum = |of: fn(&cliq_scripted_model::RecordedRequest) -> u64| requests.iter().map(of).sum::<u64>();
    assert_eq!(usage["tokens_in"], sum(|request| request.tokens_in), "{usage}");
    assert_eq!(usage["tokens_cached"], sum(|request| request.tokens_cached), "{usage}");
    assert!(sum(|request| request.tokens_cached) > 0);
}

fn cut_answer_is_continued(agent: &str) {
    let cut = json!({"text": "The first ", "is_cut_off": true});
    let world = world(agent, &[cut, says("and the second.")]);
    world.env.cliq(["run", "--headless"]).expect(0);
    let handoff = world.env.read(".cliq/channels/work--after/handoff.json");
    assert!(handoff.contains("The first and the second."), "{handoff}");
}

fn reply_without_a_stream_is_read(agent: &str) {
    let behavior = Behavior { is_whole: true, ..Behavior::default() };
    let replies = script(&[calls("I look.", &[call("list_files", json!({}))]), says("Done.")]);
    let world = World::new(agent, TEAM, &replies, behavior);
    world.env.cliq(["run", "--headless"]).expect(0);
    assert_eq!(world.results("work.1").len(), 1);
}

fn broken_streams_are_requested_again(agent: &str) {
    let behavior = Behavior { cuts_streams: true, ..Behavior::default() };
    let replies = script(&[calls("I look.", &[call("list_files", json!({}))]), says("Done.")]);
    let world = World::new(agent, TEAM, &replies, behavior);
    world.env.cliq(["run", "--headless"]).expect(0);
    assert_eq!((bodies(&world).len(), world.results("work.1").len()), (4, 1));
}

fn long_conversation_is_shortened(agent: &str) {
    let behavior = Behavior { context_tokens: Some(7_000), ..Behavior::default() };
    let write = |n: u32| {
        let content = "many words\n".repeat(500);
        calls("", &[call("write_file", json!({"path": format!("{n}.txt"), "content": content}))])
    };
    let read = |n: u32| calls("", &[call("read_file", json!({"path": format!("{n}.txt")}))]);
    let replies = script(&[write(1), read(1), read(2), read(1), says("Done.")]);
    let world = World::new(agent, TEAM, &replies, behavior);
    world.env.cliq(["run", "--headless"]).expect(0);
    let lines = world.transcript("work.1");
    assert!(lines.iter().any(|line| line["is_too_long"] == true), "{lines:?}");
}

fn gate(agent: &str, tools: &str, replies: &[Value]) -> World {
    World::new(agent, &GATE.replace("TOOLS", tools), &script(replies), Behavior::default())
}

fn verdict_is_a_call(agent: &str) {
    let verdict = json!({"findings": "Nothing is missing.", "outcome": "PASS", "reason": "All is well.", "target": null});
    let world = gate(
        agent,
        "read",
        &[calls("", &[call("list_files", json!({}))]), calls("", &[call("give_verdict", verdict)])],
    );
    world.env.cliq(["run", "--headless"]).expect(0).says("All is well.");
    assert_eq!(bodies(&world).len(), 2, "the call ends the work");
    assert!(bodies(&world).iter().all(|body| schema(body).is_null()));
}

fn call_without_a_verdict_is_refused(agent: &str) {
    let wrong = json!({"findings": "", "outcome": "ROUTE", "reason": "Mend it.", "target": "nobody"});
    let right = json!({"findings": "", "outcome": "ESCALATE", "reason": "A person decides.", "target": null});
    let replies = [wrong, right].map(|verdict| calls("", &[call("give_verdict", verdict)]));
    let world = gate(agent, "read", &replies);
    world.env.cliq(["run", "--headless"]).expect(3).says("A person decides.");
    assert!(tail(&bodies(&world)[1]).contains("may route to: work"));
    // Wrong again, it is a failure: nothing that is unclear passes.
    let unclear = json!({"findings": "", "outcome": "PASS", "reason": "Good.", "target": "work"});
    let replies = [unclear.clone(), unclear].map(|verdict| calls("", &[call("give_verdict", verdict)]));
    let world = gate(agent, "read", &replies);
    world.env.cliq(["run", "--headless"]).expect(3).says("asked twice").says("a PASS has no target");
    assert_eq!(bodies(&world).len(), 2);
}

/// Two verdicts in one reply: neither is taken, and the model is asked once more.
fn verdicts_that_differ_are_refused(agent: &str) {
    let verdict = |outcome: &str| {
        let target = if outcome == "ROUTE" { json!("work") } else { Value::Null };
        call(
            "give_verdict",
            json!({"findings": "", "outcome": outcome, "reason": format!("Says {outcome}."), "target": target}),
        )
    };
    let both = calls("", &[verdict("PASS"), verdict("ROUTE")]);
    let world = gate(agent, "read", &[both.clone(), calls("", &[verdict("PASS")])]);
    world.env.cliq(["run", "--headless"]).expect(0).says("Says PASS.");
    assert!(bodies(&world)[1].to_string().contains("several calls of `give_verdict` that differ"));
    let world = gate(agent, "read", &[both.clone(), both]);
    world.env.cliq(["run", "--headless"]).expect(3).says("asked twice").says("that differ");
}

fn verdict_without_tools_has_a_schema(agent: &str) {
    let verdict = json!({"findings": "None.", "outcome": "PASS", "reason": "All is well.", "target": null});
    let world = gate(agent, "none", &[says(&verdict.to_string())]);
    world.env.cliq(["run", "--headless"]).expect(0).says("All is well.");
    let bodies = bodies(&world);
    // Each outcome has a schema, and a target belongs to ROUTE alone.
    let targets: Vec<Value> = schema(&bodies[0])["anyOf"]
        .as_array()
        .unwrap()
        .iter()
        .map(|outcome| outcome["properties"]["target"]["enum"].clone())
        .collect();
    assert_eq!(targets, [Value::Null, json!(["work"]), Value::Null], "{}", bodies[0]);
    assert_eq!(bodies.len(), 1);
}

fn unusable_verdict_is_asked_for_with_a_schema(agent: &str) {
    let verdict = json!({"findings": "", "outcome": "PASS", "reason": "All is well.", "target": null});
    let world = gate(agent, "read", &[says("It looks fine to me."), says(&verdict.to_string())]);
    world.env.cliq(["run", "--headless"]).expect(0).says("All is well.");
    let bodies = bodies(&world);
    assert_eq!((schema(&bodies[0]).is_null(), schema(&bodies[1]).is_object()), (true, true));
}

fn data_that_violate_the_schema_are_sent_back_once(agent: &str) {
    let object = |files: Value| says(&format!("Done.\n\n```json\n{}\n```", json!({"files": files})));
    let run = |replies: &[Value]| {
        World::new(agent, &OUTPUTS.replace("TOOLS", "read"), &script(replies), Behavior::default())
    };
    let mended = run(&[object(json!("a")), object(json!(["a"]))]);
    mended.env.cliq(["run", "--headless"]).expect(0);
    assert_eq!(mended.env.read("files").trim(), r#"["a"]"#);
    assert!(tail(&bodies(&mended)[1]).contains("violates the schema"));
    let failed = run(&[object(json!("a"))]);
    failed.env.cliq(["run", "--headless"]).expect(3).says("asked twice").says("/files");
    assert_eq!(bodies(&failed).len(), 2);
    let called = run(&[calls("", &[call("hand_over", json!({"text": "Done.", "data": {"files": ["b"]}}))])]);
    called.env.cliq(["run", "--headless"]).expect(0);
    assert_eq!(called.env.read("files").trim(), r#"["b"]"#);
}

fn parameters_of_phase_and_agent_are_sent(agent: &str) {
    let team = "workflow:
  phases:
    - {name: work, type: standard, agent: AGENT, effort: high, temperature: 0.5, extra_body: {top_k: 7}}
    - {name: after, type: exec, depends_on: [work], commands: [{name: c, run: 'true'}]}
";
    let world = World::new(agent, team, &script(&[says("Done.")]), Behavior::default());
    for (key, value) in
        [("effort", "low"), ("max_tokens", "777"), ("extra_body", r#"{"seed": 3, "top_k": 1}"#)]
    {
        world.env.cliq(["settings", "set", &format!("agents.{agent}.{key}"), value]).expect(0);
    }
    world.env.cliq(["run", "--headless"]).expect(0);
    let body = bodies(&world).remove(0);
    let (effort, temperature, max) = match agent {
        "claude-api" => ("/output_config/effort", "/temperature", "/max_tokens"),
        "openai-api" => ("/reasoning_effort", "/temperature", "/max_completion_tokens"),
        "responses" => ("/reasoning/effort", "/temperature", "/max_output_tokens"),
        _ => (
            "/generationConfig/thinkingConfig/thinkingLevel",
            "/generationConfig/temperature",
            "/generationConfig/maxOutputTokens",
        ),
    };
    let found = [effort, temperature, max, "/top_k", "/seed"].map(|place| body.pointer(place).cloned());
    assert_eq!(found, [json!("high"), json!(0.5), json!(777), json!(7), json!(3)].map(Some), "{body}");
}
