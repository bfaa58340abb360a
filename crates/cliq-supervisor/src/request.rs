//! Rules of a new run: teams a caller may name, inputs, repositories, budgets, text. One check for every entry point.

use std::collections::BTreeMap;
use std::fmt;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_http::Guard;
use cliq_model::{Instance, Run, RunOrigin, RunRequest, RunSpec, RunStore, StoreError};
use cliq_orchestrator::internals::spawn_blocking;
use cliq_project::{Host, Project, ProjectError};
use cliq_protocol::{Budget, RunId, TeamName};
use cliq_workflow::{Diagnostic, Input, ValidatedWorkflow};

use crate::clock;
use crate::options::SupervisorOptions;
use crate::repositories::check_repository;
use crate::workspace_io::{WorkspaceIo, WorkspaceIoError};

/// Maximum number of repositories of a run.
pub const MAX_REPOS: usize = 20;
/// Maximum token budget of a run: the largest integer that every JSON reader keeps exactly.
pub const MAX_BUDGET_TOKENS: u64 = (1 << 53) - 1;
/// Maximum length of a title in characters.
const MAX_TITLE: usize = 1000;
/// Maximum value of `max_parallel`.
pub const MAX_PARALLEL: u32 = 1_000_000;

/// Request for a new run as a caller sent it. Nothing is checked yet: [`Supervisor::check`](crate::Supervisor::check) does.
///
/// ```
/// use cliq_model::RunSpec;
/// use cliq_supervisor::NewRun;
///
/// let spec = RunSpec { team: Some("@cliq/code".to_owned()), ..RunSpec::default() };
/// let new = NewRun::new(spec).with_caller("nightly");
/// assert_eq!((new.caller.as_str(), new.instance), ("nightly", None));
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct NewRun {
    /// Description of the run. The team is optional if `instance` names a project with an assembled team.
    pub spec: RunSpec,
    /// Id of the registered project to run in. Without it the run gets a workspace of its own.
    pub instance: Option<String>,
    /// Whether the workspace of a delegated run is kept after its end.
    pub keep_workspace: bool,
    /// Label of the caller.
    pub caller: String,
}

impl NewRun {
    /// Returns the request for a run in a workspace of its own.
    #[must_use]
    pub fn new(spec: RunSpec) -> Self {
        Self { spec, ..Self::default() }
    }

    /// Sets the id of the registered project to run in.
    #[must_use]
    pub fn with_instance(mut self, instance: impl Into<Option<String>>) -> Self {
        self.instance = instance.into();
        self
    }

    /// Sets the label of the caller, which the events of the run name.
    #[must_use]
    pub fn with_caller(mut self, caller: impl Into<String>) -> Self {
        self.caller = caller.into();
        self
    }

    /// Sets whether the workspace of a delegated run is kept after its end.
    #[must_use]
    pub fn with_kept_workspace(mut self, keep: bool) -> Self {
        self.keep_workspace = keep;
        self
    }
}

/// Rules that differ between entry points: API, triggers, other agents.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RunRules {
    /// Origin of the run.
    pub origin: RunOrigin,
    /// Teams that the caller may name.
    pub teams: AllowedTeams,
    /// Whether an input that the team does not declare is an error. Otherwise it is dropped.
    pub strict_inputs: bool,
}

impl RunRules {
    /// Rules for people and programs that hold a token of the server.
    #[must_use]
    pub fn for_token() -> Self {
        Self { origin: RunOrigin::Server, teams: AllowedTeams::AnyByName, strict_inputs: true }
    }

    /// Rules for other agents that delegate runs. `strict_inputs` makes an undeclared input an error.
    #[must_use]
    pub fn for_delegation(teams: AllowedTeams, strict_inputs: bool) -> Self {
        Self { origin: RunOrigin::Delegated, teams, strict_inputs }
    }

    /// Rules for triggers: their file names team and inputs.
    #[must_use]
    pub fn for_trigger() -> Self {
        Self { origin: RunOrigin::Trigger, ..Self::for_token() }
    }
}

/// Teams that a caller may name.
#[derive(Debug, Clone)]
pub enum AllowedTeams {
    /// Each installed or bundled team. Paths and the capabilities that are offered to other agents are refused.
    AnyByName,
    /// The teams of a list.
    Listed(Vec<String>),
    /// One team that the entry point chose.
    Chosen(String),
}

