//! `cliq explain`

use std::process::ExitCode;

use camino::Utf8PathBuf;
use cliq_fs::{CliqDir, ProjectLock, now_millis};
use cliq_orchestrator::Journal;

use crate::failure::Failure;
use crate::render::summary::quote;
use crate::story::{self, Story, Weight};
use crate::ui::{BOLD, DIM, GREEN, RED, YELLOW, paint};
use crate::{project, ui};

pub(super) fn run(run: Option<&str>, as_json: bool) -> Result<ExitCode, Failure> {
    let dir = project::open()?;
    let (journal, place, running) = find(&dir, run)?;
    let story = story::tell(&journal, &place, running, now_millis());
    if as_json {
        ui::json(&story)?
    } else {
        show(&story, &dir)?
    }
    Ok(ExitCode::SUCCESS)
}

/// The last run, or one of `.cliq/history` by its id or the beginning of it.
fn find(dir: &CliqDir, run: Option<&str>) -> Result<(Journal, Utf8PathBuf, bool), Failure> {
    let last = Journal::read(&dir.journal())?.filter(|journal| !journal.records.is_empty());
    let wanted =
        |journal: &Journal| run.is_none_or(|run| journal.run_id().is_some_and(|id| id.starts_with(run)));
    if let Some(journal) = last.filter(|journal| wanted(journal)) {
        return Ok((journal, dir.root().to_owned(), ProjectLock::holder(dir)?.is_some()));
    }
    let Some(run) = run else {
        return Err(Failure::failed("nothing has run yet").hint("`cliq run` runs the team"));
    };
    let entries = dir.history().read_dir_utf8().into_iter().flatten().filter_map(Result::ok);
    let mut kept: Vec<Utf8PathBuf> = entries.map(camino::Utf8DirEntry::into_path).collect();
    kept.sort();
    let names: Vec<&str> = kept.iter().filter_map(|path| path.file_name()).collect();
    let found: Vec<&Utf8PathBuf> =
        kept.iter().filter(|path| path.file_name().is_some_and(|name| name.starts_with(run))).collect();
    match found[..] {
        [place] => match Journal::read(&place.join("journal.jsonl"))? {
            Some(journal) => Ok((journal, place.clone(), false)),
            None => Err(Failure::failed(format!("{place} has no journal"))),
        },
        [] if names.is_empty() => {
            Err(Failure::usage(format!("there is no run {run}: no earlier run is kept")))
        }
        [] => Err(Failure::usage(format!("there is no run {run}"))
            .hint(format!("these are kept: {}", names.join(", ")))),
        _ => Err(Failure::usage(format!("several runs begin with {run}"))
            .hint(format!("these are kept: {}", names.join(", ")))),
    }
}

fn show(story: &Story, dir: &CliqDir) -> std::io::Result<()> {
    let style = match story.status.as_str() {
        "COMPLETED" => GREEN,
        "ESCALATED" | "FAILED" => RED,
        _ => YELLOW,
    };
    ui::line(format!(
        "{} {}  {} after {}\n",
        paint(BOLD, &story.team),
        paint(DIM, &story.run_id),
        paint(style, &story.status),
        ui::duration(story.elapsed_ms)
    ))?;
    for step in &story.steps {
        let text = ui::plain(&step.text).replace('\n', "\n           ");
        let text = match step.weight {
            Weight::Usual => text,
            Weight::Good => paint(GREEN, text),
            Weight::Notable => paint(YELLOW, text),
            Weight::Bad => paint(RED, text),
        };
        ui::line(format!(
            "{} {text}",
            paint(DIM, format!("{:>9} ", format!("+{}", ui::duration(step.at_ms))))
        ))?;
    }
    if let Some(reason) = &story.reason {
        ui::line(format!("\n{} {}", paint(BOLD, "why:"), ui::plain(reason)))?;
    }
    if !story.unfinished.is_empty() {
        ui::line(format!("{} {}", paint(BOLD, "at work then:"), story.unfinished.join(", ")))?;
    }
    for output in &story.outputs {
        quote(&output.of, &output.tail, output.file.as_ref().map(|file| file.as_str()))?;
    }
    if !story.files.is_empty() {
        ui::line(paint(BOLD, "look at:"))?;
        let shown = |path: &Utf8PathBuf| path.strip_prefix(dir.workspace()).unwrap_or(path).to_string();
        let width = story.files.iter().map(|clue| shown(&clue.path).chars().count()).max().unwrap_or(0);
        for clue in &story.files {
            ui::line(format!("  {:<width$}  {}", shown(&clue.path), clue.about))?;
        }
    }
    if !story.next.is_empty() {
        ui::line(paint(BOLD, "next:"))?;
        for next in &story.next {
            ui::line(format!("  {next}"))?;
        }
    }
    Ok(())
}
