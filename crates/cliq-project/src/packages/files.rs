//! Files of a team that a package and the lock contain: what a run of the team reads, and what people read about it.

use std::collections::BTreeSet;

use camino::{Utf8Component, Utf8Path};
use cliq_workflow::ValidatedWorkflow;

/// Files and folders that belong to every team that has them.
const ALWAYS: [&str; 7] = ["team.yml", "README.md", "LICENSE", "CHANGELOG.md", "roles", "skills", "channels"];

/// The top folders of the programs of a team: an agent or an MCP server may need the files beside its program.
pub(crate) fn program_folders(workflow: &ValidatedWorkflow) -> BTreeSet<String> {
    let entries = workflow.agents.values().map(|agent| agent.entry.as_path());
    let programs = workflow.mcp.values().filter_map(|server| server.program_of_team());
    let top = |path: &Utf8Path| {
        path.components().find_map(|part| match part {
            Utf8Component::Normal(name) => Some(name.to_owned()),
            _ => None,
        })
    };
    entries.chain(programs).filter_map(top).collect()
}

/// Files and folders directly below the folder of a team that belong to it.
pub(crate) fn parts(workflow: &ValidatedWorkflow) -> BTreeSet<String> {
    let mut parts = program_folders(workflow);
    parts.extend(ALWAYS.map(str::to_owned));
    parts
}
