//! `cliq eval`: run suites, show and compare reports.

mod add;
mod output;
mod progress;

use std::process::ExitCode;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_eval::report::{PairReport, Report, Selection, compare_reports};
use cliq_eval::suite::{Suite, read_suite, suite_schema};
use cliq_eval::{EXAMPLES, Evaluation, suite_of};
use cliq_model::{EvaluationRow, EvaluationStore};
use cliq_project::internals::{is_empty_dir, write_files};
use cliq_store::SqlStore;
use cliq_workflow::count_by_severity;
use comfy_table::{ContentArrangement, Table, presets};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::args::{EvalArgs, EvalCommand, EvalOutput};
use crate::commands::signals::interrupted;
use crate::failure::{Failure, Kind};
use crate::gateway::{self, block_on};
use crate::project;
use crate::render::diagnostics;
use crate::ui::{self, GREEN, paint};

pub(super) fn run(args: &EvalArgs) -> Result<ExitCode, Failure> {
    match &args.command {
        None => evaluate(args),
        Some(EvalCommand::List { json }) => list(*json),
        Some(EvalCommand::Show { id, output }) => show(id.as_deref(), output),
        Some(EvalCommand::Compare { first, second, json }) => compare(first, second, *json),
        Some(EvalCommand::Add { run, to, name }) => add::run(run.as_deref(), to, name.as_deref()),
        Some(EvalCommand::New { example, dir }) => new(example, dir.as_deref()),
        Some(EvalCommand::Schema) => {
            ui::json(&suite_schema())?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn evaluate(args: &EvalArgs) -> Result<ExitCode, Failure> {
    let gate = output::Conditions::read(&args.output)?;
    let suite = args.suite.as_deref().map(|path| read(path, args)).transpose()?;
    if args.check {
        let suite = suite.ok_or_else(no_suite)?;
        let (cases, variants, repeats) = (suite.cases.len(), suite.variants.len(), suite.repeats);
        let numbers =
            format!("{cases} cases × {variants} variants × {repeats} repeats = {} trials", suite.trials());
        ui::line(format!("{} {} ({numbers})", paint(GREEN, "valid:"), suite.name))?;
        return Ok(ExitCode::SUCCESS);
    }
    block_on(async {
        let store = gateway::open().await?;
        let host = project::host();
        let home = gateway::home()?;
        let evaluation = match (&args.resume, suite) {
            (Some(id), suite) => {
                let id = if id.is_empty() { unfinished(&store, suite.as_ref()).await? } else { id.clone() };
                Evaluation::open(&host, store.clone(), &id).await?
            }
            (None, Some(suite)) => Evaluation::start(&host, &home, store.clone(), suite).await?,
            (None, None) => return Err(no_suite()),
        };
        let stop = CancellationToken::new();
        let watch = {
            let stop = stop.clone();
            async move {
                interrupted().await;
                stop.cancel();
                std::future::pending::<()>().await;
            }
        };
        let mut shown = progress::Display::new(&evaluation.row().name);
        tokio::select! {
            // First, so that signals are received before a trial begins.
            biased;
            () = watch => {}
            done = evaluation.run(&stop, |progress| shown.show(progress)) => done?,
        }
        shown.end();
        let id = evaluation.row().id.clone();
        drop(evaluation);
        let report = report(&store, &id).await?;
        let code = output::write(&report, &args.output, &gate)?;
        if report.counts.left > 0 {
            ui::hint(&format!(
                "{} trials are left: `cliq eval --resume {}` continues",
                report.counts.left,
                short(&id)
            ));
            return Ok(ExitCode::from(130));
        }
        Ok(code)
    })
}

fn no_suite() -> Failure {
    Failure::usage("no suite is named")
        .hint("`cliq eval SUITE.yml`; `cliq eval new simulated` writes one that needs no model")
}

/// Reads a suite, and applies the choices of the call.
fn read(path: &Utf8Path, args: &EvalArgs) -> Result<Suite, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        Failure::usage(format!("cannot read {path}: {error}"))
            .hint("`cliq eval new simulated` writes a first suite")
    })?;
    let dir = path.parent().filter(|dir| !dir.as_str().is_empty()).unwrap_or(Utf8Path::new("."));
    let dir = dir.canonicalize_utf8()?;
    let checked = read_suite(&text, &dir, &project::host());
    if args.check && args.output.json {
        let rows: Vec<_> = checked.diagnostics.iter().map(|d| json!({
            "code": d.code, "severity": d.severity, "message": d.message, "file": path, "line": d.span.line, "column": d.span.column, "help": d.help,
        })).collect();
        ui::json(&json!({"valid": checked.suite.is_some(), "file": path, "diagnostics": rows}))?;
    } else {
        diagnostics::show(&text, path, &checked.diagnostics);
    }
    let Some(mut suite) = checked.suite else {
        ui::error(&format!("{path}: {}", count_by_severity(&checked.diagnostics)));
        return Err(Failure::reported(Kind::Usage));
    };
    suite.repeats = args.repeats.unwrap_or(suite.repeats);
    suite.max_parallel = args.max_parallel.unwrap_or(suite.max_parallel);
    let variants: Vec<String> = suite.variants.iter().map(|variant| variant.name.clone()).collect();
    choose(&mut suite.variants, &args.variants, "variant", &variants, |variant| &variant.name)?;
    let cases: Vec<String> = suite.cases.iter().map(|case| case.name.clone()).collect();
    choose(&mut suite.cases, &args.cases, "case", &cases, |case| &case.name)?;
    Ok(suite)
}

