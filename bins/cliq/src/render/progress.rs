//! A run as it goes: live lines on a terminal, plain lines in a pipe, JSON for programs.

use std::collections::HashMap;
use std::io::{self, IsTerminal};
use std::time::Duration;

use cliq_orchestrator::internals::within_line;
use cliq_orchestrator::{Record, RunEvent, RunView};
use cliq_protocol::{Outcome, PhaseName};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::reviews;
use crate::ui::{self, DIM, GREEN, RED, YELLOW, paint};

/// Display mode of a run.
pub(crate) enum Progress {
    /// One JSON object per line.
    Json,
    /// One plain line per event. Without links of reviewers where the output is kept as a log.
    Plain {
        /// Whether the run was started with `--headless`.
        headless: bool,
    },
    /// Finished lines above, phases at work below, with the time they take.
    LiveDisplay(LiveDisplay),
}

pub(crate) struct LiveDisplay {
    area: MultiProgress,
    bars: HashMap<PhaseName, ProgressBar>,
}

impl Progress {
    /// JSON where it is requested, live on a terminal unless plain is requested, else plain.
    pub(crate) fn new(json: bool, plain: bool) -> Self {
        if json {
            Self::Json
        } else if plain || !io::stdout().is_terminal() {
            Self::Plain { headless: plain }
        } else {
            let area = MultiProgress::with_draw_target(ProgressDrawTarget::stdout());
            Self::LiveDisplay(LiveDisplay { area, bars: HashMap::new() })
        }
    }

    /// Shows an event. `view` has taken it already.
    pub(crate) fn show(&mut self, record: &Record, view: &RunView) -> io::Result<()> {
        match self {
            Self::Json => ui::raw(&record.encode()),
            Self::Plain { headless } => match line(record, view, !*headless) {
                Some(line) => ui::line(line),
                None => Ok(()),
            },
            Self::LiveDisplay(live) => live.show(record, view),
        }
    }
}

impl LiveDisplay {
    fn show(&mut self, record: &Record, view: &RunView) -> io::Result<()> {
        match &record.event {
            RunEvent::PhaseStarted { phase, .. } => {
                let bar = self.bars.entry(phase.clone()).or_insert_with(|| {
                    let bar = self.area.add(ProgressBar::new_spinner());
                    let style = ProgressStyle::with_template(
                        "  {spinner:.cyan} {prefix:.bold} {elapsed:>5.dim} {wide_msg:.dim}",
                    );
                    if let Ok(style) = style {
                        bar.set_style(style);
                    }
                    bar.enable_steady_tick(Duration::from_millis(120));
                    bar
                });
                bar.set_prefix(phase.to_string());
                bar.reset_elapsed();
            }
            RunEvent::PhaseCompleted { phase }
            | RunEvent::PhaseEscalated { phase, .. }
            | RunEvent::PhaseSkipped { phase, .. }
            | RunEvent::ItemFailed { phase, .. }
            | RunEvent::RetryScheduled { phase, .. }
            | RunEvent::PhaseStopped { phase } => self.drop_bar(phase),
            RunEvent::Verdict { gate, verdict, .. } if matches!(verdict.outcome, Outcome::Route(_)) => {
                self.drop_bar(gate)
            }
            RunEvent::RunFinished { .. } | RunEvent::RunParked { .. } => {
                self.bars.clear();
                self.area.clear()?;
            }
            event => {
                if let Some(phase) = event.phase()
                    && let Some(bar) = self.bars.get(phase)
                    && let Some(message) = view.find(phase).and_then(|p| p.message.clone())
                {
                    bar.set_message(message.replace('\n', " "));
                }
            }
        }
        let passing = matches!(
            record.event,
            RunEvent::PhaseStarted { .. } | RunEvent::Progress { .. } | RunEvent::AgentStarted { .. }
        );
        match line(record, view, true).filter(|_| !passing) {
            // The display writes by itself: whether colour is wanted is asked here.
            Some(line) => match anstream::AutoStream::choice(&io::stdout()) {
                anstream::ColorChoice::Never => {
                    self.area.println(anstream::adapter::strip_str(&line).to_string())
                }
                _ => self.area.println(line),
            },
            None => Ok(()),
        }
    }

