//! A team as a model returns it: the text of team.yml, and its roles.

use cliq_workflow::{EntryFile, Severity, TeamCheck, TeamFiles, ValidatedWorkflow};
use serde_json::{Map, Value, json};

/// The most roles, and the most bytes of a text.
const MAX_ROLES: usize = 64;
const MAX_TEXT: usize = 256 << 10;

/// A role: its name, without directory and ending, and its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Role {
    pub(super) name: String,
    pub(super) content: String,
}

/// A team as a model returns it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Definition {
    pub(super) team_yml: String,
    pub(super) roles: Vec<Role>,
    /// Names of the agents of the settings.
    agents: Vec<String>,
    /// Team that it changes, if it is not a new one.
    base: Option<BaseFacts>,
    /// Skills of the team that it changes.
    skills: Vec<(String, String)>,
}

/// Team that a model changes.
#[derive(Debug)]
pub(super) struct Base {
    pub(super) roles: Vec<Role>,
    skills: Vec<(String, String)>,
    facts: BaseFacts,
}

/// Parts of a team that a change keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
struct BaseFacts {
    /// Name of the team.
    name: String,
    /// Programs of the team, as team.yml declares them.
    agents: Value,
}

impl BaseFacts {
    fn of(team_yml: &str) -> Self {
        let document = cliq_workflow::document_of(team_yml);
        let text = |key: &str| document.get(key).cloned().unwrap_or_default();
        Self { name: text("name").as_str().unwrap_or_default().to_owned(), agents: text("agents") }
    }
}

impl Base {
    pub(super) fn new(team_yml: &str, roles: Vec<Role>, skills: Vec<(String, String)>) -> Self {
        Self { roles, skills, facts: BaseFacts::of(team_yml) }
    }
}

/// A definition without errors.
#[derive(Debug)]
pub(super) struct CheckedDefinition {
    pub(super) definition: Definition,
    pub(super) workflow: ValidatedWorkflow,
    warnings: Vec<String>,
}

/// Whether a text is the name of a role, and so of a file in its folder.
pub(super) fn is_role_name(name: &str) -> bool {
    is_segment(name)
}

