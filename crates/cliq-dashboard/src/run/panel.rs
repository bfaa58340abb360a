//! A phase beside the graph: its rounds, what it handed over, its commands, and the way to its transcript and changes.

use cliq_model::Run;
use cliq_protocol::{Limited, Sandbox};
use cliq_web::{Core, RunDocument, read_log};
use maud::{Markup, html};
use serde_json::Value;

use super::Words;
use super::files::RunFiles;
use crate::elements::{badge, count, estimated, folded, is_estimated, output, phase_state, size};
use crate::text::shown;

/// The most links of a kind that are listed.
const LISTED: usize = 12;

/// Finds a phase, or an item of one.
pub(super) fn find<'a>(phases: &'a Value, name: &str) -> Option<&'a Value> {
    phases.as_array()?.iter().find(|phase| phase["name"] == name)
}

/// The panel of a phase.
pub(super) fn panel(
    run: &Run,
    document: &RunDocument,
    phase: &Value,
    words: &Words,
    files: Option<&RunFiles>,
    review: Option<&Markup>,
    tail: Option<&LogTail>,
) -> Markup {
    let text = |key: &str| phase[key].as_str().unwrap_or_default();
    let name = text("name");
    let base = format!("/runs/{}", run.id);
    let rounds = phase["iterations"].as_u64().unwrap_or(0);
    let millis = phase["duration_ms"].as_i64().unwrap_or(0);
    let since = phase["running_since_ms"].as_i64().map_or(0, |since| cliq_fs::now_millis() - since);
    let items: Vec<&Value> = document
        .phases
        .as_array()
        .into_iter()
        .flatten()
        .filter(|row| {
            row["name"].as_str().and_then(|row| row.split_once('.')).is_some_and(|(of, _)| of == name)
        })
        .collect();
    html! {
        h2 { (name) @if !text("title").is_empty() { " " span.quiet { (shown(text("title").as_bytes())) } } }
        p.facts {
            (phase_state(phase))
            span { (text("type")) @if phase["support"] == true { " (support)" } }
            span { (rounds) @if rounds == 1 { " round" } @else { " rounds" } }
            span { "took " (cliq_project::internals::duration(millis + since)) }
            @if let Some(url) = &document.trace_url { span { a href=(url) rel="noreferrer" { "trace" } } }
        }
        @if let Some(kept) = phase["kept_from"].as_str() { p.note { "Kept from run " a href=(format!("/runs/{kept}")) { (kept) } "." } }
        @if let Ok(limited) = Limited::read(phase["limited"].clone(), "limited") {
            p.warning { strong { "Stopped at " (shown(limited.to_string().as_bytes())) } ": the work is not complete." }
        }
        @match words.of_phase(phase) {
            Some(words) => p.words { (words) },
            None => @if !text("message").is_empty() { p { (folded(text("message"))) } },
        }
        @if let Some(review) = review { (review) }
        @if !items.is_empty() {
            h3 { "Items" }
            (sum(&items))
            ul.plain {
                @for item in items {
                    @let name = item["name"].as_str().unwrap_or_default();
                    li { (badge(item["status"].as_str().unwrap_or_default())) " " a href=(format!("{base}?phase={name}#panel")) { (name) } " " (shown(item["title"].as_str().unwrap_or_default().as_bytes())) }
                }
            }
        }
        (commands(phase))
        @if let Some(tail) = phase["output_tail"].as_str().filter(|tail| !tail.is_empty()) {
            h3 { "The last it printed" }
            (output("Output of the agent", &shown(tail.as_bytes())))
        }
        @if let Some(tail) = tail { (tail.render(run)) }
        (used(phase))
        @if let Some(files) = files { (listed_files(files, &base, name, rounds)) }
        @if let Ok(sandbox) = Sandbox::from_value(phase["sandbox"].clone(), "sandbox") { p.quiet { "sandbox " (sandbox.to_string()) } }
    }
}

/// Sum of the items of a phase: how many are in which state, and their cost.
fn sum(items: &[&Value]) -> Markup {
    let mut states: Vec<(&str, usize)> = Vec::new();
    for item in items {
        let state = item["status"].as_str().unwrap_or_default();
        match states.iter_mut().find(|(known, _)| *known == state) {
            Some((_, count)) => *count += 1,
            None => states.push((state, 1)),
        }
    }
    let costs: Vec<f64> = items.iter().filter_map(|item| item["usage"]["cost_usd"].as_f64()).collect();
    html! {
        p.facts {
            span { (items.len()) " in all" }
            @for (state, count) in states { span { (count) " " (state) } }
            @if !costs.is_empty() { span { "$" (format!("{:.4}", costs.iter().sum::<f64>())) } }
        }
    }
}

