//! All runs: search and filters in the address, newest first.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::Redirect;
use cliq_model::{RunCursor, RunFilter, RunState, Scope};
use cliq_protocol::RunId;
use cliq_review::{ReviewFilter, Reviews as _};
use maud::{Markup, html};
use serde::Deserialize;

use crate::elements::{ago, empty, state, took, usage};
use crate::page::{Page, PageError, show};
use crate::text::shown;
use crate::views::Views;
use crate::visitor::Visitor;
use cliq_supervisor::internals::clock;
use cliq_web::Core;
use cliq_web::{Form, Problem, Query, RunSummary, list_runs};

const PAGE: u32 = 50;
/// Maximum number of characters of what a run does now.
const LINE: usize = 300;
/// Spans of time that can be chosen, in hours.
const SPANS: [(&str, &str, u64); 4] = [
    ("1h", "last hour", 1),
    ("1d", "last day", 24),
    ("7d", "last 7 days", 168),
    ("30d", "last 30 days", 720),
];

/// Filters of the list, as in the address.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Filters {
    #[serde(default)]
    q: String,
    #[serde(default)]
    state: String,
    #[serde(default)]
    team: String,
    #[serde(default)]
    project: String,
    #[serde(default)]
    caller: String,
    #[serde(default)]
    within: String,
    cursor: Option<String>,
}

impl Filters {
    fn to_filter(&self) -> RunFilter {
        let given = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        let hours = SPANS.iter().find(|(word, ..)| *word == self.within).map(|(.., hours)| *hours);
        RunFilter {
            with_trials: false,
            states: RunState::parse(&self.state).into_iter().collect(),
            team: given(&self.team),
            instance: given(&self.project),
            caller: given(&self.caller),
            since: hours.map(|hours| clock::ago(Duration::from_secs(hours * 3600))),
            until: None,
            words: RunFilter::words_of(&self.q),
            after: self.cursor.as_deref().and_then(RunId::parse_uuid).map(RunCursor),
            limit: PAGE,
        }
    }

    /// Returns the address with one field changed. The cursor goes: it is a place in another list.
    fn link(&self, changed: &str, value: &str) -> String {
        let fields = [
            ("q", self.q.trim()),
            ("state", &self.state),
            ("team", self.team.trim()),
            ("project", &self.project),
            ("caller", self.caller.trim()),
            ("within", &self.within),
            ("cursor", ""),
        ];
        let mut fields = fields.map(|(name, now)| (name, if name == changed { value } else { now })).to_vec();
        fields.retain(|(_, value)| !value.is_empty());
        format!("/runs?{}", serde_urlencoded::to_string(fields).unwrap_or_default())
    }

    /// Address of the list with these filters.
    fn address(&self) -> String {
        if self.is_any() { self.link("state", &self.state) } else { "/runs".to_owned() }
    }

    fn is_any(&self) -> bool {
        self.has_more() || [&self.q, &self.state].iter().any(|text| !text.trim().is_empty())
    }

    fn has_more(&self) -> bool {
        [&self.team, &self.project, &self.caller, &self.within].iter().any(|text| !text.trim().is_empty())
    }
}

/// The list of runs.
pub(super) async fn page(
    visitor: Visitor,
    State(core): State<Arc<Core>>,
    Query(filters): Query<Filters>,
    views: Views,
) -> Page {
    let live = crate::live::address(&core);
    let (runs, next) = list_runs(&core, filters.to_filter()).await?;
    let counts = core.runs.counts().await?;
    let all: u64 = counts.iter().map(|(_, n)| n).sum();
    let instances = core.runs.instances().await?;
    let awaited = awaited(&core, &runs).await?;
    let words = words_of(&core, &runs);
    let content = html! {
        div.headline {
        h1 { "Runs" }
        nav.filters #counts data-live aria-label="Filter by state" {
            a href=(filters.link("state", "")) aria-current=[filters.state.is_empty().then_some("true")] { "all " span.n { (all) } }
            @for (state, n) in counts.iter().filter(|(state, n)| *n > 0 || state.as_str() == filters.state) {
                a href=(filters.link("state", state.as_str())) aria-current=[(state.as_str() == filters.state).then_some("true")] {
                    (state.as_str()) " " span.n { (n) }
                }
            }
        }
        }
        form.bar method="get" action="/runs" role="search" aria-label="Search runs" {
            input type="hidden" name="state" value=(filters.state);
            div.field.wide {
                label for="q" { "Search" }
                input #q type="search" name="q" value=(filters.q) placeholder="title, team, reason or id";
            }
            button type="submit" { "Search" }
            @if filters.is_any() { a.button.ghost href="/runs" { "Clear" } }
            details.more open[filters.has_more()] {
            summary { "More filters" }
            div.bar {
            div.field { label for="team" { "Team" } input #team name="team" value=(filters.team) placeholder="@scope/name"; }
            div.field {
                label for="project" { "Project" }
                select #project name="project" {
                    option value="" { "any" }
                    @for instance in &instances {
                        option value=(instance.id) selected[instance.id == filters.project] { (instance.path.file_name().unwrap_or(instance.path.as_str())) }
                    }
                }
            }
            div.field { label for="caller" { "Caller" } input #caller name="caller" value=(filters.caller); }
            div.field {
                label for="within" { "Time" }
                select #within name="within" {
                    option value="" { "any" }
                    @for (word, text, _) in SPANS { option value=(word) selected[word == filters.within] { (text) } }
                }
            }
            button type="submit" { "Filter" }
            }
            }
        }
        (views.render(&filters.address()))
        form method="post" action="/runs/cancel" {
            div #runs data-live { (table(&runs, &words, &awaited, filters.is_any())) }
            @if !runs.is_empty() {
                p.actions {
                    button type="submit" formmethod="get" formaction="/compare" { "Compare two" }
                    @if visitor.may_run() { button.danger type="submit" { "Cancel selected runs" } }
                }
            }
        }
        @if let Some(next) = next { p { a.button rel="next" href=(filters.link("cursor", &next)) { "Older runs" } } }
    };
    show(&visitor, "Runs", "/runs", &html! { div data-changes=(live) { (content) } })
}

