//! Homes and projects of released versions (fixtures/upgrade): they are opened and used.

use std::fs::{self, File};
use std::path::Path;

use cliq_testkit::env::{CommandOutput, Env};
use cliq_testkit::machine::Machine;

/// Unpacks what 0.1.0 left: its home and projects are beside the workspace.
fn of_first_release() -> Env {
    let env = Env::bare();
    unpack(&env.path(".."));
    env
}

fn unpack(to: &Path) {
    let archive = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/upgrade/0.1.0.tar.gz");
    tar::Archive::new(flate2::read::GzDecoder::new(File::open(archive).unwrap())).unpack(to).unwrap();
}

/// Runs cliq in a project of the fixture.
fn cliq(env: &Env, project: &str, arguments: &[&str]) -> CommandOutput {
    let dir = env.path("..").join(project);
    env.cliq([&["-C", dir.to_str().unwrap()], arguments].concat())
}

#[test]
fn killed_run_goes_on() {
    let env = of_first_release();
    cliq(&env, "killed", &["status"]).expect(0).says("interrupted");
    cliq(&env, "killed", &["run", "--resume", "--headless"]).expect(0).says("COMPLETED");
    // What was complete is not done again.
    assert_eq!(env.read("../killed/steps"), "first\nsecond\nsecond\nlast\n");
}

#[test]
fn escalated_run_goes_on_and_its_past_is_told() {
    let env = of_first_release();
    cliq(&env, "escalated", &["explain"]).expect(0).says("ESCALATED").says("second");
    cliq(&env, "escalated", &["ci"]).expect(0).says("**ESCALATED**");
    env.write("../escalated/fine", "");
    cliq(&env, "escalated", &["run", "--resume", "--headless"]).expect(0).says("COMPLETED");
    assert_eq!(env.read("../escalated/steps"), "first\nsecond\nsecond\nlast\n");
}

#[test]
fn completed_run_is_shown_and_run_again_from_a_phase() {
    let env = of_first_release();
    cliq(&env, "done", &["status"]).expect(0).says("completed");
    cliq(&env, "done", &["run", "--resume", "--headless"]).expect(4);
    cliq(&env, "done", &["run", "--from", "last", "--headless"]).expect(0);
    assert_eq!(env.read("../done/steps"), "first\nsecond\nlast\nlast\n");
    cliq(&env, "done", &["run", "--force", "--headless"]).expect(0);
}

#[test]
fn changed_team_is_still_noticed() {
    let env = of_first_release();
    let team = env.read("../killed/.cliq/team.yml");
    assert!(team.contains("depends_on: [second]"), "{team}");
    env.write("../killed/.cliq/team.yml", &team.replace("depends_on: [second]", "depends_on: [first]"));
    cliq(&env, "killed", &["run", "--resume", "--headless"]).expect(4);
}

#[test]
fn home_is_used_with_its_settings_plans_and_tokens() {
    let env = of_first_release();
    cliq(&env, "plans", &["self", "check"]).expect(0).says("earlier versions then refuse it");
    cliq(&env, "plans", &["settings", "get", "max_parallel"]).expect(0).says("3");
    cliq(&env, "plans", &["plan", "list", "--all"]).expect(0).says("later");
    cliq(&env, "plans", &["server", "token", "list"]).expect(0).says("old");
    cliq(&env, "plans", &["self", "check"]).expect(0).says("that of this version");
    let token = env.read("../token").trim().to_owned();
    let machine = Machine::new();
    for file in ["cliq.db", "settings.json"] {
        fs::copy(env.home().join(file), machine.home.join(file)).unwrap();
    }
    let server = machine.serve();
    let call = |token: &str| {
        let agent = ureq::Agent::config_builder().http_status_as_error(false).build().new_agent();
        let request = agent.get(format!("{}/api/v1/runs", server.url));
        request.header("Authorization", format!("Bearer {token}")).call().unwrap().status().as_u16()
    };
    assert_eq!((call(&token), call("cliq_000000000000_00")), (200, 401));
}
