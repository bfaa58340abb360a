//! Connectors: sequences against small servers that keep state, and single calls against Prism on the published descriptions.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use cliq_testkit::env::Env;
use serde_json::{Value, json};

use crate::outside::site::{Fault, ReceivedRequest, Reply, Site, json as answer, reply};

/// A project whose settings have all keys of a service.
pub(crate) fn project(service: &str, base: &str, workflow: &str) -> Env {
    let env = Env::new(workflow, &[]);
    let keys: &[(&str, &str)] = match service {
        "jira" | "confluence" | "zendesk" => &[("email", "ann@example.com"), ("api_token", "secret-token")],
        "hubspot" => &[("access_token", "secret-token")],
        "datadog" => &[("api_key", "secret-token"), ("app_key", "secret-app")],
        _ => &[],
    };
    for (key, value) in keys.iter().copied().chain([("base_url", base)]) {
        env.cliq(["settings", "set", "-g", &format!("agents.{service}.{key}"), value]).expect(0);
    }
    if service == "zendesk" {
        env.cliq(["settings", "set", "-g", "agents.zendesk.subdomain", "acme"]).expect(0);
    }
    env
}

/// A workflow of one phase of a connector, whose handoff goes to another phase.
pub(crate) fn phase(service: &str, action: &str, entries: &str) -> String {
    let action = if action.is_empty() { String::new() } else { format!("      action: {action}\n") };
    format!(
        "workflow:\n  phases:\n    - name: ask\n      type: standard\n      agent: {service}\n{action}      {entries}\n    - {{name: after, type: exec, depends_on: [ask], commands: [{{name: t, run: 'true'}}]}}\n"
    )
}

pub(crate) fn source(reference: &str) -> String {
    format!("sources: [{{name: got.json, ref: \"{reference}\"}}]")
}

pub(crate) fn target(reference: &str, file: &str) -> String {
    format!("target_entries: [{{name: done, ref: \"{reference}\", file: {file}}}]")
}

/// Returns the data of the phase's handoff.
pub(crate) fn data(env: &Env) -> Value {
    env.read_json(".cliq/channels/ask--after/handoff.json")["data"].clone()
}

/// No secret is in anything that the run left.
fn no_secret(env: &Env) {
    for file in env.files(".cliq") {
        let bytes = std::fs::read(env.path(&format!(".cliq/{file}"))).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains("secret-token") && !text.contains("secret-app"), "{file}: {text}");
    }
}

const ISSUE: &str = r#"{"id": "1", "key": "ABC-1", "fields": {"summary": "It is broken", "status": {"name": "Open"}, "issuetype": {"name": "Bug"},
    "priority": {"name": "High"}, "assignee": {"displayName": "Ann"}, "updated": "2026-11-01T10:00:00.000+0000"}}"#;

