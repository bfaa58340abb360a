//! Changed files of projects. The mark of a trigger is a digest of the files' names, sizes and times.
//!
//! While a run of the trigger is active, changes count as changes of the run: it does not start itself again.

use std::collections::{BTreeMap, HashMap};
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use cliq_model::{FiringFilter, FiringState, MarkStep, NewFiring, Outcome, StoreError};
use ignore::WalkBuilder;
use serde_json::json;

use super::Inner;
use super::firings::digest_of;
use crate::model::{FileSource, Source, Trigger};

/// Shortest interval between two looks at the files of a project.
const EVERY: Duration = Duration::from_millis(500);
/// Share of time that looks may take: one in so many.
const SHARE: u32 = 20;
/// Maximum number of changed files that expressions see.
const MAX_NAMED: usize = 1000;
/// Number of firings that are looked at for active runs.
const RECENT: u32 = 20;

/// Size and time of a file.
type FileState = (u64, i64, i64, u64);
type Files = BTreeMap<Utf8PathBuf, FileState>;

/// Observation of a trigger's files.
#[derive(Default)]
struct Observed {
    /// State that corresponds to the mark, if it is known here.
    baseline: Option<Files>,
    /// Newest state that differs, and the time of the last change.
    changed: Option<(String, Instant)>,
    /// Whether a run of the trigger was active at the last look.
    was_busy: bool,
}

/// Watches files until the engine stops.
pub(super) async fn run(inner: Arc<Inner>) {
    let mut catalogs = inner.catalog.subscribe();
    let mut observed: HashMap<String, Observed> = HashMap::new();
    loop {
        let catalog = Arc::clone(&catalogs.borrow_and_update());
        let triggers: Vec<(Arc<Trigger>, FileSource)> = catalog
            .triggers
            .iter()
            .filter_map(|trigger| match &trigger.source {
                Source::Files(files) => Some((Arc::clone(trigger), files.clone())),
                _ => None,
            })
            .collect();
        observed.retain(|name, _| triggers.iter().any(|(trigger, _)| trigger.name == *name));
        let began = Instant::now();
        for (trigger, source) in &triggers {
            let known = observed.entry(trigger.name.clone()).or_default();
            if let Err(error) = look(&inner, trigger, source, known).await {
                tracing::error!(%error, trigger = trigger.name, "cannot look at files; retrying");
            }
        }
        let pause = EVERY.max(began.elapsed() * SHARE);
        tokio::select! {
            () = inner.stopping.cancelled() => return,
            changed = catalogs.changed() => if changed.is_err() { return },
            () = tokio::time::sleep(pause), if !triggers.is_empty() => {}
        }
    }
}

async fn look(
    inner: &Inner,
    trigger: &Trigger,
    source: &FileSource,
    known: &mut Observed,
) -> Result<(), StoreError> {
    let Some(dir) = directory_of(inner, &source.project).await? else { return Ok(()) };
    let Some(row) = inner.store.trigger_row(&trigger.name).await?.filter(|row| !row.is_paused) else {
        *known = Observed::default();
        return Ok(());
    };
    let glob = source.glob.clone();
    let of = dir.clone();
    let read = inner.supervisor.workspace_io().run(&dir, move || read(&of, &glob));
    let Ok(files) = read.await else { return Ok(()) };
    let digest = digest(&files);
    if digest == row.mark {
        (known.baseline, known.changed, known.was_busy) = (Some(files), None, false);
        return Ok(());
    }
    let is_busy = is_busy(inner, &trigger.name).await?;
    let is_first = row.mark.is_empty();
    let is_own = is_busy || std::mem::replace(&mut known.was_busy, is_busy);
    let step =
        |digest: String| MarkStep { trigger: trigger.name.clone(), version: row.version, mark: digest };
    if is_first || is_own {
        // If another writer was faster, the next look sees its mark.
        let _ = inner.store.advance(&step(digest), &[]).await?;
        (known.baseline, known.changed) = (Some(files), None);
        return Ok(());
    }
    let now = Instant::now();
    let since = match &known.changed {
        Some((last, since)) if *last == digest => *since,
        _ => now,
    };
    known.changed = Some((digest.clone(), since));
    if now.duration_since(since) < source.debounce {
        return Ok(());
    }
    let names = changed_names(known.baseline.as_ref(), &files);
    let firing = firing_of(trigger, &names, &digest, row.version);
    if inner.store.advance(&step(digest), &[firing]).await? == Outcome::Applied {
        inner.pending.notify_one();
    }
    (known.baseline, known.changed) = (Some(files), None);
    Ok(())
}

