//! A run at its end, or as it stands: the table of phases, and for an escalation what to do next.
// A new outcome has to be handled by name.
#![deny(clippy::wildcard_enum_match_arm)]

use std::collections::BTreeSet;
use std::fmt::Write;
use std::io;

use cliq_fs::CliqDir;
use cliq_model::Caveat;
use cliq_orchestrator::internals::within_line;
use cliq_orchestrator::{PhaseStatus, PhaseView, PipelineStatus, RunView, SteeringView};
use cliq_project::{PhaseRow, Project, RunStatus};
use cliq_protocol::{CommandEnd, CommandResult, SteeringMessage, Timestamp};
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use serde_json::json;

use crate::render::usage;
use crate::reviews;
use crate::ui::{self, BOLD, DIM, GREEN, RED, YELLOW, paint};

/// Maximum length of the title of an item in characters.
const TITLE: usize = 40;
/// Maximum number of output lines quoted in a message.
const QUOTED_LINES: usize = 12;

/// Columns of the table by their numbers, in the order in which a narrow terminal leaves them out.
const LEFT_OUT: [usize; 4] = [2, 6, 4, 7];

/// The table of phases. On a terminal it is at most as wide as that.
pub(crate) fn table(view: &RunView, project: &Project, now: Timestamp) -> String {
    let rows = RunStatus::new(view, project).rows();
    let has_usage = rows.iter().any(|row| row.phase.usage.is_some());
    let mut header = vec!["", "PHASE", "TYPE", "STATUS", "ITERATIONS", "TIME"];
    if has_usage {
        header.extend(["TOKENS", "COST"]);
    }
    let cells: Vec<Vec<String>> = rows.iter().map(|row| cells(row, now, has_usage)).collect();
    let columns = super::columns();
    let mut shown: Vec<usize> = (0..header.len()).collect();
    let mut lines = table_lines(&header, &cells, &shown);
    for column in LEFT_OUT {
        if lines.iter().all(|line| line.chars().count() <= columns) {
            break;
        }
        shown.retain(|own| *own != column);
        lines = table_lines(&header, &cells, &shown);
    }
    let mut out = String::new();
    for (n, line) in lines.iter().enumerate() {
        let style = match n.checked_sub(1).and_then(|n| rows.get(n)) {
            None => BOLD,
            Some(PhaseRow { phase, .. }) => match phase.status {
                PhaseStatus::Completed if has_caveat(phase) => YELLOW,
                PhaseStatus::Completed => GREEN,
                PhaseStatus::Escalated | PhaseStatus::Failed => RED,
                PhaseStatus::Running | PhaseStatus::Waiting | PhaseStatus::Stopped => YELLOW,
                PhaseStatus::Pending | PhaseStatus::Skipped => DIM,
            },
        };
        out.push_str(&paint(style, super::short(line, columns)));
        out.push('\n');
    }
    out
}

