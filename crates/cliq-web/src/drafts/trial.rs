//! Trials of drafts with scripted agents. Nothing of a draft is executed: its commands have scripted results, and its programs do not run.

use std::collections::BTreeMap;
use std::time::Duration;

use camino::Utf8Path;
use cliq_orchestrator::internals::spawn_blocking;
use cliq_project::{
    CommandScript, DraftName, Host, Script, ScriptedOutcome, ScriptedReply, ScriptedReport, ScriptedRun,
    UnsavedTexts,
};
use cliq_workflow::{TeamFolder, ValidatedWorkflow};
use serde::Deserialize;
use tokio::sync::Semaphore;
use utoipa::ToSchema;

use super::{drafts_of, refused, validate_draft};
use crate::input::whole_number;
use crate::problem::Problem;

/// Time limit of a trial.
const LIMIT: Duration = Duration::from_secs(60);
/// Trials at the same time.
static TRIALS: Semaphore = Semaphore::const_new(2);

/// Trial of a draft.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DraftTrial {
    /// Requirement for the team.
    #[serde(default)]
    pub requirement: String,
    /// Values of the team's inputs. Required inputs without a value get a placeholder.
    #[serde(default)]
    pub inputs: BTreeMap<String, String>,
    /// Replies by phase, in the order of its activations. Other phases give default replies.
    #[serde(default)]
    pub replies: BTreeMap<String, Vec<DraftReply>>,
    /// Results of commands by phase and command, in the order of the activations. Other commands pass.
    #[serde(default)]
    pub commands: BTreeMap<String, BTreeMap<String, Vec<DraftCommandResult>>>,
}

/// Scripted result of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum DraftCommandResult {
    /// The command passes.
    Pass,
    /// The command fails.
    Fail,
}

/// Scripted reply of a phase.
#[derive(Debug, Default, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DraftReply {
    /// Item of a phase with `for_each`, 0-based. Each item without it.
    #[serde(default, deserialize_with = "whole_number")]
    pub item: Option<u32>,
    /// Text that is handed over.
    #[serde(default)]
    pub text: Option<String>,
    /// Data that is handed over.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub data: Option<serde_json::Map<String, serde_json::Value>>,
    /// Verdict of a gate: `pass`, `escalate`, or the phase that the work goes back to.
    #[serde(default)]
    pub verdict: Option<String>,
    /// Reason of the verdict.
    #[serde(default)]
    pub reason: Option<String>,
    /// Message of a failure: the agent fails with it.
    #[serde(default)]
    pub error: Option<String>,
}

impl From<DraftReply> for ScriptedReply {
    fn from(reply: DraftReply) -> Self {
        Self {
            item: reply.item,
            text: reply.text,
            data: reply.data.map(|data| data.into_iter().collect()),
            files: BTreeMap::new(),
            verdict: reply.verdict.map(|word| match word.as_str() {
                "pass" => ScriptedOutcome::Pass,
                "escalate" => ScriptedOutcome::Escalate,
                _ => ScriptedOutcome::Route(word),
            }),
            reason: reply.reason,
            error: reply.error,
        }
    }
}

impl DraftTrial {
    /// Returns a sentence for each part that does not fit the team.
    fn problems(&self, workflow: &ValidatedWorkflow) -> Vec<String> {
        let mut wrong = Vec::new();
        for name in
            self.inputs.keys().filter(|name| !workflow.inputs.iter().any(|input| input.name == **name))
        {
            wrong.push(format!("the team has no input `{name}`"));
        }
        let find =
            |name: &str| workflow.phases().map(|(_, phase)| phase).find(|phase| phase.name.as_str() == name);
        for (name, replies) in &self.replies {
            let Some(phase) = find(name) else {
                wrong.push(format!("the team has no phase `{name}`"));
                continue;
            };
            let targets: Vec<&str> =
                phase.route_targets.iter().map(|target| workflow.phase(*target).name.as_str()).collect();
            for verdict in replies.iter().filter_map(|reply| reply.verdict.as_deref()) {
                if !phase.kind.is_gate() {
                    wrong.push(format!("phase `{name}` is not a gate and gives no verdict"));
                } else if !matches!(verdict, "pass" | "escalate") && !targets.contains(&verdict) {
                    let known = ["pass", "escalate"].into_iter().chain(targets.iter().copied());
                    let known = known.collect::<Vec<_>>().join(", ");
                    wrong.push(format!(
                        "gate `{name}` cannot give the verdict {verdict:?}: it can give {known}"
                    ));
                }
            }
        }
        for (name, commands) in &self.commands {
            let Some(phase) = find(name) else {
                wrong.push(format!("the team has no phase `{name}`"));
                continue;
            };
            for command in
                commands.keys().filter(|name| !phase.commands.iter().any(|known| known.name == **name))
            {
                wrong.push(format!("phase `{name}` has no command `{command}`"));
            }
        }
        wrong
    }

