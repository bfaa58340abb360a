//! A handoff, readable.

use std::sync::Arc;

use axum::extract::State;
use cliq_protocol::Limited;
use maud::{Markup, html};
use serde_json::Value;

use crate::elements::{badge, output};
use crate::markdown;
use crate::page::{Page, show};
use crate::runs::short;
use crate::text::shown;
use crate::visitor::Visitor;
use cliq_web::Core;
use cliq_web::{Path, read_handoff};

/// The most bytes of a part that are shown.
const MAX_PART: usize = 60_000;

/// The page of a handoff.
pub(super) async fn page(
    visitor: Visitor,
    State(core): State<Arc<Core>>,
    Path((id, from, to)): Path<(String, String, String)>,
) -> Page {
    let run = core.run(&id).await?;
    let ends = (from.clone(), to.clone());
    let text = core.in_project(&run, move |run, _| read_handoff(run, &ends.0, &ends.1)).await?;
    let value: Value = cliq_protocol::lenient_json(text.as_bytes()).unwrap_or_default();
    let url = format!("/api/v1/runs/{id}/handoffs/{from}/{to}");
    let content = html! {
        h1 { (from) " → " (to) }
        p { a href=(format!("/runs/{id}")) { (run.team) " " (short(&id)) } " · " a href=(url) { "as JSON" } }
        @if let Ok(limited) = Limited::read(value["limited"].clone(), "limited") {
            p.warning { strong { "Partial: stopped at " (shown(limited.to_string().as_bytes())) } }
        }
        (verdict(&value))
        @if let Some(text) = value["text"].as_str() {
            div.prose.card { (markdown::render(&shown(cut(text).as_bytes()))) }
        }
        (checks(&value["data"]["checks"]))
        @for (title, part) in parts(&value) {
            h2 { (title) }
            (output(&title, &shown(cut(&format!("{part:#}")).as_bytes())))
        }
        @if value.is_null() { (output("Handoff", &shown(cut(&text).as_bytes()))) }
    };
    show(&visitor, &format!("{from} to {to}"), "", &content)
}

/// Renders the verdict of a gate, if the handoff contains one.
fn verdict(value: &Value) -> Markup {
    let data = &value["data"];
    let part = |key: &str| data["verdict"][key].as_str().unwrap_or_default();
    let outcome = data["verdict"].as_str().unwrap_or_else(|| part("outcome"));
    let target = if part("target").is_empty() { String::new() } else { format!(" to {}", part("target")) };
    let (round, rounds) = (data["iteration"].as_u64(), data["max_iterations"].as_u64());
    html! {
        @if !outcome.is_empty() {
            p.warning {
                strong { (shown(outcome.as_bytes())) (shown(target.as_bytes())) }
                @if let (Some(round), Some(rounds)) = (round, rounds) { " in evaluation " (round) " of " (rounds) }
                @if !part("reason").is_empty() { ": " (shown(part("reason").as_bytes())) }
            }
        }
    }
}

/// The commands of a gate: those that failed with their output.
fn checks(checks: &Value) -> Markup {
    let checks = checks.as_array().map(Vec::as_slice).unwrap_or_default();
    html! {
        @if !checks.is_empty() { h2 { "Checks" } }
        @for check in checks {
            @let name = check["name"].as_str().or(check["run"].as_str()).unwrap_or("command");
            @let passed = check["pass"] == true;
            @let said = check["output_tail"].as_str().unwrap_or_default();
            h3 {
                @if passed { (badge("completed")) } @else { (badge("failed")) }
                " " (shown(name.as_bytes()))
                @if let Some(code) = check["exit_code"].as_i64().filter(|code| *code != 0) { span.quiet { " exit status " (code) } }
            }
            @if !said.is_empty() { (output(name, &shown(cut(said).as_bytes()))) }
        }
    }
}

/// Everything else that the handoff has.
fn parts(value: &Value) -> Vec<(String, Value)> {
    let mut data = value["data"].clone();
    if let Some(fields) = data.as_object_mut() {
        fields.remove("checks");
    }
    let rest = ["artifacts", "history"].map(|key| (key.to_owned(), value[key].clone()));
    [("data".to_owned(), data)].into_iter().chain(rest).filter(|(_, part)| !is_empty(part)).collect()
}

fn is_empty(value: &Value) -> bool {
    value.is_null()
        || value.as_array().is_some_and(Vec::is_empty)
        || value.as_object().is_some_and(serde_json::Map::is_empty)
}

fn cut(text: &str) -> String {
    let mut end = MAX_PART.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let more = text.len() - end;
    if more == 0 {
        text.to_owned()
    } else {
        format!("{}\n… {more} more bytes: the JSON has all", &text[..end])
    }
}
