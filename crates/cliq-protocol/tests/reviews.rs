//! The `review` block of team.yml: reviewers, forms and their answers.
#![expect(clippy::unwrap_used, reason = "a failure here is the failure of a test")]

use cliq_protocol::{Form, Object, ReviewSpec, Reviewers};
use serde_json::{Value, json};

fn reviewers(value: Value) -> Reviewers {
    Reviewers::from_value(value, "reviewer").unwrap()
}

fn refused(value: Value) -> String {
    Reviewers::from_value(value, "reviewer").unwrap_err().to_string()
}

fn object(value: &Value) -> Object {
    value.as_object().unwrap().clone()
}

#[test]
fn reviewers_are_shown_as_people_say_it() {
    let all = |members: Value| json!({"policy": "all", "members": members});
    let any = |members: Value| json!({"policy": "any", "members": members});
    for (value, shown) in [
        (json!("ann"), "ann"),
        (json!(["ann"]), "ann"),
        (json!(["ann", "bob", "cleo"]), "ann or bob or cleo"),
        (all(json!(["ann", "bob"])), "ann and bob"),
        (all(json!(["ann", any(json!(["bob", "cleo"]))])), "ann and (bob or cleo)"),
        (any(json!([all(json!(["ann", "bob"])), "cleo"])), "(ann and bob) or cleo"),
        // Names in a list are one condition, each group is another.
        (json!(["ann", all(json!(["bob", "cleo"])), "dan"]), "(ann or dan) and (bob and cleo)"),
        (json!([["ann", "bob"]]), "ann or bob"),
    ] {
        assert_eq!(reviewers(value.clone()).to_string(), shown, "{value}");
        let again = reviewers(reviewers(value.clone()).to_value());
        assert_eq!(again.to_string(), shown, "{value}");
    }
}

#[test]
fn names_are_listed_once_in_their_order() {
    let group = json!({"policy": "all", "members": ["bob", ["ann", "bob"], "cleo", "ann"]});
    assert_eq!(reviewers(group).names(), ["bob", "ann", "cleo"]);
    assert_eq!(reviewers(json!("ann")).names(), ["ann"]);
}

#[test]
fn policies_decide_who_is_enough() {
    let cases: [(Value, &[&str], bool); 7] = [
        (json!("ann"), &["ann"], true),
        (json!("ann"), &["bob"], false),
        (json!(["ann", "bob"]), &["bob"], true),
        (json!(["ann", "bob"]), &[], false),
        (json!({"policy": "all", "members": ["ann", "bob"]}), &["ann"], false),
        (json!({"policy": "all", "members": ["ann", "bob"]}), &["ann", "bob"], true),
        (json!(["ann", {"policy": "all", "members": ["bob", "cleo"]}]), &["bob", "cleo"], false),
    ];
    for (value, approving, expected) in cases {
        assert_eq!(
            reviewers(value.clone()).is_satisfied(&|name| approving.contains(&name)),
            expected,
            "{value}"
        );
    }
}

#[test]
fn groups_have_limits() {
    let names = |count: usize| Value::from((0..count).map(|n| format!("r{n}")).collect::<Vec<_>>());
    // The group is one of the 200 nodes.
    assert_eq!(reviewers(names(199)).names().len(), 199);
    assert!(refused(names(200)).contains("at most 200 people and groups"), "{}", refused(names(200)));
    // Nested groups count too.
    let nested = json!({"policy": "all", "members": [names(98), {"policy": "all", "members": names(99)}]});
    assert_eq!(reviewers(nested).names().len(), 99);
    let nested = json!({"policy": "all", "members": [names(98), {"policy": "all", "members": names(100)}]});
    assert!(refused(nested).contains("201 of them"));
    let deep = |depth: usize| (0..depth).fold(json!("ann"), |inner, _| json!([inner, "bob"]));
    assert_eq!(reviewers(deep(8)).names(), ["bob", "ann"]);
    assert!(refused(deep(9)).contains("at most 8 deep"));
    assert!(refused(json!([])).contains("at least one reviewer"));
}

#[test]
fn names_of_reviewers_are_one_line_of_text() {
    let long = "é".repeat(100);
    for right in ["a", "Ann Smith", "ann@example.com", &long] {
        assert_eq!(reviewers(json!(right)).names(), [right]);
    }
    for wrong in
        ["", " ", " ann", "ann ", "a\nb", "a\u{7}", "a\u{202e}b", "a\u{2066}b", "\u{200f}", &"é".repeat(101)]
    {
        assert!(refused(json!(wrong)).contains("a name of 1 to 100 characters"), "{wrong:?}");
    }
}

