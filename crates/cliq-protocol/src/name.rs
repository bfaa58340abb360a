//! Phase names: path segments that are safe by construction (docs/team-yml.md).

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The longest phase name, in characters.
pub const MAX_PHASE_NAME_LEN: usize = 64;

/// The name of a phase: lower-case letters, digits, `_` and `-`, beginning and ending with a letter or digit, without
/// `--` (which separates the two names of a channel), at most [`MAX_PHASE_NAME_LEN`] characters.
///
/// Created by parsing only, so the name is safe as a path segment. Cloning is cheap.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PhaseName(Arc<str>);

/// Reason why a text is not a valid phase name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// Nothing there.
    #[error("a name cannot be empty")]
    Empty,
    /// Too long.
    #[error("a name has at most {MAX_PHASE_NAME_LEN} characters, this one has {0}")]
    TooLong(usize),
    /// A character that names do not have.
    #[error("{0:?} cannot stand in a name: use lower-case letters, digits, `-` and `_`")]
    Character(char),
    /// `-` or `_` at an end.
    #[error("a name begins and ends with a lower-case letter or a digit")]
    Edge,
    /// The channel separator.
    #[error("`--` separates the two names of a channel and cannot stand in a name")]
    Separator,
}

impl PhaseName {
    /// Parses a name.
    ///
    /// # Errors
    /// Returns the rule for names that the text breaks (docs/team-yml.md).
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let (Some(first), Some(last)) = (text.chars().next(), text.chars().next_back()) else {
            return Err(NameError::Empty);
        };
        if let Some(c) = text.chars().find(|c| !matches!(c, 'a'..='z' | '0'..='9' | '-' | '_')) {
            return Err(NameError::Character(c));
        }
        if matches!(first, '-' | '_') || matches!(last, '-' | '_') {
            return Err(NameError::Edge);
        }
        if text.contains("--") {
            return Err(NameError::Separator);
        }
        if text.len() > MAX_PHASE_NAME_LEN {
            return Err(NameError::TooLong(text.len()));
        }
        Ok(Self(text.into()))
    }

    /// Returns the name of an item of this phase: `PHASE.INDEX` (docs/expressions.md).
    #[must_use]
    pub fn with_item(&self, index: u32) -> Self {
        Self(format!("{}.{index}", self.whole()).into())
    }

    /// Index of the item, if this is the name of an item.
    #[must_use]
    pub fn item(&self) -> Option<u32> {
        self.0.split_once('.')?.1.parse().ok()
    }

    /// Name of the phase without the item.
    #[must_use]
    pub fn whole(&self) -> &str {
        self.0.split_once('.').map_or(&self.0, |(phase, _)| phase)
    }

    /// Parses the name of a phase or of an item.
    ///
    /// # Errors
    /// Returns the rule that the name breaks.
    pub fn parse_with_item(text: &str) -> Result<Self, NameError> {
        match text.split_once('.') {
            None => Self::parse(text),
            Some((phase, item)) => {
                let index: u32 = item.parse().map_err(|_| NameError::Character('.'))?;
                // One spelling of a name only: not `work.07`.
                if index.to_string() != item {
                    return Err(NameError::Character('.'));
                }
                Ok(Self::parse(phase)?.with_item(index))
            }
        }
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for PhaseName {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Self, NameError> {
        Self::parse(text)
    }
}

impl fmt::Display for PhaseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for PhaseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl AsRef<str> for PhaseName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for PhaseName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl PartialEq<str> for PhaseName {
    fn eq(&self, other: &str) -> bool {
        &*self.0 == other
    }
}

impl PartialEq<&str> for PhaseName {
    fn eq(&self, other: &&str) -> bool {
        &*self.0 == *other
    }
}

impl Serialize for PhaseName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for PhaseName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse_with_item(&text)
            .map_err(|error| serde::de::Error::custom(format!("{text:?} is not a valid phase name: {error}")))
    }
}
