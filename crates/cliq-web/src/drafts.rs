//! Drafts of teams (docs/studio.md): documents, problems by file, installation and publication.

mod builder;
mod trial;

use std::collections::BTreeMap;

use cliq_eval::team_test::read_tests;
use cliq_project::{
    DraftCheck, DraftError, DraftFile, DraftName, DraftPath, DraftSummary, Drafts, Host, Installation,
    ProjectError, UnsavedTexts,
};
use cliq_workflow::{Diagnostic, Severity};
use serde::Serialize;
use utoipa::ToSchema;

use crate::problem::Problem;
pub use builder::{BuilderTask, ChangedFile, ProposedChange, generate, improve};
pub use trial::{DraftCommandResult, DraftReply, DraftTrial, try_draft};

/// Draft in a list.
#[derive(Debug, Serialize, ToSchema)]
pub struct DraftDocument {
    /// Name of the draft.
    pub name: String,
    /// `@scope/name` of the team, if team.yml has no errors.
    pub team: Option<String>,
    /// Description of the team.
    pub description: Option<String>,
    /// Number of files.
    pub files: usize,
}

impl From<DraftSummary> for DraftDocument {
    fn from(draft: DraftSummary) -> Self {
        Self {
            name: draft.name.to_string(),
            team: draft.team,
            description: draft.description,
            files: draft.files,
        }
    }
}

/// File of a draft.
#[derive(Debug, Serialize, ToSchema)]
pub struct DraftFileDocument {
    /// Path below the draft.
    pub path: String,
    /// Text, or `null` if the file cannot be edited as a text.
    pub text: Option<String>,
    /// Version, for saving the file.
    pub version: String,
}

impl From<DraftFile> for DraftFileDocument {
    fn from(file: DraftFile) -> Self {
        Self { path: file.path.to_string(), text: file.text, version: file.version }
    }
}

/// Draft with its files.
#[derive(Debug, Serialize, ToSchema)]
pub struct DraftContent {
    /// Name of the draft.
    pub name: String,
    /// Files: team.yml first, then by path.
    pub files: Vec<DraftFileDocument>,
}

/// Problem of a file of a draft.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct DraftProblemDocument {
    /// File below the draft.
    pub file: String,
    /// Stable name of the kind of problem.
    pub code: String,
    /// `error` or `warning`.
    pub severity: String,
    /// Message.
    pub message: String,
    /// Line, 1-based.
    pub line: usize,
    /// Column, 1-based.
    pub column: usize,
    /// Remedy.
    pub help: String,
}

/// Problems of a draft.
#[derive(Debug)]
pub struct DraftValidation {
    /// Check of the team.
    pub check: DraftCheck,
    /// Whether no file has an error.
    pub valid: bool,
    /// Problems of all files.
    pub problems: Vec<DraftProblemDocument>,
}

/// Team that was installed from a draft.
#[derive(Debug, Serialize, ToSchema)]
pub struct InstalledDraft {
    /// `@scope/name` of the team.
    pub team: String,
    /// Version of the team.
    pub version: Option<String>,
    /// Whether it replaced another copy.
    pub replaced: bool,
}

/// Team that was published from a draft.
#[derive(Debug, Serialize, ToSchema)]
pub struct PublishedDraft {
    /// `@scope/name` of the team.
    pub team: String,
    /// Version of the team.
    pub version: String,
    /// Repository in the registry.
    pub repository: String,
    /// Digest of the package.
    pub digest: String,
}

/// Reads the name of a draft in an address. A text that is none names no draft.
///
/// # Errors
/// Returns a problem if the text cannot be a name.
pub fn draft_name(text: &str) -> Result<DraftName, Problem> {
    DraftName::parse(text).map_err(|error| Problem::not_found(error.to_string()))
}

/// Reads the path of a file in a request.
///
/// # Errors
/// Returns a problem if the text cannot be a path.
pub fn draft_path(text: &str) -> Result<DraftPath, Problem> {
    DraftPath::parse(text)
        .map_err(|error| Problem::unprocessable("the path is wrong", vec![error.to_string()]))
}

/// Returns the drafts of the server.
///
/// # Errors
/// Returns a problem if the server has no home.
pub fn drafts_of(host: &Host) -> Result<Drafts, Problem> {
    Ok(host.drafts()?)
}

