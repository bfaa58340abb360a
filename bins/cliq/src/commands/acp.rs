//! `cliq acp`: an agent of the Agent Client Protocol, for editors.
//!
//! The machine of `cliq-acp` decides. This module reads and writes the streams, and carries out its effects: sessions are files of the
//! project, a prompt is a run in a process of its own, which outlives the editor.

mod driver;
mod errors;
mod follow;
mod gates;
mod options;
mod replay;
mod report;
mod runs;
mod sessions;
mod setup;
mod summary;
mod turns;
mod words;

use std::process::ExitCode;
use std::time::Duration;

use crate::args::AcpArgs;
use crate::failure::Failure;

/// Time for blocking tasks at the end of the process.
const LAST: Duration = Duration::from_secs(1);

pub(super) fn run(args: &AcpArgs) -> Result<ExitCode, Failure> {
    if args.setup {
        return setup::run();
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let served = runtime.block_on(driver::serve());
    runtime.shutdown_timeout(LAST);
    served
}
