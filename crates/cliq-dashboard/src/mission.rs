//! Mission control, the first page: which runs need a person, which work, which are done today.

mod act;
mod boards;
mod card;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use cliq_model::{RunFilter, RunState, RunTotals};
use cliq_protocol::{RunId, Timestamp};
use cliq_review::{Review, ReviewFilter, Reviews as _};
use cliq_web::{Core, Problem, Query, RunSummary, list_runs};
use maud::{Markup, html};
use serde::Deserialize;

pub(super) use act::{answer_form, run_forms};
pub(super) use boards::{Boards, forget_after_changes};
use card::{Card, Column, Work};

use crate::elements::{count, empty};
use crate::page::{Page, show};
use crate::views::Views;
use crate::visitor::Visitor;

/// Maximum number of active runs that are shown.
const ACTIVE: u32 = 300;
/// Maximum number of runs that have ended and are looked at.
const ENDED: u32 = 300;
/// Maximum number of cards of a column.
const CARDS: usize = 200;
/// Maximum number of cards of runs that are done.
const DONE: usize = 40;

/// Filters, as in the address.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Filters {
    #[serde(default)]
    team: String,
    #[serde(default)]
    project: String,
}

/// Runs of the page.
struct Board {
    needs: Vec<Card>,
    working: Vec<Card>,
    done: Vec<Card>,
    /// Number of runs that ended today, by state.
    ended: BTreeMap<&'static str, usize>,
    teams: Vec<String>,
    /// Whether more runs are at work than are shown.
    has_more: bool,
}

/// The page.
pub(super) async fn page(
    visitor: Visitor,
    State(core): State<Arc<Core>>,
    Query(filters): Query<Filters>,
    views: Views,
    Extension(boards): Extension<Arc<Boards>>,
) -> Page {
    let rendered = boards.rendered(&core, &filters).await?;
    let needs = rendered.needs;
    let title = if needs > 0 { format!("({needs}) Mission control") } else { "Mission control".to_owned() };
    let content = html! {
        (rendered.head)
        (views.render(&address_of("/", &filters)))
        (rendered.columns)
    };
    show(
        &visitor,
        &title,
        "/",
        &html! { div data-changes=(crate::live::since(rendered.changes)) data-needs=(needs) { (content) } },
    )
}

/// Parts of the page that are the same for all visitors.
struct Rendered {
    /// Number of changes of runs before the page was made.
    changes: u64,
    /// Number of runs that need a person.
    needs: usize,
    /// Title and filters.
    head: Markup,
    /// Sentence about today, and the columns.
    columns: Markup,
}

async fn render(core: &Arc<Core>, filters: &Filters) -> Result<Rendered, Problem> {
    let changes = *core.supervisor.hub().changes().borrow();
    let board = board(core, filters).await?;
    let today = cost_of_today(core).await?;
    let instances = core.runs.instances().await?;
    let is_filtered = !filters.team.is_empty() || !filters.project.is_empty();
    let head = html! {
        div.headline {
            h1 { "Mission control" }
            form.bar method="get" action="/" aria-label="Filter" {
                label.hidden for="project" { "Project" }
                select #project name="project" {
                    option value="" { "all projects" }
                    @for instance in &instances {
                        option value=(instance.id) selected[instance.id == filters.project] { (instance.path.file_name().unwrap_or(instance.path.as_str())) }
                    }
                }
                label.hidden for="team" { "Team" }
                select #team name="team" {
                    option value="" { "all teams" }
                    @for team in &board.teams { option selected[*team == filters.team] { (team) } }
                }
                button type="submit" { "Show" }
                @if is_filtered { a.button.ghost href="/" { "Clear" } }
                a.button href=(table_link(filters)) { "As a table" }
                button #notify type="button" hidden { "Notify me" }
            }
        }
    };
    let columns = html! {
        p.facts #today data-live {
            (today_line(&board, today))
            @if board.has_more { span { "more than " (ACTIVE) " runs are at work: " a href="/runs" { "all runs" } } }
        }
        div.board {
            (column(Column::Needs, &board.needs, "Nothing waits for you.", CARDS))
            (column(Column::Working, &board.working, "Nothing works. “New run” starts something.", CARDS))
            (column(Column::Done, &board.done, "Nothing ended today.", DONE))
        }
    };
    Ok(Rendered { changes, needs: board.needs.len(), head, columns })
}

fn table_link(filters: &Filters) -> String {
    address_of("/runs", filters)
}

fn address_of(page: &str, filters: &Filters) -> String {
    let mut fields = vec![("team", filters.team.as_str()), ("project", filters.project.as_str())];
    fields.retain(|(_, value)| !value.is_empty());
    if fields.is_empty() {
        return page.to_owned();
    }
    format!("{page}?{}", serde_urlencoded::to_string(fields).unwrap_or_default())
}

/// Sentence about today: answers what it cost.
fn today_line(board: &Board, used: RunTotals) -> Markup {
    html! {
        span { "Today: " strong { (board.ended.values().sum::<usize>()) } " runs ended" }
        @for (state, n) in &board.ended { span { (n) " " (state) } }
        @match used.cost_usd {
            Some(cost) => span { "cost " strong { "$" (format!("{cost:.2}")) } },
            None if used.tokens() == 0 => span { "cost " strong { "$0.00" } },
            None => span { "cost unknown" },
        }
        span { (count(used.tokens())) " tokens" }
        a href="/usage" { "Usage" }
    }
}