/// Reviewers who are waited for, by the id of the run.
async fn awaited(core: &Core, runs: &[RunSummary]) -> Result<HashMap<RunId, Vec<String>>, Problem> {
    if runs.iter().all(|run| run.state.is_final()) {
        return Ok(HashMap::new());
    }
    let filter = ReviewFilter { pending: true, limit: 1000, ..ReviewFilter::default() };
    let mut awaited = HashMap::<RunId, Vec<String>>::new();
    for review in core.reviews.list(&filter).await.map_err(Problem::from)? {
        let names = awaited.entry(review.run_id.clone()).or_default();
        names.extend(review.waits_for().into_iter().map(str::to_owned));
    }
    Ok(awaited)
}

fn table(
    runs: &[RunSummary],
    words: &HashMap<RunId, String>,
    awaited: &HashMap<RunId, Vec<String>>,
    is_filtered: bool,
) -> Markup {
    if runs.is_empty() {
        return empty(if is_filtered {
            "No run fits. “Clear” shows all."
        } else {
            "No runs yet. “New run” starts one; runs of registered projects are shown too."
        });
    }
    html! {
        table.runs {
            thead { tr { th { "Run" } th { "State" } th { "Now" } th { "Phases" } th { "Asked for" } th.number { "Took" } th.number { "Used" } } }
            tbody {
                @for run in runs {
                    @let now = now_of(run, words, awaited);
                    tr {
                        td.title { div.choice {
                            input type="checkbox" name="id" value=(run.id) aria-label=(format!("Select {}", run.title));
                            a.strong href=(format!("/runs/{}", run.id)) title=(shown(run.title.as_bytes())) { (shown(run.title.as_bytes())) }
                            span.quiet { (run.team) }
                        } }
                        td { (state(run.state, &run.caveats)) }
                        td.why title=(now) { (now) }
                        td data-label="phases" { @if run.phases_all > 0 { (run.phases_done) "/" (run.phases_all) } }
                        td { (ago(run.queued_at)) " by " (run.caller) }
                        td.number data-label="took" { (took(run.started_at, run.ended_at)) }
                        td.number data-label="used" { (usage(&run.usage)) }
                    }
                }
            }
        }
    }
}

/// Line about a run: the words of its agent, the reviewers that it waits for, or the reason of its end.
fn now_of(run: &RunSummary, words: &HashMap<RunId, String>, awaited: &HashMap<RunId, Vec<String>>) -> String {
    if run.state.is_final() {
        let reason = run.reason.as_deref().unwrap_or_default();
        let text = match &run.phase {
            Some(phase) if !reason.is_empty() => format!("{phase}: {reason}"),
            _ => reason.to_owned(),
        };
        return shown(text.as_bytes())
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .chars()
            .take(LINE)
            .collect();
    }
    match awaited.get(&run.id) {
        Some(names) => format!("waits for {}", shown(names.join(", ").as_bytes())),
        None => words.get(&run.id).map(|words| shown(words.as_bytes())).unwrap_or_default(),
    }
}

/// Words of the runs that work here: of the first phase at work of each.
fn words_of(core: &Core, runs: &[RunSummary]) -> HashMap<RunId, String> {
    let hub = core.supervisor.hub();
    let of = |run: &RunSummary| {
        let words = hub.words(&run.id);
        let (phase, words) = words.iter().next()?;
        Some((run.id.clone(), format!("{phase}: {}", words.text)))
    };
    runs.iter().filter(|run| !run.state.is_final()).filter_map(of).collect()
}

/// Cancels the selected runs. Those that have ended meanwhile stay as they are.
pub(super) async fn cancel(
    visitor: Visitor,
    State(core): State<Arc<Core>>,
    form: Form,
) -> Result<Redirect, PageError> {
    let caller = visitor.demand(Scope::Run)?;
    let ids = form.0.iter().filter(|(key, _)| key == "id").map(|(_, id)| id);
    for id in ids {
        let run = core.run(id).await?;
        if !run.life.state.is_final() {
            let cancelled = core.supervisor.cancel(&run.id, &caller.label).await;
            cancelled.map_err(|error| Problem::of_change(error, "cancelled"))?;
        }
    }
    Ok(Redirect::to("/runs"))
}

/// The end of an id, which is its random part.
pub(super) fn short(id: &str) -> &str {
    id.rsplit('-').next().unwrap_or(id)
}
