//! Texts of unknown origin made safe for a terminal: no control sequence, no invisible character, nothing that turns the direction of text.

use cansi::v3::categorise_text;
use cansi::{Color, Intensity};
use ratatui::text::Span;

/// Number of columns between tab stops.
const TAB: usize = 4;
/// Maximum number of characters of a line. The rest is left out.
pub(crate) const MAX_LINE: usize = 4000;

/// Meaning of a piece of text; the theme gives it a style.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Dim,
    Strong,
    Good,
    Bad,
    Warn,
    Accent,
    Added,
    Removed,
    /// Colour 0 to 15 of the terminal's palette, as a program printed it.
    Printed {
        colour: Option<u8>,
        is_bold: bool,
    },
}

/// Line of pieces.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct StyledLine {
    pub(crate) pieces: Vec<(Tone, String)>,
}

impl StyledLine {
    pub(crate) fn new(tone: Tone, text: &str) -> Self {
        Self { pieces: vec![(tone, plain(text))] }
    }

    pub(crate) fn with(mut self, tone: Tone, text: &str) -> Self {
        self.pieces.push((tone, plain(text)));
        self
    }

    /// Text without tones.
    pub(crate) fn text(&self) -> String {
        self.pieces.iter().map(|(_, text)| text.as_str()).collect()
    }
}

/// Whether a character changes the direction of text, or is invisible and changes what surrounds it.
fn is_deceiving(c: char) -> bool {
    matches!(c,
        '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Returns a text in one line without control sequences. Line ends and tabs become spaces, other control characters `·`.
pub(crate) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    push_plain(&mut out, text);
    out
}

fn push_plain(out: &mut String, text: &str) {
    let mut chars = text.chars().peekable();
    let mut count = 0;
    while let Some(c) = chars.next() {
        count += 1;
        if count > MAX_LINE {
            out.push('…');
            return;
        }
        match c {
            '\u{1b}' => skip_sequence(&mut chars),
            '\t' => {
                let column = out.chars().count();
                out.extend(std::iter::repeat_n(' ', TAB - column % TAB));
            }
            '\n' => out.push(' '),
            '\r' => {}
            c if c.is_control() || is_deceiving(c) => out.push('·'),
            c => out.push(c),
        }
    }
}

/// Skips the rest of a control sequence after its escape character.
fn skip_sequence(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match chars.peek().copied() {
        Some('[') => {
            chars.next();
            while let Some(&c) = chars.peek() {
                if !(' '..='?').contains(&c) {
                    break;
                }
                chars.next();
            }
            if chars.peek().is_some_and(|c| ('@'..='~').contains(c)) {
                chars.next();
            }
        }
        // Strings end with BEL or ST, or at the end of the line.
        Some(']' | 'P' | 'X' | '^' | '_') => {
            while let Some(c) = chars.next() {
                if c == '\u{7}' || c == '\u{9c}' {
                    break;
                }
                if c == '\u{1b}' {
                    if chars.peek() == Some(&'\\') {
                        chars.next();
                    }
                    break;
                }
            }
        }
        Some(c) if (' '..='/').contains(&c) => {
            while chars.next_if(|c| (' '..='/').contains(c)).is_some() {}
            chars.next();
        }
        Some(c) if ('0'..='~').contains(&c) => {
            chars.next();
        }
        _ => {}
    }
}

/// Returns a line of a log with the colours that its program printed.
pub(crate) fn printed_line(bytes: &[u8]) -> StyledLine {
    let text = String::from_utf8_lossy(bytes);
    // A progress display overwrites its line: its last state is shown.
    let text = text.trim_end_matches('\r');
    let text = text.rsplit('\r').next().unwrap_or(text);
    let text = shortened(text);
    if !text.contains('\u{1b}') {
        return StyledLine { pieces: vec![(Tone::Plain, plain(text))] };
    }
    let mut line = StyledLine::default();
    for slice in categorise_text(text) {
        let colour = slice.fg.map(index);
        let is_bold = slice.intensity == Some(Intensity::Bold);
        let tone = if slice.intensity == Some(Intensity::Faint) {
            Tone::Dim
        } else if colour.is_none() && !is_bold {
            Tone::Plain
        } else {
            Tone::Printed { colour, is_bold }
        };
        let text = plain(slice.text);
        if !text.is_empty() {
            line.pieces.push((tone, text));
        }
    }
    line
}

/// Beginning of a text that is at most [`MAX_LINE`] characters long.
fn shortened(text: &str) -> &str {
    text.char_indices().nth(MAX_LINE).map_or(text, |(at, _)| &text[..at])
}

fn index(colour: Color) -> u8 {
    match colour {
        Color::Black => 0,
        Color::Red => 1,
        Color::Green => 2,
        Color::Yellow => 3,
        Color::Blue => 4,
        Color::Magenta => 5,
        Color::Cyan => 6,
        Color::White => 7,
        Color::BrightBlack => 8,
        Color::BrightRed => 9,
        Color::BrightGreen => 10,
        Color::BrightYellow => 11,
        Color::BrightBlue => 12,
        Color::BrightMagenta => 13,
        Color::BrightCyan => 14,
        Color::BrightWhite => 15,
    }
}

/// Number of columns of a text.
pub(crate) fn width(text: &str) -> usize {
    Span::raw(text).width()
}

/// Returns a text that takes at most `columns`. A longer one ends with `…`.
pub(crate) fn fit(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 0;
    for c in text.chars() {
        let wide = width(c.encode_utf8(&mut [0; 4]));
        if used + wide + 1 > columns {
            break;
        }
        used += wide;
        out.push(c);
    }
    if columns > 0 {
        out.push('…');
    }
    out
}

/// Returns a text of exactly `columns`: cut, or with spaces at its end.
pub(crate) fn pad(text: &str, columns: usize) -> String {
    let mut out = fit(text, columns);
    let missing = columns.saturating_sub(width(&out));
    out.extend(std::iter::repeat_n(' ', missing));
    out
}

/// Breaks a text into lines of at most `columns`, at spaces if there are any.
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(8);
    let mut lines = Vec::new();
    for paragraph in text.lines() {
        let paragraph = plain(paragraph);
        let indent: String = paragraph.chars().take_while(|c| *c == ' ').take(columns / 2).collect();
        let mut line = indent.clone();
        let mut used = width(&line);
        let mut is_empty = true;
        for word in paragraph.split(' ').filter(|word| !word.is_empty()) {
            let wide = width(word);
            if !is_empty && used + 1 + wide > columns {
                lines.push(std::mem::replace(&mut line, indent.clone()));
                used = width(&line);
                is_empty = true;
            }
            if !is_empty {
                line.push(' ');
                used += 1;
            }
            if used + wide <= columns {
                line.push_str(word);
                used += wide;
            } else {
                for c in word.chars() {
                    let wide = width(c.encode_utf8(&mut [0; 4]));
                    if used + wide > columns {
                        lines.push(std::mem::replace(&mut line, indent.clone()));
                        used = width(&line);
                    }
                    line.push(c);
                    used += wide;
                }
            }
            is_empty = false;
        }
        lines.push(line);
    }
    lines
}

