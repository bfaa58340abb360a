//! Rules of validation one by one: each case is a team with one thing that is right, or wrong.

use cliq_workflow::{NoFiles, Severity, TeamCheck, ValidatedWorkflow, check};

fn checked(phases: &str) -> TeamCheck {
    check(&format!("name: \"@local/t\"\nworkflow:\n  phases:\n{phases}"), &NoFiles)
}

/// Codes of the errors of a team with these phases.
fn errors(phases: &str) -> Vec<&'static str> {
    let problems = checked(phases).diagnostics;
    problems
        .iter()
        .filter(|problem| problem.severity == Severity::Error)
        .map(|problem| problem.code)
        .collect()
}

/// Messages and remedies of the problems with a code.
fn said(phases: &str, code: &str) -> String {
    let problems = checked(phases).diagnostics;
    let these = problems.iter().filter(|problem| problem.code == code);
    these.map(|problem| format!("{} ({})\n", problem.message, problem.help)).collect()
}

#[track_caller]
fn workflow(phases: &str) -> ValidatedWorkflow {
    let checked = checked(phases);
    checked.workflow.unwrap_or_else(|| panic!("{:?}", checked.diagnostics))
}

/// A phase of each type with what it needs.
const TYPES: [(&str, &str); 8] = [
    ("standard", "type: standard, agent: claude-code"),
    ("gate", "type: gate, agent: claude-code, commands: [{name: c, run: 'true'}]"),
    ("hug", "type: hug, review: {reviewer: ann}"),
    ("exec", "type: exec, commands: [{name: c, run: 'true'}]"),
    ("pull", "type: pull, sources: [{name: s, url: 'https://example.com/x'}]"),
    ("push", "type: push, targets: [{file: f, to: 'https://example.com/x'}]"),
    ("team", "type: team, team: '@a/b'"),
    ("connector", "type: standard, agent: s3, sources: [{name: s, ref: 's3://a/b'}]"),
];

/// Each field stands on the types that the table of the documents names, and on no other.
#[test]
fn fields_belong_to_types() {
    let agents = ["standard", "gate"];
    for (field, belongs) in [
        ("max_iterations: 2", &["gate", "hug"][..]),
        ("route_to: [p]", &["gate", "hug"]),
        ("rules: {c: p}", &[]),
        ("review: {reviewer: ann}", &["hug"]),
        ("sources: [{name: s, ref: 'a/b', url: 'https://example.com/x'}]", &["pull", "connector"]),
        ("targets: [{file: f, to: x}]", &["push"]),
        ("target_entries: [{file: f, ref: 's3://a/b'}]", &["push", "connector"]),
        ("action: go", &["connector"]),
        ("team: '@a/b'", &["team"]),
        ("inputs: {a: b}", &["team"]),
        ("budget: {tokens: 5}", &["standard", "gate", "team", "connector"]),
        ("config: {a: b}", &agents),
        ("model: m", &agents),
        ("role: r", &["standard", "gate", "hug", "team"]),
        ("commands: [{name: c, run: 'true'}]", &["gate", "hug", "exec"]),
    ] {
        for (kind, phase) in TYPES {
            let name = field.split(':').next().expect("a field");
            if phase.contains(&format!("{name}:")) {
                continue;
            }
            let refused = said(&format!("    - {{name: p, {phase}, {field}}}\n"), "field-not-allowed");
            let is_refused = refused.contains(&format!("`{name}` cannot stand on"));
            assert_eq!(is_refused, !belongs.contains(&kind), "{field} on {kind}: {refused}");
        }
    }
}

#[test]
fn rules_are_for_gates_with_the_agent_of_rules() {
    let gate = |agent: &str| {
        let first = "    - {name: a, type: exec, commands: [{name: x, run: 'true'}]}\n";
        format!(
            "{first}    - {{name: p, type: gate, agent: {agent}, depends_on: [a], commands: [{{name: c, run: 'true'}}], rules: {{c: a}}}}\n"
        )
    };
    assert_eq!(errors(&gate("rules")), [""; 0]);
    assert_eq!(errors(&gate("claude-code")), ["field-not-allowed"]);
}

