//! The template of GitLab: its script, run as a runner does.

use std::fs;
use std::process::Command;

use cliq_testkit::env::{CommandOutput, Env, done};

use super::{deployed, path, repository};

/// Runs the script of the template with the variables of a job.
fn job(env: &Env, variables: &[(&str, &str)]) -> CommandOutput {
    let text = fs::read_to_string(deployed("gitlab/cliq.yml")).unwrap();
    let template: serde_json::Value = serde_yaml::from_str(&text).unwrap();
    let template = &template[".cliq"];
    let script = template["script"][0].as_str().unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", script]).current_dir(env.work()).env("PATH", path()).env("HOME", env.home());
    for (name, value) in template["variables"].as_object().unwrap() {
        command.env(name, value.as_str().unwrap());
    }
    command.envs(variables.iter().copied());
    done(&command.output().unwrap())
}

const MERGE_REQUEST: [(&str, &str); 3] = [
    ("CLIQ_TEAM", "team"),
    ("CI_MERGE_REQUEST_TITLE", "Sums $(touch injected) of numbers"),
    ("CI_MERGE_REQUEST_DESCRIPTION", "A function that adds `touch injected`."),
];

#[test]
fn merge_request_becomes_a_run_and_a_report() {
    let env = repository();
    job(&env, &MERGE_REQUEST).expect(0).says("the report is an artifact");
    let report = env.read("cliq-report.md");
    assert!(report.contains("**COMPLETED**") && report.contains("Sums"), "{report}");
    let seen = env.read("seen");
    assert!(seen.contains("A function that adds `touch injected`."), "{seen}");
    assert!(!env.exists("injected"), "nothing of a title is executed");
}

#[test]
fn failure_of_the_run_is_that_of_the_job() {
    let env = repository();
    env.write("fail", "");
    job(&env, &MERGE_REQUEST).expect(3);
    assert!(env.read("cliq-report.md").contains("**ESCALATED**"));
}

#[test]
fn job_that_cannot_run_says_why() {
    let env = repository();
    job(&env, &MERGE_REQUEST[1..]).expect(1).says("CLIQ_TEAM names no team");
    job(&env, &MERGE_REQUEST[..1]).expect(1).says("there is no task");
    let elsewhere = [&MERGE_REQUEST[..], &[("CLIQ_RELEASE", "/nowhere")]].concat();
    job(&env, &elsewhere).expect(1).says("the release has no install.sh");
    assert!(!env.exists(".cliq"));
}
