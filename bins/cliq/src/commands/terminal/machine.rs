//! The runs of this machine as a source of the screen: the files of projects, and the server if one runs.

use std::collections::{BTreeMap, HashMap};
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use cliq_model::{RunFilter, RunStore};
use cliq_orchestrator::TmuxServer;
use cliq_project::{Host, LauncherKind, Project, RunLister, RunListing};
use cliq_protocol::{RunId, Timestamp};
use cliq_store::Location;
use cliq_terminal::{
    Action, ActionResult, ChangedPart, Changes, Offers, ReviewDetail, RunDetail, RunKey, RunList, Source,
    TextPart, TextRequest,
};
use cliq_web::RunSummary;
use serde_json::{Value, json};

use super::detail::{FollowedRun, add_pending, layers, of_document};
use super::server_api::ServerApi;
use super::{actions, rows, starts, texts};
use crate::commands::review;
use crate::failure::Failure;
use crate::gateway::{self, block_on};

/// Number of earlier runs that are read at once.
const EARLIER: usize = 64;
/// Time after which runs of a stopped server are read again.
const STORED: Duration = Duration::from_secs(10);
/// Number of runs that are asked of the server.
const OF_SERVER: u32 = 200;

/// Runs of this machine.
pub(crate) struct Machine {
    pub(super) host: Host,
    /// Project of the directory in which the program was started.
    pub(super) here: Option<Utf8PathBuf>,
    pub(super) server: ServerApi,
    lister: Mutex<RunLister>,
    known: Mutex<HashMap<RunKey, KnownRun>>,
    followed: Mutex<Option<FollowedRun>>,
    /// Runs of a server that has stopped, with the time of reading.
    stored: Mutex<Option<(Instant, Vec<Value>)>>,
    cached: Mutex<Option<CachedList>>,
}

/// Runs of the server.
#[derive(Debug, PartialEq)]
struct ServerPage {
    /// Documents of its API.
    runs: Vec<Value>,
    /// Questions to people by the ids of the runs.
    questions: BTreeMap<String, String>,
    /// Whether it has more runs.
    has_more: bool,
    /// Whether no server runs.
    is_stopped: bool,
}

/// List with what it was made of.
#[derive(Debug)]
struct CachedList {
    listing: Arc<RunListing>,
    page: Result<ServerPage, String>,
    list: Arc<RunList>,
}

/// Place of a run in the list.
#[derive(Debug, Clone)]
pub(super) struct KnownRun {
    pub(super) id: String,
    /// Workspace, if it is known.
    pub(super) workspace: Option<Utf8PathBuf>,
    pub(super) is_last: bool,
    pub(super) is_on_server: bool,
    pub(super) is_parked: bool,
}

