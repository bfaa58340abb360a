//! `cliq explain`

use std::process::ExitCode;

use camino::Utf8PathBuf;
use cliq_fs::{CliqDir, now_millis};
use cliq_orchestrator::SteeringView;
use cliq_project::{Significance, Timeline};
use cliq_protocol::SteeringMessage;

use crate::failure::Failure;
use crate::render::summary::quote;
use crate::render::usage;
use crate::ui::{BOLD, DIM, GREEN, RED, YELLOW, paint};
use crate::{project, ui};

pub(super) fn run(run: Option<&str>, as_json: bool) -> Result<ExitCode, Failure> {
    let project = project::open()?;
    let timeline = project.recorded_run(run)?.timeline(now_millis());
    if as_json {
        ui::json(&timeline)?
    } else {
        show(&timeline, project.dir())?
    }
    Ok(ExitCode::SUCCESS)
}

fn show(timeline: &Timeline, dir: &CliqDir) -> std::io::Result<()> {
    let style = match timeline.status.as_str() {
        "COMPLETED" => GREEN,
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
        ui::line(format!("\n{} {}", paint(BOLD, "why:"), ui::plain(reason)))?;
    }
    if let Some(usage) = &timeline.usage {
        ui::line(format!("\n{} {}", paint(BOLD, "usage:"), usage::sentence(usage)))?;
        for model in &usage.models {
            let name = model.model.as_deref().unwrap_or("a model that was not named");
            let cost = model.cost_usd.map_or("cost unknown".to_owned(), usage::dollars);
            let tokens = usage::tokens(model.tokens());
            ui::line(format!("  {}: {tokens} tokens, {cost}", ui::plain(name)))?;
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
