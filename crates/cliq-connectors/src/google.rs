//! Google Drive, Docs and Sheets (Drive API, version 3; Docs API, version 1).

mod auth;
mod folder;
mod publish;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_http::{Page, Request};
use serde::Deserialize;
use serde_json::{Value, json};

pub use auth::{DevicePrompt, sign_in};

use crate::entry::Format;
use crate::files::write;
use crate::pulled::{PullDestination, PullResult, Validators};
use crate::service::{Intent, Service};
use crate::web::{self, FetchRequest};
use crate::{ConnectorError, Context, Entry, LocalFile, Source, Target};

const API: &str = "https://www.googleapis.com";
const FIELDS: &str = "id,name,mimeType,size,sha256Checksum,modifiedTime,version,webViewLink,shortcutDetails";
const FOLDER: &str = "application/vnd.google-apps.folder";
const SHORTCUT: &str = "application/vnd.google-apps.shortcut";
const DOCUMENT: &str = "application/vnd.google-apps.document";
const SHEET: &str = "application/vnd.google-apps.spreadsheet";
const HINT: &str = "is the file shared with the account of `agents.gdrive.credentials_file`?";

/// A document that has no bytes of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Document,
    Sheet,
}

/// A file of Drive.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    id: String,
    name: String,
    mime_type: String,
    size: Option<String>,
    sha256_checksum: Option<String>,
    modified_time: Option<String>,
    version: Option<String>,
    web_view_link: Option<String>,
    shortcut_details: Option<Shortcut>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Shortcut {
    target_id: String,
    target_mime_type: Option<String>,
}

/// Returns the export of a native document: media type and extension.
fn export_of(mime_type: &str, format: Format) -> Option<(&'static str, &'static str)> {
    Some(match (mime_type.strip_prefix("application/vnd.google-apps.")?, format) {
        ("document", Format::Auto) => ("text/markdown", "md"),
        ("document", Format::Raw) => {
            ("application/vnd.openxmlformats-officedocument.wordprocessingml.document", "docx")
        }
        ("spreadsheet", Format::Auto) => ("text/csv", "csv"),
        ("spreadsheet", Format::Raw) => {
            ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xlsx")
        }
        ("presentation", Format::Auto) => ("application/pdf", "pdf"),
        ("presentation", Format::Raw) => {
            ("application/vnd.openxmlformats-officedocument.presentationml.presentation", "pptx")
        }
        ("drawing", _) => ("image/png", "png"),
        ("script", _) => ("application/vnd.google-apps.script+json", "json"),
        _ => return None,
    })
}

/// Whether a text can be the id of a file: ids become a part of addresses and queries.
pub(crate) fn is_id(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
}

/// The id that is `text`, a part of what a person wrote.
pub(crate) fn id(text: &str, whole: &str) -> Result<String, ConnectorError> {
    let id = text.trim_matches('/');
    if is_id(id) {
        return Ok(id.to_owned());
    }
    Err(ConnectorError::new(format!(
        "{whole:?} has no id: it is what follows /folders/ or /d/ in the address of the page"
    )))
}

fn base(cx: &Context<'_>) -> String {
    cx.setting("gdrive.base_url").unwrap_or_else(|| API.to_owned()).trim_end_matches('/').to_owned()
}

fn authorized(cx: &Context<'_>, request: Request) -> Result<Request, ConnectorError> {
    Ok(request.secret_header("authorization", format!("Bearer {}", auth::token(cx)?)).called("Google Drive"))
}

/// The address of a call, with its query.
fn at(cx: &Context<'_>, path: &str, query: &[(&str, &str)]) -> String {
    let query = url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(query)
        .append_pair("supportsAllDrives", "true")
        .finish();
    format!("{}{path}?{query}", base(cx))
}

fn file_of(value: Value) -> Result<File, ConnectorError> {
    File::deserialize(value).map_err(|error| {
        ConnectorError::new(format!("Google Drive answered something else than a file: {error}"))
    })
}

/// Returns the metadata of a file. Follows shortcuts.
fn metadata(cx: &Context<'_>, id: &str) -> Result<File, ConnectorError> {
    let mut id = id.to_owned();
    for _ in 0..5 {
        let url = at(cx, &format!("/drive/v3/files/{id}"), &[("fields", FIELDS)]);
        let value = cx
            .client
            .json(&authorized(cx, Request::get(url))?)
            .map_err(|error| explain(error.into(), &id))?;
        let file = file_of(value)?;
        match file.shortcut_details {
            Some(shortcut) if file.mime_type == SHORTCUT => id = shortcut.target_id,
            _ => return Ok(file),
        }
    }
    Err(ConnectorError::new("the shortcut leads to shortcuts only"))
}