fn form(fields: Value) -> Form {
    Form::from_value(fields, "review.inputs").unwrap()
}

fn wrong_form(fields: Value) -> String {
    Form::from_value(fields, "review.inputs").unwrap_err().to_string()
}

#[test]
fn answers_get_the_types_of_their_fields() {
    let form = form(json!([
        {"name": "text"}, {"name": "area", "type": "textarea"}, {"name": "number", "type": "number"},
        {"name": "flag", "type": "boolean"}, {"name": "choice", "choices": ["a", 7]},
    ]));
    let names: Vec<&str> = form.fields().iter().map(|field| field.name.as_str()).collect();
    assert_eq!(names, ["text", "area", "number", "flag", "choice"]);
    let given = json!({"text": "a", "area": "a\r\nb", "number": " 1.5 ", "flag": "Yes", "choice": "7"});
    let read = form.check(&object(&given), true).unwrap();
    assert_eq!(
        Value::Object(read),
        json!({"text": "a", "area": "a\nb", "number": 1.5, "flag": true, "choice": "7"})
    );
    for (word, flag) in [("true", true), ("on", true), ("false", false), ("No", false), ("off", false)] {
        let read = form.check(&object(&json!({"flag": word})), true).unwrap();
        assert_eq!(read["flag"], flag, "{word}");
    }
    for (given, problem) in [
        (json!({"text": "a\nb"}), "`text` takes one line"),
        (json!({"text": "a\rb"}), "`text` takes one line"),
        (json!({"number": "many"}), "`number` takes a number"),
        (json!({"flag": "perhaps"}), "`flag` takes yes or no"),
        (json!({"choice": "b"}), "`choice` takes one of a, 7"),
        (json!({"text": ["a"]}), "`text` takes a text, not a list"),
        (json!({"area": "x".repeat(64 * 1024 + 1)}), "`area` is longer than 64 KiB"),
        (json!({"other": 1}), "there is no field `other`: the form has text, area, number, flag, choice"),
    ] {
        let problems = form.check(&object(&given), true).unwrap_err();
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].starts_with(problem), "{problems:?}");
    }
    assert!(form.check(&object(&json!({"area": "x".repeat(64 * 1024)})), true).is_ok());
    let empty = Form::default().check(&object(&json!({"x": 1})), true).unwrap_err();
    assert_eq!(empty, ["there is no field `x`: the form has no fields"]);
}

#[test]
fn required_fields_are_demanded_of_a_complete_answer_only() {
    let form = form(json!([{"name": "why", "label": "The reason", "required": true}, {"name": "more"}]));
    for nothing in [json!({}), json!({"why": null}), json!({"why": "  "}), json!({"why": ""})] {
        let problems = form.check(&object(&nothing), true).unwrap_err();
        assert_eq!(problems, ["`why` is missing: The reason"], "{nothing}");
        assert!(form.check(&object(&nothing), false).unwrap().is_empty());
    }
    assert_eq!(form.check(&object(&json!({"why": "so"})), true).unwrap().len(), 1);
}

#[test]
fn defaults_stand_for_missing_answers() {
    let form = form(json!([{"name": "size", "type": "number", "default": "3"}]));
    assert_eq!(form.check(&Object::new(), true).unwrap()["size"], 3);
    assert_eq!(form.check(&object(&json!({"size": 4})), true).unwrap()["size"], 4);
    let wrong = wrong_form(json!([{"name": "size", "type": "number", "default": "many"}]));
    assert!(wrong.contains("review.inputs[0].default"), "{wrong}");
}

