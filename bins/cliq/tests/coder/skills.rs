//! Instructions of the project and skills: their parts of the requests to a model.

use cliq_scripted_model::Behavior;
use serde_json::{Value, json};

use crate::coder::world::{TEAM, World, call, calls, says, script};

const SKILL: &str = "---\nname: greetings\ndescription: How to write greetings.\n---\nGreet in two lines.\n";

fn world(replies: &[Value]) -> World {
    World::new("claude-api", TEAM, &script(replies), Behavior::default())
}

/// System, messages and tools of the requests of a run.
fn prompts(world: &World) -> Vec<Value> {
    let requests = world.model.requests().into_iter().map(|request| request.body);
    requests.map(|body| json!([body["system"], body["messages"], body["tools"]])).collect()
}

#[test]
fn instructions_and_skills_add_their_parts_to_requests_and_nothing_else() {
    let replies = [says("Done.")];
    let plain = world(&replies);
    plain.env.cliq(["run", "--headless"]).expect(0);
    let with = world(&replies);
    with.env.write("AGENTS.md", "Write in Latin.\n");
    with.env.write("../nobody/.agents/skills/greetings/SKILL.md", SKILL);
    with.env.cliq(["run", "--headless"]).expect(0);
    let (before, after) = (prompts(&plain).remove(0), prompts(&with).remove(0));
    let text = |value: &Value| value.to_string();
    let catalogue = "- greetings: How to write greetings.";
    assert!(text(&after[0]).contains(catalogue) && text(&after[1]).contains("Write in Latin."), "{after}");
    // Without the two sections and the tool, the request is the same.
    let system = after[0].as_str().expect("a role");
    let at = system.find("## Skills").expect("skills");
    assert_eq!(system[..at], *before[0].as_str().expect("a role"));
    let task = after[1][0]["content"][0]["text"].as_str().expect("a task");
    let (head, rest) = task.split_once("## Instructions of the Project").expect("instructions");
    let tail = &rest[rest.find("## Your Task").expect("a task")..];
    assert_eq!(format!("{head}{tail}"), before[1][0]["content"][0]["text"].as_str().expect("a task"));
    let names = |prompt: &Value| {
        let tools = prompt[2].as_array().expect("tools").iter();
        tools
            .filter_map(|tool| tool["name"].as_str())
            .filter(|name| *name != "activate_skill")
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&before), names(&after));
    let shown = with.env.cliq(["logs", "work", "--transcript"]).expect(0);
    shown.says("instructions of the project: AGENTS.md").says("skills: greetings");
    // Both can be turned off.
    with.env.cliq(["settings", "set", "agents.claude-api.project_instructions", "false"]).expect(0);
    with.env.cliq(["run", "--headless", "-f"]).expect(0);
    assert!(!text(&prompts(&with)[1]).contains("Latin"));
}

#[test]
fn body_of_a_skill_is_read_when_it_is_activated() {
    let read = call("activate_skill", json!({"name": "greetings"}));
    let file = call("read_file", json!({"path": ".cliq/files/work/.skills/greetings/words.txt"}));
    let unknown = call("activate_skill", json!({"name": "other"}));
    let world = world(&[calls("", &[read]), calls("", &[file, unknown]), says("Done.")]);
    world.env.write("../team/skills/greetings/SKILL.md", SKILL);
    world.env.write("../team/skills/greetings/words.txt", "salve\n");
    world.env.cliq(["assemble", "../team"]).expect(0);
    world.env.cliq(["run", "--headless"]).expect(0);
    let results = world.results("work.1");
    assert!(
        results[0].0.contains("Greet in two lines.") && results[0].0.contains("- words.txt"),
        "{results:?}"
    );
    let texts: Vec<&str> = results[1..].iter().map(|(text, _)| text.as_str()).collect();
    assert!(texts.iter().any(|text| text.contains("salve")), "{results:?}");
    assert!(texts.iter().any(|text| text.contains("there is no skill `other`")), "{results:?}");
}