fn column(column: Column, cards: &[Card], none: &str, most: usize) -> Markup {
    let id = column.id();
    html! {
        section.column aria-labelledby=(format!("{id}-title")) {
            h2 #(format!("{id}-title")) { (column.title()) " " span.n id=(format!("{id}-count")) data-live { (cards.len()) } }
            div.cards id=(id) data-list {
                @if cards.is_empty() { div id=(format!("{id}-none")) { (empty(none)) } }
                @for card in cards.iter().take(most) { (card.render(column)) }
                @if cards.len() > most { p.quiet id=(format!("{id}-more")) { a href="/runs" { "All runs" } ": " (cards.len() - most) " more" } }
            }
        }
    }
}

/// Usage of today, by UTC.
async fn cost_of_today(core: &Core) -> Result<RunTotals, Problem> {
    let midnight = midnight();
    let day: String = midnight.to_string().chars().take(10).collect();
    let used = core.runs.usage(midnight).await?;
    let of_day = used.by_day().into_iter().find(|(name, ..)| *name == day);
    Ok(of_day.map(|(_, _, used)| used).unwrap_or_default())
}

/// Beginning of today, UTC.
fn midnight() -> Timestamp {
    let day: String = cliq_fs::now().to_string().chars().take(10).collect();
    Timestamp::parse(&format!("{day}T00:00:00Z")).unwrap_or_else(|_| cliq_fs::now())
}

async fn board(core: &Arc<Core>, filters: &Filters) -> Result<Board, Problem> {
    let given = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
    let filter = |states: &[RunState], limit: u32| RunFilter {
        states: states.to_vec(),
        team: given(&filters.team),
        instance: given(&filters.project),
        limit,
        ..RunFilter::default()
    };
    // Runs that wait are asked for alone: many at work must not hide one that needs a person.
    let (mut active, _) = list_runs(core, filter(&[RunState::Waiting], ACTIVE)).await?;
    let at_work = [RunState::Running, RunState::Starting, RunState::Queued];
    let (working, more) = list_runs(core, filter(&at_work, ACTIVE)).await?;
    active.extend(working);
    let ended = [RunState::Completed, RunState::Escalated, RunState::Failed, RunState::Cancelled];
    let (ended, _) = list_runs(core, filter(&ended, ENDED)).await?;
    let pending = ReviewFilter { pending: true, limit: 1000, ..ReviewFilter::default() };
    let reviews = core.reviews.list(&pending).await.map_err(Problem::from)?;
    let mut by_run: HashMap<RunId, Vec<Review>> = HashMap::new();
    for review in reviews {
        by_run.entry(review.run_id.clone()).or_default().push(review);
    }
    let mut teams: Vec<String> = active.iter().chain(&ended).map(|run| run.team.to_string()).collect();
    teams.sort();
    teams.dedup();
    let mut board = Board {
        needs: Vec::new(),
        working: Vec::new(),
        done: Vec::new(),
        ended: BTreeMap::new(),
        teams,
        has_more: more.is_some(),
    };
    for run in active {
        let reviews = by_run.remove(&run.id).unwrap_or_default();
        let card = Card::active(core, run, reviews).await;
        if card.reviews.is_empty() { &mut board.working } else { &mut board.needs }.push(card);
    }
    // Works first, queued last; of those at work the quiet ones first.
    board.working.sort_by_key(|card| (card.rank(), std::cmp::Reverse(card.quiet_ms())));
    let midnight = midnight();
    for run in ended.into_iter().filter(|run| run.ended_at.is_some_and(|at| at >= midnight)) {
        *board.ended.entry(run.state.as_str()).or_default() += 1;
        let needs = needs_a_person(run.state);
        let card = Card { run, work: Work::default(), reviews: Vec::new() };
        if needs { board.needs.push(card) } else { board.done.push(card) }
    }
    // Questions before runs that ended, and of each the oldest first: it has waited longest.
    board.needs.sort_by_key(|card| {
        let asked = card.reviews.iter().map(|review| review.created).min();
        (asked.is_none(), asked.or(card.run.ended_at))
    });
    board.done.sort_by_key(|card| std::cmp::Reverse(card.run.ended_at));
    Ok(board)
}

/// Whether a run that has ended needs a person: it neither completed nor was cancelled by one.
fn needs_a_person(state: RunState) -> bool {
    match state {
        RunState::Escalated | RunState::Failed => true,
        RunState::Completed
        | RunState::Cancelled
        | RunState::Queued
        | RunState::Starting
        | RunState::Running
        | RunState::Waiting => false,
    }
}

/// Whether an address is one of a page of this server, to which a form may lead back.
pub(super) fn is_way_back(path: &str) -> bool {
    path.starts_with('/') && !path.starts_with("//") && !path.contains(['\\', '\r', '\n'])
}

/// Link of a run.
fn link(run: &RunSummary) -> String {
    format!("/runs/{}", run.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_lead_back_to_this_server_only() {
        for (path, is_own) in [
            ("/", true),
            ("/?team=a", true),
            ("//evil.example", false),
            ("https://x", false),
            ("/\\evil", false),
            ("", false),
        ] {
            assert_eq!(is_way_back(path), is_own, "{path}");
        }
    }
}
