//! Spans of the agents of plans, which a daemon runs.

use cliq_testkit::daemon::{daemon, project, start};

use super::collector::Collector;

const PLAN: &str = "Goal.\n\n## Wave 1\n\n### Task 1: a\nDo a.\n";

#[test]
fn agents_of_plans_are_exported() {
    let Some(collector) = Collector::start("200", "0") else { return };
    let env = project();
    env.write("../agent.sh", "echo \"$TRACEPARENT\" > \"$CLIQ_PROJECT/trace\"\n");
    let command = format!("sh '{}'; false", env.path("../agent.sh").display());
    for role in ["developer", "coder"] {
        env.cliq(["settings", "set", &format!("roles.{role}.command"), &command]).expect(0);
    }
    env.cliq(["settings", "set", "-g", "telemetry.endpoint", &collector.endpoint]).expect(0);
    let daemon = daemon(&env);
    start(&env, PLAN);
    let spans = collector.spans();
    let run = spans.iter().find(|span| span["name"].as_str().unwrap().starts_with("invoke_workflow @cliq/"));
    let run = run.unwrap_or_else(|| panic!("{spans:#?}"));
    assert_eq!(run["attributes"]["cliq.run.outcome"], "escalated");
    assert_eq!(run["resource"]["cliq.plan.name"], "ship");
    assert!(run["resource"]["cliq.plan.task"].as_str().is_some_and(|task| !task.is_empty()), "{run:#?}");
    env.wait_for("its trace", || env.has_text("trace"));
    let trace = run["trace"].as_str().unwrap();
    assert!(
        spans
            .iter()
            .any(|span| span["name"].as_str().unwrap().starts_with("command work") && span["trace"] == trace)
    );
    drop(daemon);
    // What a receiver did not take is sent later: here nothing is left.
    let job = std::fs::read_dir(env.path(".cliq/plans/ship/jobs"))
        .expect("jobs")
        .next()
        .expect("a job")
        .expect("a job")
        .path();
    let sent =
        env.cliq(["telemetry", "send", "--json", "--run-dir", job.to_str().expect("UTF-8")]).expect(0).json();
    assert_eq!(
        (&sent["complete"], &sent["spans"], &sent["sampled"]),
        (&true.into(), &0.into(), &true.into())
    );
}
