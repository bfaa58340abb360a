//! Sessions of editors: a file for each in `.cliq/sessions/`.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::{CliqDir, read_limited, write_atomic};
use cliq_project::Project;
use cliq_protocol::{Profile, RunId};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::failure::Failure;
use crate::project;

/// Version of the format.
const VERSION: u32 = 1;
/// Maximum size of a record in bytes.
const LIMIT: u64 = 1 << 20;
/// Maximum number of runs that a session remembers.
const MAX_RUNS: usize = 200;
/// Number of sessions in a page of the list.
const PAGE: usize = 50;

/// Record of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct SessionRecord {
    version: u32,
    pub(super) id: String,
    /// Title of the last run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) title: Option<String>,
    /// Time of the last change.
    pub(super) updated: String,
    /// Team that the next run assembles, or `None` for the assembled one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) team: Option<String>,
    /// Agent for phases that name none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) agent: Option<String>,
    /// Profile of the sandbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) sandbox: Option<Profile>,
    /// Runs that prompts started, oldest first.
    #[serde(default)]
    pub(super) runs: Vec<RunId>,
    /// Fields of later versions.
    #[serde(flatten)]
    extra: BTreeMap<String, serde_json::Value>,
}

impl SessionRecord {
    pub(super) fn add_run(&mut self, run: RunId) {
        if !self.runs.contains(&run) {
            self.runs.push(run);
        }
        let excess = self.runs.len().saturating_sub(MAX_RUNS);
        self.runs.drain(..excess);
    }
}

/// Session with its project.
#[derive(Debug, Clone)]
pub(super) struct OpenSession {
    pub(super) project: Project,
    pub(super) record: SessionRecord,
}

impl OpenSession {
    /// Makes a session in the project of a directory, or of the nearest directory above it.
    pub(super) fn create(cwd: &Utf8Path) -> Result<Self, Failure> {
        let project = Project::discover(cwd, project::host())?;
        let record = SessionRecord {
            version: VERSION,
            id: Uuid::now_v7().to_string(),
            title: None,
            updated: cliq_fs::now().to_string(),
            team: None,
            agent: None,
            sandbox: None,
            runs: Vec::new(),
            extra: BTreeMap::new(),
        };
        let session = Self { project, record };
        session.write()?;
        Ok(session)
    }

    /// Opens a recorded session.
    pub(super) fn load(cwd: &Utf8Path, id: &str) -> Result<Self, Failure> {
        let project = Project::discover(cwd, project::host())?;
        // An id, and no path out of the directory.
        let id = Uuid::try_parse(id).map_err(|_| unknown(id, &project))?.to_string();
        let path = project.dir().session(&id);
        let record = match read(&path) {
            Ok(record) => record,
            Err(ReadError::Missing) => return Err(unknown(&id, &project)),
            Err(ReadError::Broken(why)) => {
                return Err(Failure::failed(format!("cannot read the session {path}: {why}"))
                    .hint("remove the file; `cliq status` shows the last run"));
            }
        };
        Ok(Self { project, record })
    }

    /// Reads the record again: another process can have changed it.
    pub(super) fn refresh(&mut self) {
        if let Ok(record) = read(&self.project.dir().session(&self.record.id)) {
            self.record = record;
        }
    }

    /// Writes the record.
    pub(super) fn write(&self) -> Result<(), Failure> {
        let path = self.project.dir().session(&self.record.id);
        let text = serde_json::to_vec_pretty(&self.record).map_err(std::io::Error::other)?;
        std::fs::create_dir_all(self.project.dir().sessions())?;
        Ok(write_atomic(&path, &text)?)
    }

    /// Changes the record and writes it.
    pub(super) fn change(&mut self, change: impl FnOnce(&mut SessionRecord)) -> Result<(), Failure> {
        self.refresh();
        change(&mut self.record);
        self.record.updated = cliq_fs::now().to_string();
        self.write()
    }
}

fn unknown(id: &str, project: &Project) -> Failure {
    Failure::usage(format!("the project {} has no session {id}", project.dir().workspace()))
        .hint("`session/new` starts one")
}

enum ReadError {
    Missing,
    Broken(String),
}

fn read(path: &Utf8Path) -> Result<SessionRecord, ReadError> {
    let bytes = match read_limited(path, LIMIT) {
        Ok(bytes) => bytes,
        Err(error) if error.is_not_found() => return Err(ReadError::Missing),
        Err(error) => return Err(ReadError::Broken(error.to_string())),
    };
    let record: SessionRecord =
        serde_json::from_slice(&bytes).map_err(|error| ReadError::Broken(error.to_string()))?;
    if record.version > VERSION {
        return Err(ReadError::Broken(format!("version {} is of a later cliq", record.version)));
    }
    Ok(record)
}

/// Page of the list of sessions.
pub(super) struct SessionPage {
    /// Sessions with the workspace of each, newest first.
    pub(super) sessions: Vec<(Utf8PathBuf, SessionRecord)>,
    /// Position of the next page.
    pub(super) next: Option<String>,
}

/// Lists sessions: of the project of a directory, or of all registered projects. Records that cannot be read are left out.
pub(super) fn list(cwd: Option<&Utf8Path>, cursor: Option<&str>) -> Result<SessionPage, Failure> {
    let skip = match cursor {
        None => 0,
        Some(cursor) => cursor
            .parse::<usize>()
            .map_err(|_| Failure::usage(format!("`cursor` is not one of this list: {cursor}")))?,
    };
    let workspaces = match cwd {
        Some(cwd) => CliqDir::discover(cwd).map(|dir| dir.workspace().to_owned()).into_iter().collect(),
        None => project::host().registered_projects(),
    };
    let mut sessions = Vec::new();
    for workspace in workspaces {
        let Ok(dir) = CliqDir::open(&workspace) else { continue };
        let entries = dir.sessions().read_dir_utf8().into_iter().flatten().filter_map(Result::ok);
        let records = entries.filter_map(|entry| read(entry.path()).ok());
        sessions.extend(records.map(|record| (workspace.clone(), record)));
    }
    sessions.sort_by(|(_, a), (_, b)| (&b.updated, &b.id).cmp(&(&a.updated, &a.id)));
    let all = sessions.len();
    let sessions: Vec<_> = sessions.into_iter().skip(skip).take(PAGE).collect();
    let end = skip.saturating_add(sessions.len());
    Ok(SessionPage { sessions, next: (end < all).then(|| end.to_string()) })
}
