//! Exporter of a process: a thread that sends its spans and figures. Callers never wait; what a receiver does not take in time is lost.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use cliq_protocol::Timestamp;

use super::backoff::Backoff;
use super::{Client, ExportError};
use crate::metrics::Registry;
use crate::options::ExportOptions;
use crate::process::{ProcessTelemetry, SpanSink};
use crate::span::Span;

/// Maximum number of spans that wait for a receiver.
const MAX_WAITING: usize = 8192;

/// Exporter of the spans and figures of a process. Ends when it is finished.
#[derive(Debug)]
pub struct ProcessExporter {
    telemetry: ProcessTelemetry,
    ends: Sender<()>,
    done: Receiver<()>,
}

/// Spans that wait for a receiver.
#[derive(Debug, Default)]
struct Waiting(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    spans: Vec<Span>,
    /// Number of spans that were above the limit.
    lost: u64,
}

impl SpanSink for Waiting {
    fn push(&self, span: Span) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.spans.len() < MAX_WAITING {
            state.spans.push(span);
        } else {
            state.lost += 1;
        }
    }
}

impl ProcessExporter {
    /// Starts to export spans and the figures of a registry.
    ///
    /// # Errors
    /// The system has no thread.
    pub fn start(options: ExportOptions) -> std::io::Result<Self> {
        let (ends, ended) = channel();
        let (finished, done) = channel();
        let (waiting, registry) = (Arc::new(Waiting::default()), Arc::new(Registry::default()));
        let telemetry = ProcessTelemetry {
            spans: Arc::clone(&waiting) as Arc<dyn SpanSink>,
            sampler: options.sampler,
            registry: Arc::clone(&registry),
            metrics_interval: options.metrics_interval,
        };
        let worker = Worker {
            client: Client::new(options),
            waiting,
            registry,
            since: cliq_fs::now(),
            backoff: Backoff::new(),
            has_traces: true,
            has_metrics: true,
            has_warned: false,
        };
        std::thread::Builder::new().name("telemetry".to_owned()).spawn(move || {
            worker.work(&ended);
            let _ = finished.send(());
        })?;
        Ok(Self { telemetry, ends, done })
    }

    /// Destination of the spans and figures.
    #[must_use]
    pub fn telemetry(&self) -> ProcessTelemetry {
        self.telemetry.clone()
    }

    /// Exports what is left, for at most this time.
    pub fn finish(self, patience: Duration) {
        drop(self.ends);
        let _ = self.done.recv_timeout(patience);
    }
}

/// State of the thread.
struct Worker {
    client: Client,
    waiting: Arc<Waiting>,
    registry: Arc<Registry>,
    since: Timestamp,
    backoff: Backoff,
    /// Whether the receiver takes traces, as far as is known.
    has_traces: bool,
    /// Whether the receiver takes metrics, as far as is known.
    has_metrics: bool,
    has_warned: bool,
}

impl Worker {
    fn work(mut self, ended: &Receiver<()>) {
        let options = self.client.options();
        let (delay, interval) = (options.delay, options.metrics_interval);
        let mut next_metrics = Instant::now() + interval;
        loop {
            let is_last = !matches!(ended.recv_timeout(delay), Err(RecvTimeoutError::Timeout));
            if is_last || self.backoff.is_due() {
                self.send_spans();
            }
            if is_last || Instant::now() >= next_metrics {
                next_metrics = Instant::now() + interval;
                self.send_metrics();
            }
            if is_last {
                let left = self.waiting.0.lock().unwrap_or_else(PoisonError::into_inner).spans.len();
                if left > 0 {
                    tracing::warn!(
                        left,
                        "telemetry: spans were lost, as no receiver took them before the end"
                    );
                }
                return;
            }
        }
    }

    fn send_spans(&mut self) {
        let size = self.client.options().batch_size;
        loop {
            let (batch, lost) = {
                let mut state = self.waiting.0.lock().unwrap_or_else(PoisonError::into_inner);
                let count = size.min(state.spans.len());
                (state.spans.drain(..count).collect::<Vec<_>>(), std::mem::take(&mut state.lost))
            };
            if lost > 0 {
                self.warn(&format!("{lost} spans were lost, as the receiver does not take them"));
            }
            if batch.is_empty() || !self.has_traces {
                return;
            }
            match self.client.send_spans(&batch) {
                Ok(()) => self.backoff.succeed(),
                Err(ExportError::Passing { after, message, url, .. }) => {
                    self.backoff.fail(after);
                    self.warn(&format!("{url} cannot be reached: {message}"));
                    let mut state = self.waiting.0.lock().unwrap_or_else(PoisonError::into_inner);
                    state.spans.splice(..0, batch);
                    return;
                }
                Err(error @ ExportError::NotTaken { .. }) => {
                    self.has_traces = false;
                    self.warn(&error.to_string());
                }
                Err(error @ (ExportError::Refused { .. } | ExportError::Partly { .. })) => {
                    self.warn(&error.to_string());
                }
            }
        }
    }

    fn send_metrics(&mut self) {
        if !self.has_metrics || self.backoff.has_failed() {
            return;
        }
        match self.client.send_metrics(&self.registry.snapshot(), self.since, cliq_fs::now()) {
            Ok(()) => {}
            // Receivers of traces alone are usual.
            Err(error @ ExportError::NotTaken { .. }) => {
                tracing::info!(%error, "figures are not exported");
                self.has_metrics = false;
            }
            Err(error) => self.warn(&error.to_string()),
        }
    }

    /// Warns once: the log of a server must not fill with the faults of a receiver.
    fn warn(&mut self, problem: &str) {
        if std::mem::replace(&mut self.has_warned, true) {
            tracing::debug!(problem, "telemetry");
        } else {
            tracing::warn!(problem, "telemetry; further problems are logged at the level debug");
        }
    }
}
