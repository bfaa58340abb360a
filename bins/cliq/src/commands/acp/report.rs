//! Translation of the events of a run into updates of a session: phases are plan entries, activations are tool calls. Pure.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use cliq_acp::schema::{
    ContentChunk, Plan, PlanEntry, PlanEntryPriority, PlanEntryStatus, SessionUpdate, ToolCall,
    ToolCallContent, ToolCallLocation, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields, ToolKind,
};
use cliq_orchestrator::{PhaseStatus, Record, RunEvent, RunView};
use cliq_protocol::{CommandResult, Outcome, PhaseKind, PhaseName, RunId, WaitingReview};

/// Maximum length of a text from a run, in characters.
const MAX_TEXT: usize = 4000;
/// Maximum number of texts in a tool call. Earlier ones are left out.
const MAX_TEXTS: usize = 50;

/// Activation of a phase, as a tool call.
#[derive(Debug, Clone)]
struct Call {
    id: String,
    title: String,
    kind: ToolKind,
    status: ToolCallStatus,
    texts: Vec<String>,
    diffs: Vec<ToolCallContent>,
    locations: Vec<ToolCallLocation>,
}

impl Call {
    fn content(&self) -> Vec<ToolCallContent> {
        self.texts.iter().map(|text| text.clone().into()).chain(self.diffs.iter().cloned()).collect()
    }

    fn add(&mut self, text: impl AsRef<str>) {
        self.texts.push(shorten(text.as_ref()));
        let excess = self.texts.len().saturating_sub(MAX_TEXTS);
        self.texts.drain(..excess);
    }

    fn is_open(&self) -> bool {
        matches!(self.status, ToolCallStatus::InProgress | ToolCallStatus::Pending)
    }

    fn to_update(&self) -> SessionUpdate {
        let call = ToolCall::new(self.id.clone(), self.title.clone())
            .kind(self.kind)
            .status(self.status)
            .content(self.content())
            .locations(self.locations.clone());
        SessionUpdate::ToolCall(call)
    }
}

/// Activation that has ended, whose changes can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EndedActivation {
    pub(super) call: String,
    pub(super) phase: PhaseName,
    pub(super) activation: u32,
}

/// Review that waits, with the tool call of its phase.
#[derive(Debug, Clone)]
pub(super) struct OpenReview {
    pub(super) call: String,
    pub(super) phase: PhaseName,
    pub(super) review: WaitingReview,
}

/// Translator of the events of one run.
#[derive(Debug)]
pub(super) struct Report {
    run: String,
    workspace: Utf8PathBuf,
    view: RunView,
    calls: Vec<Call>,
    /// Index of the last call of each phase, with its activation and the number of calls of the phase.
    current: BTreeMap<PhaseName, (usize, u32, u32)>,
    plan: Vec<PlanEntry>,
    /// Last result of each phase in words.
    results: BTreeMap<PhaseName, String>,
    updates: Vec<SessionUpdate>,
    ended: Vec<EndedActivation>,
}

impl Report {
    /// Returns a translator for a run. `view` knows the phases of the team, or nothing.
    pub(super) fn new(run: &RunId, workspace: Utf8PathBuf, view: RunView) -> Self {
        let run = run.as_str();
        // The last characters of an id are random.
        let short = run.get(run.len().saturating_sub(8)..).unwrap_or(run);
        Self {
            run: short.to_owned(),
            workspace,
            view,
            calls: Vec::new(),
            current: BTreeMap::new(),
            plan: Vec::new(),
            results: BTreeMap::new(),
            updates: Vec::new(),
            ended: Vec::new(),
        }
    }

    /// The run so far.
    pub(super) fn view(&self) -> &RunView {
        &self.view
    }

    /// Last result of each phase, in the words of its agent.
    pub(super) fn results(&self) -> &BTreeMap<PhaseName, String> {
        &self.results
    }

