//! The lock: what `--locked` accepts, and what it refuses.

use std::fs;
use std::process::Command;

use cliq_testkit::env::Env;

use super::{Registry, team, team_of};

fn git(env: &Env, folder: &str, args: &[&str]) {
    let done = Command::new("git")
        .args(["-c", "user.name=maria", "-c", "user.email=maria@example.com", "-c", "commit.gpgsign=false"])
        .args(args)
        .current_dir(env.path(folder))
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn folders_and_repositories_are_locked_too() {
    let env = Env::bare();
    env.cliq(["init"]).expect(0);
    env.cliq(["assemble", "--locked"]).expect(2).says("has no .cliq/team.lock");
    team_of(&env, "suite", "@acme/suite", "1.0.0", &["../site"]);
    team(&env, "site", "@acme/site", "1.0.0", "roses");
    env.cliq(["assemble", "./suite"]).expect(0);
    let lock = env.read_json(".cliq/team.lock");
    assert_eq!(lock["team"], "suite");
    assert_eq!(lock["teams"][0]["origin"], serde_json::json!({"kind": "folder", "path": "site"}));
    env.cliq(["assemble", "--locked"]).expect(0);
    env.cliq(["assemble", "./suite", "--locked"]).expect(0);

    // A skill, a role and a new sub-team are each noticed.
    let skill = env.read("site/skills/words/SKILL.md");
    env.write("site/skills/words/SKILL.md", &skill.replace("Use", "Never use"));
    env.cliq(["assemble", "--locked"])
        .expect(4)
        .says("the files of @acme/site are others")
        .says("skills: words");
    env.write("site/skills/words/SKILL.md", &skill);
    env.cliq(["assemble", "--locked"]).expect(0);
    team_of(&env, "suite", "@acme/suite", "1.1.0", &["../site"]);
    env.cliq(["assemble", "--locked"]).expect(4).says("@acme/suite has 1.0.0 in it and 1.1.0 now");
    env.cliq(["assemble", "./site", "--locked"]).expect(4).says("it is for suite, not for site");

    // A branch that moves stays where it was until an update.
    git(&env, "site", &["init", "-q", "-b", "main"]);
    git(&env, "site", &["add", "-A"]);
    git(&env, "site", &["commit", "-q", "-m", "one"]);
    let url = format!("file://{}#main", env.path("site").display());
    env.cliq(["assemble", &url]).expect(0);
    let first = env.read_json(".cliq/team.lock")["teams"][0]["origin"]["commit"].clone();
    team(&env, "site", "@acme/site", "1.0.0", "tulips");
    git(&env, "site", &["commit", "-q", "-a", "-m", "two"]);
    env.cliq(["assemble", &url]).expect(0);
    assert_eq!(env.read_json(".cliq/team.lock")["teams"][0]["origin"]["commit"], first);
    fs::remove_dir_all(env.home().join("packages")).unwrap();
    env.cliq(["assemble", "--locked"]).expect(0);
    assert!(env.read(".cliq/team.yml").contains("roses"), "the commit is fetched again");
    env.cliq(["team", "update", "--yes"]).expect(0).says("-Use roses.");
    assert!(env.read(".cliq/team.yml").contains("tulips"));

    env.write(".cliq/team.lock", "{\"format\": 1, \"team\"");
    env.cliq(["assemble", "--locked"]).expect(1).says("team.lock is damaged");
    env.write(".cliq/team.lock", "{\"format\": 2}");
    env.cliq(["assemble", "./site"]).expect(1).says("reads format 1");
}

#[test]
fn a_folder_may_be_larger_than_a_package() {
    let env = Env::bare();
    env.cliq(["init"]).expect(0);
    env.write(
        "team/team.yml",
        "name: \"@acme/large\"\nversion: 1.0.0\nagents:\n  own: {entry: agents/run.sh}\nphases:\n  - {name: a, type: standard, agent: own}\n",
    );
    env.write("team/roles/a.md", "Work.\n");
    env.write_executable("team/agents/run.sh", "#!/bin/sh\n");
    fs::write(env.path("team/agents/model.bin"), vec![7; 60 << 20]).unwrap();
    env.cliq(["assemble", "./team"]).expect(0);
    env.cliq(["assemble", "--locked"]).expect(0);
    env.cliq(["team", "install", "./team", "--yes"]).expect(0);
    env.cliq(["settings", "set", "--global", "registries.acme", "oci://localhost:1/teams"]).expect(0);
    fs::write(env.path("team/agents/model.bin"), vec![8; 60 << 20]).unwrap();
    env.cliq(["assemble", "--locked"]).expect(4).says("the files of @acme/large are others");
    env.cliq(["team", "update", "--dry-run"]).expect(0).says("@acme/large 1.0.0, with other files");
}

#[test]
fn a_warm_cache_needs_no_registry() {
    let Some(registry) = Registry::start() else { return };
    let env = registry.home();
    for number in 0..3 {
        team(&env, "part", &format!("@acme/part{number}"), "1.0.0", "roses");
        registry.cliq(&env, ["team", "publish", "part"]).expect(0);
    }
    let parts = ["@acme/part0@^1", "@acme/part1@^1", "@acme/part2@^1"];
    team_of(&env, "suite", "@acme/suite", "1.0.0", &parts);
    env.cliq(["init"]).expect(0);
    registry.cliq(&env, ["assemble", "./suite"]).expect(0);
    let packages = env.home().join("packages");

    // Without the certificate nothing is to be had from the registry.
    env.cliq(["assemble", "--locked"]).expect(0);
    // An edited file of the cache does not count.
    let contents = packages.join("contents");
    let edited = fs::read_dir(&contents).unwrap().next().unwrap().unwrap().path().join("team.yml");
    fs::write(&edited, fs::read_to_string(&edited).unwrap().replace("roses", "weeds")).unwrap();
    env.cliq(["assemble", "--locked"]).expect(1).says("cannot reach");
    registry.cliq(&env, ["assemble", "--locked"]).expect(0);
    for number in 0..3 {
        assert!(env.read(&format!(".cliq/teams/part{number}/team.yml")).contains("roses"));
    }
}
