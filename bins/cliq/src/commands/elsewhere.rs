//! Runs that work elsewhere, in a container or a cluster: where, with which arguments, and how they are shown here.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use cliq_fs::{CliqDir, FollowerLock, PipelineStatus, ProjectLock, clear_status, read_status};
use cliq_orchestrator::{Journal, Record, RunView};
use cliq_project::{PlanAgent, Project, RunStart, Settings, SharedPath};
use cliq_protocol::Timestamp;
use cliq_workflow::ValidatedWorkflow;

use super::run::interrupted;
use crate::args::RunArgs;
use crate::failure::Failure;
use crate::render::{progress::Progress, summary};
use crate::ui;

/// How long a run has to end, beside what its agents have, before it is ended by force.
pub(super) const GRACE: Duration = Duration::from_secs(15);
/// How often is looked for a request to cancel while a run waits for its turn.
const LOOK: Duration = Duration::from_millis(200);

/// Where a run works that does not work on this machine itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Elsewhere {
    /// In a container.
    Docker,
    /// As a Job of a cluster.
    Kubernetes,
}

impl Elsewhere {
    /// Where a run is to work: what is asked for, else what the settings say, a cluster before a container. `None` is this machine.
    pub(super) fn of(args: &RunArgs, settings: &Settings) -> Result<Option<Self>, Failure> {
        match (args.kubernetes, args.docker, args.no_docker) {
            (true, _, _) => Self::usable(Some(Self::Kubernetes)),
            (_, true, _) => Self::usable(Some(Self::Docker)),
            (_, _, true) => Ok(None),
            _ => Self::of_settings(settings),
        }
    }

    /// Where runs work by the settings.
    pub(super) fn of_settings(settings: &Settings) -> Result<Option<Self>, Failure> {
        Self::usable(if settings.flag("kubernetes.enabled") {
            Some(Self::Kubernetes)
        } else {
            settings.flag("docker.enabled").then_some(Self::Docker)
        })
    }

    fn usable(place: Option<Self>) -> Result<Option<Self>, Failure> {
        match place {
            Some(place @ Self::Docker) if !cfg!(feature = "docker") => Err(place.missing()),
            Some(place @ Self::Kubernetes) if !cfg!(feature = "kubernetes") => Err(place.missing()),
            place => Ok(place),
        }
    }

    /// This program cannot work there.
    pub(super) fn missing(self) -> Failure {
        Failure::failed(format!("this cliq was built without runs in {}", self.name()))
            .hint("`cliq run --no-docker` works on this machine")
    }

    /// The option that asks for it.
    pub(super) fn flag(self) -> &'static str {
        match self {
            Self::Docker => "--docker",
            Self::Kubernetes => "--kubernetes",
        }
    }

    /// How a sentence names it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Docker => "a container",
            Self::Kubernetes => "a cluster",
        }
    }
}

/// The id of the last run, from its journal.
pub(super) fn last_run_id(project: &Project) -> Result<Option<String>, Failure> {
    let journal = Journal::read(&project.dir().journal())?;
    Ok(journal.and_then(|journal| journal.run_id().map(str::to_owned)))
}

/// A run that is to work elsewhere, or works there already.
pub(super) struct Wanted<'a> {
    pub(super) project: &'a Project,
    pub(super) workflow: &'a ValidatedWorkflow,
    pub(super) settings: &'a Settings,
    /// The agent of a plan, where the run is its.
    pub(super) plan_agent: Option<&'a PlanAgent>,
    pub(super) run_id: String,
    /// Whether it works already, and is only followed.
    pub(super) is_living: bool,
    /// The arguments of the cliq that works elsewhere, after those of `cliq contained`.
    pub(super) arguments: Vec<String>,
    pub(super) json: bool,
    pub(super) headless: bool,
}

