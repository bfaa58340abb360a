//! Teams in the jobs of code hosts: the action of GitHub and the template of GitLab (docs/repositories.md).

mod action;
mod template;

use std::path::{Path, PathBuf};

use cliq_testkit::env::Env;

/// A team whose only phase writes down its task and its environment.
const TEAM: &str = "name: \"@local/test\"\nworkflow:\n  phases:\n    - {name: look, type: exec, commands: [{name: look, run: 'env > seen; cat .cliq/requirement.md >> seen; test ! -e fail'}]}\n";

/// A repository with a team in `team/`, without a project.
fn repository() -> Env {
    let env = Env::bare();
    env.write("team/team.yml", TEAM);
    env
}

/// The value of PATH with the programs of this build first.
fn path() -> String {
    let programs = Path::new(env!("CARGO_BIN_EXE_cliq")).parent().unwrap();
    format!("{}:{}", programs.display(), std::env::var("PATH").unwrap())
}

/// A file of `deploy/`.
fn deployed(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(file)
}
