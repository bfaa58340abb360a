//! `cliq runs`

use std::cmp::Reverse;
use std::process::ExitCode;

use cliq_protocol::Timestamp;
use cliq_terminal::{RunRow, RunStatus};
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use serde_json::{Value, json};

use super::terminal;
use crate::args::{RunsArgs, StateName};
use crate::failure::Failure;
use crate::render::{columns, short};
use crate::ui::{self, BOLD, CYAN, DIM, GREEN, RED, YELLOW, paint};

/// Width from which project and team are columns, and from which the cost is one.
const WIDE: usize = 76;
const WIDER: usize = 100;

pub(super) fn run(args: &RunsArgs) -> Result<ExitCode, Failure> {
    let machine = terminal::machine()?;
    let list = machine.list(usize::MAX);
    for problem in &list.problems {
        ui::warning(problem);
    }
    // A list that may lack runs is no success.
    let code = if list.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    let here = if args.here { Some(crate::project::open()?.dir().workspace().to_string()) } else { None };
    let words: Vec<String> = args.words.iter().map(|word| word.to_lowercase()).collect();
    let fits = |run: &RunRow| {
        let text = [&run.title, &run.team, &run.project, &run.id].map(|part| part.to_lowercase()).join("\n");
        words.iter().all(|word| text.contains(word))
            && (args.states.is_empty() || args.states.iter().any(|state| has_state(run, *state)))
            && here.as_ref().is_none_or(|here| *here == run.place)
    };
    let mut runs: Vec<&RunRow> = list.runs.iter().filter(|run| fits(run)).collect();
    runs.sort_by_key(|run| Reverse((run.started.map(Timestamp::unix_millis), run.id.clone())));
    let all = runs.len();
    runs.truncate(args.limit as usize);
    if args.json {
        let documents: Vec<Value> = runs.iter().map(|run| document(run)).collect();
        ui::json(&json!({"runs": documents, "count": all, "problems": list.problems}))?;
        return Ok(code);
    }
    if runs.is_empty() {
        match (list.runs.is_empty(), list.problems.is_empty()) {
            (true, true) => ui::line("no runs yet")?,
            (true, false) => {}
            (false, _) => ui::line("no run fits")?,
        }
        return Ok(code);
    }
    print(&runs, &list.runs)?;
    if runs.len() < all {
        ui::hint(&format!("{} more: `-n {all}` shows all, words and `--state` filter", all - runs.len()));
    }
    Ok(code)
}

fn needs_you(run: &RunRow) -> bool {
    run.needs.is_some() && run.status.is_active()
}

fn has_state(run: &RunRow, state: StateName) -> bool {
    match state {
        StateName::NeedsYou => needs_you(run),
        StateName::Queued => run.status == RunStatus::Queued,
        StateName::Running => run.status == RunStatus::Working,
        StateName::Waiting => run.status == RunStatus::Parked,
        StateName::Interrupted => run.status == RunStatus::Interrupted,
        StateName::Completed => {
            matches!(run.status, RunStatus::Completed | RunStatus::CompletedWithCaveats)
        }
        StateName::Escalated => run.status == RunStatus::Escalated,
        StateName::Failed => run.status == RunStatus::Failed,
        StateName::Cancelled => run.status == RunStatus::Cancelled,
    }
}

/// Word of a state, as in `cliq status --json` and the API.
fn word(status: RunStatus) -> &'static str {
    match status {
        RunStatus::Queued => "queued",
        RunStatus::Working => "running",
        RunStatus::Parked => "waiting",
        RunStatus::Interrupted => "interrupted",
        RunStatus::Completed | RunStatus::CompletedWithCaveats => "completed",
        RunStatus::Escalated => "escalated",
        RunStatus::Failed => "failed",
        RunStatus::Cancelled => "cancelled",
    }
}

/// A run as programs read it (docs/terminal.md).
fn document(run: &RunRow) -> Value {
    json!({
        "id": run.id,
        "title": run.title,
        "team": run.team,
        "project": if run.place.is_empty() { Value::Null } else { run.place.as_str().into() },
        "state": word(run.status),
        "needs": run.needs.as_ref().filter(|_| needs_you(run)),
        "has_caveats": run.status == RunStatus::CompletedWithCaveats,
        "phases_done": run.done,
        "phases_all": run.all,
        "started_at": run.started,
        "ended_at": run.ended,
        "tokens": run.tokens,
        "cost_usd": run.usd,
        "changed": run.changed,
        "is_last": run.is_last,
        "is_on_server": run.is_on_server,
    })
}

fn print(runs: &[&RunRow], all: &[RunRow]) -> std::io::Result<()> {
    let now = cliq_fs::now();
    let columns = columns();
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    let mut header = vec!["RUN", "STATE", "PHASES", "TIME"];
    if columns >= WIDER {
        header.push("COST");
    }
    if columns >= WIDE {
        header.push("PROJECT");
    }
    header.push("TITLE");
    let last = header.len() - 1;
    table.set_header(header);
    for run in runs {
        let took = run
            .started
            .map(|started| ui::duration(run.ended.unwrap_or(now).unix_millis() - started.unix_millis()));
        let state = match run.status {
            _ if needs_you(run) => "needs you",
            RunStatus::CompletedWithCaveats => "caveats",
            status => word(status),
        };
        let phases = if run.all > 0 { format!("{}/{}", run.done, run.all) } else { String::new() };
        let mut cells = vec![run.id.clone(), state.to_owned(), phases, took.unwrap_or_default()];
        if columns >= WIDER {
            cells.push(run.usd.map(|usd| format!("${usd:.2}")).unwrap_or_default());
        }
        if columns >= WIDE {
            cells.push(short(&run.project, 18));
        }
        cells.push(run.title.clone());
        cells[0] = short_id(all, &run.id);
        cells[last] = ui::plain(&cells[last]);
        table.add_row(cells);
    }
    for column in [2, 3] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    for (n, line) in table.lines().enumerate() {
        let style = match n.checked_sub(1).and_then(|n| runs.get(n)) {
            None => BOLD,
            Some(run) if needs_you(run) => YELLOW,
            Some(run) => match run.status {
                RunStatus::Queued => DIM,
                RunStatus::Working => CYAN,
                RunStatus::Completed => GREEN,
                RunStatus::Parked
                | RunStatus::Interrupted
                | RunStatus::Cancelled
                | RunStatus::CompletedWithCaveats => YELLOW,
                RunStatus::Escalated | RunStatus::Failed => RED,
            },
        };
        ui::line(paint(style, short(line.trim_end(), columns)))?;
    }
    Ok(())
}

/// Beginning of an id that no other run has: at least eight characters.
fn short_id(runs: &[RunRow], id: &str) -> String {
    let is_unique = |length: &usize| {
        let begin = id.get(..*length).unwrap_or(id);
        runs.iter().filter(|run| run.id.starts_with(begin)).count() <= 1
    };
    let length = (8..id.len()).find(is_unique).unwrap_or(id.len());
    id.get(..length).unwrap_or(id).to_owned()
}