impl<'a> Wanted<'a> {
    /// A run of `cliq run`. `living` is the id of one that works already.
    pub(super) fn of_run(
        project: &'a Project,
        workflow: &'a ValidatedWorkflow,
        settings: &'a Settings,
        args: &RunArgs,
        start: &RunStart,
        living: Option<String>,
    ) -> Result<Self, Failure> {
        let is_living = living.is_some();
        let run_id = match (living.or_else(|| args.run_id.clone()), start) {
            (Some(id), _) => id,
            (None, RunStart::Resume { .. }) => last_run_id(project)?.unwrap_or_else(new_run_id),
            (None, RunStart::Fresh) => new_run_id(),
        };
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let mut arguments = words(&["--", "run", "--headless", "--json", "--no-docker", "--yes"]);
        match start {
            RunStart::Fresh => arguments.extend(words(&["--force", "--run-id", &run_id])),
            RunStart::Resume { from: None } => arguments.push("--resume".to_owned()),
            RunStart::Resume { from: Some(from) } => arguments.extend(words(&["--from", from])),
        }
        arguments.extend(args.choices());
        if let Some(instance) = &args.a2a_events {
            arguments.extend(words(&["--a2a-events", instance]));
        }
        let (json, headless, plan_agent) = (args.json, args.headless, None);
        Ok(Self { project, workflow, settings, plan_agent, run_id, is_living, arguments, json, headless })
    }

    /// A run of `cliq agent plan`. `living` is the id of one that works already.
    pub(super) fn of_plan_agent(agent: &'a PlanAgent, living: Option<String>) -> Self {
        let is_living = living.is_some();
        let run_id = living.unwrap_or_else(new_run_id);
        let dir = agent.project().dir().root().as_str();
        Self {
            project: agent.project(),
            workflow: agent.workflow(),
            settings: agent.settings(),
            plan_agent: Some(agent),
            is_living,
            arguments: ["--", "agent", "plan", "--here", dir, "--run-id", &run_id].map(str::to_owned).into(),
            run_id,
            json: false,
            headless: true,
        }
    }

    /// The variables of this host that it may need.
    pub(super) fn variables(&self) -> Result<BTreeMap<String, String>, Failure> {
        Ok(match self.plan_agent {
            Some(agent) => agent.variables_for_container()?,
            None => self.project.variables_for_container()?,
        })
    }

    /// What it needs beside its workspace.
    pub(super) fn paths(&self) -> Vec<SharedPath> {
        match self.plan_agent {
            Some(agent) => agent.paths_for_container(),
            None => self.project.paths_for_container(),
        }
    }

    /// What a person reads of a run whose process exited.
    pub(super) fn exited(&self, shown: &Shown, code: u8) -> Result<ExitCode, Failure> {
        if !self.json && shown.end().is_some() {
            summary::show(&shown.view, self.project)?;
        }
        Ok(ExitCode::from(code))
    }
}

fn new_run_id() -> String {
    uuid::Uuid::now_v7().to_string()
}

/// Finds the run with this id, else the last run, where it works elsewhere already.
#[cfg_attr(not(any(feature = "docker", feature = "kubernetes")), allow(unused_variables))]
pub(super) fn find_living(
    place: Elsewhere,
    project: &Project,
    settings: &Settings,
    run_id: Option<&str>,
) -> Result<Option<String>, Failure> {
    Ok(match place {
        // Containers are of this machine, and so are locks.
        #[cfg(feature = "docker")]
        Elsewhere::Docker if ProjectLock::holder(project.dir())?.is_some() => {
            super::docker::find_living(project, settings)?
        }
        // Who asks may be on another node than the run, where its lock is not seen.
        #[cfg(feature = "kubernetes")]
        Elsewhere::Kubernetes => super::kubernetes::find_living(project, settings, run_id)?,
        _ => None,
    })
}

/// Runs it, and shows what it does; or follows what works already.
#[cfg_attr(not(any(feature = "docker", feature = "kubernetes")), allow(unused_variables))]
pub(super) fn run(place: Elsewhere, wanted: &Wanted<'_>) -> Result<ExitCode, Failure> {
    match place {
        #[cfg(feature = "docker")]
        Elsewhere::Docker => super::docker::run(wanted),
        #[cfg(feature = "kubernetes")]
        Elsewhere::Kubernetes => super::kubernetes::run(wanted),
        #[cfg(not(all(feature = "docker", feature = "kubernetes")))]
        place => Err(place.missing()),
    }
}

/// What was not done goes on by this.
pub(super) const RESUME: &str = "`cliq run --resume` goes on where it stopped";

/// The run was ended for want of memory. `key` is the setting that says how much it has.
pub(super) fn out_of_memory(memory: u64, key: &str) -> Failure {
    let memory = cliq_http::size(memory);
    Failure::failed(format!("the run was ended for want of memory: it has {memory} (`{key}`)")).hint(RESUME)
}

