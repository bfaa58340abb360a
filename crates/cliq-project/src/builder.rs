//! Teams that a model makes and changes (docs/builder.md). The agent `builder` does it, in a run of its own.

use camino::Utf8PathBuf;
use cliq_orchestrator::{PipelineStatus, RunEvent};
use serde_json::{Value, json};

use crate::{Host, Project, ProjectError, RunOptions, RunStart, TeamText, execute};

/// Maximum size of a result, in bytes.
const MAX_RESULT: u64 = 64 << 20;

/// Request to a model that makes or changes a team.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BuilderRequest {
    /// A new team for what a person describes.
    Generate {
        /// Description of the team's work.
        intent: String,
    },
    /// A change of a team, with new phases and roles where it needs them.
    Improve {
        /// The team.
        team: TeamText,
        /// Description of the change.
        instruction: String,
    },
    /// A better text of one role.
    ImproveRole {
        /// The team.
        team: TeamText,
        /// Name of the team.
        team_name: String,
        /// Name of the role.
        role: String,
        /// Description of the change.
        instruction: String,
    },
}

/// Team that a model made or changed. It has no errors.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BuiltTeam {
    /// Name of the team.
    pub name: String,
    /// The team.
    pub team: TeamText,
}

impl BuilderRequest {
    /// The bundled team that does it.
    fn team(&self) -> &'static str {
        match self {
            Self::Generate { .. } => "@builder/build-team",
            Self::Improve { .. } => "@builder/improve-team",
            Self::ImproveRole { .. } => "@builder/improve-role",
        }
    }

    /// The parameters of the capability.
    fn parameters(&self) -> Value {
        match self {
            Self::Generate { intent } => json!({"intent": intent}),
            Self::Improve { team, instruction } => {
                let roles: Vec<Value> =
                    team.roles.iter().map(|(name, text)| json!({"name": name, "content": text})).collect();
                json!({"team_yml": team.team_yml, "roles": roles, "skills": team.skills, "instruction": instruction})
            }
            Self::ImproveRole { team, team_name, role, instruction } => json!({
                "team_name": team_name, "role_name": role, "role_content": team.roles.get(role), "instruction": instruction,
            }),
        }
    }

    /// Returns the team of a result.
    fn read(self, result: &Value) -> Result<BuiltTeam, ProjectError> {
        let text = |value: &Value, key: &str| -> Result<String, ProjectError> {
            let text = value.get(key).and_then(Value::as_str).map(str::to_owned);
            text.ok_or_else(|| {
                ProjectError::Builder(format!("the result of the builder has no text `{key}`"))
            })
        };
        match self {
            Self::Generate { .. } | Self::Improve { .. } => {
                let mut team = TeamText::new(text(result, "team_yml")?);
                if let Self::Improve { team: old, .. } = self {
                    team.skills = old.skills;
                }
                for role in result.get("roles").and_then(Value::as_array).into_iter().flatten() {
                    team = team.with_role(text(role, "name")?, text(role, "content")?);
                }
                Ok(BuiltTeam { name: text(result, "name")?, team })
            }
            Self::ImproveRole { team, team_name, role, .. } => {
                let content = text(result, "role_content")?;
                Ok(BuiltTeam { name: team_name, team: team.with_role(role, content) })
            }
        }
    }
}

impl Host {
    /// Has a model make or change a team. The model is that of the settings `builder.*`, else the first whose key is set. Its answer is checked,
    /// and it is asked once to mend what is wrong. Nothing is written. `on_progress` gets messages for people. Needs a tokio runtime with IO and
    /// time.
    ///
    /// # Errors
    /// There is no model, it cannot be reached, it was asked twice and its answer is not valid, or the request was cancelled.
    pub async fn build_team(
        &self,
        request: BuilderRequest,
        cancelled: impl Future<Output = ()>,
        mut on_progress: impl FnMut(&str),
    ) -> Result<BuiltTeam, ProjectError> {
        let place = tempfile::Builder::new().prefix("cliq-builder-").tempdir()?;
        let workspace = camino::Utf8Path::from_path(place.path())
            .ok_or_else(|| ProjectError::NotUtf8("the temporary directory".to_owned()))?;
        let project = Project::init_for_run(workspace, self.clone())?;
        if let Some(settings) = self.project_settings.as_ref().filter(|file| file.is_file()) {
            // The project that the person is in may choose the model.
            std::fs::copy(settings, project.dir().settings())?;
        }
        project.assemble(request.team())?;
        project.set_requirement(&request.parameters().to_string())?;
        let mut plan = project.run_plan(&RunOptions::new())?;
        plan.notifications.clear();
        plan.checkpoints = None;
        let (mut file, mut failure) = (None, None);
        let view = execute(plan, &RunStart::Fresh, self, cancelled, |record, _| match &record.event {
            RunEvent::Progress { message, .. } => on_progress(message),
            RunEvent::AgentCompleted { result: Some(result), .. } => {
                file = result.get("file").and_then(Value::as_str).map(Utf8PathBuf::from);
            }
            RunEvent::WorkFailed { reason, .. } => failure = Some(reason.clone()),
            _ => {}
        });
        let view = Box::pin(view).await?;
        if view.status.as_deref() == Some(PipelineStatus::Cancelled.as_str()) {
            return Err(ProjectError::Builder("the request was cancelled".to_owned()));
        }
        let reason =
            || failure.or(view.reason.clone()).unwrap_or_else(|| "the builder gave no result".to_owned());
        // The agent of this run is no matter of the caller.
        let file = file.ok_or_else(|| {
            let reason = reason();
            ProjectError::Builder(
                reason.strip_prefix("agent builder reports: ").unwrap_or(&reason).to_owned(),
            )
        })?;
        let bytes = cliq_fs::read_limited(&file, MAX_RESULT)?;
        let result: Value = serde_json::from_slice(&bytes).map_err(|error| {
            ProjectError::Builder(format!("the result of the builder is not JSON: {error}"))
        })?;
        request.read(&result)
    }
}