fn commands(phase: &Value) -> Markup {
    let commands: Vec<&Value> = phase["commands"].as_array().into_iter().flatten().collect();
    html! {
        @if !commands.is_empty() {
            h3 { "Commands" }
            @for command in commands {
                @let name = command["name"].as_str().or(command["run"].as_str()).unwrap_or("command");
                @let said = command["output_tail"].as_str().unwrap_or_default();
                details open[command["pass"] == false] {
                    summary {
                        @if command["pass"] == true { (badge("passed")) } @else { (badge("failed")) }
                        " " code { (shown(name.as_bytes())) }
                        @if let Some(millis) = command["duration_ms"].as_i64() { span.quiet { " " (cliq_project::internals::duration(millis)) } }
                        @if let Some(code) = command["exit_code"].as_i64().filter(|code| *code != 0) { span.quiet { " exit status " (code) } }
                    }
                    @if said.is_empty() { p.quiet { "It printed nothing." } } @else { (output(name, &shown(said.as_bytes()))) }
                }
            }
        }
    }
}

fn used(phase: &Value) -> Markup {
    let tokens = |key: &str| phase["usage"][key].as_u64().unwrap_or(0);
    html! {
        @if tokens("tokens_in") + tokens("tokens_out") > 0 {
            h3 { "Usage" }
            p {
                (count(tokens("tokens_in"))) " tokens in, " (count(tokens("tokens_out"))) " out"
                @if let Some(cost) = phase["usage"]["cost_usd"].as_f64() { ", $" (format!("{cost:.4}")) }
                (estimated(is_estimated(&phase["usage"])))
            }
        }
    }
}

fn listed_files(files: &RunFiles, base: &str, name: &str, rounds: u64) -> Markup {
    let (out, inside): (Vec<_>, Vec<_>) = files
        .handoffs
        .iter()
        .filter(|handoff| handoff.from == name || handoff.to == name)
        .partition(|handoff| handoff.from == name);
    let is_own = |file: &str| file.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
    let logs: Vec<_> = files.logs.iter().filter(|log| is_own(&log.name)).collect();
    let transcripts: Vec<_> = files.transcripts.iter().filter(|file| is_own(&file.name)).collect();
    let link = |from: &str, to: &str| format!("{base}/handoffs/{from}/{to}");
    html! {
        @if !transcripts.is_empty() {
            h3 { "Transcripts" }
            ul.plain { @for file in transcripts.iter().rev().take(LISTED) { li { a href=(format!("{base}/transcripts/{}", file.name)) { (file.name) } " " span.quiet { (size(file.size)) } } } }
        }
        @if rounds > 0 && files.has_checkpoints {
            p { a href=(format!("{base}/changes?of={name}")) { "What it changed" } }
        }
        @if !out.is_empty() || !inside.is_empty() {
            h3 { "Handoffs" }
            ul.plain {
                @for handoff in inside.iter().take(LISTED) { li { "from " a href=(link(&handoff.from, &handoff.to)) { (handoff.from) } " " span.quiet { (size(handoff.size)) } } }
                @for handoff in out.iter().take(LISTED) { li { "to " a href=(link(&handoff.from, &handoff.to)) { (handoff.to) } " " span.quiet { (size(handoff.size)) } } }
            }
        }
        @if !logs.is_empty() {
            h3 { "Logs" }
            ul.plain { @for log in logs.iter().rev().take(LISTED) { li { a href=(format!("{base}/logs/{}", log.name)) { (log.name) } " " span.quiet { (size(log.size)) } } } }
        }
    }
}

/// Last lines of the newest log of a phase.
pub(super) struct LogTail {
    name: String,
    text: String,
    /// Offset of the byte after them.
    end: u64,
    grows: bool,
}

/// Reads the last lines of the newest log of a phase. `None` if it has no log, or an empty one.
pub(super) async fn tail(core: &Core, run: &Run, phase: &Value, files: &RunFiles) -> Option<LogTail> {
    const BYTES: i64 = 8 << 10;
    const LINES: usize = 20;
    let name = phase["name"].as_str()?;
    let is_own = |log: &&cliq_web::LogFile| {
        log.name.strip_prefix(name).is_some_and(|rest| rest.starts_with('.')) && log.size > 0
    };
    let log = files.logs.iter().rev().find(is_own)?.name.clone();
    let read = {
        let log = log.clone();
        core.in_project(run, move |run, _| read_log(run, &log, -BYTES, BYTES.unsigned_abs())).await
    };
    let (bytes, from, _) = read.ok()?;
    let all = shown(&bytes);
    let lines: Vec<&str> = all.lines().collect();
    let text = lines[lines.len().saturating_sub(LINES)..].join("\n") + "\n";
    let grows = phase["status"] == "running" && !run.life.state.is_final();
    Some(LogTail { name: log, text, end: from + bytes.len() as u64, grows })
}

impl LogTail {
    fn render(&self, run: &Run) -> Markup {
        let url = format!("/api/v1/runs/{}/logs/{}", run.id, self.name);
        html! {
            h3 { "Log" }
            p.quiet { "The last lines of " a href=(format!("/runs/{}/logs/{}", run.id, self.name)) { (self.name) } }
            pre.log tabindex="0" role="region" aria-label="Last lines of the log" data-tail=[self.grows.then_some(&url)] data-offset=(self.end) { (self.text) }
        }
    }
}
