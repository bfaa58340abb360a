//! A log: its last lines, which grow while the run goes on, any other part, and the lines that contain a text or an error.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderName;
use axum::response::{Html, IntoResponse, Response};
use cliq_web::{Core, LogLine, LogPlace, Path, Query, find_lines, is_error_line, read_lines};
use maud::{Markup, html};
use serde::Deserialize;

use crate::ansi;
use crate::elements::{count, size};
use crate::page::{PageError, show};
use crate::runs::short;
use crate::visitor::Visitor;

/// Part of a log, as in the address.
#[derive(Debug, Default, Deserialize)]
pub(super) struct LogQuery {
    /// Number of a line that is to be shown.
    line: Option<u64>,
    /// Text that lines must contain.
    q: Option<String>,
    /// Whether lines that report an error are listed.
    #[serde(default)]
    errors: bool,
    /// Offset from which new lines are wanted, without the page around them.
    after: Option<u64>,
}

/// The page of a log, or its new lines.
pub(super) async fn page(
    visitor: Visitor,
    State(core): State<Arc<Core>>,
    Path((id, name)): Path<(String, String)>,
    Query(query): Query<LogQuery>,
) -> Result<Response, PageError> {
    let run = core.run(&id).await?;
    let is_final = run.life.state.is_final();
    let base = format!("/runs/{id}/logs/{name}");
    if let Some(offset) = query.after {
        let (log, line) = (name.clone(), query.line.unwrap_or(1));
        let place = LogPlace::After { offset, line };
        let part = core.in_project(&run, move |run, _| read_lines(run, &log, place, is_final)).await?;
        let headers = [
            (HeaderName::from_static("x-next-offset"), part.end.to_string()),
            (HeaderName::from_static("x-next-line"), part.next.to_string()),
        ];
        return Ok((headers, Html(rows(&part.lines).into_string())).into_response());
    }
    let text = query.q.as_deref().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
    let api = format!("/api/v1{base}");
    let body = if text.is_some() || query.errors {
        let (log, wanted) = (name.clone(), text.clone());
        let found = core.in_project(&run, move |run, _| find_lines(run, &log, wanted.as_deref())).await?;
        html! {
            p {
                (count(found.count)) @if found.count == 1 { " line " } @else { " lines " }
                @match &text { Some(text) => { "with " code { (text) } }, None => "that report an error" }
                @if found.count > found.lines.len() as u64 { "; the first " (found.lines.len()) " are shown" }
            }
            pre.log.lines tabindex="0" role="region" aria-label="Lines" {
                @for line in &found.lines { (row(line, &format!("{base}?line={}#L{}", line.number, line.number))) }
            }
        }
    } else {
        let log = name.clone();
        let place = query.line.map_or(LogPlace::End, LogPlace::Line);
        let part = core.in_project(&run, move |run, _| read_lines(run, &log, place, is_final)).await?;
        let first = part.lines.first().map_or(1, |line| line.number);
        let is_end = part.end >= part.size || query.line.is_none();
        html! {
            p.actions {
                span.quiet { (size(part.size)) @if let Some(last) = part.lines.last() { ", lines " (first) " to " (last.number) } }
                @if first > 1 { a href=(format!("{base}?line=1")) { "Beginning" } a href=(format!("{base}?line={}", first.saturating_sub(500).max(1))) { "Before" } }
                @if !is_end { a href=(format!("{base}?line={}", part.next + 10)) { "After" } a href=(base) { "End" } }
                @if is_end && !is_final { label { input #follow type="checkbox" checked; " Follow" } }
            }
            pre.log.lines #log tabindex="0" role="region" aria-label="Log" data-log=[(is_end && !is_final).then_some(&base)] data-offset=(part.end) data-line=(part.next) {
                (rows(&part.lines))
            }
        }
    };
    let content = html! {
        h1 { (name) }
        p { a href=(format!("/runs/{id}")) { (run.team) " " (short(&id)) } " · " a href=(format!("/runs/{id}/logs")) { "all logs" } " · " a href=(api) { "as text" } }
        form.bar method="get" action=(base) role="search" aria-label="Search the log" {
            div.field.wide { label for="q" { "Lines with" } input #q type="search" name="q" value=(text.as_deref().unwrap_or_default()); }
            button type="submit" { "Find" }
            a.button href=(format!("{base}?errors=true")) { "Errors" }
            button #next-error type="button" hidden { "Next error" }
            @if text.is_some() || query.errors || query.line.is_some() { a.button.ghost href=(base) { "Whole log" } }
        }
        (body)
    };
    Ok(show(&visitor, &name, "", &content)?.into_response())
}

fn rows(lines: &[LogLine]) -> Markup {
    html! { @for line in lines { (row(line, &format!("#L{}", line.number))) } }
}

/// A line with its number, which is an address of its own.
fn row(line: &LogLine, address: &str) -> Markup {
    let is_error = is_error_line(&line.bytes);
    html! {
        span.line id=(format!("L{}", line.number)) data-error[is_error] {
            a href=(address) data-n=(line.number) aria-label=(format!("Line {}", line.number)) {}
            span { (ansi::colored(&line.bytes)) }
            "\n"
        }
    }
}
