//! The status of a run, with the runs of team phases in it.
// A new outcome has to be handled by name.
#![deny(clippy::wildcard_enum_match_arm)]

use cliq_orchestrator::{PhaseView, RunView};
use cliq_protocol::PhaseKind;
use serde_json::{Value, json};

use crate::Project;

/// The state of a project's run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunState {
    /// Nothing has run.
    None,
    /// A run is under way.
    Running,
    /// The run is parked until a person answers, or until a point in time.
    Waiting,
    /// The orchestrator died before the run ended.
    Interrupted,
    /// Every phase is done.
    Completed,
    /// A phase could not be completed and a person is needed.
    Escalated,
    /// The orchestrator could not go on.
    Failed,
    /// The run was cancelled.
    Cancelled,
}

impl RunState {
    /// The state of a run, and of a project where `view` is `None`. `running` says whether the project's lock is held.
    #[must_use]
    pub fn of(view: Option<&RunView>, running: bool) -> Self {
        match (view.map(|view| view.status.as_deref()), running) {
            (None, false) => Self::None,
            (Some(Some("COMPLETED")), _) => Self::Completed,
            (Some(Some("ESCALATED")), _) => Self::Escalated,
            (Some(Some("FAILED")), _) => Self::Failed,
            (Some(Some("CANCELLED")), _) => Self::Cancelled,
            (_, true) => Self::Running,
            (Some(_), false) if view.is_some_and(|view| view.waiting.is_some()) => Self::Waiting,
            (Some(_), false) => Self::Interrupted,
        }
    }

    /// The word for it, as in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Interrupted => "interrupted",
            Self::Completed => "completed",
            Self::Escalated => "escalated",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// A row of the table of phases.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PhaseRow {
    /// Number of enclosing team phases.
    pub depth: usize,
    /// The phase.
    pub phase: PhaseView,
}

impl PhaseRow {
    /// Makes a row.
    #[must_use]
    pub fn new(depth: usize, phase: PhaseView) -> Self {
        Self { depth, phase }
    }
}

/// The status of a run, with the runs of team phases in it.
///
/// ```no_run
/// use cliq_project::{Environment, Host, Project, RunStatus};
///
/// let host = Host::new(Environment::of_process(), "/usr/local/bin/cliq".into());
/// let project = Project::open("/home/ada/shop".into(), host)?;
/// if let Some((_, view)) = project.last_run(&project.workflow()?)? {
///     for row in RunStatus::new(&view, &project).rows() {
///         println!("{}{}: {}", "  ".repeat(row.depth), row.phase.name, row.phase.status.as_str());
///     }
/// }
/// # Ok::<(), cliq_project::ProjectError>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct RunStatus<'a> {
    /// The run.
    pub view: &'a RunView,
    /// Project of the run.
    pub project: &'a Project,
}

impl<'a> RunStatus<'a> {
    /// Returns the status of a run of a project.
    #[must_use]
    pub fn new(view: &'a RunView, project: &'a Project) -> Self {
        Self { view, project }
    }

    /// All phases, those of the team of a team phase after it.
    #[must_use]
    pub fn rows(&self) -> Vec<PhaseRow> {
        let mut rows = Vec::new();
        for phase in &self.view.phases {
            rows.push(PhaseRow { depth: 0, phase: phase.clone() });
            if let Some((inner, view)) = self.team_run(phase) {
                let inner_rows = RunStatus::new(&view, &inner).rows();
                rows.extend(inner_rows.into_iter().map(|row| PhaseRow { depth: row.depth + 1, ..row }));
            }
        }
        rows
    }

    /// The JSON document of `cliq status --json`, without `state` and `elapsed_ms`: each team phase has its team's run
    /// as `run`.
    #[must_use]
    pub fn document(&self) -> Value {
        let mut value = json!(self.view);
        if let Some(usage) = self.view.usage() {
            value["usage"] = json!(usage);
        }
        for (n, phase) in self.view.phases.iter().enumerate() {
            if let Some((inner, view)) = self.team_run(phase) {
                value["phases"][n]["run"] = RunStatus::new(&view, &inner).document();
            }
        }
        value
    }

    /// The run of a team phase's team, once the phase has started.
    fn team_run(&self, phase: &PhaseView) -> Option<(Project, RunView)> {
        if phase.kind != PhaseKind::Team || phase.iterations == 0 {
            return None;
        }
        let inner = self.project.team_phase(&phase.name);
        let workflow = inner.workflow().ok()?;
        let (_, view) = inner.last_run(&workflow).ok()??;
        Some((inner, view))
    }
}