/// Keeps the items that are named, all if none is.
fn choose<T>(
    items: &mut Vec<T>,
    names: &[String],
    what: &str,
    known: &[String],
    name: impl Fn(&T) -> &String,
) -> Result<(), Failure> {
    if let Some(unknown) = names.iter().find(|name| !known.contains(name)) {
        return Err(Failure::usage(format!("the suite has no {what} `{unknown}`"))
            .hint(format!("it has {}", known.join(", "))));
    }
    items.retain(|item| names.is_empty() || names.contains(name(item)));
    Ok(())
}

/// Returns the newest evaluation that has trials left, of this suite if one is given.
async fn unfinished(store: &Arc<SqlStore>, suite: Option<&Suite>) -> Result<String, Failure> {
    let rows = store.evaluations(200).await?;
    let fits =
        |row: &&EvaluationRow| row.ended_at.is_none() && suite.is_none_or(|suite| suite.name == row.name);
    rows.iter().find(fits).map(|row| row.id.clone()).ok_or_else(|| {
        Failure::refused("no evaluation has trials left")
            .hint("`cliq eval list` shows all; without `--resume` a new one starts")
    })
}

async fn find(store: &Arc<SqlStore>, id: &str) -> Result<EvaluationRow, Failure> {
    store.evaluation(id).await?.ok_or_else(|| {
        Failure::usage(format!("there is no evaluation `{id}`, or more than one"))
            .hint("`cliq eval list` shows all of them")
    })
}

async fn report(store: &Arc<SqlStore>, id: &str) -> Result<Report, Failure> {
    let row = find(store, id).await?;
    let suite = suite_of(&row)?;
    let trials = store.trials(&row.id).await?;
    Ok(Report::new(&row, &suite, &trials))
}

/// Returns the report of an evaluation, or one that `--json` wrote to a file.
async fn report_or_file(store: &Arc<SqlStore>, name: &str) -> Result<Report, Failure> {
    if !name.ends_with(".json") {
        return report(store, name).await;
    }
    let text = std::fs::read_to_string(name)
        .map_err(|error| Failure::usage(format!("cannot read {name}: {error}")))?;
    serde_json::from_str(&text)
        .map_err(|error| Failure::usage(format!("{name} is not a report of `cliq eval --json`: {error}")))
}

/// The end of an id, which is its random part.
fn short(id: &str) -> &str {
    id.rsplit('-').next().unwrap_or(id)
}

