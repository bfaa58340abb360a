//! The project that a command works on: its `.cliq`, its team, its agents.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_agents::Usable;
use cliq_fs::CliqDir;
use cliq_orchestrator::{AgentCommand, Agents, Journal, RunPlan, RunView, StartError};
use cliq_protocol::PhaseKind;
use cliq_settings::Settings;
use cliq_workflow::{TeamFolder, ValidatedWorkflow};
use serde::Deserialize;

use crate::failure::{Failure, Kind};
use crate::render;

/// This very program. Where it was replaced while it runs, by an upgrade, the one in its place.
pub(crate) fn own_program() -> io::Result<Utf8PathBuf> {
    let path = std::env::current_exe()?;
    let path = Utf8PathBuf::from_path_buf(path)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "the path of cliq itself is not UTF-8"))?;
    let replaced = path.as_str().strip_suffix(" (deleted)").map(Utf8PathBuf::from);
    Ok(replaced.filter(|path| path.is_file()).unwrap_or(path))
}

/// The directory that the command was started in.
pub(crate) fn here() -> Result<Utf8PathBuf, Failure> {
    let dir = std::env::current_dir()?;
    Utf8PathBuf::from_path_buf(dir).map_err(|path| {
        Failure::failed(format!("{} is not UTF-8, which cliq needs of paths", path.display()))
    })
}

/// The project of this directory or the nearest above it.
pub(crate) fn open() -> Result<CliqDir, Failure> {
    let here = here()?;
    CliqDir::discover(&here).ok_or_else(|| {
        Failure::usage(format!("{here} is no cliq project, nor is any directory above it"))
            .hint("`cliq init` makes it one; `cliq demo` shows a whole run")
    })
}

/// The assembled team. Its problems are shown where it has errors.
pub(crate) fn team(dir: &CliqDir) -> Result<ValidatedWorkflow, Failure> {
    if !dir.team_file().exists() {
        return Err(Failure::usage("no team is assembled in this project").hint("`cliq assemble PATH` or `cliq assemble @scope/name` chooses one; `cliq team list` shows those there are"));
    }
    let folder = TeamFolder::load(dir.root())?.with_installed_agents(installed_names());
    // The entries of its agents lie in .cliq/team, where `agents.json` says; they were checked when it was assembled.
    let checked = cliq_workflow::check(folder.text(), &AssembledFiles(&folder));
    match checked.workflow {
        Some(workflow) => Ok(workflow),
        None => {
            render::diagnostics::show(folder.text(), folder.file(), &checked.diagnostics);
            crate::ui::hint("mend the team where it comes from and assemble it again");
            Err(Failure::told(Kind::Usage))
        }
    }
}

struct AssembledFiles<'a>(&'a TeamFolder);

impl cliq_workflow::TeamFiles for AssembledFiles<'_> {
    fn has_role(&self, name: &str) -> bool {
        self.0.has_role(name)
    }
    fn role_names(&self) -> Vec<String> {
        self.0.role_names()
    }
    fn role_texts(&self) -> Vec<String> {
        self.0.role_texts()
    }
    fn entry(&self, path: &Utf8Path) -> cliq_workflow::EntryFile {
        self.0.entry(&Utf8Path::new("team").join(path))
    }
    fn installed_agents(&self) -> Vec<String> {
        self.0.installed_agents()
    }
}

/// Every agent that can work in the project: the team's own, installed ones, built-in ones (SPEC section 9).
pub(crate) fn agents(
    dir: Option<&CliqDir>,
    workflow: Option<&ValidatedWorkflow>,
    settings: &Settings,
) -> Agents {
    let mut agents = Agents::new();
    // Looking for programs takes time: only for those that somebody names.
    let named = |name: &&&str| {
        cliq_agents::ModelAgent::find(name).is_none() || workflow.is_none_or(|workflow| names(workflow, name))
    };
    for name in cliq_agents::NAMES.iter().filter(named) {
        agents = match cliq_agents::usable(name, settings) {
            Some(Usable::No(why)) => agents.with_unusable(*name, why),
            _ => agents.with(*name, built_in()),
        };
    }
    agents = agents.with("team", this_program(&["agent", "team"]));
    for (name, command) in installed() {
        agents = agents.with(name, command);
    }
    if let (Some(dir), Some(workflow)) = (dir, workflow) {
        for (name, agent) in &workflow.agents {
            let program = dir.root().join("team").join(&agent.entry);
            let command = AgentCommand { program, args: Vec::new(), needs_env: agent.env.clone() };
            agents = agents.with(name.clone(), command);
        }
    }
    agents
}

/// Whether a team may need an agent: by its name, or because a phase names none.
fn names(workflow: &ValidatedWorkflow, agent: &str) -> bool {
    workflow.phases().any(|(_, phase)| {
        let works = matches!(phase.kind, PhaseKind::Standard | PhaseKind::Gate);
        let own = phase.agent.as_deref();
        works && own.is_none_or(|own| own == agent)
            || own == Some(agent)
            || phase.notify.iter().any(|wish| wish.agent == agent)
    })
}

