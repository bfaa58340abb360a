//! The team itself: its name and versions, its inputs, its agents.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use camino::{Utf8Component, Utf8Path};
use cliq_protocol::{Budget, McpServerSpec, PhaseName, TeamName};

use super::Context;
use crate::model::{Agent, Input, Output, Phase, PhaseId, ValidatedWorkflow};
use crate::{EntryFile, agents};
use cliq_document::Diagnostic;
use cliq_document::Located;

/// All of a workflow but its phases.
pub(super) struct Details {
    name: TeamName,
    description: Option<String>,
    version: Option<semver::Version>,
    lists: [Vec<String>; 4],
    inputs: Vec<Input>,
    outputs: Vec<Output>,
    agents: BTreeMap<String, Agent>,
    mcp: BTreeMap<String, McpServerSpec>,
    budget: Budget,
}

impl Details {
    pub(super) fn into_workflow(
        self,
        phases: Vec<Phase>,
        index: HashMap<PhaseName, PhaseId>,
    ) -> ValidatedWorkflow {
        let [tools, tags, use_when, not_for] = self.lists;
        ValidatedWorkflow {
            name: self.name,
            description: self.description,
            version: self.version,
            tools,
            tags,
            use_when,
            not_for,
            inputs: self.inputs,
            outputs: self.outputs,
            agents: self.agents,
            mcp: self.mcp,
            budget: self.budget,
            texts: Arc::default(),
            phases,
            index,
        }
    }
}

pub(super) fn check(cx: &Context<'_>, problems: &mut Vec<Diagnostic>) -> Option<Details> {
    let top = &cx.team.top;
    let name = top.text("name").and_then(|at| {
        let name = TeamName::parse(&at.value).ok();
        if name.is_none() {
            let message = format!("{:?} is not a valid team name", at.value);
            let help = "write `\"@scope/name\"`, both of lower-case letters, digits, `-` and `_`";
            problems.push(Diagnostic::error("invalid-team-name", at.span, message, help));
        }
        name
    });
    let version = top.text("version").and_then(|at| match semver::Version::parse(&at.value) {
        Ok(version) => Some(version),
        Err(why) => {
            let message = format!("{:?} is not a valid version: {why}", at.value);
            problems.push(Diagnostic::error(
                "invalid-version",
                at.span,
                message,
                "write three numbers: `1.0.0`",
            ));
            None
        }
    });
    if let Some(range) = top.text("cliq_version") {
        check_cliq_version(&range, problems);
    }
    check_inputs(cx, problems);
    check_agents(cx, problems);
    let list = |name: &str| top.texts(name).into_iter().map(|t| t.value).collect();
    Some(Details {
        budget: cx.team.budget,
        name: name?,
        description: top.text("description").map(|d| d.value),
        version,
        lists: [list("tools"), list("tags"), list("use_when"), list("not_for")],
        inputs: cx
            .team
            .inputs
            .iter()
            .map(|raw| Input {
                name: raw.name.value.clone(),
                description: raw.description.clone(),
                required: raw.required && raw.default.is_none(),
                default: raw.default.clone(),
            })
            .collect(),
        outputs: cx
            .team
            .outputs
            .iter()
            .map(|(name, description)| Output { name: name.value.clone(), description: description.clone() })
            .collect(),
        mcp: cx.team.mcp.iter().map(|(name, spec)| (name.value.clone(), spec.clone())).collect(),
        agents: cx
            .team
            .agents
            .iter()
            .map(|raw| {
                let agent = Agent {
                    entry: raw.entry.value.clone().into(),
                    env: raw.env.clone(),
                    sandbox: raw.sandbox.clone(),
                };
                (raw.name.value.clone(), agent)
            })
            .collect(),
    })
}

fn check_cliq_version(range: &Located<String>, problems: &mut Vec<Diagnostic>) {
    match semver::VersionReq::parse(&range.value) {
        Err(why) => {
            let message = format!("{:?} is not a valid version range: {why}", range.value);
            problems.push(Diagnostic::error(
                "invalid-version",
                range.span,
                message,
                "write a range such as `>=0.1.0`",
            ));
        }
        Ok(wanted) => {
            let have = env!("CARGO_PKG_VERSION");
            if semver::Version::parse(have).is_ok_and(|have| !wanted.matches(&have)) {
                let message = format!("the team needs cliq {wanted}, this is {have}");
                problems.push(Diagnostic::error(
                    "cliq-version",
                    range.span,
                    message,
                    "install a cliq of that range",
                ));
            }
        }
    }
}

fn check_inputs(cx: &Context<'_>, problems: &mut Vec<Diagnostic>) {
    let mut seen = HashSet::new();
    for input in &cx.team.inputs {
        let name = &input.name;
        if name.value.is_empty()
            || !name.value.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
        {
            let message = format!("{:?} is not a valid input name", name.value);
            problems.push(Diagnostic::error(
                "invalid-name",
                name.span,
                message,
                "use letters, digits, `_` and `-`",
            ));
        }
        if !seen.insert(name.value.as_str()) {
            let message = format!("there are two inputs `{}`", name.value);
            problems.push(Diagnostic::error(
                "duplicate-name",
                name.span,
                message,
                "rename or remove one of them",
            ));
        }
    }
}

fn check_agents(cx: &Context<'_>, problems: &mut Vec<Diagnostic>) {
    for agent in &cx.team.agents {
        let Located { value: entry, span } = &agent.entry;
        if PhaseName::parse(&agent.name.value).is_err() {
            let message = format!("{:?} is not a valid agent name", agent.name.value);
            problems.push(Diagnostic::error(
                "invalid-name",
                agent.name.span,
                message,
                "use lower-case letters, digits, `-` and `_`",
            ));
        }
        let inside = Utf8Path::new(entry)
            .components()
            .all(|c| matches!(c, Utf8Component::Normal(_) | Utf8Component::CurDir));
        let problem = if !inside || entry.is_empty() {
            let message = format!("the entry of agent `{}` leaves the team folder", agent.name.value);
            Some((
                "agent-entry",
                message,
                "write a path within the team folder, such as `agents/check.sh`".to_owned(),
            ))
        } else {
            match cx.files.entry(Utf8Path::new(entry)) {
                EntryFile::Executable | EntryFile::Unknown => None,
                EntryFile::Missing => {
                    let message = format!("the entry of agent `{}` is not there", agent.name.value);
                    Some((
                        "agent-entry",
                        message,
                        format!("create `{entry}` in the team folder, or correct the path"),
                    ))
                }
                EntryFile::LinkLeavesTeam(link) => {
                    let name = &agent.name.value;
                    let message =
                        format!("agent `{name}` needs {link}, which links to a file outside of the team");
                    Some(("agent-entry", message, "put the file itself there".to_owned()))
                }
                EntryFile::NotExecutable => {
                    let message = format!("the entry of agent `{}` cannot be executed", agent.name.value);
                    let help = format!("begin it with a `#!` line and run `chmod +x {entry}`");
                    Some(("agent-entry", message, help))
                }
            }
        };
        if let Some((code, message, help)) = problem {
            problems.push(Diagnostic::error(code, *span, message, help));
        }
        let used = |name: &str| cx.phases().iter().any(|p| p.agent.as_ref().is_some_and(|a| a.value == name));
        if !used(&agent.name.value) && !agents::BUILT_IN.contains(&agent.name.value.as_str()) {
            let message = format!("no phase uses agent `{}`", agent.name.value);
            problems.push(Diagnostic::warning(
                "unused-agent",
                agent.name.span,
                message,
                "use it or remove it",
            ));
        }
    }
}
