//! Datadog (API, version 1).

use camino::Utf8Path;
use cliq_http::Request;
use serde_json::{Value, json};

use crate::api::{Api, ITEMS, keep, list, published, text};
use crate::service::{Intent, Service, no_action};
use crate::{ConnectorError, Context, Entry, LocalFile, Source, Target};

/// The connector, for one action.
pub(crate) struct Datadog<'a>(pub(crate) &'a str);

/// The tag by which an event is found again.
const MARK: &str = "cliq";

fn api(cx: &Context<'_>) -> Result<Api, ConnectorError> {
    let site = cx.setting("datadog.site").unwrap_or_else(|| "datadoghq.com".to_owned());
    let base = cx.setting("datadog.base_url").unwrap_or_else(|| format!("https://api.{site}"));
    let key = cx.required("datadog.api_key", "DD_API_KEY")?;
    let app = cx.required("datadog.app_key", "DD_APP_KEY")?;
    let hint = "are `agents.datadog.api_key` and `agents.datadog.app_key` right, and of the site `agents.datadog.site`?";
    Ok(Api::new(cx, "Datadog", &base, hint).with("dd-api-key", key).with("dd-application-key", app))
}

/// The page of a service for people.
fn app_url(cx: &Context<'_>, path: &str) -> String {
    let site = cx.setting("datadog.site").unwrap_or_else(|| "datadoghq.com".to_owned());
    // The older sites have `app.` before them, the newer ones have a name already.
    let host = if site.matches('.').count() > 1 { site } else { format!("app.{site}") };
    format!("https://{host}{path}")
}

/// A span such as `90s`, `45m`, `4h`, `2d`, in seconds.
fn seconds(window: &str) -> Result<i64, ConnectorError> {
    let wrong =
        || ConnectorError::new(format!("`window` is {window:?}: write a span such as 90s, 45m, 4h, 2d"));
    let units = [('s', 1), ('m', 60), ('h', 3600), ('d', 86400), ('w', 7 * 86400)];
    let read = units.iter().find_map(|(name, unit)| Some((window.trim().strip_suffix(*name)?, *unit)));
    let (number, unit): (&str, i64) = read.ok_or_else(wrong)?;
    let number: i64 = number.parse().map_err(|_| wrong())?;
    number.checked_mul(unit).filter(|seconds| *seconds > 0).ok_or_else(wrong)
}