/// Request that satisfies every rule, with the run that it becomes.
#[derive(Debug, Clone)]
pub struct CheckedRun {
    pub(crate) run: Run,
}

impl CheckedRun {
    /// Id of the future run.
    #[must_use]
    pub fn id(&self) -> &RunId {
        &self.run.id
    }
}

/// Reason why a request for a run is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// Values break a rule that applies to all teams.
    #[error("the run cannot be started")]
    Values(Vec<ValueError>),
    /// No registered project has this id.
    #[error("there is no registered project `{0}`")]
    UnknownProject(String),
    /// The directory of the registered project is no longer a project.
    #[error("the project is gone from its directory")]
    ProjectGone,
    /// The registered project has no assembled team.
    #[error("no team is assembled in the project: name a `team`")]
    NoAssembledTeam,
    /// Neither a team nor a project is named.
    #[error("name a `team` or an `instance`")]
    TeamMissing,
    /// The name is not the name of a team.
    #[error("`{0}` is not a team: write @scope/name")]
    NotATeamName(String),
    /// The caller may not name this team, or no such team exists. Both look the same.
    #[error("`{name}` is not offered here")]
    NotOffered {
        /// Name as requested.
        name: String,
    },
    /// The team has errors.
    #[error("team {name} has errors")]
    TeamInvalid {
        /// Name of the team.
        name: String,
        /// Problems of its team.yml.
        diagnostics: Vec<Diagnostic>,
    },
    /// The inputs do not match the team.
    #[error("the inputs do not fit the team")]
    Inputs(InputErrors),
    /// The team or the project cannot be read.
    #[error(transparent)]
    Project(#[from] ProjectError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The check was interrupted.
    #[error("the check of the run was interrupted: {0}")]
    Interrupted(#[from] tokio::task::JoinError),
    /// The files of the project cannot be read now.
    #[error(transparent)]
    Files(#[from] WorkspaceIoError),
}

/// Rule that a value breaks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ValueError {
    /// The address of a repository cannot be used.
    #[error("{0}")]
    Repository(String),
    /// The host of a repository is not allowed.
    #[error("repositories of {0} are not allowed (`server.a2a.repo_hosts`, `triggers.repo_hosts`)")]
    RepositoryHost(String),
    /// The request has too many repositories.
    #[error("`repos` has more than {MAX_REPOS} repositories")]
    TooManyRepositories,
    /// Repositories are requested for a registered project.
    #[error("`repos` are cloned into fresh workspaces only: leave out `instance`")]
    RepositoriesInProject,
    /// The title is too long.
    #[error("`title` has at most {MAX_TITLE} characters")]
    Title,
    /// `max_parallel` is out of range.
    #[error("`max_parallel` is a whole number from 1 to {MAX_PARALLEL}")]
    MaxParallel,
    /// `budget_tokens` is out of range.
    #[error("`budget_tokens` is a whole number from 1 to {MAX_BUDGET_TOKENS}")]
    BudgetTokens,
    /// `budget_usd` is out of range.
    #[error("`budget_usd` is a number above 0")]
    BudgetUsd,
    /// A text contains a zero byte, or an input has an impossible name.
    #[error("a text has a zero byte, or an input has no proper name")]
    Text,
}

/// Differences between the given inputs and those that a team declares.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct InputErrors {
    /// Name of the team.
    pub team: String,
    /// Required inputs without a value.
    pub missing: Vec<Input>,
    /// Names that the team does not declare.
    pub unknown: Vec<String>,
    /// Names that the team declares.
    pub declared: Vec<String>,
}

impl fmt::Display for InputErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lines().join("; "))
    }
}

impl InputErrors {
    /// Returns one sentence per problem.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let missing = self.missing.iter().map(|input| {
            let about = input.description.as_ref().map(|about| format!(": {about}")).unwrap_or_default();
            format!("input `{}` is missing{about}", input.name)
        });
        missing.chain(self.unknown.iter().map(|name| format!("the team has no input `{name}`"))).collect()
    }
}

