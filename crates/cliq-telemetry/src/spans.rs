//! Spans of a run, from its journal and its transcripts (docs/telemetry.md). Pure: the same records and lines give the same spans with the
//! same ids, in whichever process, and however often they are read.

mod agents;
mod content;
mod logs;
mod parts;
mod phases;
mod transcript;

use std::collections::{BTreeMap, HashMap, HashSet};

use cliq_orchestrator::{Record, RunEvent, RunTrace};
use cliq_protocol::{PhaseName, Prices, RunId, SpanId, Timestamp, Usage};

use crate::conventions::{OPENINFERENCE_KIND, key, operation, own};
use crate::metrics::{Measurement, RUN_DURATION, RUNS_FINISHED};
use crate::span::{Attribute, Batch, LogLine, Span, SpanKind, Value};
use agents::Activation;
pub use content::Mask;
use parts::OpenReview;
use phases::OpenPhase;
use transcript::Transcript;

/// Reason why a span ended without an end of its own.
const INTERRUPTED: &str = "interrupted";

/// Options of spans.
#[derive(Debug, Clone, Default)]
pub struct SpanOptions {
    /// Whether messages, arguments, results and reasons are part of spans.
    pub content: bool,
    /// Prices of models, for replies whose cost was not reported.
    pub prices: Prices,
    /// Texts that are replaced in content.
    pub mask: Mask,
}

/// Builder of the spans of a run.
#[derive(Debug)]
pub struct TraceBuilder {
    options: SpanOptions,
    ids: RunTrace,
    run_id: RunId,
    team: String,
    title: Option<String>,
    /// Number of records that were read.
    records: u64,
    /// Start of the run, or of its resumption after an end.
    started: Timestamp,
    /// Whether the run has ended and was not resumed.
    has_ended: bool,
    /// Time of the last record.
    now: Timestamp,
    phases: HashMap<PhaseName, OpenPhase>,
    /// Last span of each gate that has sent work back.
    gates: HashMap<PhaseName, SpanId>,
    agents: HashMap<PhaseName, Vec<Activation>>,
    reviews: BTreeMap<String, OpenReview>,
    transcripts: HashMap<(PhaseName, u32), Transcript>,
    usage: Usage,
    /// Replies, calls and failures that were seen: a transcript that is written anew repeats them.
    seen: HashSet<SpanId>,
    batch: Batch,
}

impl TraceBuilder {
    /// Returns the builder for the run that a journal begins with, or `None` if the record is not the start of a run.
    #[must_use]
    pub fn new(first: &Record, options: SpanOptions) -> Option<Self> {
        let RunEvent::RunStarted { run_id, team, title, .. } = &first.event else { return None };
        let start = first.ts.time().unwrap_or(Timestamp::UNIX_EPOCH);
        Some(Self {
            options,
            ids: RunTrace::of(first)?,
            run_id: run_id.clone(),
            team: team.clone(),
            title: title.clone(),
            records: 0,
            started: start,
            has_ended: false,
            now: start,
            phases: HashMap::new(),
            gates: HashMap::new(),
            agents: HashMap::new(),
            reviews: BTreeMap::new(),
            transcripts: HashMap::new(),
            usage: Usage::default(),
            seen: HashSet::new(),
            batch: Batch::default(),
        })
    }

    /// Ids of the run's spans.
    #[must_use]
    pub fn ids(&self) -> &RunTrace {
        &self.ids
    }

    /// The run.
    #[must_use]
    pub fn run_id(&self) -> &RunId {
        &self.run_id
    }

    /// Takes what is complete.
    pub fn take(&mut self) -> Batch {
        std::mem::take(&mut self.batch)
    }

    /// Phases whose agent is at work, in no order: their transcripts grow.
    #[must_use]
    pub fn working(&self) -> Vec<PhaseName> {
        let is_open =
            |activations: &&Vec<Activation>| activations.iter().any(|activation| activation.end.is_none());
        self.agents.iter().filter(|(_, all)| is_open(all)).map(|(phase, _)| phase.clone()).collect()
    }

    /// Returns the phases whose transcripts are to be read before a record: their agents end with it.
    #[must_use]
    pub fn reads_before(&self, record: &Record) -> Vec<PhaseName> {
        match &record.event {
            RunEvent::AgentCompleted { phase, .. }
            | RunEvent::WorkFailed { phase, .. }
            | RunEvent::AgentStarted { phase, .. }
            | RunEvent::PhaseStopped { phase } => vec![phase.clone()],
            RunEvent::RunParked { .. } | RunEvent::RunInterrupted | RunEvent::RunFinished { .. } => {
                self.working()
            }
            _ => Vec::new(),
        }
    }

