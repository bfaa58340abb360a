//! The agent card: discovery, advertising rules, caching, signature.

use std::fs;
use std::process::Command;

use cliq_testkit::agent::{Caller, machine_with};
use cliq_testkit::machine::{Machine, Running};
use cliq_testkit::target;
use serde_json::{Value, json};

const CARD: &str = "/.well-known/agent-card.json";

fn skills(card: &Value) -> Vec<&str> {
    card["skills"].as_array().unwrap().iter().map(|skill| skill["id"].as_str().unwrap()).collect()
}

fn card(server: &Running) -> Value {
    server.send("GET", CARD, &[], None).expect(200).json()
}

#[test]
fn everybody_may_read_it_and_caches_may_keep_it() {
    let machine = machine_with(&json!({"advertise": ["@local", "!@local/slow"]}));
    machine.team("broken", "workflow: 1\n");
    let server = machine.serve();
    let answer = server.send("GET", CARD, &[], None).expect(200);
    let card = answer.json();
    assert_eq!(skills(&card), ["@local/steps"]);
    assert_eq!(answer.header("cache-control"), "public, max-age=60");
    let etag = answer.header("etag").to_owned();
    server.send("GET", CARD, &[("if-none-match", &etag)], None).expect(304);
    server.send("GET", CARD, &[("if-none-match", "\"other\"")], None).expect(200);
    let modified = answer.header("last-modified").to_owned();
    assert!(modified.ends_with(" GMT"), "{modified}");
    server.send("GET", CARD, &[("if-modified-since", &modified)], None).expect(304);
    server.send("GET", CARD, &[("if-modified-since", "Sun, 06 Nov 1994 08:49:37 GMT")], None).expect(200);
    server.send("GET", CARD, &[("if-modified-since", "yesterday")], None).expect(200);
    let both = [("if-none-match", "\"other\""), ("if-modified-since", modified.as_str())];
    server.send("GET", CARD, &both, None).expect(200);
    // Both versions.
    assert_eq!(card["url"], format!("{}/a2a/jsonrpc", server.url));
    let interfaces: Vec<(&str, &str)> = card["supportedInterfaces"]
        .as_array()
        .unwrap()
        .iter()
        .map(|i| (i["protocolBinding"].as_str().unwrap(), i["protocolVersion"].as_str().unwrap()))
        .collect();
    assert_eq!(interfaces, [("JSONRPC", "1.0"), ("HTTP+JSON", "1.0"), ("JSONRPC", "0.3")]);
    // A team that is installed now is offered at once: within the two seconds that a card is used.
    machine.chain("new", &["true"]);
    cliq_testkit::machine::wait_for("the new team is offered", || {
        skills(&self::card(&server)).contains(&"@local/new").then_some(())
    });
    assert_ne!(server.send("GET", CARD, &[], None).header("etag"), etag);
}

/// With one version, the card and the methods are of that version only.
#[test]
fn one_version_only() {
    for (version, other) in [("1.0", "0.3"), ("0.3", "1.0")] {
        let machine = machine_with(&json!({"versions": [version]}));
        let server = machine.serve();
        let card = card(&server);
        assert_eq!(card["protocolVersion"].is_string(), version == "0.3", "{card}");
        assert_eq!(card["supportedInterfaces"].is_array(), version == "1.0", "{card}");
        assert_eq!(card["securityRequirements"].is_array(), version == "1.0", "{card}");
        assert!(version == "0.3" || !card.to_string().contains("0.3"), "{card}");
        let caller = cliq_testkit::agent::Caller::new(&machine, &server);
        let error = |version: &str| {
            let method = if version == "1.0" { "GetTask" } else { "tasks/get" };
            caller.call(version, method, &json!({"id": "x"}))["error"].clone()
        };
        assert_eq!(error(version)["code"], -32001);
        let refused = error(other);
        assert_eq!(refused["code"], -32009);
        assert!(refused.to_string().contains(&format!("this agent supports {version}\"")), "{refused}");
        let status = if version == "1.0" { 200 } else { 400 };
        caller.send("GET", "/a2a/rest/tasks", &[], None).expect(status);
    }
}