/// Returns the directory of a project, or `None` if it is not on this machine.
async fn directory_of(inner: &Inner, project: &str) -> Result<Option<Utf8PathBuf>, StoreError> {
    let path = match Trigger::directory_of(project) {
        Some(path) => path.to_owned(),
        None => match inner.runs.instance(project).await? {
            Some(instance) => instance.path,
            None => return Ok(None),
        },
    };
    Ok(is_there(inner, &path).await.then_some(path))
}

/// Whether a directory is on this machine.
pub(super) async fn is_there(inner: &Inner, path: &Utf8Path) -> bool {
    let of = path.to_owned();
    inner.supervisor.workspace_io().run(path, move || of.is_dir()).await.unwrap_or(false)
}

/// Whether a firing of the trigger waits or its run is active.
async fn is_busy(inner: &Inner, name: &str) -> Result<bool, StoreError> {
    let filter = FiringFilter { trigger: Some(name.to_owned()), limit: RECENT, ..FiringFilter::default() };
    for firing in inner.store.firings(&filter).await? {
        let is_active = match (&firing.state, &firing.run) {
            (FiringState::Pending, _) => true,
            (FiringState::Started, Some(run)) => {
                inner.runs.run(run).await?.is_some_and(|run| !run.life.state.is_final())
            }
            _ => false,
        };
        if is_active {
            return Ok(true);
        }
    }
    Ok(false)
}

fn read(dir: &Utf8Path, glob: &cliq_workflow::Glob) -> Files {
    let mut files = Files::new();
    let is_ignored = |name: &std::ffi::OsStr| name == ".git" || name == ".cliq";
    let walk = WalkBuilder::new(dir)
        .hidden(false)
        .require_git(false)
        .filter_entry(move |entry| !is_ignored(entry.file_name()))
        .build();
    for entry in walk.filter_map(Result::ok) {
        let Some(path) = Utf8Path::from_path(entry.path()).and_then(|path| path.strip_prefix(dir).ok())
        else {
            continue;
        };
        if !glob.matches(path) {
            continue;
        }
        if let Ok(meta) = entry.metadata()
            && meta.is_file()
        {
            files.insert(path.to_owned(), (meta.len(), meta.mtime(), meta.mtime_nsec(), meta.ino()));
        }
    }
    files
}

fn digest(files: &Files) -> String {
    digest_of(serde_json::to_string(&files.iter().collect::<Vec<_>>()).unwrap_or_default().as_bytes())
}

/// Names of files that were added, changed or removed. Empty if the state before is not known.
fn changed_names(before: Option<&Files>, after: &Files) -> Vec<String> {
    let Some(before) = before else { return Vec::new() };
    let changed = after.iter().filter(|(path, state)| before.get(*path) != Some(state)).map(|(path, _)| path);
    let removed = before.keys().filter(|path| !after.contains_key(*path));
    let mut names: Vec<String> = changed.chain(removed).map(ToString::to_string).take(MAX_NAMED).collect();
    names.sort();
    names
}

fn firing_of(trigger: &Trigger, names: &[String], digest: &str, version: i64) -> NewFiring {
    let now = cliq_fs::now();
    let cause = match names {
        [] => "files changed".to_owned(),
        [name] => format!("{name} changed"),
        [name, rest @ ..] => format!("{name} and {} other files changed", rest.len()),
    };
    let payload = json!({"files": names, "now": now.to_string()}).to_string();
    NewFiring {
        trigger: trigger.name.clone(),
        at: now,
        cause: cause.chars().filter(|c| !c.is_control()).take(300).collect(),
        // The same state may come again: the version of the mark tells the changes apart.
        key: format!("files:{version}:{digest}"),
        content_key: None,
        digest: digest.to_owned(),
        payload,
        depth: 1,
        skipped: None,
    }
}
