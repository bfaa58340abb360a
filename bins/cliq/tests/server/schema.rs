//! Conformance of the API to its description, by requests that Schemathesis generates from the description, with all its checks.

use std::fmt::Write;
use std::process::Command;

use cliq_testkit::machine::{Machine, Running};
use serde_json::json;

/// The Python of the tests, where it has a package.
pub(crate) fn python_with(package: &str) -> Option<std::path::PathBuf> {
    let python = std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/venv/bin/python");
    let has = Command::new(&python).args(["-c", &format!("import {package}")]).output();
    if has.is_ok_and(|output| output.status.success()) {
        return Some(python);
    }
    cliq_testkit::not_run(&format!("there is no Python with {package} in target/venv (./test makes it)"));
    None
}

#[test]
fn the_description_of_the_api() {
    let description = cliq_server::openapi();
    insta::assert_snapshot!("openapi", description.to_pretty_json().unwrap());
}

/// Runs Schemathesis on a server, with the configuration in the machine's directory.
fn schemathesis(python: &std::path::Path, machine: &Machine, server: &Running, arguments: &[&str]) -> String {
    let output = Command::new(python)
        .args([
            "-m",
            "schemathesis.cli",
            "run",
            "--no-color",
            "--seed",
            "1",
            "--phases",
            "examples,coverage,fuzzing",
        ])
        .args(arguments)
        .args(["--header", &format!("Authorization: Bearer {}", server.token)])
        .arg(format!("{}/api/v1/openapi.json", server.url))
        .current_dir(machine.path(""))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    said
}

#[test]
fn requests_that_fit_the_description_are_accepted() {
    let Some(python) = python_with("schemathesis") else { return };
    let machine = Machine::new().settings(&json!({"server": {"max_runs": 1, "rate_limit": 100_000}}));
    let server = machine.serve();
    let said = schemathesis(&python, &machine, &server, &["--max-examples", "5"]);
    println!("{}", said.lines().rev().take(12).collect::<Vec<_>>().join("\n"));
}

#[test]
fn every_answer_is_described() {
    let Some(python) = python_with("schemathesis") else { return };
    let machine = Machine::new().settings(&json!({"server": {"max_runs": 1, "rate_limit": 100_000}}));
    machine.chain("quick", &["true"]);
    let project = machine.project("project");
    let server = machine.serve();
    server.post("/api/v1/instances", &json!({"path": project})).expect(201);
    let instance = server.get("/api/v1/instances").json()["instances"][0]["id"].as_str().unwrap().to_owned();
    std::fs::write(
        project.join("search.md"),
        "# Search\n\nGoal: find.\n\n## Wave 1\n\n### Task 1: Index\n\nDo it.\n",
    )
    .unwrap();
    machine.ok(&["-C", project.to_str().unwrap(), "plan", "add", "search.md"]);
    let signal = json!({"type": "review-changes", "plan": "search"});
    let signal = server.post(&format!("/api/v1/instances/{instance}/signals"), &signal).expect(201).json();
    let id = server.start_run(&json!({"team": "@local/quick"}));
    server.ended(&id);
    let review = json!({"id": "0123456789abcdef0123456789abcdef", "project": project, "team": "@a/b", "run_id": "r", "phase": "approval",
        "iteration": 1, "max_iterations": 3, "evaluation": 1, "attempt": 1, "reviewers": ["ann", "bob"], "state": "pending",
        "created": "2026-01-01T00:00:00.000Z", "deadline": "2099-01-01T00:00:00.000Z"});
    let body = json!({"review": review}).to_string();
    let bearer = format!("Bearer {}", server.token);
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    let path = "/api/v1/reviews/0123456789abcdef0123456789abcdef";
    server.send("PUT", path, &headers, Some(&body)).expect(200);
    // Things that are there, so that not every request meets a 404.
    let known = [
        (
            "^/api/v1/runs/",
            vec![("id", id.clone()), ("name", "orchestrator".into()), ("path", ".cliq".into())],
        ),
        ("^/api/v1/instances/[^/]+/", vec![("id", instance), ("plan", "search".into())]),
        ("^/api/v1/reviews/", vec![("id", "0123456789abcdef0123456789abcdef".into())]),
        ("^/api/v1/signals/", vec![("id", signal["id"].to_string())]),
        ("^/api/v1/teams/[^/]+/", vec![("scope", "@cliq".into()), ("name", "demo".into())]),
    ];
    let mut config = String::new();
    for (paths, values) in known {
        let values: Vec<String> = values.iter().map(|(name, value)| format!("{name} = {value:?}")).collect();
        let _ = write!(
            config,
            "[[operations]]\ninclude-path-regex = {paths:?}\nparameters = {{ {} }}\n",
            values.join(", ")
        );
    }
    std::fs::write(machine.path("schemathesis.toml"), config).unwrap();
    // With ids that exist, a request that fits its schema may still be refused, for what it refers to.
    let said = schemathesis(
        &python,
        &machine,
        &server,
        &["--max-examples", "12", "--exclude-checks", "positive_data_acceptance"],
    );
    println!("{}", said.lines().rev().take(12).collect::<Vec<_>>().join("\n"));
    let operations = cliq_server::openapi()
        .paths
        .paths
        .values()
        .map(|item| [&item.get, &item.post, &item.put, &item.delete].into_iter().flatten().count())
        .sum::<usize>();
    assert!(said.contains(&format!("Tested: {operations}")), "{said}");
}