/// A name that is one directory entry: letters, digits, `-`, `_`.
fn is_segment(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

impl Definition {
    /// Reads a definition: `{"team_yml": text, "roles": [{"name", "content"}]}`.
    pub(super) fn read(data: &Map<String, Value>) -> Result<Self, Vec<String>> {
        let mut wrong = Vec::new();
        let team_yml = data.get("team_yml").and_then(Value::as_str).unwrap_or_default().to_owned();
        if team_yml.trim().is_empty() || team_yml.len() > MAX_TEXT {
            wrong.push(format!("`team_yml` must be a text of at most {MAX_TEXT} bytes"));
        }
        let empty = Vec::new();
        let list = data.get("roles").map_or(Some(&empty), Value::as_array);
        let Some(list) = list.filter(|list| list.len() <= MAX_ROLES) else {
            wrong.push(format!("`roles` must be a list of at most {MAX_ROLES} objects"));
            return Err(wrong);
        };
        let mut roles: Vec<Role> = Vec::new();
        for (n, role) in list.iter().enumerate() {
            let text = |key: &str| role.get(key).and_then(Value::as_str).unwrap_or_default();
            let (name, content) = (text("name"), text("content"));
            if !is_role_name(name) {
                wrong.push(format!(
                    "roles[{n}].name must be a name of letters, digits, `-`, `_`: it becomes a file"
                ));
            } else if roles.iter().any(|known| known.name == name) {
                wrong.push(format!("roles[{n}].name: there are two roles {name}"));
            }
            if content.trim().is_empty() || content.len() > MAX_TEXT {
                wrong.push(format!("roles[{n}].content must be a text of at most {MAX_TEXT} bytes"));
            }
            roles.push(Role { name: name.to_owned(), content: content.to_owned() });
        }
        if wrong.is_empty() {
            Ok(Self { team_yml, roles, agents: Vec::new(), base: None, skills: Vec::new() })
        } else {
            Err(wrong)
        }
    }

    /// The same definition where agents of the settings are known beside the built-in ones.
    pub(super) fn with_agents(self, agents: &[String]) -> Self {
        Self { agents: agents.to_vec(), ..self }
    }

    /// The same definition as a change of a team, with the roles that the model did not return.
    pub(super) fn changing(mut self, base: &Base) -> Self {
        for role in &base.roles {
            if !self.has_role(&role.name) {
                self.roles.push(role.clone());
            }
        }
        self.skills.clone_from(&base.skills);
        self.base = Some(base.facts.clone());
        self
    }

    fn check(&self) -> TeamCheck {
        cliq_workflow::check(&self.team_yml, self)
    }

    /// Errors and warnings of the team.
    pub(super) fn problems(&self) -> (Vec<String>, Vec<String>) {
        problems(&self.check())
    }

    /// The definition with its workflow, as a team that may be installed: it is of the scope @local, and brings no programs. A change of a team
    /// keeps its name and its programs.
    pub(super) fn checked(self) -> Result<CheckedDefinition, Vec<String>> {
        let checked = self.check();
        let (errors, warnings) = problems(&checked);
        let Some(workflow) = checked.workflow.filter(|_| errors.is_empty()) else { return Err(errors) };
        if let Some(base) = &self.base {
            let facts = BaseFacts::of(&self.team_yml);
            if facts.name != base.name {
                return Err(vec![format!("`name` must stay {:?}, and is {:?}", base.name, facts.name)]);
            }
            if facts.agents != base.agents {
                return Err(vec![
                    "`agents` must stay as it is: the programs of the team are not yours".to_owned(),
                ]);
            }
            return Ok(CheckedDefinition { definition: self, workflow, warnings });
        }
        if workflow.name.scope() != "local" {
            return Err(vec![format!("`name` must be @local/NAME, and is {:?}", workflow.name.as_str())]);
        }
        if !workflow.agents.is_empty() {
            return Err(vec!["`agents` must be left out: the team has no programs of its own".to_owned()]);
        }
        Ok(CheckedDefinition { definition: self, workflow, warnings })
    }
}

fn problems(checked: &TeamCheck) -> (Vec<String>, Vec<String>) {
    let (mut errors, mut warnings) = (Vec::new(), Vec::new());
    for problem in &checked.diagnostics {
        let text = format!("line {}: {} ({})", problem.span.line, problem.message, problem.help);
        if problem.severity == Severity::Error { errors.push(text) } else { warnings.push(text) }
    }
    (errors, warnings)
}

impl CheckedDefinition {
    /// The team for a caller: its text and what it means.
    pub(super) fn document(&self) -> Value {
        let workflow = &self.workflow;
        let names = |ids: &[cliq_workflow::PhaseId]| -> Vec<&str> {
            ids.iter().map(|id| workflow.phase(*id).name.as_str()).collect()
        };
        let phases: Vec<Value> = workflow
            .phases()
            .map(|(_, phase)| {
                let commands: Vec<Value> =
                    phase.commands.iter().map(|command| json!({"name": command.name, "run": command.run})).collect();
                json!({"name": phase.name, "type": phase.kind, "support": phase.support, "agent": phase.agent,
                    "depends_on": names(&phase.depends_on), "route_to": names(&phase.route_targets), "commands": commands})
            })
            .collect();
        let inputs: Vec<Value> = workflow
            .inputs
            .iter()
            .map(|input| json!({"name": input.name, "description": input.description, "required": input.required}))
            .collect();
        let roles: Vec<Value> = self
            .definition
            .roles
            .iter()
            .map(|role| json!({"name": role.name, "content": role.content}))
            .collect();
        json!({"name": workflow.name, "description": workflow.description, "use_when": workflow.use_when,
            "not_for": workflow.not_for, "tags": workflow.tags, "inputs": inputs, "phases": phases, "roles": roles,
            "team_yml": self.definition.team_yml, "warnings": self.warnings})
    }
}

impl TeamFiles for Definition {
    fn has_role(&self, name: &str) -> bool {
        self.roles.iter().any(|role| role.name == name)
    }
    fn role_names(&self) -> Vec<String> {
        self.roles.iter().map(|role| role.name.clone()).collect()
    }
    fn role_texts(&self) -> Vec<String> {
        self.roles.iter().map(|role| role.content.clone()).collect()
    }
    fn skills(&self) -> Vec<(String, String)> {
        self.skills.clone()
    }
    fn entry(&self, _: &camino::Utf8Path) -> EntryFile {
        // The programs of a team that is changed are in its folder.
        if self.base.is_some() { EntryFile::Unknown } else { EntryFile::Missing }
    }
    fn installed_agents(&self) -> Vec<String> {
        self.agents.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(team_yml: &str, roles: &Value) -> Result<CheckedDefinition, Vec<String>> {
        let Value::Object(data) = json!({"team_yml": team_yml, "roles": roles}) else { unreachable!() };
        Definition::read(&data)?.checked()
    }

    #[test]
    fn only_teams_that_can_run_and_stay_in_their_folder() {
        let role = json!([{"name": "a", "content": "Do it."}]);
        let team = |name: &str, rest: &str| {
            format!(
                "name: \"{name}\"\n{rest}workflow:\n  phases:\n    - {{name: a, type: standard, agent: claude-api}}\n"
            )
        };
        assert!(read(&team("@local/x", ""), &role).is_ok());
        for (yml, roles) in [
            (team("@cliq/x", ""), role.clone()),
            (team("@local/../x", ""), role.clone()),
            (team("../x", ""), role.clone()),
            (team("@local/x", "agents:\n  p: {entry: ../../bin/sh}\n"), role.clone()),
            (team("@local/x", ""), json!([])),
            (team("@local/x", ""), json!([{"name": "../a", "content": "x"}])),
            (team("@local/x", ""), json!([{"name": "a/b", "content": "x"}])),
            (team("@local/x", ""), json!([{"name": "a", "content": ""}])),
            (team("@local/x", ""), json!([{"name": "a", "content": "x"}, {"name": "a", "content": "y"}])),
            (team("@local/x", ""), json!({})),
            ("workflow: [".to_owned(), role.clone()),
            (String::new(), role.clone()),
        ] {
            assert!(read(&yml, &roles).is_err(), "{yml} {roles}");
        }
    }
}
