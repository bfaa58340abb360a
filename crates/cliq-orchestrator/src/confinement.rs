//! Restriction of processes (SPEC section 22): which files a process of a phase needs. Mechanisms are elsewhere.

use camino::Utf8PathBuf;
use cliq_protocol::Sandbox;
use cliq_workflow::Phase;

use crate::agents::AgentCommand;
use crate::launcher::Job;

/// Process of a phase that is about to start.
#[derive(Debug)]
pub struct PhaseProcess<'a> {
    /// Its phase.
    pub phase: &'a Phase,
    /// Its agent, or `None` for a command.
    pub agent: Option<&'a AgentCommand>,
    /// Directories that it writes: channels to other phases, and its files. They exist.
    pub directories: Vec<Utf8PathBuf>,
    /// Its signal file.
    pub signal_file: Utf8PathBuf,
}

/// Puts processes of a run into sandboxes.
pub trait Confinement: Send + Sync + std::fmt::Debug {
    /// Returns the job with its restrictions: unchanged if there are none.
    ///
    /// # Errors
    /// Returns the reason why it cannot be restricted. It must not start then.
    fn confine(&self, job: Job, process: &PhaseProcess<'_>) -> Result<Job, String>;

    /// Sandbox of a phase's commands or agent, for people.
    fn sandbox(&self, phase: &Phase, agent: Option<&AgentCommand>) -> Sandbox;

    /// Restriction that the system cannot enforce, if the settings permit that.
    fn warning(&self) -> Option<String>;
}
