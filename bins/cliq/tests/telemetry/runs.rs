//! Traces, metrics and log lines of runs.

use std::collections::BTreeSet;
use std::time::Duration;

use cliq_scripted_model::Behavior;
use cliq_testkit::env::{Env, done};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::collector::{Collector, name, named};
use crate::coder::kills::marked;
use crate::coder::world::{TEAM, World, call, calls, says, script};

const GATED: &str = "workflow:
  phases:
    - {name: build, type: exec, commands: [{name: compile, run: 'true'}, {name: lint, run: 'true'}]}
    - {name: work, type: standard, agent: x, model: big, depends_on: [build]}
    - {name: check, type: gate, agent: rules, depends_on: [work], commands: [{name: tests, run: 'test -f fine || { touch fine; false; }'}]}
";
const AGENT: &str = "ok\nsay '\"status\":\"progress\",\"usage\":{\"model\":\"big\",\"tokens_in\":10,\"tokens_out\":2,\"cost_usd\":0.5}'\ncomplete\n";

#[test]
fn a_run_is_a_trace_with_metrics_and_log_lines() {
    let Some(collector) = Collector::start("200", "0") else { return };
    let env = Env::new(GATED, &[("x", AGENT)]);
    let mut command = env.command(["run", "--headless"]);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.endpoint);
    command.env("OTEL_EXPORTER_OTLP_HEADERS", "x-key=sk-otlp%2Dsecret");
    let said = done(&command.output().expect("it starts")).expect(0);
    assert!(!format!("{}{}", said.stdout, said.stderr).contains("sk-otlp-secret"));
    assert!(!said.stderr.contains("telemetry"), "{}", said.stderr);
    let spans = collector.spans();
    let run = *named(&spans, "invoke_workflow @local/test").first().expect("the run");
    assert_eq!(run["request"], json!({"type": "application/x-protobuf", "key": "sk-otlp-secret"}));
    assert_eq!(run["resource"]["service.name"], "cliq");
    assert_eq!(run["attributes"]["cliq.run.id"], env.run_id());
    assert_eq!(run["attributes"]["cliq.run.outcome"], "completed");
    assert_eq!((&run["parent"], &run["status"]), (&json!(""), &json!(0)));
    assert!(spans.iter().all(|span| span["trace"] == run["trace"]), "one trace");
    let ids: BTreeSet<&str> = spans.iter().filter_map(|span| span["id"].as_str()).collect();
    assert_eq!(ids.len(), spans.len(), "each span came once");
    // The gate sends the work back once: two activations of the phase, two evaluations of the gate.
    let (work, check) = (named(&spans, "phase work"), named(&spans, "gate check"));
    assert_eq!((work.len(), check.len(), named(&spans, "command tests").len()), (2, 2, 2), "{spans:#?}");
    assert!(work.iter().all(|span| span["parent"] == run["id"]));
    let sent_back: Vec<_> = work.iter().filter(|span| span["links"] != json!([])).collect();
    assert_eq!(sent_back[0]["links"], json!([check[0]["id"]]));
    assert_eq!(check[0]["attributes"]["cliq.gate.verdict"], "route");
    let failed = named(&spans, "command tests");
    assert_eq!((&failed[0]["attributes"]["error.type"], &failed[0]["status"]), (&json!("exit"), &json!(2)));
    assert_eq!(named(&spans, "command compile")[0]["parent"], named(&spans, "phase build")[0]["id"]);
    // An agent without a transcript has its tokens on its own span.
    let agent = named(&spans, "invoke_agent work")[0];
    assert_eq!(agent["parent"], work[0]["id"]);
    let of = |key: &str| agent["attributes"][key].clone();
    assert_eq!((of("gen_ai.usage.input_tokens"), of("gen_ai.request.model")), (json!(10), json!("big")));
    assert_eq!((of("cliq.agent"), of("cliq.usage.cost_usd")), (json!("x"), json!(0.5)));
    let lines = collector.all("line");
    assert!(lines.iter().all(|line| line["trace"] == run["trace"]), "{lines:#?}");
    let verdicts: Vec<_> = lines.iter().filter(|line| line["event"] == "cliq.verdict").collect();
    assert_eq!((&verdicts[0]["text"], &verdicts[0]["span"]), (&json!("check: ROUTE:work"), &check[0]["id"]));
    let points = collector.all("point");
    let value = |metric: &str, field: &str| {
        points
            .iter()
            .filter(|point| point["metric"] == metric)
            .map(|point| point[field].as_f64().unwrap())
            .sum::<f64>()
    };
    assert_eq!(
        (value("cliq.runs.finished", "value"), value("cliq.gate.verdicts", "value")),
        (1.0, 2.0),
        "{points:#?}"
    );
    // The agent of the gate has no model, and is one too.
    assert_eq!(value("gen_ai.client.operation.duration", "count"), 4.0);
}

/// Turns of a model that take a moment each.
fn slow(turns: usize) -> Value {
    let mut replies: Vec<Value> = (0..turns)
        .map(|n| {
            let mut reply = calls(
                &format!("I said secret words {n}."),
                &[call("run_command", json!({"command": format!("echo {n} >> lines; sleep 0.05")}))],
            );
            reply["delay_ms"] = 20.into();
            reply
        })
        .collect();
    replies.push(says("Done."));
    script(&replies)
}

