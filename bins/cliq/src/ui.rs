//! Terminal output: data on stdout, diagnostics on stderr, colour only on a terminal.

use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
pub(crate) use cliq_project::internals::duration;
use cliq_protocol::without_credentials;

pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const GREEN: Style = AnsiColor::Green.on_default();
pub(crate) const RED: Style = AnsiColor::Red.on_default().bold();
pub(crate) const YELLOW: Style = AnsiColor::Yellow.on_default();
pub(crate) const CYAN: Style = AnsiColor::Cyan.on_default();

/// Returns the text in a style. Writers strip the style if their stream shows no colours; if no stream does, there is none to strip.
pub(crate) fn paint(style: Style, text: impl std::fmt::Display) -> String {
    static IS_SHOWN: OnceLock<bool> = OnceLock::new();
    let is_shown = *IS_SHOWN.get_or_init(|| {
        [AutoStream::choice(&io::stdout()), AutoStream::choice(&io::stderr())]
            .into_iter()
            .any(|choice| choice != ColorChoice::Never)
    });
    if is_shown { format!("{style}{text}{style:#}") } else { text.to_string() }
}

/// Writes a line to standard output.
pub(crate) fn line(text: impl AsRef<str>) -> io::Result<()> {
    let mut text = text.as_ref().to_owned();
    text.push('\n');
    raw_styled(&text)
}

/// Returns whether a text can be written to any stream as it is: without control characters other than whitespace.
fn has_nothing_to_strip(text: &str) -> bool {
    // The C1 control characters begin with the byte C2.
    text.bytes().all(|byte| match byte {
        b'\n' | b'\t' | b'\r' => true,
        0..0x20 | 0x7f | 0xc2 => false,
        _ => true,
    })
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

/// Prints what is waited for, on a terminal only.
pub(crate) fn note(text: &str) {
    if io::stderr().is_terminal() {
        let _ = writeln!(anstream::stderr(), "{}", paint(DIM, format!("{text} …")));
    }
}

/// Whether a person watches: standard output is a terminal.
pub(crate) fn is_watched() -> bool {
    io::stdout().is_terminal()
}

/// Whether a person can be shown a full screen.
pub(crate) fn can_show_screen() -> bool {
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    !is_dumb && io::stdin().is_terminal() && io::stdout().is_terminal()
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

/// Writes text with styles to standard output, without a further line feed.
pub(crate) fn raw_styled(text: &str) -> io::Result<()> {
    if has_nothing_to_strip(text) {
        return io::stdout().write_all(text.as_bytes());
    }
    write!(anstream::stdout(), "{text}")
}

/// A number of things, such as `1 team` and `2 teams`.
pub(crate) fn count(number: usize, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

/// Makes text of unknown origin safe for a terminal: control characters, and so escape sequences, and characters that turn the direction of text are replaced.
pub(crate) fn plain(text: &str) -> String {
    let turns =
        |c: char| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars().map(|c| if c.is_control() && c != '\t' && c != '\n' || turns(c) { '·' } else { c }).collect()
}