#[test]
fn skills_of_a_project_need_trust() {
    let world = world(&[says("Done.")]);
    world.env.write(".agents/skills/greetings/SKILL.md", SKILL);
    let has_skill = |n: usize| prompts(&world)[n].to_string().contains("How to write greetings.");
    world.env.cliq(["run", "--headless"]).expect(0);
    assert!(!has_skill(0), "an agent or a stranger may have written it");
    // The file of the project cannot trust itself.
    let own = format!(r#"{{"trusted_projects": ["{}"]}}"#, world.env.work().display());
    let settings = world.env.read(".cliq/settings.json");
    world
        .env
        .write(".cliq/settings.json", &settings.replacen('{', &format!("{},", own.trim_end_matches('}')), 1));
    let _ = world.env.cliq(["run", "--headless", "-f"]);
    world.env.write(".cliq/settings.json", &settings);
    world.env.cliq(["trust"]).expect(0).says("is trusted").says(".agents/skills: greetings");
    world.env.cliq(["trust", "--list"]).expect(0).says("/work");
    world.env.cliq(["run", "--headless", "-f"]).expect(0);
    let last = prompts(&world).len() - 1;
    assert!((0..last).all(|n| !has_skill(n)) && has_skill(last));
    world.env.cliq(["trust", "--remove"]).expect(0);
    world.env.cliq(["trust", "--remove"]).expect(1).says("is not trusted");
    world.env.cliq(["run", "--headless", "-f"]).expect(0);
    assert!(!has_skill(last + 1));
}

#[test]
fn phase_chooses_its_skills() {
    let workflow = TEAM.replace("agent: AGENT}", "agent: AGENT, skills: SKILLS}");
    let run = |skills: &str| {
        let replies = script(&[says("Done.")]);
        let world =
            World::new("claude-api", &workflow.replace("SKILLS", skills), &replies, Behavior::default());
        world.env.write("../nobody/.agents/skills/greetings/SKILL.md", SKILL);
        world.env.write(
            "../nobody/.agents/skills/other/SKILL.md",
            "---\nname: other\ndescription: Another.\n---\n",
        );
        world
    };
    let one = run("[greetings]");
    one.env.cliq(["run", "--headless"]).expect(0);
    let prompt = prompts(&one).remove(0).to_string();
    assert!(prompt.contains("- greetings:") && !prompt.contains("- other:"), "{prompt}");
    let none = run("none");
    none.env.cliq(["run", "--headless"]).expect(0);
    assert!(!prompts(&none).remove(0).to_string().contains("## Skills"));
    let missing = run("[missing]");
    missing.env.cliq(["run", "--headless"]).expect(3).says("there is no skill `missing`").says("cliq trust");
}

#[test]
fn skills_of_a_team_are_checked() {
    let world = world(&[says("Done.")]);
    world.env.write("../team/skills/greetings/SKILL.md", "---\nname: Greetings\n---\n");
    let said = world.env.cliq(["team", "validate", "../team"]).expect(2);
    said.says("skills/greetings/SKILL.md, line 2").says("invalid-skill");
    world.env.write("../team/skills/greetings/SKILL.md", SKILL);
    world.env.cliq(["team", "validate", "../team"]).expect(0);
    std::os::unix::fs::symlink("/etc/passwd", world.env.path("../team/skills/greetings/link"))
        .expect("a link");
    world.env.cliq(["team", "validate", "../team"]).expect(2).says("links to a file outside of the team");
}

#[test]
fn nested_instructions_come_with_the_first_file_of_their_directory() {
    let read = |path: &str| calls("", &[call("read_file", json!({ "path": path }))]);
    let world = world(&[read("src/a.txt"), read("src/b.txt"), says("Done.")]);
    world.env.write("src/AGENTS.md", "Files here have one line.\n");
    world.env.write("src/a.txt", "a\n");
    world.env.write("src/b.txt", "b\n");
    world.env.cliq(["run", "--headless"]).expect(0);
    let has: Vec<bool> =
        world.results("work.1").iter().map(|(text, _)| text.contains("have one line")).collect();
    assert_eq!(has, [true, false]);
}
