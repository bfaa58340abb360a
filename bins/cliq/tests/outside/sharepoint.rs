//! SharePoint: a small server after the public documentation of Microsoft Graph (version 1.0).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cliq_testkit::env::Env;
use serde_json::{Value, json};

use crate::outside::site::{ReceivedRequest, Reply, Site, json as answer, reply};

type Files = Arc<Mutex<BTreeMap<String, Vec<u8>>>>;

const ROOM: &str = "https://acme.sharepoint.com/:f:/s/team/Room";
const REPORT: &str = "https://acme.sharepoint.com/:w:/s/team/Report?e=abc";

/// A drive with a folder `Room`, whose files these are, and a document that a link leads to.
fn graph(files: &[(&str, &str)]) -> (Site, Files) {
    let files: Files = Arc::new(Mutex::new(
        files.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())).collect(),
    ));
    let own = Arc::clone(&files);
    let site = Site::start(move |asked: &ReceivedRequest| -> Reply {
        let path = asked.path.split('?').next().unwrap().to_owned();
        if path.ends_with("/oauth2/v2.0/token") {
            assert!(String::from_utf8_lossy(&asked.body).contains("client_secret=app-secret"));
            return answer(&json!({"access_token": "token-1", "expires_in": 3600}));
        }
        if let Some(name) = path.strip_prefix("/direct/") {
            assert_eq!(asked.header("authorization"), None, "the token must not go to another place");
            return reply(200, "application/octet-stream", own.lock().unwrap()[name].clone());
        }
        if asked.header("authorization") != Some("Bearer token-1") {
            return reply(
                401,
                "application/json",
                r#"{"error": {"code": "InvalidAuthenticationToken", "message": "bad token"}}"#,
            );
        }
        let mut files = own.lock().unwrap();
        let host = asked.header("host").unwrap().to_owned();
        let item = |name: &str, bytes: &[u8]| {
            json!({"id": format!("id-{name}"), "name": name, "size": bytes.len(), "eTag": format!("\"{}-{}\"", name, bytes.len()),
                "webUrl": format!("https://acme.sharepoint.com/{name}"), "file": {"mimeType": "text/plain"}, "parentReference": {"driveId": "D"}})
        };
        let folder = |name: &str| json!({"id": format!("id-{name}"), "name": name, "folder": {}, "parentReference": {"driveId": "D"}});
        let parts: Vec<&str> = path.trim_start_matches("/v1.0/").split('/').collect();
        match (asked.method.as_str(), &parts[..]) {
            ("GET", ["shares", share, "driveItem"]) => {
                let link =
                    String::from_utf8(URL_SAFE_NO_PAD.decode(share.strip_prefix("u!").unwrap()).unwrap())
                        .unwrap();
                match link.as_str() {
                    ROOM => answer(&folder("Room")),
                    REPORT => answer(&item("report.docx", &files["report.docx"])),
                    _ => reply(
                        404,
                        "application/json",
                        r#"{"error": {"message": "The sharing link no longer exists"}}"#,
                    ),
                }
            }
            ("GET", ["drives", "D", "items", "id-Room", "children"]) => {
                if asked.path.contains("page=2") {
                    return answer(&json!({"value": [folder("sub")]}));
                }
                let list: Vec<Value> = files
                    .iter()
                    .filter(|(name, _)| name.starts_with("room-"))
                    .map(|(name, bytes)| item(name, bytes))
                    .collect();
                answer(
                    &json!({"value": list, "@odata.nextLink": format!("http://{host}/v1.0/drives/D/items/id-Room/children?page=2")}),
                )
            }
            ("GET", ["drives", "D", "items", "id-sub", "children"]) => {
                answer(&json!({"value": [item("deep.txt", &files["deep.txt"])]}))
            }
            ("GET", ["drives", "D", "items", id, "content"]) => {
                let name = id.strip_prefix("id-").unwrap();
                reply(302, "text/plain", "").with(
                    "location",
                    format!("http://localhost:{}/direct/{name}", host.rsplit(':').next().unwrap()),
                )
            }
            (method, ["drives", "D", "items", place, rest @ ..]) if place.starts_with("id-Room:") => {
                let name = rest[0].trim_end_matches(':').to_owned();
                match (method, files.get(&name), rest.get(1)) {
                    ("GET", Some(bytes), _) => answer(&item(&name, bytes)),
                    ("GET", None, _) => reply(404, "application/json", "{}"),
                    ("PUT", _, Some(&"content")) => {
                        files.insert(name.clone(), asked.body.clone());
                        answer(&item(&name, &asked.body))
                    }
                    _ => reply(400, "application/json", "{}"),
                }
            }
            ("GET", ["sites", "root"]) => answer(&json!({"webUrl": "https://acme.sharepoint.com"})),
            _ => reply(404, "application/json", "{}"),
        }
    });
    (site, files)
}

