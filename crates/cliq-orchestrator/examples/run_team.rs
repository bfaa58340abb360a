//! Runs the team in a folder and prints its events.
#![expect(clippy::print_stdout, reason = "a program for people")]

use cliq_orchestrator::{AgentCommand, CliqDir, Run, RunPlan, TeamFolder};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let workspace = std::env::args().nth(1).ok_or("usage: run_team FOLDER")?;
    let team = TeamFolder::load(workspace.as_str().into())?;
    let Some(workflow) = team.check().workflow else { return Err("the team has errors".into()) };

    let mut plan = RunPlan::new(CliqDir::create(workspace.as_str().into())?, workflow);
    for (name, agent) in &plan.workflow.agents.clone() {
        let program = team.dir().join(&agent.entry).canonicalize_utf8()?;
        plan = plan.with_agent(name, AgentCommand::new(program).with_needed_env(&agent.env));
    }
    let mut run = Run::start(plan, &|variable| std::env::var_os(variable).is_some())?;
    while let Some(record) = run.next().await {
        println!("{} {}", record.ts, record.event.describe());
    }
    let view = run.finish().await;
    for phase in &view.phases {
        println!("{}: {} after {} ms", phase.name, phase.status.as_str(), phase.duration_ms);
    }
    if view.completed() { Ok(()) } else { Err(view.reason.unwrap_or_default().into()) }
}
