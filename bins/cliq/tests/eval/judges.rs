//! Judges: an agent with a rubric, whose model is a script.

use cliq_scripted_model::{Behavior, ScriptedModel};
use serde_json::json;

use crate::eval::world::World;

#[test]
fn judge_decides_and_its_agreement_is_reported() {
    let script = json!({"scenes": [
        {"contains": ["You judge work", "Task good"], "replies": [
            {"text": "", "calls": [{"name": "read_file", "arguments": {"path": "answer.txt"}}]},
            {"text": "PASS: the answer is right"},
        ]},
        {"contains": ["You judge work"], "replies": [{"text": "ESCALATE: answer.txt names no date: connection refused"}]},
    ]});
    let model = ScriptedModel::start(serde_json::from_value(script).unwrap(), Behavior::default()).unwrap();
    let world = World::new();
    for (key, value) in [
        ("default_agent", "openai-api".to_owned()),
        ("agents.openai-api.base_url", model.base("openai")),
        ("prices.judge-model.in", "1000".to_owned()),
        ("prices.judge-model.out", "1000".to_owned()),
    ] {
        world.env.cliq(["settings", "set", "-g", key, &value]).expect(0);
    }
    world.role("one", "answer: right\n");
    world.env.write("labels.jsonl", "{\"case\": \"good\", \"pass\": true}\n{\"case\": \"bad\", \"repeat\": 1, \"pass\": false}\n{\"case\": \"bad\", \"repeat\": 2, \"pass\": true}\n");
    let judge = "[{name: quality, judge: {agent: openai-api, model: judge-model, rubric: The answer names a date., labels: labels.jsonl}}]";
    let cases = format!(
        "  - {{name: good, requirement: Task good., checks: {judge}}}\n  - {{name: bad, requirement: Task bad., checks: {judge}}}\n"
    );
    world.suite("repeats: 2", &cases, &["one"]);
    let report = world.report(&[]);
    let passed = |n: usize| report["cases"][n]["variants"]["one"]["passed"].as_u64();
    assert_eq!((passed(0), passed(1)), (Some(2), Some(0)));
    let reason = report["trials"][1]["reason"].as_str().unwrap();
    assert!(reason.contains("names no date"), "{reason}");
    let judge = &report["judges"][0];
    assert_eq!(
        (judge["labels"].as_u64(), judge["agreed"].as_u64(), judge["too_strict"].as_u64()),
        (Some(4), Some(3), Some(1))
    );
    // Judges are paid for, and not counted as the cost of the team.
    assert!(report["judge_usage"]["cost_usd"].as_f64().unwrap() > 0.1);
    assert_eq!(report["variants"][0]["cost_usd"]["median"], 0.01);
    world.eval(&["show"]).expect(0).says("judge quality agrees with people in 3 of 4 trials");
    // A judge sees the work and cannot change it.
    let trial = report["trials"][0]["workspace"].as_str().unwrap();
    assert_eq!(std::fs::read_to_string(format!("{trial}/answer.txt")).unwrap(), "right\n");
}
