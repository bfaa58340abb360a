//! A trigger as its file defines it.

use camino::Utf8Path;
use cliq_expr::Expression;
use cliq_model::{RunState, SourceKind};
use cliq_protocol::{Budget, Profile, TeamName};
use cliq_settings::Secret;
use cliq_workflow::Glob;

use crate::presets::Preset;
use crate::schedule::Schedule;
use crate::signature::Scheme;
use crate::template::Template;

/// A trigger.
#[derive(Debug, Clone)]
pub struct Trigger {
    /// Name, unique in the file.
    pub name: String,
    /// Source of its causes.
    pub source: Source,
    /// Preset that gave defaults, if the trigger names one.
    pub preset: Option<Preset>,
    /// Conditions, all of which must hold.
    pub when: Vec<Expression>,
    /// Concurrency group. `None`: runs do not wait for each other.
    pub concurrency: Option<Concurrency>,
    /// Run to start.
    pub run: RunTemplate,
}

/// Source of causes.
#[derive(Debug, Clone)]
pub enum Source {
    /// Times.
    Schedule(Box<Schedule>),
    /// Requests to `/hooks/NAME`.
    Webhook(Webhook),
    /// Ends of runs.
    After {
        /// Team of the run, or `None` for all.
        team: Option<String>,
        /// States of the end.
        states: Vec<RunState>,
    },
    /// Changed files.
    Files(FileSource),
}

impl Source {
    /// Kind of the source.
    #[must_use]
    pub fn kind(&self) -> SourceKind {
        match self {
            Self::Schedule(_) => SourceKind::Schedule,
            Self::Webhook(_) => SourceKind::Webhook,
            Self::After { .. } => SourceKind::After,
            Self::Files(_) => SourceKind::Files,
        }
    }
}

/// Source of requests.
#[derive(Debug, Clone)]
pub struct Webhook {
    /// Signature of requests.
    pub scheme: Scheme,
    /// Name of the secret: `triggers.secrets.NAME`.
    pub secret_name: String,
    /// Secret. `None` if the setting is not set: requests are refused.
    pub secret: Option<Secret>,
}

/// Source of changed files.
#[derive(Debug, Clone)]
pub struct FileSource {
    /// Project: its directory, or its id at the server.
    pub project: String,
    /// Text of the glob, relative to the project.
    pub text: String,
    /// Glob.
    pub glob: Glob,
    /// Time without changes after which the trigger fires.
    pub debounce: std::time::Duration,
}

/// Policy for a cause while a run of the same group is active.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Policy {
    /// The cause waits for its turn.
    #[default]
    Queue,
    /// The cause starts nothing.
    Skip,
    /// The active run is cancelled, and waiting causes start nothing.
    Cancel,
}

impl Policy {
    /// Words of a file.
    pub const WORDS: [&'static str; 3] = ["queue", "skip", "cancel"];

    /// Returns the policy of a word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "queue" => Some(Self::Queue),
            "skip" => Some(Self::Skip),
            "cancel" => Some(Self::Cancel),
            _ => None,
        }
    }

    /// Word in a file.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Skip => "skip",
            Self::Cancel => "cancel",
        }
    }
}

/// Concurrency group of a trigger.
#[derive(Debug, Clone)]
pub struct Concurrency {
    /// Name of the group.
    pub group: Template,
    /// Policy.
    pub policy: Policy,
}

/// Run to start.
#[derive(Debug, Clone, Default)]
pub struct RunTemplate {
    /// Team. `None`: the one that is assembled in the project.
    pub team: Option<TeamName>,
    /// Project to work in: its directory, or its id at the server. `None`: a workspace of its own.
    pub project: Option<String>,
    /// Title.
    pub title: Option<Template>,
    /// Requirement.
    pub requirement: Option<Template>,
    /// Values of the team's inputs.
    pub inputs: Vec<(String, Template)>,
    /// Repositories to clone.
    pub repos: Vec<Template>,
    /// Agent for phases that name none.
    pub agent: Option<String>,
    /// Budget.
    pub budget: Budget,
    /// Sandbox around the run. `None`: `server.sandbox` for webhooks, none for other sources.
    pub sandbox: Option<Profile>,
}

impl Trigger {
    /// Returns the project if it is a directory, as opposed to an id.
    #[must_use]
    pub fn directory_of(project: &str) -> Option<&Utf8Path> {
        project.starts_with('/').then(|| Utf8Path::new(project))
    }
}