#[test]
fn forms_are_checked() {
    let fields =
        |count: usize| Value::from((0..count).map(|n| json!({"name": format!("f{n}")})).collect::<Vec<_>>());
    assert_eq!(form(fields(50)).fields().len(), 50);
    assert!(wrong_form(fields(51)).contains("at most 50 fields"));
    for name in ["a", "a_b-c9", &"a".repeat(60)] {
        assert_eq!(form(json!([{"name": name}])).fields()[0].label, name, "the name is the label");
    }
    for name in ["", "A", "9a", "_a", "a b", "aB", "é", "a.b", &"a".repeat(61)] {
        assert!(wrong_form(json!([{"name": name}])).contains("lower-case letters"), "{name}");
    }
    for (wrong, part) in [
        (json!([{"name": "a"}, {"name": "a"}]), "review.inputs[1].name"),
        (json!([{"name": "a", "choices": ["x", "x"]}]), "choices that differ"),
        (json!([{"name": "a", "choices": ["x", " "]}]), "a list of texts"),
        (json!([{"name": "a", "choices": [true]}]), "a list of texts"),
        (json!([{"name": "a", "type": "select", "choices": []}]), "at least one choice"),
        (json!([{"name": "a", "type": "select"}]), "at least one choice"),
        (json!([{"name": "a", "type": "number", "choices": ["x"]}]), "choices only with `type: select`"),
        (json!([{"name": "a", "type": "colour"}]), "text, textarea, number, boolean or select"),
        (json!([{"name": "a", "size": 1}]), "review.inputs[0].size"),
        (json!({"name": "a"}), "a list of fields"),
    ] {
        let shown = wrong_form(wrong.clone());
        assert!(shown.contains(part), "{wrong}: {shown}");
    }
    let select = form(json!([{"name": "a", "type": "select", "choices": ["x"]}]));
    assert_eq!(select.to_value()[0]["choices"], json!(["x"]));
    let again: Form = serde_json::from_value(select.to_value()).unwrap();
    assert_eq!(again, select);
}

#[test]
fn artifacts_of_a_review_are_checked() {
    let spec = |artifacts: Value| ReviewSpec::from_value(json!({"reviewer": "ann", "artifacts": artifacts}));
    assert_eq!(spec(json!("notes.md")).unwrap().artifacts, ["notes.md"]);
    assert_eq!(spec(json!(["a", "b/*"])).unwrap().artifacts, ["a", "b/*"]);
    for wrong in [json!([" "]), json!([1]), json!(["a", ""])] {
        assert!(spec(wrong).unwrap_err().to_string().contains("a list of files and globs"));
    }
    let many = |count: usize| Value::from(vec!["a"; count]);
    let most = (1..).find(|count| spec(many(*count)).is_err()).unwrap() - 1;
    assert!(most >= 10, "{most}");
    let refused = spec(many(most + 1)).unwrap_err().to_string();
    assert!(refused.contains(&format!("at most {most} files and globs")), "{refused}");
}

#[test]
fn select_needs_choices() {
    for item in [
        json!({"name": "x", "choices": []}),
        json!({"name": "x", "type": "select"}),
        json!({"name": "x", "type": "select", "choices": []}),
    ] {
        let error = Form::from_value(json!([item]), "review.inputs").unwrap_err().to_string();
        assert!(
            error.contains("review.inputs[0].choices") && error.contains("at least one choice"),
            "{error}"
        );
    }
}

#[test]
fn problems_of_large_answers_are_few_and_short() {
    // 63 KB with a name in each three bytes gave 22 MB of text.
    let form = form(json!(
        (0..50).map(|n| json!({"name": format!("a-long-name-of-a-field-{n}")})).collect::<Vec<_>>()
    ));
    let given: Object =
        (0..200_000).map(|n| (n.to_string(), json!(1))).chain([("x".repeat(100_000), json!(1))]).collect();
    let problems = form.check(&given, true).unwrap_err();
    assert_eq!((problems.len(), problems[20].as_str()), (21, "and 199981 more"));
    assert!(problems.iter().all(|problem| problem.len() <= 300), "{problems:?}");
}

#[test]
fn large_forms_are_refused_or_take_linear_time() {
    let choices = |count: usize| json!([{"name": "x", "choices": (0..count).collect::<Vec<_>>()}]);
    assert!(Form::from_value(choices(1000), "f").is_ok());
    let error = Form::from_value(choices(200_000), "f").unwrap_err().to_string();
    assert!(error.contains("at most 1000 choices"), "{error}");
    let long = json!([{"name": "x", "choices": ["y".repeat(2000)]}]);
    assert!(Form::from_value(long, "f").unwrap_err().to_string().len() < 1000);
    let form = Form::from_value(choices(1000), "f").unwrap();
    let problems = form.check(&object(&json!({"x": "z".repeat(60_000)})), true).unwrap_err();
    assert!(problems[0].len() <= 300, "{problems:?}");
}

#[test]
fn large_reviewers_are_refused() {
    let deep = (0..100).fold(json!("ann"), |inner, _| json!({"members": [inner]}));
    assert!(Reviewers::from_value(deep, "r").is_err());
    let wide = json!(vec!["ann"; 300_000]);
    assert!(Reviewers::from_value(wide, "r").unwrap_err().to_string().len() < 1000);
}
