//! Terminal output: data on stdout, diagnostics on stderr, colour only on a terminal.

use std::io::{self, IsTerminal, Write};

use anstyle::{AnsiColor, Style};
pub(crate) use cliq_project::duration;
use cliq_protocol::without_credentials;

pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const GREEN: Style = AnsiColor::Green.on_default();
pub(crate) const RED: Style = AnsiColor::Red.on_default().bold();
pub(crate) const YELLOW: Style = AnsiColor::Yellow.on_default();
pub(crate) const CYAN: Style = AnsiColor::Cyan.on_default();

/// `text` in `style`. The writer strips the style where there is no terminal.
pub(crate) fn paint(style: Style, text: impl std::fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}

/// Writes a line to standard output.
pub(crate) fn line(text: impl AsRef<str>) -> io::Result<()> {
    writeln!(anstream::stdout(), "{}", text.as_ref())
}

/// Writes bytes to standard output as they are.
pub(crate) fn raw(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}

/// Writes a value as indented JSON to standard output.
pub(crate) fn json(value: &impl serde::Serialize) -> io::Result<()> {
    let mut text = serde_json::to_vec_pretty(value).map_err(io::Error::other)?;
    text.push(b'\n');
    raw(&text)
}

/// Writes an error. Passwords in addresses are taken out, as in warnings and hints.
pub(crate) fn error(text: &str) {
    let text = without_credentials(text);
    let _ = writeln!(anstream::stderr(), "{} {text}", paint(RED, "error:"));
}

pub(crate) fn warning(text: &str) {
    let text = without_credentials(text);
    let _ = writeln!(anstream::stderr(), "{} {text}", paint(YELLOW, "warning:"));
}

pub(crate) fn hint(text: &str) {
    let text = without_credentials(text);
    let _ = writeln!(anstream::stderr(), "{} {text}", paint(CYAN, "hint:"));
}

/// Whether a person watches: standard output is a terminal.
pub(crate) fn is_watched() -> bool {
    io::stdout().is_terminal()
}

/// Asks for a line.
pub(crate) fn ask(question: &str) -> io::Result<String> {
    write!(anstream::stderr(), "{question} ")?;
    let mut text = String::new();
    if io::stdin().read_line(&mut text)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(text.trim().to_owned())
}

/// Whether a person can be asked.
pub(crate) fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks; only `y` and `yes` are yes.
pub(crate) fn confirm(question: &str) -> io::Result<bool> {
    let mut err = anstream::stderr();
    write!(err, "{question} [y/N] ")?;
    err.flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// Writes text with styles to standard output, as it is.
pub(crate) fn raw_styled(text: &str) -> io::Result<()> {
    write!(anstream::stdout(), "{text}")
}

/// Makes text of unknown origin safe for a terminal: control characters, and so escape sequences, are replaced.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\t' && c != '\n' { '·' } else { c }).collect()
}
