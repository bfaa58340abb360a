//! Files of tests: every mistake is reported with its place, and the documentation has every field.

use std::fs;

use camino::Utf8Path;
use cliq_eval::team_test::{read_tests, test_field_list, test_schema};
use cliq_project::{Environment, Host};
use cliq_workflow::{TeamFolder, ValidatedWorkflow};

const TEAM: &str = "name: '@local/t'
inputs: [{name: lang, required: true}]
workflow:
  phases:
    - {name: plan, type: standard, agent: claude-api, outputs: {schema: {type: object, required: [files], properties: {files: {type: array, items: {type: string}}}}}}
    - {name: write, type: standard, agent: claude-api, depends_on: [plan], for_each: 'handoff.plan.files'}
    - {name: review, type: gate, agent: claude-api, depends_on: [write], route_to: [write]}
    - {name: check, type: gate, agent: rules, depends_on: [review], commands: [{name: lint, run: 'true'}], rules: {lint: write}}
    - {name: approve, type: gate, agent: hug, depends_on: [check], review: {reviewer: ada}}
    - {name: ship, type: exec, depends_on: [approve], commands: [{name: push, run: 'echo $(inputs.lang)'}]}
";

fn team() -> ValidatedWorkflow {
    let place = tempfile::tempdir().expect("a team");
    let dir = Utf8Path::from_path(place.path()).expect("a team");
    fs::write(dir.join("team.yml"), TEAM).expect("a team");
    fs::create_dir(dir.join("roles")).expect("a team");
    for role in ["plan", "write", "review"] {
        fs::write(dir.join(format!("roles/{role}.md")), "Do it.").expect("a team");
    }
    let checked = TeamFolder::load(dir).expect("a team").check();
    checked.workflow.unwrap_or_else(|| panic!("{:#?}", checked.diagnostics))
}

/// Codes and lines of the problems of a test, which begins on line 2.
fn problems(test: &str) -> Vec<String> {
    let text = format!("tests:\n{test}");
    let host = Host::new(Environment::default(), "/bin/false".into());
    let read = read_tests(&text, Utf8Path::new("/nonexistent"), &team(), &host);
    assert_eq!(read.tests.is_empty(), !read.diagnostics.is_empty(), "{:?}", read.diagnostics);
    read.diagnostics
        .iter()
        .map(|problem| format!("{}:{} {}", problem.span.line, problem.code, problem.message))
        .collect()
}

#[test]
fn every_field_is_read() {
    let test = "  - name: all
    requirement: Do it.
    inputs: {lang: en}
    files: {a.md: x}
    timeout: 5s
    replies:
      plan: {data: {files: [a, b]}, text: Two files.}
      write:
        - {item: 0, text: one, files: {a.md: y}, remove: [b.md]}
        - {item: 1, error: out of paper}
      review: [{verdict: write, reason: no}, {verdict: escalate}]
      approve: {verdict: pass, data: {note: fine}}
    commands: {check: {lint: [fail, pass]}, ship: {push: pass}}
    expect:
      end: escalated
      reason: [paper, out of]
      order: [plan, write, review]
      runs: {plan: 1, write: 2, ship: 0}
      verdicts: {review: [write, escalate]}
      prompts: [{phase: write, activation: 1, item: 0, contains: [one, two], lacks: three}]
      commands: {check: {lint: [fail, skip, pass]}}
    checks: [{file: a.md, matches: y}, {run: 'true'}, {expr: 'end == \"escalated\"'}]
";
    assert_eq!(problems(test), Vec::<String>::new());
}