impl KnownRun {
    /// Project of the run.
    pub(super) fn project(&self, host: &Host) -> Result<Project, String> {
        let workspace = self.workspace.as_ref().ok_or("the workspace of the run is not known")?;
        Project::open(workspace, host.clone()).map_err(|error| error.to_string())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sentence of a failure, in one line.
pub(super) fn sentence(failure: &Failure) -> String {
    failure.sentences().replace('\n', "; ")
}

impl Machine {
    pub(crate) fn new(host: Host, here: Option<Utf8PathBuf>) -> Self {
        let lister = RunLister::new(host.clone());
        let lister = match &here {
            Some(here) => lister.with_project(here),
            None => lister,
        };
        Self {
            host,
            here,
            server: ServerApi::new(),
            lister: Mutex::new(lister),
            known: Mutex::new(HashMap::new()),
            followed: Mutex::new(None),
            stored: Mutex::new(None),
            cached: Mutex::new(None),
        }
    }

    /// Runs of files and server; reads at most `limit` earlier ones anew.
    pub(crate) fn list(&self, limit: usize) -> Arc<RunList> {
        let listing = lock(&self.lister).list(limit);
        let page = self.page_of_server();
        let today = today();
        let mut cached = lock(&self.cached);
        if let Some(cached) = cached.as_ref()
            && Arc::ptr_eq(&cached.listing, &listing)
            && cached.page == page
            && cached.list.today == today
        {
            return Arc::clone(&cached.list);
        }
        let mut known = HashMap::new();
        let mut list = RunList {
            is_partial: listing.is_partial,
            problems: listing.problems.clone(),
            today,
            ..RunList::default()
        };
        for run in &listing.runs {
            let row = rows::of_files(run);
            known.insert(
                row.key.clone(),
                KnownRun {
                    id: row.id.clone(),
                    workspace: Some(run.workspace.clone()),
                    is_last: run.is_last,
                    is_on_server: false,
                    is_parked: row.status == cliq_terminal::RunStatus::Parked,
                },
            );
            list.runs.push(row);
        }
        match &page {
            Ok(page) => self.add_runs_of_server(page, &mut list, &mut known),
            Err(problem) => list.problems.push(problem.clone()),
        }
        *lock(&self.known) = known;
        let list = Arc::new(list);
        *cached = Some(CachedList { listing, page, list: Arc::clone(&list) });
        list
    }

    /// Runs of the server with their questions; of one that has stopped as it left them.
    fn page_of_server(&self) -> Result<ServerPage, String> {
        let Some(mut page) = self.server.get(&format!("/runs?limit={OF_SERVER}"))? else {
            let runs = self.stored_runs()?;
            let has_more = runs.len() >= OF_SERVER as usize;
            return Ok(ServerPage { runs, questions: BTreeMap::new(), has_more, is_stopped: true });
        };
        *lock(&self.stored) = None;
        let has_more = page["next"].is_string();
        let runs = page["runs"].as_array_mut().map(std::mem::take).unwrap_or_default();
        let is_active = |run: &Value| rows::of_api(run).is_some_and(|row| row.status.is_active());
        let mut questions = BTreeMap::new();
        if runs.iter().any(is_active)
            && let Some(page) = self.server.get("/reviews?pending=true")?
        {
            let reviews = page["reviews"].as_array().into_iter().flatten();
            questions = reviews.filter_map(rows::question_of_api).collect();
        }
        Ok(ServerPage { runs, questions, has_more, is_stopped: false })
    }

    fn add_runs_of_server(
        &self,
        page: &ServerPage,
        list: &mut RunList,
        known: &mut HashMap<RunKey, KnownRun>,
    ) {
        let before = lock(&self.known).clone();
        let (mut waits, mut unreadable) = (false, 0);
        for run in &page.runs {
            let Some(mut row) = rows::of_api(run) else {
                unreadable += 1;
                continue;
            };
            let is_of_project = run["origin"].as_str() == Some("project");
            waits |= row.status.is_active();
            let found = list.runs.iter().position(|other| other.key == row.key);
            if is_of_project {
                // A person started it: files and commands of the project are the shorter way.
                if found.is_some() {
                    continue;
                }
            }
            let written = run["workspace"].as_str().map(Utf8PathBuf::from);
            let mut workspace = written.or_else(|| before.get(&row.key)?.workspace.clone());
            if let Some(found) = found {
                let files = list.runs.swap_remove(found);
                row.words = files.words;
                row.needs = files.needs;
                row.is_last = files.is_last;
                row.project = files.project;
                workspace = Some(Utf8PathBuf::from(&files.place));
                row.place = files.place;
            }
            known.insert(
                row.key.clone(),
                KnownRun {
                    id: row.id.clone(),
                    workspace,
                    is_last: row.is_last,
                    is_on_server: true,
                    is_parked: row.status == cliq_terminal::RunStatus::Parked,
                },
            );
            list.runs.push(row);
        }
        if unreadable > 0 {
            list.problems
                .push(format!("{unreadable} runs of the server cannot be read by this version of cliq"));
        }
        if page.has_more {
            list.problems.push(format!("only the newest {OF_SERVER} runs of the server are shown"));
        }
        if waits && page.is_stopped {
            list.problems.push("no server is running: its runs are shown as it left them".to_owned());
        }
        for row in list.runs.iter_mut().filter(|row| row.is_on_server) {
            row.needs = page.questions.get(&row.id).cloned().or_else(|| row.needs.take());
        }
    }

    /// Runs of a server that has stopped, as its API has them. They are read again now and then.
    fn stored_runs(&self) -> Result<Vec<Value>, String> {
        let mut stored = lock(&self.stored);
        if let Some((at, runs)) = stored.as_ref()
            && at.elapsed() < STORED
        {
            return Ok(runs.clone());
        }
        // A database that does not exist is not made for a look.
        let location = gateway::location().map_err(|failure| sentence(&failure))?;
        let is_missing = matches!(&location, Location::Sqlite(path) if !path.exists());
        let runs = if is_missing {
            Vec::new()
        } else {
            let read = block_on(async {
                let filter = RunFilter { limit: OF_SERVER, ..RunFilter::default() };
                Ok(gateway::open().await?.runs(&filter).await?)
            });
            read.map_err(|failure| sentence(&failure))?
        };
        let runs = runs.iter().map(|run| {
            let mut value = json!(RunSummary::of(run));
            value["workspace"] = run.workspace.as_str().into();
            value
        });
        let runs: Vec<Value> = runs.collect();
        *stored = Some((Instant::now(), runs.clone()));
        Ok(runs)
    }

    /// Place of a run.
    pub(super) fn known(&self, run: &RunKey) -> Result<KnownRun, String> {
        lock(&self.known).get(run).cloned().ok_or_else(|| "the run is not there any more".to_owned())
    }

    /// Document of a run of the server. Its workspace is kept.
    pub(super) fn document(&self, run: &RunKey, known: &KnownRun) -> Result<Value, String> {
        let path = format!("/runs/{}", known.id);
        let document =
            self.server.get(&path)?.ok_or("no server is running: `cliq server start` starts one")?;
        if let Some(workspace) = document["workspace"].as_str()
            && let Some(known) = lock(&self.known).get_mut(run)
        {
            known.workspace = Some(workspace.into());
        }
        Ok(document)
    }

    /// Place of a run, with its workspace.
    fn with_workspace(&self, run: &RunKey) -> Result<KnownRun, String> {
        let known = self.known(run)?;
        if known.workspace.is_none() {
            self.document(run, &known)?;
        }
        self.known(run)
    }

    fn of_files(&self, known: &KnownRun) -> Result<RunDetail, String> {
        let id = RunId::parse(&known.id).map_err(|error| error.to_string())?;
        let mut followed = lock(&self.followed);
        if !followed.as_ref().is_some_and(|followed| followed.is(&id, known.is_last)) {
            *followed = Some(FollowedRun::new(known.project(&self.host)?, id, known.is_last));
        }
        followed.as_mut().map_or_else(|| Err(String::new()), FollowedRun::detail)
    }
}

/// Beginning of today in the zone of this machine.
fn today() -> Option<Timestamp> {
    let start = jiff::Zoned::now().start_of_day().ok()?;
    Some(Timestamp::from_unix_millis(start.timestamp().as_millisecond()))
}

/// Directory of the files of a run: `.cliq`, or its place in the history.
fn root_of(project: &Project, id: &str) -> Utf8PathBuf {
    let aside = project.dir().history().join(id);
    if aside.is_dir() { aside } else { project.dir().root().to_owned() }
}

impl Source for Machine {
    fn runs(&self) -> Result<Arc<RunList>, String> {
        Ok(self.list(EARLIER))
    }

    fn detail(&self, run: &RunKey) -> Result<RunDetail, String> {
        let known = self.known(run)?;
        if !known.is_on_server || ServerApi::record().is_none() {
            return self.of_files(&known);
        }
        let document = self.document(run, &known)?;
        let id = RunId::parse(&known.id).map_err(|error| error.to_string())?;
        let Ok(project) = self.known(run)?.project(&self.host) else {
            return Ok(of_document(&document, &BTreeMap::new()));
        };
        let layers = layers(&project, &id);
        let mut detail = of_document(&document, &layers);
        if let Some(workflow) = project.team_of_run(&id).and_then(|team| team.workflow()) {
            add_pending(&mut detail, &workflow, &layers);
        }
        Ok(detail)
    }

    fn text(&self, request: &TextRequest) -> Result<TextPart, String> {
        let known = self.with_workspace(&request.run)?;
        let project = known.project(&self.host)?;
        texts::part(&root_of(&project, &known.id), request).map_err(|error| error.to_string())
    }

    fn changes(&self, run: &RunKey, phase: Option<&str>, review: Option<&str>) -> Result<Changes, String> {
        let known = self.with_workspace(run)?;
        let project = known.project(&self.host)?;
        let mut changes = Changes::default();
        if let Some(review) = review {
            let detail = self.review(run, review)?;
            if !detail.content.diffs.is_empty() {
                let diffs = detail.content.diffs.iter().cloned();
                changes.parts = diffs.map(|diff| ChangedPart { title: None, diff }).collect();
                changes.review = Some(detail);
                return Ok(changes);
            }
            changes.remark =
                Some("the review shows no changes of a git repository: these are the run's".to_owned());
        }
        let id = RunId::parse(&known.id).map_err(|error| error.to_string())?;
        if let Some(phase) = phase.filter(|_| review.is_none()) {
            let parts = changed(&project, &id, Some(phase))?;
            if !parts.is_empty() {
                return Ok(Changes { parts, ..changes });
            }
            // Gates and commands have none.
            changes.remark = Some(format!("{phase} has no changes of its own: these are the run's"));
        }
        changes.parts = changed(&project, &id, None)?;
        Ok(changes)
    }

    fn review(&self, run: &RunKey, review: &str) -> Result<ReviewDetail, String> {
        let known = self.with_workspace(run)?;
        let project = known.project(&self.host)?;
        let read = block_on(async {
            let found = review::find_in(&project, review).await?;
            let content = found.reviews.content(&found.review.id).await?.unwrap_or_default();
            Ok(ReviewDetail { review: found.review, content })
        });
        read.map_err(|failure| sentence(&failure))
    }

    fn offers(&self, near: Option<&RunKey>) -> Result<Offers, String> {
        let near = near.and_then(|run| self.known(run).ok()).and_then(|known| known.workspace);
        starts::offers(
            &self.host,
            near.as_deref().filter(|place| is_registered(&self.host, place)),
            self.here.as_deref(),
        )
    }

    fn carry_out(&self, action: &Action) -> Result<ActionResult, String> {
        actions::carry_out(self, action).map_err(|failure| sentence(&failure))
    }

    fn attach(&self, run: &RunKey, phase: Option<&str>) -> Result<Command, String> {
        let known = self.with_workspace(run)?;
        let project = known.project(&self.host)?;
        LauncherKind::require_tmux().map_err(|error| error.to_string())?;
        let server = TmuxServer::of(project.dir());
        if !known.is_last || !server.is_running() {
            return Err("the run has no panes: it works without tmux, or in a container".to_owned());
        }
        if let Some(phase) = phase
            && !server.show(phase).map_err(|error| error.to_string())?
        {
            return Err(format!(
                "{phase} has no pane: it has not started, or its pane was needed for another"
            ));
        }
        let session = server.shown_session().map_err(|error| error.to_string())?;
        let mut command = server.command();
        command.args(["attach-session", "-t", &session]);
        Ok(command)
    }
}

fn is_registered(host: &Host, workspace: &Utf8Path) -> bool {
    host.registered_projects().iter().any(|project| project == workspace)
}

/// Changed files of a run, or of each activation of a phase and its items. Empty if it has no checkpoints of its own.
fn changed(project: &Project, id: &RunId, phase: Option<&str>) -> Result<Vec<ChangedPart>, String> {
    let activations = match cliq_web::changed_files(project, id, phase) {
        Ok(activations) => activations,
        Err(problem) if phase.is_some() && problem.status == NOT_FOUND => return Ok(Vec::new()),
        Err(problem) => return Err(problem.detail),
    };
    let has_titles = activations.len() > 1;
    let mut parts = Vec::new();
    let mut read = 0;
    for activation in activations {
        let name = activation.activation.map(|number| format!("{}.{number}", activation.phase));
        let of = name.as_deref().or(phase);
        for mut diff in activation.diffs {
            // Large changes come without their lines: those of the first files are read one by one.
            let paths: Vec<String> = diff.files.iter().map(|file| diff.path_of(file)).collect();
            for (file, path) in diff.files.iter_mut().zip(&paths) {
                let is_left_out = file.hunks.is_empty() && !file.binary && file.added + file.removed > 0;
                if is_left_out && read < LARGE_FILES {
                    read += 1;
                    *file =
                        cliq_web::changed_file(project, id, of, path).map_err(|problem| problem.detail)?;
                }
            }
            let title = name.clone().filter(|_| has_titles);
            parts.push(ChangedPart { title, diff });
        }
    }
    Ok(parts)
}

/// Status of a problem about checkpoints that do not exist.
const NOT_FOUND: u16 = 404;
/// Number of files of large changes whose lines are read.
const LARGE_FILES: usize = 40;
