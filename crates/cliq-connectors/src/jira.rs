//! Jira Cloud (REST API, version 3).

use camino::Utf8Path;
use cliq_http::Request;
use serde_json::{Value, json};

use crate::api::{Api, ITEMS, RESULTS, keep, list, published, text};
use crate::document::{plain_text, to_document};
use crate::service::{Intent, Service, no_action};
use crate::{ConnectorError, Context, Entry, LocalFile, Source, Target};

/// The connector, for one action.
pub(crate) struct Jira<'a>(pub(crate) &'a str);

const FIELDS: &str = "summary,status,issuetype,priority,assignee,updated";

fn api(cx: &Context<'_>) -> Result<Api, ConnectorError> {
    let base = cx.required("jira.base_url", "JIRA_BASE_URL")?;
    let email = cx.required("jira.email", "JIRA_EMAIL")?;
    let token = cx.required("jira.api_token", "JIRA_API_TOKEN")?;
    let hint = "are `agents.jira.email` and `agents.jira.api_token` right, and may that account do this?";
    Ok(Api::new(cx, "Jira", &base, hint).with_basic(&email, &token))
}

fn browse(api: &Api, key: &str) -> String {
    format!("{}/browse/{key}", api.base())
}

fn issue_at(api: &Api, key: &str, below: &[&str], query: &[(&str, &str)]) -> String {
    let mut parts = vec!["rest", "api", "3", "issue", key];
    parts.extend(below);
    api.at(&parts, query)
}

/// An issue that Jira does not show is said not to exist.
fn explain(error: ConnectorError, key: &str) -> ConnectorError {
    if error.is_not_found() {
        return ConnectorError {
            message: format!("Jira has no issue {key}, or the account may not see it ({})", error.message),
            status: error.status,
        };
    }
    error
}

