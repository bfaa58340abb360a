//! Forms of a report: terminal, JSON, markdown, HTML; gate and baselines.

use std::process::ExitCode;

use cliq_eval::report::{Report, dollars, percent, percent_interval, seconds};
use cliq_eval::{Baseline, Gate, TrialOutcome};
use cliq_fs::write_atomic;
use comfy_table::{ContentArrangement, Table, presets};
use serde_json::json;

use crate::args::EvalOutput;
use crate::failure::Failure;
use crate::server_record;
use crate::ui::{self, BOLD, DIM, GREEN, RED, paint};

/// Exit code if a gate does not hold.
const GATE: u8 = 5;
/// Maximum number of failed trials that are named.
const LISTED: usize = 10;

/// Gate and baseline, read before anything runs.
pub(super) struct Conditions {
    gate: Option<Gate>,
    baseline: Option<Baseline>,
}

impl Conditions {
    pub(super) fn read(output: &EvalOutput) -> Result<Self, Failure> {
        Ok(Self {
            gate: output.gate.as_deref().map(Gate::parse).transpose()?,
            baseline: output.baseline.as_deref().map(Baseline::read).transpose()?,
        })
    }
}

/// Writes a report in the chosen forms. Returns the exit code.
pub(super) fn write(
    report: &Report,
    output: &EvalOutput,
    conditions: &Conditions,
) -> Result<ExitCode, Failure> {
    if let Some(path) = &output.markdown {
        write_atomic(path, report.to_markdown().as_bytes())?;
    }
    if let Some(path) = &output.html {
        let server = server_record::server_url()?;
        write_atomic(path, report.to_html(server.as_deref()).as_bytes())?;
    }
    if let Some(path) = &output.save_baseline {
        Baseline::of(report).write(path)?;
    }
    let results = conditions
        .gate
        .as_ref()
        .map(|gate| gate.evaluate(report, conditions.baseline.as_ref()))
        .transpose()?;
    let holds = results.iter().flatten().all(|result| result.holds);
    if output.json {
        let mut document = json!(report);
        if let Some(results) = &results {
            document["gate"] = json!({"expression": output.gate, "holds": holds, "variants": results});
        }
        ui::json(&document)?;
    } else {
        show(report)?;
        for result in results.iter().flatten() {
            let (style, word) = if result.holds { (GREEN, "holds") } else { (RED, "does not hold") };
            let values = serde_json::Value::Object(result.values.clone());
            ui::line(format!("gate {} for {}: {values}", paint(style, word), ui::plain(&result.variant)))?;
        }
        for (what, path) in
            [("markdown", &output.markdown), ("HTML", &output.html), ("baseline", &output.save_baseline)]
        {
            if let Some(path) = path {
                ui::line(format!("wrote {path} ({what})"))?;
            }
        }
    }
    Ok(if holds { ExitCode::SUCCESS } else { ExitCode::from(GATE) })
}

fn show(report: &Report) -> Result<(), Failure> {
    ui::line(format!("{} {}\n", paint(BOLD, ui::plain(&report.suite)), paint(DIM, &report.id)))?;
    let mut table = plain_table();
    let power = format!("PASS^{}", report.repeats);
    table.set_header(["VARIANT", "PASSED", "RATE", "95 %", &power, "FLIPS", "COST", "P90", "TIME", "P90"]);
    for variant in &report.variants {
        let summary = &variant.summary;
        table.add_row([
            ui::plain(&variant.name),
            format!("{}/{}", summary.passed, summary.trials),
            percent(summary.pass_rate),
            percent_interval(summary.pass_rate_interval),
            percent(variant.pass_power.map(|power| power.value)),
            percent(variant.flip_rate),
            dollars(summary.cost_usd.map(|cost| cost.median)),
            dollars(summary.cost_usd.map(|cost| cost.p90)),
            seconds(summary.duration_s.map(|time| time.median)),
            seconds(summary.duration_s.map(|time| time.p90)),
        ]);
    }
    ui::line(table.to_string())?;
    if report.cases.len() > 1 {
        let mut table = plain_table();
        let names = report.variants.iter().map(|variant| ui::plain(&variant.name));
        table.set_header(std::iter::once("CASE".to_owned()).chain(names));
        for case in &report.cases {
            let numbers = report.variants.iter().map(|variant| {
                case.variants
                    .get(&variant.name)
                    .map_or_else(String::new, |s| format!("{}/{}", s.passed, s.trials))
            });
            table.add_row(std::iter::once(ui::plain(&case.name)).chain(numbers));
        }
        ui::line(format!("\n{table}"))?;
    }
    ui::line("")?;
    for pair in &report.comparisons {
        ui::line(paint(BOLD, ui::plain(&pair.sentence)))?;
    }
    ui::line(report.counts_sentence())?;
    for mark in report.marks() {
        ui::line(format!("check {}: it tells nothing", ui::plain(&mark)))?;
    }
    for judge in &report.judges {
        ui::line(format!("judge {} {}", ui::plain(&judge.check), judge.sentence()))?;
    }
    failures(report)
}

fn failures(report: &Report) -> Result<(), Failure> {
    let failed: Vec<_> = report
        .trials
        .iter()
        .filter(|trial| matches!(trial.outcome, Some(TrialOutcome::Failed | TrialOutcome::Infrastructure)))
        .collect();
    if failed.is_empty() {
        return Ok(());
    }
    ui::line("\nnot passed:")?;
    for trial in failed.iter().take(LISTED) {
        let reason = trial.reason.as_deref().unwrap_or_default().lines().next().unwrap_or_default();
        ui::line(format!(
            "  {} {} {} #{}: {}",
            trial.number,
            ui::plain(&trial.variant),
            ui::plain(&trial.case),
            trial.repeat,
            ui::plain(reason)
        ))?;
    }
    if failed.len() > LISTED {
        ui::line(format!(
            "  and {} more: `--json`, `--markdown` and `--html` have them",
            failed.len() - LISTED
        ))?;
    }
    if let Some(trial) = failed.first() {
        ui::line(paint(DIM, format!("their files: {}; `cliq -C DIR explain` tells more", trial.workspace)))?;
    }
    Ok(())
}

fn plain_table() -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table
}
