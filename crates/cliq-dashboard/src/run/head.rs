//! Head of the pages of a run: its title, its state in a sentence, facts, and the tabs.
// A new outcome has to be handled by name.
#![deny(clippy::wildcard_enum_match_arm)]

use cliq_model::{Run, RunState};
use cliq_web::{RunDocument, RunSummary, TrialDocument};
use maud::{Markup, html};
use serde_json::Value;

use crate::elements::{ago, badge, changed, estimated, folded, is_estimated, progress, state, took, usage};
use crate::runs::short;
use crate::text::shown;

/// Page of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tab {
    /// Graph, phases, guidance.
    Overview,
    /// Chart of activations over time.
    Timeline,
    /// Conversations of model agents.
    Transcripts,
    /// Changed files.
    Changes,
    /// Files with previews.
    Artifacts,
    /// Usage by phase and model.
    Cost,
    /// Logs and handoffs.
    Logs,
    /// Raw events.
    Events,
}

impl Tab {
    const ALL: [(Self, &'static str, &'static str); 8] = [
        (Self::Overview, "", "Overview"),
        (Self::Timeline, "/timeline", "Timeline"),
        (Self::Transcripts, "/transcripts", "Transcripts"),
        (Self::Changes, "/changes", "Changes"),
        (Self::Artifacts, "/artifacts", "Artifacts"),
        (Self::Cost, "/cost", "Cost"),
        (Self::Logs, "/logs", "Logs"),
        (Self::Events, "/events", "Events"),
    ];
}

/// Title and tabs of a page of a run other than its first.
pub(crate) fn head(run: &Run, tab: Tab) -> Markup {
    html! {
        h1 { a.strong href=(format!("/runs/{}", run.id)) { (shown(run.title.as_bytes())) } }
        p.facts { (state(run.life.state, &run.caveats)) span { (run.team) } code.quiet { (short(run.id.as_str())) } }
        (tabs(run, tab))
    }
}

/// The tabs.
pub(super) fn tabs(run: &Run, current: Tab) -> Markup {
    html! {
        nav.tabs aria-label="Pages of the run" {
            @for (tab, path, name) in Tab::ALL {
                a href=(format!("/runs/{}{path}", run.id)) aria-current=[(tab == current).then_some("page")] { (name) }
            }
        }
    }
}

/// Title, sentence and facts of the first page.
pub(super) fn summary(run: &Run, document: &RunDocument) -> Markup {
    let summary = &document.summary;
    html! {
        h1 { (shown(run.title.as_bytes())) }
        p.sentence { (state(summary.state, &summary.caveats)) " " (sentence(summary, &document.phases)) }
        p.facts {
            span { (run.team) " " code { (short(summary.id.as_str())) } }
            (progress(summary.phases_done, summary.phases_all, "phases"))
            @if summary.cancel_requested && !summary.state.is_final() { span.badge.waiting { "is being cancelled" } }
            span { "asked for " (ago(summary.queued_at)) " by " (summary.caller) }
            span { "took " (took(summary.started_at, summary.ended_at)) }
            span { "used " (usage(&summary.usage)) (estimated(has_estimates(&document.phases))) }
            @if let Some(changes) = &summary.changed { span { "changed " a href=(format!("/runs/{}/changes", run.id)) { (changed(changes)) } } }
            @if let Some(instance) = &summary.instance { span { "in project " code { (instance) } } }
            @if let Some(url) = &document.trace_url { span { a href=(url) rel="noreferrer" { "trace" } } }
            @if document.recoveries > 0 { span { "resumed " (document.recoveries) " times after a death" } }
        }
        @if let Some(reason) = &summary.reason {
            div.alert role="alert" {
                @if let Some(phase) = &summary.phase { a href=(format!("/runs/{}?phase={phase}#panel", run.id)) { strong { (phase) } } ": " }
                (folded(reason))
            }
        }
        @if let Some(trial) = &document.trial { (trial_of(trial)) }
        @if !document.inputs.is_empty() {
            dl.inputs { @for (key, value) in &document.inputs { dt { (key) } dd { (shown(value.as_bytes())) } } }
        }
    }
}

