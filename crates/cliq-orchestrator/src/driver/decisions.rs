//! Evaluates the expressions of phases, prepares items, and waits for the next attempts (docs/expressions.md).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use camino::Utf8Path;
use cliq_fs::{FsError, IoContext, create_channel, read_command_results, read_if_exists, write_atomic};
use cliq_protocol::{Object, PhaseName, Timestamp};
use cliq_workflow::{Expression, Phase, PhaseId, Rule, RuleOutcome};
use serde_json::{Value, json};

use super::Driver;
use super::shared::{NoHandoff, Shared};
use crate::blocking::spawn_blocking;
use crate::engine::{Decision, Input, PhaseState};
use crate::events::{DecisionKind, RunEvent};

/// Maximum length of a recorded value that an expression read, in bytes of JSON.
const RECORDED: usize = 4096;
/// Maximum length of a list of items, in bytes of JSON.
const LONGEST_LIST: usize = 1 << 20;

/// Result of evaluating the expressions of a phase.
struct Outcome {
    decision: DecisionKind,
    items: Vec<Value>,
    skipped: Vec<u32>,
    reason: Option<String>,
}

impl Outcome {
    fn of(decision: DecisionKind) -> Self {
        Self { decision, items: Vec::new(), skipped: Vec::new(), reason: None }
    }

    fn failed(reason: String) -> Self {
        Self { reason: Some(reason), ..Self::of(DecisionKind::Failed) }
    }
}

impl Driver {
    /// Evaluates the expressions of a phase beside the dispatcher, and reports the decision.
    pub(super) fn decide(&mut self, id: PhaseId, ignores_when: bool) {
        let shared = Arc::clone(&self.shared);
        let variables = self.variables(id);
        self.tasks.spawn(async move {
            let evaluating = Arc::clone(&shared);
            let evaluated = spawn_blocking(move || {
                let phase = evaluating.workflow().phase(id);
                let values = variables.and_then(|mut values| {
                    add_handoffs(&evaluating, phase, &mut values)?;
                    Ok(values)
                });
                match values {
                    Ok(values) => (evaluate(phase, &values, ignores_when), values),
                    Err(reason) => (Outcome::failed(reason), Object::new()),
                }
            });
            let (outcome, values) = evaluated.await.unwrap_or_else(|_| {
                (
                    Outcome::failed("an internal error ended the evaluation; please report it".to_owned()),
                    Object::new(),
                )
            });
            shared.send(event(shared.workflow().phase(id), outcome, &values));
        });
    }

    /// Remembers the items of a phase for templates and handoffs.
    pub(super) fn note_decision(&self, input: &Input) {
        if let Input::Decided { phase, decision: Decision::Items(items) } = input {
            self.shared.remember_items(*phase, items.iter().map(|item| item.value.clone()).collect());
        }
    }

    /// Waits until the next attempt of a phase is due.
    pub(super) fn delay(&mut self, id: PhaseId, delay_ms: u64) {
        let delay_ms = i64::try_from(delay_ms).unwrap_or(i64::MAX);
        let due_ms = cliq_fs::now_millis().saturating_add(delay_ms);
        let phase = self.shared.workflow().name_of(id);
        self.shared.send(RunEvent::RetryDelayed { phase, until: Timestamp::from_unix_millis(due_ms).into() });
        self.wait_until(id, due_ms);
    }

    /// Waits for the attempts that an earlier orchestrator waited for.
    pub(super) fn wait_for_attempts(&mut self) {
        let delayed: Vec<(PhaseId, Option<i64>)> = self.pipeline.delayed().collect();
        for (id, due_ms) in delayed {
            // The orchestrator died before it recorded the time.
            self.wait_until(id, due_ms.unwrap_or(0));
        }
    }

