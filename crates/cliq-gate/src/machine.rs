//! The machine itself.

use cliq_protocol::{CommandResult, HistoryEntry, Outcome, PhaseName, Verdict, shorten};
use serde_json::Value;

/// Specification of a gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateSpec {
    /// Evaluations it has, at least 1.
    pub max_iterations: u32,
    /// Phases it may route to.
    pub route_targets: Vec<PhaseName>,
    /// Whether a person judges. Then every command must pass before anyone is asked (docs/reviews.md).
    pub human: bool,
    /// Commands that must pass before the gate does (docs/expressions.md).
    pub required: Vec<String>,
}

/// State of a gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GateState {
    /// The dependencies are not complete.
    Waiting,
    /// The commands are running.
    Checking,
    /// The agent is judging.
    Judging,
    /// The phase it routed to works.
    Routed(PhaseName),
    /// The gate has passed.
    Passed,
    /// A person is needed.
    Escalated,
}

/// Event of a gate.
#[derive(Debug, Clone, PartialEq)]
pub enum GateEvent {
    /// The dependencies are done.
    Start,
    /// A gate further down routed to this one, which has passed: it evaluates anew, with its whole budget. Its history
    /// stays.
    Restart,
    /// The run goes on after an interruption: an evaluation that was under way begins anew and costs nothing extra; a
    /// gate that had called a person has its whole budget again, because a person has looked at it.
    Resume,
    /// The run continues after it was parked while a person judged: the agent is asked again, and the commands do not run again
    /// (docs/reviews.md).
    Wake,
    /// The commands ran.
    CommandsFinished(Vec<CommandResult>),
    /// The agent completed, with this `result`.
    AgentAnswered(Option<Value>),
    /// The agent failed: it said so, died, or ran out of time.
    AgentFailed(String),
    /// The phase that the gate routed to is done.
    TargetFinished,
}

/// Effect of a step.
#[derive(Debug, Clone, PartialEq)]
pub enum GateEffect {
    /// Nothing: the event does not fit the state.
    Nothing,
    /// Run the commands.
    RunCommands {
        /// Number of the evaluation, 1-based.
        iteration: u32,
    },
    /// Ask the agent (or the person) for a verdict.
    AskAgent {
        /// Number of the evaluation, 1-based.
        iteration: u32,
        /// Reason why its last answer was no valid verdict, where that happened.
        rejected: Option<String>,
    },
    /// The pipeline goes on.
    Pass,
    /// Let `target` work again, with the last entry of the history as feedback.
    Route {
        /// Phase that works again.
        target: PhaseName,
    },
    /// Call a person.
    Escalate {
        /// Reason.
        reason: String,
    },
}

/// A gate in some state.
#[derive(Debug, Clone, PartialEq)]
pub struct Gate {
    spec: GateSpec,
    state: GateState,
    iteration: u32,
    rejected_once: bool,
    /// Whether a PASS was refused in this evaluation, as a required command fails.
    refused_pass: bool,
    checks: Vec<CommandResult>,
    history: Vec<HistoryEntry>,
}

impl Gate {
    /// A gate that waits for its dependencies.
    #[must_use]
    pub fn new(spec: GateSpec) -> Self {
        Self {
            spec: GateSpec { max_iterations: spec.max_iterations.max(1), ..spec },
            state: GateState::Waiting,
            iteration: 0,
            rejected_once: false,
            refused_pass: false,
            checks: Vec::new(),
            history: Vec::new(),
        }
    }

    /// Specification of the gate.
    #[must_use]
    pub fn spec(&self) -> &GateSpec {
        &self.spec
    }

    /// State of the gate.
    #[must_use]
    pub fn state(&self) -> &GateState {
        &self.state
    }

    /// The evaluation it is in, from 1; 0 before the first.
    #[must_use]
    pub fn iteration(&self) -> u32 {
        self.iteration
    }

    /// Results of the commands of the current evaluation.
    #[must_use]
    pub fn checks(&self) -> &[CommandResult] {
        &self.checks
    }

    /// Verdicts so far, oldest first. It only grows.
    #[must_use]
    pub fn history(&self) -> &[HistoryEntry] {
        &self.history
    }

    /// Takes what happened and says what to do. An event that does not fit the state changes nothing.
    pub fn step(&mut self, event: GateEvent) -> GateEffect {
        match (&self.state, event) {
            (GateState::Waiting, GateEvent::Start) | (GateState::Routed(_), GateEvent::TargetFinished) => {
                self.iteration += 1;
                self.begin();
                self.state = GateState::Checking;
                GateEffect::RunCommands { iteration: self.iteration }
            }
            (GateState::Passed, GateEvent::Restart) => {
                self.iteration = 1;
                self.begin();
                self.state = GateState::Checking;
                GateEffect::RunCommands { iteration: 1 }
            }
            (GateState::Checking | GateState::Judging, GateEvent::Resume) => {
                self.begin();
                self.state = GateState::Checking;
                GateEffect::RunCommands { iteration: self.iteration }
            }
            (_, GateEvent::Resume) => {
                self.iteration = 1;
                self.begin();
                self.state = GateState::Checking;
                GateEffect::RunCommands { iteration: 1 }
            }
            (GateState::Judging, GateEvent::Wake) => {
                GateEffect::AskAgent { iteration: self.iteration, rejected: None }
            }
            (GateState::Checking, GateEvent::CommandsFinished(checks)) => self.judge(checks),
            (GateState::Judging, GateEvent::AgentAnswered(result)) => self.answered(result),
            (GateState::Judging, GateEvent::AgentFailed(reason)) => self.escalate(reason),
            _ => GateEffect::Nothing,
        }
    }

