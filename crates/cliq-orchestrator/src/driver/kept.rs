//! Restores what the phases that a new run keeps handed over and left in files (docs/changed.md).

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::{FsError, IoContext, copy_file_with_time, copy_tree};
use cliq_protocol::PhaseName;

use super::shared::newest_handoff;
use crate::plan::{KeptWork, RunPlan};

/// Copies channels, files and command results of kept phases from the archive of the last run.
pub(super) fn restore(plan: &RunPlan, kept: &KeptWork) -> Result<(), FsError> {
    let archive = plan.dir.history().join(kept.run_id.as_str());
    let names: BTreeSet<&str> = kept.phases.iter().map(|kept| kept.phase.as_str()).collect();
    let is_kept = |name: &str| names.contains(name.split('.').next().unwrap_or(name));
    for channel in entries(&archive.join("channels"))? {
        let Some((from, _)) = channel.file_name().and_then(|name| name.split_once("--")) else { continue };
        if is_kept(from) {
            let to = plan.dir.channels().join(channel.file_name().unwrap_or_default());
            copy_tree(&channel, &to, &|file| file != "instructions.md")?;
        }
    }
    for files in entries(&archive.join("files"))? {
        let Some(name) = files.file_name().filter(|name| is_kept(name)) else { continue };
        copy_tree(&files, &plan.dir.files().join(name), &|_| true)?;
    }
    for phase in &kept.phases {
        let results = plan.dir.command_results(&phase.phase);
        let archived = archive.join("signals").join(results.file_name().unwrap_or_default());
        if archived.is_file() {
            copy_file_with_time(&archived, &results)?;
        }
        let count = u32::try_from(phase.items.len()).unwrap_or(u32::MAX);
        hand_over(plan, &phase.phase, &phase.phase)?;
        for item in 0..count {
            hand_over(plan, &phase.phase, &phase.phase.with_item(item))?;
        }
    }
    Ok(())
}

/// Hands what a kept phase or item handed over last to the phases that did not depend on it in the last run.
fn hand_over(plan: &RunPlan, phase: &PhaseName, from: &PhaseName) -> Result<(), FsError> {
    let Some(id) = plan.workflow.find(phase.as_str()) else { return Ok(()) };
    let mut newest = None;
    for &to in &plan.workflow.phase(id).dependents {
        let channel = plan.dir.channel(from, &plan.workflow.phase(to).name);
        if channel.join("handoff.json").exists() {
            continue;
        }
        if newest.is_none() {
            newest = Some(newest_handoff(&plan.dir.channels(), from));
        }
        if let Some(Some(newest)) = &newest {
            copy_tree(newest, &channel, &|file| file != "instructions.md")?;
        }
    }
    Ok(())
}

fn entries(dir: &Utf8Path) -> Result<Vec<Utf8PathBuf>, FsError> {
    let read = match dir.read_dir_utf8() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        read => read.at("read", dir)?,
    };
    read.map(|entry| Ok(entry.at("read", dir)?.into_path())).collect()
}
