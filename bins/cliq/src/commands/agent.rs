//! `cliq agent`

use std::process::ExitCode;
use std::time::Duration;

use cliq_agents::Usable;
use cliq_fs::CliqDir;
use cliq_sdk::conformance::{self, Options, Role};

use crate::args::{AgentCommand, CheckRole};
use crate::failure::Failure;
use crate::ui::{self, DIM, GREEN, RED, YELLOW, paint};
use crate::{project, settings};

pub(super) fn run(command: AgentCommand) -> Result<ExitCode, Failure> {
    match command {
        AgentCommand::Handle => Ok(cliq_agents::agent().run()),
        AgentCommand::Team { agent } => Ok(super::sub_team::run(agent)),
        AgentCommand::List => list(),
        AgentCommand::Check { role, timeout, json, command } => {
            let role = match role {
                CheckRole::Standard => Role::Standard,
                CheckRole::Gate => Role::Gate,
            };
            check(&command, Options { role, timeout: Duration::from_secs(timeout) }, json)
        }
    }
}

fn check(command: &[String], options: Options, json: bool) -> Result<ExitCode, Failure> {
    let report = conformance::check(command, options)?;
    let code = if report.conforms { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    if json {
        ui::json(&report)?;
        return Ok(code);
    }
    for finding in &report.findings {
        let mark = if finding.kept { paint(GREEN, "✓") } else { paint(RED, "✗") };
        ui::line(format!(
            "{mark} {:<6} {:<18} {}",
            finding.dialogue,
            finding.rule,
            paint(DIM, &finding.detail)
        ))?;
    }
    let broken = report.findings.iter().filter(|finding| !finding.kept).count();
    if broken == 0 {
        ui::line(paint(GREEN, "the agent keeps every rule"))?;
    } else {
        if !report.output.is_empty() {
            ui::line(format!("it printed:\n{}", report.output.trim_end()))?;
        }
        let rules = if broken == 1 { "1 rule" } else { &format!("{broken} rules") };
        ui::line(format!(
            "{} docs/protocol.md explains each",
            paint(RED, format!("the agent breaks {rules};"))
        ))?;
    }
    Ok(code)
}

fn list() -> Result<ExitCode, Failure> {
    let dir = CliqDir::discover(&project::here()?);
    let assembled = dir.as_ref().filter(|dir| dir.team_file().exists());
    let workflow = assembled.and_then(|dir| project::team(dir).ok());
    let settings = settings::load(dir.as_ref())?;
    let agents = project::agents(assembled, workflow.as_ref(), &settings);
    for name in agents.names() {
        let about = match cliq_agents::usable(name, &settings) {
            Some(Usable::Yes(how)) => how,
            _ => agents.get(name).map(|command| command.program.to_string()).unwrap_or_default(),
        };
        ui::line(format!("{name:<16} {}", paint(DIM, about)))?;
    }
    for name in cliq_agents::NAMES {
        if let Some(why) = agents.why_unusable(name) {
            ui::line(format!("{name:<16} {}", paint(YELLOW, why)))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
