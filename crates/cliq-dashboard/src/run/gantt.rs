//! Activations of a run over time: folded from its events, and drawn as a Gantt chart.

use std::collections::HashMap;
use std::fmt::Write;

use cliq_orchestrator::{Record, RunEvent};
use cliq_protocol::{Outcome, Timestamp};

/// End of an activation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// Still at work.
    Busy,
    /// Complete, or passed by a gate.
    Done,
    /// The gate sent the work back.
    Back,
    /// Failed, escalated or stopped.
    Bad,
}

/// An activation, or an evaluation of a gate.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Span {
    /// Start, in milliseconds since 1970.
    pub(super) from: i64,
    /// End; `None` while it is at work.
    pub(super) to: Option<i64>,
    pub(super) end: End,
    /// Number, 1-based.
    pub(super) number: u32,
    /// Time in which commands ran.
    pub(super) commands: Vec<(i64, i64)>,
    /// Time in which it waits for a person.
    pub(super) waits: Vec<(i64, Option<i64>)>,
}

/// A phase or an item with its activations.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) spans: Vec<Span>,
}

/// Rows in the order in which phases started first.
#[derive(Debug, Default)]
pub(super) struct Chart {
    pub(super) rows: Vec<Row>,
    places: HashMap<String, usize>,
    pub(super) from: Option<i64>,
    pub(super) to: Option<i64>,
    pub(super) is_over: bool,
}

impl Chart {
    /// Takes the next event.
    #[deny(clippy::wildcard_enum_match_arm)]
    pub(super) fn apply(&mut self, record: &Record) {
        let Some(now) = record.ts.time().map(Timestamp::unix_millis) else { return };
        self.from = Some(self.from.map_or(now, |from| from.min(now)));
        self.to = Some(self.to.map_or(now, |to| to.max(now)));
        match &record.event {
            RunEvent::PhaseStarted { phase, iteration, .. } => {
                let name = phase.to_string();
                self.end(&name, now, End::Bad);
                let place = *self.places.entry(name.clone()).or_insert(self.rows.len());
                if place == self.rows.len() {
                    self.rows.push(Row { name, spans: Vec::new() });
                }
                let (commands, waits) = (Vec::new(), Vec::new());
                let span = Span { from: now, to: None, end: End::Busy, number: *iteration, commands, waits };
                self.rows[place].spans.push(span);
            }
            RunEvent::CommandsFinished { phase, results, .. } => {
                let took: u64 = results.iter().filter_map(|result| result.duration_ms).sum();
                if let Some(span) = self.open(phase.as_str()) {
                    let from = now.saturating_sub_unsigned(took).max(span.from);
                    span.commands.push((from, now));
                }
            }
            RunEvent::ReviewWaits { phase, review, .. } => {
                let is_over = review.reviewers.is_empty();
                if let Some(span) = self.open(phase.as_str()) {
                    match span.waits.last_mut() {
                        Some((_, to @ None)) if is_over => *to = Some(now),
                        Some((_, None)) => {}
                        _ if !is_over => span.waits.push((now, None)),
                        _ => {}
                    }
                }
            }
            RunEvent::Verdict { gate, verdict, .. } => {
                let end = match verdict.outcome {
                    Outcome::Pass => End::Done,
                    Outcome::Route(_) => End::Back,
                    Outcome::Escalate => End::Bad,
                };
                self.end(gate.as_str(), now, end);
            }
            RunEvent::PhaseCompleted { phase } => self.end(phase.as_str(), now, End::Done),
            RunEvent::PhaseEscalated { phase, .. }
            | RunEvent::PhaseStopped { phase }
            | RunEvent::ItemFailed { phase, .. }
            | RunEvent::RetryScheduled { phase, .. }
            | RunEvent::PhaseReset { phase } => self.end(phase.as_str(), now, End::Bad),
            RunEvent::RunFinished { .. } => {
                self.is_over = true;
                self.end_all(now);
            }
            RunEvent::RunInterrupted => self.end_all(now),
            RunEvent::RunResumed { .. } => {
                self.is_over = false;
                self.end_all(now);
            }
            RunEvent::RunStarted { .. }
            | RunEvent::AgentStarted { .. }
            | RunEvent::CommandStarted { .. }
            | RunEvent::CommandFinished { .. }
            | RunEvent::Progress { .. }
            | RunEvent::UsageReported { .. }
            | RunEvent::ReviewIdle { .. }
            | RunEvent::PhaseSandboxed { .. }
            | RunEvent::AccessRefused { .. }
            | RunEvent::RunIdle { .. }
            | RunEvent::RunParked { .. }
            | RunEvent::SteeringReceived { .. }
            | RunEvent::SteeringDelivered { .. }
            | RunEvent::NotifyRequested { .. }
            | RunEvent::AgentCompleted { .. }
            | RunEvent::WorkFailed { .. }
            | RunEvent::PhaseDecided { .. }
            | RunEvent::PhaseSkipped { .. }
            | RunEvent::ItemsStarted { .. }
            | RunEvent::MergeConflict { .. }
            | RunEvent::ItemsMerged { .. }
            | RunEvent::RetryDelayed { .. }
            | RunEvent::RetryDue { .. }
            | RunEvent::VerdictRejected { .. }
            | RunEvent::Draining { .. }
            | RunEvent::WorkspaceChanged { .. }
            | RunEvent::Warning { .. }
            | RunEvent::CompletionContradicted { .. }
            | RunEvent::CancelRequested { .. }
            | RunEvent::OrchestratorFailed { .. } => {}
            _ => {}
        }
    }

