//! Putting a finished run aside, so that the next one starts clean and nothing is lost.

use std::fs;
use std::io::{ErrorKind, Write};

use camino::{Utf8Path, Utf8PathBuf};

use cliq_protocol::RunId;

use crate::{CliqDir, FsError, IoContext};

/// Runs that are kept in `.cliq/history`.
const KEEP: usize = 10;

/// Moves everything that a run wrote to `.cliq/history/<name>/` and leaves the layout of a fresh project. `name` is the id of
/// the run, or another text if the id is unknown; characters that ids do not have become `_`.
///
/// Channels keep their `instructions.md`; requirement, team, roles, settings and task board stay where they are. The
/// oldest archives beyond ten are removed.
///
/// # Errors
/// Something cannot be moved. What was moved before stays moved; calling again goes on, and loses nothing of it.
pub fn archive_run(dir: &CliqDir, name: &str) -> Result<(), FsError> {
    let safe: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect();
    let target = dir.history().join(if safe.is_empty() { "unknown" } else { &safe });
    fs::create_dir_all(&target).at("create", &target)?;
    if let Ok(run_id) = RunId::parse(name) {
        put_steering_aside(dir, &run_id, &target)?;
    }
    let moved = [
        "signals",
        "logs",
        "messages",
        "transcripts",
        "telemetry",
        "conversations",
        "asks",
        "files",
        "channels",
        "orchestrator.log",
        "gate_context.md",
        "fingerprints.json",
        "run_team.json",
    ];
    // The journal last: while it is there, an interrupted archiving is taken up again.
    for name in moved.into_iter().chain([CliqDir::JOURNAL]) {
        let to = target.join(name);
        put(&dir.root().join(name), &to)?;
        if name == "channels" {
            restore_instructions(dir, &to)?;
        }
    }
    put_reviews_aside(dir, target.file_name().unwrap_or("unknown"))?;
    dir.ensure_layout()?;
    prune(dir)
}

/// Moves the run's own steering messages only: those of a run that has not started stay.
fn put_steering_aside(dir: &CliqDir, run_id: &RunId, target: &Utf8Path) -> Result<(), FsError> {
    put(&dir.steering(run_id), &target.join("steering"))
}

/// Moves a file or a folder. What an interrupted archiving has put there already stays: folders are merged, logs are
/// appended to, and of any other file the newer one counts.
fn put(from: &Utf8Path, to: &Utf8Path) -> Result<(), FsError> {
    let kind = |path: &Utf8Path| match fs::symlink_metadata(path) {
        Ok(found) => Ok(Some(found.file_type())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).at("look at", path),
    };
    let Some(new) = kind(from)? else { return Ok(()) };
    match kind(to)? {
        Some(old) if old.is_dir() && new.is_dir() => {
            for entry in from.read_dir_utf8().at("read", from)? {
                let entry = entry.at("read", from)?;
                put(entry.path(), &to.join(entry.file_name()))?;
            }
            return fs::remove_dir(from).at("remove", from);
        }
        Some(old) if old.is_file() && new.is_file() && is_log(to) => {
            let text = fs::read(from).at("read", from)?;
            fs::File::options()
                .append(true)
                .open(to)
                .and_then(|mut log| log.write_all(&text))
                .at("write", to)?;
            return fs::remove_file(from).at("remove", from);
        }
        Some(old) if old.is_dir() || new.is_dir() => remove(to)?,
        _ => {}
    }
    fs::rename(from, to).at("move", from)
}

fn is_log(path: &Utf8Path) -> bool {
    matches!(path.extension(), Some("log" | "jsonl"))
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

/// Lists the archives of a project, that of the last run last.
///
/// Ordered by the last write of their journals. A folder without a journal is what an interrupted removal left, and comes
/// first, however new the folder is.
///
/// # Errors
/// The history cannot be read.
pub fn archives(dir: &CliqDir) -> Result<Vec<Utf8PathBuf>, FsError> {
    let history = dir.history();
    let entries = match history.read_dir_utf8() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.at("read", &history)?,
    };
    let written = |place: &Utf8Path| fs::metadata(place.join(CliqDir::JOURNAL)).ok()?.modified().ok();
    let mut found: Vec<_> =
        entries.filter_map(Result::ok).map(|entry| (written(entry.path()), entry.into_path())).collect();
    found.sort();
    Ok(found.into_iter().map(|(_, place)| place).collect())
}

fn prune(dir: &CliqDir) -> Result<(), FsError> {
    let mut runs = archives(dir)?;
    runs.truncate(runs.len().saturating_sub(KEEP));
    runs.iter().try_for_each(|place| remove(place))
}

fn remove(path: &Utf8Path) -> Result<(), FsError> {
    if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.at("remove", path)
}
