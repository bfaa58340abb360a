//! Exporter of a run: a thread beside it that follows journal and transcripts. The run neither waits for it nor fills its memory: what is
//! not exported yet is in the files of the run.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use cliq_fs::CliqDir;
use cliq_protocol::{SpanId, Timestamp};

use super::{Client, ExportError};
use crate::follow::RunFollower;
use crate::metrics::Registry;
use crate::options::ExportOptions;
use crate::sent::{Sent, SentError};
use crate::span::{Batch, LogLine, Span};
use crate::spans::SpanOptions;

/// Maximum time between two attempts to reach a receiver.
const MAX_PAUSE: Duration = Duration::from_secs(30);
/// Number of complete spans and lines at which reading pauses until a receiver has taken some.
const MAX_WAITING: usize = 8192;

/// Positions of the signals.
const TRACES: usize = 0;
const METRICS: usize = 1;
const LOGS: usize = 2;

/// End of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BatchEnd {
    /// The receiver has taken it.
    Taken,
    /// The receiver refuses it, in this process for good.
    Refused,
    /// The receiver may take it later.
    Waits,
}

/// Result of an export.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ExportReport {
    /// Number of spans that were taken in this process.
    pub spans: usize,
    /// Number of log lines that were taken in this process.
    pub logs: usize,
    /// Whether the receiver has taken everything up to the end of the run, or refused it for good.
    pub is_complete: bool,
    /// Last problem, if there was one.
    pub problem: Option<String>,
}

/// Exporter at work.
#[derive(Debug)]
pub struct Exporter {
    ends: Sender<()>,
    done: Receiver<()>,
    report: Arc<Mutex<ExportReport>>,
    _thread: JoinHandle<()>,
}

impl Exporter {
    /// Starts to export the present run of a project.
    ///
    /// # Errors
    /// The system has no thread.
    pub fn start(options: ExportOptions, dir: CliqDir, spans: SpanOptions) -> std::io::Result<Self> {
        let (ends, ended) = channel();
        let (finished, done) = channel();
        let report = Arc::new(Mutex::new(ExportReport::default()));
        let shared = Arc::clone(&report);
        let thread = std::thread::Builder::new().name("telemetry".to_owned()).spawn(move || {
            Worker::new(options, dir, spans, shared).work(&ended);
            let _ = finished.send(());
        })?;
        Ok(Self { ends, done, report, _thread: thread })
    }

    /// Exports what is left, for at most this time. The rest is left to [`Exporter::send`] by another process.
    #[must_use]
    pub fn finish(self, patience: Duration) -> ExportReport {
        drop(self.ends);
        let _ = self.done.recv_timeout(patience);
        self.report.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Exports the last run of a project, as far as no receiver has taken it, for at most this time.
    #[must_use]
    pub fn send(
        options: ExportOptions,
        dir: CliqDir,
        spans: SpanOptions,
        patience: Duration,
    ) -> ExportReport {
        match Self::start(options, dir, spans) {
            Ok(exporter) => exporter.finish(patience),
            Err(error) => ExportReport { problem: Some(error.to_string()), ..ExportReport::default() },
        }
    }
}

/// State of the thread.
struct Worker {
    client: Client,
    dir: CliqDir,
    follower: RunFollower,
    sent: Option<Sent>,
    registry: Registry,
    since: Timestamp,
    spans: Vec<Span>,
    logs: Vec<LogLine>,
    /// Signals that the receiver does not take: traces, metrics, logs.
    refused: [bool; 3],
    /// Whether the process of the run is over.
    is_last: bool,
    failures: u32,
    next_try: Instant,
    /// Problem that another attempt may end.
    passing: Option<String>,
    /// Problem that cost spans or lines.
    lasting: Option<String>,
    report: Arc<Mutex<ExportReport>>,
}

impl Worker {
    fn new(
        options: ExportOptions,
        dir: CliqDir,
        spans: SpanOptions,
        report: Arc<Mutex<ExportReport>>,
    ) -> Self {
        Self {
            follower: RunFollower::new(dir.clone(), spans),
            client: Client::new(options),
            dir,
            sent: None,
            registry: Registry::default(),
            since: cliq_fs::now(),
            spans: Vec::new(),
            logs: Vec::new(),
            refused: [false; 3],
            is_last: false,
            failures: 0,
            next_try: Instant::now(),
            passing: None,
            lasting: None,
            report,
        }
    }

    fn work(&mut self, ended: &Receiver<()>) {
        let delay = self.client.options().delay;
        let mut next_metrics = Instant::now() + self.client.options().metrics_interval;
        loop {
            self.is_last |= !matches!(ended.recv_timeout(delay), Err(RecvTimeoutError::Timeout));
            if self.is_last && self.failures > 0 {
                // A channel without a sender does not wait.
                std::thread::sleep(self.pause());
            }
            let Some(has_read) = self.read() else { return };
            self.send();
            if self.is_last || Instant::now() >= next_metrics {
                next_metrics = Instant::now() + self.client.options().metrics_interval;
                self.send_metrics();
            }
            let has_sent = self.spans.is_empty() && self.logs.is_empty() && self.sent.is_some();
            if self.is_last && has_read && has_sent {
                return self.change(|report| report.is_complete = true);
            }
            if self.is_last && self.follower.builder().is_none() {
                // There is no run.
                return;
            }
        }
    }

    /// Time until the next attempt.
    fn pause(&self) -> Duration {
        self.next_try.saturating_duration_since(Instant::now())
    }

