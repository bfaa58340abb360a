//! Self-descriptions of connectors, and their use in validation.

use std::fmt::Write;

use cliq_testkit::env::Env;
use serde_json::Value;

const CONNECTORS: &[&str] = &["s3", "gdrive", "curl", "jira", "confluence", "zendesk", "hubspot", "datadog"];

/// The tables of a connector, as `docs/connectors.md` has them.
fn tables(shown: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().replace('|', "\\|");
    let list = |value: &Value| {
        let items: Vec<String> =
            value.as_array().unwrap().iter().map(|item| format!("`{}`", text(item))).collect();
        items.join(", ")
    };
    let mut doc =
        "| action | entries | `ref` | needs | may have | gives |\n|---|---|---|---|---|---|\n".to_owned();
    for action in shown["actions"].as_array().unwrap() {
        let name =
            if action["name"] == "" { "–".to_owned() } else { format!("`{}`", text(&action["name"])) };
        let gives: Vec<String> = action["gives"]
            .as_array()
            .unwrap()
            .iter()
            .map(|given| format!("`{}` {}", text(&given["key"]), text(&given["about"])))
            .collect();
        let _ = writeln!(
            doc,
            "| {name} | `{}` | {} | {} | {} | {} |",
            text(&action["direction"]),
            text(&action["ref"]),
            list(&action["required"]),
            list(&action["optional"]),
            gives.join(", ")
        );
    }
    let settings = shown["settings"].as_array().unwrap();
    if !settings.is_empty() {
        doc.push_str("\n| setting | variable | | |\n|---|---|---|---|\n");
    }
    for setting in settings {
        let needed = if setting["required"] == true { "needed" } else { "optional" };
        let _ = writeln!(
            doc,
            "| `{}` | {} | {needed} | {} |",
            text(&setting["key"]),
            list(&setting["variables"]),
            text(&setting["about"])
        );
    }
    doc
}

#[test]
fn the_documents_have_every_table() {
    let env = Env::bare();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/connectors.md");
    let mut doc = std::fs::read_to_string(file).unwrap();
    for name in CONNECTORS {
        let table = tables(&env.cliq(["agent", "show", name, "--json"]).expect(0).json());
        let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- /{name} -->"));
        let from = doc.find(&begin).unwrap_or_else(|| panic!("no place for {name}")) + begin.len();
        let to = doc.find(&end).unwrap();
        if std::env::var_os("UPDATE_DOCS").is_some() {
            doc.replace_range(from..to, &table);
        } else {
            assert_eq!(&doc[from..to], table, "UPDATE_DOCS=1 writes it");
        }
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(file, doc).unwrap();
    }
}

#[test]
fn every_setting_of_a_connector_is_one() {
    let env = Env::bare();
    for name in CONNECTORS {
        for setting in
            env.cliq(["agent", "show", name, "--json"]).expect(0).json()["settings"].as_array().unwrap()
        {
            let key = setting["key"].as_str().unwrap();
            let value = match key {
                _ if key.ends_with("_url") => "https://example.com",
                "agents.gdrive.auth_mode" => "oauth",
                _ => "hush-hush",
            };
            env.cliq(["settings", "set", "-g", key, value]).expect(0);
            let shown = env.cliq(["settings", "get", key]).expect(0).stdout;
            assert_eq!(
                shown.contains("hush-hush"),
                value == "hush-hush" && setting["secret"] == false,
                "{key}: {shown}"
            );
        }
        let list = env.cliq(["agent", "show", name]).expect(0);
        assert!(!list.stdout.contains("hush-hush"));
    }
}

#[test]
fn validation_knows_what_each_action_takes() {
    for (agent, rest, expected) in [
        ("jira", "action: get_isue\n      sources: [{name: a, ref: A-1}]", "did you mean `get_issue`"),
        (
            "jira",
            "action: get_issue\n      sources: [{name: a}]",
            "an entry for `get_issue` of `jira` needs `ref`: the issue's key",
        ),
        ("jira", "action: get_issue\n      sources: [{name: a, ref: A-1, window: 1h}]", "takes no `window`"),
        ("jira", "action: add_comment\n      sources: [{name: a, ref: A-1}]", "its action publishes"),
        (
            "confluence",
            "action: create_page\n      target_entries: [{name: a, ref: DOC, file: a.md}]",
            "needs `title`",
        ),
        ("s3", "action: get\n      sources: [{name: a, ref: b/c}]", "it has none"),
        ("curl", "sources: [{name: a, ref: x}]", "needs `url`"),
        ("s3", "sources: [{name: a.json, ref: b/c}, {name: a.csv, ref: b/d}]", "are both `a` in the handoff"),
        ("datadog", "action: get_monitors\n      sources: [{name: a, limit: 5}]", "takes no `limit`"),
    ] {
        let env = Env::bare();
        env.write("team/team.yml", &format!("name: \"@local/x\"\nworkflow:\n  phases:\n    - name: p\n      type: standard\n      agent: {agent}\n      {rest}\n"));
        env.cliq(["team", "validate", "team"]).expect(2).says(expected);
    }
    let two = "name: \"@local/x\"\nworkflow:\n  phases:\n    - {name: p, type: pull, sources: [{name: a, url: 'http://h/'}]}\n    - {name: q, type: pull, sources: [{name: a, url: 'http://h/'}]}\n";
    let env = Env::bare();
    env.write("team/team.yml", two);
    env.cliq(["team", "validate", "team"]).expect(2).says("phases `p` and `q` both have a source `a`");
}

#[test]
fn a_dry_run_shows_and_does_nothing() {
    let site = crate::outside::site::Site::start(|_| crate::outside::site::reply(200, "text/plain", "x"));
    let workflow = format!(
        "inputs: [{{name: place}}]\nworkflow:\n  phases:\n    - {{name: fetch, type: pull, sources: [{{name: a, url: \"{0}/$(inputs.place)\"}}]}}\n    - {{name: publish, type: push, depends_on: [fetch], targets: [{{file: r.md, to: \"{0}/out/\", name: \"r-$(date).md\"}}, {{file: later.md, to: \"{0}/b\"}}]}}\n",
        site.base
    );
    let env = Env::new(&workflow, &[]);
    env.write("r.md", "report");
    let shown = env.cliq(["run", "--dry-run", "--input", "place=here"]).expect(0);
    let shown = shown
        .says("/here")
        .says("r.md → ")
        .says("/out/r-20")
        .says("6 B")
        .says("no phase has written it")
        .says("nothing was started");
    assert!(shown.stdout.contains("create"));
    let entries = env.cliq(["run", "--dry-run", "--json", "--input", "place=here"]).expect(0).json();
    assert_eq!(entries["entries"].as_array().unwrap().len(), 3);
    assert!(site.asked().is_empty() && !env.exists(".cliq/journal.jsonl"));
}

#[test]
fn unknown_names_are_helped() {
    let env = Env::bare();
    env.cliq(["agent", "show", "jirra"]).expect(2).says("connectors are s3, gdrive");
    env.cliq(["doctor", "test", "jirra"]).expect(2).says("did you mean `jira`?");
}
