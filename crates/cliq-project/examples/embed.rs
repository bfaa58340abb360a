//! Runs the assembled team of a project, with its agents and settings, and prints the events.
#![expect(clippy::print_stdout, reason = "a program for people")]

use cliq_project::{Environment, Host, Project, RunOptions, RunStart, execute};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(workspace), Some(cliq)) = (arguments.next(), arguments.next()) else {
        return Err("usage: embed WORKSPACE CLIQ, the path of the program that runs built-in agents".into());
    };
    let host = Host::new(Environment::of_process(), cliq.into());
    let project = Project::open(workspace.as_str().into(), host.clone())?;
    let plan = project.run_plan(&RunOptions::new())?;
    let interrupted = async { drop(tokio::signal::ctrl_c().await) };
    let view = execute(plan, &RunStart::Fresh, &host, interrupted, |record, _| {
        println!("{} {}", record.ts, record.event.describe());
    });
    let view = view.await?;
    for phase in &view.phases {
        println!("{}: {} after {} ms", phase.name, phase.status.as_str(), phase.duration_ms);
    }
    if view.completed() { Ok(()) } else { Err(view.reason.unwrap_or_default().into()) }
}
