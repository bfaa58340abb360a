//! `cliq doctor`: what is there, what is missing, and what that means.

use std::os::unix::fs::PermissionsExt;
use std::process::ExitCode;

use cliq_agents::Usable;
use cliq_fs::CliqDir;
use cliq_orchestrator::TmuxServer;
use serde::Serialize;

use crate::failure::Failure;
use crate::ui::{self, GREEN, RED, YELLOW, paint};
use crate::{project, settings};

#[derive(Serialize)]
struct Check {
    name: &'static str,
    /// `ok`, `missing` (something cannot work) or `note` (something optional is not there).
    status: &'static str,
    detail: String,
}

/// Whether a program can be found.
pub(crate) fn on_path(program: &str) -> bool {
    let executable = |path: &std::path::Path| {
        path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        return executable(std::path::Path::new(program));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| executable(&dir.join(program)))
}

pub(super) fn run(json: bool) -> Result<ExitCode, Failure> {
    let checks = checks()?;
    let healthy = checks.iter().all(|check| check.status != "missing");
    if json {
        ui::json(&serde_json::json!({"healthy": healthy, "checks": checks}))?;
    } else {
        for check in &checks {
            let mark = match check.status {
                "ok" => paint(GREEN, "✓"),
                "note" => paint(YELLOW, "-"),
                _ => paint(RED, "✗"),
            };
            ui::line(format!("{mark} {:<12} {}", check.name, check.detail))?;
        }
    }
    Ok(if healthy { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn checks() -> Result<Vec<Check>, Failure> {
    let mut checks = Vec::new();
    let mut add = |name: &'static str, status: &'static str, detail: String| {
        checks.push(Check { name, status, detail })
    };
    add("cliq", "ok", format!("version {}", env!("CARGO_PKG_VERSION")));
    match std::env::current_exe()
        .ok()
        .map(|me| me.with_file_name("cliq-agent"))
        .filter(|agent| agent.is_file())
    {
        Some(path) => add("cliq-agent", "ok", path.display().to_string()),
        None => add("cliq-agent", "note", "not beside cliq; `cliq agent handle` does its work".to_owned()),
    }
    let (status, detail) = if on_path("sh") {
        ("ok", "commands can run")
    } else {
        ("missing", "there is no sh: commands of phases cannot run")
    };
    add("sh", status, detail.to_owned());
    let (status, detail) = if on_path("git") {
        ("ok", "found")
    } else {
        ("note", "not found: needed only by teams that work with repositories")
    };
    add("git", status, detail.to_owned());
    match TmuxServer::installed() {
        Some(version) => add("tmux", "ok", format!("version {version}")),
        None => add("tmux", "note", "not found, or older than 3.2: phases run without panes".to_owned()),
    }
    match cliq_settings::home() {
        Some(home) if home.is_dir() => add("home", "ok", home.to_string()),
        Some(home) => add("home", "note", format!("{home} does not exist yet; nothing is installed there")),
        None => add("home", "note", "neither CLIQ_HOME nor HOME is set".to_owned()),
    }
    let dir = CliqDir::discover(&project::here()?);
    let settings = match settings::load(dir.as_ref()) {
        Ok(settings) => {
            add("settings", "ok", "valid".to_owned());
            settings
        }
        Err(failure) => {
            add("settings", "missing", failure.text().to_owned());
            cliq_settings::Settings::default()
        }
    };
    for agent in cliq_agents::MODEL_AGENTS {
        match agent.usable(&settings) {
            Usable::Yes(how) => add(agent.name, "ok", how),
            Usable::No(why) => add(agent.name, "note", why),
        }
    }
    match project::default_agent(&settings) {
        Some(name) => add("default", "ok", format!("phases that name no agent get {name}")),
        None => add(
            "default",
            "note",
            "phases that name no agent cannot run: no model agent is usable".to_owned(),
        ),
    }
    let Some(dir) = dir else {
        add("project", "note", "no project here; `cliq init` makes one".to_owned());
        return Ok(checks);
    };
    add("project", "ok", dir.workspace().to_string());
    if !dir.team_file().exists() {
        add("team", "note", "none assembled; `cliq assemble TEAM` chooses one".to_owned());
        return Ok(checks);
    }
    let Ok(workflow) = project::team(&dir) else {
        add("team", "missing", "it has errors".to_owned());
        return Ok(checks);
    };
    add("team", "ok", workflow.name.clone());
    for tool in workflow.tools.iter().filter(|tool| !on_path(tool)) {
        add("tool", "missing", format!("{tool} is not on the PATH"));
    }
    let mut plan = project::plan(&dir, workflow, &settings);
    // Inputs are given with each run.
    plan.inputs = plan.workflow.inputs.iter().map(|input| (input.name.clone(), String::new())).collect();
    match plan.check(&project::has_env) {
        Ok(()) => {
            add("agents", "ok", format!("usable: {}", plan.agents.names().collect::<Vec<_>>().join(", ")))
        }
        Err(error) => error.problems.into_iter().for_each(|problem| add("agents", "missing", problem)),
    }
    Ok(checks)
}
