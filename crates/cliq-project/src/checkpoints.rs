//! Checkpoints of a project's workspace (docs/checkpoints.md).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use cliq_git::checkpoints::{
    Change, Checkpoint, CheckpointError, DifferenceForm, Label, Limits, Moment, Restored, Store,
};
use cliq_orchestrator::internals::repositories;
use cliq_orchestrator::{CheckpointOf, Checkpoints, Journal};
use cliq_protocol::{ChangedLines, RunId, Timestamp};
use cliq_review::numstat;
use cliq_settings::{CheckpointSettings, Settings};

use crate::{Project, ProjectError};

/// Time between two prunings of a store.
const PRUNE_EVERY: Duration = Duration::from_secs(24 * 3600);

/// Checkpoints of the runs of a project.
#[derive(Debug)]
struct ProjectCheckpoints {
    store: Store,
    has_begun: AtomicBool,
}

impl Checkpoints for ProjectCheckpoints {
    fn take(&self, of: &CheckpointOf) -> Result<(), String> {
        let moment = if of.is_end { Moment::After } else { Moment::Before };
        let phase = of.phase.to_string();
        let label = Label { run: of.run_id.to_string(), phase, activation: of.activation, moment };
        let taken = self.store.take(&label, &cliq_fs::now().to_string());
        let pruned =
            if self.has_begun.swap(true, Ordering::Relaxed) { Ok(()) } else { prune_if_due(&self.store) };
        taken.map(drop).and(pruned).map_err(|error| error.to_string())
    }

    fn changed_so_far(&self, run_id: &RunId) -> Result<Option<ChangedLines>, String> {
        let text = |error: CheckpointError| error.to_string();
        let all = self.store.list().map_err(text)?;
        let mut of_run = all.iter().filter(|checkpoint| *run_id == checkpoint.label.run.as_str());
        let Some(from) = of_run.next() else { return Ok(None) };
        let to = of_run.next_back().unwrap_or(from);
        let repositories: BTreeSet<&str> =
            from.units.iter().chain(&to.units).map(|unit| unit.path.as_str()).collect();
        let mut changed = ChangedLines::default();
        for repository in repositories {
            let counts = self.store.differences(from, to, repository, &[], DifferenceForm::Counts);
            for file in numstat(&String::from_utf8_lossy(&counts.map_err(text)?)) {
                changed.files += 1;
                changed.lines_added += file.added;
                changed.lines_removed += file.removed;
            }
        }
        Ok(Some(changed))
    }

    fn changed(&self, of: &CheckpointOf) -> Result<Option<Vec<String>>, String> {
        let (run, phase) = (of.run_id.to_string(), of.phase.to_string());
        let all = self.store.list().map_err(|error| error.to_string())?;
        let at = |moment| {
            all.iter().rev().find(|checkpoint| {
                let label = &checkpoint.label;
                (&label.run, &label.phase, label.activation, label.moment)
                    == (&run, &phase, of.activation, moment)
            })
        };
        let (Some(from), Some(to)) = (at(Moment::Before), at(Moment::After)) else { return Ok(None) };
        let changes = self.store.changes(from, to).map_err(|error| error.to_string())?;
        let mut paths: Vec<String> = changes.into_iter().map(|change| change.path).collect();
        paths.sort();
        Ok(Some(paths))
    }
}

/// Checkpoints before and after an activation, or around a whole run.
#[derive(Debug)]
#[non_exhaustive]
pub struct ActivationChanges {
    /// Phase or item.
    pub phase: String,
    /// Number of the activation; `None` for the whole run.
    pub activation: Option<u32>,
    /// Checkpoint before.
    pub from: Checkpoint,
    /// Checkpoint after.
    pub to: Checkpoint,
}

impl Project {
    /// Checkpoints for a run, or `None` if the settings or the workspace do not ask for any.
    pub(crate) fn checkpoints(&self, settings: &Settings) -> Option<Arc<dyn Checkpoints>> {
        let store = self.checkpoint_store(settings).ok()?;
        Some(Arc::new(ProjectCheckpoints { store, has_begun: AtomicBool::new(false) }))
    }

    /// Returns the store of checkpoints of the workspace.
    ///
    /// # Errors
    /// Returns an error if no checkpoints are taken: the setting `checkpoints.enabled` is off, or the workspace is not a git repository and
    /// `checkpoints.always` is off.
    pub fn checkpoint_store(&self, settings: &Settings) -> Result<Store, ProjectError> {
        // All fields are named, so a new setting does not compile until it has a use here.
        let CheckpointSettings { enabled, always, max_file, max_age, max_size } =
            CheckpointSettings::read(settings);
        if !enabled {
            return Err(ProjectError::NoCheckpoints("the setting `checkpoints.enabled` is false".to_owned()));
        }
        let workspace = self.dir().workspace();
        let has_repository = |dir: &camino::Utf8Path| dir.join(".git").exists();
        let found = repositories(workspace).into_iter().filter(|dir| has_repository(dir));
        let mut roots: Vec<String> =
            found.filter_map(|dir| dir.strip_prefix(workspace).ok().map(ToString::to_string)).collect();
        if roots.is_empty() || !roots.contains(&String::new()) && always {
            if !always {
                let why = format!(
                    "{workspace} is not a git repository and contains none; `cliq settings set checkpoints.always true` stores it too"
                );
                return Err(ProjectError::NoCheckpoints(why));
            }
            roots.push(String::new());
        }
        let limits =
            Limits { max_file_bytes: max_file, max_age_secs: max_age.as_secs(), max_bytes: max_size };
        let store = Store::new(&self.dir().root().join("checkpoints.git"), workspace, &roots, limits);
        Ok(store.with_path(self.host().path()))
    }