/// Whether the usage of a phase is an estimate.
fn has_estimates(phases: &Value) -> bool {
    phases.as_array().into_iter().flatten().any(|phase| is_estimated(&phase["usage"]))
}

/// The trial of an evaluation with its checks.
fn trial_of(trial: &TrialDocument) -> Markup {
    html! {
        section.card aria-labelledby="trial-title" {
            h2 #trial-title { "Trial " (trial.number) " of " a href=(format!("/evaluations/{}", trial.evaluation)) { "evaluation " (short(&trial.evaluation)) } }
            p.facts {
                (badge(trial.outcome.as_deref().map_or("unfinished", |outcome| if outcome == "passed" { "completed" } else { outcome })))
                span { "variant " (trial.variant) } span { "case " (trial.case) }
            }
            @if let Some(reason) = &trial.reason { p { (folded(reason)) } }
            @if trial.checks.is_empty() { p.empty { "No check has run." } }
            ul.plain {
                @for check in &trial.checks {
                    li {
                        (badge(if check.pass { "completed" } else { "failed" })) " " (shown(check.name.as_bytes()))
                        @if !check.detail.is_empty() { ": " (folded(&check.detail)) }
                    }
                }
            }
        }
    }
}

/// The state of a run in a sentence.
fn sentence(summary: &RunSummary, phases: &Value) -> String {
    let phases: Vec<&Value> = phases.as_array().into_iter().flatten().collect();
    let text = |phase: &Value, key: &str| phase[key].as_str().unwrap_or_default().to_owned();
    let names = |status: &str| {
        let of =
            phases.iter().filter(|phase| phase["status"] == status && !text(phase, "name").contains('.'));
        let names: Vec<String> = of.map(|phase| text(phase, "name")).collect();
        match names.as_slice() {
            [] => None,
            [first, rest @ ..] if rest.len() > 3 => Some(format!("{first} and {} more", rest.len())),
            names => Some(names.join(", ")),
        }
    };
    let reviews: Vec<&&Value> = phases.iter().filter(|phase| phase["review"]["id"].is_string()).collect();
    if let (false, Some(phase)) = (summary.state.is_final(), reviews.first()) {
        let reviewers: Vec<&str> =
            phase["review"]["reviewers"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let since = text(phase, "name");
        return match phase["review"]["asks"].as_str() {
            Some(asks) => format!("{since} asks {}: {asks}.", reviewers.join(", ")),
            None => format!("{since} waits for a review by {}.", reviewers.join(", ")),
        };
    }
    match summary.state {
        RunState::Queued => "It waits for a free place.".to_owned(),
        RunState::Starting => "It is being started.".to_owned(),
        RunState::Waiting => match &summary.wake_at {
            Some(at) => format!("It is parked, and continues at {at} or after an answer."),
            None => "It is parked until it is resumed.".to_owned(),
        },
        RunState::Running => match (names("running"), names("waiting")) {
            (Some(running), Some(waiting)) => format!("{running} works; {waiting} waits."),
            (Some(running), None) => format!("{running} works."),
            (None, Some(waiting)) => format!("{waiting} waits."),
            (None, None) => "It has begun.".to_owned(),
        },
        RunState::Completed => {
            let took = took(summary.started_at, summary.ended_at);
            let rounds: Vec<String> = phases
                .iter()
                .filter(|phase| phase["verdict"].is_object() && phase["iterations"].as_u64() > Some(1))
                .map(|phase| format!("{} rounds of {}", phase["iterations"], text(phase, "name")))
                .collect();
            let after =
                if rounds.is_empty() { String::new() } else { format!(", after {}", rounds.join(", ")) };
            let notes: String =
                summary.caveats.iter().map(|caveat| format!(" {}", caveat.sentence())).collect();
            format!("All phases are done in {took}{after}.{notes}")
        }
        RunState::Escalated => {
            format!(
                "A person is needed{}.",
                summary.phase.as_ref().map(|phase| format!(" at {phase}")).unwrap_or_default()
            )
        }
        RunState::Failed => "It could not go on.".to_owned(),
        RunState::Cancelled => match names("stopped") {
            Some(stopped) => format!("It was cancelled while {stopped} worked."),
            None => "It was cancelled.".to_owned(),
        },
    }
}