    /// Applies a record. Transcripts of [`TraceBuilder::reads_before`] were read.
    pub fn observe(&mut self, record: &Record) {
        // A clock that was set back must not make spans end before they start.
        self.now = record.ts.time().unwrap_or(self.now).max(self.now);
        self.records += 1;
        // The line of a start belongs to the span that begins, each other one to the span that is there.
        let starts = matches!(record.event, RunEvent::PhaseStarted { .. });
        if !starts {
            self.log(&record.event);
        }
        let ends = matches!(record.event, RunEvent::RunFinished { .. });
        // The spans of an event are those after its start is counted, and before its end is.
        if !ends {
            self.ids.observe(&record.event);
        }
        match &record.event {
            RunEvent::RunResumed { .. } => self.resumed(),
            RunEvent::PhaseStarted { phase, kind, iteration, routed_by } => {
                self.phase_started(phase, *kind, *iteration, routed_by.as_ref());
            }
            RunEvent::PhaseCompleted { phase } => self.phase_ended(phase, None, None),
            RunEvent::PhaseEscalated { phase, reason } => {
                self.phase_ended(phase, Some("escalated"), Some(reason));
            }
            RunEvent::PhaseStopped { phase } => {
                self.agent_ended(phase, Some("stopped"), None);
                self.phase_ended(phase, Some("stopped"), None);
            }
            RunEvent::Verdict { gate, iteration, verdict, .. } => self.verdict(gate, *iteration, verdict),
            RunEvent::AgentStarted { phase, iteration, agent, .. } => {
                self.agent_started(phase, *iteration, agent)
            }
            RunEvent::AgentCompleted { phase, .. } => self.agent_ended(phase, None, None),
            RunEvent::WorkFailed { phase, reason, cause, limited, .. } => {
                self.work_failed(phase, reason, *cause, limited.as_ref());
            }
            RunEvent::UsageReported { phase, usage, .. } => self.usage_reported(phase, usage),
            RunEvent::CommandsFinished { phase, results, .. } => self.commands_finished(phase, results),
            RunEvent::ReviewWaits { phase, review, .. } => self.review_waits(phase, review),
            RunEvent::ItemsMerged { phase, conflict, files, reason, .. } => {
                self.items_merged(phase, conflict.is_some(), files.len(), reason.as_deref());
            }
            RunEvent::RunParked { .. } => self.end_agents(None),
            RunEvent::RunInterrupted => {
                self.end_agents(Some(INTERRUPTED));
                self.end_phases(INTERRUPTED);
            }
            RunEvent::RunFinished { status, reason, .. } => {
                self.run_finished(status.as_str(), reason.as_deref());
            }
            _ => {}
        }
        if starts {
            self.log(&record.event);
        }
        if ends {
            self.ids.observe(&record.event);
        }
    }

    /// A run that ended goes on: its span is another one, which follows the first.
    fn resumed(&mut self) {
        if std::mem::take(&mut self.has_ended) {
            self.started = self.now;
        }
    }

    fn run_finished(&mut self, status: &str, reason: Option<&str>) {
        self.end_agents(Some(INTERRUPTED));
        self.end_phases("stopped");
        self.end_reviews(|_| true);
        let outcome = status.to_lowercase();
        let mut attributes: Vec<Attribute> = vec![
            (key::OPERATION, operation::INVOKE_WORKFLOW.into()),
            (key::WORKFLOW, self.team.as_str().into()),
            (own::RUN_OUTCOME, outcome.as_str().into()),
            (OPENINFERENCE_KIND, "CHAIN".into()),
        ];
        if self.usage != Usage::default() {
            attributes.extend(totals(&self.usage));
        }
        let has_failed = status != "COMPLETED";
        if has_failed {
            attributes.push((key::ERROR, outcome.as_str().into()));
        }
        if self.options.content {
            attributes.extend(
                self.title.clone().map(|title| (own::RUN_TITLE, self.options.mask.apply(&title).into())),
            );
            attributes.extend(reason.map(|reason| (own::REASON, self.options.mask.apply(reason).into())));
        }
        let labels = || [("cliq.run.outcome", outcome.clone()), (key::WORKFLOW, self.team.clone())];
        let seconds = self.now.since(self.started).as_secs_f64();
        let measurements = vec![
            Measurement::new(&RUNS_FINISHED, 1.0, labels()),
            Measurement::new(&RUN_DURATION, seconds, labels()),
        ];
        let earlier = self.ids.earlier_run_span();
        let span = Span {
            trace: self.ids.id(),
            id: self.ids.run_span(),
            parent: earlier.or_else(|| self.ids.parent().map(|parent| parent.span)),
            name: format!("invoke_workflow {}", self.team),
            kind: SpanKind::Internal,
            start: self.started,
            end: self.now,
            attributes,
            links: earlier.into_iter().collect(),
            error: has_failed.then(|| format!("the run ended {status}")),
            measurements,
        };
        self.push(span);
        // What is resumed later counts anew.
        self.usage = Usage::default();
        self.has_ended = true;
    }

    /// Adds a span, with the attributes that all have.
    fn push(&mut self, mut span: Span) {
        span.end = span.end.max(span.start);
        span.attributes.push((key::CONVERSATION, self.run_id.as_str().into()));
        span.attributes.push((own::RUN, self.run_id.as_str().into()));
        self.batch.spans.push(span);
    }

    /// Text for the description of a failure: the reason if content is exported, otherwise what cliq itself says.
    fn failure(&self, reason: Option<&str>, own: &str) -> String {
        match reason.filter(|_| self.options.content) {
            Some(reason) => self.options.mask.apply(reason),
            None => own.to_owned(),
        }
    }

    /// Price of a usage: as reported, or by the prices in the settings.
    fn cost(&self, usage: &Usage) -> Option<f64> {
        let price = || self.options.prices.get(usage.model.as_ref()?).map(|price| price.cost(usage));
        usage.cost_usd.or_else(price)
    }

    fn push_log(&mut self, line: LogLine) {
        self.batch.logs.push(line);
    }
}

/// Counts of all replies of an agent or run. The attributes of the conventions are those of replies, so that no reader counts twice.
fn totals(usage: &Usage) -> impl Iterator<Item = Attribute> {
    let mut all: Vec<Attribute> =
        vec![(own::INPUT_TOKENS, usage.tokens_in.into()), (own::OUTPUT_TOKENS, usage.tokens_out.into())];
    all.extend(usage.cost_usd.map(|cost| (own::COST, cost.into())));
    all.extend(usage.estimated.then_some((own::ESTIMATED, Value::Bool(true))));
    all.into_iter()
}
