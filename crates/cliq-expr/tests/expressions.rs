//! Expressions as authors write them, and texts that must not do harm.

use cliq_expr::{EvaluationError, Expression, Kind};
use proptest::prelude::*;
use serde_json::{Value, json};

fn evaluate(source: &str, values: &Value) -> Result<Value, EvaluationError> {
    Expression::parse(source).expect(source).evaluate(values.as_object().expect("an object"))
}

#[test]
fn expressions_read_handoffs_verdicts_results_and_inputs() {
    let values = json!({
        "inputs": {"mode": "fast"},
        "handoff": {"review": {"findings": [{"file": "a.rs", "line": 3}, {"file": "b.rs", "line": 9}]}, "my-phase": {"n": 2}},
        "verdict": {"check": {"outcome": "PASS"}},
        "results": {"tests": [{"name": "unit", "pass": false}]},
        "item": {"file": "c.rs"},
        "index": 4,
    });
    for (source, expected) in [
        ("handoff.review.findings.size() > 1", json!(true)),
        ("size(handoff.review.findings) == 2", json!(true)),
        ("handoff.review.findings.filter(f, f.line > 5)", json!([{"file": "b.rs", "line": 9}])),
        ("handoff.review.findings.map(f, f.file)", json!(["a.rs", "b.rs"])),
        ("handoff.review.findings.exists(f, f.file.endsWith('.rs') && f.line == 9)", json!(true)),
        ("handoff[\"my-phase\"].n * 2 == 4", json!(true)),
        ("handoff.`my-phase`.n", json!(2)),
        ("has(handoff.`my-phase`) && !has(handoff.absent)", json!(true)),
        ("'my-phase' in handoff && !('absent' in handoff)", json!(true)),
        ("verdict.check.outcome == 'PASS' && inputs.mode == 'fast'", json!(true)),
        ("results.tests.exists(r, r.name == 'unit' && !r.pass)", json!(true)),
        ("item.file + ':' + string(index)", json!("c.rs:4")),
        ("[item] + [1, 2.5, null, true]", json!([{"file": "c.rs"}, 1, 2.5, null, true])),
        ("inputs.mode.matches('^f.*t$')", json!(true)),
        (
            "has(handoff.review.findings) ? handoff.review.findings : []",
            json!([{"file": "a.rs", "line": 3}, {"file": "b.rs", "line": 9}]),
        ),
        ("{'a': 1, 'b': [index]}", json!({"a": 1, "b": [4]})),
    ] {
        assert_eq!(evaluate(source, &values), Ok(expected), "{source}");
    }
}

#[test]
fn references_name_variables_members_and_presence_tests() {
    let expression = Expression::parse(
        "has(handoff.a) && handoff.a.x > 1 || 'b' in handoff || handoff['c-d'].all(v, v == item) || verdict.g.outcome == 'PASS'",
    )
    .expect("valid");
    let found: Vec<(String, bool, bool)> = expression
        .references()
        .iter()
        .map(|r| (format!("{}.{}", r.root, r.member.as_deref().unwrap_or("*")), r.is_read, r.is_tested))
        .collect();
    let expected = [
        ("handoff.a", true, true),
        ("handoff.b", false, true),
        ("handoff.c-d", true, false),
        ("item.*", true, false),
        ("verdict.g", true, false),
    ];
    assert_eq!(found, expected.map(|(name, read, tested)| (name.to_owned(), read, tested)));
    assert!(expression.bound().contains("v"));
    let whole =
        Expression::parse("handoff.size() > 0 && item.map(handoff, handoff).size() > 0").expect("valid");
    let roots: Vec<_> = whole.references().iter().map(|r| (r.root.as_str(), r.member.as_deref())).collect();
    assert_eq!(roots, [("handoff", None), ("item", None)]);
    assert!(whole.bound().contains("handoff"));
}

#[test]
fn types_are_inferred_from_operators_and_literals() {
    for (source, kind) in [
        ("handoff.a.x > 1", Kind::Bool),
        ("!handoff.a.x", Kind::Bool),
        ("has(handoff.a)", Kind::Bool),
        ("handoff.a.all(x, x > 1)", Kind::Bool),
        ("handoff.a.exists_one(x, x > 1)", Kind::Bool),
        ("handoff.a.filter(x, x > 1)", Kind::List),
        ("handoff.a.map(x, x + 1)", Kind::List),
        ("[1] + handoff.a", Kind::List),
        ("true ? [1] : [2]", Kind::List),
        ("handoff.a.size()", Kind::Number),
        ("inputs.x", Kind::Text),
        ("inputs['x']", Kind::Text),
        ("handoff", Kind::Other),
        ("handoff.a.x", Kind::Unknown),
        ("item", Kind::Unknown),
    ] {
        assert_eq!(Expression::parse(source).expect(source).kind(), kind, "{source}");
    }
}