    fn into_run(self, workflow: &ValidatedWorkflow) -> ScriptedRun {
        let mut inputs = self.inputs;
        for input in workflow.inputs.iter().filter(|input| input.required && input.default.is_none()) {
            inputs.entry(input.name.clone()).or_insert_with(|| format!("({})", input.name));
        }
        let mut commands = CommandScript::all_pass();
        for (phase, results) in self.commands {
            for (command, results) in results.into_iter().filter(|(_, results)| !results.is_empty()) {
                let results = results.into_iter().map(|result| result == DraftCommandResult::Pass);
                commands = commands.with_results(phase.clone(), command, results);
            }
        }
        let replies = self.replies.into_iter();
        let phases =
            replies.map(|(phase, replies)| (phase, replies.into_iter().map(ScriptedReply::from).collect()));
        let requirement = if self.requirement.trim().is_empty() {
            "Trial of the team.".to_owned()
        } else {
            self.requirement
        };
        let script = Script { phases: phases.collect() };
        ScriptedRun::new(requirement).with_inputs(inputs).with_script(script).with_commands(commands)
    }
}

/// Runs a draft, as it is saved, with scripted agents, for a minute at most. Two trials run at the same time; others wait.
///
/// # Errors
/// Returns a problem if there is no such draft, it has errors, a part of the trial does not fit the team, or the run cannot start.
pub async fn try_draft(host: &Host, name: &DraftName, trial: DraftTrial) -> Result<ScriptedReport, Problem> {
    let _permit = TRIALS.acquire().await.map_err(|error| Problem::unavailable(error.to_string()))?;
    let (host, name) = (host.clone(), name.clone());
    let (folder, run, temporary, host) = spawn_blocking(move || {
        let checked = validate_draft(&host, &name, &UnsavedTexts::new())?;
        let Some(workflow) = checked.check.workflow else {
            let errors = checked.problems.iter().filter(|problem| problem.severity == "error");
            let errors = errors.map(|p| format!("{}, line {}: {}", p.file, p.line, p.message)).collect();
            return Err(Problem { errors, ..Problem::conflict("the draft has errors") });
        };
        let wrong = trial.problems(&workflow);
        if !wrong.is_empty() {
            return Err(Problem { errors: wrong, ..Problem::conflict("the trial does not fit the team") });
        }
        let folder = load(&host, &name)?;
        let temporary = tempfile::Builder::new().prefix("cliq-trial-").tempdir();
        let temporary = temporary.map_err(|error| Problem::unavailable(error.to_string()))?;
        Ok((folder, trial.into_run(&workflow), temporary, host))
    })
    .await
    .map_err(|error| Problem::unavailable(error.to_string()))??;
    let workspace = Utf8Path::from_path(temporary.path())
        .ok_or_else(|| Problem::unavailable("the temporary directory is not UTF-8"))?;
    host.run_scripted(&folder, workspace, run, tokio::time::sleep(LIMIT)).await.map_err(refused)
}

/// Loads the folder of a draft as a draft.
fn load(host: &Host, name: &DraftName) -> Result<TeamFolder, Problem> {
    let folder = drafts_of(host)?.folder(name);
    Ok(host.find_team(folder.as_str())?.folder.as_draft())
}
