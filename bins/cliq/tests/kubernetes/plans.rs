//! Plans whose agents work in the cluster.

use cliq_testkit::PostgresServer;
use cliq_testkit::env::Env;
use cliq_testkit::plan_agents::{agents, an_agent_outlives_the_daemon, unwanted_agents_end};

use crate::kubernetes::cluster::{said, use_cluster};

fn project(database: &PostgresServer) -> Env {
    let env = use_cluster(Env::bare(), &[]);
    env.cliq(["settings", "set", "-g", "database.url", &database.database()]).expect(0);
    agents(&env);
    env
}

/// The Jobs of agents of a project that have not ended.
fn jobs(env: &Env) -> usize {
    let list: serde_json::Value = serde_json::from_str(&said(&["get", "jobs", "-o", "json"])).unwrap();
    let ours = |job: &&serde_json::Value| {
        job["metadata"]["annotations"]["cliq.dev/workspace"] == env.work().to_str().unwrap()
            && job["status"]["completionTime"].is_null()
            && job["status"]["failed"].as_u64().unwrap_or(0) == 0
            && job["status"]["succeeded"].as_u64().unwrap_or(0) == 0
    };
    list["items"].as_array().unwrap().iter().filter(ours).count()
}

#[test]
#[ignore = "needs a cluster: scripts/kubernetes"]
fn an_agent_in_a_pod_outlives_the_daemon() {
    let Some(database) = PostgresServer::start() else { return };
    let env = project(&database);
    an_agent_outlives_the_daemon(&env, || jobs(&env));
}

#[test]
#[ignore = "needs a cluster: scripts/kubernetes"]
fn agents_that_nobody_wants_end() {
    let Some(database) = PostgresServer::start() else { return };
    let env = project(&database);
    unwanted_agents_end(&env, || jobs(&env));
}