    /// Id of the last run, for its checkpoints.
    ///
    /// # Errors
    /// Returns an error if nothing has run, or the journal cannot be read.
    pub fn last_run_id(&self) -> Result<RunId, ProjectError> {
        let journal = Journal::read(&self.dir().journal())?;
        let id = journal.as_ref().and_then(Journal::run_id).cloned();
        id.ok_or(ProjectError::NothingRan)
    }

    /// Returns the activations of a run with their checkpoints: those of the whole run, of a phase with its items, of an item, or one
    /// activation of a phase (`PHASE.N`).
    ///
    /// # Errors
    /// Returns an error if there are no checkpoints that fit.
    pub fn activation_changes(
        &self,
        store: &Store,
        run_id: &RunId,
        of: Option<&str>,
    ) -> Result<Vec<ActivationChanges>, ProjectError> {
        let all: Vec<Checkpoint> =
            store.list()?.into_iter().filter(|checkpoint| *run_id == checkpoint.label.run.as_str()).collect();
        let Some(of) = of else {
            let (Some(first), Some(last)) = (all.first(), all.last()) else {
                return Err(ProjectError::NoCheckpoint(format!("run {run_id} has no checkpoints")));
            };
            let (from, to) = (first.clone(), last.clone());
            return Ok(vec![ActivationChanges { phase: "run".to_owned(), activation: None, from, to }]);
        };
        let (phase, number) = match of.rsplit_once('.') {
            Some((phase, number)) => (phase, number.parse::<u32>().ok()),
            None => (of, None),
        };
        let is_item = all.iter().any(|checkpoint| checkpoint.label.phase == of);
        let fits = |label: &Label| {
            if is_item || number.is_none() {
                label.phase == of || number.is_none() && label.phase.split('.').next() == Some(of)
            } else {
                label.phase == phase && Some(label.activation) == number
            }
        };
        let mut found = Vec::new();
        for before in all.iter().filter(|c| c.label.moment == Moment::Before && fits(&c.label)) {
            let is_end = |c: &&Checkpoint| {
                c.label.moment == Moment::After
                    && c.label.phase == before.label.phase
                    && c.label.activation == before.label.activation
            };
            // An activation that was interrupted, or still works, ends with the newest state that is stored.
            let after = all.iter().rev().find(is_end).or(all.last());
            found.extend(after.map(|after| ActivationChanges {
                phase: before.label.phase.clone(),
                activation: Some(before.label.activation),
                from: before.clone(),
                to: after.clone(),
            }));
        }
        if found.is_empty() {
            let mut known: Vec<&str> = all.iter().map(|checkpoint| checkpoint.label.phase.as_str()).collect();
            known.sort_unstable();
            known.dedup();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            let why = format!("the last run has no checkpoint of `{of}`; it has checkpoints of: {known}");
            return Err(ProjectError::NoCheckpoint(why));
        }
        Ok(found)
    }

    /// Returns the checkpoint before a phase first started in a run.
    ///
    /// # Errors
    /// Returns an error if there is none.
    pub fn checkpoint_before(
        &self,
        store: &Store,
        run_id: &RunId,
        phase: &str,
    ) -> Result<Checkpoint, ProjectError> {
        let is_first = |checkpoint: &Checkpoint| {
            let label = &checkpoint.label;
            *run_id == label.run.as_str()
                && label.moment == Moment::Before
                && label.phase.split('.').next() == Some(phase)
        };
        let found = store.list()?.into_iter().find(is_first);
        found.ok_or_else(|| {
            ProjectError::NoCheckpoint(format!("the last run has no checkpoint from before `{phase}`"))
        })
    }

    /// Returns what would be lost if a checkpoint were restored: files that would be changed or removed. Stores the present state to find
    /// that out.
    ///
    /// # Errors
    /// Returns an error if git fails.
    pub fn losses(&self, store: &Store, to: &Checkpoint) -> Result<Vec<Change>, ProjectError> {
        let now = store.take(&self.restore_label(to), &cliq_fs::now().to_string())?;
        Ok(store.changes(&now, to)?)
    }

    /// Restores a checkpoint. The present state is stored first.
    ///
    /// # Errors
    /// Returns an error if git or a file fails.
    pub fn restore(&self, store: &Store, to: &Checkpoint) -> Result<Restored, ProjectError> {
        Ok(store.restore(to, &self.restore_label(to), &cliq_fs::now().to_string())?)
    }

    fn restore_label(&self, to: &Checkpoint) -> Label {
        Label { moment: Moment::Restore, ..to.label.clone() }
    }
}

/// Removes old checkpoints, once a day.
fn prune_if_due(store: &Store) -> Result<(), CheckpointError> {
    let marker = store.dir().join("pruned");
    let age = std::fs::metadata(&marker).and_then(|metadata| metadata.modified());
    let is_due = age.is_ok_and(|at| SystemTime::now().duration_since(at).is_ok_and(|age| age > PRUNE_EVERY));
    if !marker.exists() {
        let _ = std::fs::write(&marker, "");
        return Ok(());
    }
    if !is_due {
        return Ok(());
    }
    let now = cliq_fs::now();
    let seconds = |ts: &str| Timestamp::parse(ts).map_or(0, |then| now.since(then).as_secs());
    store.prune(seconds)?;
    let _ = std::fs::write(&marker, "");
    Ok(())
}
