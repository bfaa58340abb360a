//! Description of a run: the one value that every entry point makes and every backend receives.
//!
//! Command line, API, A2A, MCP, triggers, evaluations, plans and pages fill a [`RunSpec`] and add what only they know beside it. A
//! backend passes it to the process of the run as JSON, on standard input or in the handover of a container. Code that translates a
//! description into something else destructures it without `..`, so that a new field is a compile error there.

use std::collections::BTreeMap;

use cliq_protocol::{Budget, Profile, TraceContext};
use serde::{Deserialize, Serialize};

/// Description of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RunSpec {
    /// Name of the team, `@scope/name`, or `None` for the team that is assembled in the project.
    pub team: Option<String>,
    /// Title. Default: the first line of the requirement, or the name of the team.
    pub title: Option<String>,
    /// Requirement for the team, or `None` for the requirement of the project.
    pub requirement: Option<String>,
    /// Values of the team's inputs.
    pub inputs: BTreeMap<String, String>,
    /// Agent for phases that name none.
    pub agent: Option<String>,
    /// Maximum number of phases at the same time.
    pub max_parallel: Option<u32>,
    /// Budget for language models, in place of the team's.
    pub budget: Budget,
    /// Repositories to clone into a workspace that is made for the run.
    pub repos: Vec<String>,
    /// Profile of the sandbox around all processes, beside those of settings and team.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<Profile>,
    /// Span of the caller, whose trace the run is part of (docs/telemetry.md).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceContext>,
}

impl RunSpec {
    /// Returns the description for the resumption of the run, whose journal has title and inputs.
    #[must_use]
    pub fn for_resumption(self) -> Self {
        Self { title: None, inputs: BTreeMap::new(), ..self }
    }

    /// Encodes the description for the process of the run.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Decodes the description of a run.
    ///
    /// # Errors
    /// Returns an error if the bytes are not the JSON of a description. The message quotes no value.
    pub fn decode(bytes: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(bytes)
            .map_err(|error| format!("not the description of a run (column {})", error.column()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn description_keeps_its_fields_as_json() {
        let spec = RunSpec {
            team: Some("@a/b".to_owned()),
            title: Some("-x".to_owned()),
            requirement: Some("r\n".to_owned()),
            inputs: BTreeMap::from([("k".to_owned(), "a=b".to_owned())]),
            agent: Some("mock".to_owned()),
            max_parallel: Some(2),
            budget: Budget { tokens: Some(5), usd: Some(0.1) },
            repos: vec!["https://example.com/r".to_owned()],
            sandbox: Some(Profile::Strict),
            trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".parse().ok(),
        };
        assert_eq!(RunSpec::decode(&spec.encode()), Ok(spec.clone()));
        assert_eq!(RunSpec::decode(b"{}"), Ok(RunSpec::default()));
        let resumed = spec.for_resumption();
        assert_eq!((resumed.title, resumed.inputs.len(), resumed.max_parallel), (None, 0, Some(2)));
        assert!(!RunSpec::decode(br#"{"title": "hush", "inputs": 1}"#).unwrap_err().contains("hush"));
    }
}
