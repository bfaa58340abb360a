//! Layout of the `.cliq` directory (docs/protocol.md).

use std::collections::HashSet;
use std::fs;
use std::io::{ErrorKind, Write};

use camino::{Utf8Path, Utf8PathBuf};
use cliq_protocol::{PhaseName, RunId};

use crate::{FsError, IoContext, write_atomic};

/// The `.cliq` directory of a project, or that of a team phase within it. Its path is absolute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CliqDir {
    root: Utf8PathBuf,
    workspace: Utf8PathBuf,
}

/// Content of `.cliq/.gitignore`.
const GITIGNORE: &[u8] =
    b"# Written by cliq. Runs, logs and settings stay on this machine.\n*\n!.gitignore\n!team.lock\n";

impl CliqDir {
    /// The name of the directory in a workspace.
    pub const NAME: &'static str = ".cliq";
    /// The name of the journal in it.
    pub const JOURNAL: &'static str = "journal.jsonl";

    /// The `.cliq` directory of `workspace`.
    ///
    /// # Errors
    /// There is none, or its path is not UTF-8.
    pub fn open(workspace: &Utf8Path) -> Result<Self, FsError> {
        let path = workspace.join(Self::NAME);
        let root = path.canonicalize_utf8().at("open", &path)?;
        fs::read_dir(&root).at("open", &path)?;
        let workspace = root.parent().unwrap_or(&root).to_owned();
        Ok(Self { root, workspace })
    }

    /// The directory at `root`, for a team that works in `workspace`: that of a team phase is `.cliq/teams/<phase>/`.
    ///
    /// # Errors
    /// The directory does not exist, or a path is not UTF-8.
    pub fn at(root: &Utf8Path, workspace: &Utf8Path) -> Result<Self, FsError> {
        let root = root.canonicalize_utf8().at("open", root)?;
        Ok(Self { root, workspace: workspace.canonicalize_utf8().at("open", workspace)? })
    }

    /// The directories of the teams that team phases run.
    #[must_use]
    pub fn teams(&self) -> Utf8PathBuf {
        self.root.join("teams")
    }

    /// The directory of the team that a phase runs, in the same workspace. It may not exist.
    #[must_use]
    pub fn team_of(&self, phase: &PhaseName) -> Self {
        Self { root: self.teams().join(phase.as_str()), workspace: self.workspace.clone() }
    }

    /// The `.cliq` directory of the nearest of `start` and its parents that has one.
    #[must_use]
    pub fn discover(start: &Utf8Path) -> Option<Self> {
        start.ancestors().find_map(|dir| Self::open(dir).ok())
    }

    /// Creates the directory, where it is missing, and all that belongs in it.
    ///
    /// # Errors
    /// Something cannot be created.
    pub fn create(workspace: &Utf8Path) -> Result<Self, FsError> {
        let path = workspace.join(Self::NAME);
        fs::create_dir_all(&path).at("create", &path)?;
        let dir = Self::open(workspace)?;
        dir.write_gitignore()?;
        dir.ensure_layout()?;
        Ok(dir)
    }

