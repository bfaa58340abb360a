//! Google Drive: a small server after the public documentation of Drive (version 3), Docs (version 1) and OAuth.

use std::process::Command;
use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cliq_testkit::env::{Env, done};
use serde_json::{Value, json};

use crate::outside::site::{ReceivedRequest, Reply, Site, json as answer, reply};

const DOCUMENT: &str = "application/vnd.google-apps.document";
const FOLDER: &str = "application/vnd.google-apps.folder";

/// A file of Drive.
#[derive(Debug, Clone)]
struct File {
    id: String,
    name: String,
    kind: String,
    parent: String,
    bytes: Vec<u8>,
    version: u32,
    target: Option<(String, String)>,
    properties: Value,
}

type Files = Arc<Mutex<Vec<File>>>;

fn file(id: &str, name: &str, kind: &str, parent: &str, bytes: &str) -> File {
    File {
        id: id.into(),
        name: name.into(),
        kind: kind.into(),
        parent: parent.into(),
        bytes: bytes.as_bytes().to_vec(),
        version: 1,
        target: None,
        properties: json!({}),
    }
}

fn described(file: &File) -> Value {
    let mut value = json!({"id": file.id, "name": file.name, "mimeType": file.kind, "version": file.version.to_string(),
        "modifiedTime": "2026-11-01T10:00:00Z", "webViewLink": format!("https://drive.google.com/file/d/{}/view", file.id)});
    if !file.kind.starts_with("application/vnd.google-apps") {
        value["size"] = file.bytes.len().to_string().into();
        value["sha256Checksum"] = sha256(&file.bytes).into();
    }
    if let Some((id, kind)) = &file.target {
        value["shortcutDetails"] = json!({"targetId": id, "targetMimeType": kind});
    }
    value
}

fn sha256(bytes: &[u8]) -> String {
    hex::encode(ring::digest::digest(&ring::digest::SHA256, bytes))
}

fn query(asked: &ReceivedRequest, key: &str) -> Option<String> {
    let url = url::Url::parse(&format!("http://h{}", asked.path)).unwrap();
    url.query_pairs().find(|(own, _)| own == key).map(|(_, value)| value.into_owned())
}

