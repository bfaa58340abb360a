//! The runs of all projects of a host, in a list that is read again and again.
// A new outcome has to be handled by name.
#![deny(clippy::wildcard_enum_match_arm)]

mod words;

pub use words::WordsTail;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::SystemTime;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::{CliqDir, FollowerLock, FsError, ProjectLock};
use cliq_model::Caveat;
use cliq_orchestrator::{Journal, JournalFollower, JournalUpdate, RunView};
use cliq_protocol::{ChangedLines, PhaseKind, RunId, Timestamp};
use serde_json::json;

use crate::{Host, Project, RunState, RunStatus};
use words::WordsReader;

/// Run of a project in a list.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ListedRun {
    /// Id.
    pub id: RunId,
    /// Workspace of its project.
    pub workspace: Utf8PathBuf,
    /// Title, if the run has one.
    pub title: Option<String>,
    /// Name of the team.
    pub team: String,
    /// State.
    pub state: RunState,
    /// Number of main phases that are done.
    pub phases_done: u32,
    /// Number of main phases, if it is known.
    pub phases_all: Option<u32>,
    /// Start time.
    pub started: Option<Timestamp>,
    /// End time; of an interrupted run the time of its last record.
    pub ended: Option<Timestamp>,
    /// Tokens of input.
    pub tokens_in: u64,
    /// Tokens of output.
    pub tokens_out: u64,
    /// Cost in US dollars, if it is known.
    pub cost_usd: Option<f64>,
    /// Changes to the workspace, if there are checkpoints.
    pub changed: Option<ChangedLines>,
    /// Question to a person, if a phase waits for one.
    pub asks: Option<String>,
    /// Last words of an agent at work, in one line.
    pub words: Option<String>,
    /// Whether it is the last run of its project.
    pub is_last: bool,
    /// Reasons why it is not a plain success.
    pub caveats: Vec<Caveat>,
    /// Reason why it did not complete.
    pub reason: Option<String>,
}

/// Runs, and whether some were not read yet.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct RunListing {
    /// Runs, in no order.
    pub runs: Vec<ListedRun>,
    /// Whether earlier runs remain to be read by the next call.
    pub is_partial: bool,
    /// Runs and projects that cannot be read, each with the reason.
    pub problems: Vec<String>,
}

/// Reader of the runs of all projects that are registered on a host. What has ended is read once; of an active run, only new records are read.
///
/// ```
/// use cliq_project::{Environment, Host, Project, RunLister};
///
/// # let place = tempfile::tempdir()?;
/// # let workspace = camino::Utf8Path::from_path(place.path()).ok_or("not UTF-8")?;
/// let host = Host::new(Environment::of_process(), "/usr/local/bin/cliq".into());
/// Project::init(workspace, host.clone())?;
/// let mut lister = RunLister::new(host).with_project(workspace);
/// let listing = lister.list(100);
/// assert!(listing.runs.iter().all(|run| run.workspace != workspace), "nothing has run there");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct RunLister {
    host: Host,
    /// Projects beside the registered ones.
    others: BTreeSet<Utf8PathBuf>,
    projects: HashMap<Utf8PathBuf, ListedProject>,
    /// Result of the last call.
    listing: Arc<RunListing>,
}

#[derive(Debug)]
struct ListedProject {
    project: Project,
    journal: JournalFollower,
    view: Option<RunView>,
    last_seen: Option<Timestamp>,
    caveats: Vec<Caveat>,
    words: WordsReader,
    /// Last run as it was listed.
    last: Option<ListedRun>,
    /// Names in the history when the directory was changed last.
    history: (Option<SystemTime>, Vec<String>),
    /// Earlier runs, with the reasons why some cannot be read.
    earlier: HashMap<String, Result<ListedRun, String>>,
}

impl RunLister {
    /// Returns a reader that has read nothing.
    #[must_use]
    pub fn new(host: Host) -> Self {
        Self { host, others: BTreeSet::new(), projects: HashMap::new(), listing: Arc::default() }
    }

    /// Adds a project that need not be registered.
    #[must_use]
    pub fn with_project(mut self, workspace: &Utf8Path) -> Self {
        self.others.insert(workspace.to_owned());
        self
    }

