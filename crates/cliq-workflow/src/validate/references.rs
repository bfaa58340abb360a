//! Names and what refers to them: phases, dependencies, cycles, agents, role files.

use std::collections::{BTreeSet, HashMap, HashSet};

use cliq_protocol::PhaseName;

use super::Context;
use crate::agents;
use crate::model::ValidatedWorkflow;
use crate::raw::{similar, unknown};
use cliq_document::Diagnostic;

pub(super) fn check(cx: &Context<'_>, problems: &mut Vec<Diagnostic>) {
    check_names(cx, problems);
    check_dependencies(cx, problems);
    check_agents(cx, problems);
    check_roles(cx, problems);
}

fn check_names(cx: &Context<'_>, problems: &mut Vec<Diagnostic>) {
    let mut lines = HashMap::new();
    for phase in cx.phases().iter().filter(|phase| phase.record.has("name")) {
        let name = &phase.name;
        if let Err(why) = PhaseName::parse(&name.value) {
            let message = format!("{:?} is not a valid phase name: {why}", name.value);
            problems.push(Diagnostic::error("invalid-name", name.span, message, rename(&name.value)));
        }
        if let Some(first) = lines.insert(name.value.as_str(), name.span.line) {
            let message = format!("there are two phases `{}`: the first in line {first}", name.value);
            problems.push(Diagnostic::error(
                "duplicate-phase",
                name.span,
                message,
                "rename or remove one of them",
            ));
        }
        let mut commands = HashSet::new();
        for command in &phase.commands {
            if !commands.insert(command.name.value.as_str()) {
                let message = format!("{} has two commands `{}`", phase.title(), command.name.value);
                problems.push(Diagnostic::error(
                    "duplicate-name",
                    command.name.span,
                    message,
                    "rename one of them",
                ));
            }
        }
    }
}

/// The name that a text may have been meant to be.
fn rename(text: &str) -> String {
    let mut name = String::new();
    for c in text.to_lowercase().chars() {
        match c {
            'a'..='z' | '0'..='9' | '_' => name.push(c),
            _ if name.ends_with('-') => {}
            _ => name.push('-'),
        }
    }
    let name: String = name.trim_matches(['-', '_']).chars().take(64).collect();
    let name = name.trim_matches(['-', '_']);
    if PhaseName::parse(name).is_ok() { format!("write `{name}`") } else { "choose another name".to_owned() }
}

fn check_dependencies(cx: &Context<'_>, problems: &mut Vec<Diagnostic>) {
    let main = || cx.names(|phase| !phase.support);
    let has_main = cx.phases().iter().any(|phase| !phase.support);
    let mut roots = 0;
    for phase in cx.phases() {
        let key = phase.record.key("depends_on");
        let dependencies = phase.record.texts("depends_on");
        if phase.support {
            if let Some(span) = key {
                let message = format!("support {} must not have `depends_on`", phase.title());
                problems.push(Diagnostic::error("support-depends-on", span, message, "remove it, or move the phase under `phases:`: a gate's route is what starts support phases"));
            }
            continue;
        }
        roots += usize::from(dependencies.is_empty());
        let mut seen = BTreeSet::new();
        for name in dependencies {
            let target = cx.index.get(name.value.as_str()).map(|&i| &cx.phases()[i]);
            if name.value == phase.name.value {
                let message = format!("{} depends on itself", phase.title());
                problems.push(Diagnostic::error(
                    "self-dependency",
                    name.span,
                    message,
                    "remove it from `depends_on`",
                ));
            } else if target.is_none() {
                unknown("unknown-dependency", &name, "phase", main, problems);
            } else if target.is_some_and(|t| t.support) {
                let message = format!("{} depends on support phase `{}`", phase.title(), name.value);
                problems.push(Diagnostic::error(
                    "depends-on-support",
                    name.span,
                    message,
                    "depend on the gate that routes to it",
                ));
            } else if !seen.insert(name.value.clone()) {
                let message = format!("{} depends on `{}` twice", phase.title(), name.value);
                problems.push(Diagnostic::error(
                    "duplicate-dependency",
                    name.span,
                    message,
                    "remove one of the two",
                ));
            }
        }
    }
    for cycle in cx.graph.cycles() {
        let path: Vec<&str> = cycle.iter().map(|&i| cx.phases()[i].name.value.as_str()).collect();
        let phase = &cx.phases()[cycle[0]];
        let message = format!("phases wait for one another: {} → {}", path.join(" → "), path[0]);
        let span = phase.record.key("depends_on").unwrap_or(phase.name.span);
        problems.push(Diagnostic::error(
            "dependency-cycle",
            span,
            message,
            "take one of these out of a `depends_on`",
        ));
    }
    let top = &cx.team.top;
    let declared = top.has("workflow") || top.has("phases");
    if declared
        && !has_main
        && !problems.iter().any(|p| matches!(p.code, "both-layouts" | "missing-field" | "wrong-type"))
    {
        let span = top.key("workflow").or(top.key("phases")).unwrap_or(top.span);
        problems.push(Diagnostic::error(
            "no-phases",
            span,
            "the workflow has no phase",
            "add a phase under `phases:`",
        ));
    } else if roots == 0 && has_main {
        let span = cx.phases()[0].record.key("depends_on").unwrap_or(cx.phases()[0].name.span);
        problems.push(Diagnostic::error(
            "no-root",
            span,
            "every phase waits for another, so none can start",
            "take `depends_on` away from the phase that begins",
        ));
    }
}

