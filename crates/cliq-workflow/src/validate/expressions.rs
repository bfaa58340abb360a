//! Expressions: that each name exists, is upstream, and is tested for if its phase may be skipped (docs/expressions.md).

use std::collections::HashSet;

use cliq_expr::{Expression, Reference};
use cliq_protocol::PhaseKind;

use super::{Context, templates};
use crate::raw::RawPhase;
use cliq_document::Located;
use cliq_document::{Diagnostic, Span, did_you_mean};

/// Names that every expression can read.
const NAMES: [&str; 4] = ["inputs", "handoff", "verdict", "results"];
/// Names that expressions of a phase with `for_each` can read, except for the list itself.
const OF_ITEMS: [&str; 2] = ["item", "index"];

pub(super) fn check(cx: &Context<'_>, targets: &[Vec<usize>], problems: &mut Vec<Diagnostic>) {
    let has_any = |phase: &RawPhase<'_>| expressions(phase).next().is_some();
    if !cx.phases().iter().any(has_any) {
        return;
    }
    let skippable = skippable(cx);
    for (i, phase) in cx.phases().iter().enumerate().filter(|(_, phase)| has_any(phase)) {
        let upstream = templates::upstream(cx, targets, i);
        let certain: HashSet<usize> = cx.graph.ancestors(i).into_iter().collect();
        let scope =
            Scope { cx, phase, own: i, upstream: &upstream, certain: &certain, skippable: &skippable };
        for (field, expression) in expressions(phase) {
            scope.check(field, expression, problems);
        }
    }
}

/// Returns the expressions of a phase with their fields.
fn expressions<'a>(phase: &'a RawPhase<'_>) -> impl Iterator<Item = (&'static str, &'a Located<Expression>)> {
    let conditions = &phase.conditions;
    let when = conditions.when.iter().map(|when| ("when", when));
    let for_each = conditions.for_each.iter().map(|list| ("for_each", list));
    when.chain(for_each).chain(conditions.rules.iter().map(|rule| ("if", &rule.condition)))
}

/// Returns the inputs that expressions of a phase read.
pub(super) fn inputs<'a>(phase: &'a RawPhase<'_>) -> impl Iterator<Item = String> + 'a {
    let references = expressions(phase).flat_map(|(_, expression)| expression.value.references());
    references.filter(|reference| reference.root == "inputs").filter_map(|reference| reference.member.clone())
}

/// Phases that may be skipped: by a condition, an empty list, or because all that they depend on may be skipped.
fn skippable(cx: &Context<'_>) -> Vec<bool> {
    let phases = cx.phases();
    let mut skippable: Vec<bool> =
        phases.iter().map(|phase| phase.record.has("when") || phase.record.has("for_each")).collect();
    // A cycle is reported elsewhere; each round follows the graph by at least one phase.
    for _ in 0..phases.len() {
        let mut changed = false;
        for (i, phase) in phases.iter().enumerate().filter(|(_, phase)| !phase.record.has("when")) {
            let before = phase.record.texts("depends_on");
            let by_all = !before.is_empty()
                && before.iter().all(|name| cx.index.get(name.value.as_str()).is_some_and(|&d| skippable[d]));
            changed |= by_all && !std::mem::replace(&mut skippable[i], true);
        }
        if !changed {
            break;
        }
    }
    skippable
}

struct Scope<'a, 'b> {
    cx: &'a Context<'b>,
    phase: &'a RawPhase<'b>,
    own: usize,
    /// Phases that may have run before.
    upstream: &'a HashSet<usize>,
    /// Phases that have certainly run or been skipped before.
    certain: &'a HashSet<usize>,
    skippable: &'a [bool],
}

impl Scope<'_, '_> {
    fn check(&self, field: &str, expression: &Located<Expression>, problems: &mut Vec<Diagnostic>) {
        let span = expression.span;
        let has_items = self.phase.record.has("for_each") && field != "for_each";
        for name in expression.value.bound() {
            if NAMES.contains(&name.as_str()) || OF_ITEMS.contains(&name.as_str()) {
                let message = format!("`{field}` gives the name `{name}` to something else");
                let help = "choose another name within the macro";
                problems.push(Diagnostic::error("shadowed-name", span, message, help));
            }
        }
        for reference in expression.value.references() {
            match reference.root.as_str() {
                "inputs" => self.check_input(reference, span, problems),
                "handoff" | "verdict" | "results" => {
                    self.check_phase(field, reference, &expression.value, span, problems)
                }
                "item" | "index" if has_items => {}
                "item" | "index" => {
                    let message = format!(
                        "`{field}` reads `{}`, which is about the items of `for_each`",
                        reference.root
                    );
                    let help = match field {
                        "for_each" => "the list cannot depend on its own items",
                        _ => "add `for_each:` to the phase, or write another name",
                    };
                    problems.push(Diagnostic::error("item-without-for-each", span, message, help));
                }
                other => {
                    let mut known = NAMES.to_vec();
                    known.extend(OF_ITEMS.iter().filter(|_| has_items));
                    let message = format!("`{field}` reads `{other}`, which is not a name");
                    // `handoff.my-phase` is a subtraction.
                    let dashed = self.cx.names(|phase| phase.name.value.ends_with(&format!("-{other}")));
                    let help = match dashed.first() {
                        Some(name) => format!("a name with `-` is written `handoff[\"{name}\"]`"),
                        None => did_you_mean(other, &known),
                    };
                    problems.push(Diagnostic::error("unknown-name", span, message, help));
                }
            }
        }
    }

