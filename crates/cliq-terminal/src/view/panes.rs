//! The chosen run: phases, and below them the log, the transcript or the changes.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::{filled, has_keys, line, title};
use crate::model::{PhaseRow, PhaseState, RunRow};
use crate::state::{Focus, State, Tab};
use crate::text::{StyledLine, Tone, duration, fit, pad, plain, tokens, width, wrap};
use crate::theme::Theme;

pub(super) fn phases(frame: &mut Frame<'_>, state: &State, theme: Theme, area: Rect) {
    let Some(run) = state.chosen_run() else {
        title(frame, theme, area, &[(Tone::Dim, "run".to_owned())], has_keys(state, Focus::Phases));
        return;
    };
    let status = run.status.as_str();
    let heading = [
        (Tone::Strong, format!("{} ", plain(&run.title))),
        (Tone::Dim, plain(&run.team)),
        (Tone::Plain, format!("  {status}")),
    ];
    let inner = title(frame, theme, area, &heading, has_keys(state, Focus::Phases));
    let columns = usize::from(inner.width);
    let focused = has_keys(state, Focus::Phases);
    let names = state.phases().iter().map(name_columns).max().unwrap_or(0).min(columns / 2).max(10);
    let mut lines = Vec::new();
    for at in state.phase_top..=state.phases().len() {
        if lines.len() >= usize::from(inner.height) {
            break;
        }
        let made = match at.checked_sub(1).and_then(|at| state.phases().get(at)) {
            None => run_line(run, state, theme, columns),
            Some(phase) => phase_line(phase, state, theme, names, columns),
        };
        let made = if at == state.phase_cursor {
            filled(made, columns).patch_style(theme.cursor(focused))
        } else {
            made
        };
        lines.push(made);
    }
    frame.render_widget(Paragraph::new(lines), inner);
}

/// Line of the whole run: reason or question, changes, tokens, cost.
fn run_line<'a>(run: &RunRow, state: &State, theme: Theme, columns: usize) -> Line<'a> {
    let detail = state.detail.as_ref().filter(|(key, _)| *key == run.key).map(|(_, detail)| detail);
    let mut parts = Vec::new();
    if let Some(problem) = &state.detail_problem {
        parts.push((Tone::Bad, problem.clone()));
    } else if detail.is_none() {
        parts.push((Tone::Dim, "reading …".to_owned()));
    }
    if let Some(needs) = run.needs.as_ref().filter(|_| run.status.is_active()) {
        parts.push((Tone::Warn, plain(needs)));
    }
    if let Some(reason) = detail.and_then(|detail| detail.reason.as_ref()) {
        parts.push((Tone::Bad, plain(reason)));
    }
    for remark in detail.iter().flat_map(|detail| &detail.remarks) {
        parts.push((Tone::Warn, plain(remark)));
    }
    if let (Some(started), Some(ended)) = (run.started, run.ended) {
        parts.push((Tone::Dim, format!("took {}", duration(ended.unix_millis() - started.unix_millis()))));
    }
    if let Some(changed) = &run.changed {
        parts.push((Tone::Plain, plain(changed)));
    }
    if run.tokens > 0 {
        parts.push((Tone::Dim, format!("{} tokens", tokens(run.tokens))));
    }
    if let Some(usd) = run.usd {
        parts.push((Tone::Dim, format!("${usd:.2}")));
    }
    if run.is_on_server {
        parts.push((Tone::Dim, "on the server".to_owned()));
    }
    let mut styled = StyledLine::new(Tone::Strong, "the run");
    for (tone, text) in parts {
        styled = styled.with(Tone::Dim, "  ").with(tone, &text);
    }
    line(&styled, theme, 0, columns)
}

fn name_columns(phase: &PhaseRow) -> usize {
    width(&shown_name(phase))
}

fn shown_name(phase: &PhaseRow) -> String {
    let indent = "  ".repeat(usize::from(phase.depth.min(8)));
    let title = phase.title.as_deref().map(|title| format!(" {}", fit(title, 30))).unwrap_or_default();
    plain(&format!("{indent}{}{title}", phase.name))
}

fn phase_line<'a>(phase: &PhaseRow, state: &State, theme: Theme, names: usize, columns: usize) -> Line<'a> {
    let layer = phase.layer.map(|layer| layer.to_string()).unwrap_or_default();
    let is_idle = phase.iterations == 0;
    let running = phase.since_ms.map_or(0, |since| (state.now.unix_millis() - since).max(0));
    let time = if is_idle { String::new() } else { duration(phase.worked_ms + running) };
    let rounds = match (phase.is_gate, phase.iterations) {
        (_, 0) => String::new(),
        (true, n) => format!("round {n}"),
        (false, 1) => String::new(),
        (false, n) => format!("×{n}"),
    };
    let word = if phase.review.is_some() {
        "needs you"
    } else if phase.is_support && phase.state == PhaseState::Pending {
        "idle"
    } else {
        phase.state.as_str()
    };
    let mut spans = vec![
        Span::styled(format!("{layer:>2} "), theme.tone(Tone::Dim)),
        Span::styled(format!("{} ", phase.state.mark()), theme.phase(phase.state)),
        Span::raw(format!("{} ", pad(&shown_name(phase), names))),
    ];
    let tone = if phase.review.is_some() { theme.tone(Tone::Warn) } else { theme.phase(phase.state) };
    spans.push(Span::styled(format!("{} ", pad(word, 10)), tone));
    spans.push(Span::styled(format!("{} ", pad(&time, 6)), theme.tone(Tone::Dim)));
    if columns >= 56 {
        spans.push(Span::raw(format!("{} ", pad(&rounds, 8))));
    }
    if columns >= 100 {
        let used = if phase.tokens > 0 { tokens(phase.tokens) } else { String::new() };
        spans.push(Span::styled(format!("{} ", pad(&used, 7)), theme.tone(Tone::Dim)));
    }
    let used: usize = spans.iter().map(Span::width).sum();
    let room = columns.saturating_sub(used);
    let verdict = phase.verdict.as_deref().map(plain).unwrap_or_default();
    let message = phase.message.as_deref().map(plain).unwrap_or_default();
    // While the gate is at work, its last verdict is past.
    let is_at_work = phase.review.is_some() || phase.state == PhaseState::Running;
    let tail = match (verdict.is_empty() || is_at_work, message.is_empty()) {
        (false, false) if message.starts_with(verdict.as_str()) => message,
        (false, false) => format!("{verdict}: {message}"),
        (false, true) => verdict,
        (true, _) => message,
    };
    if room > 4 {
        spans.push(Span::styled(fit(&tail, room), theme.tone(Tone::Dim)));
    }
    Line::from(spans)
}

