//! `cliq agent`

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use cliq_agents::{Abilities, AcpCheck, AgentKind, ModelAgent, Usable};
use cliq_project::internals::{Execute, review_agent, team_phase_agent};
use cliq_project::{Environment, Project, ProjectError, Settings};
use cliq_sdk::conformance::{self, Options, Role};
use cliq_workflow::{CONNECTORS, Connector, Direction, Setting};

use crate::args::{AgentCommand, CheckRole};
use crate::failure::Failure;
use crate::render::progress::Progress;
use crate::ui::{self, BOLD, CYAN, DIM, GREEN, RED, YELLOW, paint};
use crate::{project, reviews};

pub(super) fn run(command: AgentCommand) -> Result<ExitCode, Failure> {
    match command {
        AgentCommand::Handle => Ok(cliq_agents::agent(Environment::of_process()).run()),
        AgentCommand::Convert => Ok(cliq_agents::convert()),
        AgentCommand::Show { name, json } => show(&name, json),
        AgentCommand::Team { agent } => Ok(team_phase(agent)),
        AgentCommand::Review => review(),
        AgentCommand::Scripted { script, records } => {
            Ok(cliq_agents::scripted_agent(&script, &records).run())
        }
        #[cfg(any(feature = "docker", feature = "kubernetes"))]
        AgentCommand::Plan { here, run_id } => super::plan_agent::run(here.as_deref().zip(run_id.as_ref())),
        AgentCommand::Sandbox { profile, network, read, write, env, mechanism, command } => {
            let request = super::sandbox::Request { profile, network, read, write, env, mechanism };
            super::sandbox::run(request, &command)
        }
        AgentCommand::List => list(),
        AgentCommand::Check { name: Some(name), timeout, json, .. } => {
            check_named(&name, Duration::from_secs(timeout), json)
        }
        AgentCommand::Check { name: None, role, timeout, json, command } => {
            let role = match role {
                CheckRole::Standard => Role::Standard,
                CheckRole::Gate => Role::Gate,
            };
            check(&command, Options::new(role).with_timeout(Duration::from_secs(timeout)), json)
        }
    }
}

/// Answers the message on standard input by making a review, and waiting for its decision.
fn review() -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let backend = Arc::new(reviews::MachineReviews::default());
    let code = review_agent(project::host(), backend.clone(), runtime.handle().clone()).run();
    runtime.block_on(backend.outlast_pages());
    Ok(code)
}