impl Service for Jira<'_> {
    fn fetch(&self, cx: &Context<'_>, source: &Source, file: &Utf8Path) -> Result<Entry, ConnectorError> {
        let api = api(cx)?;
        let wanted = source.wanted()?;
        match self.0 {
            "get_issue" => {
                let issue =
                    api.get(issue_at(&api, wanted, &[], &[])).map_err(|error| explain(error, wanted))?;
                let key = text(&issue, "/key").unwrap_or_else(|| wanted.to_owned());
                let entry = Entry { url: Some(browse(&api, &key)), ..keep(cx, source, file, &issue)? };
                Ok(entry
                    .with("key", key)
                    .with("status", text(&issue, "/fields/status/name"))
                    .with("summary", text(&issue, "/fields/summary"))
                    .with("type", text(&issue, "/fields/issuetype/name"))
                    .with("priority", text(&issue, "/fields/priority/name"))
                    .with("assignee", text(&issue, "/fields/assignee/displayName"))
                    .with("updated", text(&issue, "/fields/updated")))
            }
            "get_comments" => {
                let comments = comments(&api, wanted)?;
                let entry = Entry {
                    url: Some(browse(&api, wanted)),
                    ..keep(cx, source, file, &Value::Array(comments.clone()))?
                };
                Ok(entry.with("key", wanted).with("count", comments.len()))
            }
            "search" => {
                let limit = source.limit.unwrap_or(RESULTS);
                let size = limit.min(100).to_string();
                let request = |token: Option<&str>| {
                    let mut query = vec![("jql", wanted), ("maxResults", size.as_str()), ("fields", FIELDS)];
                    query.extend(token.map(|token| ("nextPageToken", token)));
                    Request::get(api.at(&["rest", "api", "3", "search", "jql"], &query))
                };
                let (issues, more) = api.pages(request(None), limit, |page| {
                    (list(page, "/issues"), page["nextPageToken"].as_str().map(|token| request(Some(token))))
                })?;
                let brief: Vec<Value> = issues
                    .iter()
                    .map(|issue| {
                        let key = text(issue, "/key").unwrap_or_default();
                        json!({"key": key, "url": browse(&api, &key), "status": text(issue, "/fields/status/name"),
                            "summary": text(issue, "/fields/summary")})
                    })
                    .collect();
                let url = api.at(&["issues", ""], &[("jql", wanted)]);
                let entry = Entry { url: Some(url), ..keep(cx, source, file, &Value::Array(issues))? };
                Ok(entry.with("count", brief.len()).with("more", more).with("issues", brief))
            }
            other => Err(no_action("jira", other)),
        }
    }

    fn publish(
        &self,
        cx: &Context<'_>,
        target: &Target,
        file: &LocalFile,
        intent: &mut Intent<'_>,
    ) -> Result<Entry, ConnectorError> {
        let api = api(cx)?;
        let key = target.wanted()?;
        let entry = |url: String| published(cx, target, file, Some(url)).with("key", key);
        match self.0 {
            "add_comment" => {
                let document = to_document(&file.text()?);
                let focused = |id: &str| format!("{}?focusedCommentId={id}", browse(&api, key));
                // Whether an interrupted try has added it: one that was not there before.
                if let Some(before) = intent.earlier.as_ref().map(|note| list(note, "/comments")) {
                    let same = comments(&api, key)?.into_iter().find(|comment| {
                        !before.contains(&comment["id"])
                            && plain_text(&comment["body"]) == plain_text(&document)
                    });
                    if let Some(id) = same.and_then(|comment| text(&comment, "/id")) {
                        return Ok(entry(focused(&id)).with("id", id));
                    }
                }
                let ids: Vec<Value> =
                    comments(&api, key)?.iter().map(|comment| comment["id"].clone()).collect();
                intent.note(json!({"comments": ids}))?;
                let request =
                    Request::post(issue_at(&api, key, &["comment"], &[])).json(&json!({"body": document}));
                let made = api.call(request).map_err(|error| explain(error, key))?;
                let id = text(&made, "/id").unwrap_or_default();
                Ok(entry(focused(&id)).with("id", id))
            }
            "transition" => {
                let wanted = file.text()?;
                let status_of = |issue: &Value| text(issue, "/fields/status/name");
                let transitions = api
                    .get(issue_at(&api, key, &["transitions"], &[]))
                    .map_err(|error| explain(error, key))?;
                let transitions = list(&transitions, "/transitions");
                let is_wanted = |transition: &&Value| {
                    let same = |place: &str| {
                        text(transition, place).is_some_and(|name| name.eq_ignore_ascii_case(&wanted))
                    };
                    text(transition, "/id").as_deref() == Some(wanted.as_str())
                        || same("/name")
                        || same("/to/name")
                };
                let Some(transition) = transitions.iter().find(is_wanted) else {
                    // An interrupted try may have moved it.
                    if intent.earlier("status").is_some() {
                        let issue = api.get(issue_at(&api, key, &[], &[("fields", "status")]))?;
                        if status_of(&issue).as_deref() == intent.earlier("status") {
                            let name = intent.earlier("transition").map(str::to_owned);
                            return Ok(entry(browse(&api, key))
                                .with("status", status_of(&issue))
                                .with("transition", name));
                        }
                    }
                    let known: Vec<String> = transitions
                        .iter()
                        .filter_map(|t| Some(format!("{} ({})", text(t, "/id")?, text(t, "/name")?)))
                        .collect();
                    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                    return Err(ConnectorError::new(format!(
                        "{key} has no transition `{wanted}` now; it has: {known}"
                    )));
                };
                let (id, name) = (text(transition, "/id").unwrap_or_default(), text(transition, "/name"));
                intent.note(json!({"status": text(transition, "/to/name"), "transition": name}))?;
                let request = Request::post(issue_at(&api, key, &["transitions"], &[]))
                    .json(&json!({"transition": {"id": id}}));
                api.call(request).map_err(|error| explain(error, key))?;
                let issue = api.get(issue_at(&api, key, &[], &[("fields", "status")]))?;
                Ok(entry(browse(&api, key)).with("status", status_of(&issue)).with("transition", name))
            }
            other => Err(no_action("jira", other)),
        }
    }

    fn test(&self, cx: &Context<'_>) -> Result<String, ConnectorError> {
        let api = api(cx)?;
        let me = api.get(api.at(&["rest", "api", "3", "myself"], &[]))?;
        Ok(format!(
            "signed in as {}",
            text(&me, "/displayName").or_else(|| text(&me, "/accountId")).unwrap_or_default()
        ))
    }
}

fn comments(api: &Api, key: &str) -> Result<Vec<Value>, ConnectorError> {
    let request = |start: usize| {
        Request::get(issue_at(
            api,
            key,
            &["comment"],
            &[("startAt", &start.to_string()), ("maxResults", "100"), ("orderBy", "created")],
        ))
    };
    let mut read = 0;
    let (comments, _) = api
        .pages(request(0), ITEMS, |page| {
            let comments = list(page, "/comments");
            read += comments.len();
            let total = page["total"].as_u64().unwrap_or_default();
            let next = (!comments.is_empty() && (read as u64) < total).then(|| request(read));
            (comments, next)
        })
        .map_err(|error| explain(error, key))?;
    Ok(comments)
}
