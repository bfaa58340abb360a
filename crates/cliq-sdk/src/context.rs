//! Context of handlers.
// A new outcome has to be handled by name.
#![deny(clippy::wildcard_enum_match_arm)]

use std::collections::BTreeMap;
use std::io;
use std::ops::Deref;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::{FsError, read_handoff, read_if_exists, write_handoff, write_handoffs};
use cliq_protocol::{
    AgentMessage, AskAnswer, AskDispatch, Body, CommandResult, Envelope, EnvelopeType, FieldError, GateData,
    GateDispatch, HistoryEntry, NotifyDetails, NotifyRequest, Object, Outcome, PhaseDispatch, PhaseInfo,
    PhaseName, ReviewSpec, RunId, TeamDispatch, Usage, Verdict,
};
use serde_json::Value;

use crate::{Completion, Handoff, ReceivedHandoff, Reporter, SdkError, Steering};

/// Context of every phase's agent.
#[derive(Debug)]
pub struct PhaseContext {
    message: AgentMessage,
    dispatch: PhaseDispatch,
    reporter: Reporter,
    /// The most bytes of a file that others wrote.
    file_limit: u64,
}

impl PhaseContext {
    pub(crate) fn new(
        message: AgentMessage,
        dispatch: PhaseDispatch,
        reporter: Reporter,
        file_limit: u64,
    ) -> Self {
        Self { message, dispatch, reporter, file_limit }
    }

    /// The phase.
    #[must_use]
    pub fn phase(&self) -> &PhaseInfo {
        &self.dispatch.phase
    }

    /// Id of the run.
    #[must_use]
    pub fn run_id(&self) -> &RunId {
        &self.message.run_id
    }

    /// The directory to work in.
    #[must_use]
    pub fn workspace(&self) -> &Utf8Path {
        &self.message.workspace
    }

    /// The project's `.cliq`.
    #[must_use]
    pub fn cliq_dir(&self) -> &Utf8Path {
        &self.message.cliq_dir
    }

    /// Directory for files for others: `.cliq/files/<phase>/`.
    #[must_use]
    pub fn files_dir(&self) -> &Utf8Path {
        &self.dispatch.files_dir
    }

    /// The team's inputs.
    #[must_use]
    pub fn inputs(&self) -> &BTreeMap<String, String> {
        &self.dispatch.inputs
    }

    /// The whole dispatch, for what has no method of its own.
    #[must_use]
    pub fn dispatch(&self) -> &PhaseDispatch {
        &self.dispatch
    }

    /// To report with from other threads.
    #[must_use]
    pub fn reporter(&self) -> &Reporter {
        &self.reporter
    }

    /// Reads the requirement for the team.
    ///
    /// # Errors
    /// The file is there and cannot be read.
    pub fn requirement(&self) -> Result<Option<String>, SdkError> {
        self.read_file(self.dispatch.requirement_file.as_deref())
    }

    /// Reads the role of the agent.
    ///
    /// # Errors
    /// The file is there and cannot be read.
    pub fn role(&self) -> Result<Option<String>, SdkError> {
        self.read_file(self.dispatch.phase.role_file.as_deref())
    }

    /// The shared task board.
    ///
    /// # Errors
    /// The file is there and cannot be read.
    pub fn task_board(&self) -> Result<Option<String>, SdkError> {
        self.read_file(self.dispatch.task_board_file.as_deref())
    }

    /// All channels to this phase, with the handoffs in them.
    ///
    /// # Errors
    /// A handoff is there and is none: the error names file, field and what was expected.
    pub fn incoming(&self) -> Result<Vec<ReceivedHandoff>, SdkError> {
        let read_one = |channel: &cliq_protocol::Incoming| {
            Ok(ReceivedHandoff {
                from: channel.from.clone(),
                envelope: read_handoff(&channel.dir, &channel.from, self.file_limit)?,
                instructions: self.read_file(channel.instructions_file.as_deref())?,
            })
        };
        self.dispatch.incoming.iter().map(read_one).collect()
    }

