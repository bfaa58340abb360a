//! Connectors against Prism, a mock server that others wrote, on the vendors' published descriptions: it refuses requests that do not fit.
//!
//! `CLIQ_OPENAPI` names the directory of the descriptions; they are not part of the project.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use cliq_testkit::env::{Env, not_run, print_note};

use crate::outside::services::{data, phase, project, source, target};

struct Prism {
    base: String,
    server: Child,
    _description: tempfile::NamedTempFile,
}

impl Drop for Prism {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

impl Prism {
    /// Serves a description. `None` if it, or Prism, is not there.
    fn start(name: &str) -> Option<Self> {
        let Some(dir) = std::env::var_os("CLIQ_OPENAPI").map(PathBuf::from) else {
            // They are not part of the project: without them nothing is missing.
            print_note("SKIPPED: CLIQ_OPENAPI names no directory of published descriptions");
            return None;
        };
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/node/node_modules/.bin/prism");
        let description = dir.join(format!("{name}.json"));
        if !program.exists() || !description.exists() {
            not_run(&format!("Prism or {} is not there", description.display()));
            return None;
        }
        // Prism serves paths without the prefix that `servers` of a description has.
        let mut text: serde_json::Value =
            serde_json::from_slice(&std::fs::read(&description).unwrap()).unwrap();
        if name == "confluence" {
            // Of the two forms of a page's body, none can be exactly one: the description does not say which fields are required.
            for request in ["PageCreateRequest", "PageUpdateRequest"] {
                let place = "/content/application~1json/schema/properties/body";
                let body = text.pointer_mut(&format!("/components/requestBodies/{request}{place}")).unwrap();
                let forms = body.as_object_mut().unwrap().remove("oneOf").unwrap();
                body["anyOf"] = forms;
            }
            let paths = text["paths"].as_object().unwrap().clone();
            let paths =
                paths.into_iter().map(|(path, value)| (format!("/wiki/api/v2{path}"), value)).collect();
            text["paths"] = serde_json::Value::Object(paths);
        }
        let copy = tempfile::Builder::new().suffix(".json").tempfile().unwrap();
        std::fs::write(copy.path(), text.to_string()).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let server = Command::new(program)
            .args(["mock", "--host", "127.0.0.1", "--port", &port.to_string()])
            .arg(copy.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let this = Self { base: format!("http://127.0.0.1:{port}"), server, _description: copy };
        let deadline = Instant::now() + Duration::from_secs(60);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < deadline, "Prism does not listen");
            std::thread::sleep(Duration::from_millis(100));
        }
        Some(this)
    }

    fn run(&self, service: &str, action: &str, entries: &str, file: &str) -> Env {
        let env = project(service, &self.base, &phase(service, action, entries));
        env.write("file.txt", file);
        env.cliq(["run", "--headless"]).expect(0);
        env
    }
}

#[test]
fn jira() {
    let Some(prism) = Prism::start("jira") else { return };
    let run = |action: &str, entries: &str, file: &str| data(&prism.run("jira", action, entries, file));
    assert!(run("get_issue", &source("ED-1"), "")["sources"]["got"]["key"].is_string());
    assert!(run("get_comments", &source("ED-1"), "")["sources"]["got"]["count"].is_u64());
    assert!(run("search", "sources: [{name: got.json, ref: \"project = ED\", limit: 1}]", "")["sources"]["got"]["count"].is_u64());
    assert!(
        run(
            "add_comment",
            &target("ED-1", "file.txt"),
            "A *note* with [a link](https://example.com).\n\n- one\n- two"
        )["targets"]["done"]["size"]
            .is_u64()
    );
    let env = project("jira", &prism.base, &phase("jira", "get_issue", &source("ED-1")));
    env.cliq(["doctor", "test", "jira"]).expect(0);
}

#[test]
fn confluence() {
    let Some(prism) = Prism::start("confluence") else { return };
    let run = |action: &str, entries: &str, file: &str| data(&prism.run("confluence", action, entries, file));
    let page = run("get_page", "sources: [{name: got.md, ref: \"1234\"}]", "");
    assert!(page["sources"]["got"]["title"].is_string());
    run("update_page", "target_entries: [{name: d, ref: \"1234\", title: T, file: file.txt}]", "<p>x</p>");
    run("create_page", "target_entries: [{name: d, ref: DOC, title: T, file: file.txt}]", "<p>x</p>");
}

#[test]
fn hubspot() {
    for (description, action, entries) in [
        ("hubspot-contacts", "get_contact", source("51")),
        ("hubspot-contacts", "get_contact", source("ann@example.com")),
        ("hubspot-companies", "get_company", source("52")),
        ("hubspot-deals", "get_deal", source("53")),
        ("hubspot-contacts", "search", "sources: [{name: got.json, ref: ann, limit: 1}]".to_owned()),
        (
            "hubspot-deals",
            "search",
            "sources: [{name: got.json, ref: ann, object: deals, limit: 1}]".to_owned(),
        ),
        ("hubspot-deals", "update_deal_stage", target("53", "file.txt")),
        ("hubspot-notes", "create_note", target("deals/53", "file.txt")),
    ] {
        let Some(prism) = Prism::start(description) else { return };
        let got = data(&prism.run("hubspot", action, &entries, "closedwon"));
        let entry = if action.starts_with("get") {
            &got["sources"]["got"]["id"]
        } else {
            &got["targets"]["done"]["size"]
        };
        assert!(action == "search" || !entry.is_null(), "{action}: {got:#}");
    }
}

#[test]
fn datadog() {
    let Some(prism) = Prism::start("datadog") else { return };
    let run = |action: &str, entries: &str, file: &str| data(&prism.run("datadog", action, entries, file));
    assert!(run("query_metrics", &source("avg:system.cpu.idle{*}"), "")["sources"]["got"]["series"].is_u64());
    assert!(run("get_monitors", "sources: [{name: got.json}]", "")["sources"]["got"]["count"].is_u64());
    assert!(
        run("get_events", "sources: [{name: got.json, ref: \"env:prod\", window: 2h}]", "")["sources"]["got"]
            ["count"]
            .is_u64()
    );
    run(
        "post_event",
        "target_entries: [{name: d, file: file.txt}]",
        "{\"title\": \"T\", \"text\": \"x\", \"tags\": [\"a:b\"]}",
    );
    let env =
        project("datadog", &prism.base, &phase("datadog", "get_monitors", "sources: [{name: got.json}]"));
    env.cliq(["doctor", "test", "datadog"]).expect(0);
}