    fn open(&mut self, name: &str) -> Option<&mut Span> {
        let row = self.rows.get_mut(*self.places.get(name)?)?;
        row.spans.last_mut().filter(|span| span.to.is_none())
    }

    fn end(&mut self, name: &str, now: i64, end: End) {
        if let Some(span) = self.open(name) {
            span.to = Some(now);
            span.end = end;
            if let Some((_, to @ None)) = span.waits.last_mut() {
                *to = Some(now);
            }
        }
    }

    fn end_all(&mut self, now: i64) {
        for place in 0..self.rows.len() {
            let name = self.rows[place].name.clone();
            self.end(&name, now, End::Bad);
        }
    }
}

/// Geometry of the picture.
const LABEL: f64 = 190.0;
const WIDTH: f64 = 1000.0;
const LINE: f64 = 26.0;
const TOP: f64 = 26.0;

/// Draws rows as SVG. `link` is the address of a phase's panel, to which its name is added.
pub(super) fn draw(rows: &[Row], from: i64, to: i64, link: &str) -> String {
    let span = (to - from).max(1) as f64;
    let x = |at: i64| LABEL + (at - from).max(0) as f64 / span * (WIDTH - LABEL);
    let height = TOP + rows.len() as f64 * LINE + 4.0;
    let mut out = format!(
        "<svg class=\"gantt\" xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" role=\"group\" aria-label=\"Activations over time\">"
    );
    for (at, text) in ticks(to - from) {
        let x = x(from + at);
        let anchor = if x > WIDTH - 40.0 { "end" } else { "start" };
        let _ = write!(
            out,
            "<line class=\"axis\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"18\" y2=\"{height}\"/><text class=\"tick\" x=\"{x:.1}\" y=\"12\" text-anchor=\"{anchor}\">{text}</text>"
        );
    }
    for (n, row) in rows.iter().enumerate() {
        let y = TOP + n as f64 * LINE;
        let name = escape(&row.name);
        let short: String = row.name.chars().take(26).collect();
        let _ = write!(
            out,
            "<a href=\"{link}{name}#panel\"><text x=\"0\" y=\"{:.1}\">{}</text></a>",
            y + 15.0,
            escape(&short)
        );
        for span in &row.spans {
            let end = span.to.unwrap_or(to);
            let (left, right) = (x(span.from), x(end));
            let class = match span.end {
                End::Busy => "busy",
                End::Done => "done",
                End::Back => "back",
                End::Bad => "bad",
            };
            let words = match span.end {
                End::Busy => "at work",
                End::Done => "complete",
                End::Back => "sent back",
                End::Bad => "not completed",
            };
            let took = cliq_project::internals::duration(end - span.from);
            let _ = write!(
                out,
                "<g><title>{name}, round {}: {words} after {took}</title><rect class=\"span {class}\" x=\"{left:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"18\" rx=\"3\"/>",
                span.number,
                y + 2.0,
                (right - left).max(3.0)
            );
            let inner = |class: &str, from: i64, to: i64, y: f64, height: f64| {
                let (left, right) = (x(from), x(to));
                format!(
                    "<rect class=\"{class}\" x=\"{left:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{height}\"/>",
                    (right - left).max(1.0)
                )
            };
            for &(from, to) in &span.commands {
                out += &inner("command", from, to, y + 15.0, 4.0);
            }
            for &(from, until) in &span.waits {
                out += &inner("wait", from, until.unwrap_or(to), y + 4.0, 14.0);
            }
            out += "</g>";
        }
    }
    out + "</svg>"
}

