//! Globs of files in the workspace.

use camino::Utf8Path;
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

/// Reason why a text is no glob of files in the workspace.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}: {help}")]
pub struct GlobError {
    /// Problem, after the glob in a sentence.
    pub problem: String,
    /// Remedy.
    pub help: String,
}

/// Maximum length of a glob, in bytes.
const MAX_LENGTH: usize = 2000;
/// Maximum nesting of alternatives, `{a,{b,c}}`.
const MAX_DEPTH: usize = 8;

/// Glob of files in the workspace.
#[derive(Debug, Clone)]
pub struct Glob(GlobSet);

impl Glob {
    /// Whether a path, relative to the workspace, matches.
    #[must_use]
    pub fn matches(&self, path: &Utf8Path) -> bool {
        self.0.is_match(path)
    }
}

/// Parses a glob of files in the workspace, relative to it. `*` and `?` match within a directory, `**` any number of directories.
///
/// The glob has at most 2,000 bytes and 8 levels of alternatives. Errors have at most 500 bytes.
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
    check_size(text)?;
    let glob = GlobBuilder::new(text.trim_start_matches("./")).literal_separator(true).build();
    let glob = glob.map_err(|found| GlobError {
        problem: format!("is not a valid glob: {}", found.kind()),
        help: "write a glob such as `docs/**/*.md`".to_owned(),
    })?;
    // A matcher of one glob panics if the glob needs too large an automaton; a set of one returns an error.
    let set = GlobSetBuilder::new().add(glob).build();
    set.map(Glob).map_err(|_| error("needs too much memory", "write several globs, or a simpler one"))
}

/// Refuses what the library needs too much stack or time for.
fn check_size(text: &str) -> Result<(), GlobError> {
    let error = |problem: String, help: &str| GlobError { problem, help: help.to_owned() };
    if text.len() > MAX_LENGTH {
        let problem = format!("has {} bytes; {MAX_LENGTH} is the most", text.len());
        return Err(error(problem, "write several globs"));
    }
    let mut depth = 0_usize;
    for byte in text.bytes() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            let problem = format!("has alternatives in alternatives, more than {MAX_DEPTH} deep");
            return Err(error(problem, "write all alternatives in one pair of braces, or several globs"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_within_and_across_directories() {
        for (glob, path, expected) in [
            ("docs/**/*.md", "docs/a/b.md", true),
            ("*.{rs,{toml,lock}}", "Cargo.lock", true),
            ("*.rs", "src/a.rs", false),
            ("./a?c", "abc", true),
        ] {
            assert_eq!(parse_glob(glob).expect(glob).matches(Utf8Path::new(path)), expected, "{glob}");
        }
    }

    #[test]
    fn globs_that_need_too_much_are_refused_without_a_panic() {
        for glob in [
            format!("{}{}", "{a,".repeat(90), "}".repeat(90)),
            format!("{}{}", "{".repeat(900), "}".repeat(900)),
            format!("{}{}", "{a,".repeat(9), "}".repeat(9)),
            "{".repeat(1_000_000),
            "a".repeat(1_000_000),
            "[".repeat(1999),
            "**/".repeat(10_000),
        ] {
            let error = parse_glob(&glob).expect_err("a refusal").to_string();
            assert!(error.len() < 500, "{error}");
        }
        // Whatever is accepted can be matched.
        for glob in [
            "**/".repeat(600),
            "[!a-z]".repeat(300),
            format!("{}{}", "{a,".repeat(8), "}".repeat(8)),
            "{*,**}".repeat(300),
        ] {
            if let Ok(glob) = parse_glob(&glob) {
                let _ = glob.matches(Utf8Path::new(&"a/".repeat(1000)));
            }
        }
    }
}