    /// Writes `.gitignore`, unless there is one: git takes the locked versions of teams and nothing else.
    fn write_gitignore(&self) -> Result<(), FsError> {
        let path = self.root.join(".gitignore");
        match fs::File::create_new(&path).and_then(|mut file| file.write_all(GITIGNORE)) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
            written => written.at("create", &path),
        }
    }

    /// Creates the missing parts of the layout.
    ///
    /// # Errors
    /// Something cannot be created.
    pub fn ensure_layout(&self) -> Result<(), FsError> {
        let present = self.directories()?;
        for dir in [
            self.channels(),
            self.signals(),
            self.files(),
            self.logs(),
            self.messages(),
            self.roles(),
            self.design(),
        ] {
            if !dir.file_name().is_some_and(|name| present.contains(name)) {
                fs::create_dir_all(&dir).at("create", &dir)?;
            }
        }
        let board = self.task_board();
        if !board.exists() {
            write_atomic(&board, b"# Task board\n")?;
        }
        Ok(())
    }

    /// Names of the directories in this one, with one listing.
    fn directories(&self) -> Result<HashSet<String>, FsError> {
        let entries = fs::read_dir(&self.root).at("list", &self.root)?;
        let directories =
            entries.filter_map(Result::ok).filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        Ok(directories.filter_map(|entry| entry.file_name().into_string().ok()).collect())
    }

    /// File with the description of the last run that `cliq run --detach` started.
    #[must_use]
    pub fn detached_spec(&self) -> Utf8PathBuf {
        self.root.join("detached.json")
    }

    /// File with the output of the last run that an editor started.
    #[must_use]
    pub fn detached_output(&self) -> Utf8PathBuf {
        self.root.join("detached.log")
    }

    /// Directory of the sessions of editors.
    #[must_use]
    pub fn sessions(&self) -> Utf8PathBuf {
        self.root.join("sessions")
    }

    /// Record of a session of an editor.
    #[must_use]
    pub fn session(&self, id: &str) -> Utf8PathBuf {
        self.sessions().join(format!("{id}.json"))
    }

    /// Directory of shared design documents.
    #[must_use]
    pub fn design(&self) -> Utf8PathBuf {
        self.root.join("design")
    }

    /// The directory itself.
    #[must_use]
    pub fn root(&self) -> &Utf8Path {
        &self.root
    }

    /// The directory that the agents work in: the one that holds `.cliq`.
    #[must_use]
    pub fn workspace(&self) -> &Utf8Path {
        &self.workspace
    }

    /// `path`, relative to the directory where it lies within.
    #[must_use]
    pub fn relative<'a>(&self, path: &'a Utf8Path) -> &'a Utf8Path {
        path.strip_prefix(&self.root).unwrap_or(path)
    }

    /// All channels.
    #[must_use]
    pub fn channels(&self) -> Utf8PathBuf {
        self.root.join("channels")
    }

    /// The channel that `from` writes and `to` reads.
    #[must_use]
    pub fn channel(&self, from: &PhaseName, to: &PhaseName) -> Utf8PathBuf {
        self.root.join("channels").join(format!("{from}--{to}"))
    }

    /// All signal channels.
    #[must_use]
    pub fn signals(&self) -> Utf8PathBuf {
        self.root.join("signals")
    }

    /// The signal channel of a phase.
    #[must_use]
    pub fn signal_file(&self, phase: &PhaseName) -> Utf8PathBuf {
        self.root.join("signals").join(format!("{phase}.jsonl"))
    }

    /// Present where a gate routed to a support phase.
    #[must_use]
    pub fn routed_file(&self, phase: &PhaseName) -> Utf8PathBuf {
        self.root.join("signals").join(format!("{phase}_routed"))
    }

    /// The results of a phase's commands.
    #[must_use]
    pub fn command_results(&self, phase: &PhaseName) -> Utf8PathBuf {
        self.root.join("signals").join(format!("{phase}_command_results.json"))
    }

    /// File with the end of the run.
    #[must_use]
    pub fn pipeline_status(&self) -> Utf8PathBuf {
        self.root.join("signals/_pipeline_status")
    }

    /// Files of all phases.
    #[must_use]
    pub fn files(&self) -> Utf8PathBuf {
        self.root.join("files")
    }

    /// Files that a phase fetched or made.
    #[must_use]
    pub fn phase_files(&self, phase: &PhaseName) -> Utf8PathBuf {
        self.root.join("files").join(phase.as_str())
    }

    /// Directory of the output of agents and commands.
    #[must_use]
    pub fn logs(&self) -> Utf8PathBuf {
        self.root.join("logs")
    }

    /// File with the output of a phase's agent in its `activation`th activation, 1-based.
    #[must_use]
    pub fn phase_log(&self, phase: &PhaseName, activation: u32) -> Utf8PathBuf {
        self.root.join("logs").join(format!("{phase}.{activation}.log"))
    }

    /// Directory of the transcripts of model agents.
    #[must_use]
    pub fn transcripts(&self) -> Utf8PathBuf {
        self.root.join("transcripts")
    }

    /// Transcript of a model agent in the `activation`th activation of a phase, 1-based; for a gate, in that evaluation of the run.
    #[must_use]
    pub fn transcript(&self, phase: &PhaseName, activation: u32) -> Utf8PathBuf {
        self.transcripts().join(format!("{phase}.{activation}.jsonl"))
    }

    /// Directory of the records of conversations with model agents.
    #[must_use]
    pub fn conversations(&self) -> Utf8PathBuf {
        self.root.join("conversations")
    }

    /// Directory of the requests of agents at work to people (docs/agents.md).
    #[must_use]
    pub fn asks(&self) -> Utf8PathBuf {
        self.root.join("asks")
    }

    /// Record of the conversation in the transcript with these numbers.
    #[must_use]
    pub fn conversation(&self, phase: &PhaseName, activation: u32) -> Utf8PathBuf {
        self.conversations().join(format!("{phase}.{activation}.json"))
    }

    /// Dispatch messages as they were sent.
    #[must_use]
    pub fn messages(&self) -> Utf8PathBuf {
        self.root.join("messages")
    }

    /// The claim and the outcome of a notification with an id.
    #[must_use]
    pub fn notice_file(&self, id: &str) -> Utf8PathBuf {
        self.messages().join(format!("_notice-{id}.json"))
    }

    /// Records of the reviews of the run (docs/reviews.md). Those of earlier runs are in directories below it.
    #[must_use]
    pub fn reviews(&self) -> Utf8PathBuf {
        self.root.join("reviews")
    }

    /// Directory of the steering messages of a run (docs/steering.md).
    #[must_use]
    pub fn steering(&self, run_id: &RunId) -> Utf8PathBuf {
        self.root.join("steering").join(run_id.as_str())
    }

    /// Role files as assembled.
    #[must_use]
    pub fn roles(&self) -> Utf8PathBuf {
        self.root.join("roles")
    }

    /// The team as assembled.
    #[must_use]
    pub fn team_file(&self) -> Utf8PathBuf {
        self.root.join("team.yml")
    }

    /// The team's agents as assembled.
    #[must_use]
    pub fn agents_file(&self) -> Utf8PathBuf {
        self.root.join("agents.json")
    }

    /// File with the requirement for the team.
    #[must_use]
    pub fn requirement(&self) -> Utf8PathBuf {
        self.root.join("requirement.md")
    }

    /// The shared task board.
    #[must_use]
    pub fn task_board(&self) -> Utf8PathBuf {
        self.root.join("task_board.md")
    }

    /// File with the context of the gate that is evaluating.
    #[must_use]
    pub fn gate_context(&self) -> Utf8PathBuf {
        self.root.join("gate_context.md")
    }

    /// The record that a run can be rebuilt from.
    #[must_use]
    pub fn journal(&self) -> Utf8PathBuf {
        self.root.join(Self::JOURNAL)
    }

    /// The record for people.
    #[must_use]
    pub fn orchestrator_log(&self) -> Utf8PathBuf {
        self.root.join("orchestrator.log")
    }

    /// Settings of the project.
    #[must_use]
    pub fn settings(&self) -> Utf8PathBuf {
        self.root.join("settings.json")
    }

    /// The project's id.
    #[must_use]
    pub fn id_file(&self) -> Utf8PathBuf {
        self.root.join("cliq.id")
    }

    /// The file whose lock the orchestrator holds.
    #[must_use]
    pub fn lock_file(&self) -> Utf8PathBuf {
        self.root.join("lock")
    }

    /// The `.cliq` directory of the project. Differs from [`CliqDir::root`] for the team of a team phase, which has a directory below it.
    #[must_use]
    pub fn outermost(&self) -> &Utf8Path {
        self.root.ancestors().find(|dir| dir.file_name() == Some(Self::NAME)).unwrap_or(&self.root)
    }

    /// The file of [`ParkingLock`](crate::ParkingLock).
    #[must_use]
    pub fn parking_lock(&self) -> Utf8PathBuf {
        self.outermost().join("parking")
    }

    /// The file whose lock the follower of a run elsewhere holds.
    #[must_use]
    pub fn follower_lock(&self) -> Utf8PathBuf {
        self.root.join("follower")
    }

    /// Earlier runs.
    #[must_use]
    pub fn history(&self) -> Utf8PathBuf {
        self.root.join("history")
    }
}