#[test]
fn mistakes_are_described_with_their_place() {
    for (source, message, column) in [
        ("", "empty", 1),
        ("a &&", "", 0),
        ("foo(1)", "no function `foo`", 1),
        ("timestamp('2026-01-01T00:00:00Z') < x", "no function `timestamp`", 0),
        ("Thing{a: 1}", "no function `Thing`", 0),
        ("'open", "", 0),
    ] {
        let error = Expression::parse(source).expect_err(source);
        assert!(error.message.contains(message), "{source}: {error:?}");
        assert!(column == 0 || error.column >= column, "{source}: {error:?}");
        assert!(!error.message.is_empty());
    }
    let long = format!("'{}' == ''", "x".repeat(5000));
    assert!(Expression::parse(&long).expect_err("long").message.contains("maximum"));
}

#[test]
fn failures_of_an_evaluation_are_errors() {
    for (source, part) in [
        ("handoff.absent.x", "no `absent`"),
        ("1 / 0", "division by zero"),
        ("[1][3] == 1", "out of bounds"),
        ("'a' + 1", "cannot be applied"),
        ("9223372036854775807 + 1", "too large"),
    ] {
        let error = evaluate(source, &json!({"handoff": {}})).expect_err(source).to_string();
        assert!(error.contains(part), "{source}: {error}");
    }
}

#[test]
fn work_of_an_evaluation_is_bounded() {
    let list: Vec<u32> = (0..1000).collect();
    let values = json!({"item": list, "inputs": {"x": "y".repeat(100_000)}});
    for source in [
        "item.all(a, item.all(b, item.all(c, a + b + c >= 0)))",
        "item.map(a, item.map(b, item.map(c, a))).size() > 0",
        "item.map(a, inputs.x + inputs.x).size() > 0",
        "[inputs.x].map(a, a + a).map(a, a + a).map(a, a + a).map(a, a + a).map(a, a + a).map(a, a + a).size() > 0",
    ] {
        assert_eq!(evaluate(source, &values), Err(EvaluationError::TooManySteps), "{source}");
    }
    assert_eq!(evaluate("item.filter(a, a % 2 == 0).size()", &values), Ok(json!(500)));
}

#[test]
fn deep_nesting_is_refused_without_a_crash() {
    let on_small_stack = |source: String| {
        let parse = move || drop(Expression::parse(&source).map(|e| e.evaluate(&serde_json::Map::new())));
        std::thread::Builder::new()
            .stack_size(2 << 20)
            .spawn(parse)
            .expect("started")
            .join()
            .expect("no overflow");
    };
    for piece in [
        "(",
        "[",
        "{",
        "!",
        "-",
        "!(",
        "-(",
        "a?",
        "a?b:",
        "a.",
        "a[",
        "f(",
        "[].map(x,",
        "a||",
        "a&&(",
        "'",
        "\"\"\"",
        "`",
        "1+",
        "a in ",
        "- -",
    ] {
        on_small_stack(piece.repeat(4096 / piece.len()));
        on_small_stack(piece.repeat(60));
        on_small_stack(format!("{}1", piece.repeat(150)));
    }
    for (open, close) in
        [("(", ")"), ("[", "]"), ("size([", "])"), ("[1].map(x, ", ")"), ("has(a.b) && (", ")")]
    {
        for depth in [5, 20, 45, 100, 300] {
            on_small_stack(format!("{}1{}", open.repeat(depth), close.repeat(depth)));
        }
    }
}

proptest! {
    #[test]
    fn any_text_is_parsed_or_refused(source in "[a-z(){}\\[\\]!?:.,&|+*/<>='\"` 0-9-]{0,60}") {
        if let Ok(expression) = Expression::parse(&source) {
            let _ = expression.evaluate(&serde_json::Map::new());
        }
    }

    #[test]
    fn json_values_survive_an_evaluation(numbers in prop::collection::vec(any::<i64>(), 0..20), text in ".{0,40}") {
        let value = json!({"n": numbers, "t": text, "m": {"k": [null, true, 1.5]}});
        prop_assert_eq!(evaluate("item", &json!({"item": value})), Ok(value));
    }
}