/// Lines of a table with some of its columns.
fn table_lines(header: &[&str], cells: &[Vec<String>], shown: &[usize]) -> Vec<String> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(shown.iter().filter_map(|column| header.get(*column)));
    for row in cells {
        table.add_row(shown.iter().filter_map(|column| row.get(*column)));
    }
    for (at, column) in shown.iter().enumerate() {
        if *column >= 4
            && let Some(column) = table.column_mut(at)
        {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.lines().map(|line| line.trim_end().to_owned()).collect()
}

fn cells(PhaseRow { depth, phase, .. }: &PhaseRow, now: Timestamp, has_usage: bool) -> Vec<String> {
    let running = phase.running_since_ms.map_or(0, |since| (now.unix_millis() - since).max(0));
    let idle = phase.iterations == 0;
    // Items stand below their phase.
    let depth = depth + usize::from(phase.name.item().is_some());
    let title = phase.title.as_deref().map(|title| format!("  {}", short(title))).unwrap_or_default();
    let name =
        if phase.support { format!("{} (support)", phase.name) } else { format!("{}{title}", phase.name) };
    let mut cells = vec![
        phase.status.mark().to_owned(),
        if depth == 0 { name } else { format!("{}└ {name}", "  ".repeat(depth - 1)) },
        phase.kind.to_string(),
        word(phase),
        if idle { "-".to_owned() } else { phase.iterations.to_string() },
        if idle { "-".to_owned() } else { ui::duration(phase.duration_ms + running) },
    ];
    if has_usage {
        let usage = phase.usage.as_ref();
        cells.push(usage.map_or("-".to_owned(), usage::cell));
        cells.push(usage.map_or("-".to_owned(), usage::cost));
    }
    cells
}

/// Title of an item as the table has space for it.
fn short(title: &str) -> String {
    let shown = ui::plain(title);
    super::short(&shown, TITLE)
}

/// Returns whether a phase has a caveat, also if it completed.
fn has_caveat(phase: &PhaseView) -> bool {
    !Caveat::of_document(&json!({"phases": [phase]})).is_empty()
}

/// The state of a phase in a few words.
pub(super) fn word(phase: &PhaseView) -> String {
    if let Some(run_id) = &phase.kept_from {
        return format!("{}, kept from run {run_id}", phase.status.as_str());
    }
    let status = match phase.status {
        PhaseStatus::Pending if phase.support => "idle",
        PhaseStatus::Stopped if phase.interrupted => "interrupted",
        PhaseStatus::Pending
        | PhaseStatus::Running
        | PhaseStatus::Waiting
        | PhaseStatus::Completed
        | PhaseStatus::Skipped
        | PhaseStatus::Failed
        | PhaseStatus::Escalated
        | PhaseStatus::Stopped => phase.status.as_str(),
    };
    match &phase.limited {
        Some(limited) => format!("{status} at {limited}"),
        None => status.to_owned(),
    }
}

/// The whole summary, on standard output.
pub(crate) fn show(view: &RunView, project: &Project) -> io::Result<()> {
    let now = cliq_fs::now();
    ui::line("")?;
    ui::raw_styled(&table(view, project, now))?;
    if let Some(usage) = view.usage() {
        ui::line(format!("\n{} {}", paint(BOLD, "usage:"), usage::sentence(&usage)))?;
    }
    if view.status.is_some() {
        let lost = steering(view, |message| message.pending);
        if !lost.is_empty() {
            ui::line(format!("\n{} no agent received these messages:", paint(BOLD, "steering:")))?;
            ui::raw_styled(&lost)?;
        }
    }
    let took = ui::duration(view.elapsed_ms(now));
    if let Some(waiting) = &view.waiting {
        ui::line(format!("\n{} after {took}, until {}", paint(YELLOW, "WAITING"), waiting.until))?;
        for (phase, review) in view.phases.iter().filter_map(|phase| Some((phase, phase.review.as_ref()?))) {
            ui::line(format!(
                "{} {}",
                paint(YELLOW, format!("{}:", phase.name)),
                reviews::parked_line(review)
            ))?;
        }
        let when = if waiting.on.is_empty() { "From then on" } else { "After an answer" };
        return ui::line(format!(
            "Nothing of the run is left running. {when}, `cliq run --resume` continues it."
        ));
    }
    match view.pipeline_status() {
        Some(PipelineStatus::Completed) => {
            let caveats = Caveat::of_document(&RunStatus::new(view, project).document());
            let style = if caveats.is_empty() { GREEN } else { YELLOW };
            ui::line(format!("\n{} in {took}", paint(style, "COMPLETED")))?;
            self::caveats(&caveats)
        }
        Some(PipelineStatus::Cancelled) => {
            ui::line(format!("\n{} after {took}", paint(YELLOW, "CANCELLED")))?;
            ui::line(
                "Nothing of the run is left running. `cliq run --resume` goes on, `cliq run` starts again.",
            )
        }
        Some(status @ (PipelineStatus::Escalated | PipelineStatus::Failed)) => {
            ui::line(format!("\n{} after {took}", paint(RED, status)))?;
            explain(view, project.dir())
        }
        None => Ok(()),
    }
}

/// Lines about caveats: what keeps a completed run from being a plain success.
pub(crate) fn caveats(caveats: &[Caveat]) -> io::Result<()> {
    for caveat in caveats {
        ui::line(format!("{} {}", paint(YELLOW, format!("{}:", caveat.label())), caveat.sentence()))?;
    }
    Ok(())
}

/// Lines about the steering messages of a run: `shown` decides which.
pub(crate) fn steering(view: &RunView, shown: impl Fn(&SteeringView) -> bool) -> String {
    let mut out = String::new();
    for message in view.steering.iter().filter(|message| shown(message)) {
        let SteeringMessage { from, ts, text, phase, .. } = &message.message;
        let to = phase.as_ref().map(|phase| format!(" to {phase}")).unwrap_or_default();
        let state = match message.delivered.last() {
            None => paint(YELLOW, "pending"),
            Some(_) => {
                let phases: BTreeSet<&str> =
                    message.delivered.iter().map(|delivery| delivery.phase.as_str()).collect();
                paint(GREEN, format!("delivered to {}", phases.into_iter().collect::<Vec<_>>().join(", ")))
            }
        };
        let text = ui::plain(&first_line(text));
        let _ = writeln!(out, "{state}: {} at {ts}{to}: {text}", ui::plain(from));
    }
    out
}

/// The first line of a text, at most 100 characters.
fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let cut: String = line.chars().take(100).collect();
    if cut.len() < text.len() { format!("{cut} …") } else { cut }
}

