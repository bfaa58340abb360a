//! Templates: that each refers to something that is there when the phase starts, and stands where it can be replaced.

use std::collections::HashSet;

use cliq_protocol::PhaseName;

use super::Context;
use crate::raw::{RawPhase, similar};
use crate::shell::{self, Context as ShellContext};
use crate::template::{self, Template};
use cliq_document::{Diagnostic, Span};
use cliq_document::{Kind, Node};

pub(super) fn check(cx: &Context<'_>, targets: &[Vec<usize>], problems: &mut Vec<Diagnostic>) {
    let declared = cx.team.inputs.iter().map(|input| input.name.value.as_str()).collect();
    let mut rules = Rules { cx, targets, declared, used: HashSet::new(), upstream: None };
    for (i, phase) in cx.phases().iter().enumerate() {
        rules.check_phase(i, phase, problems);
        rules.used.extend(super::expressions::inputs(phase));
    }
    for text in cx.files.role_texts() {
        rules.used.extend(template::find(&text).into_iter().filter_map(|found| match found.template {
            Ok(Template::Input(key)) => Some(key),
            _ => None,
        }));
    }
    for input in &cx.team.inputs {
        let name = &input.name;
        if !rules.used.contains(&name.value) {
            let mention = format!("$(inputs.{})", name.value);
            let message = format!("nothing refers to input `{}`", name.value);
            let help = format!("write `{mention}` where it is needed, or remove it");
            let make = if cx.files.is_draft() { Diagnostic::warning } else { Diagnostic::error };
            problems.push(make("unused-input", name.span, message, help));
        }
    }
}

struct Rules<'a, 'b> {
    cx: &'a Context<'b>,
    targets: &'a [Vec<usize>],
    declared: HashSet<&'a str>,
    used: HashSet<String>,
    /// The phases upstream of the phase that is checked.
    upstream: Option<(usize, HashSet<usize>)>,
}

impl Rules<'_, '_> {
    fn check_phase(&mut self, i: usize, phase: &RawPhase<'_>, problems: &mut Vec<Diagnostic>) {
        for command in &phase.commands {
            for at in [Some(&command.run), command.condition.as_ref()].into_iter().flatten() {
                for place in shell::templates(&at.value) {
                    let written = &at.value[place.found.range.clone()];
                    self.check_one(i, written, place.found.template.as_ref(), at.span, problems);
                    check_context(written, place.context, at.span, problems);
                }
            }
        }
        let Kind::Map(fields) = &phase.node.kind else { return };
        for field in fields.iter().filter(|f| {
            !matches!(
                f.key.as_str(),
                "commands" | "name" | "type" | "depends_on" | "when" | "for_each" | "rules"
            )
        }) {
            self.check_node(i, &field.value, problems);
        }
    }

    fn check_node(&mut self, i: usize, node: &Node, problems: &mut Vec<Diagnostic>) {
        match &node.kind {
            Kind::Text(text) => {
                for found in template::find(text) {
                    let written = &text[found.range.clone()];
                    self.check_one(i, written, found.template.as_ref(), node.span, problems);
                }
            }
            Kind::List(items) => items.iter().for_each(|item| self.check_node(i, item, problems)),
            Kind::Map(entries) => entries.iter().for_each(|entry| self.check_node(i, &entry.value, problems)),
            Kind::Null | Kind::Bool(_) | Kind::Number(_) => {}
        }
    }

    fn check_one(
        &mut self,
        i: usize,
        written: &str,
        template: Result<&Template, &String>,
        span: Span,
        problems: &mut Vec<Diagnostic>,
    ) {
        match template {
            Err(why) => {
                let message = format!("`{written}` is not a template: {why}");
                problems.push(Diagnostic::error("invalid-template", span, message, "correct it; a command substitution of the shell must not begin with `inputs.` or `handoff.`"));
            }
            Ok(Template::Input(key)) => {
                self.used.insert(key.clone());
                if !self.declared.contains(key.as_str()) {
                    let inputs = &self.cx.team.inputs;
                    let declared = || inputs.iter().map(|input| input.name.value.as_str()).collect();
                    let message = format!("`{written}` refers to an input that the team does not declare");
                    let help =
                        format!("declare it under `inputs:`; {}", similar(key, declared, problems.len()));
                    problems.push(Diagnostic::error("undeclared-input", span, message, help));
                }
            }
            Ok(Template::Handoff(phase, _)) => self.check_handoff(i, written, phase, span, problems),
            Ok(Template::Item(_) | Template::Index) if !self.cx.phases()[i].record.has("for_each") => {
                let message =
                    format!("`{written}` is about the items of `for_each`, which this phase does not have");
                let help = "add `for_each:` to the phase, or write another name";
                problems.push(Diagnostic::error("item-without-for-each", span, message, help));
            }
            Ok(_) => {}
        }
    }

