//! `cliq doctor`

use std::process::ExitCode;

use cliq_project::CheckStatus;
use cliq_workflow::CONNECTORS;

use crate::args::DoctorCommand;
use crate::failure::Failure;
use crate::project;
use crate::ui::{self, GREEN, RED, YELLOW, paint};

pub(super) fn run(json: bool, command: Option<&DoctorCommand>) -> Result<ExitCode, Failure> {
    if let Some(DoctorCommand::Test { name }) = command {
        return test(name, json);
    }
    let on_wait = |what: &str| ui::note(what);
    let mut checks = project::host().checks(&project::here()?, env!("CARGO_PKG_VERSION"), &on_wait);
    checks.extend(super::server::checks());
    checks.extend(super::backends::checks(&project::settings()?)?);
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

/// Services that are not connectors, but can be tested too.
const OTHERS: &[&str] = &["sharepoint", "github", "gitlab", "bitbucket"];

/// Makes one call that changes nothing.
fn test(name: &str, json: bool) -> Result<ExitCode, Failure> {
    let settings = project::settings()?;
    let environment = project::host().environment;
    let known: Vec<&str> =
        CONNECTORS.iter().map(|connector| connector.name).chain(OTHERS.iter().copied()).collect();
    if !known.contains(&name) {
        let near = cliq_workflow::nearest(name, known.iter().copied());
        let hint = near.map_or_else(
            || format!("it can test {}", known.join(", ")),
            |near| format!("did you mean `{near}`?"),
        );
        return Err(Failure::usage(format!("there is no service `{name}` that can be tested")).hint(hint));
    }
    let result = match name {
        "github" | "gitlab" | "bitbucket" => cliq_agents::test_code_host(name, &settings, &environment),
        _ => cliq_agents::test_connector(name, &settings, &environment),
    };
    let (works, detail) = match result {
        Ok(said) => (true, said),
        Err(error) => (false, error.to_string()),
    };
    if json {
        ui::json(&serde_json::json!({"name": name, "works": works, "detail": detail}))?;
    } else {
        let mark = if works { paint(GREEN, "✓") } else { paint(RED, "✗") };
        ui::line(format!("{mark} {name:<12} {detail}"))?;
    }
    Ok(if works { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
