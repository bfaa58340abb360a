//! `cliq doctor`

use std::process::ExitCode;

use cliq_project::CheckStatus;

use crate::failure::Failure;
use crate::project;
use crate::ui::{self, GREEN, RED, YELLOW, paint};

pub(super) fn run(json: bool) -> Result<ExitCode, Failure> {
    let mut checks = project::host().checks(&project::here()?, env!("CARGO_PKG_VERSION"));
    checks.extend(super::server::checks());
    let healthy = checks.iter().all(|check| check.status != CheckStatus::Missing);
    if json {
        ui::json(&serde_json::json!({"healthy": healthy, "checks": checks}))?;
    } else {
        for check in &checks {
            let mark = match check.status {
                CheckStatus::Ok => paint(GREEN, "✓"),
                CheckStatus::Note => paint(YELLOW, "-"),
                CheckStatus::Missing => paint(RED, "✗"),
            };
            ui::line(format!("{mark} {:<12} {}", check.name, check.detail))?;
        }
    }
    Ok(if healthy { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
