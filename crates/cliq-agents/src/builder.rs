//! `builder`: teams made by a language model (docs/a2a.md). The name of the phase is the capability; its
//! parameters are the requirement, as JSON.
//!
//! Output of a model is data: it is validated, the model is asked once to correct it, and nothing invalid is installed.
//! `validate_team` needs no model.

mod definition;
mod install;
mod prompts;

use cliq_protocol::{TeamName, lenient_json};
use cliq_sdk::{Completion, Handoff, StandardContext};
use cliq_settings::Environment;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::AnyError;
use crate::llm::{Builder, ModelAgent, Reply};
use definition::{Base, Definition, Role, is_role_name};

/// The longest text of a parameter, in bytes.
const MAX_TEXT: usize = 256 << 10;
/// The shortest role that is worth keeping, in characters (UPSTREAM 1.10).
const MIN_ROLE: usize = 50;

/// Parameters of `build_team`.
#[derive(Deserialize)]
struct BuildTeam {
    intent: String,
    #[serde(default)]
    auto_install: bool,
}

/// Parameters of `improve_role`.
#[derive(Deserialize)]
struct ImproveRole {
    role_name: String,
    role_content: String,
    team_name: String,
    #[serde(default)]
    instruction: Option<String>,
}

/// Parameters of `improve_team`.
#[derive(Deserialize)]
struct ImproveTeam {
    team_yml: String,
    #[serde(default)]
    roles: Vec<RoleText>,
    /// Names of the skills of the team with the texts of their SKILL.md.
    #[serde(default)]
    skills: Vec<(String, String)>,
    instruction: String,
}

/// Role of a team with its text.
#[derive(Deserialize)]
struct RoleText {
    name: String,
    content: String,
}

/// Parameters of `validate_team`.
#[derive(Deserialize)]
struct ValidateTeam {
    team_json: Value,
}

pub(crate) fn run(ctx: &StandardContext, environment: &Environment) -> Result<Completion, AnyError> {
    let text = ctx.requirement()?.unwrap_or_default();
    let parameters =
        lenient_json(text.as_bytes()).map_err(|error| format!("the parameters are not JSON: {error}"))?;
    let result = match ctx.phase().name.as_str() {
        "build_team" => build_team(ctx, environment, &read(parameters)?)?,
        "improve_role" => improve_role(ctx, environment, &read(parameters)?)?,
        "improve_team" => improve_team(ctx, environment, &read(parameters)?)?,
        "validate_team" => {
            let agents = named_agents(ctx, environment)?;
            validate_team(&read::<ValidateTeam>(parameters)?.team_json, &agents)
        }
        other => {
            return Err(format!(
                "there is no capability `{other}`: there are build_team, improve_role, improve_team, validate_team"
            )
            .into());
        }
    };
    let file = ctx.files_dir().join(format!("{}.json", ctx.phase().name));
    std::fs::create_dir_all(ctx.files_dir())?;
    std::fs::write(&file, format!("{result:#}\n"))
        .map_err(|error| format!("cannot write {file}: {error}"))?;
    ctx.send(&Handoff::text(format!("The result is in {file}.")))?;
    Ok(ctx.complete(json!({"file": file})))
}

/// Names of the agents that the settings define.
fn named_agents(ctx: &StandardContext, environment: &Environment) -> Result<Vec<String>, AnyError> {
    Ok(ModelAgent::names(&crate::settings_of(ctx.cliq_dir(), environment)?))
}

/// Reads parameters; what is missing or wrong is named.
fn read<T: serde::de::DeserializeOwned>(parameters: Value) -> Result<T, AnyError> {
    Ok(serde_json::from_value(parameters).map_err(|error| format!("the parameters are wrong: {error}"))?)
}

fn check_text(name: &str, text: &str) -> Result<(), AnyError> {
    if text.trim().is_empty() || text.len() > MAX_TEXT {
        return Err(format!("`{name}` must be a text of at most {MAX_TEXT} bytes").into());
    }
    Ok(())
}

fn build_team(
    ctx: &StandardContext,
    environment: &Environment,
    parameters: &BuildTeam,
) -> Result<Value, AnyError> {
    check_text("intent", &parameters.intent)?;
    let agents = named_agents(ctx, environment)?;
    let mut builder = Builder::open(ctx, environment)?;
    let definition = builder.ask(prompts::build_team(&parameters.intent), |reply| {
        let data = reply.data.ok_or_else(|| vec!["there is no fenced block of JSON".to_owned()])?;
        Definition::read(&data)?.with_agents(&agents).checked()
    })?;
    let mut result = definition.document();
    result["installed"] = false.into();
    if parameters.auto_install {
        let home = environment.cliq_home().ok_or("there is no cliq home to install the team in")?;
        result["installed"] = true.into();
        result["path"] = install::install(&home, &definition)?.as_str().into();
    }
    Ok(result)
}

