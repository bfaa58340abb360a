//! Removal of old runs while the supervisor stops.

use std::fs;
use std::sync::Arc;

use camino::Utf8Path;
use cliq_model::{Change, Outcome, Run, RunOrigin, RunState, RunStore};
use cliq_project::{Environment, Host};
use cliq_settings::Settings;
use cliq_store::{Location, SqlStore};
use cliq_supervisor::{Supervisor, SupervisorOptions};

#[tokio::test(flavor = "multi_thread")]
async fn old_runs_are_removed_while_the_supervisor_stops() {
    let temp = tempfile::tempdir().unwrap();
    let home = Utf8Path::from_path(temp.path()).unwrap();
    let store = Arc::new(SqlStore::open(&Location::choose(None, home).unwrap()).await.unwrap());
    let ended = |ended_at: &str| {
        let id = cliq_fs::new_run_id();
        let workspace = home.join("workspaces").join(id.as_str());
        fs::create_dir_all(&workspace).unwrap();
        let mut run = Run::new(
            id,
            "@local/a".parse().unwrap(),
            RunOrigin::Server,
            workspace,
            "2020-01-01T00:00:00.000Z".parse().unwrap(),
        );
        run.life.state = RunState::Completed;
        run.ended_at = Some(ended_at.parse().unwrap());
        run
    };
    let (old, new) = (ended("2020-01-01T00:00:01.000Z"), ended("2999-01-01T00:00:00.000Z"));
    for run in [&old, &new] {
        assert_eq!(store.change(&Change::of(run.clone())).await.unwrap(), Outcome::Applied);
    }
    let mut host = Host::new(Environment::of_process(), "cliq".into());
    host.home = Some(home.to_owned());
    let options = SupervisorOptions::new(host, home, &Settings::default());
    let supervisor = Supervisor::start(options, store.clone()).await.unwrap();
    // The first removal of a supervisor at work comes after some seconds: it has not come yet.
    supervisor.stop().await;
    assert!(store.run(&old.id).await.unwrap().is_none() && !old.workspace.exists());
    assert!(store.run(&new.id).await.unwrap().is_some() && new.workspace.exists());
}
