//! Presets on the payloads that GitHub publishes for its events (`@octokit/webhooks-examples`).

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::triggers::sender::machine_with;

const TRIGGERS: &str = r#"
  - {name: issue, preset: github-issue, webhook: {secret: s}, team: "@local/quick"}
  - {name: comment, preset: github-comment, webhook: {secret: s}, team: "@local/quick"}
  - {name: pull, preset: github-pull-request, webhook: {secret: s}, team: "@local/quick"}
"#;

#[test]
fn presets_fit_the_published_payloads() {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../target/node/node_modules/@octokit/webhooks-examples/api.github.com/index.json");
    let Ok(text) = std::fs::read(&file) else {
        return cliq_testkit::not_run("target/node has no payloads of GitHub (./test makes it)");
    };
    let events: Vec<Value> = serde_json::from_slice(&text).unwrap();
    let machine = machine_with(TRIGGERS, json!({}));
    let server = machine.serve();
    let mut outcomes: BTreeMap<(String, String, String), usize> = BTreeMap::new();
    let mut count = 0;
    for event in &events {
        let name = event["name"].as_str().unwrap();
        for body in event["examples"].as_array().unwrap() {
            count += 1;
            for trigger in ["issue", "comment", "pull"] {
                let request = json!({"headers": {"x-github-event": name}, "body": body});
                let tested =
                    server.post(&format!("/api/v1/triggers/{trigger}/test"), &request).expect(200).json();
                let outcome = tested["outcome"].as_str().unwrap();
                assert_ne!(outcome, "fail", "{trigger} {name}: {tested}");
                if outcome == "run" {
                    let action = body["action"].as_str().unwrap_or_default();
                    *outcomes.entry((trigger.to_owned(), name.to_owned(), action.to_owned())).or_default() +=
                        1;
                    let title = tested["title"].as_str().unwrap();
                    assert!(
                        title.contains('#') && tested["requirement"].as_str().unwrap().contains('#'),
                        "{tested}"
                    );
                    assert!(tested["group"].as_str().unwrap().contains("/"), "{tested}");
                }
            }
        }
    }
    assert!(count > 150, "{count}");
    let starts: Vec<String> =
        outcomes.keys().map(|(trigger, name, action)| format!("{trigger}: {name}.{action}")).collect();
    insta::assert_snapshot!(starts.join("\n"));
}