fn list(as_json: bool) -> Result<ExitCode, Failure> {
    block_on(async {
        let rows = gateway::open().await?.evaluations(200).await?;
        if as_json {
            let rows: Vec<_> = rows.iter().map(|row| json!({
                "id": row.id, "suite": row.name, "created_at": row.created_at, "ended_at": row.ended_at, "trials": row.trials,
                "finished": row.finished, "directory": row.directory,
            })).collect();
            ui::json(&json!({"evaluations": rows}))?;
            return Ok(ExitCode::SUCCESS);
        }
        if rows.is_empty() {
            ui::line(
                "no evaluations: `cliq eval SUITE.yml` makes one, `cliq eval new simulated` writes a suite that needs no model",
            )?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(["ID", "SUITE", "STARTED", "TRIALS", "STATE"]);
        for row in rows {
            let state = if row.ended_at.is_some() { "finished" } else { "unfinished" };
            let trials = format!("{}/{}", row.finished, row.trials);
            table.add_row([short(&row.id), &row.name, &row.created_at.to_string(), &trials, state]);
        }
        ui::line(table.to_string())?;
        Ok(ExitCode::SUCCESS)
    })
}

fn show(id: Option<&str>, output: &EvalOutput) -> Result<ExitCode, Failure> {
    let conditions = output::Conditions::read(output)?;
    block_on(async {
        let store = gateway::open().await?;
        let id = match id {
            Some(id) => id.to_owned(),
            None => match store.evaluations(1).await?.first() {
                Some(row) => row.id.clone(),
                None => return Err(no_suite()),
            },
        };
        output::write(&report(&store, &id).await?, output, &conditions)
    })
}

fn compare(first: &str, second: &str, as_json: bool) -> Result<ExitCode, Failure> {
    block_on(async {
        let store = gateway::open().await?;
        let (first, second) = (report_or_file(&store, first).await?, report_or_file(&store, second).await?);
        let pairs = pairs(&first, &second);
        if pairs.is_empty() {
            return Err(Failure::usage(
                "the evaluations have no variant of the same name, and more than one variant each",
            ));
        }
        let selected: Vec<PairReport> = pairs
            .iter()
            .map(|(a, b)| {
                let (first, second) =
                    (Selection { report: &first, variant: a }, Selection { report: &second, variant: b });
                compare_reports(first, second, first.report.margin, pairs.len())
            })
            .collect();
        if as_json {
            ui::json(&json!({"first": first.id, "second": second.id, "comparisons": selected}))?;
        } else {
            for pair in &selected {
                ui::line(ui::plain(&pair.sentence))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// Variants to compare: those of the same name, or the only one of each.
fn pairs<'a>(first: &'a Report, second: &'a Report) -> Vec<(&'a str, &'a str)> {
    let names = |report: &'a Report| report.variants.iter().map(|variant| variant.name.as_str());
    let same: Vec<(&str, &str)> = names(first)
        .filter(|name| names(second).any(|other| other == *name))
        .map(|name| (name, name))
        .collect();
    match (same.is_empty(), first.variants.as_slice(), second.variants.as_slice()) {
        (true, [a], [b]) => vec![(a.name.as_str(), b.name.as_str())],
        _ => same,
    }
}

fn new(example: &str, dir: Option<&Utf8Path>) -> Result<ExitCode, Failure> {
    let dir = dir.map_or_else(|| Utf8PathBuf::from(example), Utf8Path::to_owned);
    if !is_empty_dir(&dir).map_err(|error| Failure::usage(format!("cannot use {dir}: {error}")))? {
        return Err(Failure::refused(format!("{dir} is not empty"))
            .hint(format!("name a new directory: `cliq eval new {example} DIR`")));
    }
    let files =
        EXAMPLES.iter().find(|(name, _)| *name == example).map(|(_, files)| *files).unwrap_or_default();
    write_files(&dir, files)?;
    ui::line(format!("wrote {dir}/suite.yml and {} files beside it", files.len() - 1))?;
    if example != "simulated" {
        ui::hint(
            "it works with any model: `cliq settings set -g default_agent claude-api`, or another agent of `cliq agent list`",
        );
    }
    ui::hint(&format!("`cliq eval {dir}/suite.yml` runs it"));
    Ok(ExitCode::SUCCESS)
}

/// `cliq demo --eval`.
pub(super) fn demo(dir: &Utf8Path) -> Result<ExitCode, Failure> {
    write_files(dir, EXAMPLES[0].1)?;
    ui::line(format!(
        "{dir}/suite.yml: 8 cases, 5 repeats, two variants of a team. Its agents use no model: `hasty` passes in 6 of 10 trials for 1 cent, `steady` in 8 of 10 for 2.\n"
    ))?;
    let output = EvalOutput {
        json: false,
        markdown: None,
        html: Some(dir.join("report.html")),
        gate: None,
        baseline: None,
        save_baseline: None,
    };
    let args = EvalArgs {
        command: None,
        suite: Some(dir.join("suite.yml")),
        check: false,
        resume: None,
        repeats: None,
        max_parallel: None,
        variants: Vec::new(),
        cases: Vec::new(),
        output,
    };
    let code = evaluate(&args)?;
    ui::line(format!(
        "\nlook at {dir}/report.html. More repeats decide more: `cliq eval {dir}/suite.yml --repeats 20`."
    ))?;
    Ok(code)
}
