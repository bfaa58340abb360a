//! Putting a finished run aside, so that the next one starts clean and nothing is lost.

use std::fs;

use camino::Utf8Path;

use crate::{CliqDir, FsError, IoContext};

/// Runs that are kept in `.cliq/history`.
const KEEP: usize = 10;

/// Moves everything that a run wrote to `.cliq/history/<run_id>/` and leaves the layout of a fresh project.
///
/// Channels keep their `instructions.md`; requirement, team, roles, settings and task board stay where they are. The
/// oldest archives beyond ten are removed.
///
/// # Errors
/// Something cannot be moved. What was moved before stays moved; calling again goes on.
pub fn archive_run(dir: &CliqDir, run_id: &str) -> Result<(), FsError> {
    // Ids are ours, but a journal can be edited: never let one lead out of the directory.
    let safe: String =
        run_id.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect();
    let target = dir.history().join(if safe.is_empty() { "unknown" } else { &safe });
    fs::create_dir_all(&target).at("create", &target)?;
    put_steering_aside(dir, run_id, &target)?;
    let moved = [
        "signals",
        "logs",
        "messages",
        "transcripts",
        "files",
        "channels",
        "orchestrator.log",
        "gate_context.md",
        "fingerprints.json",
    ];
    // The journal last: while it is there, an interrupted archiving is taken up again.
    for name in moved.into_iter().chain([CliqDir::JOURNAL]) {
        let (from, to) = (dir.root().join(name), target.join(name));
        if to.exists() && from.exists() {
            remove(&to)?;
        }
        match fs::rename(&from, &to) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            other => other.at("move", &from)?,
        }
        if name == "channels" {
            restore_instructions(dir, &to)?;
        }
    }
    put_reviews_aside(dir, target.file_name().unwrap_or("unknown"))?;
    dir.ensure_layout()?;
    prune(&dir.history())
}

/// Moves the run's own steering messages only: those of a run that has not started stay.
fn put_steering_aside(dir: &CliqDir, run_id: &str, target: &Utf8Path) -> Result<(), FsError> {
    let (from, to) = (dir.steering(run_id), target.join("steering"));
    if to.exists() && from.exists() {
        remove(&to)?;
    }
    match fs::rename(&from, &to) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other.at("move", &from),
    }
}

/// Records of reviews stay for good: they go to `.cliq/reviews/<run_id>/`.
fn put_reviews_aside(dir: &CliqDir, run: &str) -> Result<(), FsError> {
    let Ok(entries) = dir.reviews().read_dir_utf8() else { return Ok(()) };
    let target = dir.reviews().join(run);
    for entry in entries {
        let entry = entry.at("read", &dir.reviews())?;
        if entry.file_type().at("look at", entry.path())?.is_file() {
            fs::create_dir_all(&target).at("create", &target)?;
            fs::rename(entry.path(), target.join(entry.file_name())).at("move", entry.path())?;
        }
    }
    Ok(())
}

fn restore_instructions(dir: &CliqDir, archived: &Utf8Path) -> Result<(), FsError> {
    let Ok(entries) = archived.read_dir_utf8() else { return Ok(()) };
    for entry in entries {
        let entry = entry.at("read", archived)?;
        let instructions = entry.path().join("instructions.md");
        if fs::symlink_metadata(&instructions).is_ok_and(|meta| meta.is_file()) {
            let channel = dir.channels().join(entry.file_name());
            fs::create_dir_all(&channel).at("create", &channel)?;
            fs::copy(&instructions, channel.join("instructions.md")).at("copy", &instructions)?;
        }
    }
    Ok(())
}

fn prune(history: &Utf8Path) -> Result<(), FsError> {
    let mut runs: Vec<_> = history
        .read_dir_utf8()
        .at("read", history)?
        .filter_map(Result::ok)
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.into_path())))
        .collect();
    runs.sort();
    let surplus = runs.len().saturating_sub(KEEP);
    for (_, path) in runs.into_iter().take(surplus) {
        remove(&path)?;
    }
    Ok(())
}

fn remove(path: &Utf8Path) -> Result<(), FsError> {
    if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.at("remove", path)
}
