//! Dialogs: help, questions, forms.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph};

use crate::form::{Field, FieldValue, FormState};
use crate::model::ReviewDetail;
use crate::state::{Dialog, KEYS, Purpose, State};
use crate::text::{Tone, fit, pad, plain, width, wrap};
use crate::theme::Theme;

/// Number of lines of a text with several lines.
const TEXT_LINES: usize = 5;
/// Widest dialog.
const WIDEST: u16 = 88;
/// Maximum number of files of a review that are named above its form.
const ARTIFACTS: usize = 4;
/// Maximum number of lines of a review above its form.
const SUBJECT_LINES: usize = 8;

pub(super) fn render(frame: &mut Frame<'_>, state: &State, theme: Theme, area: Rect) {
    match &state.dialog {
        None => {}
        Some(Dialog::Help { top }) => help(frame, *top, theme, area),
        Some(Dialog::Link(link)) => {
            let columns = usize::from(inner_width(area));
            let mut text: Vec<Line<'_>> = wrap(link, columns).into_iter().map(Line::from).collect();
            text.push(Line::default());
            text.push(keys(theme, &[("y", "copy"), ("Esc", "close")]));
            let inner = window(frame, theme, area, "open this link in a browser", text.len());
            frame.render_widget(Paragraph::new(text), inner);
        }
        Some(Dialog::Confirm { title, lines, .. }) => {
            let columns = usize::from(inner_width(area));
            let mut text: Vec<Line<'_>> =
                lines.iter().flat_map(|line| wrap(line, columns)).map(Line::from).collect();
            text.push(Line::default());
            text.push(keys(theme, &[("y", "yes"), ("n", "no")]));
            let inner = window(frame, theme, area, title, text.len());
            frame.render_widget(Paragraph::new(text), inner);
        }
        Some(Dialog::Form { purpose, form }) => form_dialog(frame, purpose, form, theme, area),
    }
}

fn inner_width(area: Rect) -> u16 {
    area.width.saturating_sub(2).min(WIDEST).saturating_sub(4)
}

/// Draws an empty window in the middle. Returns its inside.
fn window(frame: &mut Frame<'_>, theme: Theme, area: Rect, title: &str, lines: usize) -> Rect {
    let wide = area.width.saturating_sub(2).min(WIDEST);
    let high = u16::try_from(lines + 2).unwrap_or(u16::MAX).min(area.height.saturating_sub(2));
    let place = Rect::new(
        area.x + (area.width - wide) / 2,
        area.y + (area.height.saturating_sub(high)) / 2,
        wide,
        high,
    );
    frame.render_widget(Clear, place);
    let title = format!(" {} ", fit(title, usize::from(wide).saturating_sub(6)));
    let block = Block::bordered().title(Span::styled(title, theme.tone(Tone::Strong)));
    let block = block.border_style(theme.tone(Tone::Accent));
    let inner = block.inner(place);
    frame.render_widget(block, place);
    Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner }
}

fn keys<'a>(theme: Theme, keys: &[(&'a str, &'a str)]) -> Line<'a> {
    let mut spans = Vec::new();
    for (key, what) in keys {
        spans.push(Span::styled(*key, theme.tone(Tone::Strong)));
        spans.push(Span::raw(format!(" {what}   ")));
    }
    Line::from(spans)
}

fn help(frame: &mut Frame<'_>, top: usize, theme: Theme, area: Rect) {
    let columns = usize::from(inner_width(area));
    let mut lines = Vec::new();
    let mut group = "";
    for key in KEYS {
        if key.group != group {
            if !group.is_empty() {
                lines.push(Line::default());
            }
            group = key.group;
        }
        let mut parts = wrap(key.what, columns.saturating_sub(12)).into_iter();
        lines.push(Line::from(vec![
            Span::styled(pad(key.key, 11), theme.tone(Tone::Strong)),
            Span::raw(format!(" {}", parts.next().unwrap_or_default())),
        ]));
        lines.extend(parts.map(|part| Line::raw(format!("{} {part}", pad("", 11)))));
    }
    let inner = window(frame, theme, area, "keys", lines.len());
    let top = top.min(lines.len().saturating_sub(usize::from(inner.height)));
    let rest: Vec<Line<'_>> = lines.into_iter().skip(top).collect();
    frame.render_widget(Paragraph::new(rest), inner);
}

