//! Publishing, installing by name, running locked, updating.

use std::fs;
use std::process::Command;

use cliq_testkit::env::Env;

use super::{Registry, team, team_of};

/// Runs the assembled team. Gives the words that it wrote.
fn run(registry: &Registry, env: &Env) -> String {
    let _ = fs::remove_file(env.path("written.txt"));
    registry.cliq(env, ["req", "-m", "Write."]).expect(0);
    registry.cliq(env, ["run", "--headless"]).expect(0).says("COMPLETED");
    env.read("written.txt")
}

#[test]
fn a_team_with_sub_teams_and_skills_goes_from_one_home_to_another() {
    let Some(registry) = Registry::start() else { return };
    let maria = registry.home();
    let key = registry.key("maria");
    let publish = |folder: &str| registry.cliq(&maria, ["team", "publish", folder, "--key", &key]);

    team(&maria, "site", "@acme/site", "1.0.0", "roses");
    maria.write("site/.env", "PASSWORD=secret");
    maria.write("site/notes.txt", "no part of a team");
    team(&maria, "lint", "@acme/lint", "0.3.1", "thorns");
    team_of(&maria, "suite", "@acme/suite", "1.2.0", &["@acme/site@^1", "@acme/lint@~0.3", "./inner"]);
    team(&maria, "suite/inner", "@acme/inner", "7.0.0", "leaves");
    publish("site").expect(0).says("published 2 files");
    publish("lint").expect(0);
    publish("suite").expect(0).says("inner/team.yml");
    publish("suite").expect(4).says("oci://").says("a published version does not change");

    // Another client reads what is kept there: an artifact with a type, and an archive that tar lists.
    let manifest = registry.manifest("teams/site", "1.0.0");
    assert_eq!(manifest["artifactType"], "application/vnd.cliq.team.v1");
    let digest = manifest["layers"][0]["digest"].as_str().unwrap();
    let listed = Command::new("tar").arg("tzf").arg(registry.blob_file(digest)).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert_eq!(listed.lines().collect::<Vec<_>>(), ["skills/words/SKILL.md", "team.yml"]);

    // Another home, which accepts the signer only.
    let env = registry.home();
    Registry::trust(&env, &key);
    registry.cliq(&env, ["team", "search", "runs"]).expect(0).says("@acme/suite").says("1.2.0");
    registry.cliq(&env, ["team", "info", "@acme/site"]).expect(0).says("signed by maria").says("echo roses");
    registry
        .cliq(&env, ["team", "install", "@acme/suite@^1", "--yes"])
        .expect(0)
        .says("@acme/lint v0.3.1 may:")
        .says("has the skill words")
        .says("installing @acme/suite v1.2.0");
    registry.cliq(&env, ["init"]).expect(0);
    registry.cliq(&env, ["assemble", "@acme/suite@^1"]).expect(0);
    registry.cliq(&env, ["assemble", "--locked"]).expect(0);
    assert_eq!(run(&registry, &env), "roses\nthorns\nleaves\n");

    // A new version is taken after its difference was shown.
    team(&maria, "site", "@acme/site", "1.1.0", "tulips");
    publish("site").expect(0);
    team(&maria, "site", "@acme/site", "2.0.0", "cactus");
    publish("site").expect(0);
    let outdated = registry.cliq(&env, ["team", "outdated", "--json"]).expect(0).json();
    let site =
        outdated["teams"].as_array().unwrap().iter().find(|team| team["name"] == "@acme/site").unwrap();
    assert_eq!(
        (&site["locked"], &site["wanted"], &site["newest"]),
        (&"1.0.0".into(), &"1.1.0".into(), &"2.0.0".into())
    );
    let lock = env.read(".cliq/team.lock");
    registry
        .cliq(&env, ["team", "update"])
        .expect(4)
        .says("@acme/site 1.0.0 → 1.1.0")
        .says("new: it runs the command say in write: echo tulips")
        .says("-Use roses.")
        .says("+Use tulips.")
        .says("nothing was changed");
    assert_eq!(env.read(".cliq/team.lock"), lock, "nothing changes before a yes");
    registry.cliq(&env, ["assemble", "@acme/suite@^1"]).expect(0);
    assert_eq!(env.read(".cliq/team.lock"), lock, "what is locked stays");
    assert_eq!(run(&registry, &env), "roses\nthorns\nleaves\n");
    registry.cliq(&env, ["team", "update", "@acme/lint"]).expect(0).says("newest in their range");
    registry.cliq(&env, ["team", "update", "--yes"]).expect(0).says("updated 1 team and");
    assert_eq!(run(&registry, &env), "tulips\nthorns\nleaves\n");
    registry.cliq(&env, ["assemble", "--locked"]).expect(0);
    registry.cliq(&env, ["team", "update"]).expect(0).says("newest in their range");

    // The lock alone makes the same team in a third home.
    let third = registry.home();
    Registry::trust(&third, &key);
    registry.cliq(&third, ["init"]).expect(0);
    third.write(".cliq/team.lock", &env.read(".cliq/team.lock"));
    // Its root is named by a range: nothing is installed here.
    registry.cliq(&third, ["assemble", "--locked"]).expect(0);
    assert_eq!(run(&registry, &third), "tulips\nthorns\nleaves\n");
}

