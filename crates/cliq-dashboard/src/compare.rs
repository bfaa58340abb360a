//! Two runs side by side.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::response::{Html, IntoResponse, Response};
use cliq_project::Project;
use cliq_review::{Diff, FileDiff};
use cliq_web::{Core, Problem, RunDocument, file_difference, file_differences, find_run};
use maud::{Markup, html};
use serde_json::Value;

use crate::diff::{DiffQuery, Viewer};
use crate::elements::{badge, count, empty, folded, is_estimated, state, took, usage};
use crate::page::{PageError, show};
use crate::text::shown;
use crate::visitor::Visitor;
use cliq_model::Run;

type Side = (Run, RunDocument);

/// The page. Takes two `id`s.
pub(super) async fn page(
    visitor: Visitor,
    State(core): State<Arc<Core>>,
    RawQuery(query): RawQuery,
) -> Result<Response, PageError> {
    let query = query.unwrap_or_default();
    let fields: Vec<(String, String)> = serde_urlencoded::from_str(&query).unwrap_or_default();
    let value = |name: &str| fields.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());
    let diff =
        DiffQuery { view: value("view"), file: value("file"), part: value("part"), ..DiffQuery::default() };
    let ids: Vec<&String> = fields.iter().filter(|(key, _)| key == "id").map(|(_, id)| id).collect();
    let [a, b] = ids.as_slice() else {
        return Err(Problem::bad_request("choose two runs to compare").into());
    };
    let (a, b) = (find_run(&core, a).await?, find_run(&core, b).await?);
    let address = format!(
        "/compare?{}",
        serde_urlencoded::to_string([("id", &a.0.id), ("id", &b.0.id)]).unwrap_or_default()
    );
    let viewer = Viewer::new(address, &diff, &[], None);
    if let Some(path) = diff.file_part().map(str::to_owned) {
        let file = file_of(&core, &a.0, &b.0, path.clone()).await?;
        return Ok(Html(viewer.lines(&path, &file).into_string()).into_response());
    }
    let files = files(&core, &a.0, &b.0, diff.file.clone()).await;
    let content = html! {
        h1 { "Compare" }
        (whole(&a, &b))
        h2 { "Phases" }
        (phases(&a.1.phases, &b.1.phases))
        @if let Some(files) = files {
            section #changes aria-labelledby="changes-title" {
                h2 #changes-title { "Files" }
                @match files {
                    Ok(diffs) if diffs.is_empty() => p.quiet { "The files at the end of both runs are the same." },
                    Ok(diffs) => { p.hint { "From the end of the first run to the end of the second." } (viewer.render(&diffs, 0)) }
                    Err(why) => (empty(&why)),
                }
            }
        }
    };
    Ok(show(&visitor, "Compare", "/", &content)?.into_response())
}

/// Returns the files that differ at the ends of two runs of one workspace, or why that cannot be said. `None` for runs of two workspaces.
async fn files(core: &Core, a: &Run, b: &Run, chosen: Option<String>) -> Option<Result<Vec<Diff>, String>> {
    if a.workspace != b.workspace {
        return None;
    }
    let (from, to) = (a.id.clone(), b.id.clone());
    let read = move |_: &Run, project: &Project| {
        let mut diffs = file_differences(project, &from, &to)?;
        if let Some(path) = chosen {
            for diff in &mut diffs {
                let found =
                    diff.files.iter().position(|file| diff.path_of(file) == path && file.hunks.is_empty());
                if let Some(file) = found.and_then(|n| diff.files.get_mut(n)) {
                    *file = file_difference(project, &from, &to, &path)?;
                }
            }
        }
        Ok(diffs)
    };
    Some(core.in_project(a, read).await.map_err(|problem| problem.detail))
}

async fn file_of(core: &Core, a: &Run, b: &Run, path: String) -> Result<FileDiff, Problem> {
    let (from, to) = (a.id.clone(), b.id.clone());
    if a.workspace != b.workspace {
        return Err(Problem::not_found("the runs have no workspace in common"));
    }
    core.in_project(a, move |_: &Run, project: &Project| file_difference(project, &from, &to, &path)).await
}

