//! Restriction of processes (docs/sandbox.md): which files a process of a phase needs. Mechanisms are elsewhere.

use std::sync::Arc;

use camino::Utf8PathBuf;
use cliq_protocol::Sandbox;
use cliq_workflow::Phase;

use crate::agents::AgentCommand;
use crate::launcher::Job;

/// Process of a phase that is about to start.
#[derive(Debug)]
#[non_exhaustive]
pub struct PhaseProcess<'a> {
    /// Its phase.
    pub phase: &'a Phase,
    /// Its agent, or `None` for a command.
    pub agent: Option<&'a AgentCommand>,
    /// Directories that it writes: channels to other phases, and its files. They exist.
    pub directories: Vec<Utf8PathBuf>,
    /// Its signal file.
    pub signal_file: Utf8PathBuf,
    /// Called with each refused access, such as `connect to example.com:443`.
    pub on_refusal: OnRefusal,
}

/// Recipient of refused accesses.
#[derive(Clone)]
pub struct OnRefusal(Arc<dyn Fn(String) + Send + Sync>);

impl OnRefusal {
    /// Makes a recipient.
    pub fn new(call: impl Fn(String) + Send + Sync + 'static) -> Self {
        Self(Arc::new(call))
    }

    /// Reports a refused access.
    pub fn report(&self, access: String) {
        (self.0)(access);
    }
}

impl std::fmt::Debug for OnRefusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OnRefusal")
    }
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

    /// Name of the mechanism, or `None` if nothing is enforced.
    fn mechanism(&self) -> Option<&'static str>;

    /// Restriction that the system cannot enforce, if the settings permit that.
    fn warning(&self) -> Option<String>;
}
