//! Transcripts on the terminal.

use cliq_scripted_model::Behavior;
use serde_json::json;

use crate::coder::world::{TEAM, World, call, calls, says, script};

fn world() -> World {
    let replies = script(&[calls("I look.", &[call("list_files", json!({}))]), says("Done.")]);
    World::new("openai-api", TEAM, &replies, Behavior::default())
}

#[test]
fn transcripts_are_shown_on_the_terminal() {
    let world = world();
    world.env.cliq(["logs", "work", "--transcript"]).expect(0).says("no transcript");
    world.env.cliq(["run", "--headless"]).expect(0);
    let shown = world.env.cliq(["logs", "work", "--transcript"]).expect(0).stdout;
    for part in [
        "==> work.1.jsonl <==",
        "role and tools\n    You are the work agent.",
        "task\n    ## Requirements",
        "model\n    I look.",
        "list_files",
        "answered",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains('\u{1b}'), "no colour in a pipe");
    let lines = world.env.cliq(["logs", "work", "--transcript", "--json"]).expect(0).stdout;
    assert_eq!(lines, world.env.read(".cliq/transcripts/work.1.jsonl"));
    world.env.cliq(["logs", "--transcript"]).expect(2);
    world.env.cliq(["logs", "wrok", "--transcript"]).expect(2).says("did you mean `work`?");
}