#[test]
fn remote_agents_have_an_address_and_known_settings() {
    let remote =
        |config: &str| format!("    - {{name: p, type: standard, agent: a2a, config: {{{config}}}}}\n");
    for right in [
        "url: 'https://a.example'",
        "url: 'http://a.example'",
        "url: '$(inputs.url)'",
        "url: 'https://a', token_env: T, skill: s, inputs.x: y",
    ] {
        assert!(
            !errors(&remote(right)).iter().any(|code| ["a2a-without-url", "unknown-config"].contains(code)),
            "{right}"
        );
    }
    for wrong in ["", "url: a.example", "url: 'ftp://a'", "skill: s"] {
        assert!(errors(&remote(wrong)).contains(&"a2a-without-url"), "{wrong}");
    }
    assert!(said(&remote("url: 'https://a', color: red"), "unknown-config").contains("`config.color`"));
    assert!(errors(&remote("url: 'https://a', input: red")).contains(&"unknown-config"));
    let other = "    - {name: p, type: standard, agent: claude-code, config: {color: red}}\n";
    assert_eq!(errors(other), [""; 0], "other agents have settings of their own");
}

#[test]
fn sources_have_names_and_addresses() {
    let pull = |entry: &str| format!("    - {{name: p, type: pull, sources: [{entry}]}}\n");
    assert_eq!(errors(&pull("{name: a-1, url: 'https://a/b'}")), [""; 0]);
    assert_eq!(errors(&pull("{name: a-1, ref: 'a/b'}")), [""; 0]);
    assert_eq!(errors(&pull("{name: a-1}")), ["missing-field"]);
    for name in ["''", "A", "a_b", "a.b", ".a", "'a b'"] {
        assert_eq!(
            errors(&pull(&format!("{{name: {name}, url: 'https://a/b'}}"))),
            ["invalid-name"],
            "{name}"
        );
    }
    let connector = |name: &str| {
        format!(
            "    - {{name: p, type: standard, agent: s3, sources: [{{name: {name}, ref: 's3://a/b'}}]}}\n"
        )
    };
    for name in ["a", "A_b.c", "report.PDF"] {
        assert_eq!(errors(&connector(name)), [""; 0], "{name}");
    }
    for name in ["''", ".a", "'a/b'", "'a b'"] {
        assert_eq!(errors(&connector(name)), ["invalid-name"], "{name}");
    }
    let two = |second: &str| {
        pull(&format!("{{name: a, url: 'https://a/b'}}, {{name: {second}, url: 'https://a/c'}}"))
    };
    assert_eq!((errors(&two("b")), errors(&two("a"))), (vec![], vec!["duplicate-name"]));
}

#[test]
fn targets_have_a_file_and_a_place() {
    let push = |entry: &str| format!("    - {{name: p, type: push, targets: [{entry}]}}\n");
    assert_eq!(errors(&push("{file: a/b, to: x}")), [""; 0]);
    assert_eq!(errors(&push("{file: ./a, ref: x}")), [""; 0]);
    assert_eq!(errors(&push("{to: x}")), ["missing-field"]);
    assert_eq!(errors(&push("{file: a}")), ["missing-field"]);
    for outside in ["../a", "/a", "a/../../b"] {
        assert_eq!(errors(&push(&format!("{{file: {outside}, to: x}}"))), ["outside-workspace"], "{outside}");
    }
    // Other types have their own rules for entries.
    let connector =
        "    - {name: p, type: standard, agent: s3, target_entries: [{name: n, file: f, ref: 's3://a/b'}]}\n";
    assert_eq!(errors(connector), [""; 0]);
    // A file that is no text is one problem and not two.
    assert_eq!(errors(&push("{file: [a], to: x}")).len(), 1);
}

#[test]
fn connectors_have_actions_and_entries() {
    let phase =
        |agent: &str, rest: &str| format!("    - {{name: p, type: standard, agent: {agent}, {rest}}}\n");
    assert_eq!(errors(&phase("jira", "action: get_issue, sources: [{name: s, ref: K-1}]")), [""; 0]);
    let unknown = phase("jira", "action: get_isue, sources: [{name: s, ref: K-1}]");
    assert_eq!(errors(&unknown), ["unknown-action"]);
    assert!(said(&unknown, "unknown-action").contains("get_issue"));
    assert!(
        said(&phase("s3", "action: x, sources: [{name: s, ref: a/b}]"), "unknown-action")
            .contains("it has none")
    );
    assert_eq!(errors(&phase("jira", "sources: [{name: s, ref: K-1}]")), ["connector-without-action"]);
    let wrong_way = phase("jira", "action: get_issue, target_entries: [{name: s, ref: K-1, file: f}]");
    assert!(
        said(&wrong_way, "field-not-allowed").contains("its action fetches"),
        "{}",
        said(&wrong_way, "field-not-allowed")
    );
    let without = phase("s3", "sources: [{name: s}]");
    assert!(said(&without, "missing-field").contains("needs `ref`: `s3://BUCKET/KEY`"));
    assert!(said(&without, "missing-field").contains("an entry for `s3`"));
    let named = phase("jira", "action: get_issue, sources: [{name: s}]");
    assert!(said(&named, "missing-field").contains("an entry for `get_issue` of `jira`"));
    let extra = phase("s3", "sources: [{name: s, ref: a/b, method: GET}]");
    assert!(said(&extra, "field-not-allowed").contains("takes no `method` (it takes name, ref)"));
    assert_eq!(errors(&phase("curl", "sources: [{name: s, url: 'https://a', method: GET}]")), [""; 0]);
    let alike = |other: &str| {
        phase("s3", &format!("sources: [{{name: a.md, ref: a/b}}, {{name: {other}, ref: a/c}}]"))
    };
    assert!(said(&alike("a.txt"), "duplicate-name").contains("both `a` in the handoff"));
    assert_eq!(errors(&alike("b.md")), [""; 0]);
    // An agent of the team's own with the name of a connector takes any action and field.
    let own = "name: \"@local/t\"\nagents: {jira: {entry: jira.sh}}\nworkflow:\n  phases:\n    - {name: p, type: standard, agent: jira, action: mine, sources: [{name: s, query: q}]}\n";
    let codes: Vec<_> = check(own, &NoFiles).diagnostics.iter().map(|problem| problem.code).collect();
    assert!(!codes.contains(&"unknown-action") && !codes.contains(&"field-not-allowed"), "{codes:?}");
}

