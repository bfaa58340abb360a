//! Texts that a team was checked from.

use std::collections::BTreeMap;

use crate::TeamFiles;

/// Texts that a team was checked from: they are enough to check it again later.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TeamTexts {
    /// Text of team.yml.
    pub text: String,
    /// Texts of the roles by name.
    pub roles: BTreeMap<String, String>,
    /// Names of the agents that were installed outside the team.
    pub installed_agents: Vec<String>,
}

impl TeamTexts {
    pub(crate) fn of(text: &str, files: &dyn TeamFiles) -> Self {
        Self {
            text: text.to_owned(),
            roles: files.role_names().into_iter().zip(files.role_texts()).collect(),
            installed_agents: files.installed_agents(),
        }
    }
}