/// A Jira with an issue: comments are kept, transitions move it. `lost` answers get lost after their work was done.
fn jira(lost: usize) -> (Site, Arc<Mutex<Vec<Value>>>) {
    let comments: Arc<Mutex<Vec<Value>>> = Arc::default();
    let (own, status, losses) = (Arc::clone(&comments), Mutex::new("Open".to_owned()), AtomicUsize::new(0));
    let site = Site::start(move |asked: &ReceivedRequest| -> Reply {
        assert!(asked.header("authorization").unwrap().starts_with("Basic "));
        let path = asked.path.split('?').next().unwrap().to_owned();
        let mut comments = own.lock().unwrap();
        match (asked.method.as_str(), path.as_str()) {
            ("GET", "/rest/api/3/issue/ABC-1") => {
                let mut issue: Value = serde_json::from_str(ISSUE).unwrap();
                issue["fields"]["status"]["name"] = status.lock().unwrap().clone().into();
                answer(&issue)
            }
            ("GET", "/rest/api/3/issue/ABC-1/comment") => {
                let start: usize =
                    asked.path.split("startAt=").nth(1).unwrap().split('&').next().unwrap().parse().unwrap();
                let page: Vec<Value> = comments.iter().skip(start).take(100).cloned().collect();
                answer(
                    &json!({"startAt": start, "maxResults": 100, "total": comments.len(), "comments": page}),
                )
            }
            ("POST", "/rest/api/3/issue/ABC-1/comment") => {
                let id = (comments.len() + 100).to_string();
                let comment = json!({"id": id, "body": asked.json()["body"]});
                comments.push(comment.clone());
                let made = reply(201, "application/json", comment.to_string());
                if losses.fetch_add(1, Ordering::Relaxed) < lost {
                    made.fault(Fault::CutAfter(1))
                } else {
                    made
                }
            }
            ("GET", "/rest/api/3/issue/ABC-1/transitions") => {
                answer(&json!({"transitions": [{"id": "31", "name": "Close it", "to": {"name": "Done"}}]}))
            }
            ("POST", "/rest/api/3/issue/ABC-1/transitions") => {
                assert_eq!(asked.json()["transition"]["id"], "31");
                *status.lock().unwrap() = "Done".to_owned();
                reply(204, "application/json", "")
            }
            ("GET", "/rest/api/3/search/jql") => {
                let token = asked.path.split("nextPageToken=").nth(1);
                let first = token.is_none();
                let issue = |n: usize| json!({"key": format!("ABC-{n}"), "fields": {"summary": "s", "status": {"name": "Open"}}});
                let issues: Vec<Value> =
                    if first { (1..=100).map(issue).collect() } else { (101..=150).map(issue).collect() };
                let mut page = json!({"issues": issues});
                if first {
                    page["nextPageToken"] = "next".into();
                }
                answer(&page)
            }
            ("GET", "/rest/api/3/myself") => answer(&json!({"displayName": "Ann"})),
            _ => reply(
                404,
                "application/json",
                r#"{"errorMessages": ["Issue does not exist or you do not have permission to see it."]}"#,
            ),
        }
    });
    (site, comments)
}

#[test]
fn jira_issues() {
    let (site, _) = jira(0);
    let env = project("jira", &site.base, &phase("jira", "get_issue", &source("ABC-1")));
    env.cliq(["run", "--headless"]).expect(0);
    insta::assert_snapshot!(format!("{:#}", data(&env)).replace(&site.base, "BASE"));
    assert_eq!(env.read_json(".cliq/files/ask/got.json")["key"], "ABC-1");
    no_secret(&env);
    env.cliq(["doctor", "test", "jira"]).expect(0).says("signed in as Ann");

    let env = project("jira", &site.base, &phase("jira", "get_issue", &source("ABC-2")));
    env.cliq(["run", "--headless"]).expect(3).says("Jira has no issue ABC-2").says("source `got.json`");
}

#[test]
fn jira_searches_read_all_pages() {
    let (site, _) = jira(0);
    let entries = "sources: [{name: got.json, ref: \"project = ABC\", limit: 120}]";
    let env = project("jira", &site.base, &phase("jira", "search", entries));
    env.cliq(["run", "--headless"]).expect(0);
    let got = &data(&env)["sources"]["got"];
    assert_eq!((got["count"].as_u64(), got["more"].as_bool()), (Some(120), Some(true)));
    assert_eq!(got["issues"][119]["key"], "ABC-120");
    assert_eq!(env.read_json(".cliq/files/ask/got.json").as_array().unwrap().len(), 120);
}

