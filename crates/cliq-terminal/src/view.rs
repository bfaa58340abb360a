//! Rendering of the state. Pure: the same state gives the same cells.

mod dialogs;
mod list;
mod panes;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use crate::layout::SMALLEST;
use crate::state::{Dialog, Focus, KEYS, State, Tab};
use crate::text::{StyledLine, Tone, fit, pad, width};
use crate::theme::Theme;

/// Renders a state.
pub fn render(frame: &mut Frame<'_>, state: &State, theme: Theme) {
    let area = frame.area();
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        let text = format!("at least {} × {} needed", SMALLEST.0, SMALLEST.1);
        frame.render_widget(Paragraph::new(fit(&text, usize::from(area.width))), area);
        return;
    }
    let layout = state.layout();
    head(frame, state, theme, layout.head);
    if let Some(area) = layout.list {
        list::render(frame, state, theme, area);
    }
    if let Some(area) = layout.phases {
        panes::phases(frame, state, theme, area);
    }
    if let Some(area) = layout.body {
        panes::body(frame, state, theme, area);
    }
    foot(frame, state, theme, layout.foot);
    dialogs::render(frame, state, theme, area);
}

/// Counts of runs, and the state of the sources.
fn head(frame: &mut Frame<'_>, state: &State, theme: Theme, area: Rect) {
    let [needs, working, today] = state.counts();
    let mut spans = vec![Span::styled("cliq ", theme.tone(Tone::Strong))];
    if state.is_loaded {
        let mut counts = Vec::new();
        if needs > 0 {
            counts
                .push((Tone::Warn, format!("{needs} {}", if needs == 1 { "needs you" } else { "need you" })));
        }
        let tone = if working > 0 { Tone::Accent } else { Tone::Dim };
        counts.push((tone, format!("{working} working")));
        counts.push((Tone::Dim, format!("{today} today")));
        for (number, (tone, text)) in counts.into_iter().enumerate() {
            let text = if number == 0 { format!(" {text}") } else { format!(" · {text}") };
            spans.push(Span::styled(text, theme.tone(tone)));
        }
        if state.is_partial {
            spans.push(Span::styled(" · reading more …", theme.tone(Tone::Dim)));
        }
    } else {
        spans.push(Span::styled(" reading runs …", theme.tone(Tone::Dim)));
    }
    let used: usize = spans.iter().map(Span::width).sum();
    if let Some(problem) = state.problems.first() {
        let room = usize::from(area.width).saturating_sub(used + 3);
        spans.push(Span::styled(format!("   {}", fit(problem, room)), theme.tone(Tone::Bad)));
    }
    frame.render_widget(Paragraph::new(Line::from(spans)), area);
}

/// Message, filter, or the keys that do something now.
fn foot(frame: &mut Frame<'_>, state: &State, theme: Theme, area: Rect) {
    let room = usize::from(area.width);
    if state.is_filtering {
        let text = fit(&format!("/{}", crate::text::plain(&state.filter)), room.saturating_sub(1));
        let column = u16::try_from(width(&text)).unwrap_or(0);
        frame.render_widget(Paragraph::new(text), area);
        frame.set_cursor_position((area.x + column, area.y));
        return;
    }
    if let Some(search) = &state.search {
        let message = state.message.as_ref().map(|message| format!("   {}", message.text));
        let text = fit(&format!("search: {}", crate::text::plain(search)), room.saturating_sub(1));
        let column = u16::try_from(width(&text)).unwrap_or(0);
        let hint = message.unwrap_or_else(|| "   Enter ↑ before  ↓ after  Esc end".to_owned());
        let hint = fit(&hint, room.saturating_sub(usize::from(column)));
        let line = Line::from(vec![Span::raw(text), Span::styled(hint, theme.tone(Tone::Dim))]);
        frame.render_widget(Paragraph::new(line), area);
        frame.set_cursor_position((area.x + column, area.y));
        return;
    }
    if let Some(message) = &state.message {
        let line = Line::styled(fit(&message.text, room), theme.tone(message.tone));
        frame.render_widget(Paragraph::new(line), area);
        return;
    }
    let mut spans: Vec<Span<'_>> = Vec::new();
    if state.acting > 0 {
        spans.push(Span::styled("working … ", theme.tone(Tone::Warn)));
    }
    let mut used: usize = spans.iter().map(Span::width).sum();
    for (key, word) in keys(state) {
        let more = width(key) + width(word) + 3;
        // Help stays in view.
        if used + more > room {
            break;
        }
        spans.push(Span::styled(key, theme.tone(Tone::Strong)));
        spans.push(Span::raw(format!(" {word}  ")));
        used += more;
    }
    frame.render_widget(Paragraph::new(Line::from(spans)), area);
}