    /// Returns the plan and all calls as they are.
    pub(super) fn snapshot(&self) -> Vec<SessionUpdate> {
        let plan = (!self.plan.is_empty()).then(|| SessionUpdate::Plan(Plan::new(self.plan.clone())));
        plan.into_iter().chain(self.calls.iter().map(Call::to_update)).collect()
    }

    /// Returns the plan and the calls at work.
    pub(super) fn active(&self) -> Vec<SessionUpdate> {
        let plan = (!self.plan.is_empty()).then(|| SessionUpdate::Plan(Plan::new(self.plan.clone())));
        let open = self.calls.iter().filter(|call| call.is_open());
        plan.into_iter().chain(open.map(Call::to_update)).collect()
    }

    /// Returns the reviews that wait for an answer, by id.
    pub(super) fn reviews(&self) -> BTreeMap<String, OpenReview> {
        let waiting = self.view.phases.iter().filter_map(|phase| {
            let review = phase.review.as_ref().filter(|review| !review.reviewers.is_empty())?;
            let (place, ..) = self.current.get(&phase.name)?;
            let call = self.calls.get(*place)?.id.clone();
            Some((review.id.clone(), OpenReview { call, phase: phase.name.clone(), review: review.clone() }))
        });
        // The phase around a team has the review of the team's phase too: the first of both is the outer one.
        waiting.collect()
    }

    /// Returns the phases at work with their activations.
    pub(super) fn activations(&self) -> Vec<(PhaseName, u32)> {
        let is_open = |place: usize| self.calls.get(place).is_some_and(Call::is_open);
        let open = self.current.iter().filter(|(_, (place, ..))| is_open(*place));
        open.map(|(phase, (_, activation, _))| (phase.clone(), *activation)).collect()
    }

    /// Returns the activations that ended since the last call.
    pub(super) fn take_ended(&mut self) -> Vec<EndedActivation> {
        std::mem::take(&mut self.ended)
    }

    /// Adds the changes of an activation to its call.
    pub(super) fn add_changes(
        &mut self,
        call: &str,
        diffs: Vec<ToolCallContent>,
        paths: Vec<Utf8PathBuf>,
    ) -> Option<SessionUpdate> {
        let place = self.calls.iter().position(|known| known.id == call)?;
        let known = self.calls.get_mut(place)?;
        known.diffs = diffs;
        known.locations =
            paths.into_iter().map(|path| ToolCallLocation::new(self.workspace.join(path))).collect();
        Some(Self::change(known))
    }

    /// Takes an event and returns its updates.
    pub(super) fn apply(&mut self, record: &Record) -> Vec<SessionUpdate> {
        self.view.apply(record);
        self.event(&record.event);
        let plan = plan_of(&self.view);
        if plan != self.plan {
            self.plan.clone_from(&plan);
            self.updates.push(SessionUpdate::Plan(Plan::new(plan)));
        }
        let mut updates = std::mem::take(&mut self.updates);
        // Of several changes of a call by one event, the last one has all.
        updates.dedup_by(|later, earlier| match (later, earlier) {
            (SessionUpdate::ToolCallUpdate(later), SessionUpdate::ToolCallUpdate(earlier))
                if later.tool_call_id == earlier.tool_call_id =>
            {
                earlier.fields = later.fields.clone();
                true
            }
            _ => false,
        });
        updates
    }

