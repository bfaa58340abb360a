//! Output of `git diff` as changes of files.

use crate::content::FileDiff;

/// The most lines that are kept of a file, and of all files, and the most bytes.
const MAX_FILE_LINES: usize = 3000;
const MAX_LINES: usize = 12_000;
const MAX_BYTES: usize = 2 << 20;

/// Returns the changed files with their numbers of lines, from the output of `git diff --numstat -z`. They have no hunks yet, and are `modified` or `renamed`.
#[must_use]
pub fn numstat(text: &str) -> Vec<FileDiff> {
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

/// Adds the hunks of a patch, whose files come in the same order, and the kinds of changes. At most 3,000 lines of a file are kept, and 12,000 lines
/// and 2 MiB of all.
pub fn fill_in(files: &mut [FileDiff], patch: &str) {
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
