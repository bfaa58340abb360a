//! Client of a receiver.

use std::io::Write;
use std::time::Duration;

use cliq_protocol::{Timestamp, without_credentials};
use flate2::Compression;
use flate2::write::GzEncoder;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceResponse;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceResponse;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use prost::Message;

use super::encode;
use crate::metrics::Snapshot;
use crate::options::{ExportOptions, Signal};
use crate::span::{LogLine, Span};

/// Attribute of the resource that tells the processes of a service apart.
const INSTANCE: &str = "service.instance.id";

/// Reason why a request was not taken. No error has a header or the content of a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExportError {
    /// The receiver has no place for this signal: another request of it is useless.
    #[error("{url} does not take {signal} (status {status})")]
    NotTaken {
        /// Address.
        url: String,
        /// Signal.
        signal: &'static str,
        /// Status of the response.
        status: u16,
    },
    /// The receiver refuses this request: the same request is useless.
    #[error("{url} refused {signal}: {message}")]
    Refused {
        /// Address.
        url: String,
        /// Signal.
        signal: &'static str,
        /// Status, or what is wrong with the request.
        message: String,
    },
    /// The receiver has taken a request, but not all that is in it. What it refused is lost.
    #[error("{url} took a part of {signal} only: {message}")]
    Partly {
        /// Address.
        url: String,
        /// Signal.
        signal: &'static str,
        /// Number of refused spans, lines or points.
        message: String,
    },
    /// The receiver cannot be reached, or is busy: the same request may be taken later.
    #[error("{url} does not take {signal} now: {message}")]
    Passing {
        /// Address.
        url: String,
        /// Signal.
        signal: &'static str,
        /// Reason.
        message: String,
        /// Time after which the receiver wants the request.
        after: Option<Duration>,
    },
}

/// Client of the receivers of a process. Requests block the thread.
#[derive(Debug)]
pub struct Client {
    options: ExportOptions,
    agent: ureq::Agent,
}

impl Client {
    /// Returns a client.
    #[must_use]
    pub fn new(mut options: ExportOptions) -> Self {
        // Figures of processes with the same resource would replace one another.
        if !options.resource.iter().any(|(name, _)| name == INSTANCE) {
            options.resource.push((INSTANCE.to_owned(), uuid::Uuid::now_v7().to_string()));
        }
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .user_agent(concat!("cliq/", env!("CARGO_PKG_VERSION")))
            .build()
            .into();
        Self { options, agent }
    }

    /// Options of the export.
    #[must_use]
    pub fn options(&self) -> &ExportOptions {
        &self.options
    }

    /// Sends spans. Does nothing without a receiver of traces.
    ///
    /// # Errors
    /// The receiver did not take all of them.
    pub fn send_spans<'a>(&self, spans: impl IntoIterator<Item = &'a Span>) -> Result<(), ExportError> {
        let Some(signal) = &self.options.signals.traces else { return Ok(()) };
        let body = self.post(signal, "traces", &encode::traces(&self.options.resource, spans))?;
        let partial =
            ExportTraceServiceResponse::decode(&*body).ok().and_then(|response| response.partial_success);
        let rejected = partial.map_or(0, |partial| partial.rejected_spans);
        Self::all_taken(signal, "traces", rejected)
    }

    /// Sends log lines. Does nothing without a receiver of logs.
    ///
    /// # Errors
    /// The receiver did not take all of them.
    pub fn send_logs<'a>(&self, lines: impl IntoIterator<Item = &'a LogLine>) -> Result<(), ExportError> {
        let Some(signal) = &self.options.signals.logs else { return Ok(()) };
        let body = self.post(signal, "logs", &encode::logs(&self.options.resource, lines))?;
        let partial =
            ExportLogsServiceResponse::decode(&*body).ok().and_then(|response| response.partial_success);
        let rejected = partial.map_or(0, |partial| partial.rejected_log_records);
        Self::all_taken(signal, "logs", rejected)
    }

    /// Sends the values of metrics since a time. Does nothing without a receiver of metrics.
    ///
    /// # Errors
    /// The receiver did not take all of them.
    pub fn send_metrics(
        &self,
        snapshot: &Snapshot,
        since: Timestamp,
        now: Timestamp,
    ) -> Result<(), ExportError> {
        let Some(signal) = self.options.signals.metrics.as_ref().filter(|_| !snapshot.is_empty()) else {
            return Ok(());
        };
        let request = encode::metrics(&self.options.resource, snapshot, since, now);
        let body = self.post(signal, "metrics", &request)?;
        let partial =
            ExportMetricsServiceResponse::decode(&*body).ok().and_then(|response| response.partial_success);
        let rejected = partial.map_or(0, |partial| partial.rejected_data_points);
        Self::all_taken(signal, "metrics", rejected)
    }

    fn all_taken(signal: &Signal, name: &'static str, rejected: i64) -> Result<(), ExportError> {
        if rejected <= 0 {
            return Ok(());
        }
        let message = format!("{rejected} were not accepted");
        Err(ExportError::Partly { url: without_credentials(&signal.url).into_owned(), signal: name, message })
    }

    fn post(
        &self,
        signal: &Signal,
        name: &'static str,
        message: &impl Message,
    ) -> Result<Vec<u8>, ExportError> {
        let url = without_credentials(&signal.url).into_owned();
        let passing =
            |message: String, after| ExportError::Passing { url: url.clone(), signal: name, message, after };
        let mut request = http::Request::post(&signal.url).header("content-type", "application/x-protobuf");
        for (name, value) in &signal.headers {
            request = request.header(name, value.reveal());
        }
        let mut body = message.encode_to_vec();
        if signal.is_compressed {
            request = request.header("content-encoding", "gzip");
            let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
            // Writing to memory does not fail.
            let compressed = encoder.write_all(&body).and_then(|()| encoder.finish());
            body = compressed.map_err(|error| passing(error.to_string(), None))?;
        }
        let request = request.body(body).map_err(|_| ExportError::Refused {
            url: url.clone(),
            signal: name,
            message: "a header of the settings or variables is not one".to_owned(),
        })?;
        let request = self.agent.configure_request(request).timeout_global(Some(signal.timeout)).build();
        // The text of an error may have the address with its password.
        let mut response = self
            .agent
            .run(request)
            .map_err(|error| passing(without_credentials(&error.to_string()).into_owned(), None))?;
        let status = response.status().as_u16();
        let after =
            response.headers().get("retry-after").and_then(|after| after.to_str().ok()?.trim().parse().ok());
        // A proxy, or a page at the same address, answers anything.
        let is_page = response
            .headers()
            .get("content-type")
            .is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
        let refused = |message: String| ExportError::Refused { url: url.clone(), signal: name, message };
        match status {
            200..=299 if is_page => {
                Err(refused("it answers with a web page, and is no receiver over OTLP (HTTP)".to_owned()))
            }
            200..=299 => response.body_mut().read_to_vec().map_err(|error| passing(error.to_string(), None)),
            404 | 405 | 415 | 501 => Err(ExportError::NotTaken { url: url.clone(), signal: name, status }),
            408 | 429 | 502..=504 => Err(passing(format!("status {status}"), after.map(Duration::from_secs))),
            401 | 403 => Err(refused(format!(
                "status {status}: its key is a header in `telemetry.headers` or OTEL_EXPORTER_OTLP_HEADERS"
            ))),
            _ => Err(refused(format!("status {status}"))),
        }
    }
}
