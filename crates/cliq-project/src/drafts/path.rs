//! Names of drafts, and paths of their files.

use std::fmt;

use serde::Serialize;

/// Maximum length of a name and of a part of a path, in bytes.
const MAX_PART: usize = 64;
/// Maximum number of parts of a path.
const MAX_PARTS: usize = 6;

/// Reason why a text is no name of a draft, or no path of a file in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} cannot be {what}: {rule}")]
pub struct PathError {
    text: String,
    what: &'static str,
    rule: &'static str,
}

/// Name of a draft: lower-case letters, digits and `-`, at most 64, a letter first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct DraftName(String);

impl DraftName {
    /// Reads a name.
    ///
    /// # Errors
    /// The text breaks the rule.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        let is_plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        let fits = (1..=MAX_PART).contains(&text.len())
            && text.starts_with(|c: char| c.is_ascii_lowercase())
            && text.bytes().all(is_plain);
        if fits {
            return Ok(Self(text.to_owned()));
        }
        let rule = "write lower-case letters, digits and `-`, at most 64, a letter first";
        Err(PathError { text: text.chars().take(MAX_PART * 2).collect(), what: "the name of a draft", rule })
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DraftName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Path of a file below a draft: up to six parts of letters, digits, `-`, `_` and `.`, none of which begins with `.`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct DraftPath(String);

impl DraftPath {
    /// Reads a path.
    ///
    /// # Errors
    /// The text breaks the rule.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        let is_part = |part: &str| {
            (1..=MAX_PART).contains(&part.len())
                && !part.starts_with('.')
                && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
        };
        let mut parts = text.split('/');
        if parts.all(is_part) && text.split('/').count() <= MAX_PARTS {
            return Ok(Self(text.to_owned()));
        }
        let rule = "write up to six parts of letters, digits, `-`, `_` and `.` with `/` between them, such as roles/writer.md";
        Err(PathError { text: text.chars().take(MAX_PART * 4).collect(), what: "a path in a draft", rule })
    }

    /// The path as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DraftPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_below_their_draft() {
        for good in ["team.yml", "roles/a_b-c.md", "skills/x/SKILL.md", "a/b/c/d/e/f"] {
            assert_eq!(DraftPath::parse(good).unwrap().as_str(), good);
        }
        for bad in [
            "",
            "/",
            "/etc/passwd",
            "..",
            "a/../b",
            "./a",
            ".cliq",
            "a//b",
            "a/",
            "a\\b",
            "a b",
            "ä",
            "a\0",
            "a/b/c/d/e/f/g",
            "a\n",
        ] {
            assert!(DraftPath::parse(bad).is_err(), "{bad:?}");
        }
        assert!(DraftPath::parse(&"a".repeat(65)).is_err());
    }

    #[test]
    fn names_are_single_directories() {
        assert_eq!(DraftName::parse("weekly-report-2").unwrap().as_str(), "weekly-report-2");
        for bad in ["", "A", "2a", "-a", "a_b", "..", "a/b", "a.b", " a"] {
            assert!(DraftName::parse(bad).is_err(), "{bad:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_leaves_the_folder(text in "[a-zA-Z0-9./\\\\_ -]{0,40}") {
            if let Ok(path) = DraftPath::parse(&text) {
                let full = camino::Utf8Path::new("/drafts/x").join(path.as_str());
                let is_normal = |part| matches!(part, camino::Utf8Component::Normal(_) | camino::Utf8Component::RootDir);
                proptest::prop_assert!(full.components().all(is_normal) && full.starts_with("/drafts/x"));
            }
        }
    }
}