/// Returns about six round times with their texts, in milliseconds from the start.
fn ticks(length: i64) -> Vec<(i64, String)> {
    const STEPS: [i64; 20] = [
        100,
        200,
        500,
        1_000,
        2_000,
        5_000,
        10_000,
        30_000,
        60_000,
        120_000,
        300_000,
        600_000,
        1_800_000,
        3_600_000,
        7_200_000,
        14_400_000,
        43_200_000,
        86_400_000,
        172_800_000,
        604_800_000,
    ];
    let step = STEPS.into_iter().find(|step| length / step <= 7).unwrap_or((length / 7).max(1));
    (0..=7)
        .map(|n| n * step)
        .take_while(|at| *at <= length)
        .map(|at| (at, cliq_project::internals::duration(at)))
        .collect()
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn record(at: i64, mut event: serde_json::Value) -> Record {
        event["ts"] = Timestamp::from_unix_millis(at).to_string().into();
        Record::decode(event.to_string().as_bytes()).expect("an event")
    }

    #[test]
    fn rounds_of_a_gate_are_told_apart() {
        let mut chart = Chart::default();
        for (at, event) in [
            (0, json!({"event": "phase_started", "phase": "g", "kind": "gate", "iteration": 1})),
            (40, json!({"event": "commands_finished", "phase": "g", "iteration": 1, "results": [{"name": "t", "pass": true, "duration_ms": 30}]})),
            (90, json!({"event": "verdict", "gate": "g", "iteration": 1, "max_iterations": 3, "verdict": {"outcome": "ROUTE", "target": "a"}})),
            (90, json!({"event": "phase_started", "phase": "a", "kind": "exec", "iteration": 2})),
            (120, json!({"event": "phase_completed", "phase": "a"})),
            (120, json!({"event": "phase_started", "phase": "g", "kind": "gate", "iteration": 2})),
            (200, json!({"event": "verdict", "gate": "g", "iteration": 2, "max_iterations": 3, "verdict": {"outcome": "PASS"}})),
            (200, json!({"event": "phase_started", "phase": "<b>", "kind": "exec", "iteration": 1})),
        ]
        .into_iter()
        .filter(|(_, event)| event["phase"] != "<b>")
        {
            chart.apply(&record(at, event));
        }
        let names: Vec<&str> = chart.rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["g", "a"]);
        let ends: Vec<End> = chart.rows[0].spans.iter().map(|span| span.end).collect();
        assert_eq!(ends, [End::Back, End::Done]);
        assert_eq!(chart.rows[0].spans[0].commands, [(10, 40)]);
        let svg = draw(&chart.rows, 0, 200, "?phase=");
        assert!(svg.contains("round 2") && svg.contains("sent back"), "{svg}");
        let hostile = Row { name: "<script>\"".into(), spans: Vec::new() };
        assert!(!draw(&[hostile], 0, 1, "").contains("<script>"));
    }
}
