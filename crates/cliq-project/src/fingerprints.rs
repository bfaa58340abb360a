//! Fingerprints of what phases work on, to find out which of it changed since a run (docs/changed.md).

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::{CliqDir, FsError, IoContext, ProjectLock, open_regular, read_if_exists, write_atomic};
use cliq_orchestrator::{Journal, PhaseStatus, RunPlan, RunView};
use cliq_protocol::{PhaseKind, PhaseName, RunId, SkillSelection};
use cliq_workflow::{DefinitionPart, Phase, PhaseId, ValidatedWorkflow, is_connector};
use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};

use crate::workspace_files::workspace_files;

/// Maximum size of the file in bytes.
const LIMIT: u64 = 1 << 30;
/// Maximum number of files that one pattern of `inputs_files` may look at.
const MAX_LOOKED_AT: usize = 1_000_000;
/// Name of the file in `.cliq`, and in the archive of a run.
const FILE: &str = "fingerprints.json";

/// A part of what a phase works on. On the wire a text such as `input TOPIC`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub(crate) enum Part {
    /// The requirement.
    Requirement,
    /// The team's input of this name.
    Input(String),
    /// The role file.
    Role,
    /// The agent with its model. Its fingerprint is a text for people.
    Agent,
    /// Files of the agent, and of MCP servers.
    AgentFiles,
    /// The definition of the team's MCP servers.
    Mcp,
    /// Field of team.yml.
    Field(String),
    /// Command of this name.
    Command(String),
    /// The team of a team phase.
    Team,
    /// Instructions of this channel.
    Instructions(String),
    /// Files that match this pattern.
    Files(String),
}

impl From<Part> for String {
    fn from(part: Part) -> Self {
        let (kind, name) = match part {
            Part::Requirement => return "requirement".to_owned(),
            Part::Role => return "role".to_owned(),
            Part::Agent => return "agent".to_owned(),
            Part::AgentFiles => return "agent_files".to_owned(),
            Part::Mcp => return "mcp".to_owned(),
            Part::Team => return "team".to_owned(),
            Part::Input(name) => ("input", name),
            Part::Field(name) => ("field", name),
            Part::Command(name) => ("command", name),
            Part::Instructions(channel) => ("instructions", channel),
            Part::Files(pattern) => ("files", pattern),
        };
        [kind, " ", &name].concat()
    }
}

impl TryFrom<String> for Part {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Ok(match text.split_once(' ') {
            None if text == "requirement" => Self::Requirement,
            None if text == "role" => Self::Role,
            None if text == "agent" => Self::Agent,
            None if text == "agent_files" => Self::AgentFiles,
            None if text == "mcp" => Self::Mcp,
            None if text == "team" => Self::Team,
            Some(("input", name)) => Self::Input(name.to_owned()),
            Some(("field", name)) => Self::Field(name.to_owned()),
            Some(("command", name)) => Self::Command(name.to_owned()),
            Some(("instructions", channel)) => Self::Instructions(channel.to_owned()),
            Some(("files", pattern)) => Self::Files(pattern.to_owned()),
            _ => return Err(format!("`{text}` is no part of a fingerprint")),
        })
    }
}

/// Fingerprints of a phase, by part.
pub(crate) type PhaseFingerprints = BTreeMap<Part, String>;

/// Fingerprints of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Fingerprints {
    /// Version of the format, 1.
    version: u32,
    /// The inputs that the run was given, without defaults.
    pub(crate) inputs: BTreeMap<String, String>,
    /// Fingerprints by phase.
    pub(crate) phases: BTreeMap<PhaseName, PhaseFingerprints>,
}

impl Fingerprints {
    /// Takes the fingerprints of all that does not change while a run works: everything but `inputs_files`.
    ///
    /// # Errors
    /// A file of the team or the requirement cannot be read.
    pub(crate) fn of(plan: &RunPlan) -> Result<Self, FsError> {
        let mut reader = PlanReader { plan, requirement: None, trees: BTreeMap::new() };
        let mut phases = BTreeMap::new();
        for (id, phase) in plan.workflow.phases() {
            phases.insert(phase.name.clone(), reader.phase(id, phase)?);
        }
        Ok(Self { version: 1, inputs: plan.inputs.clone(), phases })
    }