pub(super) fn body(frame: &mut Frame<'_>, state: &State, theme: Theme, area: Rect) {
    let focused = has_keys(state, Focus::Body);
    let mut heading = Vec::new();
    for tab in Tab::ALL {
        let tone = if tab == state.tab { Tone::Strong } else { Tone::Dim };
        let name =
            if tab == state.tab { format!("[{}] ", tab.title()) } else { format!(" {}  ", tab.title()) };
        heading.push((tone, name));
    }
    heading.push((Tone::Dim, place(state)));
    let inner = title(frame, theme, area, &heading, focused);
    let (height, columns) = (usize::from(inner.height), usize::from(inner.width));
    let mut lines: Vec<Line<'_>> = Vec::new();
    let (top, left, cursor, count) = match state.tab {
        Tab::Changes => {
            let view = &state.changes;
            (view.top, view.left, view.cursor, view.rows.len())
        }
        Tab::Log | Tab::Transcript => {
            let view = &state.text;
            (view.top, view.left, view.cursor, view.len())
        }
    };
    if state.chosen.is_none() {
        return;
    }
    if count == 0 {
        let text = wrap(&empty(state), columns.max(1));
        lines.extend(text.into_iter().map(|text| Line::styled(text, theme.tone(Tone::Dim))));
    }
    for at in (top..count).take(height) {
        let styled = match state.tab {
            Tab::Changes => state.changes.rows.get(at).map(|row| row.line.clone()),
            Tab::Log | Tab::Transcript => state.text.line(at),
        };
        let made = line(&styled.unwrap_or_default(), theme, left, columns);
        lines.push(if at == cursor && focused {
            filled(made, columns).patch_style(theme.cursor(true))
        } else {
            made
        });
    }
    frame.render_widget(Paragraph::new(lines), inner);
}

/// Phase, file and position of the text that is shown.
fn place(state: &State) -> String {
    let phase = state.phase().map_or_else(|| "the run".to_owned(), |phase| plain(&phase.name));
    match state.tab {
        Tab::Changes => {
            let files = state.changes.rows.iter().filter(|row| row.is_file).count();
            let comments = state.changes.changes.as_ref().and_then(|changes| changes.review.as_ref());
            let review = if comments.is_some() { ", under review" } else { "" };
            format!(" {phase}, {files} {}{review}", if files == 1 { "file" } else { "files" })
        }
        Tab::Log | Tab::Transcript => {
            let view = &state.text;
            let at = view.files.iter().position(|file| *file == view.file);
            let number = at.filter(|_| view.files.len() > 1);
            let number = number.map(|at| format!(" {} of {}", at + 1, view.files.len())).unwrap_or_default();
            let end = if view.problem.is_some() {
                "cannot be read".to_owned()
            } else if view.is_following {
                "following".to_owned()
            } else {
                format!("{} %", view.percent())
            };
            if view.len() == 0 { format!(" {phase}{number}") } else { format!(" {phase}{number}, {end}") }
        }
    }
}

fn empty(state: &State) -> String {
    match state.tab {
        Tab::Changes => {
            let view = &state.changes;
            match (&view.problem, &view.changes) {
                (Some(problem), _) => plain(problem),
                (None, None) => "reading changes …".to_owned(),
                (None, Some(_)) => "no changes".to_owned(),
            }
        }
        Tab::Log | Tab::Transcript if !state.text.is_loaded => "reading …".to_owned(),
        Tab::Log | Tab::Transcript if state.text.problem.is_some() => {
            plain(state.text.problem.as_deref().unwrap_or_default())
        }
        Tab::Log => match state.phase() {
            Some(phase) if phase.iterations == 0 => format!("{} has not started", plain(&phase.name)),
            Some(phase) if phase.is_gate && phase.review.is_some() => {
                format!("{} waits for an answer: `a` answers, `Tab` shows the changes", plain(&phase.name))
            }
            Some(phase) => format!("{} has printed nothing", plain(&phase.name)),
            None => "the orchestrator has logged nothing".to_owned(),
        },
        Tab::Transcript => match state.phase() {
            Some(phase) => format!("{} has no transcript: only models have one", plain(&phase.name)),
            None => "choose a phase: each activation of a model has a transcript".to_owned(),
        },
    }
}
