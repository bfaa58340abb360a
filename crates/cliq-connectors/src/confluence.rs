//! Confluence Cloud (REST API, version 2; searches by version 1, which alone has them).

use camino::Utf8Path;
use cliq_http::Request;
use serde_json::{Value, json};

use crate::api::{Api, RESULTS, keep, keep_text, list, published, text};
use crate::convert::{Document, to_markdown};
use crate::service::{Intent, Service, no_action};
use crate::{ConnectorError, Context, Entry, LocalFile, Source, Target};

/// The connector, for one action.
pub(crate) struct Confluence<'a>(pub(crate) &'a str);

const HINT: &str =
    "are `agents.confluence.email` and `agents.confluence.api_token` right, and may that account do this?";

/// The site, without the path of an API.
fn site(cx: &Context<'_>) -> Result<String, ConnectorError> {
    let base = cx.required("confluence.base_url", "CONFLUENCE_BASE_URL")?;
    let base = base.trim_end_matches('/');
    let base = base.strip_suffix("/api/v2").unwrap_or(base);
    Ok(base.strip_suffix("/wiki").unwrap_or(base).to_owned())
}

/// The API: the address may name the site, its wiki, or the API itself.
fn api(cx: &Context<'_>) -> Result<Api, ConnectorError> {
    let base = cx.required("confluence.base_url", "CONFLUENCE_BASE_URL")?;
    let base = base.trim_end_matches('/');
    let base = if base.ends_with("/api/v2") { base.to_owned() } else { format!("{}/wiki/api/v2", site(cx)?) };
    let email = cx.required("confluence.email", "CONFLUENCE_EMAIL")?;
    let token = cx.required("confluence.api_token", "CONFLUENCE_API_TOKEN")?;
    Ok(Api::new(cx, "Confluence", &base, HINT).with_basic(&email, &token))
}

fn explain(error: ConnectorError, id: &str) -> ConnectorError {
    if error.is_not_found() {
        return ConnectorError {
            message: format!("Confluence has no page {id}, or the account may not see it"),
            status: error.status,
        };
    }
    error
}

fn page_url(cx: &Context<'_>, page: &Value) -> Result<Option<String>, ConnectorError> {
    let site = site(cx)?;
    let base = text(page, "/_links/base").unwrap_or_else(|| format!("{site}/wiki"));
    Ok(text(page, "/_links/webui").map(|path| format!("{base}{path}")))
}

fn described(cx: &Context<'_>, entry: Entry, page: &Value) -> Result<Entry, ConnectorError> {
    let entry = Entry { url: page_url(cx, page)?, ..entry };
    Ok(entry
        .with("id", text(page, "/id"))
        .with("title", text(page, "/title"))
        .with("version", page["version"]["number"].clone())
        .with("space_id", text(page, "/spaceId")))
}

/// The text of a page as Confluence stores it: HTML as it is, markdown made HTML.
fn storage(file: &LocalFile) -> Result<String, ConnectorError> {
    let text = file.text()?;
    if !matches!(file.path.extension(), Some("md" | "markdown")) {
        return Ok(text);
    }
    let options = pulldown_cmark::Options::ENABLE_TABLES | pulldown_cmark::Options::ENABLE_STRIKETHROUGH;
    let mut html = String::new();
    pulldown_cmark::html::push_html(&mut html, pulldown_cmark::Parser::new_ext(&text, options));
    Ok(html)
}

