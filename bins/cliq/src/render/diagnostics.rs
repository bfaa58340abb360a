//! Problems of a team, with the lines they are about.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use camino::Utf8Path;
use cliq_workflow::{Diagnostic, Severity};
use std::io::Write;

/// Shows every problem on standard error.
pub(crate) fn show(text: &str, file: &Utf8Path, diagnostics: &[Diagnostic]) {
    let mut err = anstream::stderr();
    for diagnostic in diagnostics {
        let _ = writeln!(err, "{}\n", render(text, file, diagnostic));
    }
}

fn render(text: &str, file: &Utf8Path, diagnostic: &Diagnostic) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let end = diagnostic.span.end.max(diagnostic.span.start).min(text.len());
    // A value that goes on for lines is pointed at by its first.
    let stop = text[diagnostic.span.start..end].find('\n').map_or(end, |at| diagnostic.span.start + at);
    let snippet = Snippet::source(text)
        .path(file.as_str())
        .annotation(AnnotationKind::Primary.span(diagnostic.span.start..stop.max(diagnostic.span.start)));
    let report = [
        Group::with_title(level.primary_title(diagnostic.message.as_str()).id(diagnostic.code))
            .element(snippet),
        Group::with_title(Level::HELP.secondary_title(diagnostic.help.as_str())),
    ];
    Renderer::styled().render(&report)
}
