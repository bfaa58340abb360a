//! Globs of files in the workspace.

use camino::Utf8Path;
use globset::{GlobBuilder, GlobMatcher};

/// Reason why a text is no glob of files in the workspace.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}: {help}")]
pub struct GlobError {
    /// Problem, after the glob in a sentence.
    pub problem: String,
    /// Remedy.
    pub help: String,
}

/// Glob of files in the workspace.
#[derive(Debug, Clone)]
pub struct Glob(GlobMatcher);

impl Glob {
    /// Whether a path, relative to the workspace, matches.
    #[must_use]
    pub fn matches(&self, path: &Utf8Path) -> bool {
        self.0.is_match(path)
    }
}

/// Parses a glob of files in the workspace, relative to it. `*` and `?` match within a directory, `**` any number of directories.
///
/// # Errors
/// The glob is empty, leads out of the workspace, or has a syntax error.
pub fn parse_glob(text: &str) -> Result<Glob, GlobError> {
    let error = |problem: &str, help: &str| GlobError { problem: problem.to_owned(), help: help.to_owned() };
    let path = Utf8Path::new(text);
    if text.is_empty() {
        return Err(error("names no file", "write a glob such as `docs/**/*.md`"));
    }
    if path.is_absolute() || path.components().any(|part| part.as_str() == "..") {
        return Err(error("leads out of the workspace", "write a path within it, such as `docs/**/*.md`"));
    }
    let glob = GlobBuilder::new(text.trim_start_matches("./")).literal_separator(true).build();
    let glob = glob.map_err(|found| GlobError {
        problem: format!("is not a valid glob: {}", found.kind()),
        help: "write a glob such as `docs/**/*.md`".to_owned(),
    })?;
    Ok(Glob(glob.compile_matcher()))
}
