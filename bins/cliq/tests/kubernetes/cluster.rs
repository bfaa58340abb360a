//! The cluster that the tests run in, seen with its own client.

use std::process::{Command, Output};

use cliq_testkit::env::Env;
use serde_json::Value;

/// A setting of the tests, by `scripts/kubernetes`.
#[track_caller]
fn given(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set: `scripts/kubernetes` runs these tests"))
}

/// The path where the claim is mounted, in the cluster and here. Projects of tests are below it (TMPDIR).
pub(crate) fn mount() -> String {
    given("CLIQ_TEST_MOUNT")
}

/// The settings of runs in the cluster.
pub(crate) fn settings() -> Vec<(&'static str, String)> {
    vec![
        ("enabled", "true".to_owned()),
        ("image", given("CLIQ_TEST_IMAGE")),
        ("claim", given("CLIQ_TEST_CLAIM")),
        ("mount_path", mount()),
        ("memory", "512m".to_owned()),
        ("memory_request", "64m".to_owned()),
        ("cpu_request", "0.05".to_owned()),
    ]
}

/// A project whose runs work in the cluster. Each setting is a key below `kubernetes.` and a value.
pub(crate) fn project(workflow: &str, more: &[(&str, &str)]) -> Env {
    use_cluster(Env::new(workflow, &[]), more)
}

/// A directory whose runs work in the cluster. Each setting is a key below `kubernetes.` and a value.
pub(crate) fn use_cluster(env: Env, more: &[(&str, &str)]) -> Env {
    let set = |key: &str, value: &str| drop(env.cliq(["settings", "set", "-g", key, value]).expect(0));
    for (key, value) in settings() {
        set(&format!("kubernetes.{key}"), &value);
    }
    more.iter().for_each(|(key, value)| set(&format!("kubernetes.{key}"), value));
    set("database.url", "postgresql://cliq@127.0.0.1:1/none");
    env
}

/// `kubectl` with arguments.
pub(crate) fn kubectl(arguments: &[&str]) -> Output {
    Command::new("kubectl").args(arguments).output().unwrap()
}

/// Runs `kubectl` and returns its output.
#[track_caller]
pub(crate) fn said(arguments: &[&str]) -> String {
    let output = kubectl(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The objects of a kind that are of a run.
pub(crate) fn of_run(kind: &str, run: &str) -> Vec<Value> {
    let list = said(&["get", kind, "-l", &format!("cliq.dev/run={run}"), "-o", "json"]);
    serde_json::from_str::<Value>(&list).unwrap()["items"].as_array().unwrap().clone()
}
