//! Pull: outside content as files of `.cliq/pull/` (docs/pull-push.md).

mod location;

use camino::Utf8Path;
use serde_json::{Map, Value};

pub(crate) use location::is_sharepoint;
pub use location::{Location, S3Location};

use crate::files::{digest, remove_parts};
use crate::ledger::Ledger;
use crate::pulled::{self, PullDestination, PullRecord, PullResult, Validators};
use crate::service::in_parallel;
use crate::web::{self, FetchRequest, extension_of_url, is_document, pull_dir};
use crate::{ConnectorError, Context, Source, google, s3, sharepoint};

/// The activation that a pull works for.
#[derive(Debug, Clone, Copy)]
pub struct Activation<'a> {
    /// The phase.
    pub phase: &'a str,
    /// The run.
    pub run_id: &'a str,
    /// Whether a gate sent the work back: then sources are asked again, although they were fetched in this run.
    pub is_repeat: bool,
}

/// Fetches all sources of a pull phase. What was fetched and has not changed is not fetched again; what an interrupted activation fetched
/// is not even asked for. Gives `data.sources`.
///
/// # Errors
/// Names each source that failed, and why. Those that succeeded are kept.
pub fn pull(
    cx: &Context<'_>,
    activation: Activation<'_>,
    sources: &[Source],
) -> Result<Map<String, Value>, ConnectorError> {
    let dir = pull_dir(cx.cliq_dir);
    std::fs::create_dir_all(&dir).map_err(|error| crate::error::file_error("make", &dir, &error))?;
    remove_parts(&dir);
    let manifest = pulled::open(&dir, activation.phase)?;
    let results = in_parallel(sources, cx.bounds.parallel, |source| {
        one(cx, activation, &manifest, source, &dir)
            .map_err(|error| error.within(&format!("source `{}`", source.name)))
    });
    let mut entries = Map::new();
    let mut failed = Vec::new();
    for (source, result) in sources.iter().zip(results) {
        match result {
            Ok(entry) => drop(entries.insert(source.key().to_owned(), entry)),
            Err(error) => failed.push(error.message),
        }
    }
    if failed.is_empty() {
        Ok(entries)
    } else {
        let some = if entries.is_empty() {
            String::new()
        } else {
            format!("; {} others were fetched and stay", entries.len())
        };
        Err(ConnectorError::new(failed.join("; ") + &some))
    }
}

fn one(
    cx: &Context<'_>,
    activation: Activation<'_>,
    manifest: &Ledger<PullRecord>,
    source: &Source,
    dir: &Utf8Path,
) -> Result<Value, ConnectorError> {
    let wanted = source.wanted()?;
    let location = Location::parse(wanted)?;
    let earlier = manifest.get(&source.name).filter(|record| record.is_of(source));
    let before = earlier.filter(|record| is_intact(cx, record));
    if let Some(record) = &before
        && record.run_id == activation.run_id
        && !activation.is_repeat
    {
        (cx.progress)(&format!("{}: fetched before", source.name));
        return Ok(record.data(true));
    }
    (cx.progress)(&format!("{}: fetching from {}", source.name, location.host()));
    let validators = before.as_ref().map(|record| record.validators.clone()).unwrap_or_default();
    let place = PullDestination { dir, source, validators, before: before.as_ref() };
    let record = match fetch(cx, &location, &place)? {
        Some(pulled) => {
            // The same source may have had another extension.
            if let Some(old) = manifest.get(&source.name).filter(|old| old.entry.file != pulled.entry.file) {
                remove(&cx.workspace.join(&old.entry.file), dir);
            }
            PullRecord::new(source, activation.run_id, pulled, cliq_fs::now().to_string())
        }
        None => {
            let Some(record) = before else {
                return Err(ConnectorError::new(
                    "the server says that nothing changed, although it was not asked that",
                ));
            };
            (cx.progress)(&format!("{}: unchanged", source.name));
            let data = record.data(true);
            manifest.put(PullRecord {
                run_id: activation.run_id.to_owned(),
                checked_at: Some(cliq_fs::now().to_string()),
                ..record
            })?;
            return Ok(data);
        }
    };
    (cx.progress)(&format!(
        "{}: {} in {}",
        source.name,
        cliq_http::size(record.entry.size),
        record.entry.file
    ));
    let data = record.data(false);
    manifest.put(record)?;
    Ok(data)
}

fn fetch(
    cx: &Context<'_>,
    location: &Location,
    place: &PullDestination<'_>,
) -> Result<Option<PullResult>, ConnectorError> {
    let PullDestination { dir, source, .. } = place;
    let client = cx.client_for(source.guarded);
    match location {
        Location::Web(url) => {
            let expected = extension_of_url(url).filter(|extension| is_document(extension));
            let wanted = FetchRequest {
                called: &web::without_secrets(url),
                request: crate::curl::request_of("GET", url, &source.headers)?
                    .header("accept", "text/html,application/xhtml+xml,application/pdf;q=0.9,*/*;q=0.8"),
                format: source.format,
                main: true,
                expected: expected.as_deref(),
                hint: "`headers:` of the source can carry what the site asks for",
            };
            web::fetch(cx, client, &wanted, &place.validators, dir, &source.name)
        }
        Location::S3(location) => {
            let path = if location.key.is_empty() || location.key.ends_with('/') {
                dir.join(&source.name)
            } else {
                match location.key.rsplit_once('.').map(|(_, extension)| extension) {
                    Some(extension)
                        if extension.len() <= 8 && extension.chars().all(|c| c.is_ascii_alphanumeric()) =>
                    {
                        dir.join(format!("{}.{extension}", source.name))
                    }
                    _ => dir.join(&source.name),
                }
            };
            let known = |file: &Utf8Path| {
                let files = place.before?.entry.more.get("files")?.as_array()?;
                let wanted = cx.shown(&dir.join(&source.name).join(file));
                let found = files.iter().find(|entry| entry["file"].as_str() == Some(wanted.as_str()))?;
                found["etag"].as_str().map(str::to_owned)
            };
            let pulled = s3::fetch(cx, location, &path, place.validators.etag.as_deref(), &known)?;
            Ok(pulled.map(|pulled| PullResult {
                entry: pulled.entry,
                validators: Validators { etag: pulled.etag, last_modified: None },
                sha256: pulled.sha256,
            }))
        }
        Location::GoogleDoc(id) => google::pull_document(cx, id, google::Kind::Document, place),
        Location::GoogleSheet(id) => google::pull_document(cx, id, google::Kind::Sheet, place),
        Location::DriveFile(id) => google::pull_file(cx, id, place),
        Location::DriveFolder(id) => google::pull_folder(cx, id, place),
        Location::SharePoint(url) => sharepoint::pull(cx, url, place),
    }
}

/// Whether the file of a record is still what was fetched. A directory is looked at file by file when it is fetched.
fn is_intact(cx: &Context<'_>, record: &PullRecord) -> bool {
    let path = cx.workspace.join(&record.entry.file);
    match &record.sha256 {
        Some(sha256) => digest(&path).is_ok_and(|(found, _)| found == *sha256),
        None => path.is_dir(),
    }
}

/// Removes what an earlier pull left under another name, if it is in the directory.
fn remove(path: &Utf8Path, dir: &Utf8Path) {
    if path.strip_prefix(dir).is_ok_and(|rest| !rest.as_str().is_empty()) {
        let _ = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    }
}
