//! Receivers that hang, refuse, are away, or take a part only.

use std::time::{Duration, Instant};

use cliq_testkit::env::{Env, done};
use serde_json::json;

use super::collector::Collector;

const TEAM: &str =
    "workflow:\n  phases:\n    - {name: build, type: exec, commands: [{name: compile, run: 'true'}]}\n";

/// Runs the project with a receiver. Returns what was said.
fn run(env: &Env, endpoint: &str) -> String {
    let mut command = env.command(["run", "-f", "--headless"]);
    done(&command.env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint).output().expect("it starts")).expect(0).stderr
}

#[test]
fn what_a_receiver_did_not_take_is_sent_later() {
    let env = Env::new(TEAM, &[]);
    let said = run(&env, "http://127.0.0.1:9");
    assert_eq!(said.matches("warning: ").count(), 1, "{said}");
    assert!(said.contains("telemetry: http://127.0.0.1:9/v1/traces does not take traces now"), "{said}");
    assert!(said.contains("cliq telemetry send"), "{said}");
    // The process in the background tries it for a while.
    let Some(collector) = Collector::start("200", "0") else { return };
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let mut send = env.command(["telemetry", "send", "--timeout", "5", "--json"]);
        let sent =
            done(&send.env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.endpoint).output().expect("it starts"));
        if sent.code == 0 {
            let report = sent.json();
            assert_eq!(
                (report["complete"].clone(), report["problem"].clone()),
                (true.into(), ().into()),
                "{report}"
            );
            break;
        }
        assert!(Instant::now() < deadline && sent.stderr.contains("another process"), "{}", sent.stderr);
    }
    let spans = collector.spans();
    assert_eq!(spans.len(), 3, "the run, its phase and its command: {spans:#?}");
}

#[test]
fn a_receiver_that_hangs_or_refuses_does_no_harm() {
    for (status, delay) in [("200", "30"), ("500", "0"), ("404", "0")] {
        let Some(collector) = Collector::start(status, delay) else { return };
        let env = Env::new(TEAM, &[]);
        let said = run(&env, &collector.endpoint);
        assert!(said.matches("warning: ").count() <= 1, "{status} {delay}: {said}");
        if status != "200" {
            assert!(said.contains(&format!("status {status}")), "{said}");
        }
    }
}

#[test]
fn what_a_receiver_refuses_is_not_lost() {
    let Some(refuses) = Collector::start("401", "0") else { return };
    let env = Env::new(TEAM, &[]);
    let said = run(&env, &refuses.endpoint);
    assert!(said.contains("refused traces: status 401") && said.contains("telemetry send"), "{said}");
    let Some(collector) = Collector::start("200", "0") else { return };
    let send = |arguments: &[&str]| {
        let mut send = env.command(["telemetry", "send"].iter().chain(arguments));
        done(&send.env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.endpoint).output().expect("it starts"))
            .expect(0)
    };
    let report = send(&["--json"]).json();
    assert_eq!((report["spans"].as_u64(), report["complete"].as_bool()), (Some(3), Some(true)), "{report}");
    assert_eq!(collector.spans().len(), 3);
    assert!(send(&[]).stdout.contains("0 spans and 0 log lines"), "nothing is sent twice");
    let mut again = env.command(["telemetry", "send", "--json"]);
    let end =
        done(&again.env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9").output().expect("it starts"));
    assert_eq!(end.expect(0).json()["complete"], true, "nothing is left");
}

#[test]
fn options_that_are_not_understood_are_named_once_and_end_no_run() {
    let env = Env::new(TEAM, &[]);
    let with = |name: &str, value: &str| {
        let mut command = env.command(["run", "-f", "--headless"]);
        command.env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9").env(name, value);
        done(&command.output().expect("it starts")).expect(0).stderr
    };
    let said = with("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc");
    assert_eq!(said.matches("OTEL_EXPORTER_OTLP_PROTOCOL: \"grpc\" is not understood").count(), 1, "{said}");
    let said = with("OTEL_EXPORTER_OTLP_HEADERS", "sk-secret-without-a-name");
    assert!(said.contains("OTEL_EXPORTER_OTLP_HEADERS") && !said.contains("sk-secret"), "{said}");
    let said = with("OTEL_SDK_DISABLED", "true");
    assert!(!said.contains("telemetry"), "{said}");
    let said = with("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9/v1/traces");
    assert!(said.contains("OTEL_EXPORTER_OTLP_ENDPOINT: the address ends with that of one signal"), "{said}");
    // With a receiver in the settings too.
    env.cliq(["settings", "set", "-g", "telemetry.endpoint", "http://127.0.0.1:9"]).expect(0);
    let mut command = env.command(["run", "-f", "--headless"]);
    let output = command.env("OTEL_TRACES_SAMPLER", "sometimes").output().expect("it starts");
    let said = done(&output).expect(0).stderr;
    assert!(said.contains("OTEL_TRACES_SAMPLER: \"sometimes\" is not understood"), "{said}");
}

#[test]
fn settings_name_a_receiver() {
    let env = Env::new(TEAM, &[]);
    env.cliq(["telemetry", "show"]).expect(0).says("nothing is exported");
    env.cliq(["telemetry", "send", "--run-dir", "."]).expect(1).says("there is no run in .");
    env.cliq(["telemetry", "send"]).expect(1).says("there is no receiver");
    let Some(collector) = Collector::start("200", "0") else { return };
    env.cliq(["settings", "set", "-g", "telemetry.endpoint", &collector.endpoint]).expect(0);
    env.cliq(["settings", "set", "-g", "telemetry.headers.X-Key", "sk-of-settings"]).expect(0);
    env.cliq(["settings", "set", "-g", "telemetry.signals", "traces,spans"])
        .expect(2)
        .says("a list of traces, metrics and logs");
    env.cliq(["settings", "set", "-g", "telemetry.signals", "traces"]).expect(0);
    let shown = env.cliq(["telemetry", "show"]).expect(0);
    assert!(
        shown.stdout.contains("/v1/traces") && shown.stdout.contains("metrics  not exported"),
        "{}",
        shown.stdout
    );
    assert!(!shown.stdout.contains("sk-of-settings"));
    env.cliq(["run", "--headless"]).expect(0);
    let spans = collector.spans();
    assert_eq!(spans[0]["request"]["key"], "sk-of-settings");
    assert_eq!((collector.all("point").len(), collector.all("line").len()), (0, 0));
    let shown = env.cliq(["telemetry", "show", "--json"]).expect(0).json();
    assert_eq!((&shown["last_trace"], shown["sampled"].as_f64()), (&spans[0]["trace"], Some(1.0)));
    // A run of before is sent by its directory; another receiver does not get the key.
    let first = env.run_id();
    let Some(other) = Collector::start("200", "0") else { return };
    let mut run = env.command(["run", "-f", "--headless"]);
    done(&run.env("OTEL_EXPORTER_OTLP_ENDPOINT", &other.endpoint).output().expect("it starts")).expect(0);
    assert_eq!(other.spans()[0]["request"]["key"], json!(null));
    let place = format!(".cliq/history/{first}");
    let sent = env.cliq(["telemetry", "send", "--json", "--run-dir", &place]).expect(0).json();
    assert_eq!((&sent["complete"], &sent["spans"]), (&true.into(), &0.into()), "{sent}");
}
