//! Trace context of callers, and of the processes of a run.

use cliq_scripted_model::Behavior;
use cliq_testkit::env::{Env, done, python_with};
use serde_json::json;

use super::collector::{Collector, named};
use crate::coder;
use crate::coder::world::{World, call, calls, says, script};

const TEAM: &str = "workflow:
  phases:
    - {name: work, type: standard, agent: x}
    - {name: build, type: exec, depends_on: [work], commands: [{name: compile, run: 'echo $TRACEPARENT > compile'}]}
";
const AGENT: &str = "ok\necho $TRACEPARENT > agent\ncomplete\n";
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CALLER: &str = "b7ad6b7169203331";

#[test]
fn a_trace_comes_in_and_goes_out() {
    let Some(collector) = Collector::start("200", "0") else { return };
    let env = Env::new(TEAM, &[("x", AGENT)]);
    let mut run = env.command(["run", "--headless"]);
    run.env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.endpoint);
    run.env("TRACEPARENT", format!("00-{TRACE}-{CALLER}-01"));
    done(&run.output().expect("it starts")).expect(0);
    let spans = collector.spans();
    assert!(spans.iter().all(|span| span["trace"] == TRACE));
    assert_eq!(named(&spans, "invoke_workflow @local/test")[0]["parent"], CALLER);
    let of = |span: &str| format!("00-{TRACE}-{}-01\n", named(&spans, span)[0]["id"].as_str().unwrap());
    assert_eq!(env.read("agent"), of("invoke_agent work"));
    assert_eq!(env.read("compile"), of("command compile"));
}

#[test]
fn a_trace_goes_on_without_a_receiver_and_is_not_exported_if_its_caller_does_not_record_it() {
    let env = Env::new(TEAM, &[("x", AGENT)]);
    env.cliq(["run", "--headless"]).expect(0);
    assert_eq!((env.read("agent"), env.read("compile")), ("\n".to_owned(), "\n".to_owned()), "no trace");
    let with = |context: &str, endpoint: Option<&str>| {
        let mut run = env.command(["run", "-f", "--headless"]);
        run.env("TRACEPARENT", context);
        run.envs(endpoint.map(|endpoint| ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)));
        done(&run.output().expect("it starts")).expect(0);
    };
    with(&format!("00-{TRACE}-{CALLER}-01"), None);
    assert!(env.read("agent").starts_with(&format!("00-{TRACE}-")) && env.read("agent").ends_with("-01\n"));
    // A value that is none ends no run.
    with("nonsense", None);
    let Some(collector) = Collector::start("200", "0") else { return };
    with(&format!("00-{TRACE}-{CALLER}-00"), Some(&collector.endpoint));
    assert!(env.read("agent").ends_with("-00\n"));
    assert_eq!(json!(collector.all("span")), json!([]));
}

#[test]
fn a_call_of_an_mcp_server_names_its_span() {
    let Some(collector) = Collector::start("200", "0") else { return };
    let Some(python) = python_with("mcp.server.mcpserver") else { return };
    let replies = [calls("", &[call("where__trace", json!({}))]), says("Done.")];
    let world = World::new("claude-api", coder::world::TEAM, &script(&replies), Behavior::default());
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/telemetry/mcp_server.py");
    for (key, value) in [("mcp.where.command", python.to_str().expect("UTF-8")), ("mcp.where.args", file)] {
        world.env.cliq(["settings", "set", "-g", key, value]).expect(0);
    }
    world.env.cliq(["settings", "set", "-g", "mcp.where.trusted", "true"]).expect(0);
    let mut run = world.env.command(["run", "--headless"]);
    run.env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.endpoint);
    done(&run.output().expect("it starts")).expect(0);
    let spans = collector.spans();
    let tool = named(&spans, "execute_tool where__trace")[0];
    let of = |key: &str| tool[key].as_str().expect("an id").to_owned();
    assert_eq!(world.results("work.1")[0].0.trim(), format!("00-{}-{}-01", of("trace"), of("id")));
}
