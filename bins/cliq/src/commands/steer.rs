//! `cliq steer`

use std::io::Read;
use std::process::ExitCode;

use cliq_orchestrator::SteeringReceipt;
use cliq_project::Project;
use cliq_protocol::{MAX_STEERING_TEXT, NewSteering, PhaseName};
use serde_json::json;
use uuid::Uuid;

use crate::args::SteerArgs;
use crate::failure::Failure;
use crate::{project, reviews, ui};

pub(super) fn run(args: &SteerArgs) -> Result<ExitCode, Failure> {
    let phase = args.phase.as_deref().map(PhaseName::parse).transpose();
    let phase = phase.map_err(|error| Failure::usage(format!("cannot use the phase: {error}")))?;
    let id = args.id.clone().unwrap_or_else(|| Uuid::now_v7().to_string());
    let new = NewSteering::new(id, &reviews::user(), &text(&args.text)?, phase);
    let new = new.map_err(|error| Failure::usage(error.to_string()))?;
    let project = project_of(args.run.as_deref())?;
    let receipt = project.steer(args.run.as_deref(), new)?;
    if args.json {
        ui::json(&json!({"message": receipt.message, "recorded": receipt.is_recorded}))?;
        return Ok(ExitCode::SUCCESS);
    }
    ui::line(sentence(&receipt))?;
    ui::line("`cliq status` shows whether it was delivered")?;
    Ok(ExitCode::SUCCESS)
}

fn sentence(receipt: &SteeringReceipt) -> String {
    let to = match &receipt.message.phase {
        Some(phase) => format!("phase {phase}"),
        None => "the run".to_owned(),
    };
    let id = &receipt.message.id;
    if receipt.is_recorded {
        format!("sent message {id} to {to}: agents that listen receive it now, others when they start")
    } else {
        format!("stored message {id} for {to}, which has not started")
    }
}

/// Returns a text argument, or standard input for `-`.
pub(super) fn text(text: &str) -> Result<String, Failure> {
    if text != "-" {
        return Ok(text.to_owned());
    }
    let (mut bytes, limit) = (Vec::new(), MAX_STEERING_TEXT as u64 * 4);
    std::io::stdin().take(limit).read_to_end(&mut bytes)?;
    String::from_utf8(bytes).map_err(|_| Failure::usage("standard input is not UTF-8"))
}

/// Returns the project of a run: this one, or the workspace that the server of this machine made for the run.
fn project_of(run: Option<&str>) -> Result<Project, Failure> {
    let here = project::open();
    let is_here = here.as_ref().is_ok_and(|project| project.recorded_run(run).is_ok());
    let workspace = || {
        let root = project::settings().ok()?.text("server.workspace_root").map(camino::Utf8PathBuf::from);
        let root = root.or_else(|| Some(project::host().home?.join("workspaces")))?;
        let path = root.join(run?);
        // An id, and no path out of the directory.
        let is_id = run?.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        (is_id && path.join(cliq_fs::CliqDir::NAME).is_dir()).then_some(path)
    };
    match (is_here, workspace()) {
        (false, Some(path)) => Ok(Project::discover(&path, project::host())?),
        _ => here,
    }
}
