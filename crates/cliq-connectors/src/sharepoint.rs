//! SharePoint and OneDrive (Microsoft Graph, version 1.0): links, folders, uploads. Without credentials, links that everybody may open.

use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use camino::{Utf8Path, Utf8PathBuf};
use cliq_http::ureq::http::Method;
use cliq_http::{Page, Repeat, Request};
use serde_json::{Value, json};

use crate::append::{append, fetch_before};
use crate::entry::Mode;
use crate::error::file_error;
use crate::files::inside;
use crate::pulled::{PullDestination, PullResult, Validators, folder_of};
use crate::service::{Intent, Service, in_parallel};
use crate::web::{self, FetchRequest};
use crate::{ConnectorError, Context, Entry, LocalFile, Source, Target};

const GRAPH: &str = "https://graph.microsoft.com/v1.0";
const LOGIN: &str = "https://login.microsoftonline.com";
const HINT: &str = "does the app of `agents.sharepoint.client_id` have a right to this site?";
/// Files up to this size go in one request.
const SIMPLE: u64 = 200 << 20;
/// Parts of larger ones: a multiple of 320 KiB.
const PART: u64 = 32 * 320 * 1024;
const DEPTH: usize = 32;

fn base(cx: &Context<'_>) -> String {
    cx.setting("sharepoint.base_url").unwrap_or_else(|| GRAPH.to_owned()).trim_end_matches('/').to_owned()
}

fn has_credentials(cx: &Context<'_>) -> bool {
    cx.setting("sharepoint.client_id").is_some()
}

fn token(cx: &Context<'_>) -> Result<String, ConnectorError> {
    let tenant = cx.required("sharepoint.tenant_id", "SHAREPOINT_TENANT_ID")?;
    let client = cx.required("sharepoint.client_id", "SHAREPOINT_CLIENT_ID")?;
    let secret = cx.required("sharepoint.client_secret", "SHAREPOINT_CLIENT_SECRET")?;
    let key = format!("sharepoint {tenant} {client}");
    if let Some((token, end)) = cx.tokens().get(&key)
        && *end > Instant::now()
    {
        return Ok(token.clone());
    }
    let login = cx.setting("sharepoint.login_url").unwrap_or_else(|| LOGIN.to_owned());
    let scope = "https://graph.microsoft.com/.default";
    let fields = [
        ("grant_type", "client_credentials"),
        ("client_id", &client),
        ("client_secret", &secret),
        ("scope", scope),
    ];
    let request =
        Request::post(format!("{}/{tenant}/oauth2/v2.0/token", login.trim_end_matches('/'))).form(&fields);
    let answer = cx.client.json(&request.secret(&secret).repeat(Repeat::Safe)).map_err(|error| {
        ConnectorError::from(error).within("Microsoft rejected the credentials of `agents.sharepoint`")
    })?;
    let token = answer["access_token"]
        .as_str()
        .ok_or_else(|| ConnectorError::new("Microsoft answered without an access token"))?;
    let valid = answer["expires_in"].as_u64().unwrap_or(600).saturating_sub(60);
    cx.tokens().insert(key, (token.to_owned(), Instant::now() + Duration::from_secs(valid)));
    Ok(token.to_owned())
}

fn authorized(cx: &Context<'_>, request: Request) -> Result<Request, ConnectorError> {
    Ok(request.secret_header("authorization", format!("Bearer {}", token(cx)?)).called("SharePoint"))
}

/// A link as Graph takes it (Graph, "Accessing shared DriveItems").
fn share(url: &str) -> String {
    let url =
        url.strip_prefix("sharepoint://").map_or_else(|| url.to_owned(), |rest| format!("https://{rest}"));
    format!("u!{}", URL_SAFE_NO_PAD.encode(url))
}

/// The item that a link leads to.
fn item(cx: &Context<'_>, url: &str) -> Result<Value, ConnectorError> {
    let request = Request::get(format!("{}/shares/{}/driveItem", base(cx), share(url)));
    // Graph redeems the link for the app, where it may.
    let request = authorized(cx, request.header("prefer", "redeemSharingLinkIfNecessary"))?;
    cx.client.json(&request).map_err(|error| explain(error.into()))
}

