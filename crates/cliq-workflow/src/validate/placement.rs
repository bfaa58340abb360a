//! Rules of fields by phase type: allowed ones and required ones.

use std::collections::HashSet;

use camino::{Utf8Component, Utf8Path};
use cliq_protocol::PhaseKind;

use super::Context;
use crate::connectors::Connector;
use crate::globs::parse_glob;
use crate::raw::RawPhase;
use cliq_document::Diagnostic;
use cliq_document::Node;
use cliq_document::Record;

pub(super) fn check(cx: &Context<'_>, problems: &mut Vec<Diagnostic>) {
    for phase in cx.phases() {
        let Some(kind) = phase.kind else { continue };
        for (field, span) in phase.record.names() {
            if let Some(where_) = misplaced(field, phase, kind) {
                let message =
                    format!("`{field}` cannot stand on {}, which is of type `{kind}`", phase.title());
                problems.push(Diagnostic::error(
                    "field-not-allowed",
                    span,
                    message,
                    format!("`{field}` belongs on {where_}: remove it here"),
                ));
            }
        }
        check_needs(phase, kind, problems);
        check_items(phase, problems);
        check_remote(phase, problems);
        check_commands(phase, kind, problems);
        check_sources(phase, problems);
        check_globs(phase, problems);
        check_targets(phase, kind, problems);
    }
}

/// Returns the place where a field belongs, or `None` if it belongs here.
fn misplaced(field: &str, phase: &RawPhase<'_>, kind: PhaseKind) -> Option<&'static str> {
    use PhaseKind::{Exec, Gate, HumanGate, Pull, Push, Standard, Team};
    let connector = phase.is_connector();
    let (belongs, place) = match field {
        "commands" => (matches!(kind, Gate | HumanGate | Exec), "gate, hug and exec phases"),
        "max_iterations" | "route_to" => (kind.is_gate(), "gate and hug phases"),
        "rules" => {
            let rules = phase.agent.as_ref().is_some_and(|a| a.value == "rules");
            (kind == Gate && rules, "gate phases with `agent: rules`")
        }
        "review" => (kind == HumanGate, "hug phases"),
        "workspace" | "on_conflict" => {
            (matches!(kind, Standard | Exec | Team) && !connector, "standard, exec and team phases")
        }
        "for_each" | "max_items" | "max_parallel" | "on_item_failure" => (
            matches!(kind, Standard | Exec | Team | Pull) && !connector,
            "standard, exec, team and pull phases",
        ),
        "retry" => (!kind.is_gate(), "phases other than gates"),
        "sources" => (kind == Pull || connector, "pull and connector phases"),
        "targets" => (kind == Push, "push phases"),
        "target_entries" => (kind == Push || connector, "push and connector phases"),
        "action" => (connector, "connector phases"),
        "team" | "inputs" => (kind == Team, "team phases"),
        "sandbox" => (
            !matches!(kind, Pull | Push) && !connector,
            "phases with commands or with an agent that is a program",
        ),
        "budget" => (matches!(kind, Standard | Gate | Team), "phases that an agent works in"),
        "config" => (matches!(kind, Standard | Gate) && !connector, "phases that an agent works in"),
        "outputs" => (kind == Standard && !connector, "standard phases that an agent works in"),
        "agent_tools" => (matches!(kind, Standard | Gate) && !connector, "phases that an agent works in"),
        "skills" => (matches!(kind, Standard | Gate) && !connector, "phases that an agent works in"),
        "permissions" => (matches!(kind, Standard | Gate) && !connector, "phases that an agent works in"),
        "conversation" => (
            kind == Standard && !connector,
            "standard phases: a gate judges in a conversation of its own each time",
        ),
        "model" | "effort" | "temperature" | "max_tokens" | "extra_body" => {
            (matches!(kind, Standard | Gate) && !connector, "phases that an agent works in")
        }
        "role" => (
            matches!(kind, Standard | Gate | HumanGate | Team) && !connector,
            "phases that an agent works in",
        ),
        _ => (true, ""),
    };
    (!belongs).then_some(place)
}

/// Checks that fields of items stand beside `for_each`.
fn check_items(phase: &RawPhase<'_>, problems: &mut Vec<Diagnostic>) {
    if phase.record.has("for_each") {
        return;
    }
    for field in ["max_items", "max_parallel", "on_item_failure", "workspace", "on_conflict"] {
        if let Some(span) = phase.record.key(field) {
            let message =
                format!("`{field}` is about the items of `for_each`, which {} does not have", phase.title());
            problems.push(Diagnostic::error(
                "missing-for-each",
                span,
                message,
                "add `for_each:` or remove it",
            ));
        }
    }
}

fn check_needs(phase: &RawPhase<'_>, kind: PhaseKind, problems: &mut Vec<Diagnostic>) {
    let mut need = |field: &str, code: &'static str, there: bool, what: &str| {
        if !there {
            let message = format!("{} is of type `{kind}` and needs {what}", phase.title());
            problems.push(Diagnostic::error(code, phase.name.span, message, format!("add `{field}:` to it")));
        }
    };
    let record = &phase.record;
    let filled = |field: &str| {
        record.has(field)
            && (record.node(field).is_none()
                || !record.list(field).is_empty()
                || !record.map(field).is_empty())
    };
    let publishes = filled("targets") || filled("target_entries");
    match kind {
        PhaseKind::Exec => {
            need("commands", "exec-without-commands", filled("commands"), "at least one command");
        }
        PhaseKind::Pull => {
            need("sources", "pull-without-sources", filled("sources"), "at least one source");
        }
        PhaseKind::Push => {
            need("targets", "push-without-targets", publishes, "at least one target");
        }
        PhaseKind::HumanGate => {
            need("review", "hug-without-review", record.has("review"), "a review block");
        }
        PhaseKind::Team => {
            need("team", "team-without-team", record.has("team"), "a team to run");
        }
        PhaseKind::Standard if phase.is_connector() => {
            let agent = phase.agent.as_ref().map(|a| a.value.as_str()).unwrap_or_default();
            let has = filled("sources") || publishes;
            need("sources", "connector-without-entries", has, "sources or target_entries");
            need(
                "action",
                "connector-without-action",
                record.has("action") || !Connector::find(agent).is_some_and(Connector::has_actions),
                "an action",
            );
        }
        PhaseKind::Gate => {
            if !filled("commands") {
                let message =
                    format!("{} has no commands: its agent has only the handoffs to go by", phase.title());
                problems.push(Diagnostic::warning(
                    "gate-without-commands",
                    phase.name.span,
                    message,
                    "add `commands:` that check the work",
                ));
            }
        }
        PhaseKind::Standard => {}
    }
}

