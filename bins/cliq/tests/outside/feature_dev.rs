//! `@cliq/feature-dev-js` on small repositories, with scripted agents, up to the pull requests.

use std::process::Command;

use cliq_testkit::env::{Env, done, has_program};
use serde_json::json;

use crate::outside::tools::code_host;

/// Plays architect, tester, developer, reviewer and git-resolver, in every repository of the workspace.
const AGENT: &str = include_str!("feature_dev_agent.py");

/// Makes a repository below the workspace, cloned from a remote of its own whose address is one of GitHub.
fn repository(env: &Env, place: &str, name: &str) {
    let script = format!(
        "set -e
        git init -q --bare -b main ../{name}.git
        git init -q -b main ../{name}-seed && cd ../{name}-seed && git config user.name T && git config user.email t@example.com
        printf '{{\"name\": \"{name}\", \"scripts\": {{\"test\": \"node --test\"}}}}' > package.json && echo '# {name}' > README.md
        git add -A && git commit -qm first && git remote add origin ../{name}.git && git push -q origin main
        cd - >/dev/null
        git clone -q \"$(cd .. && pwd)/{name}.git\" {place} && cd {place}
        git config user.name T && git config user.email t@example.com && mkdir -p node_modules && echo node_modules >> .git/info/exclude
        git remote set-url origin https://github.com/acme/{name}.git
        git config url.\"$(cd {up} && pwd)/{name}.git\".insteadOf https://github.com/acme/{name}.git",
        up = if place == "." { ".." } else { "../.." }
    );
    let done = Command::new("sh").args(["-c", &script]).current_dir(env.work()).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

fn git(env: &Env, place: &str, args: &[&str]) -> String {
    let done = Command::new("git").arg("-C").arg(env.path(place)).args(args).output().unwrap();
    String::from_utf8_lossy(&done.stdout).trim().to_owned()
}

fn prepare(env: &Env) {
    let agent = env.home().join("agents/scripted");
    std::fs::create_dir_all(&agent).unwrap();
    std::fs::write(agent.join("manifest.json"), json!({"name": "scripted", "entry": "agent.py"}).to_string())
        .unwrap();
    std::fs::write(agent.join("agent.py"), AGENT).unwrap();
    std::fs::set_permissions(agent.join("agent.py"), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    env.cliq(["init"]).expect(0);
    env.cliq(["assemble", "@cliq/feature-dev-js"]).expect(0);
    env.cliq(["req", "-m", "# Sums of numbers\n\nA function that adds two numbers."]).expect(0);
}

const RUN: [&str; 6] = ["run", "--headless", "--agent", "scripted", "--input", "target_branch=feature/sum"];

#[test]
fn one_repository_up_to_its_pull_request() {
    if !has_program("node") || !has_program("npm") {
        return;
    }
    let site = code_host();
    let env = Env::bare();
    repository(&env, ".", "calc");
    prepare(&env);
    let mut command = env.command(RUN);
    command.env("GITHUB_TOKEN", "secret-token").env("GITHUB_API_URL", &site.base);
    done(&command.output().unwrap()).expect(0).says("ROUTE to developer").says("COMPLETED");
    // The first try of the developer failed the tests, the second did not.
    assert_eq!(git(&env, ".", &["show", "origin/feature/sum:sum.js"]), "exports.sum = (a, b) => a + b;");
    assert_eq!(git(&env, ".", &["log", "-1", "--format=%s"]), "Sums of numbers");
    assert_eq!(git(&env, ".", &["show", "--name-only", "--format=", "HEAD"]), "sum.js\nsum.test.js");
    let made = site.asked().into_iter().find(|asked| asked.method == "POST").unwrap();
    let body = made.json();
    assert_eq!(
        (made.path.as_str(), body["head"].as_str(), body["base"].as_str()),
        ("/repos/acme/calc/pulls", Some("feature/sum"), Some("main"))
    );
    assert!(
        body["body"].as_str().unwrap().contains("A function that adds two numbers.")
            && body["body"].as_str().unwrap().contains("developer was here")
    );
    // Again: the same branch, the same pull request.
    let mut command = env.command([&RUN[..], &["-f"]].concat());
    command.env("GITHUB_TOKEN", "secret-token").env("GITHUB_API_URL", &site.base);
    done(&command.output().unwrap()).expect(0);
    assert_eq!(site.count("POST"), 1);
}

#[test]
fn several_repositories_and_a_conflict() {
    if !has_program("node") || !has_program("npm") {
        return;
    }
    let site = code_host();
    let env = Env::bare();
    std::fs::create_dir_all(env.work()).unwrap();
    repository(&env, "one", "one");
    repository(&env, "two", "two");
    prepare(&env);
    // Another developer adds a file of the same name to the default branch of one, while the team works.
    let seed = "cd ../two-seed && echo 'exports.sum = null;' > sum.js && git add -A && git commit -qm theirs";
    assert!(Command::new("sh").args(["-c", seed]).current_dir(env.work()).status().unwrap().success());
    let agent = AGENT.replace(
        "if phase[\"name\"] == \"reviewer\":",
        "if phase[\"name\"] == \"developer\":\n    subprocess.run(['git', 'push', '-q', 'origin', 'main'], cwd=workspace / '../two-seed')\nif phase[\"name\"] == \"reviewer\":",
    );
    std::fs::write(env.home().join("agents/scripted/agent.py"), agent).unwrap();
    let mut command = env.command(RUN);
    command.env("GITHUB_TOKEN", "secret-token").env("GITHUB_API_URL", &site.base);
    done(&command.output().unwrap()).expect(0).says("ROUTE to git-resolver");
    let posts: Vec<String> = site.calls().into_iter().filter(|call| call.starts_with("POST")).collect();
    assert!(posts.iter().any(|call| call.contains("/acme/one/")), "{posts:?}");
    assert_eq!(git(&env, "two", &["show", "origin/feature/sum:sum.js"]), "exports.sum = (a, b) => a + b;");
}

#[test]
fn nobody_begins_without_a_clean_state() {
    let env = Env::bare();
    repository(&env, ".", "calc");
    prepare(&env);
    env.write("README.md", "changed");
    env.cliq(RUN).expect(3).says("no-changes");
    git(&env, ".", &["checkout", "-q", "."]);
    env.cliq(["run", "--headless", "--agent", "scripted", "--input", "target_branch=main"])
        .expect(3)
        .says("branch");
}