    fn event(&mut self, event: &RunEvent) {
        match event {
            RunEvent::PhaseStarted { phase, kind, iteration, routed_by } => {
                self.start(phase, *kind, *iteration, routed_by.as_ref());
            }
            RunEvent::SteeringDelivered { phase, .. } => {
                self.updates.push(thought(format!("{phase} received your message")));
            }
            RunEvent::Warning { phase: Some(phase), message } => {
                self.updates.push(thought(format!("{phase}: warning: {message}")));
            }
            RunEvent::CompletionContradicted { phase, reason } => {
                self.updates.push(thought(format!("{phase}: warning: {reason}")));
            }
            RunEvent::Warning { phase: None, message } => {
                self.updates.push(thought(format!("warning: {message}")));
            }
            RunEvent::AccessRefused { phase, access } => {
                self.text(phase, format!("The sandbox refused: {access}"));
            }
            RunEvent::CommandsFinished { phase, results, .. } => {
                let lines: Vec<String> = results.iter().map(command_line).collect();
                if !lines.is_empty() {
                    self.text(phase, lines.join("\n"));
                }
            }
            RunEvent::AgentCompleted { phase, result: Some(result) } => {
                if let Some(text) = summary_of(result) {
                    self.text(phase, &text);
                    self.results.insert(phase.clone(), text);
                }
            }
            RunEvent::ReviewWaits { phase, review, .. } if !review.reviewers.is_empty() => {
                let (who, until) = (review.reviewers.join(", "), &review.until);
                self.text(phase, format!("Waits for a review by {who}, until {until}."));
            }
            RunEvent::Verdict { gate, verdict, .. } => {
                self.text(gate, verdict.sentence());
                if matches!(verdict.outcome, Outcome::Route(_)) {
                    self.end(gate, ToolCallStatus::Completed);
                }
            }
            RunEvent::VerdictRejected { gate, reason, .. } => {
                self.text(gate, format!("The verdict was not valid: {reason}"));
            }
            RunEvent::WorkFailed { phase, reason, output_tail, .. } => {
                self.text(phase, reason);
                if let Some(tail) = output_tail.as_deref().filter(|tail| !tail.trim().is_empty()) {
                    self.text(phase, fenced(tail));
                }
            }
            RunEvent::RetryScheduled { phase, attempt, attempts, reason, .. } => {
                self.text(phase, format!("Attempt {attempt} of {attempts} follows: {reason}"));
                self.end(phase, ToolCallStatus::Failed);
            }
            RunEvent::MergeConflict { phase, item, files, .. } => {
                self.text(phase, format!("Item {item} conflicts: {}", files.join(", ")));
            }
            RunEvent::ItemFailed { phase, reason } => {
                self.text(phase, reason);
                self.end(phase, ToolCallStatus::Failed);
            }
            RunEvent::PhaseCompleted { phase } => self.end(phase, ToolCallStatus::Completed),
            RunEvent::PhaseEscalated { phase, reason } => {
                // The failure of its work has the same reason.
                let is_told = self.call(phase).is_some_and(|call| call.texts.contains(&shorten(reason)));
                if !is_told {
                    self.text(phase, format!("Escalated: {reason}"));
                }
                self.end(phase, ToolCallStatus::Failed);
            }
            RunEvent::PhaseStopped { phase } | RunEvent::PhaseReset { phase } => {
                if self.is_open(phase) {
                    self.text(phase, "Stopped before it was done.");
                }
                self.end(phase, ToolCallStatus::Failed);
            }
            RunEvent::RunResumed { .. } | RunEvent::RunFinished { .. } => self.end_all(),
            // Events without a display in an editor.
            _ => {}
        }
    }

    fn start(&mut self, phase: &PhaseName, kind: PhaseKind, activation: u32, routed_by: Option<&PhaseName>) {
        self.end(phase, ToolCallStatus::Failed);
        let number = self.current.get(phase).map_or(1, |(_, _, number)| number + 1);
        let title = if number == 1 { phase.to_string() } else { format!("{phase} ({number})") };
        let mut call = Call {
            id: format!("{}-{phase}-{number}", self.run),
            title,
            kind: match kind {
                PhaseKind::Exec => ToolKind::Execute,
                kind if kind.is_gate() => ToolKind::Think,
                _ => ToolKind::Other,
            },
            status: ToolCallStatus::InProgress,
            texts: Vec::new(),
            diffs: Vec::new(),
            locations: Vec::new(),
        };
        if let Some(gate) = routed_by {
            call.add(format!("Sent back by {gate}."));
        }
        self.updates.push(call.to_update());
        self.current.insert(phase.clone(), (self.calls.len(), activation, number));
        self.calls.push(call);
    }

    fn call(&mut self, phase: &PhaseName) -> Option<&mut Call> {
        let (place, ..) = self.current.get(phase)?;
        self.calls.get_mut(*place)
    }

