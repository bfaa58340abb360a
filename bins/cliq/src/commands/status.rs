//! `cliq status`
// A new outcome has to be handled by name.
#![deny(clippy::wildcard_enum_match_arm)]

use std::fmt::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use cliq_fs::ProjectLock;
use cliq_model::Caveat;
use cliq_orchestrator::internals::within_line;
use cliq_orchestrator::{JournalFollower, JournalUpdate, RunView};
use cliq_project::{Project, RunState, RunStatus};
use cliq_protocol::{PhaseKind, Timestamp};
use cliq_terminal::{WatchKey, WatchScreen};
use serde_json::json;

use super::terminal::theme;
use crate::failure::Failure;
use crate::render::{summary, usage};
use crate::{project, reviews, ui};

/// Polling interval of a followed run.
const STEP: Duration = Duration::from_millis(500);

pub(super) fn run(as_json: bool, watch: bool) -> Result<ExitCode, Failure> {
    let project = project::open()?;
    let (dir, workflow) = (project.dir(), project.workflow()?);
    let mut journal = JournalFollower::new(&dir.journal());
    let mut view: Option<RunView> = None;
    let mut last_seen = None;
    let mut last = String::new();
    let mut screen: Option<WatchScreen> = None;
    loop {
        // The lock first: a run that ends in between is then shown as ended.
        let running = ProjectLock::holder(dir)?.is_some();
        let news = journal.read()?;
        if !matches!(news, JournalUpdate::More(_)) {
            view = None;
        }
        if let JournalUpdate::More(records) | JournalUpdate::Afresh(records) = news
            && !records.is_empty()
        {
            let view = view.get_or_insert_with(|| RunView::new(&workflow));
            records.iter().for_each(|record| view.apply(record));
            last_seen = records.last().and_then(|record| record.ts.time()).or(last_seen);
        }
        let state = RunState::of(view.as_ref(), running);
        // A copy: the run may be resumed while it is followed.
        let mut shown = view.clone();
        if state == RunState::Interrupted
            && let Some(view) = &mut shown
        {
            view.interrupt(last_seen);
        }
        if as_json {
            let view = shown.unwrap_or_else(|| RunView::new(&workflow));
            let mut value = RunStatus::new(&view, &project).document();
            value["state"] = state.as_str().into();
            value["caveats"] = json!(Caveat::of_document(&value));
            value["elapsed_ms"] = json!(view.elapsed_ms(cliq_fs::now()));
            value["caveats"] = json!(Caveat::of_document(&value));
            ui::json(&value)?;
            return Ok(ExitCode::SUCCESS);
        }
        let text = show(shown.as_ref(), state, &project);
        let going = watch && running && state == RunState::Running;
        if going && ui::can_show_screen() {
            let screen = match &mut screen {
                Some(screen) => screen,
                None => screen.insert(WatchScreen::enter(theme())?),
            };
            if follow(screen, &text)? == WatchKey::Left {
                break;
            }
            continue;
        }
        // What is on the full screen is gone with it: the end is printed.
        if screen.take().is_some() {
            last.clear();
        }
        if text != last {
            if going && !last.is_empty() {
                ui::line("")?;
            }
            ui::raw_styled(&text)?;
            last = text;
        }
        if !going {
            return Ok(ExitCode::SUCCESS);
        }
        std::thread::sleep(STEP);
    }
    drop(screen);
    ui::hint("the run goes on; `cliq status` shows how it stands");
    Ok(ExitCode::SUCCESS)
}

/// Shows the status on the full screen until the next look is due, or the person leaves.
fn follow(screen: &mut WatchScreen, text: &str) -> std::io::Result<WatchKey> {
    let until = Instant::now() + STEP;
    loop {
        screen.show(text, "q leaves, the run goes on")?;
        match screen.wait(until.saturating_duration_since(Instant::now()))? {
            WatchKey::Redraw => {}
            key @ (WatchKey::None | WatchKey::Left) => return Ok(key),
        }
    }
}

fn show(view: Option<&RunView>, state: RunState, project: &Project) -> String {
    let Some(view) = view else {
        return "nothing has run yet: `cliq run` runs the team\n".to_owned();
    };
    // Whole seconds, so that a display that is followed changes when something does.
    let millis = cliq_fs::now().unix_millis();
    let now = Timestamp::from_unix_millis(millis - millis % 1000);
    let title = view.title.as_ref().map(|title| format!("{}\n", ui::paint(ui::BOLD, ui::plain(title))));
    let mut out = title.unwrap_or_default();
    let (team, run_id) =
        (ui::paint(ui::BOLD, &view.team), view.run_id.as_ref().map_or("-", cliq_protocol::RunId::as_str));
    out.push_str(&[&team, " ", &ui::paint(ui::DIM, run_id), "  ", state.as_str(), "\n"].concat());
    out.push_str(&summary::table(view, project, now));
    for row in RunStatus::new(view, project).rows() {
        let waiting =
            row.phase.review.as_ref().filter(|_| matches!(state, RunState::Running | RunState::Waiting));
        // The phase around a team's has it too.
        let Some(review) = waiting.filter(|_| row.phase.kind != PhaseKind::Team) else { continue };
        let lines = if state == RunState::Waiting {
            reviews::parked_line(review)
        } else {
            reviews::lines(project.host().home.as_deref(), review).join("\n  ")
        };
        let _ = writeln!(out, "{} {lines}", ui::paint(ui::YELLOW, format!("{}:", row.phase.name)));
    }
    if !view.steering.is_empty() {
        let _ = writeln!(out, "{}", ui::paint(ui::BOLD, "steering:"));
        out.push_str(&summary::steering(view, |_| true));
    }
    if let Some(changed) = view.changed {
        let _ = writeln!(out, "changed: {changed}");
    }
    if let Some(usage) = view.usage() {
        let _ = writeln!(out, "usage: {}", usage::sentence(&usage));
    }
    if let Some(reason) = &view.reason {
        let _ = writeln!(out, "reason: {}", within_line(reason));
    }
    for caveat in Caveat::of_document(&RunStatus::new(view, project).document()) {
        let label = ui::paint(ui::YELLOW, format!("{}:", caveat.label()));
        let _ = writeln!(out, "{label} {}", caveat.sentence());
    }
    if let Some(waiting) = view.waiting.as_ref().filter(|_| state == RunState::Waiting) {
        let answer = if waiting.on.is_empty() { "" } else { ", or until an answer" };
        let until = &waiting.until;
        let _ = writeln!(out, "parked until {until}{answer}; then `cliq run --resume` continues it");
    }
    if state == RunState::Interrupted {
        let log = project.dir().orchestrator_log();
        let _ = writeln!(
            out,
            "the orchestrator ended without finishing the run; `cliq run --resume` goes on ({log} tells how far it came)"
        );
    }
    out
}
