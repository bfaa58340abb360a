//! Zendesk Support (REST API, version 2).

use camino::Utf8Path;
use cliq_http::{Repeat, Request};
use serde_json::{Value, json};

use crate::api::{Api, ITEMS, RESULTS, keep, list, published, text};
use crate::service::{Intent, Service, no_action};
use crate::{ConnectorError, Context, Entry, LocalFile, Source, Target};

/// The connector, for one action.
pub(crate) struct Zendesk<'a>(pub(crate) &'a str);

const STATUSES: &[&str] = &["new", "open", "pending", "hold", "solved", "closed"];

fn api(cx: &Context<'_>) -> Result<Api, ConnectorError> {
    let base = match cx.setting("zendesk.base_url") {
        Some(base) => base,
        None => {
            let subdomain = cx.required("zendesk.subdomain", "ZENDESK_SUBDOMAIN")?;
            if !subdomain.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
                return Err(ConnectorError::new(
                    "`agents.zendesk.subdomain` is the part of the address before .zendesk.com",
                ));
            }
            format!("https://{subdomain}.zendesk.com")
        }
    };
    let email = cx.required("zendesk.email", "ZENDESK_EMAIL")?;
    let token = cx.required("zendesk.api_token", "ZENDESK_API_TOKEN")?;
    let hint = "are `agents.zendesk.email` and `agents.zendesk.api_token` right, and may that agent do this?";
    Ok(Api::new(cx, "Zendesk", &base, hint).with_basic(&format!("{email}/token"), &token))
}

fn page_of(api: &Api, id: &str) -> String {
    format!("{}/agent/tickets/{id}", api.base())
}

fn ticket_at(api: &Api, id: &str) -> String {
    api.at(&["api", "v2", "tickets", &format!("{id}.json")], &[])
}

fn explain(error: ConnectorError, id: &str) -> ConnectorError {
    if error.is_not_found() {
        return ConnectorError { message: format!("Zendesk has no ticket {id}"), status: error.status };
    }
    error
}

fn described(api: &Api, entry: Entry, ticket: &Value) -> Entry {
    let id = text(ticket, "/id").unwrap_or_default();
    let entry = Entry { url: Some(page_of(api, &id)), ..entry };
    entry
        .with("id", ticket["id"].clone())
        .with("status", text(ticket, "/status"))
        .with("subject", text(ticket, "/subject"))
        .with("priority", text(ticket, "/priority"))
        .with("updated", text(ticket, "/updated_at"))
}

fn comments(api: &Api, id: &str) -> Result<Vec<Value>, ConnectorError> {
    let first =
        Request::get(api.at(&["api", "v2", "tickets", id, "comments.json"], &[("page[size]", "100")]));
    let (comments, _) = api
        .pages(first, ITEMS, |page| {
            let more = page["meta"]["has_more"].as_bool();
            let next = if more == Some(false) {
                None
            } else {
                text(page, "/links/next").or_else(|| text(page, "/next_page"))
            };
            (list(page, "/comments"), next.map(Request::get))
        })
        .map_err(|error| explain(error, id))?;
    Ok(comments)
}

impl Service for Zendesk<'_> {
    fn fetch(&self, cx: &Context<'_>, source: &Source, file: &Utf8Path) -> Result<Entry, ConnectorError> {
        let api = api(cx)?;
        let wanted = source.wanted()?;
        match self.0 {
            "get_ticket" => {
                let answer = api.get(ticket_at(&api, wanted)).map_err(|error| explain(error, wanted))?;
                let ticket = &answer["ticket"];
                Ok(described(&api, keep(cx, source, file, ticket)?, ticket))
            }
            "get_comments" => {
                let comments = comments(&api, wanted)?;
                let entry = Entry {
                    url: Some(page_of(&api, wanted)),
                    ..keep(cx, source, file, &Value::Array(comments.clone()))?
                };
                Ok(entry.with("id", wanted).with("count", comments.len()))
            }
            "search" => {
                let limit = source.limit.unwrap_or(RESULTS);
                let size = limit.min(100).to_string();
                let first = Request::get(
                    api.at(&["api", "v2", "search.json"], &[("query", wanted), ("per_page", &size)]),
                );
                let (found, more) = api.pages(first, limit, |page| {
                    (list(page, "/results"), text(page, "/next_page").map(Request::get))
                })?;
                let brief: Vec<Value> = found
                    .iter()
                    .map(|found| {
                        let id = text(found, "/id").unwrap_or_default();
                        json!({"id": found["id"], "url": page_of(&api, &id), "status": text(found, "/status"), "subject": text(found, "/subject")})
                    })
                    .collect();
                let entry = keep(cx, source, file, &Value::Array(found))?;
                Ok(entry.with("count", brief.len()).with("more", more).with("tickets", brief))
            }
            other => Err(no_action("zendesk", other)),
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
        let id = target.wanted()?;
        let said = file.text()?;
        match self.0 {
            "add_comment" => {
                let entry = || published(cx, target, file, Some(page_of(&api, id))).with("id", id);
                let before = comments(&api, id)?;
                let known = intent.earlier.as_ref().map(|note| list(note, "/comments"));
                let body = |comment: &Value| {
                    text(comment, "/plain_body").or_else(|| text(comment, "/body")).unwrap_or_default()
                };
                let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
                if let Some(known) = known
                    && before.iter().any(|comment| {
                        !known.contains(&comment["id"]) && words(&body(comment)) == words(&said)
                    })
                {
                    return Ok(entry());
                }
                let ids: Vec<Value> = before.iter().map(|comment| comment["id"].clone()).collect();
                intent.note(json!({"comments": ids}))?;
                let is_public = target.visibility.as_deref() == Some("public");
                let change = json!({"ticket": {"comment": {"body": said, "public": is_public}}});
                // A change that adds is not one that may be repeated, although it goes by PUT.
                let request = Request::put(ticket_at(&api, id)).json(&change).repeat(Repeat::Refused);
                api.call(request).map_err(|error| explain(error, id))?;
                Ok(entry())
            }
            "update_status" => {
                let status = said.to_ascii_lowercase();
                if !STATUSES.contains(&status.as_str()) {
                    return Err(ConnectorError::new(format!(
                        "`{}` has the status {said:?}: it is one of {}",
                        file.name(),
                        STATUSES.join(", ")
                    )));
                }
                intent.note(json!({"status": status}))?;
                let answer =
                    api.call(Request::put(ticket_at(&api, id)).json(&json!({"ticket": {"status": status}})));
                let answer = answer.map_err(|error| explain(error, id))?;
                Ok(described(&api, published(cx, target, file, None), &answer["ticket"]))
            }
            other => Err(no_action("zendesk", other)),
        }
    }

    fn test(&self, cx: &Context<'_>) -> Result<String, ConnectorError> {
        let api = api(cx)?;
        let me = api.get(api.at(&["api", "v2", "users", "me.json"], &[]))?;
        match (text(&me, "/user/name"), me["user"]["id"].is_null()) {
            (Some(name), false) => Ok(format!("signed in as {name}")),
            // Zendesk answers strangers as an anonymous user.
            _ => Err(ConnectorError::new(
                "Zendesk does not know the account: are `agents.zendesk.email` and `api_token` right?",
            )),
        }
    }
}