    fn is_open(&mut self, phase: &PhaseName) -> bool {
        self.call(phase).is_some_and(|call| call.is_open())
    }

    fn text(&mut self, phase: &PhaseName, text: impl AsRef<str>) {
        let Some(call) = self.call(phase) else { return };
        call.add(text);
        let update = Self::change(call);
        self.updates.push(update);
    }

    fn end(&mut self, phase: &PhaseName, status: ToolCallStatus) {
        let Some(call) = self.call(phase).filter(|call| call.is_open()) else { return };
        call.status = status;
        let (id, update) = (call.id.clone(), Self::change(call));
        self.updates.push(update);
        let activation = self.current.get(phase).map_or(1, |(_, activation, _)| *activation);
        self.ended.push(EndedActivation { call: id, phase: phase.clone(), activation });
    }

    fn end_all(&mut self) {
        let phases: Vec<PhaseName> = self.current.keys().cloned().collect();
        for phase in phases {
            self.end(&phase, ToolCallStatus::Failed);
        }
    }

    fn change(call: &Call) -> SessionUpdate {
        let mut fields = ToolCallUpdateFields::new().status(call.status).content(call.content());
        if !call.locations.is_empty() {
            fields = fields.locations(call.locations.clone());
        }
        SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(call.id.clone(), fields))
    }
}

/// Returns a line of the agent's thoughts.
pub(super) fn thought(text: impl AsRef<str>) -> SessionUpdate {
    SessionUpdate::AgentThoughtChunk(ContentChunk::new(format!("{}\n", shorten(text.as_ref())).into()))
}

/// Returns the plan: the phases in the order of the team. The protocol has no state for a failure, which the entry names.
fn plan_of(view: &RunView) -> Vec<PlanEntry> {
    let is_shown = |phase: &&cliq_orchestrator::PhaseView| {
        phase.name.item().is_none() && (!phase.support || phase.iterations > 0)
    };
    let entry = |phase: &cliq_orchestrator::PhaseView| {
        let (status, word) = match phase.status {
            PhaseStatus::Pending => (PlanEntryStatus::Pending, None),
            PhaseStatus::Running | PhaseStatus::Waiting if view.status.is_some() => {
                (PlanEntryStatus::Pending, Some("stopped"))
            }
            PhaseStatus::Running | PhaseStatus::Waiting => (PlanEntryStatus::InProgress, None),
            PhaseStatus::Completed => (PlanEntryStatus::Completed, None),
            PhaseStatus::Skipped => (PlanEntryStatus::Completed, Some("skipped")),
            PhaseStatus::Failed => (PlanEntryStatus::Pending, Some("failed")),
            PhaseStatus::Escalated => (PlanEntryStatus::Pending, Some("escalated")),
            PhaseStatus::Stopped => (PlanEntryStatus::Pending, Some("stopped")),
        };
        let gate = if phase.kind.is_gate() { " (gate)" } else { "" };
        let word = word.map(|word| format!(": {word}")).unwrap_or_default();
        PlanEntry::new(format!("{}{gate}{word}", phase.name), PlanEntryPriority::Medium, status)
    };
    view.phases.iter().filter(is_shown).map(entry).collect()
}

fn command_line(result: &CommandResult) -> String {
    let mark = match (result.was_skipped(), result.pass) {
        (true, _) => "○",
        (false, true) => "✓",
        (false, false) => "✗",
    };
    let skipped = if result.was_skipped() { " (skipped)" } else { "" };
    let mut line = format!("{mark} {}{skipped}", result.name);
    if let Some(tail) = result.output_tail.as_deref().filter(|tail| !result.pass && !tail.trim().is_empty()) {
        line.push('\n');
        line.push_str(&fenced(tail));
    }
    line
}

/// Returns the summary in the result of an agent.
fn summary_of(result: &serde_json::Value) -> Option<String> {
    let text = match result {
        serde_json::Value::String(text) => text.as_str(),
        result => ["summary", "message", "text"].iter().find_map(|key| result.get(key)?.as_str())?,
    };
    (!text.trim().is_empty()).then(|| text.to_owned())
}

