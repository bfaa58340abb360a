//! `cliq telemetry`

use std::process::ExitCode;

use camino::Utf8Path;
#[cfg(feature = "otlp")]
use cliq_fs::CliqDir;
use cliq_orchestrator::{RunTrace, TraceSource};
#[cfg(feature = "otlp")]
use cliq_project::Project;
use serde_json::json;

use crate::args::TelemetryCommand;
use crate::failure::Failure;
use crate::{project, ui};

pub(super) fn run(command: &TelemetryCommand) -> Result<ExitCode, Failure> {
    match command {
        TelemetryCommand::Show { json } => show(*json),
        TelemetryCommand::Send { timeout, run_dir, json } => send(*timeout, run_dir.as_deref(), *json),
    }
}

/// Receiver of a signal, without a password in its address.
fn receiver(signal: Option<&cliq_telemetry::Signal>) -> Option<String> {
    signal.map(|signal| cliq_protocol::without_credentials(&signal.url).into_owned())
}

/// Mend where nothing is exported.
fn no_receiver() -> String {
    if std::env::var("OTEL_SDK_DISABLED").is_ok_and(|value| value.trim().eq_ignore_ascii_case("true")) {
        return "OTEL_SDK_DISABLED is set".to_owned();
    }
    "`cliq settings set -g telemetry.endpoint http://localhost:4318` names a receiver".to_owned()
}

/// Trace of the last run of this project, if there is one.
fn last_trace() -> Option<RunTrace> {
    // Settings are shown outside of a project too.
    let project = project::open().ok()?;
    match cliq_orchestrator::Journal::read(&project.dir().journal()) {
        Ok(journal) => RunTrace::of(journal?.records.first()?),
        Err(error) => {
            ui::warning(&format!("the trace of the last run is not known: {error}"));
            None
        }
    }
}

fn show(json: bool) -> Result<ExitCode, Failure> {
    let settings = project::settings()?;
    let get = |name: &str| std::env::var(name).ok();
    let options = cliq_telemetry::TelemetryOptions::read(get, &settings)
        .map_err(|error| Failure::failed(error.to_string()))?;
    let export = options.export.as_ref();
    let signals = export.map(|export| &export.signals);
    let rows = [
        ("traces", signals.and_then(|signals| receiver(signals.traces.as_ref()))),
        ("metrics", signals.and_then(|signals| receiver(signals.metrics.as_ref()))),
        ("logs", signals.and_then(|signals| receiver(signals.logs.as_ref()))),
    ];
    let content = export.is_some_and(|export| export.content);
    #[expect(clippy::cast_precision_loss, reason = "a share is shown, not compared")]
    let share = export.map(|export| export.sampler.below as f64 / TraceSource::ALL as f64);
    let last = last_trace().map(|trace| trace.id().to_string());
    let page = cliq_settings::TelemetrySettings::read(&settings).trace_url;
    let page = page.map(|url| url.replace("{trace_id}", last.as_deref().unwrap_or("{trace_id}")));
    if json {
        let mut shown =
            json!({ "content": content, "sampled": share, "last_trace": last, "trace_url": page });
        for (name, url) in rows {
            shown[name] = json!(url);
        }
        ui::json(&shown)?;
        return Ok(ExitCode::SUCCESS);
    }
    if export.is_none() {
        ui::line("nothing is exported")?;
        ui::hint(&no_receiver());
        return Ok(ExitCode::SUCCESS);
    }
    for (name, url) in rows {
        ui::line(format!("{name:8} {}", url.as_deref().unwrap_or("not exported")))?;
    }
    ui::line(format!("content  {}", if content { "exported" } else { "not exported" }))?;
    if let Some(share) = share.filter(|share| *share < 1.0) {
        ui::line(format!("sampled  {:.1} % of traces (OTEL_TRACES_SAMPLER)", share * 100.0))?;
    }
    if let Some(last) = last {
        ui::line(format!("last run {}", page.unwrap_or_else(|| format!("trace {last}"))))?;
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(feature = "otlp")]
fn send(timeout: u64, run_dir: Option<&Utf8Path>, json: bool) -> Result<ExitCode, Failure> {
    use cliq_telemetry::Exporter;

    let project = match run_dir {
        None => project::open()?,
        Some(dir) => {
            // The workspace of a plan's agent may be a worktree, without a project of its own.
            let project = Project::of(CliqDir::at(dir, &project::here()?)?, project::host());
            if !project.dir().journal().is_file() {
                let failure = Failure::failed(format!("there is no run in {dir}"));
                return Err(
                    failure.hint("directories of runs are .cliq/history/RUN and .cliq/plans/PLAN/jobs/JOB")
                );
            }
            project
        }
    };
    let settings = project::settings()?;
    let options = project.telemetry(&settings).map_err(|error| Failure::failed(error.to_string()))?;
    let Some(export) = options.export else {
        return Err(Failure::failed("nothing is exported, as there is no receiver").hint(no_receiver()));
    };
    if cliq_orchestrator::Journal::read(&project.dir().journal())?.is_none() {
        return Err(Failure::failed("there is no run in this project").hint("`cliq run` starts one"));
    }
    let spans = crate::run_export::span_options(project.host(), &settings, &export);
    let patience = std::time::Duration::from_secs(timeout);
    let report = Exporter::send(export, project.dir().clone(), spans, patience);
    let problem = match (report.is_complete, report.problem) {
        (false, None) => Some("the receiver did not answer in time".to_owned()),
        (_, problem) => problem,
    };
    if json {
        ui::json(&json!({
            "spans": report.spans, "logs": report.logs, "complete": report.is_complete && problem.is_none(),
            "sampled": !report.is_left_out, "not_taken": report.not_taken, "problem": problem,
        }))?;
    } else if report.is_left_out {
        ui::line("the run is not exported: its trace is not sampled (OTEL_TRACES_SAMPLER, or its caller)")?;
    } else {
        ui::line(format!("{} spans and {} log lines were taken", report.spans, report.logs))?;
        if !report.not_taken.is_empty() {
            ui::hint(&format!("the receiver has no place for {}", report.not_taken.join(" and ")));
        }
    }
    let Some(problem) = problem else { return Ok(ExitCode::SUCCESS) };
    let what = match (report.is_complete, report.spans) {
        (true, 0) => "nothing was taken",
        (true, _) => "a part was refused",
        (false, _) => "not all was taken",
    };
    Err(Failure::failed(format!("{what}: {problem}")))
}

#[cfg(not(feature = "otlp"))]
fn send(_: u64, _: Option<&Utf8Path>, _: bool) -> Result<ExitCode, Failure> {
    Err(Failure::failed("this cliq was built without OTLP"))
}