/// Whether a phase names no agent, though one is to work in it.
fn needs_default(workflow: &ValidatedWorkflow) -> bool {
    let works = |kind| matches!(kind, PhaseKind::Standard | PhaseKind::Gate | PhaseKind::Team);
    workflow.phases().any(|(_, phase)| works(phase.kind) && phase.agent.is_none())
}

/// The agent for phases that name none: what is set, else the first model agent that can work (SPEC section 9).
pub(crate) fn default_agent(settings: &Settings) -> Option<String> {
    let usable = |agent: &&cliq_agents::ModelAgent| matches!(agent.usable(settings), Usable::Yes(_));
    let first = || cliq_agents::MODEL_AGENTS.iter().find(usable).map(|agent| agent.name.to_owned());
    settings.text("default_agent").or_else(first)
}

/// `cliq-agent` beside this program; where it was not installed, this program does the same.
fn built_in() -> AgentCommand {
    let me = this_program(&["agent", "handle"]);
    let sibling = me.program.with_file_name("cliq-agent");
    if sibling.is_file() {
        AgentCommand { program: sibling, args: Vec::new(), needs_env: Vec::new() }
    } else {
        me
    }
}

fn this_program(args: &[&str]) -> AgentCommand {
    let me = own_program().ok();
    let args = args.iter().map(|arg| (*arg).to_owned()).collect();
    AgentCommand { program: me.unwrap_or_else(|| "cliq".into()), args, needs_env: Vec::new() }
}

/// The plan for a team in a project, as far as it goes without what a command line says.
pub(crate) fn plan(dir: &CliqDir, workflow: ValidatedWorkflow, settings: &Settings) -> RunPlan {
    let mut plan = RunPlan::new(dir.clone(), workflow);
    plan.agents = agents(Some(dir), Some(&plan.workflow), settings);
    if needs_default(&plan.workflow) {
        plan.default_agent = default_agent(settings);
    }
    plan.max_parallel = settings.count("max_parallel");
    plan.timing = crate::settings::timing(settings);
    plan.durability = crate::settings::durability(settings);
    plan
}

/// Makes an agent that of phases which name none, in the teams of team phases too.
pub(crate) fn set_default_agent(plan: &mut RunPlan, agent: &str) {
    plan.default_agent = Some(agent.to_owned());
    plan.agents =
        std::mem::take(&mut plan.agents).with("team", this_program(&["agent", "team", "--agent", agent]));
}

/// What keeps the teams of team phases from running, found before anything starts.
pub(crate) fn check_sub_teams(plan: &RunPlan, settings: &Settings) -> Result<(), Failure> {
    for (_, phase) in plan.workflow.phases().filter(|(_, phase)| phase.kind == PhaseKind::Team) {
        let dir = plan.dir.team_of(&phase.name);
        let about = |failure: Failure| failure.about(&format!("team phase `{}`", phase.name));
        if !dir.team_file().exists() {
            return Err(about(Failure::usage("its team is not assembled"))
                .hint("assemble the team again: `cliq assemble`"));
        }
        let mut inner = self::plan(&dir, team(&dir)?, settings);
        inner.default_agent = plan.default_agent.clone();
        inner.inputs = phase.inputs.clone();
        inner.check(&has_env).map_err(|error| about(StartError::from(error).into()))?;
        check_sub_teams(&inner, settings)?;
    }
    Ok(())
}

/// Whether an environment variable is set.
pub(crate) fn has_env(variable: &str) -> bool {
    std::env::var_os(variable).is_some()
}

#[derive(Deserialize)]
struct Manifest {
    entry: Utf8PathBuf,
    #[serde(default)]
    env: Vec<String>,
}

/// `CLIQ_HOME/agents/<name>/manifest.json`. One that cannot be read is as good as none; `cliq doctor` shows it.
fn installed() -> Vec<(String, AgentCommand)> {
    let Some(agents) = cliq_settings::home().map(|home| home.join("agents")) else { return Vec::new() };
    let Ok(entries) = agents.read_dir_utf8() else { return Vec::new() };
    entries
        .filter_map(Result::ok)
        .filter_map(|entry| {
            let dir = entry.into_path();
            let manifest: Manifest =
                serde_json::from_slice(&fs::read(dir.join("manifest.json")).ok()?).ok()?;
            let program = dir.join(&manifest.entry);
            let executable =
                fs::metadata(&program).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0);
            let command = AgentCommand { program, args: Vec::new(), needs_env: manifest.env };
            executable.then(|| (dir.file_name().unwrap_or_default().to_owned(), command))
        })
        .collect()
}

pub(crate) fn installed_names() -> Vec<String> {
    installed().into_iter().map(|(name, _)| name).collect()
}

/// The last run as its journal tells it; `None` where there was none.
pub(crate) fn last_run(
    dir: &CliqDir,
    workflow: &ValidatedWorkflow,
) -> Result<Option<(Journal, RunView)>, Failure> {
    let Some(journal) = Journal::read(&dir.journal())? else { return Ok(None) };
    if journal.records.is_empty() {
        return Ok(None);
    }
    let mut view = RunView::new(workflow);
    journal.records.iter().for_each(|record| view.apply(record));
    Ok(Some((journal, view)))
}

/// Whether a file or directory is there, links followed.
pub(crate) fn is_empty_dir(path: &Utf8Path) -> io::Result<bool> {
    match path.read_dir_utf8() {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
    }
}
