//! Export of the server itself (docs/telemetry.md): spans of its requests, and its figures. Its runs export themselves.

use cliq_project::Host;
use cliq_settings::Settings;
use cliq_telemetry::{ExportOptions, ProcessTelemetry, TelemetryOptions};

use crate::ui;

/// Export of the server, if there is a receiver.
pub(crate) struct ServerExport(Option<Exporter>);

impl ServerExport {
    /// Starts the export. Says if it cannot work; the server goes on without it.
    pub(crate) fn start(host: &Host, settings: &Settings, telemetry: &mut Option<ProcessTelemetry>) -> Self {
        let get = |name: &str| host.environment.get(name).map(str::to_owned);
        let options = TelemetryOptions::read(get, settings).map_err(|error| error.to_string());
        let started = options.and_then(|options| options.export.map(Exporter::start).transpose());
        let exporter = started.unwrap_or_else(|problem| {
            ui::warning(&format!("telemetry: {problem}"));
            None
        });
        *telemetry = exporter.as_ref().map(Exporter::telemetry);
        Self(exporter)
    }

    /// Exports what is left.
    pub(crate) fn finish(self) {
        if let Some(exporter) = self.0 {
            exporter.finish();
        }
    }
}

/// Exporter of the process.
#[cfg(feature = "otlp")]
struct Exporter(cliq_telemetry::ProcessExporter);

#[cfg(feature = "otlp")]
impl Exporter {
    fn start(options: ExportOptions) -> Result<Self, String> {
        cliq_telemetry::ProcessExporter::start(options).map(Self).map_err(|error| error.to_string())
    }

    fn telemetry(&self) -> ProcessTelemetry {
        self.0.telemetry()
    }

    fn finish(self) {
        // The longest time that the end of the server waits for the receiver.
        self.0.finish(std::time::Duration::from_secs(2));
    }
}

/// Exporter that this program does not have.
#[cfg(not(feature = "otlp"))]
enum Exporter {}

#[cfg(not(feature = "otlp"))]
impl Exporter {
    fn start(_: ExportOptions) -> Result<Self, String> {
        Err("this cliq was built without OTLP, and nothing is exported".to_owned())
    }

    fn telemetry(&self) -> ProcessTelemetry {
        match *self {}
    }

    fn finish(self) {
        match self {}
    }
}
