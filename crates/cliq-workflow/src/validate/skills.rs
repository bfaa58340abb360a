//! Rules for the skills of a team.

use cliq_document::{Diagnostic, Span};

use super::Context;
use crate::skills::Skill;

pub(super) fn check(cx: &Context<'_>, problems: &mut Vec<Diagnostic>) {
    // The file with the problem is another one: the message has its place.
    let start = Span { line: 1, column: 1, start: 0, end: 0 };
    let span = cx.team.top.key("name").unwrap_or(start);
    for (directory, text) in cx.files.skills() {
        let (_, found) = Skill::read(&text, &directory);
        for problem in found {
            let message = format!("skills/{directory}/SKILL.md, line {}: {}", problem.line, problem.message);
            let help = "docs/models.md in the repository of cliq describes skills";
            let diagnostic = match problem.is_error {
                true => Diagnostic::error("invalid-skill", span, message, help),
                false => Diagnostic::warning("invalid-skill", span, message, help),
            };
            problems.push(diagnostic);
        }
    }
}
