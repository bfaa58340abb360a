//! `cliq team validate --watch`

use std::fs;
use std::io::Write as _;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, SystemTime};

use camino::{Utf8Path, Utf8PathBuf};

use crate::failure::Failure;
use crate::ui::{self, DIM, paint};

/// Time between two looks at the files.
const INTERVAL: Duration = Duration::from_millis(300);
/// Maximum depth of the directories that are looked into, and number of files: a team is a folder of few files.
const MAX_DEPTH: usize = 8;
const MAX_FILES: usize = 20_000;

/// Path, size and time of each file.
type Stamps = Vec<(Utf8PathBuf, u64, Option<SystemTime>)>;

/// Validates a team again whenever one of its files changes.
pub(super) fn run(path: Option<&str>) -> Result<ExitCode, Failure> {
    let folder = super::find(path)?.folder.dir().to_owned();
    loop {
        let seen = stamps(&folder);
        if ui::is_watched() {
            // Clear the screen, so that there is one result to look at.
            write!(anstream::stdout(), "\x1b[2J\x1b[H")?;
        }
        if let Err(failure) = super::validate(path, true, false) {
            // A file that is written right now may not be readable: the next change shows it again.
            if failure.kind() == crate::failure::Kind::BrokenPipe {
                return Err(failure);
            }
            failure.report();
        }
        ui::line(paint(DIM, format!("watching {folder}; Ctrl-C ends it")))?;
        while stamps(&folder) == seen {
            sleep(INTERVAL);
        }
    }
}

fn stamps(folder: &Utf8Path) -> Stamps {
    let mut stamps = Stamps::new();
    add(folder, 0, &mut stamps);
    stamps.sort();
    stamps
}

fn add(dir: &Utf8Path, depth: usize, stamps: &mut Stamps) {
    let Ok(entries) = dir.read_dir_utf8() else { return };
    for entry in entries.filter_map(Result::ok) {
        if stamps.len() >= MAX_FILES || entry.file_name().starts_with('.') {
            continue;
        }
        let Ok(meta) = fs::metadata(entry.path()) else { continue };
        if meta.is_dir() && depth < MAX_DEPTH {
            add(entry.path(), depth + 1, stamps);
        } else if meta.is_file() {
            stamps.push((entry.path().to_owned(), meta.len(), meta.modified().ok()));
        }
    }
}
