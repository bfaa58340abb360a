//! The agents of plans: how they run in a project, by its settings.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::{CliqDir, read_limited, write_atomic};
use cliq_lifecycle::{Assignment, Config, PlanAgents, Role, Slots, TaskLoop};
use cliq_orchestrator::RunPlan;
use cliq_settings::Settings;
use serde_json::json;

use crate::launcher::LauncherKind;
use crate::{Host, Project, ProjectError};

/// The most bytes of a role file.
const ROLE_LIMIT: u64 = 16 << 20;

/// The agents of plans by the settings of each project.
#[derive(Debug, Clone)]
pub struct SettingsPlanAgents {
    host: Host,
}

impl SettingsPlanAgents {
    /// The agents of plans on a host.
    #[must_use]
    pub fn new(host: Host) -> Self {
        Self { host }
    }
}

impl PlanAgents for SettingsPlanAgents {
    fn config(&self, project: &Utf8Path) -> Result<Config, String> {
        let settings = Project::open(project, self.host.clone()).and_then(|project| project.settings());
        settings.map(|settings| plan_config(&settings)).map_err(|error| error.to_string())
    }

    fn run_plan(&self, assignment: &Assignment) -> Result<RunPlan, String> {
        run_plan(&self.host, assignment).map_err(|error| error.to_string())
    }

    fn projects(&self) -> Vec<Utf8PathBuf> {
        self.host.registered_projects()
    }

    fn has_env(&self, name: &str) -> bool {
        self.host.has_variable(name)
    }
}

/// How plans are driven, by settings.
#[must_use]
pub fn plan_config(settings: &Settings) -> Config {
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
        planners: settings.count("planners").and_then(|n| u32::try_from(n).ok()).unwrap_or(1),
    }
}

fn run_plan(host: &Host, assignment: &Assignment) -> Result<RunPlan, ProjectError> {
    let project = Project::open(&assignment.project, host.clone())?;
    let settings = project.settings()?;
    let job = project.with_dir(CliqDir::at(&assignment.dir, &assignment.workspace)?);
    let dir = job.dir();
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
    // JSON is a subset of YAML.
    let team = json!({"name": format!("@cliq/{role}"), "phases": [phase]});
    write_atomic(&dir.team_file(), team.to_string().as_bytes())?;
    // A role may be an agent that the project's team declares (SPEC section 9: the team's agents come first).
    let phase = &team["phases"][0];
    let is_agent = phase["type"] == "standard";
    let declared = if is_agent && project.has_team() { project.workflow()?.agents } else { BTreeMap::new() };
    let workflow = job.workflow_with(declared.keys().cloned())?;
    let mut plan = job.base_plan(workflow, &settings);
    for (name, command) in project.team_agents(&declared) {
        plan.agents = std::mem::take(&mut plan.agents).with(name, command);
    }
    if plan.default_agent.is_none() && is_agent && phase["agent"].is_null() {
        return Err(ProjectError::NoAgentForRole { role: role.to_string() });
    }
    plan.env = assignment.env.clone();
    plan.env.extend(program_variables(host));
    if settings.text("launcher").as_deref() == Some("tmux") {
        LauncherKind::require_tmux()?;
        plan.launcher = job.launcher(LauncherKind::Tmux, &settings);
    }
    Ok(plan)
}

fn role_file(project: &Utf8Path, role: Role, settings: &Settings) -> Result<String, ProjectError> {
    let Some(file) = settings.text(&format!("roles.{role}.file")) else {
        return Ok(role.bundled().to_owned());
    };
    let path = project.join(file);
    let error =
        |message: String| ProjectError::RoleFile { path: path.clone(), role: role.to_string(), message };
    let bytes = read_limited(&path, ROLE_LIMIT).map_err(|failed| error(failed.source.to_string()))?;
    String::from_utf8(bytes).map_err(|_| error("it is not UTF-8".to_owned()))
}

/// Variables by which an agent finds this very `cliq`, to emit signals, before any other on the PATH.
fn program_variables(host: &Host) -> Vec<(String, String)> {
    let path = host.environment.get("PATH").unwrap_or_default();
    let mut variables = vec![("CLIQ_PROGRAM".to_owned(), host.program.to_string())];
    if let Some(dir) = host.program.parent().filter(|dir| !dir.as_str().is_empty()) {
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
