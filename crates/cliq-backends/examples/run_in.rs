//! Runs the assembled team of a project in a child process or in a container, and prints the events.
#![expect(clippy::print_stdout, reason = "a program for people")]

use cliq_backends::{
    Backend, Cancellation, ChildProcess, Docker, Environment, Host, Project, Record, RunJob, RunView, run,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [workspace, cliq, place] = &arguments[..] else {
        return Err("usage: run_in WORKSPACE CLIQ child|docker".into());
    };
    let host = Host::new(Environment::of_process(), cliq.into());
    let project = Project::open(workspace.as_str().into(), host.clone())?;
    let backend: Box<dyn Backend> = match place.as_str() {
        "child" => Box::new(ChildProcess::new(host, project.dir().root().join("processes"))),
        "docker" => Box::new(Docker::new(&project, &project.settings()?)?),
        other => return Err(format!("`{other}` is neither child nor docker").into()),
    };
    let cancellation = Cancellation::new();
    let interrupted = cancellation.clone();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            interrupted.cancel();
        }
    });
    let job = RunJob::builder(&project).build()?;
    let mut print = |record: &Record, _: &RunView| println!("{} {}", record.ts, record.event.describe());
    let end = run(backend.as_ref(), &job, &mut print, &cancellation).await?;
    let end = end.ok_or("cancelled before the run began")?;
    println!("exit code {}", end.exit_code);
    if end.view.completed() { Ok(()) } else { Err(end.view.reason.unwrap_or_default().into()) }
}