fn explain(error: ConnectorError) -> ConnectorError {
    if error.is_not_found() {
        return ConnectorError {
            message: format!("SharePoint has no such item for this app: {HINT}"),
            status: error.status,
        };
    }
    error.hint_on_refusal(HINT)
}

/// Drive and id of an item.
fn place_of(item: &Value) -> Result<(String, String), ConnectorError> {
    let drive = item["parentReference"]["driveId"].as_str();
    match (drive, item["id"].as_str()) {
        (Some(drive), Some(id)) => Ok((drive.to_owned(), id.to_owned())),
        _ => Err(ConnectorError::new("SharePoint answered something else than an item")),
    }
}

fn content(cx: &Context<'_>, item: &Value) -> Result<Request, ConnectorError> {
    let (drive, id) = place_of(item)?;
    // It redirects to another host, which does not get the token.
    authorized(cx, Request::get(format!("{}/drives/{drive}/items/{id}/content", base(cx))))
}

/// Fetches what a link leads to: a document, or a folder with all that is below it.
pub(crate) fn pull(
    cx: &Context<'_>,
    url: &str,
    place: &PullDestination<'_>,
) -> Result<Option<PullResult>, ConnectorError> {
    let extension_of =
        |name: &str| name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    if !has_credentials(cx) {
        let mut link = url::Url::parse(&url.replacen("sharepoint://", "https://", 1))
            .map_err(|error| ConnectorError::new(format!("{url:?} is not a valid address: {error}")))?;
        link.query_pairs_mut().append_pair("download", "1");
        let wanted = FetchRequest {
            called: &web::without_secrets(url),
            request: Request::get(link),
            format: place.source.format,
            main: false,
            expected: Some("document"),
            hint: "only links that everybody may open come without `agents.sharepoint`",
        };
        return web::fetch(
            cx,
            cx.client_for(place.source.guarded),
            &wanted,
            &place.validators,
            place.dir,
            &place.source.name,
        );
    }
    let item = item(cx, url)?;
    if item.get("folder").is_some() {
        return pull_folder(cx, &item, place).map(Some);
    }
    let etag = item["eTag"].as_str().map(str::to_owned);
    if etag.is_some() && etag == place.validators.etag {
        return Ok(None);
    }
    let name = item["name"].as_str().unwrap_or_default();
    let extension = extension_of(name);
    let wanted = FetchRequest {
        called: &web::without_secrets(url),
        request: content(cx, &item)?,
        format: place.source.format,
        main: false,
        expected: extension.as_deref(),
        hint: HINT,
    };
    let pulled = web::fetch(cx, &cx.client, &wanted, &Validators::default(), place.dir, &place.source.name)
        .map_err(explain)?;
    Ok(pulled.map(|pulled| PullResult {
        entry: described(pulled.entry, &item),
        validators: Validators { etag, last_modified: None },
        sha256: pulled.sha256,
    }))
}

fn described(entry: Entry, item: &Value) -> Entry {
    let entry = Entry { url: item["webUrl"].as_str().map(str::to_owned).or(entry.url), ..entry };
    entry.with("title", item["name"].clone()).with("modified", item["lastModifiedDateTime"].clone())
}

fn children(cx: &Context<'_>, item: &Value, limit: usize) -> Result<Vec<Value>, ConnectorError> {
    let (drive, id) = place_of(item)?;
    let first =
        authorized(cx, Request::get(format!("{}/drives/{drive}/items/{id}/children?$top=200", base(cx))))?;
    let items = cx.client.pages(first, limit, |value, _| {
        let next =
            value["@odata.nextLink"].as_str().map(|next| authorized(cx, Request::get(next))).transpose();
        let next = next.map_err(|error| cliq_http::CallError::permanent(error.message))?;
        Ok(Page { items: value["value"].as_array().cloned().unwrap_or_default(), next })
    });
    let items = items.map_err(|error| explain(error.into()))?;
    if items.more {
        return Err(ConnectorError::new(format!(
            "the folder has more than {limit} files: name a smaller one"
        )));
    }
    Ok(items.items)
}