    fn check_handoff(
        &mut self,
        i: usize,
        written: &str,
        phase: &PhaseName,
        span: Span,
        problems: &mut Vec<Diagnostic>,
    ) {
        let cx = self.cx;
        let upstream = self.upstream(i);
        if cx.index.get(phase.as_str()).is_some_and(|other| upstream.contains(other)) {
            return;
        }
        let known = || {
            let phases = cx.phases().iter().enumerate().filter(|(n, _)| upstream.contains(n));
            phases.map(|(_, phase)| phase.name.value.as_str()).collect()
        };
        let help = similar(phase.as_str(), known, problems.len());
        let there = cx.index.contains_key(phase.as_str());
        let message = if there {
            format!(
                "`{written}`: `{phase}` is not upstream of `{}`, so its handoff may not be there",
                cx.phases()[i].name.value
            )
        } else {
            format!("`{written}` names no phase upstream: there is no phase `{phase}`")
        };
        problems.push(Diagnostic::error("template-not-upstream", span, message, help));
    }

    fn upstream(&mut self, i: usize) -> &HashSet<usize> {
        let known = self.upstream.take().filter(|(phase, _)| *phase == i);
        let known = known.unwrap_or_else(|| (i, upstream(self.cx, self.targets, i)));
        &self.upstream.insert(known).1
    }
}

/// Phases whose handoff can be there when phase `i` starts: those before it; for a gate also those it routes to;
/// for a support phase, the phases upstream of a gate that routes to it, and that gate.
pub(super) fn upstream(cx: &Context<'_>, targets: &[Vec<usize>], i: usize) -> HashSet<usize> {
    let mut set: HashSet<usize> = cx.graph.ancestors(i).into_iter().collect();
    set.extend(&targets[i]);
    if cx.phases()[i].support {
        for (gate, list) in targets.iter().enumerate().filter(|(_, list)| list.contains(&i)) {
            set.insert(gate);
            set.extend(cx.graph.ancestors(gate));
            set.extend(list);
        }
    }
    set.remove(&i);
    set
}

fn check_context(written: &str, context: ShellContext, span: Span, problems: &mut Vec<Diagnostic>) {
    let mend = "put it in a variable first";
    let (code, message, help) = match context {
        ShellContext::Plain | ShellContext::Quoted => return,
        ShellContext::Literal => (
            "template-in-single-quotes",
            format!(
                "`{written}` stands where the shell expands nothing: in single quotes or a here-document with a quoted end"
            ),
            format!("write it in double quotes: `\"{written}\"`"),
        ),
        ShellContext::Arithmetic => (
            "template-in-arithmetic",
            format!(
                "`{written}` stands in `$(( ))`, where a shell could take the value for an expression and run it"
            ),
            format!("{mend} and check it: `n={written}; case $n in *[!0-9]*) exit 1;; esac`"),
        ),
        ShellContext::Parameter => (
            "template-in-parameter",
            format!(
                "`{written}` stands in `${{ }}`, where a shell takes the value for a pattern or an expression, or splits it into words"
            ),
            format!(
                "{mend}: `v={written}`; only `${{x:-{written}}}`, `${{x:+…}}` and `${{x:?…}}` take a value to the letter"
            ),
        ),
        ShellContext::Backticks => (
            "template-in-backticks",
            format!(
                "`{written}` stands in backticks within quotes or with escapes, where a shell splits the value into words"
            ),
            "write `$( … )` in place of the backticks".to_owned(),
        ),
        ShellContext::Unclear(reason) => (
            "template-in-unclear-script",
            format!("`{written}` stands in a script whose quotes depend on the shell: it has {reason}"),
            format!(
                "{mend} in a command of its own, or write the script as a file and pass the value as an argument"
            ),
        ),
    };
    problems.push(Diagnostic::error(code, span, message, help));
}
