//! Rules of a gate's route targets (docs/team-yml.md).

use std::collections::HashSet;

use cliq_protocol::PhaseKind;

use super::Context;
use crate::model::{PhaseId, Rule};
use crate::raw::{RawPhase, unknown};
use cliq_document::{Diagnostic, did_you_mean};

/// Route targets of each phase, by index; empty for all but gates.
pub(super) fn check(cx: &Context<'_>, problems: &mut Vec<Diagnostic>) -> Vec<Vec<usize>> {
    let targets: Vec<Vec<usize>> =
        cx.phases().iter().enumerate().map(|(i, phase)| targets_of(cx, i, phase, problems)).collect();
    // A gate whose type is not known may yet be the one that routes somewhere.
    let all_known = cx.phases().iter().all(|p| p.kind.is_some());
    let mut reached: HashSet<usize> = targets.iter().flatten().copied().collect();
    reached.extend(cx.phases().iter().filter_map(|phase| check_resolver(cx, phase, problems)));
    for (i, phase) in cx.phases().iter().enumerate() {
        check_rules(cx, phase, &targets[i], problems);
        if all_known && phase.support && !reached.contains(&i) {
            let message = format!("no gate can route to support {}", phase.title());
            let help = "add a gate, or name the phase in a gate's `route_to`";
            problems.push(Diagnostic::warning("unreachable-support", phase.name.span, message, help));
        }
    }
    targets
}

fn works(phase: &RawPhase<'_>) -> bool {
    matches!(
        phase.kind,
        Some(
            PhaseKind::Standard | PhaseKind::Gate | PhaseKind::HumanGate | PhaseKind::Exec | PhaseKind::Team
        )
    )
}

fn targets_of(
    cx: &Context<'_>,
    i: usize,
    phase: &RawPhase<'_>,
    problems: &mut Vec<Diagnostic>,
) -> Vec<usize> {
    if !phase.kind.is_some_and(PhaseKind::is_gate) {
        return Vec::new();
    }
    let upstream = cx.graph.ancestors(i).into_iter().filter(|&a| a != i && works(&cx.phases()[a]));
    let support =
        (0..cx.phases().len()).filter(|&s| s != i && cx.phases()[s].support && works(&cx.phases()[s]));
    let all: Vec<usize> = upstream.chain(support).collect();
    if !phase.record.has("route_to") {
        return all;
    }
    let mut chosen = Vec::new();
    for name in phase.record.texts("route_to") {
        match cx.index.get(name.value.as_str()) {
            None => {
                let known = || all.iter().map(|&t| cx.phases()[t].name.value.as_str()).collect();
                unknown("unknown-route-target", &name, "phase", known, problems);
            }
            Some(target) if !all.contains(target) => {
                let message = format!("{} cannot route to `{}`", phase.title(), name.value);
                let help = "a gate routes to phases upstream of it that run an agent or commands, and to support phases";
                problems.push(Diagnostic::error("invalid-route-target", name.span, message, help));
            }
            Some(target) if !chosen.contains(target) => chosen.push(*target),
            Some(_) => {}
        }
    }
    chosen
}

/// Checks the phase that resolves conflicts, and returns it.
fn check_resolver(cx: &Context<'_>, phase: &RawPhase<'_>, problems: &mut Vec<Diagnostic>) -> Option<usize> {
    let name = phase.record.text("on_conflict")?;
    if phase.record.text("workspace").is_none_or(|word| word.value != "worktree") {
        let message = format!("`on_conflict` is about worktrees, which {} does not use", phase.title());
        problems.push(Diagnostic::error(
            "missing-worktree",
            name.span,
            message,
            "add `workspace: worktree` or remove it",
        ));
    }
    let can_resolve =
        |raw: &RawPhase<'_>| raw.support && works(raw) && !raw.kind.is_some_and(PhaseKind::is_gate);
    let found = cx.index.get(name.value.as_str()).copied().filter(|&i| can_resolve(&cx.phases()[i]));
    if found.is_none() {
        let known = cx.names(can_resolve);
        let message = format!("`{}` is not a support phase that can resolve conflicts", name.value);
        let help = format!("name a support phase that is not a gate; {}", did_you_mean(&name.value, &known));
        problems.push(Diagnostic::error("invalid-resolver", name.span, message, help));
    }
    found
}

fn check_rules(cx: &Context<'_>, phase: &RawPhase<'_>, targets: &[usize], problems: &mut Vec<Diagnostic>) {
    let commands: Vec<&str> = phase.commands.iter().map(|c| c.name.value.as_str()).collect();
    for rule in &phase.conditions.rules {
        let to = rule.to.value.as_str();
        let known =
            matches!(to, "PASS" | "ESCALATE") || cx.index.get(to).is_some_and(|t| targets.contains(t));
        if !known {
            let mut names: Vec<&str> = targets.iter().map(|&t| cx.phases()[t].name.value.as_str()).collect();
            names.extend(["PASS", "ESCALATE"]);
            let message = format!("{} cannot route to `{to}`", phase.title());
            problems.push(Diagnostic::error(
                "invalid-route-target",
                rule.to.span,
                message,
                did_you_mean(to, &names),
            ));
        }
    }
    for entry in phase.record.map("rules") {
        if !commands.contains(&entry.key.as_str()) {
            let message = format!("{} has no command `{}`", phase.title(), entry.key);
            problems.push(Diagnostic::error(
                "unknown-rule-command",
                entry.span,
                message,
                did_you_mean(&entry.key, &commands),
            ));
        }
        let Some(target) = entry.value.scalar() else { continue };
        let known =
            target == "ESCALATE" || cx.index.get(target.as_str()).is_some_and(|t| targets.contains(t));
        if !known {
            let mut names: Vec<&str> = targets.iter().map(|&t| cx.phases()[t].name.value.as_str()).collect();
            names.push("ESCALATE");
            let message = format!("{} cannot route to `{target}`", phase.title());
            problems.push(Diagnostic::error(
                "invalid-route-target",
                entry.value.span,
                message,
                did_you_mean(&target, &names),
            ));
        }
    }
}

/// A rule from its text.
pub(super) fn rule(text: &str, id: &dyn Fn(&str) -> Option<PhaseId>) -> Option<Rule> {
    if text == "ESCALATE" { Some(Rule::Escalate) } else { id(text).map(Rule::Route) }
}