#[test]
fn jira_comments_are_added_once() {
    let (site, comments) = jira(0);
    let env = project("jira", &site.base, &phase("jira", "add_comment", &target("ABC-1", "note.md")));
    env.write("note.md", "Mended in **1.2**, see [the notes](https://example.com).\n");
    env.cliq(["run", "--headless"]).expect(0);
    assert_eq!(data(&env)["targets"]["done"]["id"], "100");
    let body = comments.lock().unwrap()[0]["body"].to_string();
    assert!(body.contains("\"strong\"") && body.contains("https://example.com"), "{body}");
    no_secret(&env);

    // The answer is lost: what was added is found, and not added again.
    let (site, comments) = jira(1);
    let env = project("jira", &site.base, &phase("jira", "add_comment", &target("ABC-1", "note.md")));
    env.write("note.md", "Mended.");
    env.cliq(["run", "--headless"]).expect(3).says("broke off");
    env.cliq(["run", "--headless", "--resume"]).expect(0);
    assert_eq!(comments.lock().unwrap().len(), 1);
    // In another run the same words are another comment.
    env.cliq(["run", "--headless", "-f"]).expect(0);
    assert_eq!(comments.lock().unwrap().len(), 2);
}

#[test]
fn jira_transitions_by_id_name_or_status() {
    for wanted in ["31", "close it", "Done"] {
        let (site, _) = jira(0);
        let env = project("jira", &site.base, &phase("jira", "transition", &target("ABC-1", "to.txt")));
        env.write("to.txt", wanted);
        env.cliq(["run", "--headless"]).expect(0);
        assert_eq!(data(&env)["targets"]["done"]["status"], "Done");
    }
    let (site, _) = jira(0);
    let env = project("jira", &site.base, &phase("jira", "transition", &target("ABC-1", "to.txt")));
    env.write("to.txt", "Fly");
    env.cliq(["run", "--headless"]).expect(3).says("no transition `Fly` now; it has: 31 (Close it)");
}

