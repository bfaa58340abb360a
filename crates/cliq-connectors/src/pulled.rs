//! Record of fetched sources: `.cliq/pull/.manifest/<phase>.jsonl`.

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::entry::Format;
use crate::files::sha256;
use crate::ledger::{Ledger, Record};
use crate::{ConnectorError, Entry, Source};

/// By what a server knows whether something changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Validators {
    /// The `ETag`, or what stands for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    /// The `Last-Modified`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
}

/// Recorded state of a source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PullRecord {
    /// The source's name.
    pub name: String,
    /// Stands for its address and headers, which may contain secrets.
    pub source_sha256: String,
    /// Format of the copy.
    pub format: Format,
    /// Result of the source.
    pub entry: Entry,
    /// The SHA-256 of the file; none for directories.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// By what the server knows whether it changed.
    #[serde(flatten)]
    pub validators: Validators,
    /// Time of the fetch.
    pub fetched_at: String,
    /// Time at which the server said last that it has not changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked_at: Option<String>,
    /// The last run that it was fetched or found unchanged for.
    pub run_id: String,
}

impl PullRecord {
    pub(crate) fn new(source: &Source, run_id: &str, mut pulled: PullResult, now: String) -> Self {
        // It stands in the record beside the entry.
        pulled.entry.more.remove("etag");
        pulled.entry.more.remove("last_modified");
        Self {
            name: source.name.clone(),
            source_sha256: fingerprint(source),
            format: source.format,
            entry: pulled.entry,
            sha256: pulled.sha256,
            validators: pulled.validators,
            fetched_at: now,
            checked_at: None,
            run_id: run_id.to_owned(),
        }
    }

    /// Whether it is of this source as it stands in team.yml now.
    pub(crate) fn is_of(&self, source: &Source) -> bool {
        self.name == source.name && self.format == source.format && self.source_sha256 == fingerprint(source)
    }

    /// Part of the handoff's `data`.
    pub(crate) fn data(&self, unchanged: bool) -> Value {
        let mut data = serde_json::to_value(&self.entry).unwrap_or_default();
        data["fetched_at"] = self.fetched_at.as_str().into();
        data["unchanged"] = unchanged.into();
        if let Some(sha256) = &self.sha256 {
            data["sha256"] = sha256.as_str().into();
        }
        data
    }
}

fn fingerprint(source: &Source) -> String {
    let what = json!([source.url, source.reference, source.headers]);
    sha256(what.to_string().as_bytes())
}

impl Record for PullRecord {
    fn key(&self) -> String {
        self.name.clone()
    }
}

/// The manifest of a phase.
pub(crate) fn open(dir: &Utf8Path, phase: &str) -> Result<Ledger<PullRecord>, ConnectorError> {
    Ledger::open(&dir.join(".manifest").join(format!("{phase}.jsonl")))
}

/// Result of a source.
pub(crate) struct PullResult {
    pub(crate) entry: Entry,
    pub(crate) validators: Validators,
    /// The SHA-256 of the file; `None` for directories.
    pub(crate) sha256: Option<String>,
}

/// Destination of a source, and the copy that exists there.
pub(crate) struct PullDestination<'a> {
    pub(crate) dir: &'a Utf8Path,
    pub(crate) source: &'a Source,
    pub(crate) validators: Validators,
    pub(crate) before: Option<&'a PullRecord>,
}

/// The directory of a source that is a folder.
pub(crate) fn folder_of(place: &PullDestination<'_>) -> Utf8PathBuf {
    place.dir.join(&place.source.name)
}