fn explain(error: ConnectorError, id: &str) -> ConnectorError {
    if error.is_not_found() {
        // Google says 404 for what is not shared.
        return ConnectorError {
            message: format!("Google Drive has no file {id} for this account: {HINT}"),
            status: error.status,
        };
    }
    error.hint_on_refusal(HINT)
}

/// The request for the content of a file, and its extension.
fn content(
    cx: &Context<'_>,
    file: &File,
    format: Format,
) -> Result<(Request, Option<&'static str>), ConnectorError> {
    if let Some((mime_type, extension)) = export_of(&file.mime_type, format) {
        let url = at(cx, &format!("/drive/v3/files/{}/export", file.id), &[("mimeType", mime_type)]);
        return Ok((authorized(cx, Request::get(url))?, Some(extension)));
    }
    if file.mime_type.starts_with("application/vnd.google-apps.") {
        return Err(ConnectorError::new(format!(
            "`{}` is of the type {}, which Google cannot export",
            file.name, file.mime_type
        )));
    }
    let url = at(cx, &format!("/drive/v3/files/{}", file.id), &[("alt", "media")]);
    Ok((authorized(cx, Request::get(url))?, None))
}

/// Returns a value that identifies the version of a file.
fn stamp(file: &File) -> String {
    file.sha256_checksum
        .clone()
        .or_else(|| file.version.clone())
        .or_else(|| file.modified_time.clone())
        .unwrap_or_default()
}

/// Fetches a document or a sheet: by the Drive API where there are credentials, else as what everybody may read.
pub(crate) fn pull_document(
    cx: &Context<'_>,
    id: &str,
    kind: Kind,
    place: &PullDestination<'_>,
) -> Result<Option<PullResult>, ConnectorError> {
    if auth::has_credentials(cx) {
        return pull_file(cx, id, place);
    }
    let (path, auto, raw) = match kind {
        Kind::Document => ("document", "md", "docx"),
        Kind::Sheet => ("spreadsheets", "csv", "xlsx"),
    };
    let extension = if place.source.format == Format::Raw { raw } else { auto };
    let url = format!("https://docs.google.com/{path}/d/{id}/export?format={extension}");
    let wanted = FetchRequest {
        called: place.source.wanted()?,
        request: Request::get(url),
        format: Format::Raw,
        main: false,
        expected: Some(extension),
        hint: "only documents that everybody may read come without `agents.gdrive.credentials_file`",
    };
    web::fetch(cx, &cx.client, &wanted, &place.validators, place.dir, &place.source.name)
}

/// Fetches a file, or a folder where the id is one's.
pub(crate) fn pull_file(
    cx: &Context<'_>,
    id: &str,
    place: &PullDestination<'_>,
) -> Result<Option<PullResult>, ConnectorError> {
    let file = metadata(cx, id)?;
    if file.mime_type == FOLDER {
        return folder::pull(cx, &file, place);
    }
    // Drive has no conditional requests; the version says the same.
    let stamp = stamp(&file);
    if !stamp.is_empty() && place.validators.etag.as_deref() == Some(stamp.as_str()) {
        return Ok(None);
    }
    let (request, extension) = content(cx, &file, place.source.format)?;
    let own = file.name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    let own = own.filter(|own| own.len() <= 8 && own.chars().all(|c| c.is_ascii_alphanumeric()));
    let wanted = FetchRequest {
        called: place.source.wanted()?,
        request,
        // Native documents come as what they are exported to; PDF of others becomes text.
        format: if extension.is_some() { Format::Raw } else { place.source.format },
        main: false,
        expected: extension.or(own.as_deref()),
        hint: HINT,
    };
    let pulled = web::fetch(cx, &cx.client, &wanted, &Validators::default(), place.dir, &place.source.name)
        .map_err(|error| explain(error, id))?;
    Ok(pulled.map(|pulled| PullResult {
        validators: Validators { etag: Some(stamp), last_modified: None },
        entry: described(Entry { url: file.web_view_link.clone(), ..pulled.entry }, &file),
        sha256: pulled.sha256,
    }))
}

/// Fetches a folder with all that is below it.
pub(crate) fn pull_folder(
    cx: &Context<'_>,
    id: &str,
    place: &PullDestination<'_>,
) -> Result<Option<PullResult>, ConnectorError> {
    let file = metadata(cx, id)?;
    if file.mime_type == FOLDER { folder::pull(cx, &file, place) } else { pull_file(cx, id, place) }
}

