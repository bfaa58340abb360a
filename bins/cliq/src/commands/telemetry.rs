//! `cliq telemetry`

use std::process::ExitCode;

use serde_json::json;

use crate::args::TelemetryCommand;
use crate::failure::Failure;
use crate::{project, ui};

pub(super) fn run(command: &TelemetryCommand) -> Result<ExitCode, Failure> {
    match command {
        TelemetryCommand::Show { json } => show(*json),
        TelemetryCommand::Send { timeout, json } => send(*timeout, *json),
    }
}

/// Receiver of a signal, without a password in its address.
fn receiver(signal: Option<&cliq_telemetry::Signal>) -> Option<String> {
    signal.map(|signal| cliq_protocol::without_credentials(&signal.url).into_owned())
}

fn show(json: bool) -> Result<ExitCode, Failure> {
    let settings = project::settings()?;
    let get = |name: &str| std::env::var(name).ok();
    let options = cliq_telemetry::TelemetryOptions::read(get, &settings)
        .map_err(|error| Failure::failed(error.to_string()))?;
    let signals = options.export.as_ref().map(|export| &export.signals);
    let rows = [
        ("traces", signals.and_then(|signals| receiver(signals.traces.as_ref()))),
        ("metrics", signals.and_then(|signals| receiver(signals.metrics.as_ref()))),
        ("logs", signals.and_then(|signals| receiver(signals.logs.as_ref()))),
    ];
    let content = options.export.as_ref().is_some_and(|export| export.content);
    if json {
        let mut shown = json!({ "content": content });
        for (name, url) in rows {
            shown[name] = json!(url);
        }
        ui::json(&shown)?;
        return Ok(ExitCode::SUCCESS);
    }
    if options.export.is_none() {
        ui::line("nothing is exported")?;
        ui::hint("`cliq settings set telemetry.endpoint http://localhost:4318` names a receiver");
        return Ok(ExitCode::SUCCESS);
    }
    for (name, url) in rows {
        ui::line(format!("{name:8} {}", url.as_deref().unwrap_or("not exported")))?;
    }
    ui::line(format!("content  {}", if content { "exported" } else { "not exported" }))?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(feature = "otlp")]
fn send(timeout: u64, json: bool) -> Result<ExitCode, Failure> {
    use cliq_telemetry::Exporter;

    let project = project::open()?;
    let settings = project.settings()?;
    let options = project.telemetry(&settings).map_err(|error| Failure::failed(error.to_string()))?;
    let Some(export) = options.export else {
        return Err(Failure::failed("nothing is exported, as there is no receiver")
            .hint("`cliq settings set telemetry.endpoint http://localhost:4318` names one"));
    };
    if cliq_orchestrator::Journal::read(&project.dir().journal())?.is_none() {
        return Err(Failure::failed("there is no run in this project").hint("`cliq run` starts one"));
    }
    let spans = crate::run_export::span_options(project.host(), &settings, &export);
    let patience = std::time::Duration::from_secs(timeout);
    let report = Exporter::send(export, project.dir().clone(), spans, patience);
    if json {
        ui::json(&json!({
            "spans": report.spans, "logs": report.logs, "complete": report.is_complete, "problem": report.problem,
        }))?;
    } else {
        ui::line(format!("{} spans and {} log lines were taken", report.spans, report.logs))?;
    }
    match (report.is_complete, report.problem) {
        (true, None) => Ok(ExitCode::SUCCESS),
        (is_complete, problem) => {
            let what = if is_complete { "a part was refused" } else { "not all was taken" };
            let why = problem.unwrap_or_else(|| "the receiver did not answer in time".to_owned());
            Err(Failure::failed(format!("{what}: {why}")))
        }
    }
}

#[cfg(not(feature = "otlp"))]
fn send(_: u64, _: bool) -> Result<ExitCode, Failure> {
    Err(Failure::failed("this cliq was built without OTLP"))
}