#[test]
fn sources_of_pull_phases_have_names_of_their_own() {
    let two = |second: &str| {
        format!(
            "    - {{name: p, type: pull, sources: [{{name: a, url: 'https://a'}}]}}\n    - {{name: q, type: pull, sources: [{{name: {second}, url: 'https://b'}}]}}\n"
        )
    };
    assert_eq!(errors(&two("b")), [""; 0]);
    assert!(said(&two("a"), "duplicate-name").contains("phases `p` and `q` both have a source `a`"));
}

#[test]
fn phases_become_what_they_say() {
    let workflow = workflow(
        "    - {name: a, type: standard, agent: claude-code, notify: {on_complete: {agent: slack, channel: c, message: m}}}
    - {name: b, type: exec, commands: [{name: c, run: 'true'}]}
    - {name: s, type: standard, agent: s3, sources: [{name: x, ref: 'a/b'}, {name: y, ref: 'a/c'}]}
    - {name: g, type: gate, agent: rules, depends_on: [b], commands: [{name: c, run: 'true'}], route_to: [b, b]}
",
    );
    let phase = |name: &str| workflow.phases().find(|(_, phase)| phase.name == *name).expect("the phase").1;
    let notify: Vec<_> = phase("a")
        .notify
        .iter()
        .map(|n| (n.event.as_str(), n.agent.as_str(), n.channel.as_deref(), n.message.as_deref()))
        .collect();
    assert_eq!(notify, [("on_complete", "slack", Some("c"), Some("m"))]);
    assert_eq!((phase("a").agent.as_deref(), phase("b").agent.as_deref()), (Some("claude-code"), None));
    assert_eq!(phase("g").agent.as_deref(), Some("rules"));
    assert_eq!((phase("s").sources.len(), phase("a").sources.len()), (2, 0));
    assert_eq!(phase("g").route_targets.len(), 1, "a target is named once");
}

#[test]
fn names_of_teams_and_inputs_are_checked() {
    let codes = |top: &str| -> Vec<&str> {
        let text = format!(
            "{top}\nworkflow:\n  phases:\n    - {{name: p, type: exec, commands: [{{name: c, run: 'true'}}]}}\n"
        );
        check(&text, &NoFiles).diagnostics.iter().map(|problem| problem.code).collect()
    };
    assert!(codes("name: '@a/b'").is_empty());
    for wrong in ["a/b", "'@a'", "'@A/b'", "'@a/B'", "'@/b'", "'@a/'", "'@a/b/c'"] {
        assert!(!codes(&format!("name: {wrong}")).is_empty(), "{wrong}");
    }
    let inputs = |name: &str| codes(&format!("name: '@a/b'\ninputs: [{{name: {name}, description: d}}]"));
    for right in ["a", "A_b-9"] {
        assert!(!inputs(right).contains(&"invalid-name"), "{right}: {:?}", inputs(right));
    }
    for wrong in ["''", "'a b'", "a.b", "é"] {
        assert!(inputs(wrong).contains(&"invalid-name"), "{wrong}: {:?}", inputs(wrong));
    }
}

