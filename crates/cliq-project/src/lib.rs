//! A cliq project as a library: what `cliq init`, `assemble`, `req` and `run` do, for other programs.
//!
//! A [`Project`] is a workspace with a `.cliq` directory on a [`Host`], which holds the environment, the cliq home and the
//! program that runs built-in agents. [`Project::run_plan`] makes the plan of a run from the assembled team, its agents and
//! the settings; [`execute`] runs it. `docs/embedding.md` shows a whole program.
//!
//! The library prints nothing and reads neither the environment nor the home directory by itself. Every failure is a
//! [`ProjectError`], from which a program makes its own messages.

mod agents;
mod assemble;
mod builder;
mod bundled;
mod changed;
mod checkpoints;
mod clean;
mod contained;
mod doctor;
mod drafts;
mod error;
mod execute;
mod fingerprints;
mod handover;
mod history;
mod host;
mod install;
mod launcher;
mod media_type;
mod needs;
mod new_team;
mod outside;
mod packages;
#[cfg(feature = "plans")]
mod plan_agents;
#[cfg(feature = "plans")]
mod plan_commands;
mod project;
mod registry;
mod requirement;
mod rerun_rules;
mod reviews;
mod run_list;
mod run_plan;
mod run_sandbox;
mod run_team;
mod sandbox;
mod sandbox_git;
mod scripted_run;
mod status;
mod steering;
mod task_events;
mod team_files;
mod team_phase;
mod team_text;
mod teams;
mod timeline;
mod workspace_files;

pub use assemble::AssembledTeam;
pub use builder::{BuilderRequest, BuiltTeam};
pub use changed::{ChangedPhase, Comparison};
pub use checkpoints::ActivationChanges;
pub use doctor::{Check, CheckStatus};
pub use drafts::{
    DraftCheck, DraftError, DraftFile, DraftName, DraftPath, DraftProblem, DraftSummary, Drafts, PathError,
    UnsavedTexts,
};
pub use error::{InvalidTeam, ProjectError};
pub use execute::{RunStart, execute};
pub use history::RecordedRun;
pub use host::Host;
pub use install::{Installation, InstalledTeam};
pub use launcher::LauncherKind;
pub use needs::TeamNeeds;
pub use outside::{OutsideDirection, OutsideEntry};
#[cfg(feature = "packages")]
pub use packages::Publication;
pub use packages::{TeamPermissions, TeamUpdate, UpdatePlan, with_version};
pub use project::Project;
pub use rerun_rules::{Rerun, rerun_rule};
pub use run_list::{ListedRun, RunLister, RunListing};
pub use run_plan::RunOptions;
pub use run_team::RunTeam;
pub use scripted_run::{
    PhaseActivation, ScriptedCommand, ScriptedPhase, ScriptedReport, ScriptedRun, ScriptedVerdict,
};
pub use status::{PhaseRow, RunState, RunStatus};
pub use team_text::TeamText;
pub use teams::{FoundTeam, ListedTeam, TeamSource};
pub use timeline::{OutputTail, RelatedFile, Significance, Step, Timeline};

pub use cliq_agents::{Script, ScriptedOutcome, ScriptedReply};
pub use cliq_git::checkpoints::{
    Change, Checkpoint, CheckpointError, DifferenceForm, Label, Moment, Restored, Store as CheckpointStore,
};
pub use cliq_model::RunSpec;
pub use cliq_orchestrator::{CommandScript, Record, Run, RunEvent, RunPlan, RunView};
pub use cliq_protocol::{Network, Profile, Sandbox};
pub use cliq_settings::{Environment, Settings};

/// Items that other crates of cliq use. They are no part of the interface for embedders and change in any version.
#[doc(hidden)]
pub mod internals {
    pub use crate::bundled::{
        BundledTeam, DEMO_FILES, DEMO_TEAM, MODEL_DEMO_FILES, MODEL_DEMO_SCRIPT, PULL_DEMO_FILES,
        PULL_DEMO_TEAM, REVIEW_DEMO_FILES, REVIEW_DEMO_TEAM, demo_files, write_files,
    };
    pub use crate::handover::{HANDOVER_LIMIT, Handover};
    pub use crate::history::recorded_run_id;
    pub use crate::host::{GUARD_INPUTS, workspace_root};
    pub use crate::media_type::image_type;
    pub use crate::new_team::is_empty_dir;
    #[cfg(feature = "plans")]
    pub use crate::plan_agents::{PlanAgent, SIGNAL_FILES, SettingsPlanAgents, plan_config};
    #[cfg(feature = "plans")]
    pub use crate::plan_commands::PlanCommandError;
    pub use crate::requirement::title_of;
    #[cfg(feature = "remote-reviews")]
    pub use crate::reviews::ServerReviews;
    pub use crate::reviews::{
        KeptReview, NoReviews, PageAddress, REVIEW_SOCKET, RecordCheck, ReviewBackend, ReviewSocket,
        SocketReviews, check_record, kept_review, kept_reviews, review_agent, settle, settled_notices,
    };
    pub use crate::run_list::WordsTail;
    pub use crate::run_plan::timing;
    pub use crate::task_events::{TaskDetails, check_workspace, task_event};
    pub use crate::team_phase::{Execute, team_phase_agent};
    pub use crate::timeline::duration;
    pub use cliq_agents::{is_path_inside, schema_violation, split_item, write_inside};

    #[cfg(feature = "egress")]
    pub use cliq_sandbox::egress;
    pub use cliq_sandbox::{
        Access, Egress, LANDLOCK_VERSION, Mechanism, Policy, Preference, Support, Wrapper,
    };
    pub use cliq_sandbox::{Confined, enter as enter_sandbox};
}

/// Runs the example of the README as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