/// Checks a budget that a caller gave.
///
/// # Errors
/// Returns each rule that the budget breaks.
pub fn check_budget(budget: &Budget) -> Result<(), Vec<ValueError>> {
    let mut errors = Vec::new();
    if budget.tokens.is_some_and(|tokens| !(1..=MAX_BUDGET_TOKENS).contains(&tokens)) {
        errors.push(ValueError::BudgetTokens);
    }
    if budget.usd.is_some_and(|usd| !usd.is_finite() || usd <= 0.0) {
        errors.push(ValueError::BudgetUsd);
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// Checks that a run can be resumed from a phase of its team.
///
/// # Errors
/// Returns the names of the phases from which the run can be resumed.
pub fn check_phase(project: &Project, from: &str) -> Result<(), PhaseError> {
    let workflow = project.workflow()?;
    let main = || workflow.phases().filter(|(_, phase)| !phase.support).map(|(_, phase)| phase.name.as_str());
    if main().any(|name| name == from) {
        return Ok(());
    }
    Err(PhaseError::NotResumable { phases: main().collect::<Vec<_>>().join(", ") })
}

/// Reason why a run cannot be resumed from a phase.
#[derive(Debug, thiserror::Error)]
pub enum PhaseError {
    /// The team has no such phase, or it is a support phase.
    #[error("a run of this team can go on from: {phases}")]
    NotResumable {
        /// Names of the phases that are possible, separated by commas.
        phases: String,
    },
    /// The team of the project cannot be read.
    #[error(transparent)]
    Project(#[from] ProjectError),
}

/// Checks a request against the rules of an entry point. See [`crate::Supervisor::check`].
pub(crate) async fn check(
    options: &SupervisorOptions,
    io: &WorkspaceIo,
    store: &dyn RunStore,
    new: NewRun,
    rules: &RunRules,
) -> Result<CheckedRun, RequestError> {
    let delegation = options.delegation.as_ref().filter(|_| rules.origin == RunOrigin::Delegated);
    let errors = value_errors(&new.spec, options.repo_hosts(rules.origin));
    if !errors.is_empty() {
        return Err(RequestError::Values(errors));
    }
    let instance = match &new.instance {
        None => None,
        Some(id) => {
            let found = store.instance(id).await?;
            Some(found.ok_or_else(|| RequestError::UnknownProject(id.clone()))?)
        }
    };
    if instance.is_some() && !new.spec.repos.is_empty() {
        return Err(RequestError::Values(vec![ValueError::RepositoriesInProject]));
    }
    let (host, teams) = (options.host.clone(), rules.teams.clone());
    let (name, path) = (new.spec.team.clone(), instance.as_ref().map(|instance| instance.path.clone()));
    let found = match path.clone() {
        // The team of the home directory.
        None => spawn_blocking(move || find_workflow(&host, &teams, name, None)).await?,
        Some(of) => io.run(&of, move || find_workflow(&host, &teams, name, path)).await?,
    };
    let workflow = found?;
    let inputs = check_inputs(&workflow, new.spec.inputs.clone(), rules.strict_inputs)?;
    let root = delegation.map_or(&options.workspace_root, |delegation| &delegation.workspace_root);
    Ok(CheckedRun { run: run_of(new, inputs, workflow.name.clone(), rules.origin, instance, root) })
}

fn run_of(
    new: NewRun,
    inputs: BTreeMap<String, String>,
    team: TeamName,
    origin: RunOrigin,
    instance: Option<Instance>,
    root: &Utf8Path,
) -> Run {
    let id = cliq_fs::new_run_id();
    let workspace = match &instance {
        Some(instance) => instance.path.clone(),
        None => root.join(id.as_str()),
    };
    let mut run = Run::new(id, team, origin, workspace, clock::now());
    run.instance = instance.map(|instance| instance.id);
    run.caller = new.caller;
    let text = new.spec.title.as_deref().or(new.spec.requirement.as_deref());
    if let Some(title) = text.and_then(cliq_project::internals::title_of) {
        run.title = title;
    }
    let spec = RunSpec { inputs, ..new.spec };
    run.request = RunRequest { spec, keep_workspace: new.keep_workspace, ..RunRequest::default() };
    run
}

fn value_errors(spec: &RunSpec, repo_hosts: &[String]) -> Vec<ValueError> {
    let RunSpec {
        // The name of the team is checked where the team is looked for.
        team: _,
        title,
        requirement,
        inputs,
        agent,
        max_parallel,
        budget,
        repos,
        // Every profile is allowed.
        sandbox: _,
        // Any trace may be continued.
        trace: _,
    } = spec;
    let mut errors = repository_errors(repos, repo_hosts);
    if max_parallel.is_some_and(|n| !(1..=MAX_PARALLEL).contains(&n)) {
        errors.push(ValueError::MaxParallel);
    }
    errors.extend(check_budget(budget).err().into_iter().flatten());
    if title.as_ref().is_some_and(|title| title.chars().count() > MAX_TITLE) {
        errors.push(ValueError::Title);
    }
    // Values of inputs become variables of processes, which cannot contain a zero byte. No other text needs one.
    let mut texts =
        inputs.iter().flat_map(|(key, value)| [key, value]).chain(agent).chain(requirement).chain(title);
    if texts.any(|text| text.contains('\0')) || inputs.keys().any(|key| key.is_empty() || key.contains('=')) {
        errors.push(ValueError::Text);
    }
    errors
}

fn repository_errors(repos: &[String], hosts: &[String]) -> Vec<ValueError> {
    if repos.len() > MAX_REPOS {
        return vec![ValueError::TooManyRepositories];
    }
    let guard = Guard { allow_private: false, allowed_hosts: hosts.to_vec() };
    repos
        .iter()
        .filter_map(|url| match check_repository(url) {
            Ok(host) if hosts.is_empty() || guard.allows_host(&host) => None,
            Ok(host) => Some(ValueError::RepositoryHost(host)),
            Err(reason) => Some(ValueError::Repository(reason)),
        })
        .collect()
}

fn find_workflow(
    host: &Host,
    teams: &AllowedTeams,
    name: Option<String>,
    project: Option<Utf8PathBuf>,
) -> Result<ValidatedWorkflow, RequestError> {
    match (teams, name, project) {
        (AllowedTeams::Chosen(team), _, _) => load(host, team),
        (AllowedTeams::Listed(offered), Some(name), _) => {
            if !offered.contains(&name) {
                return Err(RequestError::NotOffered { name });
            }
            // Invalid or removed in the meantime: for the caller the team does not exist.
            load(host, &name).map_err(|_| RequestError::NotOffered { name })
        }
        (AllowedTeams::AnyByName, Some(name), _) => {
            // A path would let a caller choose any folder of the machine.
            if TeamName::parse(&name).map_or(true, |name| name.scope() == "builder") {
                return Err(RequestError::NotATeamName(name));
            }
            load(host, &name)
        }
        (AllowedTeams::AnyByName, None, Some(path)) => {
            let project = Project::open(&path, host.clone()).map_err(|_| RequestError::ProjectGone)?;
            project.workflow().map_err(|error| match error {
                ProjectError::NoTeam => RequestError::NoAssembledTeam,
                other => other.into(),
            })
        }
        (_, None, _) => Err(RequestError::TeamMissing),
    }
}

fn load(host: &Host, name: &str) -> Result<ValidatedWorkflow, RequestError> {
    let checked = host.find_team(name)?.folder.check();
    let diagnostics = checked.diagnostics;
    checked.workflow.ok_or_else(|| RequestError::TeamInvalid { name: name.to_owned(), diagnostics })
}

/// Returns the declared inputs among the given ones.
fn check_inputs(
    workflow: &ValidatedWorkflow,
    mut given: BTreeMap<String, String>,
    strict: bool,
) -> Result<BTreeMap<String, String>, RequestError> {
    let is_declared = |name: &String| workflow.inputs.iter().any(|input| input.name == *name);
    let is_missing =
        |input: &&Input| input.required && input.default.is_none() && !given.contains_key(&input.name);
    let missing: Vec<Input> = workflow.inputs.iter().filter(is_missing).cloned().collect();
    let unknown: Vec<String> = given.keys().filter(|name| strict && !is_declared(name)).cloned().collect();
    if !missing.is_empty() || !unknown.is_empty() {
        let declared = workflow.inputs.iter().map(|input| input.name.clone()).collect();
        let team = workflow.name.to_string();
        return Err(RequestError::Inputs(InputErrors { team, missing, unknown, declared }));
    }
    given.retain(|name, _| is_declared(name));
    Ok(given)
}

#[cfg(test)]
mod tests;