fn collect(
    cx: &Context<'_>,
    folder: &Value,
    path: &Utf8Path,
    found: &mut Vec<(Utf8PathBuf, Value)>,
) -> Result<(), ConnectorError> {
    if path.components().count() > DEPTH {
        return Err(ConnectorError::new(format!("folders are more than {DEPTH} deep at {path}")));
    }
    for item in children(cx, folder, cx.bounds.files.saturating_sub(found.len()))? {
        let below = inside(path.join(item["name"].as_str().unwrap_or_default()).as_str())?;
        if item.get("folder").is_some() {
            collect(cx, &item, &below, found)?;
        } else if item.get("file").is_some() {
            found.push((below, item));
        }
    }
    Ok(())
}

fn pull_folder(
    cx: &Context<'_>,
    folder: &Value,
    place: &PullDestination<'_>,
) -> Result<PullResult, ConnectorError> {
    let dir = folder_of(place);
    let mut found = Vec::new();
    collect(cx, folder, Utf8Path::new(""), &mut found)?;
    crate::folder::check_no_conflicts(found.iter().map(|(path, _)| path.as_path()))?;
    std::fs::create_dir_all(&dir).map_err(|error| file_error("make", &dir, &error))?;
    let results = in_parallel(&found, cx.bounds.parallel, |(path, item)| {
        let local = dir.join(path);
        let shown = cx.shown(&local);
        let before = place.before.and_then(|record| record.entry.more.get("files")?.as_array());
        let before = before
            .and_then(|files| files.iter().find(|entry| entry["file"].as_str() == Some(shown.as_str())));
        if let Some(entry) = before
            .filter(|entry| local.is_file() && entry["etag"].is_string() && entry["etag"] == item["eTag"])
        {
            return Ok(entry.clone());
        }
        let parent = local.parent().unwrap_or(&dir);
        std::fs::create_dir_all(parent).map_err(|error| file_error("make", parent, &error))?;
        let download =
            cx.client.download(&content(cx, item)?, parent.as_std_path(), cx.bounds.file, &|_, _| {});
        let download = download.map_err(|error| explain(error.into()).within(path.as_str()))?;
        let download = download.ok_or_else(|| ConnectorError::new("SharePoint says that nothing changed"))?;
        let entry = json!({"ref": item["id"], "file": shown, "size": download.size, "etag": item["eTag"], "url": item["webUrl"]});
        download.keep(local.as_std_path()).map_err(|error| file_error("write", &local, &error))?;
        Ok(entry)
    });
    let files = results.into_iter().collect::<Result<Vec<Value>, ConnectorError>>()?;
    crate::folder::remove_others(&dir, &found.iter().map(|(path, _)| path.clone()).collect::<Vec<_>>())?;
    let size = files.iter().filter_map(|file| file["size"].as_u64()).sum();
    let entry = Entry {
        reference: place.source.wanted()?.to_owned(),
        file: cx.shown(&dir),
        size,
        ..Entry::default()
    };
    let entry = described(entry, folder).with("count", files.len()).with("files", files);
    Ok(PullResult { entry, validators: Validators::default(), sha256: None })
}

/// Publishing to SharePoint.
pub(crate) struct SharePoint;

impl Service for SharePoint {
    fn fetch(&self, _: &Context<'_>, _: &Source, _: &Utf8Path) -> Result<Entry, ConnectorError> {
        Err(ConnectorError::new("`pull` fetches from SharePoint"))
    }