    fn wait_until(&mut self, id: PhaseId, due_ms: i64) {
        let shared = Arc::clone(&self.shared);
        let left = u64::try_from(due_ms.saturating_sub(cliq_fs::now_millis())).unwrap_or(0);
        self.tasks.spawn(async move {
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(left)) => {
                    shared.send(RunEvent::RetryDue { phase: shared.workflow().name_of(id) });
                }
                () = shared.stop.cancelled() => {}
                () = shared.over.cancelled() => {}
            }
        });
    }

    /// Creates the channels of an item, and copies what other phases handed over to its phase.
    pub(super) fn prepare_item(&self, id: PhaseId, routed_by: Option<PhaseId>) -> Result<(), FsError> {
        if id.item().is_none() {
            return Ok(());
        }
        let (dir, workflow) = (self.shared.dir(), self.shared.workflow());
        let phase = &*self.shared.phase_of(id);
        let name = |id: PhaseId| &workflow.phase(id).name;
        for &to in phase.dependents.iter().chain(&routed_by) {
            create_channel(&dir.channel(&phase.name, name(to)))?;
        }
        if let Some(result) = self.shared.plan.result_channel(workflow.phase(id)) {
            create_channel(&dir.channel(&phase.name, &result))?;
        }
        for &from in phase.depends_on.iter().chain(&routed_by) {
            let own = dir.channel(name(from), &phase.name);
            create_channel(&own)?;
            let whole = dir.channel(name(from), name(id));
            for file in ["handoff.json", "handoff.md", "instructions.md"] {
                copy_file(&whole.join(file), &own.join(file), self.shared.plan.max_file_bytes)?;
            }
        }
        Ok(())
    }

    /// Removes what a phase handed over before it was skipped.
    pub(super) fn clear_handoffs(&self, id: PhaseId) -> Result<(), FsError> {
        let (dir, workflow) = (self.shared.dir(), self.shared.workflow());
        let phase = workflow.phase(id);
        for &to in &phase.dependents {
            for from in self.shared.sources_of(id) {
                let channel = dir.channel(&from, &workflow.phase(to).name);
                for file in ["handoff.json", "handoff.md"] {
                    let path = channel.join(file);
                    match std::fs::remove_file(&path) {
                        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                            return Err(error).at("remove", &path);
                        }
                        _ => {}
                    }
                }
            }
        }
        Ok(())
    }

    /// Names of phases and items before a phase that hand nothing over: they were skipped or failed.
    pub(super) fn skipped_sources(&self, id: PhaseId) -> BTreeSet<PhaseName> {
        let workflow = self.shared.workflow();
        let mut skipped = BTreeSet::new();
        for &before in &workflow.phase(id).depends_on {
            let items = self.pipeline.item_count(before).into_iter().flat_map(|count| 0..count);
            for source in std::iter::once(before).chain(items.map(|item| before.with_item(item))) {
                if matches!(self.pipeline.state(source), PhaseState::Skipped | PhaseState::Failed(_)) {
                    skipped.insert(workflow.name_of(source));
                }
            }
        }
        skipped
    }

    /// Evaluates the conditional rules of a gate for its agent, each with whether it holds.
    pub(super) fn rule_conditions(&self, id: PhaseId) -> Result<Option<Value>, String> {
        let phase = self.shared.workflow().phase(id);
        if phase.conditions.is_empty() {
            return Ok(None);
        }
        let mut values = self.variables(id)?;
        add_handoffs(&self.shared, phase, &mut values)?;
        let mut rules = Vec::new();
        for rule in &phase.conditions {
            let holds = condition(&rule.condition, &values)
                .map_err(|why| complaint("rules", &rule.condition, &why, &values))?;
            let to = match rule.to {
                RuleOutcome::Pass => "PASS",
                RuleOutcome::Rule(Rule::Escalate) => "ESCALATE",
                RuleOutcome::Rule(Rule::Route(target)) => self.shared.workflow().phase(target).name.as_str(),
            };
            rules.push(
                json!({"if": rule.condition.source(), "holds": holds, "to": to, "reason": rule.reason}),
            );
        }
        Ok(Some(rules.into()))
    }

    /// Returns the variables of a phase's expressions that the state of the run determines: inputs, verdicts and results.
    fn variables(&self, id: PhaseId) -> Result<Object, String> {
        let (shared, workflow) = (&self.shared, self.shared.workflow());
        let inputs = shared.inputs.iter().map(|(key, value)| (key.clone(), value.as_str().into()));
        let mut values = Object::new();
        values.insert("inputs".to_owned(), Value::Object(inputs.collect()));
        let (mut verdicts, mut results, mut handoffs) = (Object::new(), Object::new(), Object::new());
        for (root, member) in references(workflow.phase(id)) {
            let Some(of) = workflow.find(&member) else { continue };
            if *self.pipeline.state(of) == PhaseState::Skipped {
                continue;
            }
            match root.as_str() {
                "verdict" => {
                    if let Some(entry) = self.pipeline.gate(of).and_then(|gate| gate.history().last()) {
                        verdicts.insert(member, verdict(entry));
                    }
                }
                "results" => {
                    let found = match self.pipeline.gate(of) {
                        Some(gate) if gate.iteration() > 0 => Some(json!(gate.checks())),
                        Some(_) => None,
                        None => command_results(shared, of)?,
                    };
                    results.extend(found.map(|found| (member, found)));
                }
                // Read beside the dispatcher.
                "handoff" => drop(handoffs.insert(member, Value::Null)),
                _ => {}
            }
        }
        values.insert("verdict".to_owned(), verdicts.into());
        values.insert("results".to_owned(), results.into());
        values.insert("handoff".to_owned(), handoffs.into());
        Ok(values)
    }
}

