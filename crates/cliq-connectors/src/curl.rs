//! Any HTTP address.

use std::io::{Read, Write};

use camino::Utf8Path;
use cliq_http::ureq::http::Method;
use cliq_http::{Repeat, Request};
use cliq_protocol::lenient_json;
use serde_json::json;

use crate::error::file_error;
use crate::service::{Intent, Service};
use crate::web::without_secrets;
use crate::{ConnectorError, Context, Entry, LocalFile, Source, Target};

/// The most bytes of JSON that are indented, and of an answer that goes to the handoff.
const INDENTED: u64 = 64 << 20;
const HANDED_OVER: usize = 64 << 10;

/// The connector.
pub(crate) struct Curl;

/// A request of an entry. Headers that usually hold secrets are kept out of errors.
pub(crate) fn request_of(
    method: &str,
    url: &str,
    headers: &std::collections::BTreeMap<String, String>,
) -> Result<Request, ConnectorError> {
    let parsed = url::Url::parse(url)
        .map_err(|error| ConnectorError::new(format!("`url` is not a valid address: {error}")))?;
    if !matches!(parsed.scheme(), "http" | "https") {
        return Err(ConnectorError::new(format!(
            "`url` begins with {}://: only http and https are fetched",
            parsed.scheme()
        )));
    }
    let method = Method::from_bytes(method.to_ascii_uppercase().as_bytes())
        .map_err(|_| ConnectorError::new(format!("`method` is {method:?}, which is none of HTTP")))?;
    // Every method is tried again after 429, 500 and 503 (UPSTREAM 5.2).
    let mut request = Request::new(method, url).repeat(Repeat::Safe);
    if let Some(password) = parsed.password() {
        request = request.secret(password);
    }
    for (name, value) in headers {
        let lower = name.to_ascii_lowercase();
        let is_secret =
            ["auth", "token", "key", "cookie", "secret", "password"].iter().any(|word| lower.contains(word));
        request = if is_secret { request.secret_header(name, value) } else { request.header(name, value) };
    }
    Ok(request)
}

impl Service for Curl {
    fn fetch(&self, cx: &Context<'_>, source: &Source, file: &Utf8Path) -> Result<Entry, ConnectorError> {
        let url = source.url.as_deref().ok_or_else(|| ConnectorError::new("it has no `url`"))?;
        let method = source.method.as_deref().unwrap_or(if source.body.is_some() { "POST" } else { "GET" });
        let mut request = request_of(method, url, &source.headers)?;
        if let Some(body) = &source.body {
            request = request.bytes(body.as_bytes());
            if !source.headers.keys().any(|name| name.eq_ignore_ascii_case("content-type")) {
                request = request.header("content-type", "application/json");
            }
        }
        let dir = file.parent().unwrap_or(file);
        let progress = crate::progress::Bytes::new(&*cx.progress, &source.name);
        let client = cx.client_for(source.guarded);
        let download = client
            .download(&request, dir.as_std_path(), cx.bounds.file, &|done, total| progress.at(done, total))?;
        let mut download =
            download.ok_or_else(|| ConnectorError::new("the server says that nothing changed (304)"))?;
        let is_json = download.content_type.as_deref().is_some_and(|kind| kind.contains("json"));
        if is_json && download.size <= INDENTED {
            indent(&mut download).map_err(|error| file_error("write", file, &error))?;
        }
        let entry = Entry {
            reference: without_secrets(url),
            file: cx.shown(file),
            size: download.size,
            content_type: download.content_type.clone(),
            url: Some(without_secrets(&download.url)),
            ..Entry::default()
        };
        let status = download.status;
        download.keep(file.as_std_path()).map_err(|error| file_error("write", file, &error))?;
        Ok(entry.with("status", status))
    }

    fn publish(
        &self,
        cx: &Context<'_>,
        target: &Target,
        file: &LocalFile,
        intent: &mut Intent<'_>,
    ) -> Result<Entry, ConnectorError> {
        let url = target.url.as_deref().ok_or_else(|| ConnectorError::new("it has no `url`"))?;
        let mut request = request_of(target.method.as_deref().unwrap_or("POST"), url, &target.headers)?;
        if !target.headers.keys().any(|name| name.eq_ignore_ascii_case("content-type")) {
            request = request.header("content-type", file.content_type());
        }
        let request = request.file(&file.path, 0, file.size);
        intent.note(json!({"sha256": file.sha256}))?;
        let answer = cx.client_for(target.guarded).send(&request)?;
        let entry = Entry {
            reference: without_secrets(url),
            file: cx.shown(&file.path),
            size: file.size,
            content_type: Some(file.content_type().to_owned()),
            url: Some(without_secrets(&answer.url)),
            ..Entry::default()
        };
        let said = lenient_json(&answer.body).ok().filter(|_| answer.body.len() <= HANDED_OVER);
        Ok(entry.with("status", answer.status).with("body", said))
    }

    fn test(&self, _: &Context<'_>) -> Result<String, ConnectorError> {
        Ok("it needs no settings".to_owned())
    }
}

/// Gives JSON indentation. What is not JSON stays as it is.
fn indent(download: &mut cliq_http::Download) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    download.file.reopen()?.read_to_end(&mut bytes)?;
    let Ok(value) = lenient_json(&bytes) else { return Ok(()) };
    let mut text = format!("{value:#}").into_bytes();
    text.push(b'\n');
    let dir = download.file.path().parent().unwrap_or(std::path::Path::new(".")).to_owned();
    let mut part = cliq_http::part_file(&dir)?;
    part.write_all(&text)?;
    download.size = text.len() as u64;
    download.file = part;
    Ok(())
}