fn check_agents(cx: &Context<'_>, problems: &mut Vec<Diagnostic>) {
    let installed = cx.files.installed_agents();
    let mut known: Vec<&str> = cx.team.agents.iter().map(|agent| agent.name.value.as_str()).collect();
    known.extend(installed.iter().map(String::as_str));
    known.extend(agents::BUILT_IN);
    let names: HashSet<&str> = known.iter().copied().collect();
    let own: HashSet<&str> = cx.team.agents.iter().map(|agent| agent.name.value.as_str()).collect();
    let mut check = |at: &cliq_document::Located<String>| {
        // A broken agent hides a built-in one of its name: what was installed is not what would work.
        let broken = cx.files.broken_agent(&at.value).filter(|_| !own.contains(at.value.as_str()));
        if let Some(why) = broken {
            let message = format!("agent `{}`: {why}", at.value);
            let help = "mend or remove the installed agent; `cliq agent list` shows all".to_owned();
            problems.push(Diagnostic::error("unknown-agent", at.span, message, help));
        } else if !names.contains(at.value.as_str()) {
            let help = similar(&at.value, || known.clone(), problems.len());
            let help = format!("{help} — or declare it under `agents:`");
            let message = format!("there is no agent `{}`", at.value);
            problems.push(Diagnostic::error("unknown-agent", at.span, message, help));
        }
    };
    for phase in cx.phases() {
        if let Some(agent) = &phase.agent {
            check(agent);
        }
    }
    for phase in cx.phases().iter().filter(|phase| !phase.conversation.is_fresh()) {
        let Some(agent) = &phase.agent else { continue };
        if own.contains(agent.value.as_str()) || agents::WITHOUT_CONVERSATION.contains(&agent.value.as_str())
        {
            let span = phase.record.key("conversation").unwrap_or(agent.span);
            let message =
                format!("agent `{}` of {} has no conversation to continue", agent.value, phase.title());
            let help = "remove `conversation`, or let a model agent work in this phase";
            problems.push(Diagnostic::error("no-conversation", span, message, help));
        }
    }
    for phase in cx.phases() {
        let Some(notify) = phase.record.node("notify") else { continue };
        let Some(events) =
            cliq_document::Record::read(notify, crate::fields::NOTIFY_EVENTS, "`notify`", problems)
        else {
            continue;
        };
        let nodes: Vec<_> = events.names().filter_map(|(name, _)| events.node(name)).collect();
        for node in nodes {
            let record = cliq_document::Record::read(node, crate::fields::NOTIFY, "a notification", problems);
            if let Some(agent) = record.and_then(|r| r.text("agent"))
                && !names.contains(agent.value.as_str())
            {
                unknown("unknown-agent", &agent, "agent", || known.clone(), problems);
            }
        }
    }
}

fn check_roles(cx: &Context<'_>, problems: &mut Vec<Diagnostic>) {
    for phase in cx.phases() {
        let Some(kind) = phase.kind else { continue };
        let role = phase.record.text("role");
        let (file, span) = match &role {
            Some(role) => (role.value.as_str(), role.span),
            None => (phase.name.value.as_str(), phase.name.span),
        };
        if PhaseName::parse(file).is_err() {
            if role.is_some() {
                let message = format!(
                    "{file:?} is not a role: a role is the name of a file in `roles/`, without `.md`"
                );
                problems.push(Diagnostic::error("invalid-name", span, message, rename(file)));
            }
            continue;
        }
        let agent = phase.agent.as_ref().map(|a| a.value.as_str());
        let wanted = role.is_some() || ValidatedWorkflow::needs_role(kind, agent);
        if wanted && !cx.files.has_role(file) {
            let message = format!("{} has no role file", phase.title());
            let known = cx.files.role_names();
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            let near = cliq_document::nearest(file, known.iter().copied());
            let help = match near {
                Some(near) => {
                    format!("rename `roles/{near}.md` to `roles/{file}.md`, or write `role: {near}`")
                }
                None => format!("write `roles/{file}.md`: who the agent is and what it is to do"),
            };
            problems.push(Diagnostic::error("missing-role", span, message, help));
        }
    }
}
