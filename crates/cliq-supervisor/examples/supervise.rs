//! Starts ten runs of a team, or continues with those of a supervisor that was killed, and waits for their end.
#![expect(clippy::print_stdout, reason = "a program for people")]

use std::sync::Arc;

use cliq_store::{Location, SqlStore};
use cliq_supervisor::{
    Environment, Host, NewRun, RunFilter, RunRules, RunSpec, RunStore, Settings, Supervisor,
    SupervisorOptions,
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [home, cliq, team] = &arguments[..] else { return Err("usage: supervise HOME CLIQ TEAM".into()) };
    let host = Host::new(Environment::of_process(), cliq.into()).with_home(home);
    let options = SupervisorOptions::new(host, home.as_str().into(), &Settings::default());
    let store = Arc::new(SqlStore::open(&Location::choose(None, home.as_str().into())?).await?);
    let supervisor = Supervisor::start(options, store.clone()).await?;
    let mut changes = supervisor.hub().changes();
    let all = RunFilter { limit: 100, ..RunFilter::default() };
    while store.runs(&all).await?.len() < 10 {
        let new = NewRun::new(RunSpec { team: Some(team.clone()), ..RunSpec::default() });
        let run = supervisor.submit(supervisor.check(new, &RunRules::for_token()).await?).await?;
        println!("{} {}", run.id, run.life.state.as_str());
    }
    while store.runs(&all).await?.iter().any(|run| !run.life.state.is_final()) {
        changes.changed().await?;
    }
    for run in store.runs(&all).await? {
        println!("{} {}", run.id, run.life.state.as_str());
    }
    supervisor.stop().await;
    Ok(())
}