#[test]
fn input_with_a_default_is_not_required() {
    let text = "name: '@a/b'\ninputs:\n  - {name: a, description: d, required: true}\n  - {name: b, description: d, required: true, default: x}\n  - {name: c, description: d, required: false}\nworkflow:\n  phases:\n    - {name: p, type: exec, commands: [{name: c, run: 'echo $(inputs.a) $(inputs.b) $(inputs.c)'}]}\n";
    let checked = check(text, &NoFiles);
    let workflow = checked.workflow.unwrap_or_else(|| panic!("{:?}", checked.diagnostics));
    let required: Vec<_> = workflow.inputs.iter().map(|input| input.required).collect();
    assert_eq!(required, [true, false, false]);
}

#[test]
fn globs_with_nested_alternatives_are_an_error_with_a_place() {
    let field = include_str!("../../../fixtures/fuzz/team-glob-nested-panic.yml");
    let checked = check(field, &NoFiles);
    let problem =
        checked.diagnostics.iter().find(|problem| problem.code.contains("glob")).expect("a problem");
    assert!(problem.span.line == 3 && problem.message.contains("more than 8 deep"), "{problem:?}");
}

#[test]
fn select_without_choices_is_an_error_with_a_place() {
    let checked = check(include_str!("../../../fixtures/fuzz/review-form-empty-choices.yml"), &NoFiles);
    let problem = checked.diagnostics.iter().find(|problem| problem.message.contains("at least one choice"));
    assert_eq!(problem.expect("a problem").span.line, 4, "{:?}", checked.diagnostics);
}

#[test]
fn shell_contexts_that_evaluate_or_split_are_errors() {
    let checked = check(include_str!("../../../fixtures/fuzz/shell-contexts-accepted.yml"), &NoFiles);
    let found: Vec<(&str, usize)> = checked.diagnostics.iter().map(|d| (d.code, d.span.line)).collect();
    let codes: Vec<&str> = found.iter().map(|(code, _)| *code).collect();
    // The command in a here-document, the plain backticks and the dollar sign pass the value on.
    assert_eq!(
        codes,
        ["template-in-arithmetic", "template-in-unclear-script", "template-in-parameter"],
        "{found:?}"
    );
}

/// An alias has the text of its anchor, to the letter, and its own place.
#[test]
fn number_behind_an_alias_keeps_its_text() {
    let phase = |name: &str, timeout: &str| {
        format!(
            "    - {{name: {name}, type: exec, commands: [{{name: c, run: 'true', timeout: {timeout}}}]}}\n"
        )
    };
    let problems = checked(&(phase("a", "&t 1.50") + &phase("b", "*t"))).diagnostics;
    let found: Vec<_> = problems.iter().map(|problem| (problem.code, problem.span.line)).collect();
    assert_eq!(found, [("invalid-duration", 4), ("invalid-duration", 5)], "{problems:?}");
    assert!(problems.iter().all(|problem| problem.message.contains("\"1.50\"")), "{problems:?}");
}

#[test]
fn large_teams_take_linear_time() {
    let command = "commands: [{name: c, run: 'true'}]";
    let phase = |text: &str| format!("    - {{name: a, type: exec, {command}, {text}}}\n");
    for text in [
        phase(&format!(
            "depends_on: [{}]",
            (0..20_000).map(|n| format!("unknown-{n}")).collect::<Vec<_>>().join(", ")
        )),
        phase(&format!("depends_on: [{}]", vec!["a"; 40_000].join(", "))),
        phase(&(0..15_000).map(|n| format!("k{n}: 1")).collect::<Vec<_>>().join(", ")),
        format!(
            "    - {{name: a, type: exec, commands: [{{name: c, run: '{}'}}]}}\n",
            "$(inputs.x) ".repeat(15_000)
        ),
        format!("    - {{name: a, type: exec, commands: [{{name: c, run: '{}'}}]}}\n", "$(".repeat(150_000)),
        format!(
            "    - {{name: a, type: exec, commands: [{{name: c, run: '{}'}}]}}\n",
            "$(handoff.b.x) ".repeat(15_000)
        ),
        (0..400)
            .map(|n| format!("    - {{name: p{n}, type: exec, depends_on: [p{}], {command}}}\n", n + 1))
            .collect(),
        (0..20_001).map(|n| format!("    - {{name: p{n}, type: exec, {command}}}\n")).collect(),
        "    - {name: '".to_owned() + &"x".repeat(500_000) + "'}\n",
    ] {
        let checked = checked(&text);
        let size: usize = checked.diagnostics.iter().map(|d| d.message.len() + d.help.len()).sum();
        let start: String = text.chars().take(120).collect();
        let is_script = text.contains("$($(");
        assert!(
            (is_script || checked.has_errors()) && checked.diagnostics.len() <= 41 && size < 50_000,
            "{start}: {size}"
        );
    }
}
