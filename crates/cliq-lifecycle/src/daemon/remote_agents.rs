//! Agents that work in containers and clusters: a process of its own follows each.

use std::fs::File;
use std::process::Stdio;
use std::time::{Duration, Instant};

use cliq_fs::{CliqDir, PipelineStatus, read_status, write_atomic, write_status};
use cliq_orchestrator::Journal;
use tokio::io::AsyncWriteExt;
use tokio_util::sync::CancellationToken;

use super::Assignment;
use super::job_outcome::{JobOutcome, end_of, outcome_of, output, used};
use crate::layout::assignment_file;

/// Output of an agent's follower, in the job's directory.
const LOG: &str = "follower.log";
/// Polling interval of a follower that was asked to end.
const LOOK: Duration = Duration::from_millis(200);
/// Maximum time for a follower to end its agent.
const PATIENCE: Duration = Duration::from_secs(120);

/// Runs an agent by a process that ends when the agent has ended, and gives the outcome of the job.
pub(super) async fn follow(
    command: std::process::Command,
    assignment: &Assignment,
    stop: CancellationToken,
) -> JobOutcome {
    let dir = match CliqDir::at(&assignment.dir, &assignment.workspace) {
        Ok(dir) => dir,
        Err(error) => return JobOutcome::NotStarted(error.to_string()),
    };
    // What an earlier attempt left says nothing of this one.
    let earlier = journal(&dir).filter(|journal| end_of(journal).is_some());
    let earlier = earlier.and_then(|journal| journal.run_id().cloned());
    if let Err(why) = to_its_end(command, assignment, &dir, &stop).await {
        return JobOutcome::NotStarted(why);
    }
    let journal = journal(&dir).filter(|journal| journal.run_id() != earlier.as_ref());
    let end = journal.as_ref().and_then(end_of);
    let role = assignment.role.as_str();
    let completed = matches!(end, Some((PipelineStatus::Completed, _)));
    match (journal.is_some(), end) {
        _ if stop.is_cancelled() && !completed => JobOutcome::Stopped(used(&dir)),
        (_, Some(end)) => outcome_of(&dir, role, end),
        (true, None) => JobOutcome::Ended {
            text: output(&dir, role),
            success: false,
            why: Some(last_words(&dir)),
            usage: used(&dir),
        },
        (false, None) => JobOutcome::NotStarted(last_words(&dir)),
    }
}

fn journal(dir: &CliqDir) -> Option<Journal> {
    Journal::read(&dir.journal()).ok().flatten()
}

async fn to_its_end(
    command: std::process::Command,
    assignment: &Assignment,
    dir: &CliqDir,
    stop: &CancellationToken,
) -> Result<(), String> {
    let (path, line) = (assignment_file(dir.root()), assignment.encode());
    write_atomic(&path, &line).map_err(|error| error.to_string())?;
    let log = dir.root().join(LOG);
    let file = File::create(&log).map_err(|error| format!("cannot write {log}: {error}"))?;
    let mut command = tokio::process::Command::from(command);
    // A signal that a terminal sends to the daemon is not a wish to end the agent at once.
    command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(file);
    let mut follower = command.spawn().map_err(|error| format!("cannot start cliq: {error}"))?;
    // It ends when this is closed: with the daemon, however that ends.
    let mut input = follower.stdin.take();
    if let Some(input) = &mut input {
        // One that is gone already says why in its log.
        let _ = input.write_all(&line).await;
    }
    let mut asked: Option<Instant> = None;
    loop {
        tokio::select! {
            exit = follower.wait() => return exit.map(drop).map_err(|error| error.to_string()),
            () = stop.cancelled(), if asked.is_none() => asked = Some(Instant::now()),
            () = tokio::time::sleep(LOOK), if asked.is_some() => {}
        }
        ask_to_end(dir);
        if asked.is_some_and(|asked| asked.elapsed() > PATIENCE) {
            let _ = follower.start_kill();
        }
    }
}

/// Asks a run to end, where it has not. One that began at this moment took an earlier request for how the last run ended.
pub(super) fn ask_to_end(dir: &CliqDir) {
    if read_status(dir).is_none() {
        // It is asked again, and at last its follower is ended.
        let _ = write_status(dir, PipelineStatus::Cancelled);
    }
}

/// Reason why a follower ended.
fn last_words(dir: &CliqDir) -> String {
    match cliq_fs::last_error(&dir.root().join(LOG)) {
        words if words.is_empty() => "the process that followed it was ended".to_owned(),
        words => words,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::role::Role;

    #[test]
    fn the_line_with_an_assignment() {
        let assignment = Assignment {
            project: "/home/ada/shop".into(),
            plan: "ship".to_owned(),
            role: Role::BusinessAnalyst,
            dir: "/home/ada/shop/.cliq/plans/ship/jobs/2".into(),
            workspace: "/home/ada/shop/.worktrees/ship-w1-t1".into(),
            env: [("CLIQ_TASK".to_owned(), "w1-t1".to_owned())].into(),
        };
        let line = assignment.encode();
        insta::assert_snapshot!(String::from_utf8_lossy(&line), @r#"{"project":"/home/ada/shop","plan":"ship","role":"business-analyst","dir":"/home/ada/shop/.cliq/plans/ship/jobs/2","workspace":"/home/ada/shop/.worktrees/ship-w1-t1","env":{"CLIQ_TASK":"w1-t1"}}"#);
        // What follows is not part of it.
        assert_eq!(Assignment::receive(&[&line[..], b"more"].concat()[..]), Ok(assignment));
        for wrong in ["", "\n", "{}\n", "[1]"] {
            let error = Assignment::receive(wrong.as_bytes()).expect_err(wrong);
            assert!(error.starts_with("standard input: "), "{error}");
        }
    }
}
