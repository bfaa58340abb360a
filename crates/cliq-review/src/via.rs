//! Ways by which answers and comments come.

use serde::{Deserialize, Serialize};

/// The way by which an answer came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Via {
    /// A reviewer's link.
    Link,
    /// `cliq review`.
    CommandLine,
    /// The dashboard, by a person who is signed in.
    Dashboard,
    /// The HTTP API, with a token.
    Api,
    /// A message to a task of A2A.
    A2a,
    /// An editor, by the Agent Client Protocol.
    Editor,
}

impl Via {
    /// The words for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Link => "link",
            Self::CommandLine => "command line",
            Self::Dashboard => "dashboard",
            Self::Api => "API",
            Self::A2a => "A2A",
            Self::Editor => "editor",
        }
    }
}
