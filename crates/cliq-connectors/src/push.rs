//! Push: local files to the outside (docs/pull-push.md). What is there already is not published again: a manifest in `.cliq/push/`
//! says what went where, and before each publication, that it begins.

mod destination;
mod put;

use camino::Utf8PathBuf;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use destination::Destination;

use crate::entry::Mode;
use crate::ledger::{Ledger, Record};
use crate::service::{Intent, Service};
use crate::{ConnectorError, Context, Entry, LocalFile, Publishable, Target, files, google, s3, sharepoint};

/// Whether something was published.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// The publication was started. The service may or may not have it.
    Begun,
    /// The publication is complete.
    Done,
}

/// Recorded state of a publication.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PushRecord {
    /// The run that it was published in.
    pub run_id: String,
    /// Index in the list of targets.
    pub index: usize,
    /// Publisher: `push`, or a connector and its action.
    pub by: String,
    /// The local file, relative to the workspace.
    pub file: Utf8PathBuf,
    /// The SHA-256 of that file.
    pub sha256: String,
    /// Size in bytes.
    pub size: u64,
    /// Destination.
    pub to: String,
    /// Name at the destination.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The title of a page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Policy for an existing destination.
    pub mode: Mode,
    /// Part of a target that does not change over time, if the target contains times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    /// Whether it is there.
    pub state: State,
    /// Time of the note.
    pub at: String,
    /// Data with which the service can find an interrupted publication.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<Value>,
    /// Result of the publication.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<Entry>,
}

impl Record for PushRecord {
    fn key(&self) -> String {
        let Self { by, file, to, name, title, sha256, mode, .. } = self;
        format!("{by} {file} {to} {name:?} {title:?} {sha256} {mode:?}")
    }
}

/// Preview of a publication.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Preview {
    /// The local file.
    pub file: String,
    /// Size in bytes.
    pub size: u64,
    /// Destination with the name.
    pub to: String,
    /// Policy for an existing destination.
    pub mode: Mode,
    /// Whether it was published before, and nothing would be done.
    pub is_there: bool,
}

/// The activation that publishes.
#[derive(Debug, Clone, Copy)]
pub struct Publisher<'a> {
    /// The phase.
    pub phase: &'a str,
    /// The run.
    pub run_id: &'a str,
}

/// Publication with its recorded state.
pub(crate) struct Publication<'a> {
    pub(crate) publisher: Publisher<'a>,
    pub(crate) by: String,
    pub(crate) ledger: &'a Ledger<PushRecord>,
    /// Whether the same content may be published again in another run, as a comment may.
    pub(crate) is_per_run: bool,
}

/// The ledger of a phase.
pub(crate) fn ledger(cx: &Context<'_>, phase: &str) -> Result<Ledger<PushRecord>, ConnectorError> {
    let dir = cx.cliq_dir.join("push");
    files::remove_parts(&dir);
    Ledger::open(&dir.join(format!("{phase}.jsonl")))
}

/// Publishes all targets of a push phase, one after the other. Gives `data.targets`.
///
/// # Errors
/// Names the first target that failed, and why. Those before it are published, and are not published again.
pub fn push(
    cx: &Context<'_>,
    publisher: Publisher<'_>,
    targets: &[Target],
    allowed: &Publishable,
) -> Result<Map<String, Value>, ConnectorError> {
    let ledger = ledger(cx, publisher.phase)?;
    // All that can be known to fail is found before the first file goes.
    let open =
        |target: &Target| Ok((Destination::parse(target)?, allowed.open(cx.workspace, target.local()?)?));
    let ready: Vec<(Destination, LocalFile)> = targets
        .iter()
        .map(|target| open(target).map_err(|error: ConnectorError| error.within(&called(target))))
        .collect::<Result<_, _>>()?;
    let mut entries = Map::new();
    let publication = Publication { publisher, by: "push".to_owned(), ledger: &ledger, is_per_run: false };
    for (index, (target, (destination, file))) in targets.iter().zip(&ready).enumerate() {
        let service = service_of(destination);
        let entry = publish(cx, &publication, index, service, target, file)
            .map_err(|error| error.within(&called(target)))?;
        let mut key = target.file.as_ref().and_then(|file| file.file_stem()).unwrap_or("target").to_owned();
        while entries.contains_key(&key) {
            key.push('-');
            key.push_str(&(index + 1).to_string());
        }
        entries.insert(key, entry);
    }
    Ok(entries)
}