    /// An evaluation begins: its agent has not been asked yet.
    fn begin(&mut self) {
        self.rejected_once = false;
        self.refused_pass = false;
    }

    fn judge(&mut self, checks: Vec<CommandResult>) -> GateEffect {
        let failed: Vec<&str> = checks.iter().filter(|c| !c.pass).map(|c| c.name.as_str()).collect();
        let failed = (!failed.is_empty()).then(|| failed.join(", "));
        self.checks = checks;
        match failed {
            // A person is not troubled with what a command already knows to be broken.
            Some(names) if self.spec.human => {
                let reason = format!("failed before review: {names}");
                let verdict = match self.spec.route_targets.first() {
                    Some(target) => Verdict::route(target.clone(), reason),
                    None => Verdict::escalate(reason),
                };
                self.decided(verdict)
            }
            _ => {
                self.state = GateState::Judging;
                GateEffect::AskAgent { iteration: self.iteration, rejected: None }
            }
        }
    }

    fn answered(&mut self, result: Option<Value>) -> GateEffect {
        let verdict = match self.read_verdict(result) {
            Ok(verdict) => verdict,
            Err(why) if self.rejected_once => {
                return self
                    .escalate(format!("the agent gave no valid verdict twice; the second time: {why}"));
            }
            Err(why) => {
                self.rejected_once = true;
                return GateEffect::AskAgent { iteration: self.iteration, rejected: Some(why) };
            }
        };
        match self.failing_required() {
            Some(failing) if verdict.outcome == Outcome::Pass => self.refuse_pass(&failing, verdict.reason),
            _ => self.decided(verdict),
        }
    }

    /// Returns the required commands that fail, for people.
    fn failing_required(&self) -> Option<String> {
        let is_required = |check: &&CommandResult| !check.pass && self.spec.required.contains(&check.name);
        let failing: Vec<String> =
            self.checks.iter().filter(is_required).map(|c| format!("`{}`", c.label())).collect();
        (!failing.is_empty()).then(|| failing.join(", "))
    }

    /// Gives a PASS back once; a second one sends the work back, or calls a person.
    fn refuse_pass(&mut self, failing: &str, reason: Option<String>) -> GateEffect {
        if !std::mem::replace(&mut self.refused_pass, true) {
            let rejected = format!(
                "required commands fail: {failing}. PASS is not accepted while they fail: send the work back, or escalate"
            );
            return GateEffect::AskAgent { iteration: self.iteration, rejected: Some(rejected) };
        }
        let said = reason.map_or_else(String::new, |reason| format!("; its reason: {reason}"));
        let reason = format!("required commands fail: {failing}; the agent answered PASS twice{said}");
        let verdict = match self.spec.route_targets.first() {
            Some(target) => Verdict::route(target.clone(), reason),
            None => Verdict::escalate(reason),
        };
        self.decided(verdict)
    }

    fn read_verdict(&self, result: Option<Value>) -> Result<Verdict, String> {
        let Some(Value::Object(mut result)) = result else {
            return Err("the result of `complete` has no `verdict`".to_owned());
        };
        let value = result.remove("verdict").ok_or("the result of `complete` has no `verdict`")?;
        let verdict = Verdict::from_value(value).map_err(|error| error.to_string())?;
        if let Some(target) = verdict.target_beside_pass() {
            // Which of the two was meant is not clear.
            return Err(format!("it is a PASS with the target `{}`: a PASS has none", shorten(target, 80)));
        }
        if let Outcome::Route(target) = &verdict.outcome
            && !self.spec.route_targets.contains(target)
        {
            let allowed =
                self.spec.route_targets.iter().map(PhaseName::as_str).collect::<Vec<_>>().join(", ");
            let allowed = if allowed.is_empty() { "no phase at all".to_owned() } else { allowed };
            return Err(format!("cannot route to `{target}`: this gate may route to {allowed}"));
        }
        Ok(verdict)
    }

    fn decided(&mut self, verdict: Verdict) -> GateEffect {
        let entry = HistoryEntry {
            iteration: self.iteration,
            verdict: verdict.clone(),
            checks: self
                .checks
                .iter()
                .map(|check| CommandResult::new(check.name.clone(), check.pass))
                .collect(),
        };
        self.history.push(entry);
        let because =
            |reason: Option<String>| reason.map_or_else(String::new, |reason| format!(": {reason}"));
        match verdict.outcome {
            Outcome::Pass => {
                self.state = GateState::Passed;
                GateEffect::Pass
            }
            Outcome::Escalate => self.escalate(format!("the gate escalated{}", because(verdict.reason))),
            Outcome::Route(target) if self.iteration >= self.spec.max_iterations => {
                let (spent, plural) = (self.iteration, if self.iteration == 1 { "" } else { "s" });
                self.escalate(format!(
                    "the budget of {spent} iteration{plural} is spent; the last verdict was ROUTE to {target}{}",
                    because(verdict.reason)
                ))
            }
            Outcome::Route(target) => {
                self.state = GateState::Routed(target.clone());
                GateEffect::Route { target }
            }
        }
    }

    fn escalate(&mut self, reason: String) -> GateEffect {
        self.state = GateState::Escalated;
        GateEffect::Escalate { reason }
    }
}
