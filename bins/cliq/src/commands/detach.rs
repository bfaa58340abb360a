//! `cliq run --detach`: the orchestrator moves into the session, and the shell is free again.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use cliq_fs::CliqDir;
use cliq_orchestrator::{Journal, RunEvent, TmuxServer};
use cliq_project::{LauncherKind, RunSpec};
use cliq_protocol::WireTime;

use cliq_backends::BackendKind;

use super::backends::flag;
use crate::args::RunArgs;
use crate::failure::Failure;
use crate::ui;

/// Deadline for the start of the run.
const PATIENCE: Duration = Duration::from_secs(30);

/// Starts `cliq run` with the same wishes in a session of its own and waits until the run has begun. What people may
/// be asked was asked before. With `keep`, the session stays after the run.
pub(super) fn run(
    dir: &CliqDir,
    args: &RunArgs,
    spec: &RunSpec,
    backend: Option<BackendKind>,
    keep: bool,
) -> Result<ExitCode, Failure> {
    LauncherKind::require_tmux()?;
    let server = TmuxServer::of(dir);
    // No run is under way: a session that exists is left over.
    server.discard()?;
    let before = last_beginning(dir);
    let me = std::env::current_exe()?;
    cliq_fs::write_atomic(&dir.detached_spec(), &spec.encode())?;
    let command = command(&me.to_string_lossy(), dir, args, backend);
    let pane = server.start(&command.iter().map(String::as_str).collect::<Vec<_>>())?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        let begun = last_beginning(dir) != before;
        let (shown, dead) = server.look_at(&pane)?;
        if begun && !dead {
            if !keep {
                server.close_at_end(&pane)?;
            }
            ui::line(format!("running in the background, in tmux session {}", server.session()))?;
            ui::hint(
                "`cliq attach` shows the panes, `cliq status --watch` follows the run, `cliq cancel` stops it",
            );
            return Ok(ExitCode::SUCCESS);
        }
        if dead {
            // It ended at once, well or not: what it said is all there is to tell.
            if !keep {
                server.discard()?;
            }
            ui::raw(format!("{}\n", shown.trim()).as_bytes())?;
            return if begun {
                Ok(ExitCode::SUCCESS)
            } else {
                Err(Failure::failed("the run has not started"))
            };
        }
        if Instant::now() > deadline {
            return Err(Failure::failed("the run has not started").hint("`cliq attach` shows what it does"));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Time at which a run last began or was taken up again.
fn last_beginning(dir: &CliqDir) -> Option<WireTime> {
    let records = Journal::read(&dir.journal()).ok()??.records;
    let begins =
        |event: &RunEvent| matches!(event, RunEvent::RunStarted { .. } | RunEvent::RunResumed { .. });
    records.into_iter().rfind(|record| begins(&record.event)).map(|record| record.ts)
}

fn command(me: &str, dir: &CliqDir, args: &RunArgs, backend: Option<BackendKind>) -> Vec<String> {
    let mut command = [me, "-C", dir.workspace().as_str(), "run", "--yes"].map(str::to_owned).to_vec();
    // A run in a container or cluster has no panes: the session shows its output.
    let flags: &[&str] = match backend {
        Some(kind) => &[flag(kind)],
        None if args.no_docker => &["--no-docker", "--launcher", "tmux"],
        None => &["--launcher", "tmux"],
    };
    command.extend(flags.iter().map(|word| (*word).to_owned()));
    match (&args.from, args.resume) {
        (Some(from), _) => command.extend(["--from".to_owned(), from.clone()]),
        (None, true) => command.push("--resume".to_owned()),
        (None, false) if args.changed => command.push("--changed".to_owned()),
        // Whether this is wanted was asked already.
        (None, false) => command.push("--force".to_owned()),
    }
    command.extend(["--spec".to_owned(), dir.detached_spec().to_string()]);
    command
}