/// Reason why the run did not complete, the last that was printed, and what to do next.
fn explain(view: &RunView, dir: &CliqDir) -> io::Result<()> {
    if let Some(reason) = &view.reason {
        ui::line(format!("{} {}", paint(BOLD, "reason:"), within_line(reason)))?;
    }
    let Some(phase) = view.phase.as_ref().and_then(|name| view.find(name)) else {
        ui::line(format!("{} {}", paint(BOLD, "log:"), dir.orchestrator_log()))?;
        ui::line(paint(BOLD, "next:"))?;
        ui::line("  cliq explain                 what happened, in order, and what to look at")?;
        return ui::line(
            "  mend the cause, then `cliq run --resume` to go on, or `cliq run -f` to start again",
        );
    };
    for command in phase.commands.iter().filter(|command| !command.pass) {
        quote_command(command, dir)?;
    }
    if let Some(tail) = &phase.output_tail {
        let file = phase.log_file.as_ref().map(|file| dir.root().join(file).to_string());
        quote(&format!("last output of phase `{}`", phase.name), tail, file.as_deref())?;
    }
    ui::line(paint(BOLD, "next:"))?;
    ui::line("  cliq explain                 what happened, in order, and what to look at")?;
    ui::line(format!("  cliq logs {:<18} all that the phase printed", phase.name.as_str()))?;
    ui::line(format!("  {:<28} what it was handed", ".cliq/channels/*/handoff.md"))?;
    ui::line("  mend the cause, then `cliq run --resume` to go on, or `cliq run -f` to start again")
}

fn quote_command(command: &CommandResult, dir: &CliqDir) -> io::Result<()> {
    let label = command.label();
    let how = match command.end() {
        CommandEnd::Failed(code) => format!("command `{label}` ended with exit status {code}"),
        CommandEnd::Killed(signal) => format!("command `{label}` was ended by signal {signal}"),
        CommandEnd::TimedOut(_) => format!("command `{label}` did not end in time"),
        CommandEnd::NotStarted(_) => format!("command `{label}` could not be started"),
        CommandEnd::Passed | CommandEnd::Skipped | CommandEnd::Unclear => format!("command `{label}` failed"),
    };
    let file = command.log_file.as_ref().map(|file| dir.root().join(file).to_string());
    quote(&how, command.output_tail.as_deref().unwrap_or_default(), file.as_deref())
}

/// The end of an output, with the file that has all of it.
pub(crate) fn quote(title: &str, text: &str, file: Option<&str>) -> io::Result<()> {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let more = lines.len().saturating_sub(QUOTED_LINES);
    ui::line(format!("{} {title}", paint(BOLD, "output:")))?;
    for line in &lines[more..] {
        ui::line(format!("  {} {}", paint(DIM, "│"), ui::plain(line)))?;
    }
    if let Some(file) = file {
        ui::line(format!("  {} {}", paint(DIM, "╰"), paint(DIM, file)))?;
    }
    Ok(())
}
