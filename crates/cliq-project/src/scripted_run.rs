//! Runs of a team with scripted agents (docs/team-test.md): engine, gates, routes, conditions and lists are real, and no model is asked.

mod report;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use camino::Utf8Path;
use cliq_agents::Script;
use cliq_fs::write_atomic;
use cliq_git::Git;
use cliq_orchestrator::{Agents, CommandScript, RunPlan};
use cliq_workflow::{Phase, TeamFolder, ValidatedWorkflow};

use crate::assemble::copy_team;
use crate::run_sandbox::RunAccess;
use crate::team_files::check_files;
use crate::{Host, Project, ProjectError, RunOptions, RunSpec, RunStart, execute};
pub use report::{PhaseActivation, ScriptedCommand, ScriptedPhase, ScriptedReport, ScriptedVerdict};

/// Agent for phases that name none.
const DEFAULT_AGENT: &str = "scripted";

/// Run of a team with scripted agents.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ScriptedRun {
    /// The requirement.
    pub requirement: String,
    /// Values of the team's inputs.
    pub inputs: BTreeMap<String, String>,
    /// Replies of the agents.
    pub script: Script,
    /// Results of commands that are not run.
    pub commands: CommandScript,
}

impl ScriptedRun {
    /// Returns a run in which every agent gives its default reply and every command runs.
    #[must_use]
    pub fn new(requirement: impl Into<String>) -> Self {
        Self { requirement: requirement.into(), ..Self::default() }
    }

    /// Sets the values of the team's inputs.
    #[must_use]
    pub fn with_inputs(mut self, inputs: BTreeMap<String, String>) -> Self {
        self.inputs = inputs;
        self
    }

    /// Sets the replies of the agents.
    #[must_use]
    pub fn with_script(mut self, script: Script) -> Self {
        self.script = script;
        self
    }

    /// Sets results of commands that are not run.
    #[must_use]
    pub fn with_commands(mut self, commands: CommandScript) -> Self {
        self.commands = commands;
        self
    }
}

impl Host {
    /// Runs a team with scripted agents in a workspace, and returns what its phases did. Every agent of the team gives a reply of the script,
    /// except gates by `rules`. The team of a team phase does not run: the phase has replies of its own. No notification is sent, and nothing
    /// is fetched or published. Commands run, in the sandbox of their phase, unless the script has their results. The run is cancelled when
    /// `cancelled` resolves. Needs a tokio runtime with IO and time.
    ///
    /// # Errors
    /// The team has errors, an input is missing, or the run cannot be prepared. A run that does not complete is no error.
    pub async fn run_scripted(
        &self,
        folder: &TeamFolder,
        workspace: &Utf8Path,
        run: ScriptedRun,
        cancelled: impl Future<Output = ()>,
    ) -> Result<ScriptedReport, ProjectError> {
        let checked = folder.check();
        let Some(workflow) = checked.workflow else {
            let team = crate::InvalidTeam {
                file: folder.file().to_owned(),
                text: folder.text().to_owned(),
                diagnostics: checked.diagnostics,
            };
            return Err(ProjectError::TeamInvalid {
                subject: folder.dir().to_string(),
                team: Box::new(team),
            });
        };
        let project = Project::init_for_run(workspace, self.clone())?;
        check_files(folder.dir())?;
        copy_team(folder, &workflow, project.dir())?;
        project.set_requirement(&run.requirement)?;
        if needs_repository(&workflow) {
            make_repository(workspace)?;
        }
        let records = project.dir().root().join("scripted/records");
        let plan = project.scripted_plan(workflow, run, &records)?;
        let mut events = report::Events::default();
        let view =
            execute(plan, &RunStart::Fresh, self, cancelled, |record, _| events.apply(&record.event)).await?;
        Ok(events.report(&view, &records))
    }
}

impl Project {
    fn scripted_plan(
        &self,
        workflow: ValidatedWorkflow,
        run: ScriptedRun,
        records: &Utf8Path,
    ) -> Result<RunPlan, ProjectError> {
        let settings = self.settings()?;
        let script = self.dir().root().join("scripted/script.json");
        if let Some(parent) = script.parent() {
            std::fs::create_dir_all(parent)?;
        }
        write_atomic(&script, &serde_json::to_vec(&run.script).unwrap_or_default())?;
        let spec = RunSpec { inputs: run.inputs, ..RunSpec::default() };
        // Programs that agents would need are no matter of this run.
        let options = RunOptions::new().with_spec(spec).elsewhere();
        let mut plan = self.run_plan_of(workflow, &settings, &options)?;
        plan.default_agent = Some(DEFAULT_AGENT.to_owned());
        plan.command_script = run.commands;
        plan.agents = self.scripted_agents(&plan, &script, records);
        plan.notifications.clear();
        plan.checkpoints = None;
        self.confine(&mut plan, &settings, RunAccess::default())?;
        Ok(plan)
    }

    /// Returns the agents of a plan, each replaced by a scripted one, except gates by rules, and phases that run the commands of their message
    /// if commands run.
    fn scripted_agents(&self, plan: &RunPlan, script: &Utf8Path, records: &Utf8Path) -> Agents {
        let scripted =
            self.host().cliq(&["agent", "scripted", script.as_str(), records.as_str()]).with_model(None);
        let workflow = Arc::clone(&plan.workflow);
        let phases = workflow.phases().map(|(_, phase)| phase);
        let notified =
            |phase: &Phase| phase.notify.iter().map(|notify| notify.agent.clone()).collect::<Vec<_>>();
        let names: BTreeSet<String> = phases
            .flat_map(|phase| {
                plan.agent_of(phase).map(str::to_owned).into_iter().chain(notified(phase)).collect::<Vec<_>>()
            })
            .collect();
        names.into_iter().fold(Agents::new(), |agents, name| {
            let runs_commands = name == "exec" && !plan.command_script.runs_nothing();
            let is_kept = (name == "rules" || runs_commands) && !workflow.agents.contains_key(&name);
            match plan.agents.get(&name).filter(|_| is_kept) {
                Some(kept) => agents.with(name, kept.clone()),
                None => agents.with(name, scripted.clone()),
            }
        })
    }
}

/// Whether a phase needs worktrees, and thus a git repository with a commit.
fn needs_repository(workflow: &ValidatedWorkflow) -> bool {
    workflow.phases().any(|(_, phase)| phase.for_each.as_ref().is_some_and(|list| list.worktrees))
}

/// Makes a workspace a git repository with a commit of its files.
fn make_repository(workspace: &Utf8Path) -> Result<(), ProjectError> {
    if workspace.join(".git").exists() {
        return Ok(());
    }
    let git = Git::new(workspace).as_cliq();
    let steps: [&[&str]; 3] = [
        &["init", "--quiet"],
        &["add", "--all", "--", ".", ":!.cliq"],
        &["commit", "--quiet", "--allow-empty", "--message", "Files of the test"],
    ];
    for step in steps {
        git.run(step).map_err(ProjectError::Repository)?;
    }
    Ok(())
}
