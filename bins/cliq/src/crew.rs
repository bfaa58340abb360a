//! How agents of plans run in a project: by its settings.

use std::fs;

use camino::Utf8Path;
use cliq_fs::{CliqDir, write_atomic};
use cliq_lifecycle::{Assignment, Config, Crew, Role, Slots, TaskLoop};
use cliq_orchestrator::RunPlan;
use cliq_settings::Settings;
use serde_json::json;

use crate::args::LauncherName;
use crate::failure::Failure;
use crate::{launchers, project, settings};

/// Goes by the settings of each project.
pub(crate) struct SettingsCrew;

impl Crew for SettingsCrew {
    fn config(&self, project: &Utf8Path) -> Result<Config, String> {
        let dir = CliqDir::open(project).map_err(|error| error.to_string())?;
        let settings = settings::load(Some(&dir)).map_err(|failure| failure.text().to_owned())?;
        Ok(config(&settings))
    }

    fn run_plan(&self, assignment: &Assignment) -> Result<RunPlan, String> {
        plan(assignment).map_err(|failure| failure.text().to_owned())
    }

    fn has_env(&self, name: &str) -> bool {
        project::has_env(name)
    }
}

/// How plans are driven.
pub(crate) fn config(settings: &Settings) -> Config {
    let count = |key: &str| settings.count(key).and_then(|n| u32::try_from(n).ok()).unwrap_or(u32::MAX);
    Config {
        auto_readiness_review: settings.flag("auto_readiness_review"),
        readiness_max_verify_cycles: count("readiness_max_verify_cycles"),
        task_loop: match settings.text("task_loop").as_deref() {
            Some("markers") => TaskLoop::Markers,
            _ => TaskLoop::Signals,
        },
        slots: Slots {
            developers: count("slots.developers"),
            critics: count("slots.critics"),
            auditors: count("slots.auditors"),
        },
        auto_implement: settings.flag("auto_implement"),
        architect: settings.flag("use_architect"),
        business_analyst: settings.flag("use_business_analyst"),
    }
}

fn plan(assignment: &Assignment) -> Result<RunPlan, Failure> {
    let project = CliqDir::open(&assignment.project)?;
    let settings = settings::load(Some(&project))?;
    let dir = CliqDir::at(&assignment.dir, &assignment.workspace)?;
    let role = assignment.role;
    let phase = match settings.text(&format!("roles.{role}.command")) {
        Some(command) => {
            json!({"name": role.as_str(), "type": "exec", "commands": [{"name": "work", "run": command}]})
        }
        None => {
            let text = role_file(&assignment.project, role, &settings)?;
            write_atomic(&dir.roles().join(format!("{role}.md")), text.as_bytes())?;
            let mut phase = json!({"name": role.as_str(), "type": "standard"});
            if let Some(agent) = settings.text(&format!("roles.{role}.agent")) {
                phase["agent"] = agent.into();
            }
            phase
        }
    };
    // Whatever is JSON is YAML.
    let team = json!({"name": format!("@cliq/{role}"), "phases": [phase]});
    write_atomic(&dir.team_file(), team.to_string().as_bytes())?;
    let mut plan = project::plan(&dir, project::team(&dir)?, &settings);
    if plan.default_agent.is_none()
        && team["phases"][0]["type"] == "standard"
        && team["phases"][0]["agent"].is_null()
    {
        return Err(Failure::usage(format!(
            "nobody works as {role}: `cliq settings set roles.{role}.agent NAME` or `roles.{role}.command 'COMMAND'` says who, or `default_agent` for all roles"
        )));
    }
    plan.env = assignment.env.clone();
    plan.env.extend(own_program());
    if settings.text("launcher").as_deref() == Some("tmux") {
        plan.launcher = launchers::make(LauncherName::Tmux, &dir, &settings)?;
    }
    Ok(plan)
}

fn role_file(project: &Utf8Path, role: Role, settings: &Settings) -> Result<String, Failure> {
    let Some(file) = settings.text(&format!("roles.{role}.file")) else {
        return Ok(role.bundled().to_owned());
    };
    let path = project.join(file);
    fs::read_to_string(&path)
        .map_err(|error| Failure::usage(format!("cannot read {path}, the role file of {role}: {error}")))
}

/// Agents emit signals by this very program: it is found on their PATH before any other.
fn own_program() -> Vec<(String, String)> {
    let Ok(me) = project::own_program() else { return Vec::new() };
    let path = std::env::var("PATH").unwrap_or_default();
    let mut variables = vec![("CLIQ_PROGRAM".to_owned(), me.to_string())];
    if let Some(dir) = me.parent() {
        variables.push(("PATH".to_owned(), format!("{dir}:{path}")));
    }
    variables
}

#[cfg(test)]
mod tests {
    use cliq_settings::Key;

    use super::*;

    #[test]
    fn settings_know_every_role() {
        for role in Role::ALL {
            assert!(Key::find(&format!("roles.{role}.agent")).is_ok(), "{role}");
        }
    }
}