fn improve_role(
    ctx: &StandardContext,
    environment: &Environment,
    parameters: &ImproveRole,
) -> Result<Value, AnyError> {
    if !is_role_name(&parameters.role_name) {
        return Err("`role_name` must be the name of a role: letters, digits, `-`, `_`".into());
    }
    if TeamName::parse(&parameters.team_name).is_err() {
        return Err("`team_name` must be the name of a team: @scope/name".into());
    }
    check_text("role_content", &parameters.role_content)?;
    let instruction = parameters.instruction.as_deref();
    if let Some(text) = instruction {
        check_text("instruction", text)?;
    }
    let mut builder = Builder::open(ctx, environment)?;
    let question = prompts::improve_role(
        &parameters.team_name,
        &parameters.role_name,
        &parameters.role_content,
        instruction,
    );
    let content = builder.ask(question, |reply| {
        let content = reply.data.as_ref().and_then(|data| data.get("role_content")).and_then(Value::as_str);
        let content = content.ok_or_else(|| vec!["the JSON has no text `role_content`".to_owned()])?;
        if content.trim().chars().count() < MIN_ROLE || content.len() > MAX_TEXT {
            return Err(vec![format!(
                "`role_content` must have from {MIN_ROLE} characters to {MAX_TEXT} bytes"
            )]);
        }
        Ok(content.to_owned())
    })?;
    Ok(json!({"team_name": parameters.team_name, "role_name": parameters.role_name, "role_content": content}))
}

/// Changes a team. Roles that the model does not return stay as they are.
fn improve_team(
    ctx: &StandardContext,
    environment: &Environment,
    parameters: &ImproveTeam,
) -> Result<Value, AnyError> {
    check_text("instruction", &parameters.instruction)?;
    check_text("team_yml", &parameters.team_yml)?;
    let roles: Vec<Role> = parameters
        .roles
        .iter()
        .map(|role| Role { name: role.name.clone(), content: role.content.clone() })
        .collect();
    let base = Base::new(&parameters.team_yml, roles, parameters.skills.clone());
    let agents = named_agents(ctx, environment)?;
    let mut builder = Builder::open(ctx, environment)?;
    let question = prompts::improve_team(&parameters.team_yml, &base.roles, &parameters.instruction);
    let definition = builder.ask(question, |reply| {
        let data = reply.data.ok_or_else(|| vec!["there is no fenced block of JSON".to_owned()])?;
        Definition::read(&data)?.with_agents(&agents).changing(&base).checked()
    })?;
    Ok(definition.document())
}

/// Validates a team definition: `{valid, errors, warnings}`. A text that is no definition at all is not valid.
fn validate_team(team: &Value, agents: &[String]) -> Value {
    let team = match team {
        Value::String(text) => {
            serde_json::from_str(text).map_err(|error| format!("`team_json` is not JSON: {error}"))
        }
        other => Ok(other.clone()),
    };
    let object = team.and_then(|team| match team {
        Value::Object(object) => Ok(object),
        _ => Err("`team_json` is not an object".to_owned()),
    });
    let (errors, warnings) = match object
        .map_err(|problem| vec![problem])
        .and_then(|object| Definition::read(&as_definition(object)))
    {
        Ok(definition) => definition.with_agents(agents).problems(),
        Err(errors) => (errors, Vec::new()),
    };
    json!({"valid": errors.is_empty(), "errors": errors, "warnings": warnings})
}

/// A definition may have its team.yml as a text, or be the team itself with `roles` beside.
fn as_definition(mut object: Map<String, Value>) -> Map<String, Value> {
    if object.contains_key("team_yml") {
        return object;
    }
    let roles = object.remove("roles").unwrap_or_else(|| json!([]));
    // JSON is a subset of YAML.
    let text = Value::Object(object).to_string();
    Map::from_iter([("team_yml".to_owned(), text.into()), ("roles".to_owned(), roles)])
}

impl Builder<'_> {
    /// Asks, and checks the reply. A reply that is wrong is given back once with what is wrong.
    fn ask<T>(
        &mut self,
        question: String,
        check: impl Fn(Reply) -> Result<T, Vec<String>>,
    ) -> Result<T, AnyError> {
        let reply = self.request(question)?;
        match check(reply) {
            Ok(value) => Ok(value),
            Err(problems) => {
                let list = problems.join("\n- ");
                let reply = self.request(prompts::mend(&list))?;
                check(reply).map_err(|problems| {
                    format!(
                        "the model was asked twice, and what it returned is not valid: {}",
                        problems.join("; ")
                    )
                    .into()
                })
            }
        }
    }
}
