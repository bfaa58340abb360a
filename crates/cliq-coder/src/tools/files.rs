//! Tools that read files and list directories.

use std::fmt::Write;
use std::fs;

use schemars::JsonSchema;
use serde::Deserialize;

use super::Outcome;
use super::paths::{Workspace, reason};

/// Maximum size of a file that is read, in bytes.
const FILE_LIMIT: u64 = 64 << 20;
/// Maximum number of characters of a line.
const LINE_LIMIT: usize = 2_000;
/// Maximum number of files in a list.
const LIST_LIMIT: usize = 1_000;

/// Arguments of `read_file`.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct ReadFile {
    /// Path of the file, relative to the workspace.
    path: String,
    /// First line, 1-based. Default: 1.
    start_line: Option<u64>,
    /// Last line, inclusive. Default: as many lines as fit.
    end_line: Option<u64>,
}

/// Arguments of `list_files`.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct ListFiles {
    /// Path of the directory, relative to the workspace. Default: the workspace.
    path: Option<String>,
    /// Glob that the paths must match, such as `*.rs` or `src/**/*.ts`. Default: all files.
    pattern: Option<String>,
}

pub(super) fn read(workspace: &Workspace, arguments: &ReadFile, limit: usize) -> Outcome {
    let ReadFile { path, start_line, end_line } = arguments;
    let text = read_text(workspace, path)?;
    let count = text.lines().count();
    let start = usize::try_from(start_line.unwrap_or(1)).unwrap_or(usize::MAX).max(1);
    let end = end_line.map_or(count, |end| usize::try_from(end).unwrap_or(usize::MAX).min(count));
    if count == 0 {
        return Ok(format!("{path} is empty"));
    }
    if start > count {
        return Err(format!("{path} has {count} lines; line {start} does not exist"));
    }
    if end < start {
        return Err(format!("`end_line` {end} is before `start_line` {start}"));
    }
    let mut out = String::new();
    // Space for the sentence at the end.
    let room = limit.saturating_sub(100).max(limit / 2);
    for (n, line) in text.lines().enumerate().skip(start - 1).take(end - start + 1) {
        let mut shown = line;
        if let Some((at, _)) = line.char_indices().nth(LINE_LIMIT) {
            shown = &line[..at];
        }
        if !out.is_empty() && out.len() + shown.len() + 10 > room {
            let _ = write!(out, "[{path} has {count} lines; continue with start_line {}]", n + 1);
            return Ok(out);
        }
        let cut = if shown.len() < line.len() { " [line cut]" } else { "" };
        let _ = writeln!(out, "{:>5}\t{shown}{cut}", n + 1);
    }
    if end < count {
        let _ = write!(out, "[{path} has {count} lines]");
    }
    Ok(out)
}

/// Reads a text file of the workspace.
pub(super) fn read_text(workspace: &Workspace, path: &str) -> Result<String, String> {
    let full = workspace.existing(path)?;
    if full.is_dir() {
        return Err(format!("{path} is a directory; `list_files` lists it"));
    }
    let bytes = cliq_fs::read_limited(&full, FILE_LIMIT).map_err(|error| match error.source.kind() {
        std::io::ErrorKind::Other => format!("cannot read {path}: {}", error.source),
        _ => format!("cannot read {path}: {}", reason(&error.source)),
    })?;
    String::from_utf8(bytes).map_err(|error| {
        let bytes = error.as_bytes();
        let kind = if bytes.starts_with(b"\x7fELF") || bytes.contains(&0) {
            "a binary file"
        } else {
            "not UTF-8 text"
        };
        format!("{path} is {kind} of {} bytes", bytes.len())
    })
}

pub(super) fn list(workspace: &Workspace, arguments: &ListFiles, limit: usize) -> Outcome {
    let path = arguments.path.as_deref().unwrap_or(".");
    let dir = workspace.existing(path)?;
    if !dir.is_dir() {
        return Err(format!("{path} is not a directory"));
    }
    let mut found = Vec::new();
    for entry in walk(workspace, &dir, arguments.pattern.as_deref())?.build().filter_map(Result::ok) {
        if entry.file_type().is_some_and(|kind| !kind.is_dir())
            && let Some(path) = camino::Utf8Path::from_path(entry.path())
        {
            let link = entry.path_is_symlink();
            let size = if link { 0 } else { entry.metadata().map_or(0, |meta| meta.len()) };
            found.push((workspace.relative(path).to_string(), link, size));
        }
    }
    found.sort();
    let mut out = String::new();
    for (n, (path, link, size)) in found.iter().enumerate() {
        if n >= LIST_LIMIT || out.len() + path.len() + 60 > limit {
            let _ = write!(out, "[{} more files: name a directory or a pattern]", found.len() - n);
            return Ok(out);
        }
        let _ = match link {
            true => writeln!(out, "{path} (link)"),
            false => writeln!(out, "{path} ({size} bytes)"),
        };
    }
    Ok(if out.is_empty() { format!("no files in {path}") } else { out })
}

/// Walk over the files of a directory: hidden ones too, without ignored ones, `.git` and `.cliq`.
pub(super) fn walk(
    workspace: &Workspace,
    dir: &camino::Utf8Path,
    pattern: Option<&str>,
) -> Result<ignore::WalkBuilder, String> {
    let mut walk = ignore::WalkBuilder::new(dir);
    // A workspace may have a .gitignore without being a repository.
    walk.hidden(false).require_git(false).follow_links(false);
    let root = workspace.root().to_owned();
    walk.filter_entry(move |entry| {
        let is_own = entry.depth() > 0
            && entry.path().parent().is_some_and(|parent| parent == root.as_std_path())
            && (entry.file_name() == ".cliq" || entry.file_name() == ".git");
        !is_own && entry.file_name() != ".git"
    });
    if let Some(pattern) = pattern {
        let mut globs = ignore::overrides::OverrideBuilder::new(workspace.root());
        globs.add(pattern).map_err(|error| format!("`{pattern}` is not a valid glob: {error}"))?;
        walk.overrides(globs.build().map_err(|error| format!("`{pattern}` is not a valid glob: {error}"))?);
    }
    Ok(walk)
}

/// Writes a file and keeps its mode.
pub(super) fn replace(path: &camino::Utf8Path, shown: &str, content: &str) -> Result<(), String> {
    let failed = |error: &std::io::Error| format!("cannot write {shown}: {}", reason(error));
    let mode = fs::symlink_metadata(path).ok().map(|meta| meta.permissions());
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir).map_err(|error| failed(&error))?;
    }
    cliq_fs::write_atomic(path, content.as_bytes()).map_err(|error| failed(&error.source))?;
    mode.map_or(Ok(()), |mode| fs::set_permissions(path, mode)).map_err(|error| failed(&error))
}
