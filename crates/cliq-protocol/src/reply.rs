//! Kinds of model replies (docs/outcomes.md).
// A new outcome has to be handled by name.
#![deny(clippy::wildcard_enum_match_arm)]

use serde::{Deserialize, Serialize};

/// Kind of a complete reply of a model. Every reply has exactly one; a request without a reply is an error instead.
///
/// Only [`ReplyKind::Answer`] completes a phase. The rules are on the page docs/outcomes.md.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplyKind {
    /// Text that ends the work, without a call in any form.
    Answer,
    /// Tool calls, native or as text, valid or not.
    Calls,
    /// Incomplete text or calls: the server or a limit ended the reply.
    CutOff,
    /// The model or a content filter refused to reply.
    Refused,
    /// Neither text nor calls, or thoughts alone.
    Empty,
}

impl ReplyKind {
    /// All kinds, in the order of the documentation.
    pub const ALL: [Self; 5] = [Self::Answer, Self::Calls, Self::CutOff, Self::Refused, Self::Empty];

    /// Returns the name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Answer => "answer",
            Self::Calls => "calls",
            Self::CutOff => "cut_off",
            Self::Refused => "refused",
            Self::Empty => "empty",
        }
    }
}

impl std::fmt::Display for ReplyKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_on_the_wire_agree_with_serde() {
        for kind in ReplyKind::ALL {
            assert_eq!(serde_json::to_value(kind).expect("a kind"), kind.as_str());
        }
    }
}