fn form_dialog(frame: &mut Frame<'_>, purpose: &Purpose, form: &FormState, theme: Theme, area: Rect) {
    let columns = usize::from(inner_width(area));
    let mut lines: Vec<Line<'_>> = Vec::new();
    for (tone, text) in subject(purpose, columns) {
        lines.push(Line::styled(text, theme.tone(tone)));
    }
    if !lines.is_empty() {
        lines.push(Line::default());
    }
    let mut cursor = None;
    // Lines of the focused field stay in view.
    let mut focused = (0, 0);
    for (at, field) in form.fields.iter().enumerate() {
        let has_focus = at == form.focus;
        let from = lines.len();
        let found = field_lines(field, has_focus, theme, columns, &mut lines);
        if has_focus {
            focused = (from, lines.len());
            cursor = found;
        }
    }
    for problem in &form.problems {
        lines
            .extend(wrap(problem, columns).into_iter().map(|line| Line::styled(line, theme.tone(Tone::Bad))));
    }
    let last = if form.is_sent {
        Line::styled("working …", theme.tone(Tone::Warn))
    } else if form.asks_to_close {
        keys(theme, &[("Esc", "discard what was typed")])
    } else {
        keys(theme, &[("Ctrl-S", purpose.submit()), ("Tab", "next field"), ("Esc", "close")])
    };
    let inner = window(frame, theme, area, &purpose.title(), lines.len() + 1);
    let height = usize::from(inner.height).saturating_sub(1);
    let top = if lines.len() <= height {
        0
    } else {
        focused.1.saturating_sub(height).min(focused.0.max(focused.1.saturating_sub(height)))
    };
    let problems = form.problems.len();
    // Problems stay in view too.
    let top = if problems > 0 && lines.len() > height { lines.len() - height } else { top };
    let rest: Vec<Line<'_>> = lines.into_iter().skip(top).take(height).collect();
    frame.render_widget(Paragraph::new(rest), Rect { height: inner.height.saturating_sub(1), ..inner });
    frame.render_widget(
        Paragraph::new(last),
        Rect { y: inner.y + inner.height.saturating_sub(1), height: 1.min(inner.height), ..inner },
    );
    if let Some((line, column)) = cursor
        && let Some(line) = line.checked_sub(top).filter(|line| *line < height)
        && !form.is_sent
    {
        let (x, y) = (u16::try_from(column).unwrap_or(0), u16::try_from(line).unwrap_or(0));
        frame.set_cursor_position((inner.x + x.min(inner.width.saturating_sub(1)), inner.y + y));
    }
}

/// Lines above the fields: the subject of the form.
fn subject(purpose: &Purpose, columns: usize) -> Vec<(Tone, String)> {
    match purpose {
        Purpose::Answer(_, detail) => review_lines(detail, columns),
        Purpose::Comment { line_text, .. } => vec![(Tone::Dim, fit(line_text, columns))],
        Purpose::Steer { .. } | Purpose::Start(_) => Vec::new(),
    }
}

fn review_lines(detail: &ReviewDetail, columns: usize) -> Vec<(Tone, String)> {
    let (review, content) = (&detail.review, &detail.content);
    let mut lines = Vec::new();
    let mut take = |tone, text: &str, limit: usize| {
        let wrapped = wrap(text, columns);
        let more = wrapped.len() > limit;
        lines.extend(wrapped.into_iter().take(limit).map(|line| (tone, line)));
        if more {
            lines.push((Tone::Dim, "… the page of the review has all of it: `o`".to_owned()));
        }
    };
    if let Some(subject) = &review.subject {
        take(Tone::Strong, &subject.sentence(), SUBJECT_LINES);
    } else if let Some(brief) = &content.brief {
        take(Tone::Plain, brief.trim(), SUBJECT_LINES);
    }
    for artifact in content.artifacts.iter().take(ARTIFACTS) {
        take(Tone::Dim, &format!("file {} ({} bytes)", artifact.path, artifact.size), 1);
    }
    if !content.artifacts.is_empty() {
        let more = content.artifacts.len().saturating_sub(ARTIFACTS);
        let more = if more > 0 { format!("{more} more files; ") } else { String::new() };
        take(Tone::Dim, &format!("{more}`cliq review show --full` and the page have their contents"), 2);
    }
    let failed = content.checks.iter().filter(|check| !check.pass).count();
    if !content.checks.is_empty() {
        let skipped = content.checks.iter().filter(|check| check.was_skipped()).count();
        let note = if skipped > 0 { format!(", {skipped} skipped") } else { String::new() };
        let all = content.checks.len();
        let text = format!("checks: {} of {all} passed{note}", all - failed - skipped);
        lines.push((if failed > 0 { Tone::Bad } else { Tone::Good }, text));
    }
    let files: usize = content.diffs.iter().map(|diff| diff.files.len()).sum();
    let comments = review.on_lines().count();
    let mut about = vec![format!("round {} of {}", review.iteration, review.max_iterations)];
    if files > 0 {
        about.push(format!(
            "{files} changed {}: `Esc` and `Tab` lead to them",
            if files == 1 { "file" } else { "files" }
        ));
    }
    if comments > 0 {
        about.push(if comments == 1 {
            "1 comment on a line goes along".to_owned()
        } else {
            format!("{comments} comments on lines go along")
        });
    }
    about.push(format!("waits for {} until {}", review.waits_for().join(", "), review.deadline));
    if review.subject.is_some() {
        about.remove(0);
    }
    for line in wrap(&about.join(" · "), columns) {
        lines.push((Tone::Dim, line));
    }
    lines
}

