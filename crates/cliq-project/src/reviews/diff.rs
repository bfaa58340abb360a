//! Changes in git repositories that are not committed: staged, unstaged and new files, as one diff against the last commit.

use std::time::Duration;

use camino::Utf8Path;
use cliq_git::{Git, GitError};
use cliq_review::{Diff, FileDiff};

/// Time limit for git.
const PATIENCE: Duration = Duration::from_secs(60);
/// The most bytes of a diff that are read.
const MAX_DIFF: u64 = 32 << 20;
/// The most lines that are kept of a file, and of a repository, and the most bytes.
const MAX_FILE_LINES: usize = 3000;
const MAX_LINES: usize = 12_000;
const MAX_BYTES: usize = 2 << 20;
/// The most files that are kept.
const MAX_FILES: usize = 500;

/// The changes in a repository; `None` if nothing changed. `name` is what it is called.
///
/// # Errors
/// git cannot be run, fails or takes too long.
pub(super) fn uncommitted(repo: &Utf8Path, name: &str) -> Result<Option<Diff>, String> {
    let git = Git::new(repo).with_timeout(PATIENCE).with_limit(MAX_DIFF);
    let changes = cliq_git::uncommitted_changes(&git).map_err(|error| message(&error))?;
    let mut files = numstat(&String::from_utf8_lossy(&changes.numstat));
    fill_in(&mut files, &String::from_utf8_lossy(&changes.patch));
    if files.is_empty() {
        return Ok(None);
    }
    let more_files = files.len().saturating_sub(MAX_FILES) as u64;
    files.truncate(MAX_FILES);
    Ok(Some(Diff { repo: name.to_owned(), files, more_files }))
}

/// Files with the numbers of lines, from `--numstat -z`.
fn numstat(text: &str) -> Vec<FileDiff> {
    let mut files = Vec::new();
    let mut parts = text.split('\0');
    while let Some(entry) = parts.next() {
        let mut columns = entry.splitn(3, '\t');
        let (Some(added), Some(removed), Some(path)) = (columns.next(), columns.next(), columns.next())
        else {
            continue;
        };
        let number = |text: &str| text.parse().unwrap_or(0);
        // A renamed file has an empty path here, and two paths after it.
        let (path, old_path) = if path.is_empty() {
            let old = parts.next().unwrap_or_default().to_owned();
            (parts.next().unwrap_or_default().to_owned(), Some(old))
        } else {
            (path.to_owned(), None)
        };
        let change = if old_path.is_some() { "renamed" } else { "modified" }.to_owned();
        let binary = added == "-";
        let (added, removed) = (number(added), number(removed));
        files.push(FileDiff {
            path,
            old_path,
            change,
            added,
            removed,
            binary,
            hunks: String::new(),
            lines_left_out: 0,
        });
    }
    files
}

/// Adds the hunks of a patch, whose files come in the same order.
fn fill_in(files: &mut [FileDiff], patch: &str) {
    let (mut lines_left, mut bytes_left) = (MAX_LINES, MAX_BYTES);
    let mut file = None;
    let mut next = files.iter_mut();
    let (mut in_hunks, mut lines) = (false, 0);
    for line in patch.split_inclusive('\n') {
        // Lines of content begin with a space, a sign or a backslash.
        if line.starts_with("diff --git ") {
            (file, in_hunks, lines) = (next.next(), false, 0);
            continue;
        }
        let Some(file) = file.as_mut() else { continue };
        in_hunks = in_hunks || line.starts_with("@@");
        if !in_hunks {
            if line.starts_with("new file mode") {
                "added".clone_into(&mut file.change);
            } else if line.starts_with("deleted file mode") {
                "deleted".clone_into(&mut file.change);
            } else if let Some(mode) = line.strip_prefix("new mode ").filter(|_| file.change == "modified") {
                file.change = format!("modified, mode {}", mode.trim());
            }
            continue;
        }
        if lines >= MAX_FILE_LINES || lines_left == 0 || bytes_left < line.len() {
            file.lines_left_out += 1;
            continue;
        }
        lines += 1;
        lines_left -= 1;
        bytes_left -= line.len();
        file.hunks.push_str(line);
    }
}

/// Message about a failure of git, for the page of a review.
fn message(error: &GitError) -> String {
    match error {
        GitError::Failed { command, output, .. } => {
            format!("git {command}: {}", output.lines().next().unwrap_or("it failed"))
        }
        GitError::TimedOut { seconds, .. } => format!("git did not finish within {seconds} s"),
        error => error.to_string(),
    }
}