#[test]
fn mistakes_are_reported_with_their_places() {
    let with = |rest: &str| problems(&format!("  - name: one\n    inputs: {{lang: en}}\n{rest}"));
    for (rest, expected) in [
        ("    replys: {}\n", vec!["4:unknown-key a test has no field `replys`"]),
        ("    replies: {plann: []}\n", vec!["4:unknown-phase the team has no phase `plann`"]),
        (
            "    replies: {ship: {text: x}}\n",
            vec!["4:no-agent phase `ship` runs commands and has no agent: it has no replies"],
        ),
        (
            "    replies: {check: {verdict: pass}}\n",
            vec!["4:no-agent phase `check` is decided by its commands and rules: it has no replies"],
        ),
        (
            "    replies: {plan: {verdict: pass}}\n",
            vec!["4:wrong-field phase `plan` cannot have `verdict`: only a gate gives a verdict"],
        ),
        (
            "    replies: {review: {text: x}}\n",
            vec!["4:wrong-field phase `review` cannot have `text`: a gate hands over a verdict and no text"],
        ),
        (
            "    replies: {review: {verdict: plan}}\n",
            vec!["4:invalid-verdict gate `review` cannot give the verdict \"plan\""],
        ),
        (
            "    replies: {plan: {data: {files: 3}}}\n",
            vec![
                "4:invalid-data phase `plan` cannot hand this over: its data violates the schema: `/files`: 3 is not of type \"array\"",
            ],
        ),
        ("    replies: {plan: {data: [1]}}\n", vec!["4:wrong-type `data` is a mapping, here is a list"]),
        ("    replies: {plan: {item: 1}}\n", vec!["4:wrong-field phase `plan` works on no list"]),
        (
            "    replies: {plan: {error: x, text: y}}\n",
            vec!["4:wrong-field a reply with `error` hands over nothing, and this one has `text`"],
        ),
        (
            "    replies: {plan: {files: {../x: y}}}\n",
            vec!["4:invalid-path \"../x\" is not a path in the workspace"],
        ),
        (
            "    replies: {plan: {remove: [/etc/passwd]}}\n",
            vec!["4:invalid-path \"/etc/passwd\" is not a path in the workspace"],
        ),
        (
            "    replies: {approve: {files: {a: b}}}\n",
            vec!["4:wrong-field people at `approve` write no files"],
        ),
        ("    files: {a/../../b: x}\n", vec!["4:invalid-path \"a/../../b\" is not a path in the workspace"]),
        ("    workspace: none\n", vec!["4:unreadable-file there is no folder /nonexistent/none"]),
        ("    requirement: ' '\n", vec!["4:empty-text the requirement is empty"]),
        (
            "    commands: {ship: {pull: pass}}\n",
            vec!["4:unknown-command phase `ship` has no command `pull`"],
        ),
        (
            "    commands: {ship: {push: skip}}\n",
            vec!["4:invalid-value a result of a command cannot be \"skip\""],
        ),
        ("    commands: {ship: pass}\n", vec!["4:wrong-type `commands.ship` is a mapping, here is a text"]),
        ("    checks: [{judge: {rubric: x}}]\n", vec!["4:wrong-field a test asks no model"]),
        ("    checks: [{end: completed}]\n", vec!["4:wrong-field the end of the run is an expectation"]),
        ("    expect: {end: done}\n", vec!["4:invalid-value `end` cannot be \"done\""]),
        ("    expect: {reason: x}\n", vec!["4:contradiction a run that completes has no reason"]),
        ("    expect: {order: [plan, wirte]}\n", vec!["4:unknown-phase the team has no phase `wirte`"]),
        (
            "    expect: {runs: {plan: some}}\n",
            vec!["4:wrong-type `runs.plan` is a whole number from 0 on, here is a text"],
        ),
        (
            "    expect: {verdicts: {plan: pass}}\n",
            vec!["4:not-a-gate phase `plan` is not a gate and gives no verdict"],
        ),
        (
            "    expect: {verdicts: {review: [ship]}}\n",
            vec!["4:invalid-verdict gate `review` cannot give the verdict \"ship\""],
        ),
        ("    expect: {verdicts: {review: []}}\n", vec!["4:empty-list `verdicts.review` is empty"]),
        (
            "    expect: {prompts: [{phase: plan}]}\n",
            vec!["4:missing-field a prompt needs `contains` or `lacks`"],
        ),
        (
            "    expect: {prompts: [{phase: ship, contains: x}]}\n",
            vec!["4:no-agent phase `ship` runs commands and has no agent: nothing is asked"],
        ),
        (
            "    expect: {prompts: [{phase: plan, contains: x, lacks: x}]}\n",
            vec!["4:contradiction the prompt cannot both contain and lack \"x\""],
        ),
        (
            "    expect: {prompts: [{phase: plan, lacks: ''}]}\n",
            vec!["4:empty-text every prompt contains an empty text"],
        ),
        (
            "    expect: {runs: {plan: 0}, order: [plan]}\n",
            vec!["4:contradiction `runs` excludes phase `plan`, and this expects something of it"],
        ),
        (
            "    expect: {runs: {review: 1}, order: [review, review]}\n",
            vec!["4:contradiction `runs` has 1 for phase `review`, and `order` has it 2 times"],
        ),
        (
            "    expect: {runs: {review: 2}, verdicts: {review: pass}}\n",
            vec!["4:contradiction gate `review` gives 1 verdicts, and `runs` has 2"],
        ),
    ] {
        assert_eq!(with(rest), expected, "{rest}");
    }
    assert_eq!(problems("  - {name: a}\n").len(), 1, "the input is missing");
    assert_eq!(
        problems("  - {name: a, inputs: {lang: x, land: y}}\n"),
        ["2:unknown-input the team has no input `land`"]
    );
    let twice = problems("  - {name: a, inputs: {lang: x}}\n  - {name: a, inputs: {lang: x}}\n");
    assert_eq!(twice, ["3:duplicate-name a test `a` is there twice"]);
    assert_eq!(problems("  []\n"), ["1:empty-list `tests` is empty"]);
}

#[test]
fn the_schema_of_tests_is_pinned() {
    insta::assert_json_snapshot!(test_schema());
}

#[test]
fn every_field_of_a_test_is_documented() {
    let docs = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/team-test.md")).unwrap();
    for (object, name, required, doc) in test_field_list() {
        let row = format!("| `{name}` | {} | {doc} |", if required { "yes" } else { "" });
        assert!(docs.contains(&row), "docs/team-test.md: the table of {object} lacks the row\n{row}");
    }
}