    /// Reads the runs: the last one of each project, and earlier ones of which at most `limit` are read anew, the newest first. Returns the value of
    /// the last call if nothing has changed. Blocks.
    pub fn list(&mut self, limit: usize) -> Arc<RunListing> {
        let mut workspaces: BTreeSet<Utf8PathBuf> = self.host.registered_projects().into_iter().collect();
        workspaces.extend(self.others.iter().cloned());
        let before = self.projects.len();
        self.projects.retain(|workspace, _| workspaces.contains(workspace));
        let mut has_changed = self.projects.len() != before;
        let mut is_partial = false;
        let mut problems = Vec::new();
        let mut limit = limit;
        for workspace in &workspaces {
            let listed = match self.projects.entry(workspace.clone()) {
                std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
                std::collections::hash_map::Entry::Vacant(entry) => {
                    match Project::open(entry.key(), self.host.clone()) {
                        Ok(project) => entry.insert(ListedProject::new(project)),
                        Err(error) => {
                            problems.push(error.to_string());
                            continue;
                        }
                    }
                }
            };
            let last = match listed.read_last() {
                Ok(last) => last,
                Err(problem) => {
                    problems.push(problem);
                    None
                }
            };
            has_changed |= last != listed.last;
            listed.last = last;
            let (changed, partial) = listed.read_earlier(&mut limit);
            has_changed |= changed;
            is_partial |= partial;
        }
        let listed = || workspaces.iter().filter_map(|workspace| self.projects.get(workspace));
        problems
            .extend(listed().flat_map(|listed| listed.earlier.values()).filter_map(|run| run.clone().err()));
        problems.sort();
        if has_changed || is_partial != self.listing.is_partial || problems != self.listing.problems {
            let runs =
                listed().flat_map(|listed| listed.last.iter().chain(listed.earlier.values().flatten()));
            self.listing = Arc::new(RunListing { runs: runs.cloned().collect(), is_partial, problems });
        }
        Arc::clone(&self.listing)
    }
}

impl ListedProject {
    fn new(project: Project) -> Self {
        Self {
            journal: JournalFollower::new(&project.dir().journal()),
            project,
            view: None,
            last_seen: None,
            caveats: Vec::new(),
            words: WordsReader::default(),
            last: None,
            history: (None, Vec::new()),
            earlier: HashMap::new(),
        }
    }

    /// Reads the last run. Returns `None` if nothing has run.
    ///
    /// # Errors
    /// Returns a sentence if its journal or a lock cannot be read.
    fn read_last(&mut self) -> Result<Option<ListedRun>, String> {
        let dir = self.project.dir();
        // The lock first: a run that ends in between is then shown as ended.
        let is_active = is_active(dir).map_err(|error| error.to_string())?;
        let news = self.journal.read().map_err(|error| error.to_string())?;
        if !matches!(news, JournalUpdate::More(_)) {
            (self.view, self.last_seen) = (None, None);
        }
        if let JournalUpdate::More(records) | JournalUpdate::Afresh(records) = news
            && !records.is_empty()
        {
            let view = self.view.get_or_insert_with(|| match self.project.workflow() {
                Ok(workflow) => RunView::new(&workflow),
                Err(_) => RunView::empty(),
            });
            records.iter().for_each(|record| view.apply(record));
            self.last_seen = records.last().and_then(|record| record.ts.time()).or(self.last_seen);
            self.caveats = if view.completed() {
                Caveat::of_document(&RunStatus::new(view, &self.project).document())
            } else {
                Vec::new()
            };
        }
        let Some(view) = &self.view else { return Ok(None) };
        let state = RunState::of(Some(view), is_active);
        let words = match state {
            RunState::Running => self.words.read(dir, view),
            RunState::None
            | RunState::Waiting
            | RunState::Interrupted
            | RunState::Completed
            | RunState::Escalated
            | RunState::Failed
            | RunState::Cancelled => None,
        };
        let Some(mut run) = listed(view, state, dir.workspace(), self.last_seen) else { return Ok(None) };
        (run.words, run.is_last) = (words, true);
        run.caveats.clone_from(&self.caveats);
        Ok(Some(run))
    }