impl Service for Datadog<'_> {
    fn fetch(&self, cx: &Context<'_>, source: &Source, file: &Utf8Path) -> Result<Entry, ConnectorError> {
        let api = api(cx)?;
        let to = cliq_fs::now().unix_millis() / 1000;
        let from = |default: &str| {
            Ok::<_, ConnectorError>(to - seconds(source.window.as_deref().unwrap_or(default))?)
        };
        match self.0 {
            "query_metrics" => {
                let from = from("1h")?;
                let query = [
                    ("from", from.to_string()),
                    ("to", to.to_string()),
                    ("query", source.wanted()?.to_owned()),
                ];
                let query: Vec<(&str, &str)> =
                    query.iter().map(|(key, value)| (*key, value.as_str())).collect();
                let answer = api.get(api.at(&["api", "v1", "query"], &query))?;
                // Queries that cannot be read are answered with 200.
                if answer["status"] == "error" {
                    let said = text(&answer, "/error").unwrap_or_default();
                    return Err(ConnectorError::new(format!("Datadog does not take the query: {said}")));
                }
                let series = list(&answer, "/series");
                let points: usize = series.iter().map(|series| list(series, "/pointlist").len()).sum();
                let entry =
                    Entry { url: Some(app_url(cx, "/metric/explorer")), ..keep(cx, source, file, &answer)? };
                Ok(entry
                    .with("series", series.len())
                    .with("points", points)
                    .with("from", from)
                    .with("to", to))
            }
            "get_monitors" => {
                let mut page = 0;
                let request =
                    |page: usize| {
                        Request::get(api.at(
                            &["api", "v1", "monitor"],
                            &[("page", &page.to_string()), ("page_size", "100")],
                        ))
                    };
                let (monitors, _) = api.pages(request(0), ITEMS, |answer| {
                    let monitors = answer.as_array().cloned().unwrap_or_default();
                    page += 1;
                    let next = (monitors.len() >= 100).then(|| request(page));
                    (monitors, next)
                })?;
                let alerting = monitors.iter().filter(|monitor| monitor["overall_state"] == "Alert").count();
                let brief: Vec<Value> = monitors
                    .iter()
                    .map(|monitor| {
                        let id = text(monitor, "/id").unwrap_or_default();
                        json!({"id": monitor["id"], "name": monitor["name"], "status": monitor["overall_state"], "url": app_url(cx, &format!("/monitors/{id}"))})
                    })
                    .collect();
                let entry = Entry {
                    url: Some(app_url(cx, "/monitors/manage")),
                    ..keep(cx, source, file, &Value::Array(monitors))?
                };
                Ok(entry.with("count", brief.len()).with("alerting", alerting).with("monitors", brief))
            }
            "get_events" => {
                let from = from("24h")?;
                let (start, end) = (from.to_string(), to.to_string());
                let tags = source.reference.clone().unwrap_or_default();
                let request = |page: usize| {
                    let page = page.to_string();
                    let mut query =
                        vec![("start", start.as_str()), ("end", end.as_str()), ("page", page.as_str())];
                    if !tags.trim().is_empty() {
                        query.push(("tags", tags.trim()));
                    }
                    Request::get(api.at(&["api", "v1", "events"], &query))
                };
                let mut page = 0;
                let mut last = 0;
                let (events, _) = api.pages(request(0), ITEMS, |answer| {
                    let events = list(answer, "/events");
                    page += 1;
                    // A page that is shorter than the one before is the last one.
                    let next = (!events.is_empty() && events.len() >= last && events.len() >= 100)
                        .then(|| request(page));
                    last = events.len();
                    (events, next)
                })?;
                let count = events.len();
                let entry = Entry {
                    url: Some(app_url(cx, "/event/explorer")),
                    ..keep(cx, source, file, &Value::Array(events))?
                };
                Ok(entry.with("count", count).with("from", from).with("to", to))
            }
            other => Err(no_action("datadog", other)),
        }
    }

    fn publish(
        &self,
        cx: &Context<'_>,
        target: &Target,
        file: &LocalFile,
        intent: &mut Intent<'_>,
    ) -> Result<Entry, ConnectorError> {
        if self.0 != "post_event" {
            return Err(no_action("datadog", self.0));
        }
        let api = api(cx)?;
        let wrong = |why: &str| ConnectorError::new(format!("{} is not a Datadog event: {why}", file.name()));
        let mut event = cliq_protocol::lenient_json(file.text()?.as_bytes()).map_err(|error| {
            wrong(&format!("line {}, column {}: it is not JSON", error.line(), error.column()))
        })?;
        for field in ["title", "text"] {
            if !event[field].is_string() {
                return Err(wrong(&format!("it has no `{field}`")));
            }
        }
        let entry = |event: &Value| {
            let id = event["id"].clone();
            let url = text(event, "/url").filter(|url| url.starts_with("http"));
            published(
                cx,
                target,
                file,
                url.or_else(|| text(event, "/id").map(|id| app_url(cx, &format!("/event/event?id={id}")))),
            )
            .with("id", id)
        };
        // An event bears a tag of its own: the one that an interrupted try has posted is found by it.
        let mark = format!("{MARK}:{}", &file.sha256[..16]);
        if intent.earlier.is_some() {
            let to = cliq_fs::now().unix_millis() / 1000;
            let query =
                [("start", (to - 86400).to_string()), ("end", to.to_string()), ("tags", mark.clone())];
            let query: Vec<(&str, &str)> = query.iter().map(|(key, value)| (*key, value.as_str())).collect();
            let found = api.get(api.at(&["api", "v1", "events"], &query))?;
            if let Some(found) = list(&found, "/events").into_iter().next() {
                return Ok(entry(&found));
            }
        }
        intent.note(json!({"tag": mark}))?;
        let mut tags = list(&event, "/tags");
        tags.push(mark.into());
        event["tags"] = Value::Array(tags);
        let made = api.call(Request::post(api.at(&["api", "v1", "events"], &[])).json(&event))?;
        Ok(entry(&made["event"]))
    }

    fn test(&self, cx: &Context<'_>) -> Result<String, ConnectorError> {
        let api = api(cx)?;
        let answer = api.get(api.at(&["api", "v1", "validate"], &[]))?;
        if answer["valid"] == false {
            return Err(ConnectorError::new("Datadog does not know `agents.datadog.api_key`"));
        }
        Ok("the API key is valid; the application key shows with the first query".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans() {
        assert_eq!(seconds("1h").ok(), Some(3600));
        assert_eq!(seconds(" 2d ").ok(), Some(172_800));
        for text in ["", "h", "-1h", "0m", "5", "5y", "9223372036854775807d", "1ü"] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }
}