#[test]
fn what_cannot_be_published_says_why() {
    let Some(registry) = Registry::start() else { return };
    let env = registry.home();
    let publish = |folder: &str| registry.cliq(&env, ["team", "publish", folder]);

    team(&env, "site", "@acme/site", "1.0.0", "roses");
    env.write("site/team.yml", &env.read("site/team.yml").replace("version: 1.0.0\n", ""));
    publish("site").expect(2).says("cliq team version 0.1.0");
    env.cliq(["team", "version", "patch", "site"]).expect(2).says("has no version");
    env.cliq(["team", "version", "0.1.0", "site"]).expect(0);
    env.cliq(["team", "version", "minor", "site"]).expect(0).says("0.1.0 → 0.2.0");
    assert!(env.read("site/team.yml").contains("version: 0.2.0\n"));
    env.cliq(["team", "version", "newest", "site"]).expect(2).says("is not a version");

    registry.cliq(&env, ["team", "publish", "site", "--dry-run"]).expect(0).says("nothing was published");
    publish("site").expect(0).says("not signed");
    team(&env, "own", "@local/own", "1.0.0", "roses");
    publish("own").expect(2).says("@local");
    team_of(&env, "suite", "@acme/suite", "1.0.0", &["../site"]);
    publish("suite").expect(2).says("which is not in its folder");
    team(&env, "broken", "@acme/broken", "1.0.0", "roses");
    env.write("broken/team.yml", "name: \"@acme/broken\"\nversion: 1.0.0\nphases: 3\n");
    publish("broken").expect(2);
    team(&env, "other", "@other/site", "1.0.0", "roses");
    publish("other").expect(2).says("registries.other");

    // A scope whose packages must be signed gets none without a signature.
    team(&env, "site", "@acme/site", "0.3.0", "roses");
    Registry::trust(&env, &registry.key("maria"));
    publish("site").expect(4).says("--key FILE");

    fs::write(registry.path("docker/config.json"), "{}").unwrap();
    publish("site").expect(1).says("it requires other credentials; `docker login localhost:");
    fs::write(registry.path("docker/config.json"), "{\"auths\": 3}").unwrap();
    publish("site").expect(1).says("cannot be used");
    fs::remove_file(registry.path("docker/config.json")).unwrap();
    env.cliq(["settings", "set", "--global", "registries.acme", "oci://localhost:1/teams"]).expect(0);
    publish("site").expect(1).says("cannot reach localhost:1");
    env.cliq(["settings", "set", "--global", "registries.acme", "https://localhost:1/teams"]).expect(0);
    publish("site").expect(2).says("registries.acme").says("oci://HOST/PATH");
}

#[test]
fn what_a_person_chooses_and_what_a_lock_may_not() {
    let Some(registry) = Registry::start() else { return };
    let maria = registry.home();
    let publish = |version: &str, word: &str| {
        team(&maria, "site", "@acme/site", version, word);
        registry.cliq(&maria, ["team", "publish", "site"]).expect(0);
    };
    publish("1.0.0", "roses");
    publish("1.1.0", "tulips");
    let env = registry.home();
    registry.cliq(&env, ["init"]).expect(0);
    registry.cliq(&env, ["team", "install", "@acme/site@1.0.0", "--yes"]).expect(0);

    // An update stays, though an older version is installed; a person may name the older one.
    registry.cliq(&env, ["assemble", "@acme/site"]).expect(0);
    registry.cliq(&env, ["team", "update", "--yes"]).expect(0);
    registry.cliq(&env, ["assemble", "@acme/site"]).expect(0);
    assert!(env.read(".cliq/team.yml").contains("tulips"));
    registry.cliq(&env, ["assemble", "@acme/site@1.0.0"]).expect(0).says("the older version, 1.1.0 → 1.0.0");

    // A lock does not choose another registry than the person.
    let lock = env.read(".cliq/team.lock");
    env.write(".cliq/team.lock", &lock.replace("/teams/site", "/evil/site"));
    for args in [["assemble", "--locked"], ["assemble", "@acme/site@^1"]] {
        registry.cliq(&env, args).expect(4).says("/evil/site, and registries.acme says oci://");
    }
    env.write(".cliq/team.lock", &lock);

    // A package does not replace a newer team of a folder; a folder may replace anything.
    team(&env, "own", "@acme/site", "1.5.0", "weeds");
    registry.cliq(&env, ["team", "install", "own", "--yes"]).expect(0);
    registry.cliq(&env, ["team", "install", "@acme/site", "--yes"]).expect(4).says("it is older than 1.5.0");
    team(&env, "own", "@acme/site", "0.5.0", "weeds");
    registry.cliq(&env, ["team", "install", "own", "--yes"]).expect(0);

    // One registry that is down does not hide what others have; a name that is wrong is said to be.
    env.cliq(["settings", "set", "--global", "registries.down", "oci://localhost:1/x"]).expect(0);
    registry.cliq(&env, ["team", "search"]).expect(1).says("registries.down").says("@acme/site");
    registry.cliq(&env, ["team", "info", "@acme/sight"]).expect(2).says("has no versions");
    // What a project may not choose is not stored in it.
    env.cliq(["settings", "set", "trust.acme.signers", "[]"]).expect(2).says("--global");
}
