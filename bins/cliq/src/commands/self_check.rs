//! `cliq self check`

use std::process::ExitCode;
use std::time::Duration;

use camino::Utf8Path;
use cliq_http::{Client, Limits, Request};
use cliq_orchestrator::{JOURNAL_VERSION, Journal, JournalError};
use cliq_packages::{Lock, LockError};
use cliq_project::{Project, ProjectError};
use cliq_store::{FORMAT, SqlStore};
use semver::Version;
use serde::Serialize;

use super::releases::{self, Release, SUMS, Source, Standing};
use crate::failure::Failure;
use crate::ui::{GREEN, RED, YELLOW, paint};
use crate::{gateway, project, ui};

/// Most bytes of a list of sums.
const MAX_SUMS: u64 = 1 << 20;

/// A file with the format that it has and the one that this version writes.
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
    /// No file yet.
    Absent,
    /// The format is the one of this version.
    Current,
    /// Format of an earlier version, which this version reads.
    Older,
    /// Format of a newer version, which this version refuses.
    Newer,
    /// Damaged, or not readable.
    Unreadable,
}

/// Result of the look for a release.
enum LookUp {
    NotAsked,
    Found(Release),
    Failed { from: String, error: String },
}

/// Reports the formats of the files that are here, and the newest release of `from` or of CLIQ_RELEASE.
pub(super) fn run(from: Option<&str>, as_json: bool) -> Result<ExitCode, Failure> {
    let program = project::own_program()?;
    let version = Version::parse(env!("CARGO_PKG_VERSION"))
        .map_err(|error| Failure::failed(format!("the version of this program: {error}")))?;
    let variable = std::env::var("CLIQ_RELEASE").ok().filter(|from| !from.is_empty());
    let source = from.or(variable.as_deref()).map(Source::parse).transpose().map_err(Failure::usage)?;
    let formats = formats()?;
    let look_up = match &source {
        None => LookUp::NotAsked,
        Some(source) => match newest(source, &version) {
            Ok(release) => LookUp::Found(release),
            Err(error) => LookUp::Failed { from: source.to_string(), error },
        },
    };
    let is_read = formats.iter().all(|format| !matches!(format.state, State::Newer | State::Unreadable));
    let update = releases::update(&program, source.as_ref());
    if as_json {
        let release = match &look_up {
            LookUp::NotAsked => serde_json::Value::Null,
            LookUp::Found(release) => serde_json::json!(release),
            LookUp::Failed { from, error } => serde_json::json!({"from": from, "error": error}),
        };
        ui::json(&serde_json::json!({
            "version": version, "program": program, "fine": is_read, "formats": formats,
            "release": release, "update": update,
        }))?;
    } else {
        print(&version, &program, &formats, &look_up, &update)?;
    }
    let is_fine = is_read && !matches!(look_up, LookUp::Failed { .. });
    Ok(if is_fine { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print(
    version: &Version,
    program: &Utf8Path,
    formats: &[Format],
    look_up: &LookUp,
    update: &str,
) -> std::io::Result<()> {
    let row = |mark: String, name: &str, detail: &str| ui::line(format!("{mark} {name:<9} {detail}"));
    let (good, note, bad) = (|| paint(GREEN, "✓"), || paint(YELLOW, "-"), || paint(RED, "✗"));
    row(good(), "cliq", &format!("version {version}, {program}"))?;
    for format in formats {
        let mark = match format.state {
            State::Current => good(),
            State::Absent | State::Older => note(),
            State::Newer | State::Unreadable => bad(),
        };
        row(mark, format.name, &format.detail)?;
    }
    match look_up {
        LookUp::NotAsked => {
            row(note(), "release", "not looked for: `--from URL|DIR` names where releases are")?;
        }
        LookUp::Failed { error, .. } => row(bad(), "release", error)?,
        LookUp::Found(release) => {
            let mark = if release.standing == Standing::Current { good() } else { note() };
            row(mark, "release", &release.sentence(version))?;
            if release.standing == Standing::Newer {
                ui::hint(&format!("to update: {update}"));
            }
        }
    }
    Ok(())
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
            formats.push(Format::new("last run", place.into(), u64::from(JOURNAL_VERSION), journal).kept());
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
    /// Marks a file that keeps the format that it was begun with: an earlier one is current.
    fn kept(mut self) -> Self {
        if let (State::Older, Some(format)) = (self.state, self.format) {
            self.state = State::Current;
            self.detail = format!("{}: format {format}, which this version reads", self.place);
        }
        self
    }

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

/// Returns the newest release of a source, or a sentence with the reason for none.
fn newest(source: &Source, version: &Version) -> Result<Release, String> {
    let sums = match source {
        Source::Address(url) => {
            ui::note(&format!("asking {source}"));
            let client = Client::new(limits());
            client.send(&Request::get(format!("{url}/{SUMS}"))).map_err(|error| error.to_string())?.body
        }
        Source::Directory(dir) => {
            let file = dir.join(SUMS);
            let read = cliq_fs::read_if_exists(&file, MAX_SUMS).map_err(|error| error.to_string())?;
            read.ok_or_else(|| {
                format!("{file} is not there: it is in a directory that scripts/release made")
            })?
        }
    };
    releases::newest(&String::from_utf8_lossy(&sums), releases::TARGET, version, source.to_string())
}

/// Limits for a person who waits.
fn limits() -> Limits {
    Limits {
        connect: Duration::from_secs(5),
        first_byte: Duration::from_secs(10),
        idle: Duration::from_secs(10),
        whole: Duration::from_secs(20),
        tries: 1,
        answer: MAX_SUMS,
        ..Limits::default()
    }
}