/// Checks the configuration of a remote agent, `agent: a2a` (docs/a2a.md).
fn check_remote(phase: &RawPhase<'_>, problems: &mut Vec<Diagnostic>) {
    if phase.agent.as_ref().is_none_or(|agent| agent.value != "a2a") {
        return;
    }
    let entries = phase.record.map("config");
    let url = entries.iter().find(|entry| entry.key == "url").and_then(|entry| entry.value.scalar());
    let is_address =
        |url: &String| url.starts_with("https://") || url.starts_with("http://") || url.starts_with("$(");
    if !url.as_ref().is_some_and(is_address) {
        let message = format!("{} has no address of its remote agent", phase.title());
        let help = "write `config: {url: https://…}`, with `token_env` for the variable that has the token";
        problems.push(Diagnostic::error("a2a-without-url", phase.name.span, message, help));
    }
    let known = |key: &str| matches!(key, "url" | "token_env" | "skill") || key.starts_with("inputs.");
    for entry in entries.iter().filter(|entry| !known(&entry.key)) {
        let message = format!("`config.{}` is nothing that `agent: a2a` knows", entry.key);
        let help = "it knows url, token_env, skill and inputs.NAME";
        problems.push(Diagnostic::error("unknown-config", entry.value.span, message, help));
    }
}