/// Runs a project, and kills all its processes when the transcripts have so many replies.
fn run_and_kill(world: &World, endpoint: &str, arguments: &[&str], replies: usize) {
    let mut run = world.env.command(arguments);
    run.env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint).env("OTEL_BSP_SCHEDULE_DELAY", "20");
    run.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    let mut run = run.spawn().expect("it starts");
    let count = || {
        // Another one may be a temporary file, which is gone by now.
        let written =
            world.env.files(".cliq/transcripts").into_iter().filter(|file| file.ends_with(".jsonl"));
        let all = written.map(|file| {
            let text = world.env.read(&format!(".cliq/transcripts/{file}"));
            text.lines().filter(|line| line.contains("\"type\":\"usage\"")).count()
        });
        all.max().unwrap_or(0)
    };
    while count() < replies {
        assert!(run.try_wait().expect("a process").is_none(), "it ended before");
        std::thread::sleep(Duration::from_millis(5));
    }
    let agents = marked(&format!("CLIQ_RUN_ID={}", world.env.run_id()));
    // The run first: otherwise it may still record how its agent ended.
    for pid in [Pid::from_child(&run)].iter().chain(&agents) {
        let _ = kill_process(*pid, Signal::KILL);
    }
    let _ = run.wait();
}

#[test]
fn a_run_that_is_killed_twice_is_one_trace_without_doubled_replies() {
    let Some(collector) = Collector::start("200", "0") else { return };
    let world = World::new("openai-api", TEAM, &slow(12), Behavior::default());
    run_and_kill(&world, &collector.endpoint, &["run", "--headless"], 3);
    run_and_kill(&world, &collector.endpoint, &["run", "--headless", "--resume"], 7);
    let mut last = world.env.command(["run", "--headless", "--resume"]);
    last.env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.endpoint);
    done(&last.output().expect("it starts")).expect(0);
    let spans = collector.spans();
    let traces: BTreeSet<String> = spans.iter().map(|span| span["trace"].to_string()).collect();
    assert_eq!(traces.len(), 1, "one trace");
    let runs = spans.iter().filter(|span| name(span).starts_with("invoke_workflow")).count();
    assert_eq!(runs, 1, "one span of the run");
    // A span may arrive once more: the kill may come between the response of the receiver and the record of it.
    let distinct: BTreeSet<String> = spans.iter().map(|span| span["id"].to_string()).collect();
    let of = |wanted: &str| {
        let all = named(&spans, wanted);
        all.iter().map(|span| span["id"].to_string()).collect::<BTreeSet<_>>().len()
    };
    let transcripts = world.env.files(".cliq/transcripts");
    let last = transcripts.iter().map(|file| world.env.read(&format!(".cliq/transcripts/{file}")));
    let replies =
        last.map(|text| text.lines().filter(|line| line.contains("\"type\":\"usage\"")).count()).max();
    let chats: Vec<_> = spans.iter().filter(|span| name(span).starts_with("chat ")).collect();
    let replied: BTreeSet<String> = chats
        .iter()
        .filter(|span| span["attributes"].get("cliq.reply.kind").is_some())
        .map(|span| span["id"].to_string())
        .collect();
    assert_eq!(Some(replied.len()), replies, "each reply is there once");
    assert_eq!(of("execute_tool run_command"), 12, "{:#?}", named(&spans, "execute_tool run_command"));
    // Three processes worked on it, and the spans of the first two say how they ended.
    let agents = named(&spans, "invoke_agent work");
    let interrupted = agents.iter().filter(|span| span["attributes"]["error.type"] == "interrupted").count();
    assert_eq!((of("invoke_agent work"), interrupted), (3, 2), "{agents:#?}");
    let parents: BTreeSet<String> = spans.iter().map(|span| span["parent"].to_string()).collect();
    let orphans: Vec<_> =
        parents.iter().filter(|parent| *parent != "\"\"" && !distinct.contains(*parent)).collect();
    assert!(orphans.is_empty(), "each parent is there: {orphans:?}");
}

#[test]
fn content_is_exported_only_if_asked_for_and_without_secrets() {
    let replies = [
        calls("I said secret words.", &[call("run_command", json!({"command": "echo $DEPLOY_TOKEN-x"}))]),
        says("Done."),
    ];
    for (opt_in, expected) in [("false", false), ("true", true)] {
        let Some(collector) = Collector::start("200", "0") else { return };
        let world = World::new("openai-api", TEAM, &script(&replies), Behavior::default());
        let mut run = world.env.command(["run", "--headless"]);
        run.env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.endpoint);
        run.env("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", opt_in);
        run.env("DEPLOY_TOKEN", "tok-7391-value");
        done(&run.output().expect("it starts")).expect(0);
        let spans = collector.spans();
        let text = json!([spans, collector.all("line"), collector.all("point")]).to_string();
        assert_eq!(text.contains("I said secret words."), expected, "{opt_in}");
        assert_eq!(text.contains("Write the greeting."), expected, "{opt_in}");
        assert!(!text.contains("tok-7391-value") && !text.contains("sk-test-secret"), "{opt_in}: {text}");
        if expected {
            let chat = spans.iter().find(|span| name(span).starts_with("chat ")).expect("a reply");
            let output: Value = serde_json::from_str(
                chat["attributes"]["gen_ai.output.messages"].as_str().expect("messages"),
            )
            .expect("JSON");
            assert_eq!(output[0]["parts"][0]["content"], "I said secret words.");
            assert_eq!(output[0]["parts"][1]["name"], "run_command");
            let tool = named(&spans, "execute_tool run_command")[0];
            assert!(tool["attributes"]["gen_ai.tool.call.arguments"].as_str().unwrap().contains("echo"));
        }
    }
}
