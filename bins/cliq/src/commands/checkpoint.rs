//! `cliq diff`, `cliq checkpoint` and `cliq run --restore`

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use cliq_fs::ProjectLock;
use cliq_project::{Change, Checkpoint, CheckpointStore, Label, Moment, Project, ProjectError};
use cliq_settings::Settings;
use serde_json::json;

use crate::args::CheckpointCommand;
use crate::failure::Failure;
use crate::ui::{BOLD, DIM, GREEN, RED, YELLOW, paint};
use crate::{project, ui};

/// Maximum number of files that are listed before a question.
const LISTED: usize = 40;

pub(super) fn run(command: &CheckpointCommand) -> Result<ExitCode, Failure> {
    let project = project::open()?;
    let store = project.checkpoint_store(&project.settings()?)?;
    match command {
        CheckpointCommand::List { json } => list(&store, *json)?,
        CheckpointCommand::Take => {
            let label = Label {
                run: String::new(),
                phase: "workspace".to_owned(),
                activation: 0,
                moment: Moment::Before,
            };
            let taken = store.take(&label, &cliq_fs::now().to_string()).map_err(ProjectError::from)?;
            ui::line(format!("checkpoint {}", taken.id))?;
        }
        CheckpointCommand::Restore { id, yes } => {
            ProjectLock::check(project.dir())?;
            let all = store.list().map_err(ProjectError::from)?;
            let Some(to) = all.iter().find(|checkpoint| checkpoint.id == *id) else {
                return Err(Failure::failed(format!("there is no checkpoint {id}"))
                    .hint("`cliq checkpoint list` shows those there are"));
            };
            restore(&project, &store, to, *yes)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn list(store: &CheckpointStore, as_json: bool) -> Result<(), Failure> {
    let all = store.list().map_err(ProjectError::from)?;
    if as_json {
        return Ok(ui::json(&json!({"checkpoints": all}))?);
    }
    if all.is_empty() {
        return Ok(ui::line("no checkpoints yet: a run takes them before and after each activation")?);
    }
    let mut last: Option<&Checkpoint> = None;
    for checkpoint in &all {
        let Label { run, phase, activation, moment } = &checkpoint.label;
        let what = match moment {
            _ if run.is_empty() => "taken by hand".to_owned(),
            Moment::Before => format!("before {phase} {activation}"),
            Moment::After => format!("after {phase} {activation}"),
            Moment::Restore => "before a restoration".to_owned(),
        };
        let run: String = run.chars().take(13).collect();
        let same = if last.is_some_and(|last| last.has_same_files(checkpoint)) { "  no change" } else { "" };
        ui::line(format!(
            "{} {}  {what}  {}{}",
            paint(BOLD, format!("{:>5}", checkpoint.id)),
            checkpoint.ts,
            paint(DIM, run),
            paint(DIM, same)
        ))?;
        last = Some(checkpoint);
    }
    Ok(())
}

pub(super) fn diff(of: Option<&str>, stat: bool, as_json: bool) -> Result<ExitCode, Failure> {
    let project = project::open()?;
    let store = project.checkpoint_store(&project.settings()?)?;
    let run_id = project.last_run_id()?;
    let activations = project.activation_changes(&store, &run_id, of)?;
    if as_json {
        let row = |activation: &cliq_project::ActivationChanges| -> Result<_, ProjectError> {
            let changes = store.changes(&activation.from, &activation.to)?;
            Ok(json!({
                "phase": activation.phase, "activation": activation.activation,
                "from": activation.from.id, "to": activation.to.id, "changes": changes,
            }))
        };
        let rows = activations.iter().map(row).collect::<Result<Vec<_>, _>>()?;
        ui::json(&json!({"run_id": run_id, "activations": rows}))?;
        return Ok(ExitCode::SUCCESS);
    }
    let colour = std::io::stdout().is_terminal();
    for activation in &activations {
        if let Some(number) = activation.activation {
            ui::line(paint(BOLD, format!("{}, activation {number}", activation.phase)))?;
        }
        let text = store.diff(&activation.from, &activation.to, stat, colour).map_err(ProjectError::from)?;
        if text.is_empty() {
            ui::line(paint(DIM, "no file changed"))?;
        } else {
            std::io::stdout().write_all(&shown(&text))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Removes control characters that an agent may have put into a file, except for line ends, tabs and the colours of git.
fn shown(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, tail)) = rest.split_first() {
        let colour =
            rest.starts_with(b"\x1b[").then(|| rest.iter().position(u8::is_ascii_alphabetic)).flatten();
        match colour {
            Some(end)
                if rest[end] == b'm' && rest[2..end].iter().all(|b| b.is_ascii_digit() || *b == b';') =>
            {
                out.extend(&rest[..=end]);
                rest = &rest[end + 1..];
                continue;
            }
            _ if byte >= 0x20 && byte != 0x7f || matches!(byte, b'\n' | b'\t') => out.push(byte),
            _ => out.push(b'?'),
        }
        rest = tail;
    }
    out
}

/// Restores the workspace to the state before a phase first started in the last run.
pub(super) fn restore_before(
    project: &Project,
    settings: &Settings,
    phase: &str,
    yes: bool,
) -> Result<(), Failure> {
    let store = project.checkpoint_store(settings)?;
    let run_id = project.last_run_id()?;
    let to = project.checkpoint_before(&store, &run_id, phase)?;
    restore(project, &store, &to, yes)
}

/// Lists what would be lost, asks, and restores.
fn restore(project: &Project, store: &CheckpointStore, to: &Checkpoint, yes: bool) -> Result<(), Failure> {
    let changes = project.losses(store, to)?;
    if changes.is_empty() {
        return Ok(ui::line(format!("the files are those of checkpoint {}", to.id))?);
    }
    let line = |change: &Change| {
        let style = match change.kind.letter() {
            'A' => GREEN,
            'D' => RED,
            _ => YELLOW,
        };
        let what = match change.kind.letter() {
            'A' => "comes back",
            'D' => "is removed",
            _ => "is changed back",
        };
        paint(style, format!("  {} {what}", ui::plain(&change.path)))
    };
    let mut text: Vec<String> = changes.iter().take(LISTED).map(line).collect();
    if changes.len() > LISTED {
        text.push(format!("  and {} more", changes.len() - LISTED));
    }
    ui::line(format!("checkpoint {} of {}:\n{}", to.id, to.ts, text.join("\n")))?;
    if !yes {
        if !ui::can_ask() {
            return Err(Failure::refused("restoring would change these files")
                .hint("`--yes` restores without asking"));
        }
        if !ui::confirm("Restore?")? {
            return Err(Failure::refused("nothing was restored"));
        }
    }
    let restored = project.restore(store, to)?;
    let n = restored.changes.len();
    let files = if n == 1 { "1 file".to_owned() } else { format!("{n} files") };
    ui::line(format!("restored {files}; `cliq checkpoint restore {}` undoes it", restored.before.id))?;
    Ok(())
}
