//! Reports: numbers, forms, marks, comparisons.

use serde_json::{Value, json};

use crate::eval::world::{World, case};

fn two_variants() -> World {
    let world = World::new();
    world.role("good", "answer: right\ncost: 0.02\n");
    world.role("bad", "answer: wrong | <b>x</b>\ncost: 0.01\n");
    world.suite("repeats: 4", &["a", "b", "c", "d", "e", "f", "g", "h"].map(case).concat(), &["bad", "good"]);
    world
}

#[test]
fn report_has_the_numbers_of_each_variant() {
    let world = two_variants();
    let report = world.report(&[]);
    assert_eq!(
        report["counts"],
        json!({"all": 64, "counted": 64, "passed": 32, "infrastructure": 0, "skipped": 0, "left": 0})
    );
    let variant = |n: usize| &report["variants"][n];
    assert_eq!((variant(0)["name"].as_str(), variant(0)["pass_rate"].as_f64()), (Some("bad"), Some(0.0)));
    assert_eq!((variant(1)["trials"].as_u64(), variant(1)["passed"].as_u64()), (Some(32), Some(32)));
    assert_eq!(variant(1)["pass_power"], json!({"k": 4, "value": 1.0}));
    assert_eq!(variant(1)["cost_usd"]["median"], json!(0.02));
    let high = variant(0)["pass_rate_interval"][1].as_f64().unwrap();
    assert!((0.1..0.12).contains(&high), "{high}");
    let pair = &report["comparisons"][0];
    assert_eq!((pair["first"].as_str(), pair["conclusion"].as_str()), (Some("good"), Some("better")));
    assert!(
        pair["sentence"]
            .as_str()
            .unwrap()
            .starts_with("good is better than bad: it passes 100 points more often")
    );
    // A check that passes in no trial of one variant and in each of the other tells much.
    assert!(
        report["checks"].as_array().unwrap().iter().all(|check| check["mark"].is_null()),
        "{}",
        report["checks"]
    );
    let trial = &report["trials"][0];
    assert_eq!((trial["outcome"].as_str(), &trial["failed_checks"]), (Some("failed"), &json!(["right"])));
    // Each trial has its run, with a journal.
    let workspace = trial["workspace"].as_str().unwrap();
    let journal = std::fs::read_to_string(format!("{workspace}/.cliq/journal.jsonl")).unwrap();
    assert!(journal.contains(trial["run_id"].as_str().unwrap()));
    assert!(journal.contains("test: bad, a, repeat 1"), "the title names the trial");
}

#[test]
fn report_has_four_forms() {
    let world = two_variants();
    let shown = world.eval(&["suite.yml", "--markdown", "r.md", "--html", "r.html"]).expect(0);
    let shown = shown.says("bad").says("0/32").says("100 %").says("good is better than bad");
    assert!(shown.stderr.contains("64 of 64 trials"), "progress on standard error: {}", shown.stderr);
    assert!(!shown.stdout.contains('\u{1b}'), "no colour in a pipe");
    let id = world.eval(&["list", "--json"]).json()["evaluations"][0]["id"].as_str().unwrap().to_owned();
    let place =
        world.eval(&["list", "--json"]).json()["evaluations"][0]["directory"].as_str().unwrap().to_owned();
    let stable = |text: &str| {
        let text = text.replace(&place, "DIR").replace(&id, "ID");
        let text = regex(r"\d{4}-\d\d-\d\dT[\d:.]+Z", &text, "TIME");
        regex(r"\b\d+\.\d s\b", &text, "N s")
    };
    insta::assert_snapshot!("markdown", stable(&world.env.read("r.md")));
    let html = world.env.read("r.html");
    assert!(
        !html.contains("<script") && !html.contains("http://")
            || html.matches("http://").count() == html.matches("http://www.w3.org/2000/svg").count()
    );
    assert!(
        html.contains("<meta charset=\"utf-8\">") && html.contains("grep") || html.contains("exit code 1")
    );
    // The same evaluation, shown again.
    let again = world.eval(&["show", "--json"]).expect(0).json();
    assert_eq!(again["counts"]["passed"], 32);
    assert_eq!(again["id"], id.as_str());
    let tail = id.rsplit('-').next().unwrap();
    world.eval(&["show", tail]).expect(0).says("good is better than bad");
    world.eval(&["show", "0000"]).expect(2).says("cliq eval list");
}

fn regex(pattern: &str, text: &str, with: &str) -> String {
    regex::Regex::new(pattern).unwrap().replace_all(text, with).into_owned()
}

#[test]
fn json_document_is_pinned() {
    let world = World::new();
    world.role("one", "answer: right\n");
    world.role("two", "answer: wrong\n");
    world.suite("repeats: 2", &case("a"), &["one", "two"]);
    let mut report = world.report(&[]);
    let redact =
        |value: &mut Value, keys: &[&str]| keys.iter().for_each(|key| value[*key] = json!("REDACTED"));
    redact(&mut report, &["id", "created_at", "ended_at"]);
    for trial in report["trials"].as_array_mut().unwrap() {
        redact(trial, &["run_id", "workspace", "page", "duration_s"]);
    }
    let mut summaries: Vec<&mut Value> = Vec::new();
    let (variants, cases) = (report["variants"].take(), report["cases"].take());
    let (mut variants, mut cases) = (variants, cases);
    summaries.extend(variants.as_array_mut().unwrap());
    summaries.extend(cases[0]["variants"].as_object_mut().unwrap().values_mut());
    for summary in summaries {
        redact(summary, &["duration_s"]);
        if summary.get("team").is_some() {
            redact(summary, &["team"]);
        }
    }
    (report["variants"], report["cases"]) = (variants, cases);
    insta::assert_json_snapshot!(report);
}

#[test]
fn checks_that_tell_nothing_are_marked() {
    let world = World::new();
    world.role("one", "answer: right\n");
    let checks = "[{name: exists, file: answer.txt}, {name: never, file: other.txt}]";
    world.suite("repeats: 1", &format!("  - {{name: a, requirement: Do., checks: {checks}}}\n"), &["one"]);
    let report = world.report(&[]);
    let marks: Vec<_> =
        report["checks"].as_array().unwrap().iter().map(|check| check["mark"].as_str()).collect();
    assert_eq!(marks, [None, Some("never_failed"), Some("never_passed")]);
    world.eval(&["show"]).expect(0).says("check never never passed in a");
}

#[test]
fn two_evaluations_are_compared() {
    let world = two_variants();
    let first = world.report(&["--variant", "good"])["id"].as_str().unwrap().to_owned();
    world.role("good", "answer: wrong\n");
    let second = world.report(&["--variant", "good"])["id"].as_str().unwrap().to_owned();
    let compared = world.eval(&["compare", &second, &first, "--json"]).expect(0).json();
    assert_eq!(compared["comparisons"][0]["conclusion"], "worse");
    world.eval(&["compare", &second, &first]).expect(0).says("is worse than good");
    // Reports of another machine are files.
    world.env.write("first.json", &world.eval(&["show", &first, "--json"]).expect(0).stdout);
    world.eval(&["compare", &second, "first.json"]).expect(0).says("is worse than good");
    world.env.write("bad.json", "{}");
    world.eval(&["compare", &second, "bad.json"]).expect(2).says("is not a report");
}
