//! `cliq agent`

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use cliq_agents::Usable;
use cliq_project::{Environment, Execute, Project, ProjectError, Settings, review_agent, team_phase_agent};
use cliq_sdk::conformance::{self, Options, Role};

use crate::args::{AgentCommand, CheckRole};
use crate::failure::Failure;
use crate::render::progress::Progress;
use crate::ui::{self, DIM, GREEN, RED, YELLOW, paint};
use crate::{project, reviews};

pub(super) fn run(command: AgentCommand) -> Result<ExitCode, Failure> {
    match command {
        AgentCommand::Handle => Ok(cliq_agents::agent(Environment::of_process()).run()),
        AgentCommand::Team { agent } => Ok(team_phase(agent)),
        AgentCommand::Review => review(),
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

/// Answers the message on standard input by making a review, and waiting for its decision.
fn review() -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let backend = Arc::new(reviews::Backend::default());
    let code = review_agent(project::host(), backend.clone(), runtime.handle().clone()).run();
    runtime.block_on(backend.outlast_pages());
    Ok(code)
}

/// Answers the message on standard input by running the team of a team phase.
fn team_phase(agent: Option<String>) -> ExitCode {
    let execute: Box<Execute> = Box::new(|plan, start, on_event| {
        let mut progress = Progress::new(false, true);
        let view = super::run::execute(plan, start, |record, view| {
            on_event(record, view);
            progress.show(record, view)
        });
        view.map_err(|failure| ProjectError::Io(std::io::Error::other(failure.text().to_owned())))
    });
    team_phase_agent(project::host(), agent, execute).run()
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
    let (host, here) = (project::host(), project::here()?);
    let (agents, settings) = match Project::discover(&here, host.clone()) {
        Ok(project) => (project.known_agents()?, project.settings()?),
        Err(_) => {
            let settings = Settings::load(host.home.as_deref(), None)?;
            (host.agents(&settings), settings)
        }
    };
    for name in agents.names() {
        let about = match cliq_agents::usable(name, &settings, &host.environment) {
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