    /// The handoff of one phase; `None` if there is none.
    ///
    /// # Errors
    /// Returns an error if the handoff exists and is invalid.
    pub fn handoff_from(&self, phase: &str) -> Result<Option<Envelope>, SdkError> {
        match self.dispatch.incoming.iter().find(|channel| channel.from == phase) {
            Some(channel) => Ok(read_handoff(&channel.dir, &channel.from, self.file_limit)?),
            None => Ok(None),
        }
    }

    /// The handoffs of all items of a phase with `for_each`, in order, each with the index of its item. Items that were skipped or failed
    /// are left out. For other phases, their one handoff with the index 0.
    ///
    /// # Errors
    /// Returns an error if a handoff exists and is invalid.
    pub fn handoffs_from(&self, phase: &str) -> Result<Vec<(u32, Envelope)>, SdkError> {
        let mut handoffs = Vec::new();
        for channel in self.dispatch.incoming.iter().filter(|channel| channel.from.whole() == phase) {
            if let Some(envelope) = read_handoff(&channel.dir, &channel.from, self.file_limit)? {
                handoffs.push((channel.from.item().unwrap_or(0), envelope));
            }
        }
        Ok(handoffs)
    }

    /// Item of the activation and its index, if the phase has a `for_each` (docs/expressions.md).
    #[must_use]
    pub fn item(&self) -> Option<(u32, &Value)> {
        Some((self.dispatch.phase.index?, self.dispatch.phase.item.as_ref()?))
    }

    /// The text of a file that the message names, such as the instructions of a channel; `None` if there is none.
    ///
    /// # Errors
    /// The file is there and cannot be read: it is not a regular file, leads out of the project, is too large or is not UTF-8.
    pub fn read_file(&self, file: Option<&Utf8Path>) -> Result<Option<String>, SdkError> {
        let Some(file) = file else { return Ok(None) };
        let Some(bytes) = read_if_exists(file, self.file_limit)? else { return Ok(None) };
        let not_text = |_| FsError {
            action: "read",
            path: file.to_owned(),
            source: io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"),
        };
        Ok(Some(String::from_utf8(bytes).map_err(not_text)?))
    }

    /// Returns a reader of the steering messages of this activation: guidance that people send to the run (docs/steering.md).
    #[must_use]
    pub fn steering(&self) -> Steering {
        Steering::new(&self.dispatch)
    }

    /// Says how far the work is.
    ///
    /// # Errors
    /// The channel cannot be written.
    pub fn progress(&self, message: impl Into<String>) -> Result<(), SdkError> {
        self.reporter.progress(message)
    }

    /// Reports the usage of language models of this activation so far, as [`Reporter::usage`] does.
    ///
    /// # Errors
    /// The channel cannot be written.
    pub fn usage(&self, usage: &Usage) -> Result<(), SdkError> {
        self.reporter.usage(usage)
    }

    /// Asks the orchestrator to have `agent` notify `channel` of `event`.
    ///
    /// # Errors
    /// The channel cannot be written.
    pub fn notify(
        &self,
        agent: &str,
        channel: Option<&str>,
        event: &str,
        payload: Value,
    ) -> Result<(), SdkError> {
        self.reporter.notify(NotifyRequest {
            id: None,
            agent: agent.to_owned(),
            channel: channel.map(str::to_owned),
            event: event.to_owned(),
            payload: Some(payload),
            extra: Object::new(),
        })
    }

    /// Hands the same to every phase that waits for this one.
    ///
    /// # Errors
    /// A channel cannot be written.
    pub fn send(&self, handoff: &Handoff) -> Result<(), SdkError> {
        let envelope = self.envelope(handoff);
        Ok(write_handoffs(self.dispatch.outgoing.iter().map(|channel| channel.dir.as_path()), &envelope)?)
    }

    /// Hands something to one phase.
    ///
    /// # Errors
    /// There is no channel to it, or it cannot be written.
    pub fn send_to(&self, to: &str, handoff: &Handoff) -> Result<(), SdkError> {
        let Some(channel) = self.dispatch.outgoing.iter().find(|channel| channel.to == to) else {
            let known = names(self.dispatch.outgoing.iter().map(|channel| &channel.to));
            return Err(SdkError::NoChannel { to: to.to_owned(), known });
        };
        Ok(write_handoff(&channel.dir, &self.envelope(handoff))?)
    }

