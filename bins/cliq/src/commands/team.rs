//! `cliq team`

mod builder;
mod find;
pub(super) mod install;
mod publish;
mod test;
mod update;
mod watch;

use std::process::ExitCode;

use camino::Utf8Path;
use cliq_eval::team_test::test_schema;
use cliq_project::FoundTeam;
use cliq_workflow::{Severity, ValidatedWorkflow, count_by_severity, json_schema};
use serde_json::json;

use crate::args::{GraphFormat, TeamCommand};
use crate::failure::{Failure, Kind};
use crate::project;
use crate::render::{diagnostics, sandbox};
use crate::ui::{self, BOLD, DIM, GREEN, RED, paint};

pub(super) fn run(command: TeamCommand) -> Result<ExitCode, Failure> {
    match command {
        TeamCommand::Validate { path, watch: true, .. } => watch::run(path.as_deref()),
        TeamCommand::Validate { path, draft, json, .. } => {
            let is_valid = validate(path.as_deref(), draft, json)?;
            Ok(if is_valid { ExitCode::SUCCESS } else { ExitCode::from(2) })
        }
        TeamCommand::Graph { path, format } => {
            let workflow = valid(path.as_deref())?;
            ui::raw_styled(&match format {
                GraphFormat::Text => workflow.to_text(),
                GraphFormat::Mermaid => workflow.to_mermaid(),
                GraphFormat::Dot => workflow.to_dot(),
            })?;
            Ok(ExitCode::SUCCESS)
        }
        TeamCommand::Schema { tests } => {
            ui::json(&if tests { test_schema() } else { json_schema() })?;
            Ok(ExitCode::SUCCESS)
        }
        TeamCommand::Test(args) => test::run(&args),
        TeamCommand::Generate(args) => builder::generate(&args),
        TeamCommand::Improve(args) => builder::improve(&args),
        TeamCommand::List { json } => list(json),
        TeamCommand::Install { source, yes, allow_downgrade } => install::run(&source, yes, allow_downgrade),
        TeamCommand::Outdated { json } => update::outdated(json),
        TeamCommand::Update(args) => update::update(&args),
        TeamCommand::Version { next, path } => publish::version(&next, path.as_deref()),
        TeamCommand::Publish(args) => publish::publish(&args),
        TeamCommand::Search { words, json } => find::search(&words, json),
        TeamCommand::Info { package, json } => find::info(&package, json),
        TeamCommand::Create { name } => create(&name),
        TeamCommand::Show { path, json } => show(path.as_deref(), json),
    }
}

/// Shows every problem of a team. Gives whether it has no errors.
fn validate(path: Option<&str>, is_draft: bool, as_json: bool) -> Result<bool, Failure> {
    let mut found = find(path)?;
    if is_draft {
        found.folder = found.folder.as_draft();
    }
    let checked = found.folder.check();
    let (file, valid) = (found.folder.file(), checked.workflow.is_some());
    if as_json {
        let rows: Vec<_> = checked
            .diagnostics
            .iter()
            .map(|d| {
                json!({
                    "code": d.code, "severity": d.severity, "message": d.message, "file": file,
                    "line": d.span.line, "column": d.span.column, "help": d.help,
                })
            })
            .collect();
        let most = checked.workflow.as_ref().map(ValidatedWorkflow::max_activations);
        ui::json(&json!({"valid": valid, "file": file, "diagnostics": rows, "max_activations": most}))?;
    } else {
        diagnostics::show(found.folder.text(), file, &checked.diagnostics);
        let count = count_by_severity(&checked.diagnostics);
        match &checked.workflow {
            Some(workflow) => {
                let with = if count.is_empty() { String::new() } else { format!(" with {count}") };
                let phases = workflow.phases().len();
                let most = match workflow.max_activations() {
                    u64::MAX => "a very large number of activations".to_owned(),
                    1 => "at most 1 activation".to_owned(),
                    most => format!("at most {most} activations"),
                };
                let name = &workflow.name;
                ui::line(format!("{} {name} ({phases} phases, {most}){with}", paint(GREEN, "valid:")))?;
                sandbox::show(workflow, &project::here()?)?;
            }
            None => ui::line(format!("{} {file}: {count}", paint(RED, "invalid:")))?,
        }
    }
    Ok(valid)
}

/// The team that a person names; without a name the team of this directory, else the assembled one.
fn find(reference: Option<&str>) -> Result<FoundTeam, Failure> {
    // A project may define agents.
    let host = project::open().map_or_else(|_| project::host(), |project| project.host().clone());
    if let Some(reference) = reference {
        return Ok(host.find_team(reference)?);
    }
    if !Utf8Path::new("team.yml").exists()
        && let Ok(project) = project::open()
        && project.has_team()
    {
        return Ok(host.find_team(project.dir().root().as_str())?);
    }
    Ok(host.find_team(".")?)
}