    /// Adds the fingerprints of the `inputs_files` of phases.
    pub(crate) fn add_files(
        &mut self,
        workflow: &ValidatedWorkflow,
        workspace: &Utf8Path,
        of: &dyn Fn(&Phase) -> bool,
    ) {
        let reads_files = |phase: &Phase| !phase.inputs_files.is_empty() && of(phase);
        for (_, phase) in workflow.phases().filter(|(_, phase)| reads_files(phase)) {
            let parts = self.phases.entry(phase.name.clone()).or_default();
            for pattern in &phase.inputs_files {
                let files = files(workspace, pattern);
                parts.insert(Part::Files(pattern.clone()), files);
            }
        }
    }

    /// Reads the fingerprints of a run from its place; `None` if it has none that this version understands.
    pub(crate) fn read(place: &Utf8Path) -> Option<Self> {
        let bytes = read_if_exists(&place.join(FILE), LIMIT).ok().flatten()?;
        serde_json::from_slice::<Self>(&bytes).ok().filter(|read| read.version == 1)
    }

    /// Writes the fingerprints of the last run.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn write(&self, dir: &CliqDir) -> Result<(), FsError> {
        let bytes = serde_json::to_vec(self).unwrap_or_default();
        write_atomic(&dir.root().join(FILE), &bytes)
    }
}

/// Records the fingerprints of a run. Without them a later run only runs more than it needs to, so a failure does not end the run.
pub(crate) struct Recorder {
    dir: CliqDir,
    workflow: Arc<ValidatedWorkflow>,
    prints: Option<Fingerprints>,
    run_id: Option<RunId>,
}

impl Recorder {
    /// Takes the fingerprints of a run that is about to start. Teams of team phases have none of their own.
    pub(crate) fn new(plan: &RunPlan) -> Self {
        let mut prints = if plan.parent.is_some() { None } else { Fingerprints::of(plan).ok() };
        if let (Some(prints), Some(kept)) = (&mut prints, &plan.kept) {
            // A run that dies records no files at its end: those of kept phases are as they were at the end of the last run.
            let is_kept = |phase: &Phase| kept.phases.iter().any(|kept| kept.phase == phase.name);
            prints.add_files(&plan.workflow, plan.dir.workspace(), &is_kept);
        }
        Self { dir: plan.dir.clone(), workflow: Arc::clone(&plan.workflow), prints, run_id: None }
    }

    /// Keeps the recorded fingerprints of phases that a resumed run does not run again.
    pub(crate) fn keep(&mut self, last: &RunView, from: Option<&str>) {
        let Some(prints) = &mut self.prints else { return };
        let Some(mut recorded) = Fingerprints::read(self.dir.root()) else { return };
        let mut again = BTreeSet::new();
        let mut pending: Vec<PhaseId> = from.and_then(|from| self.workflow.find(from)).into_iter().collect();
        while let Some(id) = pending.pop() {
            if again.insert(id) {
                pending.extend(&self.workflow.phase(id).dependents);
            }
        }
        prints.inputs = recorded.inputs;
        for (_, phase) in self.workflow.phases().filter(|(id, _)| !again.contains(id)) {
            let status = last.find(&phase.name).map(|row| row.status);
            let is_done = matches!(status, Some(PhaseStatus::Completed | PhaseStatus::Skipped));
            if let Some(parts) = recorded.phases.remove(&phase.name)
                && is_done
            {
                prints.phases.insert(phase.name.clone(), parts);
            }
        }
    }

    /// Writes the fingerprints, once the run holds the project and the files of the last run are put aside.
    pub(crate) fn started(&mut self, run_id: &RunId) {
        self.run_id = Some(run_id.clone());
        if let Some(prints) = &self.prints {
            let _ = prints.write(&self.dir);
        }
    }