/// A Confluence with a space and a page.
fn confluence() -> Site {
    let pages: Mutex<Vec<Value>> = Mutex::new(vec![
        json!({"id": "7", "title": "Guide", "spaceId": "1", "version": {"number": 3},
        "body": {"storage": {"value": "<h2>How</h2><p>See <a href=\"/wiki/x\">it</a></p><table><tbody><tr><th>a</th></tr><tr><td>1</td></tr></tbody></table>"}},
        "_links": {"webui": "/spaces/DOC/pages/7"}}),
    ]);
    Site::start(move |asked: &ReceivedRequest| -> Reply {
        let mut pages = pages.lock().unwrap();
        match (asked.method.as_str(), asked.path.split('?').next().unwrap()) {
            ("GET", "/wiki/api/v2/pages/7") => answer(&pages[0]),
            ("PUT", "/wiki/api/v2/pages/7") => {
                let change = asked.json();
                if change["version"]["number"] != pages[0]["version"]["number"].as_u64().unwrap() + 1 {
                    return reply(409, "application/json", r#"{"errors": [{"title": "Version conflict"}]}"#);
                }
                pages[0]["version"] = change["version"].clone();
                pages[0]["title"] = change["title"].clone();
                answer(&pages[0])
            }
            ("GET", "/wiki/api/v2/spaces") => {
                let known = asked.path.contains("keys=DOC");
                answer(
                    &json!({"results": if known { json!([{"id": "1", "name": "Documents"}]) } else { json!([]) }}),
                )
            }
            ("POST", "/wiki/api/v2/pages") => {
                let mut page = asked.json();
                assert_eq!(page["spaceId"], "1");
                page["id"] = "8".into();
                page["version"] = json!({"number": 1});
                page["_links"] = json!({"webui": "/spaces/DOC/pages/8"});
                pages.push(page.clone());
                answer(&page)
            }
            ("GET", "/wiki/api/v2/pages") => {
                answer(&json!({"results": pages.iter().skip(1).collect::<Vec<_>>()}))
            }
            ("GET", "/wiki/rest/api/search") => answer(
                &json!({"results": [{"content": {"id": "7", "title": "Guide"}, "url": "/spaces/DOC/pages/7"}], "_links": {}}),
            ),
            _ => reply(404, "application/json", "{}"),
        }
    })
}

#[test]
fn confluence_pages() {
    let site = confluence();
    let env = project(
        "confluence",
        &site.base,
        &phase("confluence", "get_page", "sources: [{name: page.md, ref: \"7\"}]"),
    );
    env.cliq(["run", "--headless"]).expect(0);
    let text = env.read(".cliq/files/ask/page.md");
    assert!(text.starts_with("# Guide\n\n## How\n\nSee [it](") && text.contains("| 1 |"), "{text}");
    insta::assert_snapshot!(format!("{:#}", data(&env)).replace(&site.base, "BASE"));
    let env = project("confluence", &site.base, &phase("confluence", "search", &source("text ~ guide")));
    env.cliq(["run", "--headless"]).expect(0);
    assert_eq!(data(&env)["sources"]["got"]["pages"][0]["title"], "Guide");

    let page = "target_entries: [{name: done, ref: DOC, title: \"News of $(date)\", file: news.md}]";
    let env = project("confluence", &site.base, &phase("confluence", "create_page", page));
    env.write("news.md", "# News\n\n| a | b |\n|---|---|\n| 1 | 2 |\n");
    env.cliq(["run", "--headless"]).expect(0);
    assert_eq!(data(&env)["targets"]["done"]["id"], "8");
    let made = site.asked().into_iter().find(|asked| asked.method == "POST").unwrap().json();
    assert!(made["title"].as_str().unwrap().starts_with("News of 20"));
    assert!(made["body"]["value"].as_str().unwrap().contains("<table>"));

    let page = "target_entries: [{name: done, ref: \"7\", title: Guide, file: news.html}]";
    let env = project("confluence", &site.base, &phase("confluence", "update_page", page));
    env.write("news.html", "<p>new</p>");
    env.cliq(["run", "--headless"]).expect(0);
    assert_eq!(data(&env)["targets"]["done"]["version"], 4);
    let env = project(
        "confluence",
        &site.base,
        &phase("confluence", "create_page", "target_entries: [{name: d, ref: NOPE, title: T, file: a.md}]"),
    );
    env.write("a.md", "x");
    env.cliq(["run", "--headless"]).expect(3).says("Confluence has no space NOPE");
    env.cliq(["doctor", "test", "confluence"]).expect(0);
}

#[test]
fn zendesk_tickets() {
    let comments: Mutex<Vec<Value>> = Mutex::new(Vec::new());
    let status = Mutex::new("open".to_owned());
    let site = Site::start(move |asked: &ReceivedRequest| -> Reply {
        let ticket = || json!({"ticket": {"id": 5, "subject": "Help", "status": *status.lock().unwrap(), "priority": "high", "updated_at": "2026-11-01T10:00:00Z"}});
        let mut comments = comments.lock().unwrap();
        match (asked.method.as_str(), asked.path.split('?').next().unwrap()) {
            ("GET", "/api/v2/tickets/5.json") => answer(&ticket()),
            ("GET", "/api/v2/tickets/5/comments.json") => {
                answer(&json!({"comments": *comments, "meta": {"has_more": false}, "links": {}}))
            }
            ("PUT", "/api/v2/tickets/5.json") => {
                let change = asked.json()["ticket"].clone();
                if let Some(comment) = change.get("comment") {
                    let id = comments.len() + 1;
                    comments.push(json!({"id": id, "body": comment["body"], "public": comment["public"]}));
                }
                if let Some(new) = change["status"].as_str() {
                    *status.lock().unwrap() = new.to_owned();
                }
                answer(&ticket())
            }
            ("GET", "/api/v2/search.json") => answer(
                &json!({"results": [{"id": 5, "subject": "Help", "status": "open"}], "next_page": null}),
            ),
            ("GET", "/api/v2/users/me.json") => answer(&json!({"user": {"id": 1, "name": "Ann"}})),
            _ => reply(404, "application/json", r#"{"error": "RecordNotFound", "description": "Not found"}"#),
        }
    });
    let run = |action: &str, entries: &str, files: &[(&str, &str)]| {
        let env = project("zendesk", &site.base, &phase("zendesk", action, entries));
        files.iter().for_each(|(file, text)| env.write(file, text));
        env.cliq(["run", "--headless"]).expect(0);
        data(&env)
    };
    let got = run("get_ticket", &source("5"), &[]);
    insta::assert_snapshot!(format!("{got:#}").replace(&site.base, "BASE"));
    run("add_comment", &target("5", "c.md"), &[("c.md", "We look at it.")]);
    run(
        "add_comment",
        "target_entries: [{name: d, ref: \"5\", file: c.md, visibility: public}]",
        &[("c.md", "It is mended.")],
    );
    let comments = run("get_comments", &source("5"), &[]);
    assert_eq!(comments["sources"]["got"]["count"], 2);
    assert_eq!(
        run("update_status", &target("5", "s.txt"), &[("s.txt", "Solved\n")])["targets"]["done"]["status"],
        "solved"
    );
    assert_eq!(run("search", &source("type:ticket"), &[])["sources"]["got"]["tickets"][0]["id"], 5);
    let env = project("zendesk", &site.base, &phase("zendesk", "update_status", &target("5", "s.txt")));
    env.write("s.txt", "fine");
    env.cliq(["run", "--headless"]).expect(3).says("it is one of new, open, pending");
    env.cliq(["doctor", "test", "zendesk"]).expect(0).says("Ann");
}

#[test]
fn credentials_that_are_refused_say_which_settings() {
    let site = Site::start(|asked| {
        let token =
            asked.header("authorization").or(asked.header("dd-api-key")).unwrap_or_default().to_owned();
        reply(401, "application/json", json!({"message": format!("bad credentials {token}")}).to_string())
    });
    for (service, action, entries, setting) in [
        ("jira", "get_issue", source("A-1"), "agents.jira.api_token"),
        ("confluence", "get_page", source("1"), "agents.confluence.api_token"),
        ("zendesk", "get_ticket", source("1"), "agents.zendesk.api_token"),
        ("hubspot", "get_deal", source("1"), "agents.hubspot.access_token"),
        ("datadog", "query_metrics", source("avg:x{*}"), "agents.datadog.app_key"),
    ] {
        let env = project(service, &site.base, &phase(service, action, &entries));
        env.cliq(["run", "--headless"]).expect(3).says("401").says(setting);
        no_secret(&env);
        let done = env.cliq(["doctor", "test", service]).expect(1);
        assert!(!done.stdout.contains("secret-token"), "{}", done.stdout);
    }
}

#[test]
fn missing_settings_are_found_before_the_run() {
    let env = Env::new(&phase("jira", "get_issue", &source("A-1")), &[]);
    env.cliq(["run", "--headless"])
        .expect(2)
        .says("`agents.jira.api_token` (or the variable JIRA_API_TOKEN)");
    let mut command = env.command(["run", "--headless"]);
    for (name, value) in
        [("JIRA_BASE_URL", "http://127.0.0.1:9"), ("JIRA_EMAIL", "a@b"), ("JIRA_API_TOKEN", "t")]
    {
        command.env(name, value);
    }
    cliq_testkit::env::done(&command.output().unwrap()).expect(3).says("cannot be reached");
}

#[test]
fn curl_fetches_and_posts() {
    let site = Site::start(|asked| match asked.path.as_str() {
        "/json" => answer(&json!({"b": [1, 2]})),
        "/echo" => {
            reply(200, "text/plain", format!("{} {}", asked.method, String::from_utf8_lossy(&asked.body)))
        }
        _ => answer(&json!({"id": 9})),
    });
    let entries = format!(
        "sources: [{{name: a.json, url: \"{0}/json\"}}, {{name: b, url: \"{0}/echo\", body: '{{\"q\": 1}}', headers: {{X-Api-Key: secret-token}}}}]\n      target_entries: [{{name: post, url: \"{0}/post\", file: body.json}}]",
        site.base
    );
    let env = Env::new(&phase("curl", "", &entries), &[]);
    env.write("body.json", "{\"x\": 1}");
    env.cliq(["run", "--headless"]).expect(0);
    assert_eq!(env.read(".cliq/files/ask/a.json"), "{\n  \"b\": [\n    1,\n    2\n  ]\n}\n");
    assert_eq!(env.read(".cliq/files/ask/b"), "POST {\"q\": 1}");
    let asked = site.asked();
    assert_eq!(
        asked.iter().find(|asked| asked.path == "/echo").unwrap().header("content-type"),
        Some("application/json")
    );
    assert_eq!(data(&env)["targets"]["post"]["body"]["id"], 9);
    assert_eq!(asked.iter().find(|asked| asked.path == "/post").unwrap().json(), json!({"x": 1}));
}

#[test]
fn hubspot_notes_are_made_once() {
    let notes: Arc<Mutex<Vec<Value>>> = Arc::default();
    let own = Arc::clone(&notes);
    let losses = AtomicUsize::new(0);
    let site = Site::start(move |asked: &ReceivedRequest| -> Reply {
        let mut notes = own.lock().unwrap();
        match (asked.method.as_str(), asked.path.split('?').next().unwrap()) {
            ("GET", "/crm/v3/objects/0-3/53") => answer(
                &json!({"id": "53", "properties": {"dealname": "Tea", "dealstage": "open"}, "updatedAt": "2026-11-01T10:00:00Z", "url": "https://app.hubspot.com/53"}),
            ),
            ("PATCH", "/crm/v3/objects/0-3/53") => {
                answer(&json!({"id": "53", "properties": asked.json()["properties"]}))
            }
            ("POST", "/crm/v3/objects/notes/search") => {
                answer(&json!({"total": notes.len(), "results": *notes}))
            }
            ("POST", "/crm/v3/objects/notes") => {
                let note = asked.json();
                assert_eq!(note["associations"][0]["types"][0]["associationTypeId"], 214);
                let id = notes.len() + 1;
                notes.push(json!({"id": id.to_string(), "properties": note["properties"]}));
                let made = reply(201, "application/json", notes[id - 1].to_string());
                if losses.fetch_add(1, Ordering::Relaxed) == 0 {
                    made.fault(Fault::CutAfter(1))
                } else {
                    made
                }
            }
            ("POST", "/crm/v3/objects/contacts/search") => {
                let after = asked.json()["after"].as_str().unwrap_or("0").to_owned();
                let contact = |n: usize| json!({"id": n.to_string(), "properties": {"firstname": "Ann", "lastname": n.to_string()}});
                if after == "0" {
                    answer(
                        &json!({"total": 150, "results": (0..100).map(contact).collect::<Vec<_>>(), "paging": {"next": {"after": "100"}}}),
                    )
                } else {
                    answer(&json!({"total": 150, "results": (100..150).map(contact).collect::<Vec<_>>()}))
                }
            }
            _ => reply(404, "application/json", r#"{"status": "error", "message": "resource not found"}"#),
        }
    });
    let env = project("hubspot", &site.base, &phase("hubspot", "create_note", &target("deals/53", "n.md")));
    env.write("n.md", "They want green tea.");
    env.cliq(["run", "--headless"]).expect(3).says("broke off");
    env.cliq(["run", "--headless", "--resume"]).expect(0);
    assert_eq!(notes.lock().unwrap().len(), 1);
    let env = project(
        "hubspot",
        &site.base,
        &phase("hubspot", "search", "sources: [{name: got.json, ref: ann, limit: 120}]"),
    );
    env.cliq(["run", "--headless"]).expect(0);
    let got = &data(&env)["sources"]["got"];
    assert_eq!((got["count"].as_u64(), got["records"][119]["name"].as_str()), (Some(120), Some("Ann 119")));
    let env = project("hubspot", &site.base, &phase("hubspot", "get_deal", &source("53")));
    env.cliq(["run", "--headless"]).expect(0);
    insta::assert_snapshot!(format!("{:#}", data(&env)).replace(&site.base, "BASE"));
    let env = project("hubspot", &site.base, &phase("hubspot", "update_deal_stage", &target("53", "s.txt")));
    env.write("s.txt", "closedwon\n");
    env.cliq(["run", "--headless"]).expect(0);
    assert_eq!(data(&env)["targets"]["done"]["stage"], "closedwon");
    let env = project("hubspot", &site.base, &phase("hubspot", "get_company", &source("9")));
    env.cliq(["run", "--headless"]).expect(3).says("HubSpot has no 9 among its companies");
}

#[test]
fn datadog_events_are_posted_once() {
    let events: Arc<Mutex<Vec<Value>>> = Arc::default();
    let own = Arc::clone(&events);
    let losses = AtomicUsize::new(0);
    let site = Site::start(move |asked: &ReceivedRequest| -> Reply {
        let mut events = own.lock().unwrap();
        match (asked.method.as_str(), asked.path.split('?').next().unwrap()) {
            ("POST", "/api/v1/events") => {
                let mut event = asked.json();
                event["id"] = (events.len() + 1).into();
                events.push(event.clone());
                let made =
                    reply(202, "application/json", json!({"event": event, "status": "ok"}).to_string());
                if losses.fetch_add(1, Ordering::Relaxed) == 0 {
                    made.fault(Fault::CutAfter(1))
                } else {
                    made
                }
            }
            ("GET", "/api/v1/events") => {
                let tag = asked
                    .path
                    .split("tags=")
                    .nth(1)
                    .map(|rest| rest.split('&').next().unwrap().replace("%3A", ":"));
                let found: Vec<&Value> = events
                    .iter()
                    .filter(|event| {
                        tag.as_ref().is_none_or(|tag| {
                            event["tags"].as_array().unwrap().contains(&tag.as_str().into())
                        })
                    })
                    .collect();
                answer(&json!({"events": found}))
            }
            ("GET", "/api/v1/query") => answer(
                &json!({"status": "ok", "series": [{"metric": "m", "pointlist": [[1, 2.0], [2, 3.0]]}]}),
            ),
            ("GET", "/api/v1/monitor") => answer(
                &json!([{"id": 1, "name": "up", "overall_state": "Alert"}, {"id": 2, "name": "ok", "overall_state": "OK"}]),
            ),
            _ => reply(404, "application/json", "{}"),
        }
    });
    let env = project(
        "datadog",
        &site.base,
        &phase("datadog", "post_event", "target_entries: [{name: done, file: e.json}]"),
    );
    env.write("e.json", r#"{"title": "Deployed", "text": "1.2", "tags": ["env:prod"]}"#);
    env.cliq(["run", "--headless"]).expect(3).says("broke off");
    env.cliq(["run", "--headless", "--resume"]).expect(0);
    assert_eq!(events.lock().unwrap().len(), 1);
    env.write("e.json", "{\n  \"title\": oops\n}");
    env.cliq(["run", "--headless", "-f"]).expect(3).says("line 2, column 12");
    let env = project(
        "datadog",
        &site.base,
        &phase("datadog", "query_metrics", "sources: [{name: got.json, ref: \"avg:m{*}\", window: 4h}]"),
    );
    env.cliq(["run", "--headless"]).expect(0);
    let got = data(&env)["sources"]["got"].clone();
    assert_eq!((got["series"].as_u64(), got["points"].as_u64()), (Some(1), Some(2)));
    assert_eq!(got["to"].as_i64().unwrap() - got["from"].as_i64().unwrap(), 4 * 3600);
    let env =
        project("datadog", &site.base, &phase("datadog", "get_monitors", "sources: [{name: got.json}]"));
    env.cliq(["run", "--headless"]).expect(0);
    assert_eq!(data(&env)["sources"]["got"]["alerting"], 1);
}