/// A team without errors; its problems are shown where it has some.
fn valid(path: Option<&str>) -> Result<ValidatedWorkflow, Failure> {
    let found = find(path)?;
    let checked = found.folder.check();
    checked.workflow.ok_or_else(|| {
        let errors: Vec<_> =
            checked.diagnostics.into_iter().filter(|d| d.severity == Severity::Error).collect();
        diagnostics::show(found.folder.text(), found.folder.file(), &errors);
        Failure::reported(Kind::Usage)
    })
}

fn list(as_json: bool) -> Result<ExitCode, Failure> {
    let teams = project::host().list_teams(Utf8Path::new("."))?;
    if as_json {
        ui::json(&teams)?;
        return Ok(ExitCode::SUCCESS);
    }
    let width = teams.iter().map(|team| team.name.chars().count()).max().unwrap_or(0);
    for team in teams {
        let about = match (team.valid, team.description) {
            (false, _) => paint(RED, "has errors: `cliq team validate` shows them"),
            (true, description) => description.unwrap_or_default(),
        };
        let place = team.path.map_or(String::new(), |path| paint(DIM, format!(" ({path})")));
        ui::line(format!("{:width$}  {:<9}  {about}{place}", team.name, team.source.as_str()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn show(path: Option<&str>, as_json: bool) -> Result<ExitCode, Failure> {
    let workflow = valid(path)?;
    if as_json {
        ui::json(&to_json(&workflow))?;
        return Ok(ExitCode::SUCCESS);
    }
    let version = workflow.version.as_ref().map(|v| format!(" {v}")).unwrap_or_default();
    ui::line(paint(BOLD, format!("{}{version}", workflow.name)))?;
    if let Some(description) = &workflow.description {
        ui::line(description)?;
    }
    for (title, items) in [
        ("use when", &workflow.use_when),
        ("not for", &workflow.not_for),
        ("tools", &workflow.tools),
        ("tags", &workflow.tags),
    ] {
        if !items.is_empty() {
            ui::line(format!("{}: {}", paint(BOLD, title), items.join("; ")))?;
        }
    }
    for input in &workflow.inputs {
        let need = match (&input.default, input.required) {
            (Some(default), _) => format!("default {default:?}"),
            (None, true) => "required".to_owned(),
            (None, false) => "optional".to_owned(),
        };
        let about = input.description.as_deref().unwrap_or_default();
        ui::line(format!("{}: {} ({need}) {about}", paint(BOLD, "input"), input.name))?;
    }
    for (name, agent) in &workflow.agents {
        let env =
            if agent.env.is_empty() { String::new() } else { format!(", needs {}", agent.env.join(", ")) };
        ui::line(format!("{}: {name} ({}{env})", paint(BOLD, "agent"), agent.entry))?;
    }
    let text = workflow.to_text();
    ui::raw_styled(text.split_once('\n').map_or("", |(_, phases)| phases))?;
    Ok(ExitCode::SUCCESS)
}

fn to_json(workflow: &ValidatedWorkflow) -> serde_json::Value {
    let name = |id| workflow.phase(id).name.to_string();
    let phases: Vec<_> = workflow
        .phases()
        .map(|(_, phase)| {
            json!({
                "name": phase.name, "type": phase.kind, "support": phase.support, "agent": phase.agent,
                "depends_on": phase.depends_on.iter().map(|&id| name(id)).collect::<Vec<_>>(),
                "route_targets": phase.route_targets.iter().map(|&id| name(id)).collect::<Vec<_>>(),
                "commands": phase.commands.iter().map(|c| &c.name).collect::<Vec<_>>(),
            })
        })
        .collect();
    let inputs: Vec<_> = workflow
        .inputs
        .iter()
        .map(|i| json!({"name": i.name, "description": i.description, "required": i.required, "default": i.default}))
        .collect();
    json!({
        "name": workflow.name, "description": workflow.description,
        "version": workflow.version.as_ref().map(ToString::to_string),
        "tools": workflow.tools, "tags": workflow.tags, "use_when": workflow.use_when, "not_for": workflow.not_for,
        "inputs": inputs, "phases": phases,
    })
}

/// Creates a team that is valid as it stands, to be changed.
fn create(name: &str) -> Result<ExitCode, Failure> {
    let (full, dir) = project::host().create_team(Utf8Path::new(""), name)?;
    ui::line(format!("created {full} in {dir}/"))?;
    ui::line(format!(
        "next: change {dir}/team.yml and {dir}/roles/, then `cliq team validate {dir}`, `cliq team test {dir}` and `cliq assemble {dir}`"
    ))?;
    Ok(ExitCode::SUCCESS)
}