/// Returns what a push phase would do. Sends nothing.
///
/// # Errors
/// A target is wrong, or its file may not be published.
pub fn preview(
    cx: &Context<'_>,
    phase: &str,
    targets: &[Target],
    allowed: &Publishable,
) -> Result<Vec<Preview>, ConnectorError> {
    let ledger = ledger(cx, phase)?;
    let one = |target: &Target| {
        let destination = Destination::parse(target)?;
        let file = allowed.open(cx.workspace, target.local()?)?;
        let is_there = ledger
            .find(|record| record.state == State::Done && is_same(record, "push", target, &file, cx))
            .is_some();
        Ok(Preview {
            file: cx.shown(&file.path),
            size: file.size,
            to: destination.shown(target, &file),
            mode: target.mode(),
            is_there,
        })
    };
    targets
        .iter()
        .map(|target| one(target).map_err(|error: ConnectorError| error.within(&called(target))))
        .collect()
}

fn service_of(destination: &Destination) -> &'static dyn Service {
    match destination {
        Destination::S3(_) => &s3::S3,
        Destination::Put(_) => &put::Put,
        Destination::Drive(_) | Destination::Doc(_) => &google::Drive,
        Destination::SharePoint(_) => &sharepoint::SharePoint,
    }
}

fn called(target: &Target) -> String {
    format!("target `{}`", target.file.as_ref().map_or("without a file", |file| file.as_str()))
}

fn is_same(record: &PushRecord, by: &str, target: &Target, file: &LocalFile, cx: &Context<'_>) -> bool {
    record.by == by
        && record.file == cx.shown(&file.path)
        && record.sha256 == file.sha256
        && record.mode == target.mode()
        // An event of a service may need no place.
        && record.to == crate::web::without_secrets(target.wanted().unwrap_or_default())
        && record.name == target.name
        && record.title == target.title
}

/// Publishes one target, unless it is there already.
pub(crate) fn publish(
    cx: &Context<'_>,
    publication: &Publication<'_>,
    index: usize,
    service: &dyn Service,
    target: &Target,
    file: &LocalFile,
) -> Result<Value, ConnectorError> {
    let Publication { publisher, by, ledger, is_per_run } = publication;
    let in_this_run = |record: &PushRecord| record.run_id == publisher.run_id;
    // Within a run, names with the time in them stay what they were first.
    let is_same_at_another_time = |record: &PushRecord| {
        in_this_run(record)
            && target.identity.is_some()
            && record.identity == target.identity
            && record.index == index
            && record.by == *by
            && record.sha256 == file.sha256
            && record.file == cx.shown(&file.path)
    };
    let earlier = ledger.find(is_same_at_another_time).or_else(|| {
        ledger.find(|record| is_same(record, by, target, file, cx) && (!is_per_run || in_this_run(record)))
    });
    let shown = cx.shown(&file.path);
    if let Some(PushRecord { state: State::Done, entry: Some(entry), .. }) = &earlier {
        (cx.progress)(&format!("{shown}: published before"));
        return Ok(data(entry, file, true));
    }
    let mut target = target.clone();
    let mut record = match earlier {
        Some(record) => {
            target.name.clone_from(&record.name);
            target.title.clone_from(&record.title);
            // The record has no secrets, so it stands for the address only where that has none.
            if let Some(place) = target.place_mut()
                && crate::web::without_secrets(place) == *place
            {
                place.clone_from(&record.to);
            }
            record
        }
        None => PushRecord {
            run_id: publisher.run_id.to_owned(),
            index,
            by: by.clone(),
            file: shown.clone().into(),
            sha256: file.sha256.clone(),
            size: file.size,
            to: crate::web::without_secrets(target.wanted().unwrap_or_default()),
            name: target.name.clone(),
            title: target.title.clone(),
            mode: target.mode(),
            identity: target.identity.clone(),
            state: State::Begun,
            at: cliq_fs::now().to_string(),
            note: None,
            entry: None,
        },
    };
    let place = if record.to.is_empty() { by } else { &record.to };
    (cx.progress)(&format!("{shown}: publishing to {place}"));
    let begun = record.clone();
    let mut note = |note: Value| {
        ledger.put(PushRecord {
            note: Some(note),
            state: State::Begun,
            at: cliq_fs::now().to_string(),
            ..begun.clone()
        })
    };
    let mut intent = Intent { earlier: record.note.take(), note: &mut note };
    let entry = service.publish(cx, &target, file, &mut intent)?;
    ledger.put(PushRecord {
        state: State::Done,
        at: cliq_fs::now().to_string(),
        note: None,
        entry: Some(entry.clone()),
        ..record
    })?;
    Ok(data(&entry, file, false))
}

fn data(entry: &Entry, file: &LocalFile, unchanged: bool) -> Value {
    let mut data = serde_json::to_value(entry).unwrap_or_default();
    data["sha256"] = file.sha256.as_str().into();
    data["unchanged"] = unchanged.into();
    data
}
