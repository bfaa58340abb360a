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

fn dag(steps: usize) -> String {
    format!("[1]{}.size() > 0", ".map(a,[a,a])".repeat(steps))
}

#[test]
fn memory_of_an_evaluation_is_bounded() {
    let list: Vec<u32> = (0..2000).collect();
    let body = json!({"l": list, "t": "x".repeat(60_000), "m": {"k": "v".repeat(20_000)}});
    let values = json!({"body": body});
    for source in [
        // Each step doubles a value whose parts are equal.
        &dag(21),
        &dag(40),
        concat!(include_str!("../../../fixtures/fuzz/expr-dag-263-bytes.txt"), ".map(a,[a,a]).map(a,[a,a])"),
        "body.l.map(x, body).size() > 0",
        "body.l.map(x, [body.t]).size() > 0",
        "body.l.map(x, {'k': body.m}).size() > 0",
        "body.l.filter(x, body == body).size() > 0",
        "body.l.all(x, body.t in [body.t])",
        "body.l.map(x, [body, body, body, body]).size() > 0 || true",
        "[body.l].map(a, [a, a, a, a, a, a, a, a]).map(a, [a, a, a, a, a, a, a, a]).map(a, [a, a, a, a, a, a, a, a]).map(a, [a, a, a, a, a, a, a, a]).map(a, [a, a, a, a, a, a, a, a]).size() > 0",
    ] {
        let found = evaluate(source, &values);
        assert!(
            matches!(found, Err(EvaluationError::TooLarge | EvaluationError::TooManySteps)),
            "{source}: {found:?}"
        );
    }
    // What people write stays far below.
    for (source, expected) in [
        ("body.l.filter(x, x % 2 == 0).map(x, [x, x]).size()", json!(1000)),
        ("body.l.all(x, size(body.t) > 3)", json!(true)),
        ("body.l.exists(x, x in body.l && x == 1999)", json!(true)),
        ("body.t.contains('y') || body.m.k.startsWith('v')", json!(true)),
        (&dag(8), json!(true)),
    ] {
        assert_eq!(evaluate(source, &values), Ok(expected), "{source}");
    }
}

#[test]
fn regular_expressions_have_a_limit_and_are_compiled_once() {
    let list: Vec<u32> = (0..3000).collect();
    let values = json!({"l": list, "t": "ab ".repeat(10_000)});
    let large = include_str!("../../../fixtures/fuzz/expr-regex-in-loop.txt").trim_end();
    // Errors are swallowed by `|| true`: the size is refused each time without a compilation, or the work exceeds the limit.
    let found = evaluate(large, &values);
    assert!(matches!(found, Ok(Value::Bool(true)) | Err(EvaluationError::TooLarge)), "{found:?}");
    let refused = evaluate("'a'.matches('[\\\\pL]{2000}')", &values).expect_err("too large").to_string();
    assert!(refused.contains("too large"), "{refused}");
    let wrong = evaluate("'a'.matches('(')", &values).expect_err("wrong").to_string();
    assert!(wrong.contains("not a valid regular expression") && wrong.len() < 500, "{wrong}");
    assert_eq!(evaluate("l.all(x, string(x).matches('^[0-9]+$'))", &values), Ok(json!(true)));
    assert_eq!(evaluate("matches('feature/x', '^feature/') && !'x'.matches('y')", &values), Ok(json!(true)));
    for source in
        ["l.all(x, t.matches('[ab]*a[ab]{200}z') || true)", "l.all(x, string(x).matches(string(x)))"]
    {
        assert_eq!(evaluate(source, &values), Err(EvaluationError::TooLarge), "{source}");
    }
}

#[test]
fn messages_are_short_whatever_the_input() {
    let long = "x".repeat(4000);
    for source in [
        format!("{long}(1)"),
        format!("'{long}"),
        format!("\"{long}\" +"),
        format!("{long} {long}").split_off(4000),
    ] {
        if let Err(error) = Expression::parse(&source) {
            assert!(error.message.len() < 2000, "{}", error.message.len());
        }
    }
    let values = json!({"body": {"t": "y".repeat(1_000_000), "l": vec![1; 100_000]}});
    for source in ["int(body.t) > 0", "max(body.l, body.t) == 1", "{'a': 1}[body.t]", "body.l[body.t]"] {
        let error = evaluate(source, &values).expect_err(source).to_string();
        assert!(error.len() < 1000, "{source}: {}", error.len());
    }
}
