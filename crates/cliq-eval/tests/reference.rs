//! The statistics against scipy and statsmodels, on random tables.
#![expect(clippy::unwrap_used, reason = "a failure here is the failure of a test")]

use std::io::Write;
use std::process::{Command, Stdio};

use cliq_eval::statistics::{
    CaseCounts, bootstrap_difference, flip_rate, mcnemar_exact, newcombe, pass_power, quantile, wilson,
};
use serde_json::{Value, json};

/// Number of random tables.
const TABLES: usize = 60;

fn table(random: &mut fastrand::Rng) -> Value {
    let cases = random.usize(1..12);
    let trials: Vec<u64> = (0..cases).map(|_| random.u64(1..15)).collect();
    let passed: Vec<u64> = trials.iter().map(|n| random.u64(0..=*n)).collect();
    let side = |random: &mut fastrand::Rng| {
        let n = random.u64(1..60);
        [random.u64(0..=n), n]
    };
    let differences: Vec<f64> = (0..random.usize(8..25)).map(|_| random.f64() * 2.0 - 1.0).collect();
    json!({
        "trials": trials,
        "passed": passed,
        "k": random.u64(1..6),
        "first": side(random),
        "second": side(random),
        "discordant": [random.u64(0..40), random.u64(0..40)],
        "values": (0..random.usize(1..40)).map(|_| random.f64() * 100.0).collect::<Vec<_>>(),
        "differences": differences,
    })
}

/// Results of scipy and statsmodels, or `None` if they are not installed.
fn reference(tables: &[Value]) -> Option<Vec<Value>> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let python = format!("{root}/target/venv/bin/python");
    let has = |program: &str| {
        let mut command = Command::new(program);
        command.args(["-c", "import scipy, statsmodels"]).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    if !has(&python) {
        cliq_testkit::not_run("target/venv has no scipy and statsmodels (./test makes it)");
        return None;
    }
    let mut child = Command::new(python)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reference.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(json!(tables).to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    serde_json::from_slice(&output.stdout).unwrap()
}

#[track_caller]
fn near(ours: f64, theirs: &Value, tolerance: f64, what: &str) {
    let theirs = theirs.as_f64().unwrap();
    assert!((ours - theirs).abs() <= tolerance, "{what}: {ours} here, {theirs} there");
}

#[test]
fn statistics_agree_with_scipy_and_statsmodels() {
    let mut random = fastrand::Rng::with_seed(7);
    let tables: Vec<Value> = (0..TABLES).map(|_| table(&mut random)).collect();
    let Some(expected) = reference(&tables) else { return };
    for (table, expected) in tables.iter().zip(&expected) {
        let numbers = |name: &str| -> Vec<u64> { serde_json::from_value(table[name].clone()).unwrap() };
        let reals = |name: &str| -> Vec<f64> { serde_json::from_value(table[name].clone()).unwrap() };
        let counts: Vec<CaseCounts> = numbers("passed")
            .into_iter()
            .zip(numbers("trials"))
            .map(|(passed, trials)| CaseCounts { passed, trials })
            .collect();
        for (case, expected) in counts.iter().zip(expected["wilson"].as_array().unwrap()) {
            let interval = wilson(case.passed, case.trials);
            near(interval.low, &expected[0], 1e-9, "Wilson, low");
            near(interval.high, &expected[1], 1e-9, "Wilson, high");
        }
        let side = |name: &str| (numbers(name)[0], numbers(name)[1]);
        let interval = newcombe(side("first"), side("second"));
        near(interval.low, &expected["newcombe"][0], 1e-9, "Newcombe, low");
        near(interval.high, &expected["newcombe"][1], 1e-9, "Newcombe, high");
        let (first, second) = side("discordant");
        near(mcnemar_exact(first, second), &expected["mcnemar"], 1e-9, "McNemar");
        let k = table["k"].as_u64().unwrap();
        for (ours, name) in [(pass_power(&counts, k), "pass_power"), (flip_rate(&counts), "flip_rate")] {
            assert_eq!(ours.is_some(), !expected[name].is_null(), "{name} of {table}");
            if let Some(ours) = ours {
                near(ours, &expected[name], 1e-9, name);
            }
        }
        for (probability, expected) in [0.5, 0.9].iter().zip(expected["quantiles"].as_array().unwrap()) {
            near(quantile(&reals("values"), *probability).unwrap(), expected, 1e-9, "quantile");
        }
        // Resamples are random on both sides: 2,000 here, 20,000 there.
        let interval = bootstrap_difference(&reals("differences")).unwrap();
        near(interval.low, &expected["bootstrap"][0], 0.06, "bootstrap, low");
        near(interval.high, &expected["bootstrap"][1], 0.06, "bootstrap, high");
    }
}