/// All files of a folder.
fn children(cx: &Context<'_>, folder: &str, limit: usize) -> Result<Vec<File>, ConnectorError> {
    let query = format!("'{folder}' in parents and trashed = false");
    let fields = format!("nextPageToken,files({FIELDS})");
    let request = |token: Option<&str>| {
        let mut query = vec![
            ("q", query.as_str()),
            ("fields", fields.as_str()),
            ("pageSize", "1000"),
            ("includeItemsFromAllDrives", "true"),
        ];
        query.extend(token.map(|token| ("pageToken", token)));
        authorized(cx, Request::get(at(cx, "/drive/v3/files", &query)))
    };
    let items = cx.client.pages(request(None)?, limit, |value, _| {
        let next = value["nextPageToken"].as_str().map(|token| request(Some(token))).transpose();
        let next = next.map_err(|error| cliq_http::CallError::permanent(error.message))?;
        Ok(Page { items: value["files"].as_array().cloned().unwrap_or_default(), next })
    });
    let items = items.map_err(|error| explain(error.into(), folder))?;
    if items.more {
        return Err(ConnectorError::new(format!(
            "the folder has more than {limit} files: name a smaller one"
        )));
    }
    items.items.into_iter().map(file_of).collect()
}

fn described(entry: Entry, file: &File) -> Entry {
    entry
        .with("title", file.name.as_str())
        .with("mime_type", file.mime_type.as_str())
        .with("modified", file.modified_time.clone())
}

/// The connector.
pub(crate) struct Drive;

impl Service for Drive {
    fn fetch(&self, cx: &Context<'_>, source: &Source, file: &Utf8Path) -> Result<Entry, ConnectorError> {
        let wanted = source.wanted()?;
        let entry = Entry { reference: wanted.to_owned(), file: cx.shown(file), ..Entry::default() };
        if let Some(folder) = wanted.strip_prefix("folder/") {
            let files: Vec<Value> = children(cx, &id(folder, wanted)?, cx.bounds.files)?
                .iter()
                .map(|file| {
                    let size = file.size.as_ref().and_then(|size| size.parse::<u64>().ok());
                    json!({"id": file.id, "name": file.name, "mime_type": file.mime_type, "size": size,
                        "modified": file.modified_time, "url": file.web_view_link})
                })
                .collect();
            let text = format!("{:#}\n", Value::Array(files.clone()));
            write(file, text.as_bytes())?;
            let entry =
                Entry { size: text.len() as u64, content_type: Some("application/json".to_owned()), ..entry };
            return Ok(entry.with("count", files.len()));
        }
        let id = id(wanted.strip_prefix("gdrive://").unwrap_or(wanted), wanted)?;
        let found = metadata(cx, &id)?;
        let request = if found.mime_type == DOCUMENT {
            // A connector gives plain text (UPSTREAM 5.2); `pull` gives markdown.
            authorized(
                cx,
                Request::get(at(
                    cx,
                    &format!("/drive/v3/files/{}/export", found.id),
                    &[("mimeType", "text/plain")],
                )),
            )?
        } else if found.mime_type == SHEET {
            authorized(
                cx,
                Request::get(at(
                    cx,
                    &format!("/drive/v3/files/{}/export", found.id),
                    &[("mimeType", "text/csv")],
                )),
            )?
        } else {
            content(cx, &found, Format::Auto)?.0
        };
        let progress = crate::progress::Bytes::new(&*cx.progress, &source.name);
        let dir = file.parent().unwrap_or(file);
        let download = cx
            .client
            .download(&request, dir.as_std_path(), cx.bounds.file, &|done, total| progress.at(done, total));
        let download = download.map_err(|error| explain(error.into(), &id))?;
        let download =
            download.ok_or_else(|| ConnectorError::new("Google Drive says that nothing changed"))?;
        let entry = Entry {
            size: download.size,
            content_type: download.content_type.clone(),
            url: found.web_view_link.clone(),
            ..entry
        };
        download.keep(file.as_std_path()).map_err(|error| crate::error::file_error("write", file, &error))?;
        Ok(described(entry, &found))
    }

    fn publish(
        &self,
        cx: &Context<'_>,
        target: &Target,
        file: &LocalFile,
        intent: &mut Intent<'_>,
    ) -> Result<Entry, ConnectorError> {
        publish::publish(cx, target, file, intent)
    }

    fn test(&self, cx: &Context<'_>) -> Result<String, ConnectorError> {
        let url = at(cx, "/drive/v3/about", &[("fields", "user(emailAddress,displayName)")]);
        let value = cx.client.json(&authorized(cx, Request::get(url))?)?;
        Ok(format!(
            "signed in as {}",
            value["user"]["emailAddress"].as_str().unwrap_or("an account without an address")
        ))
    }
}

/// The path of a file of a folder: its name, with what no file system takes replaced.
fn local_name(file: &File, extension: Option<&str>) -> Utf8PathBuf {
    let mut name: String =
        file.name.chars().map(|c| if matches!(c, '/' | '\\' | '\0') { '_' } else { c }).collect();
    if matches!(name.as_str(), "." | "..") || name.is_empty() {
        name = format!("_{name}");
    }
    if let Some(extension) = extension
        && !name.to_ascii_lowercase().ends_with(&format!(".{extension}"))
    {
        name = format!("{name}.{extension}");
    }
    Utf8PathBuf::from(name)
}