fn check_commands(phase: &RawPhase<'_>, kind: PhaseKind, problems: &mut Vec<Diagnostic>) {
    for command in &phase.commands {
        if let Some(span) = command.record.key("escalate_on_fail")
            && kind != PhaseKind::Exec
        {
            let message = format!(
                "`escalate_on_fail` cannot stand on a command of {}, which is of type `{kind}`",
                phase.title()
            );
            let help =
                "it belongs on commands of exec phases: remove it here; a gate judges what its commands say";
            problems.push(Diagnostic::error("field-not-allowed", span, message, help));
        }
        if let Some(span) = command.record.key("required")
            && !kind.is_gate()
        {
            let message = format!(
                "`required` cannot stand on a command of {}, which is of type `{kind}`",
                phase.title()
            );
            let help = "it belongs on commands of gates: remove it here; a command of an exec phase that fails ends it";
            problems.push(Diagnostic::error("field-not-allowed", span, message, help));
        }
        for (what, text) in
            [("run", Some(&command.run)), ("name", Some(&command.name)), ("if", command.condition.as_ref())]
        {
            if let Some(at) = text.filter(|at| at.value.trim().is_empty()) {
                let message = format!("`{what}` of a command of {} is empty", phase.title());
                problems.push(Diagnostic::error(
                    "empty-value",
                    at.span,
                    message,
                    "write something there or remove the command",
                ));
            }
        }
        if let Some(nul) = [Some(&command.run), command.condition.as_ref()]
            .into_iter()
            .flatten()
            .find(|t| t.value.contains('\0'))
        {
            problems.push(Diagnostic::error(
                "invalid-value",
                nul.span,
                "a command cannot contain a NUL character",
                "remove it",
            ));
        }
    }
}

fn check_sources(phase: &RawPhase<'_>, problems: &mut Vec<Diagnostic>) {
    let mut seen = HashSet::new();
    for node in phase.record.list("sources") {
        let Some(record) = quiet(node, crate::fields::SOURCE) else { continue };
        if let Some(name) = record.text("name") {
            let allowed = |c: char| {
                matches!(c, 'a'..='z' | '0'..='9' | '-')
                    || phase.is_connector() && (matches!(c, '.' | '_') || c.is_ascii_uppercase())
            };
            if name.value.is_empty() || !name.value.chars().all(allowed) || name.value.starts_with('.') {
                let message = format!("{:?} is not a valid source name", name.value);
                problems.push(Diagnostic::error(
                    "invalid-name",
                    name.span,
                    message,
                    "use lower-case letters, digits and `-`",
                ));
            }
            if !seen.insert(name.value.clone()) {
                let message = format!("{} has two sources `{}`", phase.title(), name.value);
                problems.push(Diagnostic::error("duplicate-name", name.span, message, "rename one of them"));
            }
        }
        if !record.has("url") && !record.has("ref") && !phase.is_connector() {
            problems.push(Diagnostic::error(
                "missing-field",
                record.span,
                "a source needs `url` or `ref`",
                "say where it is",
            ));
        }
    }
}

fn check_targets(phase: &RawPhase<'_>, kind: PhaseKind, problems: &mut Vec<Diagnostic>) {
    for node in ["targets", "target_entries"].into_iter().flat_map(|name| phase.record.list(name)) {
        let Some(record) = quiet(node, crate::fields::TARGET) else { continue };
        match record.text("file") {
            Some(file) => {
                let inside = Utf8Path::new(&file.value)
                    .components()
                    .all(|c| matches!(c, Utf8Component::Normal(_) | Utf8Component::CurDir));
                if !inside {
                    let message = format!("{:?} is not inside the workspace", file.value);
                    problems.push(Diagnostic::error(
                        "outside-workspace",
                        file.span,
                        message,
                        "write a path relative to the workspace, without `..`",
                    ));
                }
            }
            None if kind == PhaseKind::Push && !record.has("file") => {
                problems.push(Diagnostic::error(
                    "missing-field",
                    record.span,
                    "a target needs `file`",
                    "say which file to publish",
                ));
            }
            None => {}
        }
        if kind == PhaseKind::Push && !["to", "ref", "url"].iter().any(|f| record.has(f)) {
            problems.push(Diagnostic::error(
                "missing-field",
                record.span,
                "a target needs `to`",
                "say where to publish it",
            ));
        }
    }
}

/// A record whose own problems were reported when it was first read.
fn quiet<'a>(node: &'a Node, fields: &'static [cliq_document::Field]) -> Option<Record<'a>> {
    Record::read(node, fields, "", &mut Vec::new())
}

fn check_globs(phase: &RawPhase<'_>, problems: &mut Vec<Diagnostic>) {
    for glob in phase.record.texts("inputs_files") {
        if let Err(error) = parse_glob(&glob.value) {
            let message = format!("`inputs_files`: {:?} {}", glob.value, error.problem);
            problems.push(Diagnostic::error("invalid-glob", glob.span, message, error.help));
        }
    }
}
