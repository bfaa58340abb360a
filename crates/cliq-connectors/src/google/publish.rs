//! Files to folders of Drive, and texts to documents.

use cliq_http::ureq::http::Method;
use cliq_http::{Repeat, Request};
use serde_json::{Value, json};

use super::{DOCUMENT, File, at, authorized, base, explain, file_of, id, metadata};
use crate::append::{append, fetch_before};
use crate::entry::Mode;
use crate::service::Intent;
use crate::{ConnectorError, Context, Entry, LocalFile, Target};

pub(super) fn publish(
    cx: &Context<'_>,
    target: &Target,
    file: &LocalFile,
    intent: &mut Intent<'_>,
) -> Result<Entry, ConnectorError> {
    let wanted = target.wanted()?;
    let published = match wanted.strip_prefix("gdoc://") {
        Some(rest) => match rest.strip_prefix("folder/") {
            Some(folder) => new_document(cx, &id(folder, wanted)?, target, file, intent)?,
            None => to_document(cx, &id(rest, wanted)?, target, file, intent)?,
        },
        None => {
            let folder = wanted.strip_prefix("gdrive://").unwrap_or(wanted);
            let folder = id(folder.strip_prefix("folder/").unwrap_or(folder), wanted)?;
            to_folder(cx, &folder, target, file, intent)?
        }
    };
    let entry = Entry {
        reference: wanted.to_owned(),
        file: cx.shown(&file.path),
        size: file.size,
        content_type: Some(published.mime_type),
        url: published.web_view_link,
        ..Entry::default()
    };
    Ok(entry.with("id", published.id).with("title", published.name))
}

fn name_of<'a>(target: &'a Target, file: &'a LocalFile) -> &'a str {
    // A push names the file; a connector has `title` for that.
    target.title.as_deref().or(target.to.as_ref().and(target.name.as_deref())).unwrap_or(file.name())
}

