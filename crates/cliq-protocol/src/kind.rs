//! The kinds of phases and the three kinds of envelopes they write.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Type of a phase (docs/team-yml.md).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PhaseKind {
    /// An agent that does work.
    Standard,
    /// Commands, then an agent that renders a verdict.
    Gate,
    /// Commands, then a person who renders a verdict. `hug` on the wire.
    #[serde(rename = "hug")]
    HumanGate,
    /// Commands and no agent.
    Exec,
    /// Fetches external content.
    Pull,
    /// Publishes local files.
    Push,
    /// A whole team as one phase.
    Team,
}

impl PhaseKind {
    /// Every kind, in the order in which the documents list them.
    pub const ALL: [Self; 7] =
        [Self::Standard, Self::Gate, Self::HumanGate, Self::Exec, Self::Pull, Self::Push, Self::Team];

    /// The name in `team.yml` and in dispatch messages.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::Gate => "gate",
            Self::HumanGate => "hug",
            Self::Exec => "exec",
            Self::Pull => "pull",
            Self::Push => "push",
            Self::Team => "team",
        }
    }

    /// The `phase_type` of envelopes that a phase of this kind writes (docs/protocol.md).
    #[must_use]
    pub fn envelope_type(self) -> EnvelopeType {
        match self {
            Self::Gate | Self::HumanGate => EnvelopeType::Gate,
            Self::Team => EnvelopeType::Team,
            Self::Standard | Self::Exec | Self::Pull | Self::Push => EnvelopeType::Standard,
        }
    }

    /// Whether such a phase works in a pane of its own if there are panes.
    #[must_use]
    pub fn has_pane(self) -> bool {
        !matches!(self, Self::Pull | Self::Push)
    }

    /// Whether such a phase renders verdicts.
    #[must_use]
    pub fn is_gate(self) -> bool {
        matches!(self, Self::Gate | Self::HumanGate)
    }
}

impl fmt::Display for PhaseKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The discriminator of an envelope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EnvelopeType {
    /// From a standard, exec, pull, push or connector phase.
    Standard,
    /// From a gate, automated or human.
    Gate,
    /// From a sub-team.
    Team,
}

impl EnvelopeType {
    /// The name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::Gate => "gate",
            Self::Team => "team",
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        [Self::Standard, Self::Gate, Self::Team].into_iter().find(|kind| kind.as_str() == text)
    }
}
