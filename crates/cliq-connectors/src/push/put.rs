//! Files to an HTTP address, with PUT.

use camino::Utf8Path;
use cliq_http::ureq::http::Method;
use cliq_http::{Download, Request};
use serde_json::json;

use crate::append::{append, fetch_before};
use crate::curl::request_of;
use crate::entry::Mode;
use crate::files::inside;
use crate::service::{Intent, Service};
use crate::{ConnectorError, Context, Entry, LocalFile, Source, Target};

/// An address that takes files.
pub(super) struct Put;

impl Service for Put {
    fn fetch(&self, _: &Context<'_>, _: &Source, _: &Utf8Path) -> Result<Entry, ConnectorError> {
        Err(ConnectorError::new("`pull` fetches from addresses"))
    }

    fn publish(
        &self,
        cx: &Context<'_>,
        target: &Target,
        file: &LocalFile,
        intent: &mut Intent<'_>,
    ) -> Result<Entry, ConnectorError> {
        let mut url = target.wanted()?.to_owned();
        if url.ends_with('/') {
            url.push_str(inside(target.name.as_deref().unwrap_or(file.name()))?.as_str());
        }
        let client = cx.client_for(target.guarded);
        let request = |method: &str| request_of(method, &url, &target.headers);
        let get = request("GET")?;
        let there = || -> Result<Option<Download>, ConnectorError> {
            match fetch_before(cx, client, &get) {
                Ok(download) => Ok(Some(download)),
                // Some take files and give none.
                Err(error) if matches!(error.status, Some(404 | 405 | 410 | 501)) => Ok(None),
                Err(error) => Err(error),
            }
        };
        let entry = |size: u64| Entry {
            reference: crate::web::without_secrets(target.wanted().unwrap_or_default()),
            file: cx.shown(&file.path),
            size,
            content_type: Some(file.content_type().to_owned()),
            url: Some(crate::web::without_secrets(&url)),
            ..Entry::default()
        };
        // An interrupted try may have put it there after all.
        if let Some(expected) = intent.earlier("sha256")
            && let Some(download) = there()?
            && download.sha256 == expected
        {
            return Ok(entry(download.size));
        }
        let method = target.method.as_deref().unwrap_or("PUT");
        let put = |file: &LocalFile, condition: Option<(&str, String)>| {
            let mut request = request(method)?.file(&file.path, 0, file.size);
            if !target.headers.keys().any(|name| name.eq_ignore_ascii_case("content-type")) {
                request = request.header("content-type", file.content_type());
            }
            if let Some((name, value)) = condition {
                request = request.header(name, value);
            }
            client.send(&request).map_err(|error| conflict(error.into(), &get))
        };
        match target.mode() {
            Mode::Create => {
                if exists(client, &request(Method::HEAD.as_str())?)? {
                    return Err(already(&get));
                }
                intent.note(json!({"sha256": file.sha256}))?;
                put(file, Some(("if-none-match", "*".to_owned())))?;
                Ok(entry(file.size))
            }
            Mode::Replace => {
                intent.note(json!({"sha256": file.sha256}))?;
                put(file, None)?;
                Ok(entry(file.size))
            }
            Mode::Append => {
                let Some(before) = there()? else {
                    intent.note(json!({"sha256": file.sha256}))?;
                    put(file, None)?;
                    return Ok(entry(file.size));
                };
                let condition = before.header("etag").map(|etag| ("if-match", etag.to_owned()));
                let longer = append(before, file)?;
                intent.note(json!({"sha256": longer.file.sha256}))?;
                put(&longer.file, condition)?;
                Ok(entry(longer.file.size))
            }
        }
    }

    fn test(&self, _: &Context<'_>) -> Result<String, ConnectorError> {
        Ok("it needs no settings".to_owned())
    }
}

fn exists(client: &cliq_http::Client, request: &Request) -> Result<bool, ConnectorError> {
    match client.send(request) {
        Ok(_) => Ok(true),
        // Some do not say: the condition of the request is left.
        Err(error) if matches!(error.status, Some(403 | 404 | 405 | 410 | 501)) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn already(request: &Request) -> ConnectorError {
    ConnectorError::new(format!("{} has a file there already: `mode: replace` replaces it", request.host()))
}

fn conflict(error: ConnectorError, request: &Request) -> ConnectorError {
    if error.status == Some(412) { already(request) } else { error }
}
