//! `cliq steer`

use std::io::Read;
use std::process::ExitCode;

use cliq_orchestrator::SteeringReceipt;
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
    let project = project::host().project_of_run(&project::here()?, args.run.as_deref())?;
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