/// Warns that a process of the run, and not the run, was ended for want of memory.
pub(super) fn warn_of_memory(memory: u64, key: &str) {
    let memory = cliq_http::size(memory);
    ui::warning(&format!("a process of the run was ended for want of memory: it has {memory} (`{key}`)"));
}

/// Takes the project for the follower of a run: no other is started beside it, and `cliq cancel` reaches it before the run begins.
///
/// A run that works already may have several followers: then this one goes without the lock.
pub(super) fn take_project(dir: &CliqDir, is_living: bool) -> Result<Option<FollowerLock>, Failure> {
    match FollowerLock::acquire(dir) {
        Err(_) if is_living => Ok(None),
        lock if is_living => Ok(lock.ok()),
        lock => {
            let lock = lock?;
            drop(ProjectLock::acquire(dir)?);
            // How the last run ended is no request to cancel this one.
            clear_status(dir)?;
            Ok(Some(lock))
        }
    }
}

/// What is said of a run that was cancelled before it began.
pub(super) fn not_begun(dir: &CliqDir) -> Result<ExitCode, Failure> {
    clear_status(dir)?;
    ui::warning("cancelled before the run began");
    Ok(ExitCode::from(130))
}

/// Waits until a person cancels the run: by a signal, or by `cliq cancel`.
pub(super) async fn cancelled(dir: &CliqDir) {
    let asked = async {
        while read_status(dir) != Some(PipelineStatus::Cancelled) {
            tokio::time::sleep(LOOK).await;
        }
    };
    tokio::select! {
        () = asked => {}
        () = interrupted() => {}
    }
}

/// The run as it is shown here.
pub(super) struct Shown {
    view: RunView,
    progress: Progress,
    reader_is_gone: bool,
    /// When what `view` has already ends, where that comes again.
    seen: Option<Timestamp>,
    /// Whether `view` is of what is followed, and not of what the run did before.
    has_begun: bool,
}

impl Shown {
    /// `repeats` says that what was recorded of the run before comes again.
    pub(super) fn new(wanted: &Wanted<'_>, repeats: bool) -> Result<Self, Failure> {
        let (workflow, run_id) = (wanted.workflow, wanted.run_id.as_str());
        let last = wanted.project.last_run(workflow)?.filter(|(journal, _)| journal.run_id() == Some(run_id));
        let newest = last.as_ref().and_then(|(journal, _)| Some(journal.records.last()?.ts.clone()));
        Ok(Self {
            has_begun: wanted.is_living && last.is_some(),
            view: last.map_or_else(|| RunView::new(workflow), |(_, view)| view),
            progress: Progress::new(wanted.json, wanted.headless),
            reader_is_gone: false,
            seen: newest.filter(|_| repeats),
        })
    }

    /// Whether it has begun, or gone on, since it is followed.
    #[cfg(feature = "kubernetes")]
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// How it ended, where its journal says so.
    pub(super) fn end(&self) -> Option<PipelineStatus> {
        self.view.pipeline_status().filter(|_| self.has_begun)
    }

    /// Shows an event of the run, where it was not there before.
    pub(super) fn record(&mut self, record: &Record) {
        if self.seen.as_ref().is_some_and(|seen| record.ts.as_str() <= seen.as_str()) {
            return;
        }
        self.has_begun = true;
        self.view.apply(record);
        self.reader_is_gone = self.reader_is_gone || self.progress.show(record, &self.view).is_err();
    }

    /// Shows what its cliq said beside its events.
    #[cfg(feature = "kubernetes")]
    pub(super) fn say(&self, words: &str) {
        for line in words.lines().filter(|line| Record::decode(line.as_bytes()).is_err()) {
            let _ = writeln!(std::io::stderr(), "{}", ui::plain(line));
        }
    }

    /// Shows a line that its cliq prints: an event, or what it says beside.
    #[cfg(feature = "docker")]
    pub(super) fn line(&mut self, is_stdout: bool, line: &str) {
        match (is_stdout, Record::decode(line.as_bytes())) {
            (true, Ok(record)) => self.record(&record),
            // Warnings, and why it could not begin.
            _ => drop(writeln!(std::io::stderr(), "{}", ui::plain(line))),
        }
    }
}
