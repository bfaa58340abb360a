//! An assistant that has only the skill of cliq and the program makes a team.

use cliq_scripted_model::Behavior;
use serde_json::{Value, json};

use crate::coder::world::{TEAM, World, call, calls, says, script};

/// The example of a team in the skill.
fn example() -> String {
    let skill = include_str!("../../skill/SKILL.md");
    let block = skill.split("```yaml\n").nth(1).and_then(|rest| rest.split("   ```").next()).unwrap();
    block.lines().map(|line| format!("{}\n", line.strip_prefix("   ").unwrap_or(line))).collect()
}

#[test]
fn assistant_with_the_skill_makes_a_valid_team() {
    let good = example();
    let broken = good.replace("depends_on: [developer]", "depends_on: [develper]");
    assert_ne!(good, broken);
    let write = |path: &str, text: &str| call("write_file", json!({"path": path, "content": text}));
    let validate = || call("run_command", json!({"command": "cliq team validate feature --json"}));
    let roles: Vec<Value> = ["planner", "developer", "reviewer"]
        .iter()
        .map(|role| {
            write(
                &format!("feature/roles/{role}.md"),
                "You receive the requirement. Do your part, and hand it over.\n",
            )
        })
        .collect();
    let tests = "tests:\n  - name: sent-back\n    replies: {reviewer: [{verdict: developer, reason: too long}, {verdict: pass}]}\n    commands: {reviewer: {tests: pass}}\n    expect: {order: [planner, developer, reviewer, developer, reviewer]}\n";
    let replies = [
        calls("I read the skill.", &[call("activate_skill", json!({"name": "cliq"}))]),
        calls("I write the team.", &[&[write("feature/team.yml", &broken)], roles.as_slice()].concat()),
        calls("I validate it.", &[validate()]),
        calls("I mend it.", &[write("feature/team.yml", &good)]),
        calls(
            "I validate it again, and test it.",
            &[
                validate(),
                write("feature/tests/phases.yml", tests),
                call("run_command", json!({"command": "cliq team test feature"})),
            ],
        ),
        says("The team is in feature/."),
    ];
    let world = World::new("openai-api", TEAM, &script(&replies), Behavior::default());
    world.env.cliq(["skill"]).expect(0);
    world.env.cliq(["trust"]).expect(0);
    world.env.cliq(["run", "--headless"]).expect(0);
    let results: Vec<String> = world.results("work.1").into_iter().map(|(text, _)| text).collect();
    let has = |text: &str| results.iter().any(|result| result.contains(text));
    assert!(has("references/team-yml.md"), "the skill came: {results:#?}");
    assert!(has("develper") && has("did you mean `developer`?"), "{results:#?}");
    assert!(has("\"valid\": true") && has("1 of 1 test passed"), "{results:#?}");
    world.env.cliq(["team", "validate", "feature"]).expect(0);
}
