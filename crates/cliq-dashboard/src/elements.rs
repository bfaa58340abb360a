//! Parts of pages: badges, times, amounts.

use std::time::Duration;

use cliq_model::{Caveat, RunChanges, RunState, RunTotals};
use cliq_project::internals::duration;
use cliq_protocol::Timestamp;
use maud::{Markup, html};
use serde_json::{Value, json};

use crate::icons::Icon;
use crate::text::shown;

/// The state of a run with its caveats. A run with a caveat is never shown as a plain success.
pub(super) fn state(state: RunState, caveats: &[Caveat]) -> Markup {
    html! {
        @if state == RunState::Completed && caveats.contains(&Caveat::FailedTrial) {
            (badge("failed")) " " span class="quiet" { "trial, the run " (state.as_str()) }
        } @else if state == RunState::Completed && !caveats.is_empty() {
            span class="badge unclear" { (Icon::of("unclear").render()) " " (state.as_str()) }
        } @else { (badge(state.as_str())) }
        @for caveat in caveats.iter().filter(|caveat| **caveat != Caveat::FailedTrial) { " " span class="badge unclear" { (Icon::of("unclear").render()) " " (caveat.label()) } }
    }
}

/// The state of a phase. A phase with a caveat is never shown as a plain success.
pub(super) fn phase_state(phase: &Value) -> Markup {
    let word = phase_word(phase);
    let status = phase["status"].as_str().unwrap_or_default();
    html! {
        @if word == "unclear" {
            span class="badge unclear" { (Icon::of(word).render()) " " (status) }
            @for caveat in Caveat::of_document(&json!({"phases": [phase]})) { " " span class="badge unclear" { (caveat.label()) } }
        } @else { (badge(word)) }
    }
}

/// Returns the status of a phase, or `unclear` for a completed phase with a caveat.
pub(super) fn phase_word(phase: &Value) -> &str {
    let status = phase["status"].as_str().unwrap_or("pending");
    // Who is waited for does not work.
    let reviewers = phase["review"]["reviewers"].as_array();
    if status == "running" && reviewers.is_some_and(|names| !names.is_empty()) {
        return "waiting";
    }
    let is_unclear = status == "completed" && !Caveat::of_document(&json!({"phases": [phase]})).is_empty();
    if is_unclear { "unclear" } else { status }
}

/// A state with its icon: colour alone says nothing.
pub(super) fn badge(word: &str) -> Markup {
    html! { span class=(format!("badge {word}")) { (Icon::of(word).render()) " " (word) } }
}

/// A text of an agent on one line. The rest is folded.
pub(super) fn folded(text: &str) -> Markup {
    const LINE: usize = 140;
    let text = shown(text.as_bytes());
    let first = text.lines().next().unwrap_or_default();
    let is_short = first.chars().count() <= LINE;
    if is_short && first.len() == text.trim_end().len() {
        return html! { (first) };
    }
    let cut: String = first.chars().take(LINE).collect();
    html! { details.folded { summary { (cut) @if !is_short { "…" } } pre { (text) } } }
}

/// The progress of a run, as a bar and in words.
pub(super) fn progress(done: u64, all: u64, of: &str) -> Markup {
    html! {
        @if all > 0 {
            span.progress {
                progress max=(all) value=(done.min(all)) aria-label=(format!("{done} of {all} {of}")) {}
                span { (done) "/" (all) }
            }
        }
    }
}

/// A time to the minute, in UTC. An open page shows it in the zone of the person, or in `zone`.
pub(super) fn moment(at: &str, zone: Option<&str>) -> Markup {
    let text = at.get(..16).unwrap_or(at).replace('T', " ");
    html! { time datetime=(at) title=(at) data-moment data-zone=[zone] { (text) " UTC" } }
}

/// A time, as people say it: how long ago.
pub(super) fn ago(at: Timestamp) -> Markup {
    let text = format!("{} ago", rough(cliq_fs::now().since(at)));
    html! { time datetime=(at) title=(at) { (text) } }
}

/// A time up to now, which an open page goes on to count by seconds. From a minute on it has no seconds itself, so that a page that is
/// made again is the same.
pub(super) fn since(at: Timestamp) -> Markup {
    let minutes = cliq_fs::now().since(at).as_secs() / 60;
    html! {
        time datetime=(at) title=(at) data-since=(at) {
            @match minutes {
                0 => (duration(cliq_fs::now().unix_millis() - at.unix_millis())),
                1..60 => { (minutes) "m" },
                _ => { (minutes / 60) "h " (format!("{:02}", minutes % 60)) "m" },
            }
        }
    }
}

/// A time of another program. A text that is no time is shown as it is.
pub(super) fn ago_text(text: &str) -> Markup {
    Timestamp::parse(text).map_or_else(|_| html! { (text) }, ago)
}

/// A duration in its largest unit.
fn rough(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// Returns the duration of a run, up to now if it is active.
pub(super) fn took(started: Option<Timestamp>, ended: Option<Timestamp>) -> String {
    let Some(from) = started else { return "–".to_owned() };
    let to = ended.unwrap_or_else(cliq_fs::now);
    duration(to.unix_millis() - from.unix_millis())
}

/// Tokens and cost; nothing where nothing was used.
pub(super) fn usage(totals: &RunTotals) -> String {
    if totals.tokens() == 0 {
        return "–".to_owned();
    }
    let tokens = format!("{} in, {} out", count(totals.tokens_in), count(totals.tokens_out));
    match totals.cost_usd {
        Some(cost) => format!("{tokens}, ${cost:.4}"),
        None => format!("{tokens}, cost unknown"),
    }
}

/// Numbers of changed lines, with the number of files in words.
pub(super) fn changed(changes: &RunChanges) -> Markup {
    let noun = if changes.files == 1 { "file" } else { "files" };
    html! {
        span.plus { "+" (count(changes.lines_added)) } " " span.minus { "−" (count(changes.lines_removed)) }
        " in " (count(changes.files)) " " (noun)
    }
}

/// Mark after usage of which a part is an estimate.
pub(super) fn estimated(is_estimated: bool) -> &'static str {
    if is_estimated { ", estimated" } else { "" }
}

/// Whether a document of usage is marked as an estimate.
pub(super) fn is_estimated(usage: &serde_json::Value) -> bool {
    usage["estimated"] == true
}

/// A number with its thousands apart.
pub(super) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            out.push('\u{2009}');
        }
        out.push(digit);
    }
    out
}

/// A size in bytes, for people.
pub(super) fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{} KiB", bytes / 1024),
        _ => format!("{} MiB", bytes / 1_048_576),
    }
}

/// Text that was printed. It can be scrolled by keyboard.
pub(super) fn output(label: &str, text: &str) -> Markup {
    html! { pre tabindex="0" role="region" aria-label=(label) { (text) } }
}

/// Returns the text for an empty list.
pub(super) fn empty(text: &str) -> Markup {
    html! { p.empty { (text) } }
}