    fn drop_bar(&mut self, phase: &PhaseName) {
        if let Some(bar) = self.bars.remove(phase) {
            bar.finish_and_clear();
            self.area.remove(&bar);
        }
    }
}

/// Returns the event as a line for people, or `None` for what only programs care about.
// A new event has to be shown or left out by name.
#[deny(clippy::wildcard_enum_match_arm)]
fn line(record: &Record, view: &RunView, with_links: bool) -> Option<String> {
    let took = |phase: &PhaseName| {
        let millis = view.find(phase).map_or(0, |p| p.duration_ms);
        paint(DIM, format!("({})", ui::duration(millis)))
    };
    let marked = |style, mark: &str| {
        let text = record.event.describe();
        format!("{} {}", paint(style, mark), within_line(&text))
    };
    Some(match &record.event {
        RunEvent::AgentCompleted { .. }
        | RunEvent::WorkspaceChanged { .. }
        | RunEvent::CommandStarted { .. }
        | RunEvent::UsageReported { .. }
        | RunEvent::ReviewIdle { .. }
        | RunEvent::PhaseDecided { .. }
        | RunEvent::RetryDelayed { .. }
        | RunEvent::RetryDue { .. }
        | RunEvent::WorkFailed { .. } => return None,
        // With a single command the line of the phase says it all.
        RunEvent::CommandsFinished { results, .. } if results.len() < 2 && results.iter().all(|r| r.pass) => {
            return None;
        }
        // The summary says it.
        RunEvent::RunFinished { .. } | RunEvent::RunParked { .. } => return None,
        RunEvent::PhaseCompleted { phase } => format!("{} {}", marked(GREEN, "✓"), took(phase)),
        RunEvent::PhaseEscalated { phase, .. } | RunEvent::ItemFailed { phase, .. } => {
            format!("{} {}", marked(RED, "✗"), took(phase))
        }
        RunEvent::PhaseSkipped { .. } => marked(DIM, "○"),
        RunEvent::RetryScheduled { .. } => marked(YELLOW, "↻"),
        RunEvent::Verdict { verdict, failing, .. } => {
            let is_good = verdict.outcome == Outcome::Pass && failing.is_empty();
            marked(if is_good { GREEN } else { YELLOW }, "◆")
        }
        RunEvent::Warning { .. }
        | RunEvent::CompletionContradicted { .. }
        | RunEvent::VerdictRejected { .. }
        | RunEvent::Draining { .. }
        | RunEvent::SteeringReceived { .. }
        | RunEvent::CancelRequested { .. } => marked(YELLOW, "!"),
        RunEvent::ReviewWaits { phase, review, .. } if with_links && !review.reviewers.is_empty() => {
            let home = crate::project::host().home;
            let lines = reviews::lines(home.as_deref(), review).join("\n    ");
            format!("{} {phase}: {lines}", paint(YELLOW, "◆"))
        }
        RunEvent::OrchestratorFailed { .. } => marked(RED, "✗"),
        RunEvent::PhaseStarted { .. } | RunEvent::RunStarted { .. } | RunEvent::ItemsStarted { .. } => {
            marked(DIM, "▸")
        }
        RunEvent::RunInterrupted
        | RunEvent::RunResumed { .. }
        | RunEvent::AgentStarted { .. }
        | RunEvent::CommandFinished { .. }
        | RunEvent::CommandsFinished { .. }
        | RunEvent::Progress { .. }
        | RunEvent::ReviewWaits { .. }
        | RunEvent::PhaseSandboxed { .. }
        | RunEvent::AccessRefused { .. }
        | RunEvent::RunIdle { .. }
        | RunEvent::SteeringDelivered { .. }
        | RunEvent::NotifyRequested { .. }
        | RunEvent::MergeConflict { .. }
        | RunEvent::ItemsMerged { .. }
        | RunEvent::PhaseReset { .. }
        | RunEvent::PhaseStopped { .. } => marked(DIM, "·"),
        _ => marked(DIM, "·"),
    })
}