fn whole(a: &Side, b: &Side) -> Markup {
    let row = |name: &str, cell: &dyn Fn(&Side) -> Markup| {
        html! { tr { th scope="row" { (name) } td data-label="first" { (cell(a)) } td data-label="second" { (cell(b)) } } }
    };
    html! {
        div.scroll.prose tabindex="0" role="region" aria-label="Runs" {
            table {
                thead { tr { th { "Run" } @for (run, _) in [a, b] { th { a href=(format!("/runs/{}", run.id)) { (shown(run.title.as_bytes())) } } } } }
                tbody {
                    (row("Team", &|side| html! { (side.0.team) }))
                    (row("State", &|side| state(side.0.life.state, &side.1.summary.caveats)))
                    (row("Asked for", &|side| html! { (side.0.queued_at) " by " (side.0.caller) }))
                    (row("Took", &|side| html! { (took(side.0.started_at, side.0.ended_at)) }))
                    (row("Used", &|side| html! { (usage(&side.0.totals)) }))
                    (row("Reason", &|side| html! { @if let Some(reason) = &side.0.reason { (folded(reason)) } @else { "–" } }))
                    (row("Requirement", &|side| html! { (folded(side.1.requirement.as_deref().unwrap_or("–"))) }))
                    (row("Inputs", &|side| html! {
                        @if side.1.inputs.is_empty() { "–" }
                        @for (key, value) in &side.1.inputs { div { (key) "=" (shown(value.as_bytes())) } }
                    }))
                }
            }
        }
    }
}

fn phases(a: &Value, b: &Value) -> Markup {
    let mut rows: BTreeMap<&str, [Option<&Value>; 2]> = BTreeMap::new();
    let mut order = Vec::new();
    for (side, phases) in [a, b].into_iter().enumerate() {
        for phase in phases.as_array().into_iter().flatten() {
            let name = phase["name"].as_str().unwrap_or_default();
            let row = rows.entry(name).or_insert_with(|| {
                order.push(name);
                [None, None]
            });
            row[side] = Some(phase);
        }
    }
    html! {
        div.scroll.prose tabindex="0" role="region" aria-label="Phases" {
            table {
                thead { tr { th { "Phase" } th { "First" } th { "Second" } th { "Difference" } } }
                tbody {
                    @for name in order {
                        @let [a, b] = rows[name];
                        tr { th scope="row" { (name) } td { (cell(a)) } td { (cell(b)) } td.number { (difference(a, b)) } }
                    }
                }
            }
        }
    }
}

fn cell(phase: Option<&Value>) -> Markup {
    let Some(phase) = phase else { return html! { "–" } };
    let tokens = |key: &str| phase["usage"][key].as_u64().unwrap_or(0);
    let used = tokens("tokens_in") + tokens("tokens_out");
    html! {
        (badge(phase["status"].as_str().unwrap_or_default())) " "
        (cliq_project::internals::duration(phase["duration_ms"].as_i64().unwrap_or(0)))
        @let rounds = phase["iterations"].as_u64().unwrap_or(0);
        @if rounds > 1 { ", " (rounds) " rounds" }
        @if used > 0 { ", " @if is_estimated(&phase["usage"]) { "≈" } (count(used)) " tokens" }
        @if let Some(cost) = phase["usage"]["cost_usd"].as_f64() { ", $" (format!("{cost:.4}")) }
    }
}

/// The difference in time and cost, of the second from the first.
fn difference(a: Option<&Value>, b: Option<&Value>) -> String {
    let (Some(a), Some(b)) = (a, b) else { return "–".to_owned() };
    let millis = |phase: &Value| phase["duration_ms"].as_i64().unwrap_or(0);
    let change = millis(b) - millis(a);
    let sign = if change < 0 { "−" } else { "+" };
    let mut text = format!("{sign}{}", cliq_project::internals::duration(change.abs()));
    if let (Some(a), Some(b)) = (a["usage"]["cost_usd"].as_f64(), b["usage"]["cost_usd"].as_f64()) {
        let sign = if b < a { "−" } else { "+" };
        text = format!("{text}, {sign}${:.4}", (b - a).abs());
    }
    text
}
