//! `cliq self check`

use std::process::ExitCode;

use cliq_http::{CallError, Client, Limits, Request};
use cliq_orchestrator::{JOURNAL_VERSION, Journal, JournalError};
use cliq_packages::{Lock, LockError};
use cliq_project::{Project, ProjectError};
use cliq_store::{FORMAT, SqlStore};
use semver::Version;
use serde::Serialize;

use super::releases::{self, Release, SUMS, Standing};
use crate::failure::Failure;
use crate::ui::{GREEN, RED, YELLOW, paint};
use crate::{gateway, project, ui};

/// Most bytes of a list of sums.
const MAX_SUMS: u64 = 1 << 20;

/// A file that versions of cliq write in different ways.
#[derive(Debug, Serialize)]
struct Format {
    name: &'static str,
    place: String,
    state: State,
    /// Format of the file.
    format: Option<u64>,
    /// Format that this version writes.
    known: u64,
    detail: String,
}

/// State of a file for this version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    /// There is none yet.
    Absent,
    /// Its format is the one of this version.
    Current,
    /// An earlier version wrote it; this version reads it.
    Older,
    /// A newer version wrote it; this version refuses it.
    Newer,
    /// It cannot be read.
    Unreadable,
}

/// Reports what this version makes of the files that are here, and the newest release, if it is said where releases are.
pub(super) fn run(from: Option<&str>, as_json: bool) -> Result<ExitCode, Failure> {
    let program = project::own_program()?;
    let version = Version::parse(env!("CARGO_PKG_VERSION"))
        .map_err(|error| Failure::failed(format!("the version of this program: {error}")))?;
    let variable = std::env::var("CLIQ_RELEASE").ok().filter(|from| !from.is_empty());
    let formats = formats()?;
    let release = match from.or(variable.as_deref()) {
        Some(from) => Some(newest(from, &version)?),
        None => None,
    };
    let is_fine = formats.iter().all(|format| !matches!(format.state, State::Newer | State::Unreadable));
    let update = releases::update(&program, from.or(variable.as_deref()));
    if as_json {
        ui::json(&serde_json::json!({
            "version": version, "program": program, "fine": is_fine, "formats": formats,
            "release": release, "update": update,
        }))?;
    } else {
        let row = |mark: String, name: &str, detail: &str| ui::line(format!("{mark} {name:<9} {detail}"));
        row(paint(GREEN, "✓"), "cliq", &format!("version {version}, {program}"))?;
        for format in &formats {
            let mark = match format.state {
                State::Current => paint(GREEN, "✓"),
                State::Absent | State::Older => paint(YELLOW, "-"),
                State::Newer | State::Unreadable => paint(RED, "✗"),
            };
            row(mark, format.name, &format.detail)?;
        }
        match &release {
            None => row(
                paint(YELLOW, "-"),
                "release",
                "not looked for: `cliq self check --from URL|DIR` reads the SHA256SUMS of a release",
            )?,
            Some(release) => {
                let mark = match release.standing {
                    Standing::Current => paint(GREEN, "✓"),
                    Standing::Newer | Standing::Older => paint(YELLOW, "-"),
                };
                row(mark, "release", &release.sentence(&version))?;
                if release.standing == Standing::Newer {
                    ui::hint(&format!("to update: {update}"));
                }
            }
        }
    }
    Ok(if is_fine { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The files of the home, and of the project of this directory.
fn formats() -> Result<Vec<Format>, Failure> {
    let mut formats = vec![database()?];
    match Project::discover(&project::here()?, project::host()) {
        Ok(project) => {
            let place = project.dir().journal();
            let journal = match Journal::read(&place) {
                Ok(None) => Ok(None),
                Ok(Some(journal)) => Ok(journal.version().map(u64::from)),
                Err(JournalError::Newer { found, .. }) => Ok(Some(found)),
                Err(error) => Err(error.to_string()),
            };
            formats.push(Format::new("last run", place.into(), u64::from(JOURNAL_VERSION), journal));
            let place = project.dir().root().join(Lock::NAME);
            let lock = match Lock::read(&place) {
                Ok(lock) => Ok(lock.map(|lock| u64::from(lock.format))),
                Err(LockError::Newer { format, .. }) => Ok(Some(u64::from(format))),
                Err(error) => Err(error.to_string()),
            };
            formats.push(Format::new("team lock", place.into(), 1, lock));
        }
        Err(ProjectError::NoProject(_)) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(formats)
}

fn database() -> Result<Format, Failure> {
    let location = gateway::location()?;
    let found = gateway::block_on(async { Ok(SqlStore::format_of(&location).await) })?;
    let found = match found {
        Ok(format) => Ok(format.and_then(|format| u64::try_from(format).ok())),
        Err(error) => Err(error.to_string()),
    };
    Ok(Format::new("database", location.to_string(), FORMAT.unsigned_abs(), found))
}

impl Format {
    fn new(name: &'static str, place: String, known: u64, found: Result<Option<u64>, String>) -> Self {
        let (state, format, detail) = match found {
            Err(message) => (State::Unreadable, None, message),
            Ok(None) => (State::Absent, None, format!("{place}: there is none yet")),
            Ok(Some(found)) => {
                let (state, rest) = match found.cmp(&known) {
                    std::cmp::Ordering::Equal => (State::Current, "that of this version".to_owned()),
                    std::cmp::Ordering::Less => (
                        State::Older,
                        format!(
                            "this version reads it, and writes format {known}; earlier versions then refuse it"
                        ),
                    ),
                    std::cmp::Ordering::Greater => (
                        State::Newer,
                        format!(
                            "a newer cliq wrote it, and this version knows formats up to {known}: update this one"
                        ),
                    ),
                };
                (state, Some(found), format!("{place}: format {found}, {rest}"))
            }
        };
        Self { name, place, state, format, known, detail }
    }
}

/// The newest release at an address or in a directory.
fn newest(from: &str, version: &Version) -> Result<Release, Failure> {
    let shown = cliq_protocol::without_credentials(from).into_owned();
    let sums = if from.starts_with("https://") || from.starts_with("http://") {
        ui::note(&format!("asking {shown}"));
        let client = Client::new(Limits { answer: MAX_SUMS, tries: 2, ..Limits::default() });
        let request = Request::get(format!("{}/{SUMS}", from.trim_end_matches('/')));
        let answer = client.send(&request).map_err(|error: CallError| {
            Failure::failed(format!("cannot read {SUMS} of {shown}: {error}"))
                .hint("the address of a release, as it is for deploy/install.sh")
        })?;
        answer.body
    } else {
        let file = camino::Utf8Path::new(from).join(SUMS);
        cliq_fs::read_if_exists(&file, MAX_SUMS)
            .map_err(|error| Failure::failed(error.to_string()))?
            .ok_or_else(|| {
                Failure::failed(format!("{file} is not there")).hint("a directory that scripts/release made")
            })?
    };
    releases::newest(&String::from_utf8_lossy(&sums), releases::TARGET, version, shown)
        .map_err(Failure::failed)
}