impl From<DraftError> for Problem {
    fn from(error: DraftError) -> Self {
        let text = error.to_string();
        match error {
            DraftError::UnknownDraft(_) | DraftError::UnknownFile(_) => Self::not_found(text),
            DraftError::Exists(_)
            | DraftError::FileExists(_)
            | DraftError::Conflict(_)
            | DraftError::Removed(_)
            | DraftError::TeamFile
            | DraftError::TooMany => Self::conflict(text),
            DraftError::TooLarge { .. } => Self { detail: text, ..Self::too_large(0) },
            DraftError::Project(error) => Self::from(error),
            _ => Self::unavailable(text),
        }
    }
}

fn document(file: &str, problem: &Diagnostic) -> DraftProblemDocument {
    DraftProblemDocument {
        file: file.to_owned(),
        code: problem.code.to_owned(),
        severity: if problem.severity == Severity::Error { "error" } else { "warning" }.to_owned(),
        message: problem.message.clone(),
        line: problem.span.line,
        column: problem.span.column,
        help: problem.help.clone(),
    }
}

/// Checks a draft with texts that are not saved yet. Blocks.
///
/// # Errors
/// Returns a problem if there is no such draft, or a file cannot be read.
pub fn validate_draft(
    host: &Host,
    name: &DraftName,
    unsaved: &UnsavedTexts,
) -> Result<DraftValidation, Problem> {
    let drafts = drafts_of(host)?;
    let check = drafts.check(name, unsaved)?;
    let mut problems: Vec<DraftProblemDocument> =
        check.problems.iter().map(|found| document(&found.file, &found.problem)).collect();
    // Tests are checked against their team: without it each of them would be wrong.
    if let Some(workflow) = &check.workflow {
        let dir = drafts.folder(name).join("tests");
        for (path, text) in &check.tests {
            let read = read_tests(text, &dir, workflow, host);
            problems.extend(read.diagnostics.iter().map(|problem| document(path, problem)));
        }
    }
    let valid = !problems.iter().any(|problem| problem.severity == "error");
    Ok(DraftValidation { check, valid, problems })
}

/// Prepares the installation of a draft: its permissions are shown before. Blocks.
///
/// # Errors
/// Returns a problem if there is no such draft, or the team has errors.
pub fn prepare_draft(host: &Host, name: &DraftName) -> Result<Installation, Problem> {
    let folder = drafts_of(host)?.folder(name);
    if !folder.is_dir() {
        return Err(DraftError::UnknownDraft(name.clone()).into());
    }
    host.prepare_installation(folder.as_str(), &|_| {}).map_err(refused)
}

/// A team that cannot be installed or published as it is: the state of the draft, not of the request.
fn refused(error: ProjectError) -> Problem {
    let problem = Problem::from(error);
    match problem.status {
        422 => Problem { errors: problem.errors, ..Problem::conflict(problem.detail) },
        _ => problem,
    }
}

/// Installs a draft for all projects of the server. Blocks.
///
/// # Errors
/// Returns a problem if there is no such draft, the team has errors, or it cannot be written.
pub fn install_draft(host: &Host, name: &DraftName) -> Result<InstalledDraft, Problem> {
    // A draft is under the control of its authors: it may replace a newer version.
    let installed = host.install(prepare_draft(host, name)?, true).map_err(refused)?;
    Ok(InstalledDraft {
        team: installed.name,
        version: installed.version,
        replaced: installed.replaced.is_some(),
    })
}

/// Publishes a draft as a package in the registry of its scope. Blocks.
///
/// # Errors
/// Returns a problem if there is no such draft, the team has errors or no version, its version exists, or the registry fails.
pub fn publish_draft(host: &Host, name: &DraftName) -> Result<PublishedDraft, Problem> {
    let folder = drafts_of(host)?.folder(name);
    if !folder.is_dir() {
        return Err(DraftError::UnknownDraft(name.clone()).into());
    }
    let publication = host.prepare_publication(&folder, None, None, &|_| {}).map_err(refused)?;
    let digest = host.publish(&publication).map_err(refused)?;
    Ok(PublishedDraft {
        team: publication.name.to_string(),
        version: publication.version.to_string(),
        repository: publication.repository.to_string(),
        digest: digest.to_string(),
    })
}

/// Reads texts that are not saved yet, by path; `null` for a file that is removed.
///
/// # Errors
/// Returns a problem if a path is wrong.
pub fn unsaved_texts(texts: BTreeMap<String, Option<String>>) -> Result<UnsavedTexts, Problem> {
    texts.into_iter().map(|(path, text)| Ok((draft_path(&path)?, text))).collect()
}
