//! `cliq explain`

use std::process::ExitCode;

use camino::Utf8PathBuf;
use cliq_fs::CliqDir;
use cliq_model::Caveat;
use cliq_orchestrator::internals::within_line;
use cliq_orchestrator::{RunView, SteeringView};
use cliq_project::{Project, RecordedRun, RunStatus, Significance, Timeline};
use cliq_protocol::SteeringMessage;
use serde_json::json;

use crate::failure::Failure;
use crate::render::summary::{self, quote};
use crate::render::usage;
use crate::ui::{BOLD, DIM, GREEN, RED, YELLOW, paint};
use crate::{project, ui};

pub(super) fn run(run: Option<&str>, as_json: bool) -> Result<ExitCode, Failure> {
    let project = project::open()?;
    let recorded = project.recorded_run(run)?;
    let timeline = recorded.timeline(cliq_fs::now());
    let caveats = caveats(&recorded, &project);
    if as_json {
        let mut document = json!(timeline);
        document["caveats"] = json!(caveats);
        ui::json(&document)?
    } else {
        show(&timeline, &caveats, project.dir())?
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns what keeps the run from being a plain success. Only the last run has the records of the runs within its phases.
pub(super) fn caveats(recorded: &RecordedRun, project: &Project) -> Vec<Caveat> {
    let view = RunView::of(&recorded.journal);
    let is_last = recorded.place == *project.dir().root();
    Caveat::of_document(&if is_last { RunStatus::new(&view, project).document() } else { json!(view) })
}

fn show(timeline: &Timeline, caveats: &[Caveat], dir: &CliqDir) -> std::io::Result<()> {
    let style = match timeline.status.as_str() {
        "COMPLETED" if caveats.is_empty() => GREEN,
        "ESCALATED" | "FAILED" => RED,
        _ => YELLOW,
    };
    if let Some(title) = &timeline.title {
        ui::line(paint(BOLD, ui::plain(title)))?;
    }
    ui::line(format!(
        "{} {}  {} after {}\n",
        paint(BOLD, &timeline.team),
        paint(DIM, &timeline.run_id),
        paint(style, &timeline.status),
        ui::duration(timeline.elapsed_ms)
    ))?;
    for step in &timeline.steps {
        let text = ui::plain(&step.text).replace('\n', "\n           ");
        let text = match step.significance {
            Significance::Usual => text,
            Significance::Good => paint(GREEN, text),
            Significance::Notable => paint(YELLOW, text),
            Significance::Bad => paint(RED, text),
        };
        ui::line(format!(
            "{} {text}",
            paint(DIM, format!("{:>9} ", format!("+{}", ui::duration(step.at_ms))))
        ))?;
    }
    if let Some(reason) = &timeline.reason {
        ui::line(format!("\n{} {}", paint(BOLD, "why:"), within_line(reason)))?;
    }
    if !caveats.is_empty() {
        ui::line("")?;
        summary::caveats(caveats)?;
    }
    if let Some(usage) = &timeline.usage {
        ui::line(format!("\n{} {}", paint(BOLD, "usage:"), usage::sentence(usage)))?;
        for model in &usage.models {
            let name = model.model.as_deref().unwrap_or("a model that was not named");
            let cost = model.cost_usd.map_or("cost unknown".to_owned(), usage::dollars);
            let tokens = usage::tokens(model.tokens());
            let estimated = usage::estimated(model.estimated);
            ui::line(format!("  {}: {tokens} tokens, {cost}{estimated}", ui::plain(name)))?;
        }
    }
    let pending: Vec<&SteeringView> = timeline.steering.pending().collect();
    if !pending.is_empty() {
        ui::line(format!("\n{} no agent has received these messages:", paint(BOLD, "steering:")))?;
        for view in pending {
            let SteeringMessage { from, ts, text, .. } = &view.message;
            ui::line(format!("  {} at {ts}: {}", ui::plain(from), ui::plain(text).replace('\n', "\n    ")))?;
        }
    }
    if !timeline.unfinished.is_empty() {
        ui::line(format!("{} {}", paint(BOLD, "at work then:"), timeline.unfinished.join(", ")))?;
    }
    for output in &timeline.outputs {
        quote(&output.of, &output.tail, output.file.as_ref().map(|file| file.as_str()))?;
    }
    if !timeline.files.is_empty() {
        ui::line(paint(BOLD, "look at:"))?;
        let shown = |path: &Utf8PathBuf| path.strip_prefix(dir.workspace()).unwrap_or(path).to_string();
        let width = timeline.files.iter().map(|file| shown(&file.path).chars().count()).max().unwrap_or(0);
        for file in &timeline.files {
            ui::line(format!("  {:<width$}  {}", shown(&file.path), file.about))?;
        }
    }
    if !timeline.next.is_empty() {
        ui::line(paint(BOLD, "next:"))?;
        for next in &timeline.next {
            ui::line(format!("  {next}"))?;
        }
    }
    Ok(())
}
