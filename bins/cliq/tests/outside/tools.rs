//! `cliq tool run`, against servers that play the API of each code host.

use std::process::Command;
use std::sync::Mutex;

use cliq_testkit::env::{CommandOutput, Env, done};
use serde_json::{Value, json};

use crate::outside::site::{ReceivedRequest, Reply, Site, json as answer, reply};

/// The API of GitHub, GitLab and Bitbucket in one: a pull request that was made is there.
pub(crate) fn code_host() -> Site {
    let made: Mutex<Vec<Value>> = Mutex::new(Vec::new());
    Site::start(move |asked: &ReceivedRequest| -> Reply {
        let mut made = made.lock().unwrap();
        let path = asked.path.split('?').next().unwrap();
        let body = asked.json();
        let number = made.len() + 1;
        let page = format!("https://host/pull/{number}");
        match (asked.method.as_str(), path) {
            ("GET", path) if path.ends_with("/user") => {
                answer(&json!({"login": "ann", "username": "ann", "display_name": "Ann"}))
            }
            ("GET", path) if path.ends_with("/pulls") || path.ends_with("/merge_requests") => {
                answer(&Value::Array(made.clone()))
            }
            ("GET", path) if path.ends_with("/pullrequests") || path.ends_with("/pull-requests") => {
                answer(&json!({"values": *made}))
            }
            ("POST", path) if path.ends_with("/pulls") => {
                assert_eq!(asked.header("authorization"), Some("Bearer secret-token"));
                made.push(json!({"number": number, "html_url": page, "title": body["title"], "head": {"ref": body["head"]}, "base": {"ref": body["base"]}, "body": body["body"]}));
                reply(201, "application/json", made[number - 1].to_string())
            }
            ("POST", path) if path.ends_with("/merge_requests") => {
                assert_eq!(asked.header("private-token"), Some("secret-token"));
                made.push(json!({"iid": number, "web_url": page, "title": body["title"], "source_branch": body["source_branch"], "target_branch": body["target_branch"]}));
                reply(201, "application/json", made[number - 1].to_string())
            }
            ("POST", path) if path.ends_with("/pullrequests") => {
                made.push(json!({"id": number, "links": {"html": {"href": page}}, "title": body["title"], "source": body["source"], "destination": body["destination"]}));
                reply(201, "application/json", made[number - 1].to_string())
            }
            ("POST", path) if path.ends_with("/pull-requests") => {
                made.push(json!({"id": number, "links": {"self": [{"href": page}]}, "title": body["title"], "fromRef": body["fromRef"], "toRef": body["toRef"]}));
                reply(201, "application/json", made[number - 1].to_string())
            }
            ("POST", _) => answer(&json!({})),
            _ => reply(404, "application/json", r#"{"message": "Not Found"}"#),
        }
    })
}

/// A repository with a branch that is pushed to a local one, whose remote has this address.
fn repository(env: &Env, address: &str) {
    let script = format!(
        "set -e
        git init -q --bare -b main ../remote.git
        git init -q -b main . && git config user.name T && git config user.email t@example.com
        echo a > a && git add a && git commit -qm first
        git remote add origin {address}
        git config url.\"$(cd ../remote.git && pwd)\".insteadOf {address}
        git push -q origin main && git switch -qc feature
        echo b > a && git commit -qam 'Mend the door' -m 'It was broken.'
        git push -q origin feature && git remote set-head origin main"
    );
    let done = Command::new("sh").args(["-c", &script]).current_dir(env.work()).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

fn tool(env: &Env, args: &[&str], variables: &[(&str, &str)]) -> CommandOutput {
    let mut command = env.command([&["tool", "run"], args].concat());
    command.envs(variables.iter().copied());
    done(&command.output().unwrap())
}

#[test]
fn pull_requests_of_every_host() {
    for (address, token, api, base_path, calls) in [
        ("https://github.com/acme/shop.git", "GITHUB_TOKEN", "GITHUB_API_URL", "", "/repos/acme/shop/pulls"),
        (
            "https://github.example.com/acme/shop.git",
            "GITHUB_TOKEN",
            "GITHUB_API_URL",
            "/api/v3",
            "/api/v3/repos/acme/shop/pulls",
        ),
        (
            "git@gitlab.com:group/sub/shop.git",
            "GITLAB_TOKEN",
            "GITLAB_API_URL",
            "/api/v4",
            "/api/v4/projects/group%2Fsub%2Fshop/merge_requests",
        ),
        (
            "https://bitbucket.org/acme/shop.git",
            "BITBUCKET_TOKEN",
            "BITBUCKET_API_URL",
            "/2.0",
            "/2.0/repositories/acme/shop/pullrequests",
        ),
        (
            "https://bitbucket.example.com/scm/PROJ/shop.git",
            "BITBUCKET_TOKEN",
            "BITBUCKET_API_URL",
            "/rest/api/1.0",
            "/rest/api/1.0/projects/PROJ/repos/shop/pull-requests",
        ),
    ] {
        let site = code_host();
        let env = Env::bare();
        repository(&env, address);
        let url = format!("{}{base_path}", site.base);
        let variables = [(token, "secret-token"), (api, url.as_str())];
        tool(&env, &["pr-exists"], &variables).expect(1).says("has no open pull request");
        let made = tool(&env, &["create-pr", "--json"], &variables).expect(0).json();
        assert_eq!(
            (made["created"].as_bool(), made["pull_request"]["number"].as_u64()),
            (Some(true), Some(1)),
            "{address}"
        );
        assert_eq!(
            (made["pull_request"]["title"].as_str(), made["pull_request"]["base"].as_str()),
            (Some("Mend the door"), Some("main"))
        );
        // Again: nothing is made.
        let again = tool(&env, &["create-pr", "--json"], &variables).expect(0).json();
        assert_eq!(again["created"], false);
        let found = tool(&env, &["pr-exists", "--json"], &variables).expect(0).json();
        assert_eq!(
            (found["exists"].as_bool(), found["pull_request"]["branch"].as_str()),
            (Some(true), Some("feature"))
        );
        assert_eq!(site.count("POST"), 1);
        assert!(site.asked().iter().all(|asked| asked.path.starts_with(calls)), "{:?}", site.calls());
    }
}

#[test]
fn errors_say_how_to_mend_them() {
    let env = Env::bare();
    tool(&env, &["pr-exists"], &[]).expect(1).says("is in no git repository");
    repository(&env, "https://github.com/acme/shop.git");
    tool(&env, &["pr-exists"], &[]).expect(1).says("integrations.github.token").says("GITHUB_TOKEN");
    tool(&env, &["pr-exists", "--remote", "upstream"], &[]).expect(1).says("no remote `upstream`");
    let site = code_host();
    let variables = [("GITHUB_TOKEN", "secret-token"), ("GITHUB_API_URL", site.base.as_str())];
    tool(&env, &["create-pr", "--branch", "main"], &variables).expect(1).says("cannot be merged into itself");
    tool(&env, &["create-pr", "--branch", "other"], &variables).expect(1).says("git push -u origin other");
    let env = Env::bare();
    repository(&env, "https://git.example.com/acme/shop.git");
    tool(&env, &["pr-exists"], &[]).expect(1).says("integrations.gitlab.url https://git.example.com");
    let refusing = Site::start(|asked| {
        reply(
            403,
            "application/json",
            json!({"message": format!("no {}", asked.header("authorization").unwrap())}).to_string(),
        )
    });
    let env = Env::bare();
    repository(&env, "https://github.com/acme/shop.git");
    let done =
        tool(&env, &["pr-exists"], &[("GITHUB_TOKEN", "secret-token"), ("GITHUB_API_URL", &refusing.base)])
            .expect(1);
    assert!(done.stderr.contains("403") && !done.stderr.contains("secret-token"), "{}", done.stderr);
    env.cliq(["tool", "list"]).expect(0).says("create-pr");
}
