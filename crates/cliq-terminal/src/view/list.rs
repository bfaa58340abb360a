//! The list of runs.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::{filled, has_keys, title};
use crate::model::{RunRow, Section};
use crate::state::{Focus, ListRow, State};
use crate::text::{Tone, duration, fit, pad, plain, span, width};
use crate::theme::Theme;

pub(super) fn render(frame: &mut Frame<'_>, state: &State, theme: Theme, area: Rect) {
    let name = if state.filter.is_empty() {
        "runs".to_owned()
    } else {
        format!("runs with “{}”: {} of {}", plain(&state.filter), state.visible.len(), state.runs.len())
    };
    let inner = title(frame, theme, area, &[(Tone::Strong, name)], has_keys(state, Focus::List));
    if state.visible.is_empty() {
        let text: Vec<Line<'_>> = if !state.is_loaded {
            vec!["reading runs …".into()]
        } else if state.runs.is_empty() {
            vec!["No runs yet.".into(), "`n` starts one; `cliq demo` shows one.".into()]
        } else {
            vec!["No run fits. Esc shows all.".into()]
        };
        frame.render_widget(Paragraph::new(text), inner);
        return;
    }
    let columns = usize::from(inner.width);
    let rows = state.list_rows();
    let shown = rows.iter().skip(state.list_top).take(usize::from(inner.height));
    let lines: Vec<Line<'_>> = shown
        .map(|row| match row {
            ListRow::Title(section, count) => {
                let tone = if *section == Section::NeedsYou { Tone::Warn } else { Tone::Dim };
                Line::styled(format!("{} ({count})", section.title()), theme.tone(tone))
            }
            ListRow::Run(at) => {
                let run = &state.runs[*at];
                let line = run_line(run, state, theme, columns);
                if state.chosen.as_ref() == Some(&run.key) {
                    let style = theme.cursor(has_keys(state, Focus::List));
                    filled(line, columns).patch_style(style)
                } else {
                    line
                }
            }
        })
        .collect();
    frame.render_widget(Paragraph::new(lines), inner);
}

/// Line of a run: sign, title, project, progress, time, cost. Narrow lists leave out parts from the right.
fn run_line<'a>(run: &RunRow, state: &State, theme: Theme, columns: usize) -> Line<'a> {
    let needs = run.needs.is_some() && run.status.is_active();
    let mark = if needs { "?" } else { run.status.mark() };
    let now = state.now.unix_millis();
    let time = match (run.started, run.ended) {
        (Some(started), None) => duration(now - started.unix_millis()),
        (_, Some(ended)) => span(now - ended.unix_millis()),
        (None, None) => String::new(),
    };
    let progress = if run.all > 0 { format!("{}/{}", run.done, run.all) } else { String::new() };
    let cost = run.usd.map(|usd| format!("${usd:.2}")).unwrap_or_default();
    let mut right = vec![(progress, 6), (time, 7)];
    if columns >= 64 {
        right.push((cost, 8));
    }
    let project_columns = if columns >= 48 { (columns / 5).min(18) } else { 0 };
    let right_columns: usize = right.iter().map(|(_, wide)| wide).sum();
    let room = columns.saturating_sub(2 + right_columns + project_columns);
    let mut title = plain(&run.title);
    let note = run.needs.as_ref().filter(|_| needs).or(run.words.as_ref());
    let mut words = String::new();
    if let Some(note) = note {
        let left = room.saturating_sub(width(&title) + 3);
        if left >= 12 {
            words = format!(" · {}", fit(&plain(note), left));
        }
    }
    title = fit(&title, room);
    let used = width(&title) + width(&words);
    let mut spans = vec![
        Span::styled(format!("{mark} "), theme.status(run.status, needs)),
        Span::styled(title, if needs { theme.tone(Tone::Strong) } else { theme.tone(Tone::Plain) }),
        Span::styled(words, theme.tone(Tone::Dim)),
        Span::raw(pad("", room.saturating_sub(used))),
    ];
    if project_columns > 0 {
        let project = fit(&plain(&run.project), project_columns - 1);
        spans.push(Span::styled(format!(" {}", pad(&project, project_columns - 1)), theme.tone(Tone::Dim)));
    }
    for (text, wide) in right {
        let text = fit(&text, wide - 1);
        let gap = pad("", wide.saturating_sub(width(&text)));
        spans.push(Span::styled(format!("{gap}{text}"), theme.tone(Tone::Dim)));
    }
    Line::from(spans)
}