/// Variables and members that the expressions of a phase read or test for.
fn references(phase: &Phase) -> BTreeSet<(String, String)> {
    let list = phase.for_each.as_ref().map(|list| &list.items);
    let rules = phase.conditions.iter().map(|rule| &rule.condition);
    let expressions = phase.when.iter().chain(list).chain(rules);
    let all = expressions.flat_map(Expression::references);
    all.filter_map(|reference| Some((reference.root.clone(), reference.member.clone()?))).collect()
}

/// Reads the handoffs that the expressions of a phase name. A phase that handed nothing over is left out.
fn add_handoffs(shared: &Shared, phase: &Phase, values: &mut Object) -> Result<(), String> {
    let Some(Value::Object(handoffs)) = values.get_mut("handoff") else { return Ok(()) };
    for name in handoffs.keys().cloned().collect::<Vec<_>>() {
        let from = PhaseName::parse(&name).map_err(|error| error.to_string())?;
        match shared.handoff_data(&from, &phase.name) {
            Ok(data) => drop(handoffs.insert(name, data)),
            Err(NoHandoff::Nothing) => drop(handoffs.remove(&name)),
            Err(NoHandoff::NoData) => drop(handoffs.insert(name, json!({}))),
            Err(NoHandoff::Invalid(reason)) => return Err(reason),
        }
    }
    Ok(())
}

/// Results of the commands of an exec phase, as a list; of each of its items, if it has some.
fn command_results(shared: &Shared, id: PhaseId) -> Result<Option<Value>, String> {
    let read = |name: &PhaseName| read_command_results(shared.dir(), name).map_err(|error| error.to_string());
    if shared.workflow().phase(id).for_each.is_none() {
        return Ok(read(&shared.workflow().phase(id).name)?.map(|results| json!(results)));
    }
    let of_items = shared.sources_of(id).iter().map(read).collect::<Result<Vec<_>, _>>()?;
    Ok(Some(json!(of_items)))
}

fn verdict(entry: &cliq_protocol::HistoryEntry) -> Value {
    let (outcome, target) = match &entry.verdict.outcome {
        cliq_protocol::Outcome::Pass => ("PASS", None),
        cliq_protocol::Outcome::Route(target) => ("ROUTE", Some(target)),
        cliq_protocol::Outcome::Escalate => ("ESCALATE", None),
    };
    let mut value = json!({"outcome": outcome, "reason": entry.verdict.reason, "iteration": entry.iteration});
    if let Some(target) = target {
        value["target"] = target.as_str().into();
    }
    value
}

