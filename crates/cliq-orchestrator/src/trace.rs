//! Trace of a run (docs/telemetry.md): ids of its spans. They follow from the journal alone, so that the process that starts an agent, the
//! one that exports the trace and one that resumes the run agree on them.

use std::collections::HashMap;

use cliq_protocol::{PhaseName, RunId, SpanId, Timestamp, TraceContext, TraceId};

use crate::events::{Record, RunEvent};

/// Trace that a run is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TraceSource {
    /// None: agents and commands receive no context.
    #[default]
    Off,
    /// A trace of its own, which is recorded if the [sampling value](TraceId::sampling_value) of its id is below this bound.
    Own {
        /// Bound: 2^63 to record each trace.
        below: u64,
    },
    /// The trace of the caller.
    Within(TraceContext),
}

/// Ids of the spans of a run, as far as its journal was read.
#[derive(Debug, Clone)]
pub struct RunTrace {
    run_id: RunId,
    parent: Option<TraceContext>,
    trace: TraceId,
    /// Number of times that the run ended.
    ends: u32,
    phases: HashMap<PhaseName, Starts>,
}

/// Number of starts of a phase and of its agent.
#[derive(Debug, Clone, Copy, Default)]
struct Starts {
    phase: u32,
    agent: u32,
}

impl TraceSource {
    /// Bound of a source whose traces are all recorded.
    pub const ALL: u64 = 1 << 63;
}

impl RunTrace {
    /// Returns the ids of a run whose journal was not read yet. `parent` is the span of the caller.
    #[must_use]
    pub fn new(run_id: RunId, parent: Option<TraceContext>) -> Self {
        let trace = parent.map_or_else(|| TraceId::of(run_id.as_str()), |parent| parent.trace);
        Self { run_id, parent, trace, ends: 0, phases: HashMap::new() }
    }

    /// Returns the ids of the run that a journal begins with, or `None` for the journal of no run.
    #[must_use]
    pub fn of(first: &Record) -> Option<Self> {
        let RunEvent::RunStarted { run_id, trace, .. } = &first.event else { return None };
        Some(Self::new(run_id.clone(), *trace))
    }

    /// Whether the trace is recorded, by what the caller or the bound says.
    #[must_use]
    pub fn is_sampled(&self, below: u64) -> bool {
        self.parent.map_or_else(|| self.trace.sampling_value() < below, |parent| parent.is_sampled)
    }

    /// Counts the starts of an event.
    pub fn observe(&mut self, event: &RunEvent) {
        match event {
            RunEvent::PhaseStarted { phase, .. } => self.starts(phase).phase += 1,
            RunEvent::AgentStarted { phase, .. } => self.starts(phase).agent += 1,
            RunEvent::RunFinished { .. } => self.ends += 1,
            _ => {}
        }
    }

    fn starts(&mut self, phase: &PhaseName) -> &mut Starts {
        self.phases.entry(phase.clone()).or_default()
    }

    fn started(&self, phase: &PhaseName) -> Starts {
        self.phases.get(phase).copied().unwrap_or_default()
    }

    /// The trace.
    #[must_use]
    pub fn id(&self) -> TraceId {
        self.trace
    }

    /// The span of the caller.
    #[must_use]
    pub fn parent(&self) -> Option<TraceContext> {
        self.parent
    }

    fn span(&self, name: &[&str]) -> SpanId {
        let mut whole = vec![self.run_id.as_str()];
        whole.extend(name);
        self.trace.span(&whole)
    }

    /// The span of the run. A run that ended and was resumed has one more.
    #[must_use]
    pub fn run_span(&self) -> SpanId {
        self.run_span_of(self.ends)
    }

    /// The span of the run before it ended last, if it ended.
    #[must_use]
    pub fn earlier_run_span(&self) -> Option<SpanId> {
        Some(self.run_span_of(self.ends.checked_sub(1)?))
    }

    fn run_span_of(&self, ends: u32) -> SpanId {
        self.span(&["run", &ends.to_string()])
    }

    /// The span of the last start of a phase.
    #[must_use]
    pub fn phase_span(&self, phase: &PhaseName) -> SpanId {
        self.span(&["phase", phase.as_str(), &self.started(phase).phase.to_string()])
    }

    /// The span of the last start of the agent of a phase.
    #[must_use]
    pub fn agent_span(&self, phase: &PhaseName) -> SpanId {
        self.agent_span_of(phase, self.started(phase).agent)
    }

    /// The span of the next start of the agent of a phase.
    #[must_use]
    pub fn next_agent_span(&self, phase: &PhaseName) -> SpanId {
        self.agent_span_of(phase, self.started(phase).agent + 1)
    }

    fn agent_span_of(&self, phase: &PhaseName, start: u32) -> SpanId {
        self.span(&["agent", phase.as_str(), &start.to_string()])
    }

    /// The span of the command with a number, from 0, of the last start of a phase. `repository` is empty unless the command runs in each
    /// repository.
    #[must_use]
    pub fn command_span(&self, phase: &PhaseName, command: &str, repository: &str) -> SpanId {
        let start = self.started(phase).phase.to_string();
        self.span(&["command", phase.as_str(), &start, command, repository])
    }

    /// A span of the last start of a phase: a review or a merge.
    #[must_use]
    pub fn part_span(&self, phase: &PhaseName, kind: &str, id: &str) -> SpanId {
        self.span(&[kind, phase.as_str(), &self.started(phase).phase.to_string(), id])
    }

    /// The span of a reply of a model: the reply with a number in the transcript of an activation.
    #[must_use]
    pub fn reply_span(&self, phase: &PhaseName, activation: u32, reply: usize) -> SpanId {
        self.span(&["reply", phase.as_str(), &activation.to_string(), &reply.to_string()])
    }

    /// The span of a request to a model that failed.
    #[must_use]
    pub fn failed_span(&self, phase: &PhaseName, activation: u32, at: Timestamp) -> SpanId {
        let time = at.unix_millis().to_string();
        self.span(&["failed", phase.as_str(), &activation.to_string(), &time])
    }

    /// The id of the log line of a record of the journal.
    #[must_use]
    pub fn log_span(&self, record: u64) -> SpanId {
        self.span(&["log", &record.to_string()])
    }

    /// Returns the context of a span for the environment of a process.
    #[must_use]
    pub fn context(&self, span: SpanId, is_sampled: bool) -> TraceContext {
        TraceContext { trace: self.trace, span, is_sampled }
    }
}
