//! Files of a run that its page shows, read at once.

use cliq_model::Run;
use cliq_project::Project;
use cliq_protocol::PhaseKind;
use cliq_web::{HandoffSummary, LogFile, list_handoffs, list_logs, list_transcripts};

/// Files of a run that its page shows.
#[derive(Debug)]
pub(super) struct RunFiles {
    pub(super) handoffs: Vec<HandoffSummary>,
    pub(super) logs: Vec<LogFile>,
    pub(super) transcripts: Vec<LogFile>,
    pub(super) has_checkpoints: bool,
    /// Names of the phases of the project's team that have agents. `None` if the team cannot be read.
    pub(super) agent_phases: Option<Vec<String>>,
}

/// Returns the names of the phases of a project's team that have agents. `None` if the team cannot be read. Blocks.
pub(crate) fn agent_phases(project: &Project) -> Option<Vec<String>> {
    let workflow = project.workflow().ok()?;
    let phases = workflow.phases().map(|(_, phase)| phase);
    let with_agents = phases.filter(|phase| phase.kind != PhaseKind::Exec);
    Some(with_agents.map(|phase| phase.name.to_string()).collect())
}

impl RunFiles {
    /// Reads the files. Blocks.
    pub(super) fn read(run: &Run, project: &Project) -> Self {
        Self {
            handoffs: list_handoffs(run),
            logs: list_logs(run),
            transcripts: list_transcripts(run),
            has_checkpoints: run.workspace.join(".cliq/checkpoints.git/checkpoints.jsonl").is_file(),
            agent_phases: agent_phases(project),
        }
    }
}
