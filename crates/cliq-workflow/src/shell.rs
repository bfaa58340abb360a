//! Context of a template in a shell script: quotes determine how a variable must be written, and whether the shell expands it at
//! all.
//!
//! This follows the quoting rules of the POSIX shell language as far as quoting goes: quotes, escapes, comments,
//! substitutions, arithmetic and here-documents, and the forms of bash that evaluate text (`$[…]`, `${s:…}`, `a[…]`, `[[ … ]]`). It
//! does not parse commands. A place whose quoting differs between shells, or that the scanner cannot follow, is refused: a value that
//! is accepted reaches the command to the letter, with dash and with bash as `sh`.

mod here;
mod level;
mod scanner;

use crate::template::TemplateMatch;

/// Quoting around a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Context {
    /// Nothing: the value must be quoted.
    Plain,
    /// Double quotes or a here-document: a variable expands and does not split.
    Quoted,
    /// Single quotes or a here-document with a quoted end: nothing expands.
    Literal,
    /// `$(( ))`, `$[ ]`, an index, or `[[ -eq ]]`: a shell may evaluate the value as an expression.
    Arithmetic,
    /// `${x#…}`, `${x:…}` or `${x:=…}`: the value is a pattern, is evaluated, or splits into words.
    Parameter,
    /// Backticks within quotes, or with escapes: shells differ in what they make of quotes there.
    Backticks,
    /// A script whose quoting cannot be followed, with the reason.
    Unclear(&'static str),
}

impl Context {
    /// Whether a value in this place reaches the command to the letter.
    pub(crate) fn is_safe(self) -> bool {
        match self {
            Self::Plain | Self::Quoted => true,
            Self::Literal | Self::Arithmetic | Self::Parameter | Self::Backticks | Self::Unclear(_) => false,
        }
    }
}

/// A template of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TemplateSite {
    /// The template. Its range includes a `$` before it that is not part of another expansion.
    pub(crate) found: TemplateMatch,
    /// Quoting around it.
    pub(crate) context: Context,
    /// Whether the range begins with such a `$`, as in `$$(inputs.price)`.
    pub(crate) has_dollar: bool,
}

/// Returns every template of a script, with what surrounds it. `$(date)` is the shell's and not among them.
///
/// Time and memory are linear in the size of the script.
pub(crate) fn templates(script: &str) -> Vec<TemplateSite> {
    scanner::Scanner::new(script).run()
}
