//! The loop of turns and tool calls, with each API.

use cliq_scripted_model::Behavior;
use serde_json::{Value, json};

use crate::coder::world::{APIS, TEAM, World, call, calls, says, script};

/// A session that uses every tool.
fn session() -> Value {
    script(&[
        json!({
            "thinking": "First I look.", "text": "I look around.",
            "calls": [call("report_progress", json!({"message": "looking around"})), call("list_files", json!({})), call("search", json!({"pattern": "TODO"}))],
        }),
        calls("", &[call("read_file", json!({"path": "greeting.txt", "end_line": 2}))]),
        calls(
            "I write.",
            &[
                call("edit_file", json!({"path": "greeting.txt", "old": "TODO: greet", "new": "Hello."})),
                call("write_file", json!({"path": "docs/notes.md", "content": "# Notes\n"})),
            ],
        ),
        calls(
            "I check.",
            &[call("run_command", json!({"command": "grep -c Hello greeting.txt; echo done >&2"}))],
        ),
        says("I wrote it.\n\n```json\n{\"words\": 1}\n```"),
    ])
}

#[test]
fn each_api_completes_a_session_with_tools() {
    for (agent, _) in APIS {
        for is_whole in [false, true] {
            let behavior = Behavior { is_whole, binds_thinking: true, ..Behavior::default() };
            let world = World::new(agent, TEAM, &session(), behavior);
            world.env.write("greeting.txt", "first\nTODO: greet\nlast\n");
            world.env.cliq(["run", "--headless"]).expect(0);
            assert_eq!(world.env.read("greeting.txt"), "first\nHello.\nlast\n", "{agent}");
            assert_eq!(world.env.read("docs/notes.md"), "# Notes\n");
            let handoff = world.env.read_json(".cliq/channels/work--after/handoff.json");
            assert_eq!(
                (handoff["text"].as_str(), &handoff["data"]["words"]),
                (Some("I wrote it."), &json!(1))
            );
            let results = world.results("work.1");
            let texts: Vec<&str> = results.iter().map(|(text, _)| text.as_str()).collect();
            assert!(results.iter().all(|(_, is_error)| !is_error), "{texts:?}");
            assert_eq!(texts[0], "reported");
            assert!(texts.contains(&"greeting.txt:2: TODO: greet\n"), "{texts:?}");
            assert!(texts.iter().any(|text| text.contains("    1\tfirst\n    2\tTODO: greet\n[greeting.txt has 3 lines]")), "{texts:?}");
            assert!(texts.iter().any(|text| text.contains("-TODO: greet\n+Hello.\n")), "{texts:?}");
            assert!(texts.iter().any(|text| text.starts_with("1\ndone\n[exit status 0 after ")), "{texts:?}");
            // What the model thought goes back to it where the API wants that, and results with their calls.
            let requests = world.model.requests();
            assert_eq!(requests.len(), 5, "{agent}");
            let last = requests[4].body.to_string();
            assert!(last.contains("+Hello.") && last.contains("TODO: greet"), "{last}");
            assert_eq!(last.contains("signature-"), agent != "openai-api", "{agent}: {last}");
            let log = world.env.read(".cliq/logs/work.1.log");
            assert!(
                log.contains("> looking around\n") && log.contains("> read_file greeting.txt\n"),
                "{log}"
            );
            let kinds: Vec<Value> =
                world.transcript("work.1").into_iter().map(|entry| entry["type"].clone()).collect();
            assert_eq!(kinds[..4], ["start", "message", "message", "thinking"], "{kinds:?}");
            assert_eq!(kinds.iter().filter(|kind| *kind == "usage").count(), 5);
            assert_eq!(kinds.last().unwrap(), "end");
            let all = world.env.read(".cliq/transcripts/work.1.jsonl");
            assert!(!all.contains("sk-test-secret"));
        }
    }
}
