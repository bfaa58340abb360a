//! Card of a run: title, phase, words of its agent, time, cost, and what a person can do.

use std::collections::BTreeMap;
use std::sync::Arc;

use cliq_model::RunState;
use cliq_orchestrator::{PhaseStatus, RunView};
use cliq_protocol::PhaseName;
use cliq_review::Review;
use cliq_supervisor::Words;
use cliq_web::{Core, RunSummary};
use maud::{Markup, html};

use super::link;
use crate::elements::{ago, changed, count, folded, progress, since, state};
use crate::text::shown;

/// Time without a word after which a phase is called quiet.
const QUIET_MS: i64 = 5 * 60_000;
/// Maximum number of phases at work that a card names.
const NAMED: usize = 3;

/// Column of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Column {
    Needs,
    Working,
    Done,
}

impl Column {
    pub(super) fn id(self) -> &'static str {
        match self {
            Self::Needs => "needs",
            Self::Working => "working",
            Self::Done => "done",
        }
    }

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Needs => "Needs you",
            Self::Working => "Working",
            Self::Done => "Done today",
        }
    }
}

/// Work of a run at this moment.
#[derive(Debug, Default)]
pub(super) struct Work {
    /// Phases at work.
    phases: Vec<PhaseWork>,
}

#[derive(Debug)]
struct PhaseWork {
    name: String,
    words: String,
    /// When it was last heard of, in milliseconds since 1970: its last words, or its beginning.
    heard_ms: i64,
}

impl Work {
    fn of(view: &RunView, spoken: &BTreeMap<PhaseName, Arc<Words>>) -> Self {
        let works = view.phases.iter().filter(|phase| phase.status == PhaseStatus::Running);
        let phases = works.map(|phase| {
            let last = spoken.get(&phase.name);
            PhaseWork {
                name: phase.name.to_string(),
                words: match last {
                    Some(last) => last.text.to_string(),
                    None => phase.message.clone().unwrap_or_default(),
                },
                heard_ms: match last {
                    Some(last) => last.at_ms,
                    None => phase.running_since_ms.unwrap_or_else(cliq_fs::now_millis),
                },
            }
        });
        Self { phases: phases.collect() }
    }
}

/// Card of a run.
pub(super) struct Card {
    pub(super) run: RunSummary,
    pub(super) work: Work,
    /// Reviews that wait for a person.
    pub(super) reviews: Vec<Review>,
}

impl Card {
    /// Card of a run that has not ended.
    pub(super) async fn active(core: &Core, run: RunSummary, reviews: Vec<Review>) -> Self {
        let hub = core.supervisor.hub();
        let work = hub.view(&run.id).map(|view| Work::of(&view, &hub.words(&run.id))).unwrap_or_default();
        Self { run, work, reviews }
    }

    /// Place in the column: what works is first.
    pub(super) fn rank(&self) -> u8 {
        match self.run.state {
            RunState::Running => 0,
            RunState::Starting => 1,
            RunState::Waiting => 2,
            RunState::Queued => 3,
            RunState::Completed | RunState::Escalated | RunState::Failed | RunState::Cancelled => 4,
        }
    }

    /// Longest time without a word of a phase at work, in milliseconds.
    pub(super) fn quiet_ms(&self) -> i64 {
        let now = cliq_fs::now_millis();
        self.work.phases.iter().map(|phase| now - phase.heard_ms).max().unwrap_or(0)
    }

    pub(super) fn render(&self, column: Column) -> Markup {
        let run = &self.run;
        html! {
            article.card id=(format!("run-{}", run.id)) {
                h3 { a.strong href=(link(run)) { (shown(run.title.as_bytes())) } }
                p.facts {
                    (state(run.state, &run.caveats))
                    span { (run.team) }
                    (progress(run.phases_done, run.phases_all, "phases"))
                }
                @match column {
                    Column::Needs => (self.needs()),
                    Column::Working => (self.works()),
                    Column::Done => @if let Some(reason) = &run.reason { p.why { (folded(reason)) } },
                }
                p.facts.small {
                    @match (run.started_at, run.ended_at) {
                        (Some(from), None) => span { "for " (since(from)) },
                        (_, Some(at)) => span { "ended " (ago(at)) },
                        (None, None) => span { "asked for " (ago(run.queued_at)) },
                    }
                    @if run.usage.tokens() > 0 {
                        span { @match run.usage.cost_usd { Some(cost) => { "$" (format!("{cost:.2}")) }, None => { (count(run.usage.tokens())) " tokens" } } }
                    }
                    a href=(format!("{}/changes", link(run))) {
                        @match &run.changed { Some(changes) => (changed(changes)), None => "Changes" }
                    }
                }
                @if column != Column::Done && !run.state.is_final() { (self.forms()) }
            }
        }
    }

    fn needs(&self) -> Markup {
        html! {
            @for review in &self.reviews {
                div.ask {
                    p {
                        @match &review.subject {
                            Some(subject) => (shown(subject.sentence().as_bytes())),
                            None => { strong { (review.phase) } " asks for a decision" },
                        }
                        span.quiet { " · asked " (ago(review.created)) " of " (shown(review.waits_for().join(", ").as_bytes())) }
                    }
                    // With script the form comes here, without it the link leads to it.
                    details data-lazy=(format!("/reviews/{}/form", review.id)) {
                        summary { "Answer" }
                        div data-lazy-place { a href=(format!("/reviews/{}", review.id)) { "Open the review" } }
                    }
                    a href=(format!("/reviews/{}", review.id)) { "Whole review" }
                }
            }
            @if self.reviews.is_empty() {
                @if let Some(reason) = &self.run.reason {
                    p.why { @if let Some(phase) = &self.run.phase { strong { (phase) } " " } (folded(reason)) }
                }
                p { a href=(link(&self.run)) { "Look and resume" } }
            }
        }
    }

    fn works(&self) -> Markup {
        let now = cliq_fs::now_millis();
        html! {
            @for phase in self.work.phases.iter().take(NAMED) {
                p.words {
                    strong { (phase.name) } " "
                    span data-words=(format!("{}/{}", self.run.id, phase.name)) { (shown(phase.words.as_bytes())) }
                    @if now - phase.heard_ms > QUIET_MS { " " span.badge.waiting { "quiet for " (minutes(now - phase.heard_ms)) } }
                }
            }
            @if self.work.phases.len() > NAMED { p.quiet { "and " (self.work.phases.len() - NAMED) " more phases" } }
            @if self.work.phases.is_empty() && self.run.state == RunState::Queued { p.quiet { "waits for a place" } }
        }
    }

    /// Steering and cancelling: with script in place, without it on the page of the run.
    fn forms(&self) -> Markup {
        html! {
            details data-lazy=(format!("{}/forms", link(&self.run))) {
                summary { "Steer or cancel" }
                div data-lazy-place { a href=(format!("{}#steering-title", link(&self.run))) { "On the page of the run" } }
            }
        }
    }
}

fn minutes(millis: i64) -> String {
    let minutes = millis / 60_000;
    if minutes < 120 { format!("{minutes} min") } else { format!("{} h", minutes / 60) }
}
