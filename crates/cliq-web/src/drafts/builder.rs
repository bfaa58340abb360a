//! Drafts made and changed by a model (docs/builder.md).

use std::time::Duration;

use cliq_orchestrator::internals::spawn_blocking;
use cliq_project::{BuilderRequest, DraftName, Host};
use serde::Serialize;
use utoipa::ToSchema;

use super::drafts_of;
use crate::problem::Problem;

/// Time limit of a request to the model.
const LIMIT: Duration = Duration::from_secs(600);

/// Change of a draft that a person describes.
#[derive(Debug, Clone)]
pub struct BuilderTask {
    /// Description of the change.
    pub instruction: String,
    /// Role that is changed alone, if any.
    pub role: Option<String>,
}

/// Change of a draft by a model. Nothing of it is saved.
#[derive(Debug, Serialize, ToSchema)]
pub struct ProposedChange {
    /// Files that differ.
    pub files: Vec<ChangedFile>,
    /// Permissions that the changed team has and the draft has not, as sentences.
    pub new_permissions: Vec<String>,
}

/// File of a proposed change.
#[derive(Debug, Serialize, ToSchema)]
pub struct ChangedFile {
    /// Path below the draft.
    pub path: String,
    /// Version of the file that was changed, or `null` for a new file.
    pub version: Option<String>,
    /// Text after the change.
    pub text: String,
    /// Difference in the unified form.
    pub difference: String,
}

/// Has a model make a team, and saves it as a draft. Without a name the draft gets that of the team, or a similar one.
///
/// # Errors
/// Returns a problem if there is no model, it fails, or there is a draft of the name.
pub async fn generate(host: &Host, intent: String, name: Option<DraftName>) -> Result<DraftName, Problem> {
    let drafts = drafts_of(host)?;
    if intent.trim().is_empty() {
        return Err(Problem::conflict("the description is empty: say what the team is to do"));
    }
    if let Some(name) = &name
        && drafts.folder(name).exists()
    {
        return Err(cliq_project::DraftError::Exists(name.clone()).into());
    }
    let built =
        host.build_team(BuilderRequest::Generate { intent }, tokio::time::sleep(LIMIT), |_| {}).await?;
    let blocking = spawn_blocking(move || {
        if let Some(name) = name {
            drafts.create_from_text(&name, &built.team)?;
            return Ok(name);
        }
        let own = built.name.rsplit('/').next().unwrap_or("team").to_ascii_lowercase().replace('_', "-");
        let base = DraftName::parse(&own).map_or_else(|_| "team".to_owned(), |name| name.to_string());
        // It was paid for: a name that is taken does not lose it.
        for number in 1..1000 {
            let text = if number == 1 { base.clone() } else { format!("{base}-{number}") };
            let Ok(name) = DraftName::parse(&text) else { break };
            match drafts.create_from_text(&name, &built.team) {
                Err(cliq_project::DraftError::Exists(_)) => {}
                created => return Ok(created.map(|()| name)?),
            }
        }
        Err(Problem::conflict("all names for the draft are taken"))
    });
    blocking.await.map_err(|error| Problem::unavailable(error.to_string()))?
}

/// Has a model change a draft. Nothing is saved.
///
/// # Errors
/// Returns a problem if there is no such draft or role, there is no model, or it fails.
pub async fn improve(host: &Host, name: &DraftName, task: BuilderTask) -> Result<ProposedChange, Problem> {
    let drafts = drafts_of(host)?;
    let (reader, draft) = (drafts.clone(), name.clone());
    let read = spawn_blocking(move || Ok::<_, Problem>((reader.text(&draft)?, reader.files(&draft)?)));
    let (old, files) = read.await.map_err(|error| Problem::unavailable(error.to_string()))??;
    let request = match task.role {
        None => BuilderRequest::Improve { team: old.clone(), instruction: task.instruction },
        Some(role) if !old.roles.contains_key(&role) => {
            return Err(Problem::conflict(format!("the draft has no role `{role}`")));
        }
        Some(role) => {
            let team_name = old.check(host).workflow.map(|workflow| workflow.name.to_string());
            let team_name = team_name.ok_or_else(|| Problem::conflict("the draft has errors"))?;
            BuilderRequest::ImproveRole { team: old.clone(), team_name, role, instruction: task.instruction }
        }
    };
    let built = host.build_team(request, tokio::time::sleep(LIMIT), |_| {}).await?;
    let version =
        |path: &str| files.iter().find(|file| file.path.as_str() == path).map(|file| file.version.clone());
    let text = |path: &str| match path.strip_prefix("roles/").and_then(|path| path.strip_suffix(".md")) {
        Some(role) => built.team.roles.get(role).cloned().unwrap_or_default(),
        None => built.team.team_yml.clone(),
    };
    let changed = built.team.differences(&old).into_iter().map(|(path, difference)| ChangedFile {
        version: version(&path),
        text: text(&path),
        difference,
        path,
    });
    Ok(ProposedChange { files: changed.collect(), new_permissions: built.team.new_permissions(&old, host) })
}
