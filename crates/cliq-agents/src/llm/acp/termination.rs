//! Signal to end the process of an agent.

use tokio::runtime::Runtime;

/// Signal to end the process of this agent.
pub(super) struct Termination {
    signal: Option<tokio::signal::unix::Signal>,
    pub(super) has_come: bool,
}

impl Termination {
    /// Takes over the handling of SIGTERM. If it cannot, the signal ends the process at once, and the agent is found by its mark.
    pub(super) fn new(runtime: &Runtime) -> Self {
        let _guard = runtime.enter();
        let signal = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).ok();
        Self { signal, has_come: false }
    }

    /// Waits for the first signal. Never returns after it.
    pub(super) async fn wait(&mut self) {
        match &mut self.signal {
            Some(signal) if !self.has_come => {
                signal.recv().await;
                self.has_come = true;
            }
            _ => std::future::pending().await,
        }
    }

    /// Ends this process with the status of the signal.
    pub(super) fn end_process() -> ! {
        std::process::exit(143)
    }
}