/// Duration for people: `0.4s`, `12s`, `3m07s`, `2h05m`, `3d04h`.
pub(crate) fn duration(millis: i64) -> String {
    let millis = millis.max(0);
    let seconds = millis / 1000;
    match seconds {
        0..=9 => format!("{seconds}.{}s", millis % 1000 / 100),
        10..=59 => format!("{seconds}s"),
        60..=3599 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3600..=86399 => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{}d{:02}h", seconds / 86400, seconds % 86400 / 3600),
    }
}

/// Time span in whole units: `now`, `12s`, `3m`, `2h`, `3d`.
pub(crate) fn span(millis: i64) -> String {
    match millis.max(0) / 1000 {
        0 => "now".to_owned(),
        s @ 1..=59 => format!("{s}s"),
        s @ 60..=3599 => format!("{}m", s / 60),
        s @ 3600..=86399 => format!("{}h", s / 3600),
        s => format!("{}d", s / 86400),
    }
}

/// Number of tokens for people: `950`, `12.3k`, `4.1M`.
pub(crate) fn tokens(number: u64) -> String {
    match number {
        0..1000 => number.to_string(),
        1000..1_000_000 => format!("{}.{}k", number / 1000, number % 1000 / 100),
        _ => format!("{}.{}M", number / 1_000_000, number % 1_000_000 / 100_000),
    }
}
