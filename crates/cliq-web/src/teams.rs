//! Documents of teams.

use camino::Utf8Path;
use cliq_project::{FoundTeam, Host, TeamNeeds};
use cliq_protocol::TeamName;
use cliq_workflow::{Diagnostic, PhaseId, Severity, TeamCheck};
use serde::Serialize;
use utoipa::ToSchema;

use crate::problem::Problem;

/// Team in a list.
#[derive(Debug, Serialize, ToSchema)]
pub struct TeamSummary {
    /// `@scope/name`
    pub name: String,
    /// Description.
    pub description: Option<String>,
    /// `installed` or `bundled`.
    pub source: String,
    /// Whether the team has no errors.
    pub valid: bool,
}

/// Problem of a team.yml.
#[derive(Debug, Serialize, ToSchema)]
pub struct DiagnosticDocument {
    /// Stable name of the kind of problem.
    pub code: String,
    /// `error` or `warning`.
    pub severity: String,
    /// Message.
    pub message: String,
    /// Line in team.yml, 1-based.
    pub line: usize,
    /// Column, 1-based.
    pub column: usize,
    /// Remedy.
    pub help: String,
}

/// Input of a team.
#[derive(Debug, Serialize, ToSchema)]
pub struct InputDocument {
    /// Name.
    pub name: String,
    /// Description.
    pub description: Option<String>,
    /// Whether a run needs a value.
    pub required: bool,
    /// Default value.
    pub default: Option<String>,
}

/// Phase of a team.
#[derive(Debug, Serialize, ToSchema)]
pub struct PhaseDocument {
    /// Name.
    pub name: String,
    /// Phase type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether the phase is idle until a gate routes to it.
    pub support: bool,
    /// Agent, if the team names one.
    pub agent: Option<String>,
    /// Phases that must be complete before this one starts.
    pub depends_on: Vec<String>,
    /// Phases to which a gate may route.
    pub route_targets: Vec<String>,
}

/// Document of a team.
#[derive(Debug, Serialize, ToSchema)]
pub struct TeamDocument {
    /// `@scope/name`
    pub name: String,
    /// Description.
    pub description: Option<String>,
    /// Version.
    pub version: Option<String>,
    /// Search terms.
    pub tags: Vec<String>,
    /// Cases in which to use the team.
    pub use_when: Vec<String>,
    /// Cases in which not to use the team.
    pub not_for: Vec<String>,
    /// Whether the team has no errors.
    pub valid: bool,
    /// Inputs.
    pub inputs: Vec<InputDocument>,
    /// Phases.
    pub phases: Vec<PhaseDocument>,
    /// Problems of its team.yml.
    pub diagnostics: Vec<DiagnosticDocument>,
}

/// Lists the teams that are installed or bundled.
///
/// # Errors
/// Returns a problem if the installed teams cannot be read.
pub fn list_teams(host: &Host) -> Result<Vec<TeamSummary>, Problem> {
    // A directory that does not exist: teams of the server's working directory are not listed.
    let found = host.list_teams(Utf8Path::new("/nonexistent"))?;
    Ok(found
        .into_iter()
        .map(|team| TeamSummary {
            name: team.name,
            description: team.description,
            source: team.source.as_str().to_owned(),
            valid: team.valid,
        })
        .collect())
}

/// Team in a list, with what it needs.
#[derive(Debug)]
pub struct TeamCard {
    /// Fields of the list.
    pub summary: TeamSummary,
    /// Number of its phases; 0 if it has errors.
    pub phases: usize,
    /// Inputs that a run has to have.
    pub inputs: Vec<String>,
    /// Needs. `None` if the team has errors.
    pub needs: Option<TeamNeeds>,
}

/// Lists installed and bundled teams with what each needs here. Blocks.
///
/// # Errors
/// Returns a problem if the teams or the settings cannot be read.
pub fn team_cards(host: &Host) -> Result<Vec<TeamCard>, Problem> {
    let settings = host.settings()?;
    let card = |summary: TeamSummary| {
        let checked = find_team(host, &summary.name).ok().map(|(_, checked)| checked);
        let workflow = checked.as_ref().and_then(|checked| checked.workflow.as_ref());
        let required = |input: &&cliq_workflow::Input| input.required && input.default.is_none();
        TeamCard {
            phases: workflow.map_or(0, |workflow| workflow.phases().len()),
            inputs: workflow
                .map(|workflow| {
                    workflow.inputs.iter().filter(required).map(|input| input.name.clone()).collect()
                })
                .unwrap_or_default(),
            needs: workflow.map(|workflow| host.needs(workflow, &settings, None)),
            summary,
        }
    };
    Ok(list_teams(host)?.into_iter().map(card).collect())
}

/// Returns the problems of a checked team.
#[must_use]
pub fn diagnostics(checked: &TeamCheck) -> Vec<DiagnosticDocument> {
    let document = |d: &Diagnostic| DiagnosticDocument {
        code: d.code.to_owned(),
        severity: if d.severity == Severity::Error { "error" } else { "warning" }.to_owned(),
        message: d.message.clone(),
        line: d.span.line,
        column: d.span.column,
        help: d.help.clone(),
    };
    checked.diagnostics.iter().map(document).collect()
}

/// Finds a team by its name and checks it.
///
/// # Errors
/// Returns a problem if there is no such team.
pub fn find_team(host: &Host, name: &str) -> Result<(FoundTeam, TeamCheck), Problem> {
    if TeamName::parse(name).is_err() {
        return Err(Problem::not_found("there is no team of this name"));
    }
    let found = host.find_team(name).map_err(|error| Problem::not_found(error.to_string()))?;
    let checked = found.folder.check();
    Ok((found, checked))
}

/// Returns the document of a checked team.
#[must_use]
pub fn team_document(name: &str, checked: &TeamCheck) -> TeamDocument {
    let diagnostics = diagnostics(checked);
    let Some(workflow) = &checked.workflow else {
        return TeamDocument {
            name: name.to_owned(),
            description: None,
            version: None,
            tags: Vec::new(),
            use_when: Vec::new(),
            not_for: Vec::new(),
            valid: false,
            inputs: Vec::new(),
            phases: Vec::new(),
            diagnostics,
        };
    };
    let names =
        |ids: &[PhaseId]| ids.iter().map(|id| workflow.phase(*id).name.to_string()).collect::<Vec<_>>();
    TeamDocument {
        name: workflow.name.to_string(),
        description: workflow.description.clone(),
        version: workflow.version.as_ref().map(ToString::to_string),
        tags: workflow.tags.clone(),
        use_when: workflow.use_when.clone(),
        not_for: workflow.not_for.clone(),
        valid: true,
        inputs: workflow
            .inputs
            .iter()
            .map(|input| InputDocument {
                name: input.name.clone(),
                description: input.description.clone(),
                required: input.required && input.default.is_none(),
                default: input.default.clone(),
            })
            .collect(),
        phases: workflow
            .phases()
            .map(|(_, phase)| PhaseDocument {
                name: phase.name.to_string(),
                kind: phase.kind.to_string(),
                support: phase.support,
                agent: phase.agent.clone(),
                depends_on: names(&phase.depends_on),
                route_targets: names(&phase.route_targets),
            })
            .collect(),
        diagnostics,
    }
}
