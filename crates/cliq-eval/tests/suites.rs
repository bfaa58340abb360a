//! Suites: what is refused and how, the bundled ones, the schema, the documentation.
#![expect(clippy::unwrap_used, reason = "a failure here is the failure of a test")]

use std::fmt::Write;
use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_eval::EXAMPLES;
use cliq_eval::suite::{CheckKind, SuiteCheck, field_list, read_suite, suite_schema};
use cliq_project::internals::write_files;
use cliq_project::{Environment, Host};

fn host() -> Host {
    Host::new(Environment::new([]), "cliq".into())
}

fn show(checked: &SuiteCheck) -> String {
    let mut out = String::new();
    for d in &checked.diagnostics {
        writeln!(
            out,
            "{}:{} {:?} {}: {}\n    {}",
            d.span.line, d.span.column, d.severity, d.code, d.message, d.help
        )
        .unwrap();
    }
    out
}

fn fixtures() -> Utf8PathBuf {
    Utf8PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/suites"))
}

#[test]
fn bad_suites_are_refused_with_places_and_remedies() {
    let dir = fixtures().join("bad").canonicalize_utf8().unwrap();
    let mut files: Vec<_> = dir.read_dir_utf8().unwrap().map(|entry| entry.unwrap().into_path()).collect();
    files.sort();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let checked = read_suite(&text, &dir, &host());
        assert!(checked.suite.is_none() && checked.has_errors(), "{file}");
        let shown = show(&checked).replace(dir.as_str(), "DIR");
        insta::assert_snapshot!(format!("bad-{}", file.file_stem().unwrap()), shown);
    }
}

#[test]
fn agents_that_are_not_there_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let dir = Utf8Path::from_path(dir.path()).unwrap();
    fs::create_dir_all(dir.join("team/roles")).unwrap();
    fs::write(dir.join("team/roles/w.md"), "Work.\n").unwrap();
    let team = "name: \"@local/t\"\nworkflow:\n  phases:\n    - {name: w, type: standard, role: w, agent: claude-api}\n";
    fs::write(dir.join("team/team.yml"), team).unwrap();
    let suite = |judge: &str, variant: &str| {
        let text = format!(
            "name: s\ncases:\n  - {{name: a, requirement: x, checks: [{{name: q, judge: {{agent: {judge}, rubric: Good.}}}}]}}\nvariants:\n  - {{name: v, team: ./team, agent: {variant}}}\n"
        );
        show(&read_suite(&text, dir, &host()))
    };
    assert_eq!(suite("claude-api", "gemini-api"), "");
    let both = suite("claude-apy", "missing");
    assert!(
        both.contains("there is no agent `claude-apy`") && both.contains("did you mean `claude-api`"),
        "{both}"
    );
    assert!(both.contains("there is no agent `missing`"), "{both}");
}

#[test]
fn arbitrary_text_is_no_panic() {
    use proptest::prelude::*;
    let words = [
        "name",
        "cases",
        ":",
        "- ",
        "\n",
        "  ",
        "{",
        "}",
        "checks",
        "run",
        "x",
        "variants",
        "\"",
        "[",
        "]",
        "workspace",
        "judge",
    ];
    let text =
        prop::collection::vec(prop::sample::select(words.to_vec()), 0..60).prop_map(|words| words.concat());
    let config = ProptestConfig::with_cases(500);
    proptest::test_runner::TestRunner::new(config)
        .run(&text, |text| {
            let _ = read_suite(&text, Utf8Path::new("/nowhere"), &host());
            Ok(())
        })
        .unwrap();
}

#[test]
fn bundled_suites_are_valid() {
    for (name, files) in EXAMPLES {
        let place = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(place.path()).unwrap();
        write_files(dir, files).unwrap();
        let checked = read_suite(&fs::read_to_string(dir.join("suite.yml")).unwrap(), dir, &host());
        assert!(checked.diagnostics.is_empty(), "{name}: {}", show(&checked));
        let suite = checked.suite.unwrap();
        assert_eq!(suite.name, name);
        // Each case requires that its run completes.
        let has_end = |case: &cliq_eval::suite::Case| {
            case.checks.iter().any(|check| matches!(check.kind, CheckKind::End(_)))
        };
        assert!(suite.cases.iter().all(has_end));
        // What is stored is what was read.
        let stored: cliq_eval::suite::Suite =
            serde_json::from_str(&serde_json::to_string(&suite).unwrap()).unwrap();
        assert_eq!(stored, suite);
    }
}

#[test]
fn the_schema_is_pinned() {
    insta::assert_json_snapshot!(suite_schema());
}

#[test]
fn every_field_and_code_is_documented() {
    let docs = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/eval.md")).unwrap();
    for (object, name, required, doc) in field_list() {
        let row = format!("| `{name}` | {} | {doc} |", if required { "yes" } else { "" });
        assert!(docs.contains(&row), "docs/eval.md: the table of {object} lacks the row\n{row}");
    }
    for name in cliq_eval::GATE_NAMES {
        assert!(docs.contains(&format!("`{name}`")), "docs/eval.md does not explain `{name}` of gates");
    }
}

#[test]
fn patterns_of_a_suite_have_limits() {
    let suite = |checks: &str| {
        let text = format!(
            "name: s\ncases:\n  - {{name: a, requirement: r}}\nchecks:\n{checks}variants: [{{name: v, team: '@a/b'}}]\n"
        );
        read_suite(&text, Utf8Path::new("/nowhere"), &host()).diagnostics
    };
    let check = |n: usize, pattern: &str| format!("  - {{name: c{n}, file: a, matches: '{pattern}'}}\n");
    let found = suite(&check(1, "([a-z]{1000}){100}"));
    assert!(found.iter().any(|d| d.message.contains("too large when compiled")), "{found:?}");
    let long = suite(&check(1, &"x".repeat(5000)));
    assert!(long.iter().any(|d| d.message.contains("4096 is the most")), "{long:?}");
    // 5,000 patterns, equal ones and different ones: each is compiled once, and not all of them.
    let many = suite(&(0..5000).map(|n| check(n, &format!("x{n}"))).collect::<String>());
    assert!(many.iter().any(|d| d.message.contains("more than 200 different ones")), "{many:?}");
    let equal = suite(&(0..5000).map(|n| check(n, "[0-9]+ passed")).collect::<String>());
    assert!(equal.iter().all(|d| d.code != "invalid-pattern"), "{equal:?}");
    assert!(many.len() <= 41 && equal.len() <= 41);
}