    fn publish(
        &self,
        cx: &Context<'_>,
        target: &Target,
        file: &LocalFile,
        intent: &mut Intent<'_>,
    ) -> Result<Entry, ConnectorError> {
        let wanted = target.wanted()?;
        let folder = item(cx, wanted)?;
        if folder.get("folder").is_none() {
            return Err(ConnectorError::new(
                "`to` is not a folder of SharePoint: name the folder, and the file in `name`",
            ));
        }
        let (drive, id) = place_of(&folder)?;
        let name = target.name.as_deref().unwrap_or(file.name());
        inside(name)?;
        let encoded: String =
            url::form_urlencoded::byte_serialize(name.as_bytes()).collect::<String>().replace('+', "%20");
        let path = format!("{}/drives/{drive}/items/{id}:/{encoded}:", base(cx));
        let there = match cx.client.json(&authorized(cx, Request::get(&path))?) {
            Ok(item) => Some(item),
            Err(error) if error.is_not_found() => None,
            Err(error) => return Err(explain(error.into())),
        };
        let entry = |item: &Value, size: u64| {
            let entry = Entry {
                reference: web::without_secrets(wanted),
                file: cx.shown(&file.path),
                size,
                content_type: Some(file.content_type().to_owned()),
                ..Entry::default()
            };
            described(entry, item).with("id", item["id"].clone())
        };
        let bytes_of = |item: &Value| fetch_before(cx, &cx.client, &content(cx, item)?).map_err(explain);
        if let (Some(item), Some(expected)) = (&there, intent.earlier("sha256")) {
            let download = bytes_of(item)?;
            if download.sha256 == expected {
                return Ok(entry(item, download.size));
            }
        }
        match (target.mode(), there) {
            (Mode::Create, Some(_)) => Err(ConnectorError::new(format!(
                "the folder has a file `{name}` already: `mode: replace` replaces it"
            ))),
            (Mode::Append, Some(item)) => {
                let before = bytes_of(&item)?;
                let longer = append(before, file)?;
                intent.note(json!({"sha256": longer.file.sha256}))?;
                let etag = item["eTag"].as_str();
                let made = upload(cx, &path, &longer.file, file.content_type(), "replace", etag)?;
                Ok(entry(&made, longer.file.size))
            }
            (mode, _) => {
                intent.note(json!({"sha256": file.sha256}))?;
                let conflict = if mode == Mode::Create { "fail" } else { "replace" };
                Ok(entry(&upload(cx, &path, file, file.content_type(), conflict, None)?, file.size))
            }
        }
    }

    fn test(&self, cx: &Context<'_>) -> Result<String, ConnectorError> {
        let value = cx
            .client
            .json(&authorized(cx, Request::get(format!("{}/sites/root", base(cx))))?)
            .map_err(|error| explain(error.into()))?;
        Ok(format!("the app reads {}", value["webUrl"].as_str().unwrap_or("the root site")))
    }
}

fn upload(
    cx: &Context<'_>,
    path: &str,
    file: &LocalFile,
    content_type: &str,
    conflict: &str,
    if_match: Option<&str>,
) -> Result<Value, ConnectorError> {
    let with_condition = |request: Request| match if_match {
        Some(etag) => request.header("if-match", etag),
        None => request,
    };
    if file.size <= SIMPLE {
        let request = Request::put(format!("{path}/content?@microsoft.graph.conflictBehavior={conflict}"));
        let request =
            with_condition(request.header("content-type", content_type).file(&file.path, 0, file.size));
        return cx.client.json(&authorized(cx, request)?).map_err(|error| explain(error.into()));
    }
    let about = json!({"item": {"@microsoft.graph.conflictBehavior": conflict}});
    let begin = with_condition(Request::post(format!("{path}/createUploadSession")).json(&about))
        .repeat(Repeat::Safe);
    let begun = cx.client.json(&authorized(cx, begin)?).map_err(|error| explain(error.into()))?;
    let session = begun["uploadUrl"]
        .as_str()
        .ok_or_else(|| ConnectorError::new("SharePoint gave no address to upload to"))?;
    let mut offset = 0;
    loop {
        let length = PART.min(file.size - offset);
        let range = format!("bytes {offset}-{}/{}", offset + length - 1, file.size);
        // The address is as good as a key; it takes no token.
        let put = Request::new(Method::PUT, session).secret(session).called("SharePoint");
        let answer = cx.client.json(&put.header("content-range", range).file(&file.path, offset, length))?;
        offset += length;
        if offset >= file.size {
            return Ok(answer);
        }
    }
}