impl Service for Confluence<'_> {
    fn fetch(&self, cx: &Context<'_>, source: &Source, file: &Utf8Path) -> Result<Entry, ConnectorError> {
        let api = api(cx)?;
        let wanted = source.wanted()?;
        match self.0 {
            "get_page" => {
                let page = api
                    .get(api.at(&["pages", wanted], &[("body-format", "storage")]))
                    .map_err(|error| explain(error, wanted))?;
                let html = text(&page, "/body/storage/value").unwrap_or_default();
                let url = page_url(cx, &page)?.unwrap_or_else(|| api.base().to_owned());
                let markdown = to_markdown(
                    cx,
                    Document::Html,
                    html.as_bytes(),
                    &url,
                    Some("text/html; charset=utf-8"),
                    false,
                )?;
                let title = text(&page, "/title").unwrap_or_default();
                let markdown = format!("# {title}\n\n{}\n", markdown.trim());
                described(cx, keep_text(cx, source, file, &markdown, "text/markdown; charset=utf-8")?, &page)
            }
            "search" => {
                let limit = source.limit.unwrap_or(RESULTS);
                let site = site(cx)?;
                let size = limit.min(100).to_string();
                let first = url::form_urlencoded::Serializer::new(String::new())
                    .append_pair("cql", wanted)
                    .append_pair("limit", &size)
                    .finish();
                let first = Request::get(format!("{site}/wiki/rest/api/search?{first}"));
                let (found, more) = api.pages(first, limit, |page| {
                    let next = text(page, "/_links/next").map(|next| {
                        if next.starts_with("http") {
                            return Request::get(next);
                        }
                        let base = text(page, "/_links/base").unwrap_or_else(|| format!("{site}/wiki"));
                        Request::get(format!("{base}{next}"))
                    });
                    (list(page, "/results"), next)
                })?;
                let brief: Vec<Value> = found
                    .iter()
                    .map(|found| {
                        let path = text(found, "/url").or_else(|| text(found, "/content/_links/webui")).unwrap_or_default();
                        json!({"id": text(found, "/content/id"), "title": text(found, "/content/title").or_else(|| text(found, "/title")),
                            "url": format!("{site}/wiki{path}")})
                    })
                    .collect();
                let entry = keep(cx, source, file, &Value::Array(found))?;
                Ok(entry.with("count", brief.len()).with("more", more).with("pages", brief))
            }
            other => Err(no_action("confluence", other)),
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
        let wanted = target.wanted()?;
        let title = target.title.as_deref().ok_or_else(|| ConnectorError::new("it has no `title`"))?;
        let body = json!({"representation": "storage", "value": storage(file)?});
        let entry = |page: &Value| described(cx, published(cx, target, file, None), page);
        match self.0 {
            "create_page" => {
                let spaces = api.get(api.at(&["spaces"], &[("keys", wanted)]))?;
                let space =
                    list(&spaces, "/results").into_iter().next().and_then(|space| text(&space, "/id"));
                let space = space.ok_or_else(|| {
                    ConnectorError::new(format!(
                        "Confluence has no space {wanted}, or the account may not see it"
                    ))
                })?;
                // Titles are unique in a space: the one that an interrupted try has made is found by it.
                if intent.earlier.is_some() {
                    let same = api.get(api.at(&["pages"], &[("space-id", &space), ("title", title)]))?;
                    if let Some(page) = list(&same, "/results").into_iter().next() {
                        return entry(&page);
                    }
                }
                intent.note(json!({"title": title}))?;
                let mut page = json!({"spaceId": space, "status": "current", "title": title, "body": body});
                if let Some(parent) = &target.parent {
                    page["parentId"] = parent.as_str().into();
                }
                entry(&api.call(Request::post(api.at(&["pages"], &[])).json(&page))?)
            }
            "update_page" => {
                let there = api
                    .get(api.at(&["pages", wanted], &[("body-format", "storage")]))
                    .map_err(|error| explain(error, wanted))?;
                let version = there["version"]["number"].as_u64().unwrap_or_default();
                if intent.earlier.as_ref().is_some_and(|note| note["version"] == version) {
                    return entry(&there);
                }
                intent.note(json!({"version": version + 1}))?;
                let page = json!({"id": wanted, "status": "current", "title": title, "body": body,
                    "version": {"number": version + 1, "message": "updated by cliq"}});
                // The number of the version makes a second one fail.
                let made = api.call(Request::put(api.at(&["pages", wanted], &[])).json(&page));
                entry(&made.map_err(|error| match error.status {
                    Some(409) => ConnectorError {
                        message: format!("the page {wanted} was changed meanwhile: run the phase again"),
                        status: error.status,
                    },
                    _ => error,
                })?)
            }
            other => Err(no_action("confluence", other)),
        }
    }

    fn test(&self, cx: &Context<'_>) -> Result<String, ConnectorError> {
        let api = api(cx)?;
        let spaces = api.get(api.at(&["spaces"], &[("limit", "1")]))?;
        let space = list(&spaces, "/results").first().and_then(|space| text(space, "/name"));
        Ok(space.map_or_else(
            || "the account sees no space yet".to_owned(),
            |name| format!("the account sees the space {name}"),
        ))
    }
}