    /// Adds the files that phases read, as they are at the end of the run: what agents wrote is no change.
    pub(crate) fn ended(self) {
        let Some(mut prints) = self.prints else { return };
        if self.workflow.phases().all(|(_, phase)| phase.inputs_files.is_empty()) {
            return;
        }
        prints.add_files(&self.workflow, self.dir.workspace(), &|_| true);
        // Another run may have started since.
        let Ok(_lock) = ProjectLock::acquire(&self.dir) else { return };
        let journal = Journal::read(&self.dir.journal()).ok().flatten();
        if journal.is_some_and(|journal| journal.run_id() == self.run_id.as_ref()) {
            let _ = prints.write(&self.dir);
        }
    }
}

/// Whether the agent of a phase reads the requirement and the inputs of the team. What connectors and commands read of the inputs is in their
/// definition.
fn reads_task(phase: &Phase) -> bool {
    match phase.kind {
        PhaseKind::Standard => !phase.agent.as_deref().is_some_and(is_connector),
        PhaseKind::Gate | PhaseKind::HumanGate | PhaseKind::Team => true,
        PhaseKind::Exec | PhaseKind::Pull | PhaseKind::Push => false,
    }
}

struct PlanReader<'a> {
    plan: &'a RunPlan,
    requirement: Option<String>,
    /// Fingerprints of directories, with what is left out of each.
    trees: BTreeMap<(Utf8PathBuf, Vec<Utf8PathBuf>), String>,
}

impl PlanReader<'_> {
    fn phase(&mut self, id: PhaseId, phase: &Phase) -> Result<PhaseFingerprints, FsError> {
        let (dir, workflow) = (&self.plan.dir, &self.plan.workflow);
        let mut parts = PhaseFingerprints::new();
        let mut add = |part: Part, print: String| drop(parts.insert(part, print));
        let definition = workflow.definition(id);
        let mut mentions_all = false;
        let mut mentioned: Vec<&str> = Vec::new();
        for (part, text) in &definition {
            mentions_all |= text.contains("inputs[");
            let names = workflow.inputs.iter().map(|input| input.name.as_str());
            mentioned.extend(names.filter(|name| text.contains(&format!("inputs.{name}"))));
            let part = match part {
                DefinitionPart::Field(field) => Part::Field((*field).to_owned()),
                DefinitionPart::Command(name) => Part::Command(name.clone()),
                _ => continue,
            };
            // A short text stands for itself.
            add(part, if text.len() > 40 { digest(text.as_bytes()) } else { text.clone() });
        }
        let reads_task = reads_task(phase);
        if !workflow.inputs.is_empty() {
            let reads_all = mentions_all || reads_task && phase.kind != PhaseKind::Team;
            let inputs = self.plan.resolved_inputs();
            for (name, value) in
                inputs.iter().filter(|(name, _)| reads_all || mentioned.contains(&name.as_str()))
            {
                add(Part::Input(name.clone()), digest(value.as_bytes()));
            }
        }
        if !reads_task {
            return Ok(parts);
        }
        if self.requirement.is_none() {
            self.requirement = Some(file(&dir.requirement())?);
        }
        add(Part::Requirement, self.requirement.clone().unwrap_or_default());
        add(Part::Role, file(&dir.roles().join(format!("{}.md", phase.role)))?);
        let name = self.plan.agent_of(phase).unwrap_or_default();
        let agent = self.plan.agents.get(name);
        let model = phase.model.as_ref().or_else(|| agent.and_then(|agent| agent.model.as_ref()));
        add(Part::Agent, [name, model.map_or("", String::as_str)].join(" ").trim_end().to_owned());
        let mut files = Vec::new();
        if let Some(entry) = workflow.agents.get(name).map(|agent| agent.entry.as_path()) {
            files.push(self.tree(&dir.root().join("team"), top(entry), &others(workflow, entry))?);
        } else if let Some(agent) = agent.filter(|agent| !agent.is_part_of_cliq)
            && let Some(package) = agent.program.parent().filter(|dir| dir.join("manifest.json").exists())
        {
            // An installed agent: `CLIQ_HOME/agents/<name>/`.
            files.push(self.tree(package, "", &[])?);
        }
        if agent.is_some_and(|agent| agent.uses_model) && !matches!(phase.skills, SkillSelection::None) {
            let skills = dir.root().join("team/skills");
            if skills.is_dir() {
                files.push(self.tree(&skills, "", &[])?);
            }
        }
        if agent.is_some_and(|agent| agent.uses_model) && !workflow.mcp.is_empty() {
            add(Part::Mcp, digest(serde_json::to_string(&workflow.mcp).unwrap_or_default().as_bytes()));
            for program in workflow.mcp.values().filter_map(|server| server.program_of_team()) {
                files.push(self.tree(&dir.root().join("team"), top(program), &others(workflow, program))?);
            }
        }
        if !files.is_empty() {
            add(Part::AgentFiles, files.join(" "));
        }
        if phase.kind == PhaseKind::Team {
            add(Part::Team, team(&dir.team_of(&phase.name))?);
        }
        let before =
            phase.depends_on.iter().map(|&from| (workflow.phase(from).name.as_str(), phase.name.as_str()));
        let after =
            phase.dependents.iter().map(|&to| (phase.name.as_str(), workflow.phase(to).name.as_str()));
        for (from, to) in before.chain(after) {
            let channel = format!("{from}--{to}");
            let instructions = dir.channels().join(&channel).join("instructions.md");
            if let Some(bytes) = read_if_exists(&instructions, self.plan.max_file_bytes)? {
                add(Part::Instructions(channel), digest(&bytes));
            }
        }
        Ok(parts)
    }

    /// Returns the fingerprint of a directory, without some paths in `root`.
    fn tree(&mut self, root: &Utf8Path, top: &str, without: &[Utf8PathBuf]) -> Result<String, FsError> {
        let path = if top.is_empty() { root.to_owned() } else { root.join(top) };
        let without: Vec<Utf8PathBuf> = without.iter().map(|path| root.join(path)).collect();
        let key = (path, without);
        if let Some(known) = self.trees.get(&key) {
            return Ok(known.clone());
        }
        let mut context = Context::new(&SHA256);
        add_tree(&mut context, &key.0, "", &key.1)?;
        let print = shorten(context);
        self.trees.insert(key, print.clone());
        Ok(print)
    }
}