    /// Reads earlier runs that are new: at most `limit`, which is counted down. Returns whether any changed, and whether some were not read.
    fn read_earlier(&mut self, limit: &mut usize) -> (bool, bool) {
        let history = self.project.dir().history();
        let changed = history.metadata().and_then(|meta| meta.modified()).ok();
        let mut has_changed = false;
        if self.history.0 != changed {
            let entries = history.read_dir_utf8().into_iter().flatten().filter_map(Result::ok);
            let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_owned()).collect();
            // Ids of runs grow with time.
            names.sort_by(|a, b| b.cmp(a));
            let before = self.earlier.len();
            let known: BTreeSet<&String> = names.iter().collect();
            self.earlier.retain(|name, _| known.contains(name));
            has_changed = self.earlier.len() != before;
            self.history = (changed, names);
        }
        if self.earlier.len() == self.history.1.len() {
            return (has_changed, false);
        }
        let workspace = self.project.dir().workspace();
        for name in &self.history.1 {
            if self.earlier.contains_key(name) {
                continue;
            }
            if *limit == 0 {
                return (has_changed, true);
            }
            *limit -= 1;
            has_changed = true;
            self.earlier.insert(name.clone(), read_earlier(&history.join(name), workspace));
        }
        (has_changed, false)
    }
}

/// Whether a process works on a run of the project, or follows one elsewhere.
fn is_active(dir: &CliqDir) -> Result<bool, FsError> {
    Ok(ProjectLock::holder(dir)?.is_some() || FollowerLock::holder(dir)?.is_some())
}

fn read_earlier(place: &Utf8Path, workspace: &Utf8Path) -> Result<ListedRun, String> {
    let journal = Journal::read(&place.join(CliqDir::JOURNAL)).map_err(|error| error.to_string())?;
    let journal = journal.ok_or_else(|| format!("{place} has no journal"))?;
    let view = RunView::of(&journal);
    let last_seen = journal.records.last().and_then(|record| record.ts.time());
    let run = listed(&view, RunState::of(Some(&view), false), workspace, last_seen);
    let mut run = run.ok_or_else(|| format!("the journal in {place} has no run"))?;
    run.caveats = Caveat::of_document(&json!(view));
    // An earlier run asks no person.
    run.asks = None;
    Ok(run)
}

fn listed(
    view: &RunView,
    state: RunState,
    workspace: &Utf8Path,
    last_seen: Option<Timestamp>,
) -> Option<ListedRun> {
    let usage = view.usage();
    let is_interrupted = state == RunState::Interrupted;
    let ended = view.ended_ms.map(Timestamp::from_unix_millis);
    // The phase around a team's phases has their review too.
    let waiting = view.phases.iter().filter(|phase| phase.kind != PhaseKind::Team);
    let waiting = waiting.filter_map(|phase| Some((phase, phase.review.as_ref()?)));
    let asks = waiting
        .map(|(phase, review)| match &review.asks {
            Some(asks) => format!("{}: {asks}", phase.name),
            None => format!("{} waits for {}", phase.name, review.reviewers.join(", ")),
        })
        .next();
    let asks = asks.or_else(|| {
        let team = view.phases.iter().find(|phase| phase.review.is_some())?;
        Some(format!("{} waits for an answer", team.name))
    });
    Some(ListedRun {
        id: view.run_id.clone()?,
        workspace: workspace.to_owned(),
        title: view.title.clone(),
        team: view.team.clone(),
        state,
        phases_done: view.done_count(),
        phases_all: view.phase_count,
        started: view.started_ms.map(Timestamp::from_unix_millis),
        ended: ended.or(last_seen.filter(|_| is_interrupted)),
        tokens_in: usage.as_ref().map_or(0, |usage| usage.tokens_in),
        tokens_out: usage.as_ref().map_or(0, |usage| usage.tokens_out),
        cost_usd: usage.and_then(|usage| usage.cost_usd),
        changed: view.changed,
        asks: asks.filter(|_| matches!(state, RunState::Running | RunState::Waiting)),
        words: None,
        is_last: false,
        caveats: Vec::new(),
        reason: view.reason.clone(),
    })
}
