//! Ids of runs and names of teams: safe as path segments by construction.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{NameError, PhaseName};

/// Maximum length of a run id, in bytes.
pub const MAX_RUN_ID_LEN: usize = 64;

/// The id of a run: ASCII letters, digits, `-` and `_`, beginning with a letter or digit, at most [`MAX_RUN_ID_LEN`] bytes.
///
/// cliq makes UUIDs of version 7, of which later ones are greater. The id is safe as a file name and as a part of a git
/// branch. Cloning is cheap.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(Arc<str>);

/// The text is not the id of a run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunIdError {
    /// Empty text.
    #[error("a run id cannot be empty: use a UUID")]
    Empty,
    /// More than [`MAX_RUN_ID_LEN`] bytes.
    #[error("a run id has at most {MAX_RUN_ID_LEN} bytes, this one has {0}: use a UUID")]
    TooLong(usize),
    /// A character that ids do not have, or `-` or `_` at the beginning.
    #[error("{0:?} cannot stand in a run id there: use a UUID, or letters, digits, `-` and `_`")]
    Character(char),
}

impl RunId {
    /// Parses an id.
    ///
    /// # Errors
    /// Returns the rule that the text breaks.
    pub fn parse(text: &str) -> Result<Self, RunIdError> {
        let Some(first) = text.chars().next() else { return Err(RunIdError::Empty) };
        if text.len() > MAX_RUN_ID_LEN {
            return Err(RunIdError::TooLong(text.len()));
        }
        let mut wrong = text.chars().filter(|c| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_')));
        match wrong.next() {
            Some(c) => Err(RunIdError::Character(c)),
            None if matches!(first, '-' | '_') => Err(RunIdError::Character(first)),
            None => Ok(Self(text.into())),
        }
    }

    /// Returns the id of a run of a server or of `cliq run --run-id`: a UUID in lower case, 36 characters. `None` for other
    /// ids, which only embedders give to their runs.
    #[must_use]
    pub fn parse_uuid(text: &str) -> Option<Self> {
        let is_uuid = text.len() == 36
            && text.bytes().enumerate().all(|(at, byte)| match at {
                8 | 13 | 18 | 23 => byte == b'-',
                _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
            });
        is_uuid.then(|| Self(text.into()))
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for RunId {
    type Err = RunIdError;

    fn from_str(text: &str) -> Result<Self, RunIdError> {
        Self::parse(text)
    }
}

/// The name of a team, `@scope/name`. Both parts follow the rules of a [`PhaseName`]. Cloning is cheap.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TeamName(Arc<str>);

/// The text is not the name of a team.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TeamNameError {
    /// No `@` at the beginning, or no `/`.
    #[error("write `@scope/name`")]
    Form,
    /// The scope or the name breaks a rule.
    #[error(transparent)]
    Part(#[from] NameError),
}

impl TeamName {
    /// Parses a name.
    ///
    /// # Errors
    /// Returns the rule that the text breaks.
    pub fn parse(text: &str) -> Result<Self, TeamNameError> {
        let (scope, name) =
            text.strip_prefix('@').and_then(|rest| rest.split_once('/')).ok_or(TeamNameError::Form)?;
        PhaseName::parse(scope)?;
        PhaseName::parse(name)?;
        Ok(Self(text.into()))
    }

    /// The name as text, with `@`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The scope, without `@`.
    #[must_use]
    pub fn scope(&self) -> &str {
        self.parts().0
    }

    /// The name without the scope.
    #[must_use]
    pub fn name(&self) -> &str {
        self.parts().1
    }

    fn parts(&self) -> (&str, &str) {
        // Parsing has found both.
        self.0.get(1..).and_then(|rest| rest.split_once('/')).unwrap_or_default()
    }
}

impl FromStr for TeamName {
    type Err = TeamNameError;

    fn from_str(text: &str) -> Result<Self, TeamNameError> {
        Self::parse(text)
    }
}

macro_rules! text_like {
    ($type:ident, $noun:literal) => {
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }

        impl AsRef<str> for $type {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $type {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl PartialEq<str> for $type {
            fn eq(&self, other: &str) -> bool {
                &*self.0 == other
            }
        }

        impl PartialEq<&str> for $type {
            fn eq(&self, other: &&str) -> bool {
                &*self.0 == *other
            }
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                Self::parse(&text).map_err(|error| {
                    serde::de::Error::custom(format!(
                        concat!("{:?} is not a valid ", $noun, ": {}"),
                        text, error
                    ))
                })
            }
        }
    };
}

text_like!(RunId, "run id");
text_like!(TeamName, "team name");

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn run_id_refuses_paths_and_names_the_rule() {
        for (text, rule) in [
            ("", "a run id cannot be empty: use a UUID"),
            ("..", "'.' cannot stand in a run id there: use a UUID, or letters, digits, `-` and `_`"),
            ("a/b", "'/' cannot stand in a run id there: use a UUID, or letters, digits, `-` and `_`"),
            ("-f", "'-' cannot stand in a run id there: use a UUID, or letters, digits, `-` and `_`"),
            ("é", "'é' cannot stand in a run id there: use a UUID, or letters, digits, `-` and `_`"),
            (&"a".repeat(65), "a run id has at most 64 bytes, this one has 65: use a UUID"),
        ] {
            assert_eq!(RunId::parse(text).unwrap_err().to_string(), rule);
        }
        let id = "0198f5a0-3a00-7c3e-8d4e-0123456789ab";
        assert_eq!(RunId::parse_uuid(id), RunId::parse(id).ok());
        for other in ["r1", "0198F5A0-3a00-7c3e-8d4e-0123456789ab", "0198f5a03a007c3e8d4e0123456789ab"] {
            assert_eq!(RunId::parse_uuid(other), None);
            assert!(RunId::parse(other).is_ok());
        }
    }

    #[test]
    fn team_name_has_two_parts() {
        let team = TeamName::parse("@cliq/code").unwrap();
        assert_eq!((team.scope(), team.name(), team.as_str()), ("cliq", "code", "@cliq/code"));
        for text in ["", "code", "cliq/code", "@cliq"] {
            assert_eq!(TeamName::parse(text), Err(TeamNameError::Form), "{text}");
        }
        for text in ["@/code", "@cliq/", "@cliq/a/b", "@Cliq/code", "@cliq/..", "@cliq/a--b"] {
            assert!(matches!(TeamName::parse(text), Err(TeamNameError::Part(_))), "{text}");
        }
    }

    proptest! {
        #[test]
        fn ids_and_names_survive_json(id in "[a-zA-Z0-9][a-zA-Z0-9_-]{0,63}", team in "@[a-z0-9]{1,9}/[a-z0-9]{1,9}") {
            let (id, team) = (RunId::parse(&id).unwrap(), TeamName::parse(&team).unwrap());
            let json = serde_json::to_string(&(&id, &team)).unwrap();
            prop_assert_eq!(serde_json::from_str::<(RunId, TeamName)>(&json).unwrap(), (id, team));
        }

        #[test]
        fn parsed_ids_and_names_are_the_text(text in "\\PC{0,70}") {
            if let Ok(id) = RunId::parse(&text) {
                prop_assert_eq!(id.as_str(), &text);
                prop_assert!(!text.contains(['/', '\\', '.']));
            }
            if let Ok(team) = TeamName::parse(&text) {
                prop_assert_eq!(format!("@{}/{}", team.scope(), team.name()), text);
            }
        }
    }
}
