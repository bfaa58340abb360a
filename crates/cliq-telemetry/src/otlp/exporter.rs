//! Exporter of a run: a thread beside it that follows journal and transcripts. The run neither waits for it nor fills its memory: what is
//! not exported yet is in the files of the run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use cliq_fs::CliqDir;
use cliq_protocol::{SpanId, Timestamp};

use super::backoff::Backoff;
use super::{Client, ExportError};
use crate::follow::RunFollower;
use crate::metrics::Registry;
use crate::options::ExportOptions;
use crate::sent::{Sent, SentError};
use crate::span::{Batch, LogLine, Span};
use crate::spans::SpanOptions;

/// Number of complete spans and lines at which reading pauses until a receiver has taken some.
const MAX_WAITING: usize = 8192;

/// Maximum time between two looks at the files of the run.
const READ_AHEAD: Duration = Duration::from_millis(50);

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
    /// Whether the sampler left the run out.
    pub is_left_out: bool,
    /// Signals that the receiver has no place for.
    pub not_taken: Vec<&'static str>,
    /// Last problem, if there was one.
    pub problem: Option<String>,
}

/// Exporter at work.
#[derive(Debug)]
pub struct Exporter {
    /// Dropped when the run has ended.
    ends: Option<Sender<()>>,
    done: Receiver<()>,
    gives_up: Arc<AtomicBool>,
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
        let gives_up = Arc::new(AtomicBool::new(false));
        let mut worker = Worker::new(options, dir, spans, Arc::clone(&report), Arc::clone(&gives_up));
        let thread = std::thread::Builder::new().name("telemetry".to_owned()).spawn(move || {
            worker.work(&ended);
            let _ = finished.send(());
        })?;
        Ok(Self { ends: Some(ends), done, gives_up, report, _thread: thread })
    }

    /// Begins to export what is left. The last record of the run is written.
    pub fn run_ended(&mut self) {
        self.ends = None;
    }

    /// Exports what is left, for at most this time. The rest is left to [`Exporter::send`] by another process.
    #[must_use]
    pub fn finish(self, patience: Duration) -> ExportReport {
        drop(self.ends);
        let _ = self.done.recv_timeout(patience);
        // A process that goes on, such as a daemon, must not keep the thread.
        self.gives_up.store(true, Ordering::Relaxed);
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
    /// Whether the rest is left to another process.
    gives_up: Arc<AtomicBool>,
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
    backoff: Backoff,
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
        gives_up: Arc<AtomicBool>,
    ) -> Self {
        Self {
            gives_up,
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
            backoff: Backoff::new(),
            passing: None,
            lasting: None,
            report,
        }
    }

    fn work(&mut self, ended: &Receiver<()>) {
        let delay = self.client.options().delay;
        // The first request comes early: the connection is there when the run ends.
        let mut next_send = Instant::now() + delay.min(READ_AHEAD);
        let mut next_metrics = Instant::now() + self.client.options().metrics_interval;
        loop {
            // Read ahead: at its end the run waits for what is left.
            let pause = delay.min(READ_AHEAD);
            self.is_last |= !matches!(ended.recv_timeout(pause), Err(RecvTimeoutError::Timeout));
            if self.is_last && self.backoff.has_failed() {
                // A channel without a sender does not wait.
                std::thread::sleep(self.backoff.pause());
            }
            if self.gives_up.load(Ordering::Relaxed) {
                return;
            }
            let Some(has_read) = self.read() else { return };
            if self.is_last || Instant::now() >= next_send {
                next_send = Instant::now() + delay;
                self.send();
            }
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
            self.change(|report| (report.is_complete, report.is_left_out) = (true, true));
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
        if !self.backoff.is_due() {
            return;
        }
        while !(self.spans.is_empty() && self.logs.is_empty()) {
            if !self.send_batches() {
                return;
            }
        }
    }

    /// Sends a batch of spans and one of lines, at the same time. Returns whether the next ones can follow.
    fn send_batches(&mut self) -> bool {
        let size = self.client.options().batch_size;
        let spans = &self.spans[..size.min(self.spans.len())];
        let logs = &self.logs[..size.min(self.logs.len())];
        let (client, refused) = (&self.client, self.refused);
        let send_spans = || (!spans.is_empty() && !refused[TRACES]).then(|| client.send_spans(spans));
        let send_logs = || (!logs.is_empty() && !refused[LOGS]).then(|| client.send_logs(logs));
        let (of_spans, of_logs) = std::thread::scope(|scope| {
            let beside = std::thread::Builder::new().spawn_scoped(scope, send_logs);
            let of_spans = send_spans();
            let of_logs = match beside {
                // A request without an outcome is not one that was refused: the thread ends, and another process sends the rest.
                Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                // The system has no thread.
                Err(_) => send_logs(),
            };
            (of_spans, of_logs)
        });
        let span_ids: Vec<SpanId> = spans.iter().map(|span| span.id).collect();
        let log_ids: Vec<SpanId> = logs.iter().map(|line| line.id).collect();
        // Of two problems that of the traces is named.
        let of_spans = self.ended(of_spans, TRACES, &span_ids);
        let of_logs = self.ended(of_logs, LOGS, &log_ids);
        let ends = [of_spans, of_logs];
        if of_spans != BatchEnd::Waits {
            for span in self.spans.drain(..span_ids.len()) {
                span.measurements.iter().for_each(|measurement| self.registry.record(measurement));
            }
        }
        if of_logs != BatchEnd::Waits {
            self.logs.drain(..log_ids.len());
        }
        let taken = |end, ids: &[SpanId]| if end == BatchEnd::Taken { ids.len() } else { 0 };
        let (spans, logs) = (taken(of_spans, &span_ids), taken(of_logs, &log_ids));
        if !ends.contains(&BatchEnd::Waits) && ends.contains(&BatchEnd::Taken) {
            self.backoff.succeed();
            self.passing = None;
        }
        self.change(|report| {
            report.spans += spans;
            report.logs += logs;
        });
        !ends.contains(&BatchEnd::Waits)
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
                let of_traces = self.passing.take().filter(|_| signal != TRACES);
                self.failed(of_traces.unwrap_or_else(|| error.to_string()), after);
                return BatchEnd::Waits;
            }
            Some(Err(error @ ExportError::NotTaken { .. })) => {
                self.refused[signal] = true;
                self.not_taken(signal);
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
        let added = self.sent.as_mut().map(|sent| sent.add(ids.iter().copied()));
        if let Some(Err(error)) = added {
            self.lost(error.to_string());
        }
        BatchEnd::Taken
    }

    fn not_taken(&self, signal: usize) {
        let name = ["traces", "metrics", "logs"][signal];
        self.change(|report| report.not_taken.push(name));
    }

    fn failed(&mut self, problem: String, after: Option<Duration>) {
        self.passing = Some(problem);
        self.change(|_| {});
        self.backoff.fail(after);
    }

    fn send_metrics(&mut self) {
        if self.refused[METRICS] || self.backoff.has_failed() {
            return;
        }
        let outcome = self.client.send_metrics(&self.registry.snapshot(), self.since, cliq_fs::now());
        match outcome {
            Ok(()) => {}
            Err(error @ ExportError::NotTaken { .. }) => {
                tracing::info!(%error, "a signal is not exported");
                self.refused[METRICS] = true;
                self.not_taken(METRICS);
            }
            Err(error) => self.lost(error.to_string()),
        }
    }
}