/// Returns a text as a block of code.
pub(super) fn fenced(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}\n{}\n{fence}", shorten(text.trim_end()))
}

/// Returns the beginning of a text without control characters.
pub(super) fn shorten(text: &str) -> String {
    let text = crate::ui::plain(text);
    if text.chars().count() <= MAX_TEXT {
        return text;
    }
    let cut: String = text.chars().take(MAX_TEXT).collect();
    format!("{cut} …")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn report() -> Report {
        let run = RunId::parse("01a21a90-354b-7554-bb69-68ac01263b57").unwrap();
        Report::new(&run, "/w".into(), RunView::empty())
    }

    fn apply(report: &mut Report, event: Value) -> Vec<Value> {
        let mut line = event;
        line["ts"] = "2026-11-27T01:00:00.000Z".into();
        let record = Record::decode(line.to_string().as_bytes()).unwrap();
        report.apply(&record).into_iter().map(|update| json!(update)).collect()
    }

    #[test]
    fn activations_are_tool_calls_and_phases_the_plan() {
        let mut report = report();
        let started = |phase: &str, kind: &str, iteration: u32| json!({"event": "phase_started", "phase": phase, "kind": kind, "iteration": iteration});
        let result = json!({"name": "lint", "pass": false, "exit_code": 1, "output_tail": "a ``` b\n"});
        let events = [
            started("build", "standard", 1),
            json!({"event": "agent_completed", "phase": "build", "result": {"summary": "built \u{1b}[31mit"}}),
            json!({"event": "phase_completed", "phase": "build"}),
            started("check", "gate", 1),
            json!({"event": "commands_finished", "phase": "check", "iteration": 1, "results": [result]}),
            json!({"event": "verdict", "gate": "check", "iteration": 1, "max_iterations": 3, "verdict": {"outcome": "ROUTE", "target": "build", "reason": "mend it"}}),
            json!({"event": "phase_reset", "phase": "build"}),
            json!({"event": "phase_started", "phase": "build", "kind": "standard", "iteration": 2, "routed_by": "check"}),
            json!({"event": "work_failed", "phase": "build", "reason": "it broke"}),
            json!({"event": "phase_escalated", "phase": "build", "reason": "it broke"}),
            json!({"event": "run_finished", "status": "ESCALATED", "reason": "it broke", "phase": "build"}),
        ];
        let updates: Vec<Value> = events.into_iter().flat_map(|event| apply(&mut report, event)).collect();
        let lines: Vec<String> = updates.iter().map(Value::to_string).collect();
        insta::assert_snapshot!("updates", lines.join("\n"));
        assert_eq!(report.take_ended().len(), 3);
        // The replay has each call once, as it ended.
        let replay: Vec<Value> = report.snapshot().into_iter().map(|update| json!(update)).collect();
        assert_eq!(replay.len(), 4);
        assert_eq!(replay[1]["toolCallId"], "01263b57-build-1");
        assert!(replay.iter().skip(1).all(|call| call["status"] != "in_progress"));
    }

    #[test]
    fn reviews_wait_while_somebody_has_to_answer() {
        let mut report = report();
        let waits = |reviewers: &[&str]| {
            json!({"event": "review_waits", "phase": "approval", "iteration": 1, "review": {
                "id": "abc", "reviewers": reviewers, "since": "2026-11-27T01:00:00.000Z", "until": "2026-11-28T01:00:00.000Z",
                "route_targets": ["build"]}})
        };
        apply(
            &mut report,
            json!({"event": "phase_started", "phase": "approval", "kind": "hug", "iteration": 1}),
        );
        apply(&mut report, waits(&["ann"]));
        let open = report.reviews();
        assert_eq!(open["abc"].call, "01263b57-approval-1");
        apply(&mut report, waits(&[]));
        assert!(report.reviews().is_empty());
    }
}
