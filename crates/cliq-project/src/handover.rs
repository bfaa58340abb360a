//! Confidential part of a run in a container or cluster. Never in a description, in arguments or in an image.

use std::collections::BTreeMap;

use cliq_model::RunSpec;
use serde::{Deserialize, Serialize};

/// The most bytes of a handover.
pub const HANDOVER_LIMIT: u64 = 32 << 20;

/// Variables, settings and run for the cliq in a container: one line of JSON.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Handover {
    /// Variables of the environment.
    pub env: BTreeMap<String, String>,
    /// The content of a person's settings file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<String>,
    /// Description of the run, if the work is a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<RunSpec>,
}

impl std::fmt::Debug for Handover {
    /// Shows the names of variables only.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.env.keys()).finish()
    }
}

impl Handover {
    /// The line.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        line
    }

    /// Reads the line.
    ///
    /// # Errors
    /// Returns an error if the line is not a handover. The message quotes nothing of it.
    pub fn decode(line: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(line)
            .map_err(|error| format!("it is not a handover (column {})", error.column()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handover_is_one_line_and_shows_no_secret() {
        let handover = Handover {
            env: [("KEY".to_owned(), "hush\nhush".to_owned())].into(),
            settings: Some("{\n}".to_owned()),
            spec: Some(RunSpec { title: Some("hush\n".to_owned()), ..RunSpec::default() }),
        };
        let line = handover.encode();
        assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
        assert_eq!(Handover::decode(&line), Ok(handover.clone()));
        assert!(!format!("{handover:?}").contains("hush"));
        assert!(!Handover::decode(b"{\"env\": \"hush\"}").unwrap_err().contains("hush"));
    }
}