    /// Changes the report. A problem that is over is none any more.
    fn change(&self, change: impl FnOnce(&mut ExportReport)) {
        let mut report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        report.problem = self.lasting.clone().or_else(|| self.passing.clone());
        change(&mut report);
    }

    /// Keeps a problem that cost spans or lines: the first one is the cause of others.
    fn lost(&mut self, problem: String) {
        self.lasting.get_or_insert(problem);
    }

    /// Ends the export because of a problem.
    fn end(&mut self, problem: String) {
        self.lost(problem);
        self.change(|_| {});
    }

    /// Reads what is new, unless too much waits to be sent. Returns whether it has read, or `None` once there is nothing to be done any more.
    fn read(&mut self) -> Option<bool> {
        if self.spans.len() + self.logs.len() >= MAX_WAITING {
            return Some(false);
        }
        let batch = match self.follower.read() {
            Ok(batch) => batch?,
            Err(error) => {
                self.end(error.to_string());
                return None;
            }
        };
        let Some(builder) = self.follower.builder() else { return Some(true) };
        if !builder.ids().is_sampled(self.client.options().sampler.below) {
            self.change(|report| report.is_complete = true);
            return None;
        }
        if self.sent.is_none() {
            match Sent::open(self.dir.root(), builder.run_id()) {
                Ok(sent) => self.sent = Some(sent),
                Err(error @ SentError::Busy) => {
                    // The process that exports the rest of the run before ends within seconds.
                    self.keep(batch);
                    self.failed(error.to_string(), None);
                    return Some(true);
                }
                Err(error) => {
                    self.end(error.to_string());
                    return None;
                }
            }
        }
        self.keep(batch);
        Some(true)
    }

    fn keep(&mut self, batch: Batch) {
        self.spans.extend(batch.spans);
        self.logs.extend(batch.logs);
    }

    /// Sends what is complete and was not taken before.
    fn send(&mut self) {
        let Some(sent) = &mut self.sent else { return };
        self.spans.retain(|span| !sent.contains(span.id));
        self.logs.retain(|line| !sent.contains(line.id));
        if Instant::now() < self.next_try {
            return;
        }
        let size = self.client.options().batch_size;
        while !self.spans.is_empty() {
            let batch = &self.spans[..size.min(self.spans.len())];
            let outcome = if self.refused[TRACES] { None } else { Some(self.client.send_spans(batch)) };
            let ids: Vec<SpanId> = batch.iter().map(|span| span.id).collect();
            let end = self.ended(outcome, TRACES, &ids);
            if end == BatchEnd::Waits {
                return;
            }
            for span in self.spans.drain(..ids.len()) {
                span.measurements.iter().for_each(|measurement| self.registry.record(measurement));
            }
            if end == BatchEnd::Taken {
                self.change(|report| report.spans += ids.len());
            }
        }
        while !self.logs.is_empty() {
            let batch = &self.logs[..size.min(self.logs.len())];
            let outcome = if self.refused[LOGS] { None } else { Some(self.client.send_logs(batch)) };
            let ids: Vec<SpanId> = batch.iter().map(|line| line.id).collect();
            let end = self.ended(outcome, LOGS, &ids);
            if end == BatchEnd::Waits {
                return;
            }
            self.logs.drain(..ids.len());
            if end == BatchEnd::Taken {
                self.change(|report| report.logs += ids.len());
            }
        }
    }

    /// Records the outcome of a request, or that there was none. What was refused is not recorded as taken: it can be sent later, with
    /// another key.
    fn ended(&mut self, outcome: Option<Result<(), ExportError>>, signal: usize, ids: &[SpanId]) -> BatchEnd {
        match outcome {
            None => return BatchEnd::Refused,
            Some(Ok(())) => {}
            Some(Err(error @ ExportError::Passing { .. })) => {
                tracing::debug!(%error, "an export failed and is tried again");
                let after = if let ExportError::Passing { after, .. } = &error { *after } else { None };
                self.failed(error.to_string(), after);
                return BatchEnd::Waits;
            }
            Some(Err(error @ ExportError::NotTaken { .. })) => {
                self.refused[signal] = true;
                // Receivers of traces alone are usual.
                tracing::info!(%error, "a signal is not exported");
                if signal == TRACES {
                    self.lost(error.to_string());
                }
                return BatchEnd::Refused;
            }
            Some(Err(error @ ExportError::Refused { .. })) => {
                self.lost(error.to_string());
                return BatchEnd::Refused;
            }
            // The same request would double what was taken.
            Some(Err(error @ ExportError::Partly { .. })) => self.lost(error.to_string()),
        }
        (self.failures, self.passing) = (0, None);
        let added = self.sent.as_mut().map(|sent| sent.add(ids.iter().copied()));
        if let Some(Err(error)) = added {
            self.lost(error.to_string());
        }
        BatchEnd::Taken
    }

    fn failed(&mut self, problem: String, after: Option<Duration>) {
        self.passing = Some(problem);
        self.change(|_| {});
        self.failures += 1;
        let pause = Duration::from_millis(250) * 2_u32.saturating_pow(self.failures.min(8));
        self.next_try = Instant::now() + after.unwrap_or(pause).min(MAX_PAUSE);
    }

    fn send_metrics(&mut self) {
        if self.refused[METRICS] || self.failures > 0 {
            return;
        }
        let outcome = self.client.send_metrics(&self.registry.snapshot(), self.since, cliq_fs::now());
        match outcome {
            Ok(()) => {}
            Err(error @ ExportError::NotTaken { .. }) => {
                tracing::info!(%error, "a signal is not exported");
                self.refused[METRICS] = true;
            }
            Err(error) => self.lost(error.to_string()),
        }
    }
}