/// Evaluates condition and list of a phase.
fn evaluate(phase: &Phase, values: &Object, ignores_when: bool) -> Outcome {
    let when = phase.when.as_ref().filter(|_| !ignores_when);
    let of_item = |when: &&Expression| when.reads("item") || when.reads("index");
    if let Some(when) = when.filter(|when| !of_item(when)) {
        match condition(when, values) {
            Ok(true) => {}
            Ok(false) => return Outcome::of(DecisionKind::Skip),
            Err(why) => return Outcome::failed(complaint("when", when, &why, values)),
        }
    }
    let Some(list) = &phase.for_each else { return Outcome::of(DecisionKind::Run) };
    let items = match list.items.evaluate(values) {
        Ok(Value::Array(items)) => items,
        Ok(other) => {
            let why = format!("its value is not a list: {}", shortened(&other));
            return Outcome::failed(complaint("for_each", &list.items, &why, values));
        }
        Err(error) => return Outcome::failed(complaint("for_each", &list.items, &error.to_string(), values)),
    };
    if items.len() > list.max_items as usize {
        let why = format!("the list has {} items, and `max_items` is {}", items.len(), list.max_items);
        return Outcome::failed(complaint("for_each", &list.items, &why, values));
    }
    let size = serde_json::to_vec(&items).map_or(usize::MAX, |bytes| bytes.len());
    if size > LONGEST_LIST {
        let why = format!(
            "the list has {size} bytes of JSON, and {LONGEST_LIST} are the maximum: hand over file names"
        );
        return Outcome::failed(complaint("for_each", &list.items, &why, values));
    }
    let mut skipped = Vec::new();
    if let Some(when) = when.filter(of_item) {
        let mut values = values.clone();
        for (index, item) in (0u32..).zip(&items) {
            values.insert("item".to_owned(), item.clone());
            values.insert("index".to_owned(), index.into());
            match condition(when, &values) {
                Ok(true) => {}
                Ok(false) => skipped.push(index),
                Err(why) => {
                    return Outcome::failed(complaint(
                        "when",
                        when,
                        &format!("item {index}: {why}"),
                        &values,
                    ));
                }
            }
        }
    }
    Outcome { items, skipped, ..Outcome::of(DecisionKind::Items) }
}

fn condition(expression: &Expression, values: &Object) -> Result<bool, String> {
    match expression.evaluate(values) {
        Ok(Value::Bool(holds)) => Ok(holds),
        Ok(other) => Err(format!("its value is neither true nor false: {}", shortened(&other))),
        Err(error) => Err(error.to_string()),
    }
}

/// Message about an expression, with the values that it read.
fn complaint(field: &str, expression: &Expression, why: &str, values: &Object) -> String {
    let mut read = Vec::new();
    for reference in expression.references() {
        let value = values.get(&reference.root);
        let value = match &reference.member {
            Some(member) => value.and_then(|value| value.get(member)),
            None => value,
        };
        let name =
            reference.member.as_ref().map_or(reference.root.clone(), |m| format!("{}.{m}", reference.root));
        read.push(match value {
            Some(value) => format!("{name} = {}", shortened(value)),
            None => format!("{name} has no value"),
        });
    }
    let read = if read.is_empty() { String::new() } else { format!("; it read {}", read.join(", ")) };
    format!("`{field}: {}`: {why}{read}", expression.source())
}

fn shortened(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= 200 {
        text
    } else {
        format!("{}…", text.chars().take(200).collect::<String>())
    }
}

/// Makes the event of a decision. Long values are left out: their sizes stand in their place.
fn event(phase: &Phase, outcome: Outcome, values: &Object) -> RunEvent {
    let mut read = Object::new();
    for (root, member) in references(phase) {
        let Some(value) = values.get(&root).and_then(|of| of.get(&member)) else { continue };
        let size = value.to_string().len();
        let recorded = if size > RECORDED { json!({"bytes": size}) } else { value.clone() };
        read.insert(format!("{root}.{member}"), recorded);
    }
    let list = phase.for_each.as_ref().map(|list| ("for_each", &list.items));
    let expressions = phase.when.as_ref().map(|when| ("when", when)).into_iter().chain(list);
    let expressions: BTreeMap<String, String> =
        expressions.map(|(field, expression)| (field.to_owned(), expression.source().to_owned())).collect();
    let Outcome { decision, items, skipped, reason } = outcome;
    RunEvent::PhaseDecided {
        phase: phase.name.clone(),
        kind: phase.kind,
        decision,
        items,
        skipped,
        reason,
        expressions,
        values: read,
    }
}

fn copy_file(from: &Utf8Path, to: &Utf8Path, limit: u64) -> Result<(), FsError> {
    match read_if_exists(from, limit)? {
        Some(bytes) => write_atomic(to, &bytes),
        None => Ok(()),
    }
}