    fn envelope(&self, handoff: &Handoff) -> Envelope {
        let phase = &self.dispatch.phase;
        let data = handoff.data.clone();
        let body = match phase.kind.envelope_type() {
            EnvelopeType::Team => Body::Team(data),
            // A gate's own words to those behind it are not a verdict.
            EnvelopeType::Standard | EnvelopeType::Gate => Body::Standard(data),
        };
        Envelope {
            phase: phase.name.clone(),
            agent: phase.agent.clone(),
            body,
            text: handoff.text.clone(),
            limited: handoff.limited.clone(),
            extra: Object::new(),
        }
    }
}

fn names<'a>(names: impl Iterator<Item = &'a PhaseName>) -> String {
    let names: Vec<&str> = names.map(PhaseName::as_str).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

macro_rules! phase_contexts {
    ($($(#[$doc:meta])* $name:ident),*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name {
            pub(crate) base: PhaseContext,
        }

        impl Deref for $name {
            type Target = PhaseContext;
            fn deref(&self) -> &PhaseContext {
                &self.base
            }
        }
    )*};
}

phase_contexts! {
    /// For the agent of a standard phase.
    StandardContext,
    /// For the agent of a gate.
    GateContext,
    /// For the agent of a team phase.
    TeamContext
}

impl StandardContext {
    /// Success, with a result for the record. Return it from the handler.
    pub fn complete(&self, result: Value) -> Completion {
        Completion::new(Some(result))
    }
}

impl TeamContext {
    /// Team to run, with its inputs.
    #[must_use]
    pub fn team(&self) -> Option<&TeamDispatch> {
        self.dispatch.team.as_ref()
    }

    /// Success, with a result for the record. Return it from the handler.
    pub fn complete(&self, result: Value) -> Completion {
        Completion::new(Some(result))
    }
}

impl GateContext {
    /// Data of the gate. Always present in a dispatch for a gate; see [`crate::Agent`].
    fn gate(&self) -> Option<&GateDispatch> {
        self.dispatch.gate.as_ref()
    }

    /// Number of the evaluation, 1-based.
    #[must_use]
    pub fn iteration(&self) -> u32 {
        self.gate().map_or(1, |gate| gate.iteration)
    }

    /// Maximum number of evaluations.
    #[must_use]
    pub fn max_iterations(&self) -> u32 {
        self.gate().map_or(1, |gate| gate.max_iterations)
    }

    /// Results of the commands.
    #[must_use]
    pub fn checks(&self) -> &[CommandResult] {
        self.gate().map_or(&[], |gate| &gate.checks)
    }

    /// Earlier evaluations, oldest first.
    #[must_use]
    pub fn history(&self) -> &[HistoryEntry] {
        self.gate().map_or(&[], |gate| &gate.history)
    }

    /// Phases to which the gate may route, most likely first.
    #[must_use]
    pub fn route_targets(&self) -> &[PhaseName] {
        self.gate().map_or(&[], |gate| &gate.route_targets)
    }

    /// Reason why the last answer to this very evaluation was no valid verdict, where that happened.
    #[must_use]
    pub fn rejected(&self) -> Option<&str> {
        self.gate().and_then(|gate| gate.rejected.as_deref())
    }

    /// The `review` block of a human gate, and the number of this evaluation in the whole run.
    ///
    /// # Errors
    /// The message has none, or it cannot be read.
    pub fn review(&self) -> Result<(ReviewSpec, u32), FieldError> {
        let gate = self.gate();
        let block = gate.and_then(|gate| gate.review.clone()).unwrap_or_default();
        let evaluation = gate.and_then(|gate| gate.evaluation).unwrap_or_else(|| self.iteration());
        Ok((ReviewSpec::from_value(block)?, evaluation))
    }

    /// Request of an agent at work, if the message is about one and not about a verdict.
    #[must_use]
    pub fn ask(&self) -> Option<&AskDispatch> {
        self.gate().and_then(|gate| gate.ask.as_ref())
    }

    /// Answers the request of an agent at work. Return it from the handler.
    pub fn answer_ask(&self, answer: &AskAnswer) -> Completion {
        Completion::new(Some(serde_json::json!({ "ask": answer })))
    }

    /// PASS. The verdict goes to every phase that waits for the gate.
    ///
    /// # Errors
    /// A channel cannot be written.
    pub fn pass(&self, reason: impl Into<String>) -> Result<Completion, SdkError> {
        self.decide(&Verdict::pass(reason))
    }

    /// ROUTE: `target` works again. The verdict goes to it.
    ///
    /// # Errors
    /// The gate may not route there, or the channel cannot be written.
    pub fn route(&self, target: &str, reason: impl Into<String>) -> Result<Completion, SdkError> {
        let Some(target) = self.route_targets().iter().find(|name| **name == target) else {
            let known = names(self.route_targets().iter());
            return Err(SdkError::RouteTarget { target: target.to_owned(), known });
        };
        self.decide(&Verdict::route(target.clone(), reason))
    }

    /// ESCALATE: a person is needed.
    pub fn escalate(&self, reason: impl Into<String>) -> Completion {
        completion(&Verdict::escalate(reason), &Object::new())
    }

    /// Renders any verdict.
    ///
    /// # Errors
    /// As for [`Self::pass`] and [`Self::route`].
    pub fn decide(&self, verdict: &Verdict) -> Result<Completion, SdkError> {
        self.decide_with(verdict, &Object::new())
    }

    /// Renders a verdict with more data: fields beside `verdict` in the handoff, and in the result.
    ///
    /// # Errors
    /// As for [`Self::pass`] and [`Self::route`].
    pub fn decide_with(&self, verdict: &Verdict, data: &Object) -> Result<Completion, SdkError> {
        let envelope = self.gate_envelope(verdict.clone(), data.clone());
        match &verdict.outcome {
            Outcome::Pass => {
                let channels = self.dispatch.outgoing.iter().map(|channel| channel.dir.as_path());
                write_handoffs(channels, &envelope)?;
            }
            Outcome::Route(target) => {
                if !self.route_targets().contains(target) {
                    let known = names(self.route_targets().iter());
                    return Err(SdkError::RouteTarget { target: target.to_string(), known });
                }
                let channels = self.message.cliq_dir.join("channels");
                let channel = channels.join(format!("{}--{target}", self.dispatch.phase.name));
                write_handoff(&channel, &envelope)?;
            }
            Outcome::Escalate => {}
        }
        Ok(completion(verdict, data))
    }

    fn gate_envelope(&self, verdict: Verdict, extra: Object) -> Envelope {
        let data = GateData {
            verdict,
            checks: self.checks().to_vec(),
            iteration: self.iteration(),
            max_iterations: self.max_iterations(),
            extra,
        };
        Envelope::gate(self.dispatch.phase.name.clone(), self.dispatch.phase.agent.clone(), data)
    }
}

fn completion(verdict: &Verdict, data: &Object) -> Completion {
    let mut result = data.clone();
    result.insert("verdict".to_owned(), verdict.to_value());
    Completion::new(Some(Value::Object(result)))
}

/// For an agent that delivers a notification.
#[derive(Debug)]
pub struct NotifyContext {
    pub(crate) cliq_dir: Utf8PathBuf,
    pub(crate) details: NotifyDetails,
    pub(crate) reporter: Reporter,
}

impl NotifyContext {
    /// The project's `.cliq`.
    #[must_use]
    pub fn cliq_dir(&self) -> &Utf8Path {
        &self.cliq_dir
    }

    /// Notification to deliver.
    #[must_use]
    pub fn details(&self) -> &NotifyDetails {
        &self.details
    }

    /// To report with from other threads.
    #[must_use]
    pub fn reporter(&self) -> &Reporter {
        &self.reporter
    }

    /// Says how far the work is.
    ///
    /// # Errors
    /// The channel cannot be written.
    pub fn progress(&self, message: impl Into<String>) -> Result<(), SdkError> {
        self.reporter.progress(message)
    }

    /// Success. Return it from the handler.
    pub fn complete(&self) -> Completion {
        Completion::new(None)
    }
}
