//! A sender of webhooks: signs as GitHub, GitLab, Slack and others do.

use cliq_testkit::machine::{Answer, Machine, Running, wait_for};
use ring::hmac;
use serde_json::{Value, json};

/// Secret of all webhooks of the tests.
pub(crate) const SECRET: &str = "a secret of the tests";

pub(crate) fn hex_mac(secret: &str, parts: &[&str]) -> String {
    let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()));
    parts.iter().for_each(|part| context.update(part.as_bytes()));
    hex::encode(context.sign().as_ref())
}

pub(crate) fn now() -> i64 {
    i64::try_from(std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs()).unwrap()
}

/// Headers of a delivery.
pub(crate) type Headers = Vec<(String, String)>;

pub(crate) fn headers(pairs: &[(&str, &str)]) -> Headers {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

pub(crate) fn github(event: &str, id: &str, body: &str) -> Headers {
    headers(&[
        ("content-type", "application/json"),
        ("x-github-event", event),
        ("x-github-delivery", id),
        ("x-hub-signature-256", &format!("sha256={}", hex_mac(SECRET, &[body]))),
    ])
}

pub(crate) fn slack(time: i64, body: &str) -> Headers {
    let time = time.to_string();
    headers(&[
        ("content-type", "application/json"),
        ("x-slack-request-timestamp", &time),
        ("x-slack-signature", &format!("v0={}", hex_mac(SECRET, &["v0:", &time, ":", body]))),
    ])
}

pub(crate) fn plain(id: &str, body: &str) -> Headers {
    headers(&[
        ("content-type", "application/json"),
        ("x-delivery-id", id),
        ("x-signature-256", &format!("sha256={}", hex_mac(SECRET, &[body]))),
    ])
}

pub(crate) fn deliver(server: &Running, name: &str, headers: &Headers, body: &str) -> Answer {
    let headers: Vec<(&str, &str)> = headers.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    server.send("POST", &format!("/hooks/{name}"), &headers, Some(body))
}

/// A machine with these triggers, the secret `s`, and more settings.
pub(crate) fn machine_with(triggers: &str, mut settings: Value) -> Machine {
    settings["triggers"]["secrets"] =
        json!({"s": SECRET, "s-gitlab": SECRET, "s-slack": SECRET, "s-timed": SECRET});
    let machine = Machine::new().settings(&settings);
    write(&machine, triggers);
    machine
}

pub(crate) fn write(machine: &Machine, triggers: &str) {
    std::fs::write(machine.home.join("triggers.yml"), format!("triggers:\n{triggers}")).unwrap();
}

/// The firings of a trigger, oldest first.
pub(crate) fn firings(server: &Running, name: &str) -> Vec<Value> {
    let (mut all, mut cursor) = (Vec::new(), String::new());
    loop {
        let page =
            server.get(&format!("/api/v1/triggers/{name}/firings?limit=200{cursor}")).expect(200).json();
        all.extend(page["firings"].as_array().unwrap().iter().cloned());
        match page["next"].as_i64() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    all.reverse();
    all
}

/// Waits until a trigger has that many decided firings, and gives them, oldest first.
#[track_caller]
pub(crate) fn decided(server: &Running, name: &str, count: usize) -> Vec<Value> {
    let what = format!("{count} firings of {name} are decided");
    wait_for(&what, || {
        let found = firings(server, name);
        let is_done = found.len() >= count && found.iter().all(|firing| firing["state"] != "pending");
        is_done.then_some(found)
    })
}

pub(crate) fn run_of(firing: &Value) -> &str {
    firing["run_id"].as_str().unwrap_or_else(|| panic!("no run: {firing}"))
}

/// Number of stored runs, at most 200.
pub(crate) fn count_runs(server: &Running) -> usize {
    server.get("/api/v1/runs?limit=200").expect(200).json()["runs"].as_array().unwrap().len()
}
