//! Foundation of the HTTP API and the dashboard: shared state, callers, request bodies, problems, and the documents that both show.
//!
//! [`Core`] is the state. [`Problem`] is every error of a request (RFC 9457). [`Reader`], [`Runner`] and [`Admin`] demand a scope of
//! the [`Caller`] that access control has put into the request. The documents (`runs.rs`, `teams.rs`, `logs.rs`, …) are read by the
//! API as JSON and by the pages as values.

mod caller;
mod changed_files;
mod changes;
mod core;
mod drafts;
mod endpoint;
mod files;
mod handoffs;
mod input;
mod log_lines;
mod logs;
mod people;
mod plans;
mod problem;
mod projects;
mod reviews;
mod runs;
mod steering;
mod teams;
#[cfg(test)]
mod tests;
mod tokens;
mod trial;
mod triggers;

pub use caller::{Admin, Caller, Editor, Reader, Reviewer, Runner, Via};
pub use changed_files::{ChangedFiles, changed_file, changed_files, file_difference, file_differences};
pub use changes::{ActivationDiff, FileChange, RunCheckpoint, changes_of, checkpoints_of};
pub use core::Core;
pub use drafts::{
    BuilderTask, ChangedFile, DraftCommandResult, DraftContent, DraftDocument, DraftFileDocument,
    DraftProblemDocument, DraftReply, DraftTrial, DraftValidation, InstalledDraft, ProposedChange,
    PublishedDraft, draft_name, draft_path, drafts_of, generate, improve, install_draft, prepare_draft,
    publish_draft, try_draft, unsaved_texts, validate_draft,
};
pub use endpoint::{Endpoint, any, get, on, post};
pub use files::{FileEntry, FileKind, list_directory};
pub use handoffs::{HandoffSummary, list_handoffs, read_handoff};
pub use input::{
    Form, Json, LargeJson, MAX_BODY, Path, Query, read_json_body, whole_number, with_lenient_body,
};
pub use log_lines::{LogLine, LogMatches, LogPart, LogPlace, find_lines, is_error_line, read_lines};
pub use logs::{LogFile, list_logs, list_transcripts, read_log, read_transcript};
pub use people::People;
pub use plans::list_plans;
pub use problem::{PROBLEM_JSON, Problem};
pub use projects::{find_project, register_project};
pub use reviews::find_review;
pub use runs::{RunDocument, RunSummary, find_run, list_runs};
pub use steering::{DeliveryDocument, SteeringDocument, new_steering};
pub use teams::{
    DiagnosticDocument, InputDocument, PhaseDocument, TeamCard, TeamDocument, TeamSummary, diagnostics,
    find_team, list_teams, team_cards, team_document,
};
pub use tokens::create_token;
pub use trial::{TrialCheck, TrialDocument};
pub use triggers::{CallerAction, find_trigger, list_firings, record, set_trigger_paused};

/// Path of the page that signs a browser in. A code in its query works once.
pub const SIGN_IN_PATH: &str = "/signin";

/// Runs the example of the README as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