fn to_folder(
    cx: &Context<'_>,
    folder: &str,
    target: &Target,
    file: &LocalFile,
    intent: &mut Intent<'_>,
) -> Result<File, ConnectorError> {
    let name = name_of(target, file);
    if let (Some(id), Some(expected)) = (intent.earlier("id"), intent.earlier("sha256")) {
        match metadata(cx, id) {
            Ok(there) if there.sha256_checksum.as_deref() == Some(expected) => return Ok(there),
            Ok(_) => {}
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
    }
    let there = find(cx, folder, &format!("name = '{}'", quoted(name)))?;
    match (target.mode(), there) {
        (Mode::Create, Some(_)) => Err(ConnectorError::new(format!(
            "the folder has a file `{name}` already: `mode: replace` replaces it"
        ))),
        (_, None) => {
            // An id that is known before makes a second try of the same harmless.
            let url = at(cx, "/drive/v3/files/generateIds", &[("count", "1"), ("type", "files")]);
            let ids = cx.client.json(&authorized(cx, Request::get(url))?)?;
            let id = ids["ids"][0]
                .as_str()
                .ok_or_else(|| ConnectorError::new("Google Drive gave no id"))?
                .to_owned();
            intent.note(json!({"id": id, "sha256": file.sha256}))?;
            let about = json!({"id": id, "name": name, "parents": [folder]});
            upload(cx, Method::POST, "/upload/drive/v3/files", &about, file, file.content_type())
        }
        (Mode::Replace, Some(there)) => {
            intent.note(json!({"id": there.id, "sha256": file.sha256}))?;
            upload(
                cx,
                Method::PATCH,
                &format!("/upload/drive/v3/files/{}", there.id),
                &json!({}),
                file,
                file.content_type(),
            )
        }
        (Mode::Append, Some(there)) => {
            let get = authorized(
                cx,
                Request::get(at(cx, &format!("/drive/v3/files/{}", there.id), &[("alt", "media")])),
            )?;
            let before = fetch_before(cx, &cx.client, &get).map_err(|error| explain(error, &there.id))?;
            let longer = append(before, file)?;
            intent.note(json!({"id": there.id, "sha256": longer.file.sha256}))?;
            upload(
                cx,
                Method::PATCH,
                &format!("/upload/drive/v3/files/{}", there.id),
                &json!({}),
                &longer.file,
                file.content_type(),
            )
        }
    }
}

/// Returns the property that links a document to its file: documents have no digest.
fn mark(file: &LocalFile) -> Value {
    json!({"cliqSha256": file.sha256})
}

/// A text as a document of a folder, by its name.
fn new_document(
    cx: &Context<'_>,
    folder: &str,
    target: &Target,
    file: &LocalFile,
    intent: &mut Intent<'_>,
) -> Result<File, ConnectorError> {
    let name = name_of(target, file);
    if intent.earlier.is_some() {
        let is_marked = format!("appProperties has {{ key='cliqSha256' and value='{}' }}", file.sha256);
        if let Some(there) = find(cx, folder, &format!("{is_marked} and name = '{}'", quoted(name)))? {
            return Ok(there);
        }
    }
    let there = find(cx, folder, &format!("name = '{}' and mimeType = '{DOCUMENT}'", quoted(name)))?;
    match (target.mode(), there) {
        (Mode::Create, Some(_)) => Err(ConnectorError::new(format!(
            "the folder has a document `{name}` already: `mode: replace` replaces it"
        ))),
        (_, None) => {
            intent.note(json!({"sha256": file.sha256}))?;
            let about =
                json!({"name": name, "mimeType": DOCUMENT, "parents": [folder], "appProperties": mark(file)});
            upload(cx, Method::POST, "/upload/drive/v3/files", &about, file, file.content_type())
        }
        (_, Some(there)) => to_document(cx, &there.id, target, file, intent),
    }
}

/// A text to a document that is there.
fn to_document(
    cx: &Context<'_>,
    id: &str,
    target: &Target,
    file: &LocalFile,
    intent: &mut Intent<'_>,
) -> Result<File, ConnectorError> {
    let there = metadata(cx, id)?;
    if there.mime_type != DOCUMENT {
        return Err(ConnectorError::new(format!(
            "`{}` is not a Google Docs document: use gdrive:// for files",
            there.name
        )));
    }
    match target.mode() {
        Mode::Create => Err(ConnectorError::new(
            "the document is there already: `mode: replace` or `append` changes it, gdoc://folder/ID makes one",
        )),
        Mode::Replace => {
            intent.note(json!({"sha256": file.sha256}))?;
            let about = json!({"appProperties": mark(file)});
            upload(
                cx,
                Method::PATCH,
                &format!("/upload/drive/v3/files/{id}"),
                &about,
                file,
                file.content_type(),
            )
        }
        Mode::Append => {
            // Whether an interrupted try has written it: the version has gone up, and the text is at the end.
            let text = file.text()?;
            let url = at(cx, &format!("/drive/v3/files/{id}/export"), &[("mimeType", "text/plain")]);
            if intent.earlier("version").is_some_and(|version| there.version.as_deref() != Some(version)) {
                let answer = cx.client.send(&authorized(cx, Request::get(url))?)?;
                let plain = |text: &str| text.replace('\r', "").trim().to_owned();
                if plain(&String::from_utf8_lossy(&answer.body)).ends_with(&plain(&text)) {
                    return Ok(there);
                }
            }
            intent.note(json!({"version": there.version}))?;
            let docs =
                if base(cx) == super::API { "https://docs.googleapis.com".to_owned() } else { base(cx) };
            let insert = json!({"requests": [{"insertText": {"endOfSegmentLocation": {}, "text": format!("\n{text}\n")}}]});
            cx.client.json(&authorized(
                cx,
                Request::post(format!("{docs}/v1/documents/{id}:batchUpdate")).json(&insert),
            )?)?;
            Ok(there)
        }
    }
}

fn find(cx: &Context<'_>, folder: &str, condition: &str) -> Result<Option<File>, ConnectorError> {
    let query = format!("'{}' in parents and trashed = false and {condition}", quoted(folder));
    let fields = format!("files({})", super::FIELDS);
    let url = at(
        cx,
        "/drive/v3/files",
        &[("q", &query), ("fields", &fields), ("includeItemsFromAllDrives", "true")],
    );
    let value =
        cx.client.json(&authorized(cx, Request::get(url))?).map_err(|error| explain(error.into(), folder))?;
    let first = value["files"].as_array().and_then(|files| files.first()).cloned();
    first.map(file_of).transpose()
}

/// A text within quotes of a query.
fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\'', "\\'")
}

/// Uploads a file in a session: first what it is called, then what it contains.
fn upload(
    cx: &Context<'_>,
    method: Method,
    path: &str,
    about: &Value,
    file: &LocalFile,
    content_type: &str,
) -> Result<File, ConnectorError> {
    let url = at(cx, path, &[("uploadType", "resumable"), ("fields", super::FIELDS)]);
    let begin = Request::new(method, url)
        .json(about)
        .header("x-upload-content-type", content_type)
        .header("x-upload-content-length", file.size.to_string())
        // A session that is not used comes to nothing.
        .repeat(Repeat::Safe);
    let begun = cx
        .client
        .send(&authorized(cx, begin)?)
        .map_err(|error| ConnectorError::from(error).hint_on_refusal(super::HINT))?;
    let session = begun
        .header("location")
        .ok_or_else(|| ConnectorError::new("Google Drive gave no address to upload to"))?
        .to_owned();
    let put = Request::put(&session)
        .secret(&session)
        .header("content-type", content_type)
        .file(&file.path, 0, file.size);
    file_of(cx.client.json(&authorized(cx, put)?)?)
}