/// Keys that do something in this state, the most important first.
fn keys(state: &State) -> Vec<(&'static str, &'static str)> {
    let run = state.chosen_run();
    let is_active = run.is_some_and(|run| run.status.is_active());
    let applies = |key: &str| match key {
        "Enter" => run.is_some() && state.focus != Focus::Body,
        "Esc" => state.focus != Focus::List || !state.filter.is_empty(),
        "a" => run.is_some_and(|run| run.needs.is_some()),
        "c" => {
            let has_review = state.changes.changes.as_ref().is_some_and(|changes| changes.review.is_some());
            state.tab == Tab::Changes && state.focus == Focus::Body && (is_active || has_review)
        }
        "s" | "x" => is_active,
        "r" => run.is_some_and(crate::model::RunRow::can_resume),
        "R" => run.is_some_and(crate::model::RunRow::can_run_again),
        "Tab" | "y" => run.is_some(),
        _ => true,
    };
    let order = ["a", "c", "?", "q", "Enter", "Esc", "Tab", "n", "s", "x", "r", "R", "/", "y"];
    let known = |key: &&str| KEYS.iter().find(|help| help.key == *key && !help.short.is_empty());
    order
        .iter()
        .filter(|key| applies(key))
        .filter_map(|key| known(key).map(|help| (help.key, help.short)))
        .collect()
}

/// Title line of a pane.
fn title(frame: &mut Frame<'_>, theme: Theme, area: Rect, text: &[(Tone, String)], has_keys: bool) -> Rect {
    let tone = if has_keys { Tone::Accent } else { Tone::Dim };
    let mut spans = vec![Span::styled(if has_keys { "━ " } else { "─ " }, theme.tone(tone))];
    let mut room = usize::from(area.width).saturating_sub(3);
    for (tone, text) in text {
        let text = fit(text, room);
        room = room.saturating_sub(width(&text));
        spans.push(Span::styled(text, theme.tone(*tone)));
    }
    let line = if has_keys { "━" } else { "─" };
    spans.push(Span::styled(format!(" {}", line.repeat(room)), theme.tone(tone)));
    frame.render_widget(Paragraph::new(Line::from(spans)), Rect { height: 1, ..area });
    Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area }
}

/// Line of pieces, cut to a width after `left` columns were scrolled away.
pub(crate) fn line<'a>(styled: &StyledLine, theme: Theme, left: usize, columns: usize) -> Line<'a> {
    let mut spans = Vec::new();
    let (mut skip, mut room) = (left, columns);
    for (tone, text) in &styled.pieces {
        let mut rest = text.as_str();
        while skip > 0 {
            let Some(c) = rest.chars().next() else { break };
            skip = skip.saturating_sub(width(c.encode_utf8(&mut [0; 4])).max(1));
            rest = &rest[c.len_utf8()..];
        }
        let shown = fit(rest, room);
        room = room.saturating_sub(width(&shown));
        if !shown.is_empty() {
            spans.push(Span::styled(shown, theme.tone(*tone)));
        }
    }
    Line::from(spans)
}

/// Fills the rest of a line with spaces, so that a highlighted row has its whole width.
fn filled(mut line: Line<'_>, columns: usize) -> Line<'_> {
    let missing = columns.saturating_sub(line.width());
    line.push_span(Span::raw(pad("", missing)));
    line
}

/// Whether a pane has the keys.
fn has_keys(state: &State, focus: Focus) -> bool {
    state.focus == focus
        && !matches!(state.dialog, Some(Dialog::Form { .. } | Dialog::Confirm { .. } | Dialog::Link(_)))
}
