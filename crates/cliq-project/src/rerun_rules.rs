//! The re-run rules (docs/exit-codes.md): whether a run may start anew after the last one.

use cliq_orchestrator::{PhaseStatus, RunView};
use cliq_protocol::{PhaseKind, PhaseName};

/// Whether a run may start anew after the last one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rerun {
    /// Allowed: nothing has run, or no agent had completed.
    Allowed,
    /// The last run completed. A new run needs a new requirement, or force.
    NothingLeft,
    /// The last run did not complete, but these phases with agents had. A new run would repeat their work: resume, or force.
    WorkDone(Vec<PhaseName>),
}

/// Returns the re-run rule after a run. `None` stands for no run.
#[must_use]
pub fn rerun_rule(last: Option<&RunView>) -> Rerun {
    let Some(last) = last else { return Rerun::Allowed };
    if last.completed() {
        return Rerun::NothingLeft;
    }
    let has_agent = |kind| matches!(kind, PhaseKind::Standard | PhaseKind::Team);
    let done: Vec<PhaseName> = last
        .phases
        .iter()
        .filter(|phase| has_agent(phase.kind) && phase.status == PhaseStatus::Completed)
        .map(|phase| phase.name.clone())
        .collect();
    if done.is_empty() { Rerun::Allowed } else { Rerun::WorkDone(done) }
}