/// Answers the message on standard input by running the team of a team phase.
fn team_phase(agent: Option<String>) -> ExitCode {
    let execute: Box<Execute> = Box::new(|plan, start, on_event| {
        let mut progress = Progress::new(false, true);
        let view = super::execution::execute(&project::host(), plan, start, |record, view| {
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
            "{} docs/protocol.md in the repository of cliq explains each",
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
    let kind = |name: &str| {
        let agent = ModelAgent::find(name, &settings)?;
        let preset = agent.preset().map(|preset| format!(" ({})", preset.name)).unwrap_or_default();
        Some(format!("{}{preset}", agent.kind().as_str()))
    };
    let defined = |name: &str| {
        let source = ModelAgent::find(name, &settings)?.defined_in(&settings)?;
        Some(format!("  [{source}]"))
    };
    let line = |name: &str, color, about: &str| {
        let kind = kind(name).unwrap_or_else(|| "-".to_owned());
        let defined = defined(name).unwrap_or_default();
        ui::line(format!("{name:<16} {kind:<18} {}{}", paint(color, about), paint(DIM, defined)))
    };
    for name in agents.names() {
        let about = match cliq_agents::usable(name, &settings, &host.environment) {
            Some(Usable::Yes(how)) => how,
            _ => agents.get(name).map(|command| command.program.to_string()).unwrap_or_default(),
        };
        line(name, DIM, &about)?;
    }
    for (name, why) in agents.unusable() {
        line(name, YELLOW, why)?;
    }
    for why in ModelAgent::refused(&settings).into_values() {
        ui::warning(&why);
    }
    Ok(ExitCode::SUCCESS)
}

/// Starts an agent of the kind `acp` and shows what it can do. For other kinds, shows whether they can be used.
fn check_named(name: &str, limit: Duration, json: bool) -> Result<ExitCode, Failure> {
    let (host, settings) = (project::host(), project::settings()?);
    let Some(agent) = ModelAgent::find(name, &settings) else {
        let agents = ModelAgent::all(&settings);
        let known: Vec<&str> = agents.iter().map(|agent| agent.name.as_str()).collect();
        let near = cliq_workflow::nearest(name, known.iter().copied());
        let hint = near.map_or_else(
            || {
                format!(
                    "`cliq settings set -g agents.{name}.kind acp` defines one; there are {}",
                    known.join(", ")
                )
            },
            |near| format!("did you mean `{near}`?"),
        );
        return Err(Failure::usage(format!("there is no model agent `{name}`")).hint(hint));
    };
    if !json && agent.kind() == AgentKind::Acp {
        ui::note(&format!("starting {name}"));
    }
    let report = agent.check(&settings, &host.environment, limit);
    let code = if report.problem.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    if json {
        ui::json(&check_document(&agent, &report))?;
        return Ok(code);
    }
    let version =
        report.agent.as_ref().map(|(name, version)| format!(": {name} {version}")).unwrap_or_default();
    match &report.problem {
        Some(problem) => ui::line(format!("{} {name}{version}: {problem}", paint(RED, "✗")))?,
        None => {
            let program = report.program.as_deref().unwrap_or_default();
            ui::line(format!("{} {name}{version} {}", paint(GREEN, "✓"), paint(DIM, program)))?;
        }
    }
    let list = |title: &str, items: Vec<String>| {
        if items.is_empty() { Ok(()) } else { ui::line(format!("  {title:<10} {}", items.join(", "))) }
    };
    let can = report.can.map(|can| can.names().into_iter().map(str::to_owned).collect()).unwrap_or_default();
    list("can", can)?;
    list("server", report.server.iter().cloned().collect())?;
    for warning in &report.warnings {
        ui::line(format!("  {:<10} {warning}", paint(YELLOW, "warning")))?;
    }
    list("modes", report.modes.clone())?;
    list("models", report.models.clone())?;
    if report.problem.is_some() {
        list("sign-in", report.sign_in.clone())?;
    }
    if let Some(preset) = agent.preset() {
        list("refusal", vec![preset.refusal.about().to_owned()])?;
        list("budget", vec![preset.usage.budget().to_owned()])?;
    }
    Ok(code)
}

/// Report of [`check_named`] as JSON (docs/agents.md).
fn check_document(agent: &ModelAgent, report: &AcpCheck) -> serde_json::Value {
    let mut value = serde_json::json!({"name": agent.name, "kind": agent.kind().as_str()});
    let mut add = |name: &str, part: Option<serde_json::Value>| {
        if let Some(part) = part {
            value[name] = part;
        }
    };
    add("preset", agent.preset().map(|preset| preset.name.into()));
    add("program", report.program.as_deref().map(Into::into));
    add("works", Some(report.problem.is_none().into()));
    add("problem", report.problem.as_deref().map(Into::into));
    add("sign_in", (!report.sign_in.is_empty()).then(|| report.sign_in.clone().into()));
    add(
        "agent",
        report.agent.as_ref().map(|(name, version)| serde_json::json!({"name": name, "version": version})),
    );
    add("can", report.can.map(|can| {
        let Abilities { load, resume, images, mcp_http, steering } = can;
        serde_json::json!({"load": load, "resume": resume, "images": images, "mcp_http": mcp_http, "steering": steering})
    }));
    add("server", report.server.as_deref().map(Into::into));
    add("warnings", (!report.warnings.is_empty()).then(|| report.warnings.clone().into()));
    add("modes", (!report.modes.is_empty()).then(|| report.modes.clone().into()));
    add("models", (!report.models.is_empty()).then(|| report.models.clone().into()));
    add("milliseconds", Some(u64::try_from(report.took.as_millis()).unwrap_or(u64::MAX).into()));
    value
}

/// Prints the inputs, outputs and requirements of a connector.
fn show(name: &str, json: bool) -> Result<ExitCode, Failure> {
    let Some(connector) = Connector::find(name) else {
        let known: Vec<&str> = CONNECTORS.iter().map(|connector| connector.name).collect();
        let hint = format!("connectors are {}; `cliq agent list` lists all agents", known.join(", "));
        return Err(Failure::usage(format!("`{name}` is not a connector")).hint(hint));
    };
    let settings = project::settings()?;
    let environment = project::host().environment;
    let is_set = |setting: &Setting| {
        setting.variables.iter().any(|variable| environment.get(variable).is_some())
            || settings.connector_text(name, setting.key).is_some()
    };
    if json {
        let actions: Vec<_> = connector.actions.iter().map(|action| serde_json::json!({
            "name": action.name, "direction": direction(action.direction), "about": action.about, "ref": action.reference,
            "required": action.required, "optional": action.optional,
            "gives": action.gives.iter().map(|(key, about)| serde_json::json!({"key": key, "about": about})).collect::<Vec<_>>(),
        })).collect();
        let settings: Vec<_> = connector.settings.iter().map(|setting| serde_json::json!({
            "key": format!("agents.{name}.{}", setting.key), "variables": setting.variables, "required": setting.required,
            "secret": setting.secret, "about": setting.about, "is_set": is_set(setting),
        })).collect();
        ui::json(
            &serde_json::json!({"name": name, "about": connector.about, "actions": actions, "settings": settings}),
        )?;
        return Ok(ExitCode::SUCCESS);
    }
    ui::line(format!("{}  {}", paint(BOLD, name), connector.about))?;
    for action in connector.actions {
        let title = if action.name.is_empty() { "(no action)" } else { action.name };
        ui::line(format!(
            "\n{} {}",
            paint(CYAN, title),
            paint(DIM, format!("({})", direction(action.direction)))
        ))?;
        ui::line(format!("  {}", action.about))?;
        if !action.reference.is_empty() {
            ui::line(format!("  ref    {}", action.reference))?;
        }
        ui::line(format!("  takes  name, {}", [action.required, action.optional].concat().join(", ")))?;
        for (key, about) in action.gives {
            ui::line(format!("  gives  {key:<14} {}", paint(DIM, about)))?;
        }
    }
    ui::line("\nEach entry of the handoff also has ref, file, size, content_type and url.")?;
    if !connector.settings.is_empty() {
        ui::line(format!("\n{}", paint(BOLD, "settings")))?;
    }
    for setting in connector.settings {
        let mark = match (is_set(setting), setting.required) {
            (true, _) => paint(GREEN, "✓"),
            (false, true) => paint(RED, "✗"),
            (false, false) => paint(DIM, "-"),
        };
        let key = format!("agents.{name}.{}", setting.key);
        ui::line(format!("{mark} {key:<32} {}", setting.about))?;
        if !setting.variables.is_empty() {
            ui::line(format!(
                "  {:<32} {}",
                "",
                paint(DIM, format!("or the variable {}", setting.variables.join(", ")))
            ))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn direction(direction: Direction) -> &'static str {
    match direction {
        Direction::Fetch => "sources",
        Direction::Publish => "target_entries",
    }
}