    fn check_input(&self, reference: &Reference, span: Span, problems: &mut Vec<Diagnostic>) {
        let declared: Vec<&str> = self.cx.team.inputs.iter().map(|input| input.name.value.as_str()).collect();
        let Some(member) = &reference.member else { return };
        if !declared.contains(&member.as_str()) {
            let message = format!("`inputs.{member}` refers to an input that the team does not declare");
            let help = format!("declare it under `inputs:`; {}", did_you_mean(member, &declared));
            problems.push(Diagnostic::error("undeclared-input", span, message, help));
            return;
        }
        let input = self.cx.team.inputs.iter().find(|input| input.name.value == *member);
        let may_lack = input.is_some_and(|input| !input.required && input.default.is_none());
        if may_lack && reference.is_read && !reference.is_tested {
            let message = format!("`inputs.{member}` may have no value");
            let help = format!("test for it with `has(inputs.{member}) && …`, or give it a default");
            problems.push(Diagnostic::error("missing-has", span, message, help));
        }
    }

    fn check_phase(
        &self,
        field: &str,
        reference: &Reference,
        expression: &Expression,
        span: Span,
        problems: &mut Vec<Diagnostic>,
    ) {
        let root = &reference.root;
        let phases = self.cx.phases();
        let is_kind = |i: usize| match root.as_str() {
            "verdict" => phases[i].kind.is_some_and(PhaseKind::is_gate),
            "results" => !phases[i].commands.is_empty(),
            _ => true,
        };
        let own_results = field == "if" && root == "results";
        let mut known: Vec<&str> =
            self.upstream.iter().filter(|&&i| is_kind(i)).map(|&i| phases[i].name.value.as_str()).collect();
        known.sort_unstable();
        let Some(member) = &reference.member else {
            let message = format!("`{field}` reads `{root}` as a whole");
            let help = format!("name a phase: `{root}.PHASE`; {}", did_you_mean("", &known));
            problems.push(Diagnostic::error("unknown-name", span, message, help));
            return;
        };
        let Some(&at) = self.cx.index.get(member.as_str()) else {
            let message = format!("`{root}.{member}` names no phase");
            let dashed = self.cx.names(|phase| phase.name.value.starts_with(&format!("{member}-")));
            let help = match dashed.first() {
                Some(name) => format!("a name with `-` is written `{root}[\"{name}\"]`"),
                None => did_you_mean(member, &known),
            };
            problems.push(Diagnostic::error("unknown-phase", span, message, help));
            return;
        };
        if !(self.upstream.contains(&at) || own_results && at == self.own) {
            let name = &phases[self.own].name.value;
            let message =
                format!("`{root}.{member}`: `{member}` is not upstream of `{name}`, so it may not have run");
            problems.push(Diagnostic::error(
                "expression-not-upstream",
                span,
                message,
                did_you_mean(member, &known),
            ));
            return;
        }
        if !is_kind(at) {
            let what = if root == "verdict" {
                "is not a gate and has no verdict"
            } else {
                "has no commands and no results"
            };
            let message = format!("`{root}.{member}`: `{member}` {what}");
            problems.push(Diagnostic::error("expression-kind", span, message, did_you_mean("", &known)));
            return;
        }
        // A gate reads its own results once its commands have run.
        let may_lack = at != self.own && (!self.certain.contains(&at) || self.skippable[at]);
        // The condition of the phase holds when its other expressions are evaluated.
        let when = self.phase.conditions.when.as_ref().map(|when| &when.value);
        let tests = |expression: &Expression| {
            let mut references = expression.references().iter();
            references
                .any(|other| other.is_tested && other.member.as_ref() == Some(member) && other.root == *root)
        };
        if may_lack && reference.is_read && !tests(expression) && !when.is_some_and(tests) {
            let why = if self.skippable[at] { "may be skipped" } else { "may not have run" };
            let is_plain = member.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            let test =
                if is_plain { format!("has({root}.{member})") } else { format!("\"{member}\" in {root}") };
            let message = format!("`{root}.{member}`: phase `{member}` {why}");
            problems.push(Diagnostic::error(
                "missing-has",
                span,
                message,
                format!("test for it: `{test} && …`"),
            ));
        }
    }
}