/// Adds the lines of a field. Returns line and column of the cursor, if the field has one.
fn field_lines<'a>(
    field: &Field,
    has_focus: bool,
    theme: Theme,
    columns: usize,
    lines: &mut Vec<Line<'a>>,
) -> Option<(usize, usize)> {
    let mark = if has_focus { "▸ " } else { "  " };
    let label_style = theme.tone(if has_focus { Tone::Accent } else { Tone::Plain });
    let needed = if field.is_required { " *" } else { "" };
    let label = format!("{mark}{}{needed}", field.label);
    let room = columns.saturating_sub(4);
    let mut cursor = None;
    let option = |text: &str, is_chosen: bool| {
        let text = plain(text);
        if is_chosen {
            Span::styled(
                format!("‹{text}›"),
                if has_focus { theme.cursor(true) } else { theme.tone(Tone::Strong) },
            )
        } else {
            Span::styled(format!(" {text} "), theme.tone(Tone::Dim))
        }
    };
    match &field.value {
        FieldValue::Choice { options, chosen } => {
            lines.push(Line::styled(label, label_style));
            let all: usize = options.iter().map(|option| width(option) + 2).sum();
            let mut spans = vec![Span::raw("    ")];
            if all <= room {
                spans.extend(options.iter().enumerate().map(|(at, text)| option(text, at == *chosen)));
            } else {
                let text = options.get(*chosen).map(|text| fit(text, room.saturating_sub(14)));
                spans.push(option(&text.unwrap_or_default(), true));
                spans.push(Span::styled(
                    format!(" {} of {}", chosen + 1, options.len()),
                    theme.tone(Tone::Dim),
                ));
            }
            lines.push(Line::from(spans));
        }
        FieldValue::Switch(is_on) => {
            lines.push(Line::styled(label, label_style));
            lines.push(Line::from(vec![Span::raw("    "), option("yes", *is_on), option("no", !*is_on)]));
        }
        FieldValue::Line(area) | FieldValue::Lines(area) => {
            lines.push(Line::styled(label, label_style));
            let is_multiline = matches!(field.value, FieldValue::Lines(_));
            let style = if has_focus { Style::default() } else { theme.tone(Tone::Dim) };
            let at = area.cursor();
            let (rows, row, column) = if is_multiline {
                wrapped(area.lines(), (at.0, at.1), room)
            } else {
                let text = area.lines().first().map(String::as_str).unwrap_or_default();
                // The part around the cursor is shown of a long line.
                let before: String = text.chars().take(at.1).collect();
                let column = width(&plain(&before));
                let skip = column.saturating_sub(room.saturating_sub(1));
                (vec![fit(&skip_columns(&plain(text), skip), room)], 0, column - skip)
            };
            let height = if is_multiline { TEXT_LINES } else { 1 };
            let top = (row + 1).saturating_sub(height);
            cursor = Some((lines.len() + row - top, 4 + column));
            for number in top..top + height {
                let text = rows.get(number).cloned();
                let bar = if text.is_some() { "│ " } else { "  " };
                lines.push(Line::from(vec![
                    Span::styled(format!("  {bar}"), label_style),
                    Span::styled(text.unwrap_or_default(), style),
                ]));
            }
        }
    }
    if let Some(help) = &field.help {
        lines.extend(
            wrap(help, room)
                .into_iter()
                .map(|line| Line::styled(format!("    {line}"), theme.tone(Tone::Dim))),
        );
    }
    cursor.filter(|_| has_focus)
}

/// Breaks lines at a width. Returns the rows, and row and column of the cursor, which is given by line and character.
fn wrapped(lines: &[String], cursor: (usize, usize), columns: usize) -> (Vec<String>, usize, usize) {
    let columns = columns.max(2);
    let (mut rows, mut place) = (Vec::new(), (0, 0));
    for (number, line) in lines.iter().enumerate() {
        let (mut row, mut used) = (String::new(), 0);
        for (at, c) in line.chars().enumerate() {
            let text = plain(c.encode_utf8(&mut [0; 4]));
            let wide = width(&text);
            if used + wide > columns {
                rows.push(std::mem::take(&mut row));
                used = 0;
            }
            if (number, at) == cursor {
                place = (rows.len(), used);
            }
            row.push_str(&text);
            used += wide;
        }
        if number == cursor.0 && cursor.1 >= line.chars().count() {
            place = (rows.len(), used.min(columns.saturating_sub(1)));
        }
        rows.push(row);
    }
    (rows, place.0, place.1)
}

/// Text without its first columns.
fn skip_columns(text: &str, columns: usize) -> String {
    let mut skipped = 0;
    let mut rest = text.chars();
    let mut ahead = rest.clone();
    while skipped < columns {
        let Some(c) = ahead.next() else { break };
        skipped += width(c.encode_utf8(&mut [0; 4]));
        rest = ahead.clone();
    }
    rest.collect()
}
