//! Teams: bundled, installed, found.

use std::process::Command;

use cliq_testkit::env::Env;
use serde_json::Value;

use crate::commands::server::{Server, status};

fn listed(env: &Env) -> Vec<(String, String)> {
    let list = env.cliq(["team", "list", "--json"]).expect(0).json();
    let text = |team: &Value, key: &str| team[key].as_str().unwrap_or_default().to_owned();
    let teams = list["teams"].as_array().or_else(|| list.as_array()).expect("a list");
    teams.iter().map(|team| (text(team, "name"), text(team, "source"))).collect()
}

#[test]
fn bundled_teams_are_good() {
    let env = Env::bare();
    for team in ["@cliq/hello-world", "@cliq/code", "@cliq/demo"] {
        env.cliq(["team", "validate", team]).expect(0).says("valid");
        assert!(listed(&env).contains(&(team.to_owned(), "bundled".to_owned())));
        env.cliq(["team", "show", team]).expect(0).says(team);
    }
    env.cliq(["team", "show", "@cliq/hello-wrld"]).expect(2).says("did you mean @cliq/hello-world?");
}

#[test]
fn hello_world_runs_with_any_model() {
    let long = "A greeting to the world. ".repeat(20);
    let answer = |text: &str| {
        let body = serde_json::json!({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]});
        status("200 OK", "", &body.to_string())
    };
    let server = Server::start(vec![
        answer("Plan: greet."),
        answer("Hello."),
        answer("Too short.\n\nROUTE to writer: at least 60 words"),
        answer(&long),
        answer("PASS: it greets"),
    ]);
    let env = Env::bare();
    env.cliq(["init"]).expect(0);
    env.cliq(["assemble", "@cliq/hello-world"]).expect(0);
    env.cliq(["req", "-m", "Greet the world."]).expect(0);
    env.cliq(["settings", "set", "agents.openai-api.base_url", &server.base]).expect(0);
    env.cliq(["run", "--headless", "--agent", "openai-api"]).expect(0).says("COMPLETED");
    assert!(env.read("output.md").contains(long.trim()), "{}", env.read("output.md"));
    let prompts: Vec<String> = server
        .asked()
        .iter()
        .map(|a| a.body["messages"][1]["content"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert!(prompts[1].contains("### From planner") && prompts[1].contains("Plan: greet."));
    assert!(prompts[2].contains("- at-least-50-words: FAIL"));
    assert!(
        prompts[3].contains("### From reviewer") && prompts[3].contains("at least 60 words"),
        "{}",
        prompts[3]
    );
}

#[test]
fn a_team_is_installed_from_a_folder_and_again() {
    let env = Env::bare();
    env.cliq(["team", "create", "mine"]).expect(0);
    env.cliq(["team", "install", "mine"]).expect(0).says("installing @local/mine").says("installed to");
    assert!(env.exists("../home/teams/@local/mine/team.yml"));
    let yml = env.read("mine/team.yml").replacen("name:", "version: 2.0.0\nname:", 1);
    let yml: String = yml
        .lines()
        .filter(|l| !l.starts_with("version: ") || *l == "version: 2.0.0")
        .map(|l| format!("{l}\n"))
        .collect();
    env.write("mine/team.yml", &yml);
    env.write("mine/roles/old.md", "x");
    env.cliq(["team", "install", "./mine"]).expect(0).says("v2.0.0");
    std::fs::remove_dir_all(env.path("mine")).unwrap();
    assert!(listed(&env).contains(&("@local/mine".to_owned(), "installed".to_owned())));
    env.cliq(["init"]).expect(0);
    env.cliq(["assemble", "@local/mine"]).expect(0);
    let home = env.files("../home/teams/@local");
    assert!(home.iter().all(|file| file.starts_with("mine/")), "nothing is left beside it: {home:?}");
}

#[test]
fn a_team_is_installed_from_a_repository() {
    let env = Env::bare();
    env.cliq(["team", "create", "mine"]).expect(0);
    let git = |args: &[&str]| {
        let who = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"];
        let status =
            Command::new("git").args(who).args(args).current_dir(env.path("mine")).output().expect("git");
        assert!(status.status.success(), "{status:?}");
    };
    git(&["init", "--quiet"]);
    git(&["add", "."]);
    git(&["commit", "--quiet", "-m", "first"]);
    git(&["tag", "v1"]);
    env.write("mine/team.yml", "broken");
    git(&["commit", "--quiet", "-a", "-m", "second"]);
    let url = format!("file://{}", env.path("mine").display());
    env.cliq(["team", "install", &url]).expect(2).says("cannot run");
    env.cliq(["team", "install", &format!("{url}#v1")]).expect(0).says("fetching").says("installed to");
    assert!(
        env.exists("../home/teams/@local/mine/team.yml") && !env.exists("../home/teams/@local/mine/.git")
    );
    env.cliq(["team", "install", &format!("{url}#v9")]).expect(1).says("git cannot fetch");
    env.cliq(["team", "install", "--", "--upload-pack=touch pwned;.git"]).expect(1);
    assert!(!env.exists("pwned"));
}

#[test]
fn failed_installation_changes_nothing() {
    let env = Env::bare();
    env.cliq(["team", "install", "nowhere"]).expect(2).says("nowhere");
    env.cliq(["team", "create", "mine"]).expect(0);
    std::os::unix::fs::symlink("/etc/passwd", env.path("mine/roles/secret.md")).unwrap();
    env.cliq(["team", "install", "mine"])
        .expect(2)
        .says("roles/secret.md links to a file outside of the team");
    std::fs::remove_file(env.path("mine/roles/secret.md")).unwrap();
    std::os::unix::fs::symlink(".", env.path("mine/loop")).unwrap();
    env.cliq(["team", "install", "mine"]).expect(2);
    assert!(!env.exists("../home/teams"));
}

/// A team from elsewhere must not get a file of this machine into a prompt, or have it run: a link out of the team is refused
/// alike by all that reads teams, by name.
#[test]
fn links_that_leave_a_team_are_refused_alike() {
    for link in ["roles/work.md", "agents/x", "agents/lib", "team.yml"] {
        let env = Env::bare();
        env.write("../elsewhere/work.md", "a private note");
        env.write("../elsewhere/team.yml", "name: \"@local/team\"\nworkflow:\n  phases: [{name: a, type: exec, commands: [{name: t, run: 'true'}]}]\n");
        env.write_executable("../elsewhere/x", "#!/bin/sh\ntouch pwned\n");
        env.write("../elsewhere/lib/secret", "a private note");
        for team in ["../team", "../outer/inner"] {
            env.write(
                &format!("{team}/team.yml"),
                "name: \"@local/team\"\nagents: {x: {entry: agents/x}}\nworkflow:\n  phases:\n    - {name: work, type: standard, agent: x}\n",
            );
            env.write(&format!("{team}/roles/work.md"), "You work.");
            env.write_executable(&format!("{team}/agents/x"), "#!/bin/sh\nexit 0\n");
            let target = env.path("../elsewhere").join(std::path::Path::new(link).file_name().unwrap());
            let _ = std::fs::remove_file(env.path(&format!("{team}/{link}")));
            std::os::unix::fs::symlink(target, env.path(&format!("{team}/{link}"))).unwrap();
        }
        env.write(
            "../outer/team.yml",
            "name: \"@local/outer\"\nworkflow:\n  phases:\n    - {name: build, type: team, team: ./inner}\n",
        );
        env.cliq(["init"]).expect(0);
        for args in [
            ["team", "validate", "../team"].as_slice(),
            &["assemble", "../team"],
            &["team", "install", "../team"],
            &["assemble", "../outer"],
            &["team", "install", "../outer"],
        ] {
            let done = env.cliq(args).expect(2);
            let said = format!("{done:?}");
            assert!(said.contains(link) && said.contains("link"), "{link}: {args:?}: {said}");
            assert!(!said.contains("a private note"), "{link}: {args:?}: {said}");
        }
        assert!(
            !env.exists(".cliq/team.yml") && !env.exists("../home/teams") && !env.exists("pwned"),
            "{link}"
        );
    }
}

#[test]
fn an_unused_input_is_a_warning_in_a_draft() {
    let env = Env::bare();
    env.write(
        "team/team.yml",
        "name: \"@local/team\"\ninputs:\n  - {name: topic, description: What to write about}\nphases:\n  - {name: a, type: exec, commands: [{name: x, run: 'true'}]}\n",
    );
    env.cliq(["team", "validate", "team"]).expect(2).says("unused-input");
    env.cliq(["team", "validate", "team", "--draft"]).expect(0).says("unused-input").says("with 1 warning");
    let found = env.cliq(["team", "validate", "team", "--draft", "--json"]).expect(0).json();
    assert_eq!(found["diagnostics"][0]["severity"], "warning");
    env.cliq(["assemble", "team"]).expect(2);
}

#[test]
fn a_watched_team_is_validated_again_when_a_file_changes() {
    let env = Env::bare();
    env.cliq(["team", "create", "site"]).expect(0);
    let out = std::fs::File::create(env.path("out")).unwrap();
    let mut command = env.command(["team", "validate", "site", "--watch"]);
    let mut child = command.stdout(out.try_clone().unwrap()).stderr(out).spawn().unwrap();
    env.wait_for("the first result", || env.read("out").contains("valid: @local/site"));
    let good = env.read("site/team.yml");
    env.write("site/team.yml", &good.replace("agent: worker", "agent: worker2"));
    env.wait_for("the error", || env.read("out").contains("worker2"));
    std::fs::remove_file(env.path("site/team.yml")).unwrap();
    env.wait_for("the file is missed", || {
        env.read("out").contains("no team.yml") || env.read("out").contains("there is no team")
    });
    env.write("site/team.yml", &good);
    env.wait_for("the second result", || env.read("out").matches("valid: @local/site").count() == 2);
    std::fs::remove_file(env.path("site/roles/fixer.md")).unwrap();
    env.wait_for("the missing role", || env.read("out").contains("roles/fixer.md"));
    child.kill().unwrap();
    child.wait().unwrap();
}