/// Drive with these files. `{base}/token` gives tokens for requests that are signed with the account's key.
fn drive(files: Vec<File>) -> (Site, Files) {
    let files: Files = Arc::new(Mutex::new(files));
    let own = Arc::clone(&files);
    let sessions: Mutex<Vec<(Option<String>, Value)>> = Mutex::default();
    let site = Site::start(move |asked: &ReceivedRequest| -> Reply {
        let path = asked.path.split('?').next().unwrap().to_owned();
        if path == "/token" {
            let form = String::from_utf8_lossy(&asked.body).into_owned();
            if let Some(jwt) = form.split("assertion=").nth(1) {
                let claims = URL_SAFE_NO_PAD.decode(jwt.split('.').nth(1).unwrap()).unwrap();
                let claims: Value = serde_json::from_slice(&claims).unwrap();
                assert_eq!(claims["iss"], "robot@example.com");
                return answer(&json!({"access_token": "token-1", "expires_in": 3600}));
            }
            if form.contains("device_code=D") {
                return answer(
                    &json!({"access_token": "token-1", "refresh_token": "refresh-1", "expires_in": 3600}),
                );
            }
            assert!(form.contains("refresh_token=refresh-1"), "{form}");
            return answer(&json!({"access_token": "token-1", "expires_in": 3600}));
        }
        if path == "/device" {
            return answer(
                &json!({"device_code": "D", "user_code": "ABCD-EFGH", "verification_url": "https://google.com/device", "interval": 1, "expires_in": 60}),
            );
        }
        if asked.header("authorization") != Some("Bearer token-1") {
            return reply(401, "application/json", r#"{"error": {"message": "Invalid Credentials"}}"#);
        }
        let mut files = own.lock().unwrap();
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        match (asked.method.as_str(), &parts[..]) {
            ("GET", ["drive", "v3", "about"]) => {
                answer(&json!({"user": {"emailAddress": "robot@example.com"}}))
            }
            ("GET", ["drive", "v3", "files", "generateIds"]) => {
                answer(&json!({"ids": [format!("new-{}", files.len())]}))
            }
            ("GET", ["drive", "v3", "files"]) => {
                let q = query(asked, "q").unwrap();
                let parent = q.split('\'').nth(1).unwrap().to_owned();
                let name = q.split("name = '").nth(1).map(|rest| rest.split('\'').next().unwrap().to_owned());
                let mark = q.split("value='").nth(1).map(|rest| rest.split('\'').next().unwrap().to_owned());
                let found: Vec<Value> = files
                    .iter()
                    .filter(|f| f.parent == parent && name.as_ref().is_none_or(|name| *name == f.name))
                    .filter(|f| mark.as_ref().is_none_or(|mark| f.properties["cliqSha256"] == mark.as_str()))
                    .map(described)
                    .collect();
                // Pages of two.
                let start: usize = query(asked, "pageToken").map_or(0, |token| token.parse().unwrap());
                let mut page = json!({"files": found.iter().skip(start).take(2).collect::<Vec<_>>()});
                if start + 2 < found.len() {
                    page["nextPageToken"] = (start + 2).to_string().into();
                }
                answer(&page)
            }
            ("GET", ["drive", "v3", "files", id, "export"]) => {
                let Some(found) = files.iter().find(|f| f.id == *id) else {
                    return reply(404, "application/json", "{}");
                };
                reply(200, &query(asked, "mimeType").unwrap(), found.bytes.clone())
            }
            ("GET", ["drive", "v3", "files", id]) => match files.iter().find(|f| f.id == *id) {
                None => reply(404, "application/json", r#"{"error": {"message": "File not found"}}"#),
                Some(found) if query(asked, "alt").is_some() => reply(200, &found.kind, found.bytes.clone()),
                Some(found) => answer(&described(found)),
            },
            ("POST" | "PATCH", ["upload", "drive", "v3", "files", rest @ ..]) => {
                let mut sessions = sessions.lock().unwrap();
                sessions.push((rest.first().map(|id| (*id).to_owned()), asked.json()));
                let host = asked.header("host").unwrap();
                reply(200, "application/json", "")
                    .with("location", format!("http://{host}/session/{}", sessions.len() - 1))
            }
            ("PUT", ["session", n]) => {
                let (id, about) = sessions.lock().unwrap()[n.parse::<usize>().unwrap()].clone();
                let text = |key: &str| about[key].as_str().map(str::to_owned);
                let id = id.or_else(|| text("id")).unwrap_or_else(|| format!("doc-{}", files.len()));
                if !files.iter().any(|f| f.id == id) {
                    let kind = text("mimeType").unwrap_or_else(|| "text/markdown".to_owned());
                    files.push(file(
                        &id,
                        &text("name").unwrap(),
                        &kind,
                        about["parents"][0].as_str().unwrap(),
                        "",
                    ));
                }
                let found = files.iter_mut().find(|f| f.id == id).unwrap();
                found.bytes.clone_from(&asked.body);
                found.version += 1;
                if !about["appProperties"].is_null() {
                    found.properties = about["appProperties"].clone();
                }
                answer(&described(found))
            }
            ("POST", ["v1", "documents", id]) => {
                let found = files
                    .iter_mut()
                    .find(|f| id.strip_suffix(":batchUpdate") == Some(f.id.as_str()))
                    .unwrap();
                let text = asked.json()["requests"][0]["insertText"]["text"].as_str().unwrap().to_owned();
                found.bytes.extend(text.bytes());
                found.version += 1;
                answer(&json!({}))
            }
            _ => reply(404, "application/json", "{}"),
        }
    });
    (site, files)
}

/// A project whose settings have a service account of this Drive.
fn project(site: &Site, workflow: &str) -> Env {
    let env = Env::new(workflow, &[]);
    let key = Command::new("openssl")
        .args(["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"])
        .output()
        .unwrap();
    let file = env.home().join("robot.json");
    std::fs::create_dir_all(env.home()).unwrap();
    let credentials = json!({"type": "service_account", "client_email": "robot@example.com", "private_key": String::from_utf8(key.stdout).unwrap(),
        "token_uri": format!("{}/token", site.base)});
    std::fs::write(&file, credentials.to_string()).unwrap();
    for (key, value) in [("credentials_file", file.to_str().unwrap()), ("base_url", &site.base)] {
        env.cliq(["settings", "set", "-g", &format!("agents.gdrive.{key}"), value]).expect(0);
    }
    env
}

fn pull(sources: &str) -> String {
    format!("workflow:\n  phases:\n    - name: fetch\n      type: pull\n      sources: [{sources}]\n")
}

#[test]
fn folders_come_with_all_that_is_below_them() {
    let mut shortcut = file("s1", "linked", "application/vnd.google-apps.shortcut", "top", "");
    shortcut.target = Some(("elsewhere".to_owned(), FOLDER.to_owned()));
    let mut circle = file("s2", "circle", "application/vnd.google-apps.shortcut", "elsewhere", "");
    circle.target = Some(("top".to_owned(), FOLDER.to_owned()));
    let mut lost = file("s3", "lost", "application/vnd.google-apps.shortcut", "top", "");
    lost.target = Some(("nowhere".to_owned(), "text/plain".to_owned()));
    let (site, files) = drive(vec![
        file("top", "Room", FOLDER, "", ""),
        file("a", "plan", DOCUMENT, "top", "# Plan\n"),
        file("b", "numbers", "application/vnd.google-apps.spreadsheet", "top", "x,y\n"),
        file("c", "a/b.txt", "text/plain", "top", "slash"),
        file("d", "form", "application/vnd.google-apps.form", "top", ""),
        file("sub", "deeper", FOLDER, "top", ""),
        file("e", "note.txt", "text/plain", "sub", "deep"),
        file("elsewhere", "Else", FOLDER, "", ""),
        file("f", "far.txt", "text/plain", "elsewhere", "far"),
        shortcut,
        circle,
        lost,
    ]);
    let env = project(&site, &pull("{name: room, url: \"gdrive://top\"}"));
    env.cliq(["run", "--headless"])
        .expect(0)
        .says("form: Google cannot export")
        .says("lost: its file is gone");
    let mut found = env.files(".cliq/pull/room");
    found.sort();
    assert_eq!(found, ["a_b.txt", "deeper/note.txt", "linked/far.txt", "numbers.csv", "plan.md"]);
    assert_eq!(env.read(".cliq/pull/room/plan.md"), "# Plan\n");
    // Only what changed is fetched again; what is gone there goes here.
    let fetched =
        || site.calls().iter().filter(|call| call.contains("alt=media") || call.contains("/export")).count();
    assert_eq!(fetched(), 5);
    {
        let mut files = files.lock().unwrap();
        files.retain(|file| file.id != "e");
        let note = files.iter_mut().find(|file| file.id == "f").unwrap();
        note.bytes = b"further".to_vec();
    }
    env.cliq(["run", "--headless", "-f"]).expect(0);
    assert_eq!(fetched(), 6);
    assert!(!env.exists(".cliq/pull/room/deeper") && env.read(".cliq/pull/room/linked/far.txt") == "further");
    // Two files of one name.
    files.lock().unwrap().push(file("g", "a/b.txt", "text/plain", "top", "other"));
    env.cliq(["run", "--headless", "-f"]).expect(3).says("there are two files a_b.txt");
}

#[test]
fn documents_sheets_and_files() {
    let (site, _) = drive(vec![
        file("doc", "plan", DOCUMENT, "", "# Plan\n"),
        file("sheet", "numbers", "application/vnd.google-apps.spreadsheet", "", "x,y\n"),
        file("txt", "note.txt", "text/plain", "", "note"),
    ]);
    let sources = "{name: doc, url: \"https://docs.google.com/document/d/doc/edit\"}, {name: sheet, url: \"https://docs.google.com/spreadsheets/d/sheet/edit#gid=0\"}, {name: file, url: \"https://drive.google.com/file/d/txt/view\"}";
    let env = project(&site, &pull(sources));
    env.cliq(["run", "--headless"]).expect(0);
    assert_eq!(
        (env.read(".cliq/pull/doc.md"), env.read(".cliq/pull/sheet.csv"), env.read(".cliq/pull/file.txt")),
        ("# Plan\n".into(), "x,y\n".into(), "note".into())
    );
    env.cliq(["run", "--headless", "-f"]).expect(0).says("doc: unchanged").says("file: unchanged");
    env.cliq(["doctor", "test", "gdrive"]).expect(0).says("robot@example.com");
    let env = project(&site, &pull("{name: x, url: \"gdrive://missing\"}"));
    env.cliq(["run", "--headless"]).expect(3).says("has no file missing for this account");
}

#[test]
fn files_and_documents_are_published_once() {
    let (site, files) = drive(vec![
        file("box", "Box", FOLDER, "", ""),
        file("log", "log.md", "text/markdown", "box", "first\n"),
        file("doc", "Doc", DOCUMENT, "", "start\n"),
    ]);
    let env = project(
        &site,
        "workflow:
  phases:
    - name: publish
      type: push
      targets:
        - {file: r.md, to: \"gdrive://box\", name: new.md}
        - {file: r.md, to: \"gdrive://box\", name: log.md, mode: append}
        - {file: r.md, to: \"gdoc://folder/box\", name: Report}
        - {file: r.md, to: \"gdoc://doc\", mode: append}
",
    );
    env.write("r.md", "text\n");
    env.cliq(["run", "--headless"]).expect(0);
    let text = |name: &str| {
        let files = files.lock().unwrap();
        let found: Vec<String> = files
            .iter()
            .filter(|f| f.name == name)
            .map(|f| String::from_utf8(f.bytes.clone()).unwrap())
            .collect();
        assert_eq!(found.len(), 1, "{name}");
        found[0].clone()
    };
    assert_eq!(
        (text("new.md"), text("log.md"), text("Report")),
        ("text\n".into(), "first\ntext\n".into(), "text\n".into())
    );
    assert_eq!(text("Doc"), "start\n\ntext\n");
    env.cliq(["run", "--headless", "-f"]).expect(0).says("published before");
    assert_eq!((text("log.md"), text("Doc")), ("first\ntext\n".into(), "start\n\ntext\n".into()));
    let env = project(
        &site,
        "workflow:\n  phases:\n    - name: p\n      type: push\n      targets: [{file: r.md, to: \"gdrive://box\", name: new.md}]\n",
    );
    env.write("r.md", "other");
    env.cliq(["run", "--headless"]).expect(3).says("has a file `new.md` already");
}

#[test]
fn the_connector_lists_fetches_and_uploads() {
    let (site, files) =
        drive(vec![file("box", "Box", FOLDER, "", ""), file("doc", "plan", DOCUMENT, "box", "plain text")]);
    let env = project(
        &site,
        "workflow:
  phases:
    - name: ask
      type: standard
      agent: gdrive
      sources: [{name: list.json, ref: folder/box}, {name: plan.txt, ref: doc}]
      target_entries: [{name: up, ref: box, file: r.md}]
    - {name: after, type: exec, depends_on: [ask], commands: [{name: t, run: 'test \"$(handoff.ask.sources.list.count)\" = 1'}]}
",
    );
    env.write("r.md", "report");
    env.cliq(["run", "--headless"]).expect(0);
    assert_eq!(env.read(".cliq/files/ask/plan.txt"), "plain text");
    assert_eq!(env.read_json(".cliq/files/ask/list.json")[0]["name"], "plan");
    assert!(
        files.lock().unwrap().iter().any(|f| f.name == "r.md" && f.parent == "box" && f.bytes == b"report")
    );
}

#[test]
fn a_person_signs_in_with_a_code() {
    let (site, _) = drive(Vec::new());
    let env = project(&site, &pull("{name: a, url: \"gdrive://x\"}"));
    let file = env.home().join("client.json");
    let client = json!({"installed": {"client_id": "c", "client_secret": "client-secret", "token_uri": format!("{}/token", site.base), "device_uri": format!("{}/device", site.base)}});
    std::fs::write(&file, client.to_string()).unwrap();
    env.cliq(["settings", "set", "-g", "agents.gdrive.credentials_file", file.to_str().unwrap()]).expect(0);
    env.cliq(["settings", "set", "-g", "agents.gdrive.auth_mode", "oauth"]).expect(0);
    env.cliq(["doctor", "test", "gdrive"]).expect(1).says("cliq auth gdrive");
    let signed = done(&env.command(["auth", "gdrive"]).output().unwrap())
        .expect(0)
        .says("https://google.com/device")
        .says("ABCD-EFGH");
    assert!(!signed.stdout.contains("refresh-1"));
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &std::fs::metadata(env.home().join("google-grant.json")).unwrap().permissions(),
    );
    assert_eq!(mode & 0o777, 0o600);
    env.cliq(["doctor", "test", "gdrive"]).expect(0);
}