/// Version 0.3 is published as a JSON schema, version 1.0 as a protobuf definition, which the official SDK contains.
#[test]
fn card_is_valid_by_the_published_schema_of_its_version() {
    let python = target("venv/bin/python");
    if !Command::new(&python)
        .args(["-c", "import a2a, jsonschema"])
        .output()
        .is_ok_and(|out| out.status.success())
    {
        return cliq_testkit::not_run("there is no Python with a2a-sdk in target/venv (./test makes it)");
    }
    let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/a2a/0.3.0.json");
    let by_schema = "import json, sys, jsonschema
card, schema = (json.load(open(name)) for name in sys.argv[1:])
jsonschema.Draft7Validator({**schema, '$ref': '#/definitions/AgentCard'}).validate(card)";
    let by_definition = "import json, sys
from a2a.types.a2a_pb2 import AgentCard
from google.protobuf.json_format import ParseDict
ParseDict(json.load(open(sys.argv[1])), AgentCard(), ignore_unknown_fields=False)";
    for (versions, checks) in [
        (vec!["0.3"], vec![by_schema]),
        (vec!["1.0"], vec![by_definition]),
        (vec!["0.3", "1.0"], vec![by_schema]),
    ] {
        let machine = machine_with(&json!({"versions": versions}));
        let server = machine.serve();
        let file = machine.path("card.json");
        fs::write(&file, card(&server).to_string()).unwrap();
        for check in checks {
            let checked = Command::new(&python).args(["-c", check]).arg(&file).arg(schema).output().unwrap();
            assert!(checked.status.success(), "{versions:?}: {}", String::from_utf8_lossy(&checked.stderr));
        }
    }
}

#[test]
fn a_server_without_a2a_has_none() {
    let machine = Machine::new();
    let server = machine.serve();
    server.send("GET", CARD, &[], None).expect(404);
    let answer = server.post("/a2a/jsonrpc", &json!({}));
    assert!(answer.expect(404).body.contains("--a2a"));
}

#[test]
fn the_command_prints_what_the_server_serves() {
    let machine = machine_with(&json!({}));
    let server = machine.serve();
    let printed: Value = serde_json::from_str(&machine.ok(&["server", "a2a", "card"])).unwrap();
    assert_eq!(printed, card(&server));
    let printed = machine.ok(&["server", "a2a", "card", "--url", "https://cliq.example/"]);
    assert!(printed.contains("\"https://cliq.example/a2a/rest\""), "{printed}");
}

#[test]
fn settings_that_cannot_be_used_are_named() {
    for (a2a, arguments, text) in [
        (json!({"advertise": ["cliq"]}), vec!["--a2a"], "server.a2a.advertise"),
        (json!({"signing_key": "/nonexistent"}), vec!["--a2a"], "server.a2a.signing_key"),
        (json!({}), vec!["--mesh", "prod"], "server.a2a.meshes"),
        (json!({"meshes": [{"name": "x"}]}), vec!["--a2a"], "server.a2a.meshes"),
    ] {
        let machine = Machine::new().settings(&json!({"server": {"a2a": a2a}}));
        let output = machine.cliq(&[&["server", "run", "--port", "0"], &arguments[..]].concat());
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && error.contains(text), "{error}");
    }
}

const VERIFY: &str = r#"
import json, sys
import httpx
from jwt.api_jwk import PyJWK
from a2a.client.card_resolver import parse_agent_card
from a2a.utils.signing import create_signature_verifier, InvalidSignaturesError
url = sys.argv[1]
keys = {k["kid"]: PyJWK(k) for k in httpx.get(url + "/.well-known/jwks.json").json()["keys"]}
text = httpx.get(url + "/.well-known/agent-card.json").text
def key(kid, jku):
    assert jku == url + "/.well-known/jwks.json"
    return keys[kid]
verify = create_signature_verifier(key, ["ES256"])
verify(parse_agent_card(json.loads(text)))
forged = json.loads(text)
forged["skills"][0]["description"] += " x"
try:
    verify(parse_agent_card(forged))
    raise AssertionError("a forged card was accepted")
except InvalidSignaturesError:
    pass
print("ok")
"#;

/// The signature is checked by the official Python SDK, which must also refuse a changed card.
#[test]
fn card_signature_is_verified_by_the_python_sdk() {
    let python = target("venv/bin/python");
    let has = Command::new(&python).args(["-c", "import a2a.utils.signing"]).output();
    if !has.is_ok_and(|output| output.status.success()) {
        cliq_testkit::not_run("there is no Python with a2a-sdk in target/venv (./test makes it)");
        return;
    }
    let keys = tempfile::tempdir().unwrap();
    let key = keys.path().join("key.pem");
    let made = Command::new("openssl")
        .args(["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out"])
        .arg(&key)
        .output();
    if !made.is_ok_and(|output| output.status.success()) {
        cliq_testkit::not_run("there is no openssl");
        return;
    }
    let machine = machine_with(&json!({"signing_key": key}));
    let server = machine.serve();
    let output = Command::new(python).args(["-c", VERIFY, &server.url]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(!fs::read_to_string(machine.path("log")).unwrap().contains("PRIVATE"));
}

#[test]
fn the_extended_card_needs_a_token() {
    let machine = machine_with(&json!({}));
    let server = machine.serve();
    server.send("GET", "/a2a/rest/extendedAgentCard", &[("a2a-version", "1.0")], None).expect(401);
    let caller = Caller::new(&machine, &server);
    assert_eq!(caller.ok("GetExtendedAgentCard", &json!({})), card(&server));
    let answer = caller.call("0.3", "agent/getAuthenticatedExtendedCard", &Value::Null);
    assert_eq!(answer["result"]["name"], "cliq (cliq-test)");
}
