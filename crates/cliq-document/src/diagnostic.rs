//! Problems of a document with position and remedy.

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
        Self { code, severity: Severity::Error, message: message.into(), span, help: help.into() }
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
    known
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(&typo.to_lowercase(), name), name))
        .filter(|(distance, name)| *distance <= 1.max(name.chars().count() / 3))
        .min()
        .map(|(_, name)| name)
}

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