/// Returns the files that belong to other agents of the team than that of `entry`: their programs, or the directories of these. What lies beside
/// them may be used by all.
fn others(workflow: &ValidatedWorkflow, entry: &Utf8Path) -> Vec<Utf8PathBuf> {
    let entries = workflow.agents.values().map(|agent| agent.entry.as_path()).filter(|other| *other != entry);
    let own = entries.map(|other| match other.parent() {
        Some(dir) if !entry.starts_with(dir) => dir.to_owned(),
        _ => other.to_owned(),
    });
    own.collect()
}

/// Returns the fingerprint of the team of a team phase: its files, and those of the teams of its own team phases.
fn team(dir: &CliqDir) -> Result<String, FsError> {
    let mut context = Context::new(&SHA256);
    for name in ["team.yml", "roles", "team"] {
        add_tree(&mut context, &dir.root().join(name), name, &[])?;
    }
    let mut channels = names_in(&dir.channels())?;
    channels.sort();
    for channel in channels {
        add_tree(&mut context, &dir.channels().join(&channel).join("instructions.md"), &channel, &[])?;
    }
    let mut teams = names_in(&dir.teams())?;
    teams.sort();
    for name in teams {
        if let Ok(phase) = PhaseName::parse(&name) {
            context.update(team(&dir.team_of(&phase))?.as_bytes());
        }
    }
    Ok(shorten(context))
}

/// Returns the first directory or file of a path.
fn top(path: &Utf8Path) -> &str {
    path.components().map(|part| part.as_str()).find(|part| *part != ".").unwrap_or_default()
}

