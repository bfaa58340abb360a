//! Rules of connectors: existing actions, and entries with the fields that the action takes.

use std::collections::HashMap;

use cliq_protocol::PhaseKind;

use super::Context;
use crate::connectors::{Action, Connector, Direction};
use crate::fields::{SOURCE, TARGET};
use crate::raw::RawPhase;
use cliq_document::Field;
use cliq_document::Record;
use cliq_document::{Diagnostic, did_you_mean};

pub(super) fn check(cx: &Context<'_>, problems: &mut Vec<Diagnostic>) {
    for phase in cx.phases() {
        let Some(agent) = phase.agent.as_ref().filter(|_| phase.is_connector()) else { continue };
        // An agent of the team's own takes what it likes.
        let own = cx.team.agents.iter().any(|own| own.name.value == agent.value);
        if let Some(connector) = Connector::find(&agent.value).filter(|_| !own) {
            check_phase(phase, connector, problems);
        }
    }
    check_pull_names(cx, problems);
}

fn check_phase(phase: &RawPhase<'_>, connector: &Connector, problems: &mut Vec<Diagnostic>) {
    let named = phase.record.text("action");
    if let Some(at) = named.as_ref() {
        let known: Vec<&str> =
            connector.actions.iter().map(|action| action.name).filter(|name| !name.is_empty()).collect();
        if !known.contains(&at.value.as_str()) {
            let message = format!("`{}` is not an action of `{}`", at.value, connector.name);
            let help = if known.is_empty() {
                "it has none: what it does follows from `sources` and `target_entries`".to_owned()
            } else {
                format!("{}; it has {}", did_you_mean(&at.value, &known), known.join(", "))
            };
            problems.push(Diagnostic::error("unknown-action", at.span, message, help));
            return;
        }
    } else if connector.has_actions() {
        return; // Reported as missing.
    }
    for (list, direction, fields) in
        [("sources", Direction::Fetch, SOURCE), ("target_entries", Direction::Publish, TARGET)]
    {
        let name = named.as_ref().map(|at| at.value.as_str());
        let mut keys = HashMap::new();
        for node in phase.record.list(list) {
            let Some(action) = connector.action(name, direction) else {
                let (other, does) = match direction {
                    Direction::Fetch => ("target_entries", "publishes"),
                    Direction::Publish => ("sources", "fetches"),
                };
                let message = format!("`{list}` cannot stand on {}: its action {does}", phase.title());
                problems.push(Diagnostic::error(
                    "field-not-allowed",
                    node.span,
                    message,
                    format!("use `{other}`"),
                ));
                break;
            };
            let Some(record) = Record::read(node, fields, "", &mut Vec::new()) else { continue };
            check_entry(&record, connector, action, problems);
            // The handoff names what was fetched without its extension.
            if let Some(name) = record.text("name") {
                let key = name.value.split_once('.').map_or(name.value.as_str(), |(stem, _)| stem).to_owned();
                if let Some(other) =
                    keys.insert(key.clone(), name.value.clone()).filter(|other| *other != name.value)
                {
                    let message = format!("`{}` and `{other}` are both `{key}` in the handoff", name.value);
                    problems.push(Diagnostic::error(
                        "duplicate-name",
                        name.span,
                        message,
                        "rename one of them",
                    ));
                }
            }
        }
    }
}

fn check_entry(record: &Record<'_>, connector: &Connector, action: &Action, problems: &mut Vec<Diagnostic>) {
    let what = if action.name.is_empty() {
        format!("`{}`", connector.name)
    } else {
        format!("`{}` of `{}`", action.name, connector.name)
    };
    for field in action.required.iter().filter(|field| !record.has(field)) {
        let about = if *field == "ref" { format!(": {}", action.reference) } else { String::new() };
        let message = format!("an entry for {what} needs `{field}`{about}");
        problems.push(Diagnostic::error(
            "missing-field",
            record.span,
            message,
            format!("add `{field}:` to it"),
        ));
    }
    for (field, span) in record.names() {
        let known = field == "name" || action.required.contains(&field) || action.optional.contains(&field);
        if !known {
            let takes: Vec<&str> =
                ["name"].iter().chain(action.required).chain(action.optional).copied().collect();
            let message = format!("an entry for {what} takes no `{field}`");
            problems.push(Diagnostic::error(
                "field-not-allowed",
                span,
                message,
                format!("it takes {}", takes.join(", ")),
            ));
        }
    }
}

/// Sources of all pull phases share one directory.
fn check_pull_names(cx: &Context<'_>, problems: &mut Vec<Diagnostic>) {
    let mut seen: HashMap<String, String> = HashMap::new();
    let fields: &'static [Field] = SOURCE;
    for phase in cx.phases().iter().filter(|phase| phase.kind == Some(PhaseKind::Pull)) {
        for node in phase.record.list("sources") {
            let Some(record) = Record::read(node, fields, "", &mut Vec::new()) else { continue };
            let Some(name) = record.text("name") else { continue };
            let owner = phase.name.value.clone();
            if let Some(other) = seen.get(&name.value).filter(|other| **other != owner) {
                let message = format!("phases `{other}` and `{owner}` both have a source `{}`", name.value);
                problems.push(Diagnostic::error(
                    "duplicate-name",
                    name.span,
                    message,
                    "rename one of them: both would be kept as .cliq/pull/<name>",
                ));
            }
            seen.insert(name.value.clone(), owner);
        }
    }
}