fn project(site: &Site, workflow: &str) -> Env {
    let env = Env::new(workflow, &[]);
    let base = format!("{}/v1.0", site.base);
    for (key, value) in [
        ("tenant_id", "acme"),
        ("client_id", "app"),
        ("client_secret", "app-secret"),
        ("base_url", &base),
        ("login_url", &site.base),
    ] {
        env.cliq(["settings", "set", "-g", &format!("agents.sharepoint.{key}"), value]).expect(0);
    }
    env
}

#[test]
fn links_lead_to_documents_and_folders() {
    let (site, _) = graph(&[("report.docx", "office"), ("room-a.txt", "a"), ("deep.txt", "deep")]);
    let sources = format!("{{name: report, url: \"{REPORT}\"}}, {{name: room, url: \"{ROOM}\"}}");
    let env = project(
        &site,
        &format!("workflow:\n  phases:\n    - name: fetch\n      type: pull\n      sources: [{sources}]\n"),
    );
    env.cliq(["run", "--headless"]).expect(0);
    assert_eq!(
        (
            env.read(".cliq/pull/report.docx"),
            env.read(".cliq/pull/room/room-a.txt"),
            env.read(".cliq/pull/room/sub/deep.txt")
        ),
        ("office".into(), "a".into(), "deep".into())
    );
    env.cliq(["run", "--headless", "-f"]).expect(0).says("report: unchanged");
    assert_eq!(site.calls().iter().filter(|call| call.contains("/direct/")).count(), 3);
    env.cliq(["doctor", "test", "sharepoint"]).expect(0);
    let env = project(
        &site,
        "workflow:\n  phases:\n    - name: fetch\n      type: pull\n      sources: [{name: a, url: \"https://acme.sharepoint.com/gone\"}]\n",
    );
    env.cliq(["run", "--headless"]).expect(3).says("SharePoint has no such item for this app");
}

#[test]
fn files_are_published_once() {
    let (site, files) = graph(&[("log.md", "first\n")]);
    let targets = format!(
        "{{file: r.md, to: \"{ROOM}\", name: \"the report.md\"}}, {{file: r.md, to: \"{ROOM}\", name: log.md, mode: append}}"
    );
    let env = project(
        &site,
        &format!("workflow:\n  phases:\n    - name: p\n      type: push\n      targets: [{targets}]\n"),
    );
    env.write("r.md", "text\n");
    env.cliq(["run", "--headless"]).expect(0);
    let text = |name: &str| String::from_utf8(files.lock().unwrap()[name].clone()).unwrap();
    assert_eq!((text("the%20report.md"), text("log.md")), ("text\n".into(), "first\ntext\n".into()));
    env.cliq(["run", "--headless", "-f"]).expect(0);
    assert_eq!(site.count("PUT"), 2);
    let env = project(
        &site,
        &format!(
            "workflow:\n  phases:\n    - name: p\n      type: push\n      targets: [{{file: r.md, to: \"{ROOM}\", name: log.md}}]\n"
        ),
    );
    env.write("r.md", "other");
    env.cliq(["run", "--headless"]).expect(3).says("has a file `log.md` already");
}
