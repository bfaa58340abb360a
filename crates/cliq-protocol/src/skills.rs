//! Selection of the skills of a phase.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Selection of the skills that a model agent may read: `all`, `none`, or a list of names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum SkillSelection {
    /// All skills of the team, the project and the person.
    #[default]
    All,
    /// No skills.
    None,
    /// The skills of a list. Each of them is required.
    Only(Vec<String>),
}

impl SkillSelection {
    /// Words in place of a list.
    pub const WORDS: [&str; 2] = ["all", "none"];

    /// Returns the selection that a word stands for.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "all" => Some(Self::All),
            "none" => Some(Self::None),
            _ => None,
        }
    }

    /// Whether nothing is left out.
    #[must_use]
    pub fn is_all(&self) -> bool {
        *self == Self::All
    }

    /// Whether a skill may be read.
    #[must_use]
    pub fn allows(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::None => false,
            Self::Only(names) => names.iter().any(|allowed| allowed == name),
        }
    }
}

impl Serialize for SkillSelection {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::All => serializer.serialize_str("all"),
            Self::None => serializer.serialize_str("none"),
            Self::Only(names) => names.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for SkillSelection {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            Word(String),
            Names(Vec<String>),
        }
        match Form::deserialize(deserializer)? {
            Form::Names(names) => Ok(Self::Only(names)),
            Form::Word(word) => Self::parse(&word).ok_or_else(|| {
                serde::de::Error::custom(format!("expected `all`, `none` or a list of names, found `{word}`"))
            }),
        }
    }
}