fn names_in(dir: &Utf8Path) -> Result<Vec<String>, FsError> {
    match dir.read_dir_utf8() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        read => {
            read.at("read", dir)?.map(|entry| Ok(entry.at("read", dir)?.file_name().to_owned())).collect()
        }
    }
}

/// Adds a file or all files below a directory, with their names and whether they can be executed, except some paths.
fn add_tree(
    context: &mut Context,
    path: &Utf8Path,
    name: &str,
    without: &[Utf8PathBuf],
) -> Result<(), FsError> {
    use std::os::unix::fs::PermissionsExt;
    if without.iter().any(|other| other == path) {
        return Ok(());
    }
    let meta = match path.symlink_metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        meta => meta.at("look at", path)?,
    };
    if meta.is_dir() {
        let mut names = names_in(path)?;
        names.sort();
        for entry in names {
            add_tree(context, &path.join(&entry), &format!("{name}/{entry}"), without)?;
        }
        return Ok(());
    }
    let executable = meta.permissions().mode() & 0o111 != 0;
    context.update(format!("{name}\0{executable}\0").as_bytes());
    add_content(context, path).at("read", path)
}

/// Adds the content of a file, or the target of a symbolic link.
fn add_content(context: &mut Context, path: &Utf8Path) -> std::io::Result<()> {
    if path.is_symlink() {
        context.update(path.read_link_utf8()?.as_str().as_bytes());
        return Ok(());
    }
    let Ok((mut file, size)) = open_regular(path) else {
        // A pipe or a device has no content of its own.
        return path.symlink_metadata().map(drop);
    };
    context.update(&size.to_le_bytes());
    add_bytes(context, &mut file)
}

fn add_bytes(context: &mut Context, file: &mut File) -> std::io::Result<()> {
    let mut buffer = vec![0_u8; 64 << 10];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(()),
            n => context.update(&buffer[..n]),
        }
    }
}

/// Returns the fingerprint of a file; empty if there is none.
fn file(path: &Utf8Path) -> Result<String, FsError> {
    Ok(read_if_exists(path, LIMIT)?.map(|bytes| digest(&bytes)).unwrap_or_default())
}

/// Returns the fingerprint of the files that match a pattern. One that cannot be taken begins with `!` and says why.
fn files(workspace: &Utf8Path, pattern: &str) -> String {
    let paths = match workspace_files(workspace, pattern, MAX_LOOKED_AT) {
        Ok(paths) => paths,
        Err(why) => return format!("!{why}"),
    };
    let mut context = Context::new(&SHA256);
    for path in paths {
        context.update(path.as_str().as_bytes());
        context.update(b"\0");
        if let Err(error) = add_content(&mut context, &workspace.join(&path)) {
            return format!("!{path}: {error}");
        }
    }
    shorten(context)
}

fn digest(bytes: &[u8]) -> String {
    let mut context = Context::new(&SHA256);
    context.update(bytes);
    shorten(context)
}

/// Returns the first 16 hexadecimal digits: enough to tell versions of the same file apart.
fn shorten(context: Context) -> String {
    let digest = context.finish();
    let first = digest.as_ref().first_chunk::<8>().copied().unwrap_or_default();
    format!("{:016x}", u64::from_be_bytes(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_read_as_they_are_written() {
        let name = || "a name".to_owned();
        for part in [
            Part::Requirement,
            Part::Role,
            Part::Agent,
            Part::AgentFiles,
            Part::Mcp,
            Part::Team,
            Part::Input(name()),
            Part::Field(name()),
            Part::Command(name()),
            Part::Instructions(name()),
            Part::Files(name()),
        ] {
            let map = BTreeMap::from([(part, "x".to_owned())]);
            let text = serde_json::to_string(&map).expect("JSON");
            assert_eq!(serde_json::from_str::<PhaseFingerprints>(&text).expect("parts"), map, "{text}");
        }
        assert!(serde_json::from_str::<PhaseFingerprints>("{\"later\": \"x\"}").is_err());
    }
}
