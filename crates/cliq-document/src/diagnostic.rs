//! Problems of a document with position and remedy.

use cliq_protocol::{Violations, shorten};
use serde::Serialize;

/// Severity of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The document cannot be used.
    Error,
    /// The document can be used, but has a probable mistake.
    Warning,
}

/// A place in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Span {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// First byte.
    pub start: usize,
    /// One past the last byte; equal to `start` where only a point is known.
    pub end: usize,
}

/// One problem.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnostic {
    /// A stable name for this kind of problem, such as `unknown-key`. The documentation of each format lists them.
    pub code: &'static str,
    /// Severity.
    pub severity: Severity,
    /// Description of the problem.
    pub message: String,
    /// Position in the document.
    pub span: Span,
    /// Remedy.
    pub help: String,
}

impl Diagnostic {
    /// Returns an error.
    #[must_use]
    pub fn error(
        code: &'static str,
        span: Span,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        Self { code, severity: Severity::Error, message: cut(message.into()), span, help: cut(help.into()) }
    }

    /// Returns a warning.
    #[must_use]
    pub fn warning(
        code: &'static str,
        span: Span,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, span, message, help) }
    }
}

/// Maximum size of a message or a remedy, in bytes. Names in them come from the document.
const MAX_TEXT: usize = 1000;

fn cut(text: String) -> String {
    match shorten(&text, MAX_TEXT) {
        std::borrow::Cow::Borrowed(_) => text,
        std::borrow::Cow::Owned(text) => text,
    }
}

/// Sorts the problems of a document by their place, and keeps the first 20 errors and the first 20 warnings. The last problem then says how
/// many were left out.
#[must_use]
pub fn finish(mut problems: Vec<Diagnostic>) -> Vec<Diagnostic> {
    problems.sort_by(|a, b| (a.span, a.severity, a.code).cmp(&(b.span, b.severity, b.code)));
    problems.dedup();
    let (mut errors, mut warnings, mut left_out) = (0, 0, 0_usize);
    let mut last = None;
    problems.retain(|problem| {
        let count = match problem.severity {
            Severity::Error => &mut errors,
            Severity::Warning => &mut warnings,
        };
        *count += 1;
        let is_kept = *count <= Violations::<Diagnostic>::MAX;
        if !is_kept {
            left_out += 1;
            last.get_or_insert((problem.span, problem.severity));
        }
        is_kept
    });
    if let Some((span, severity)) = last {
        let message = format!("and {left_out} more problems");
        let more = Diagnostic::error("more-problems", span, message, "correct the others first");
        problems.push(Diagnostic { severity, ..more });
    }
    problems
}

/// Returns the number of problems by severity: `2 errors, 1 warning`. Empty if there are none.
#[must_use]
pub fn count_by_severity(diagnostics: &[Diagnostic]) -> String {
    let of = |severity: Severity| diagnostics.iter().filter(|d| d.severity == severity).count();
    let show = |n: usize, what: &str| match n {
        0 => None,
        1 => Some(format!("1 {what}")),
        n => Some(format!("{n} {what}s")),
    };
    let parts = [show(of(Severity::Error), "error"), show(of(Severity::Warning), "warning")];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The name in `known` that `typo` was probably meant to be.
pub fn nearest<'a>(typo: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Names have at most some dozens of characters, and time is the product of both lengths.
    if typo.len() > MAX_NAME {
        return None;
    }
    known
        .into_iter()
        .filter(|name| name.len() <= MAX_NAME)
        .take(MAX_KNOWN)
        .map(|name| (strsim::damerau_levenshtein(&typo.to_lowercase(), name), name))
        .filter(|(distance, name)| *distance <= 1.max(name.chars().count() / 3))
        // Of two that are equally near, the one of the same length: letters are swapped more often than left out.
        .min_by_key(|(distance, name)| (*distance, name.len().abs_diff(typo.len()), *name))
        .map(|(_, name)| name)
}

/// Maximum length of a name for which a similar one is looked for, in bytes.
const MAX_NAME: usize = 100;
/// Maximum number of names that are compared.
const MAX_KNOWN: usize = 1000;

/// A remedy for an unknown name: the nearest known one, else all of them.
#[must_use]
pub fn did_you_mean(typo: &str, known: &[&str]) -> String {
    match nearest(typo, known.iter().copied()) {
        Some(name) => format!("did you mean `{name}`?"),
        None if known.is_empty() => "there is none to choose from".to_owned(),
        None if known.len() > 24 => {
            format!("there are {} to choose from, such as `{}`", known.len(), known[0])
        }
        None => {
            format!("known here: {}", known.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", "))
        }
    }
}
