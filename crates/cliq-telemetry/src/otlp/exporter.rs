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
            report,
        }
    }

    fn work(&mut self, ended: &Receiver<()>) {
        let delay = self.client.options().delay;
        let mut next_metrics = Instant::now() + self.client.options().metrics_interval;
        loop {
            self.is_last = match ended.recv_timeout(if self.failures > 0 && self.is_last {
                self.pause()
            } else {
                delay
            }) {
                Ok(()) | Err(RecvTimeoutError::Disconnected) => true,
                Err(RecvTimeoutError::Timeout) => self.is_last,
            };
            if self.is_last && self.failures > 0 {
                // A channel without a sender does not wait.
                std::thread::sleep(self.pause());
            }
            if !self.read() {
                return;
            }
            self.send();
            if self.is_last || Instant::now() >= next_metrics {
                next_metrics = Instant::now() + self.client.options().metrics_interval;
                self.send_metrics();
            }
            if self.is_last && self.spans.is_empty() && self.logs.is_empty() && self.sent.is_some() {
                self.change(|report| report.is_complete = true);
                return;
            }
            if self.is_last && self.sent.is_none() && self.follower.builder().is_none() {
                // There is no run.
                return;
            }
        }
    }

    /// Time until the next attempt.
    fn pause(&self) -> Duration {
        self.next_try.saturating_duration_since(Instant::now())
    }

    fn change(&self, change: impl FnOnce(&mut ExportReport)) {
        change(&mut self.report.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Reads what is new. Returns `false` once there is nothing to be done any more.
    fn read(&mut self) -> bool {
        if self.spans.len() + self.logs.len() >= MAX_WAITING {
            return true;
        }
        let batch = match self.follower.read() {
            Ok(Some(batch)) => batch,
            Ok(None) => return false,
            Err(error) => {
                self.change(|report| report.problem = Some(error.to_string()));
                return !self.is_last;
            }
        };
        let Some(builder) = self.follower.builder() else { return true };
        if !builder.ids().is_sampled(self.client.options().sampler.below) {
            self.change(|report| report.is_complete = true);
            return false;
        }
        if self.sent.is_none() {
            match Sent::open(self.dir.root(), builder.run_id()) {
                Ok(sent) => self.sent = Some(sent),
                Err(error @ SentError::Busy) => {
                    // The process that exports the rest of the run before ends within seconds.
                    self.keep(batch);
                    self.change(|report| report.problem = Some(error.to_string()));
                    self.failed(None);
                    return true;
                }
                Err(error) => {
                    self.change(|report| report.problem = Some(error.to_string()));
                    return false;
                }
            }
        }
        self.keep(batch);
        true
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
            let outcome = if self.refused[0] { Ok(()) } else { self.client.send_spans(batch) };
            let ids: Vec<SpanId> = batch.iter().map(|span| span.id).collect();
            if !self.over(outcome, 0, &ids) {
                return;
            }
            for span in self.spans.drain(..ids.len()) {
                span.measurements.iter().for_each(|measurement| self.registry.record(measurement));
            }
            let n = if self.refused[0] { 0 } else { ids.len() };
            self.change(|report| report.spans += n);
        }
        while !self.logs.is_empty() {
            let batch = &self.logs[..size.min(self.logs.len())];
            let outcome = if self.refused[2] { Ok(()) } else { self.client.send_logs(batch) };
            let ids: Vec<SpanId> = batch.iter().map(|line| line.id).collect();
            if !self.over(outcome, 2, &ids) {
                return;
            }
            self.logs.drain(..ids.len());
            let n = if self.refused[2] { 0 } else { ids.len() };
            self.change(|report| report.logs += n);
        }
    }

    /// Records the outcome of a request. Returns whether its spans or lines are done with: taken, or refused for good.
    fn over(&mut self, outcome: Result<(), ExportError>, signal: usize, ids: &[SpanId]) -> bool {
        match outcome {
            Ok(()) => self.failures = 0,
            Err(ExportError::Passing { ref message, after, .. }) => {
                tracing::debug!(%message, "an export failed and is tried again");
                let problem = outcome.err().map(|error| error.to_string());
                self.change(|report| report.problem = problem);
                self.failed(after);
                return false;
            }
            Err(error @ ExportError::NotTaken { .. }) => {
                self.refused[signal] = true;
                // Receivers of traces alone are usual.
                tracing::info!(%error, "a signal is not exported");
                if signal == 0 {
                    self.change(|report| report.problem = Some(error.to_string()));
                }
            }
            Err(error @ ExportError::Refused { .. }) => {
                self.change(|report| report.problem = Some(error.to_string()));
            }
        }
        if let Some(sent) = &mut self.sent
            && let Err(error) = sent.add(ids.iter().copied())
        {
            self.change(|report| report.problem = Some(error.to_string()));
        }
        true
    }

    fn failed(&mut self, after: Option<Duration>) {
        self.failures += 1;
        let pause = Duration::from_millis(250) * 2_u32.saturating_pow(self.failures.min(8));
        self.next_try = Instant::now() + after.unwrap_or(pause).min(MAX_PAUSE);
    }

    fn send_metrics(&mut self) {
        if self.refused[1] || self.failures > 0 {
            return;
        }
        let outcome = self.client.send_metrics(&self.registry.snapshot(), self.since, cliq_fs::now());
        match outcome {
            Ok(()) => {}
            Err(error @ ExportError::NotTaken { .. }) => {
                tracing::info!(%error, "a signal is not exported");
                self.refused[1] = true;
            }
            Err(error) => self.change(|report| report.problem = Some(error.to_string())),
        }
    }
}
