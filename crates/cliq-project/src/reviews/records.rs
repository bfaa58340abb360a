//! The records of reviews in `.cliq/reviews`, of which each knows the one before it.

use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::{CliqDir, read_if_exists, write_atomic};
use cliq_review::{AuditFile, AuditReference, Content, Review, next_record, read_record, verify_chain};

/// The most bytes of a record.
const LIMIT: u64 = 64 << 20;

/// Writes the record of a review that is over, unless it is there. Gives where it is.
///
/// # Errors
/// Returns an error if the record cannot be written.
pub(super) fn write(dir: &CliqDir, review: &Review, content: &Content) -> Result<AuditReference, String> {
    let place = dir.reviews();
    std::fs::create_dir_all(&place).map_err(|error| format!("cannot create {place}: {error}"))?;
    let earlier = read_all(&place);
    if let Some(found) = earlier.iter().find(|file| file.review == review.id.as_str()) {
        let file = place.join(format!("{}.json", found.name));
        return Ok(AuditReference { file: within(dir, &file), sha256: found.sha256.clone() });
    }
    let record = next_record(review, content, &earlier);
    let base = format!("{}.{}", review.phase, review.iteration);
    let names = (1..).map(|n| if n == 1 { base.clone() } else { format!("{base}-{n}") });
    let is_free = |name: &String| !place.join(format!("{name}.json")).exists();
    let name = names.into_iter().find(is_free).unwrap_or(base);
    let failed = |error: cliq_fs::FsError| error.to_string();
    // The text first: a record without its text is one that was tampered with.
    write_atomic(&place.join(format!("{name}.md")), record.markdown.as_bytes()).map_err(failed)?;
    let file = place.join(format!("{name}.json"));
    write_atomic(&file, record.json.as_bytes()).map_err(failed)?;
    Ok(AuditReference { file: within(dir, &file), sha256: cliq_review::hash(record.json.as_bytes()) })
}

fn within(dir: &CliqDir, file: &Utf8Path) -> String {
    file.strip_prefix(dir.workspace()).unwrap_or(file).to_string()
}

fn read_all(place: &Utf8Path) -> Vec<AuditFile> {
    let entries = place.read_dir_utf8().into_iter().flatten().filter_map(Result::ok);
    let read = |path: &Utf8Path| read_if_exists(path, LIMIT).ok().flatten();
    entries
        .filter_map(|entry| {
            let name = entry.file_name().strip_suffix(".json")?.to_owned();
            let markdown = read(&place.join(format!("{name}.md")));
            read_record(&name, &read(entry.path())?, markdown.as_deref())
        })
        .collect()
}

/// Whether the record of a review, and those beside it, are as they were written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordCheck {
    /// The records are intact.
    Intact(Utf8PathBuf),
    /// There is none yet.
    NotWritten,
    /// The records are not intact.
    Broken {
        /// The record.
        file: Utf8PathBuf,
        /// Problems, one sentence each.
        problems: Vec<String>,
    },
}

/// Checks the record of a review. Records of earlier runs are in a directory of their own.
#[must_use]
pub fn check_record(review: &Review) -> RecordCheck {
    let Some(audit) = &review.audit else { return RecordCheck::NotWritten };
    let written = review.project.join(&audit.file);
    let moved = || {
        let (dir, name) = (written.parent()?, written.file_name()?);
        Some(dir.join(review.run_id.as_str()).join(name)).filter(|path| path.exists())
    };
    let is_own = |path: &Utf8PathBuf| {
        let bytes = read_if_exists(path, LIMIT).ok().flatten();
        bytes
            .and_then(|bytes| read_record("", &bytes, None))
            .is_some_and(|file| file.review == review.id.as_str())
    };
    let file = Some(written.clone()).filter(is_own).or_else(moved).unwrap_or(written);
    let files = read_all(file.parent().unwrap_or(&file));
    let mut problems: Vec<String> = verify_chain(&files).iter().map(ToString::to_string).collect();
    match files.iter().find(|found| Some(found.name.as_str()) == file.file_stem()) {
        Some(found) if found.sha256 == audit.sha256 => {}
        Some(found) => problems.push(format!("{}.json is not what was written: it was changed", found.name)),
        None => problems.push(format!("{file} is not there, or no record any more")),
    }
    problems.dedup();
    if problems.is_empty() { RecordCheck::Intact(file) } else { RecordCheck::Broken { file, problems } }
}
