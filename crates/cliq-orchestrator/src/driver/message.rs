//! Building the dispatch message of a phase (docs/protocol.md).
// A new outcome has to be handled by name.
#![deny(clippy::wildcard_enum_match_arm)]

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::{CliqDir, FsError, IoContext, read_if_exists, write_atomic};
use cliq_gate::Gate;
use cliq_protocol::{
    AgentMessage, Budget, Dispatch, GateDispatch, Incoming, Object, Outcome, Outgoing, PhaseDispatch,
    PhaseInfo, PhaseName, PreviousActivation, ReviewSpec, SteeringMessage, TeamDispatch, Timestamp,
};
use cliq_workflow::{Command, Phase, PhaseId, ResolveError, Rule, Scope, Values, resolve_text};
use serde_json::{Value, json};
use uuid::Uuid;

use super::shared::{PhaseValues, Shared, unresolved};

/// One activation of a phase's agent.
pub(super) struct Activation {
    pub(super) phase: PhaseId,
    pub(super) iteration: u32,
    /// Number of the attempt, 1-based.
    pub(super) attempt: u32,
    /// Conditional rules of a gate, evaluated.
    pub(super) rules: Option<Value>,
    /// Sources that were skipped or failed: they hand nothing over.
    pub(super) skipped: BTreeSet<PhaseName>,
    pub(super) routed_by: Option<PhaseId>,
    /// First of the interrupted activations that this one continues.
    pub(super) continues: Option<u32>,
    /// Last completed activation of the phase.
    pub(super) previous: Option<u32>,
    /// Number of the transcript: of the evaluation in the whole run for a gate, otherwise of the activation.
    pub(super) transcript: u32,
    pub(super) agent: String,
    pub(super) role_file: Option<Utf8PathBuf>,
    /// Remaining budget for language models.
    pub(super) budget: Budget,
    /// For gates.
    pub(super) gate: Option<GateDispatch>,
    /// Steering messages so far.
    pub(super) steering: Vec<SteeringMessage>,
    /// File for later steering messages.
    pub(super) steering_file: Utf8PathBuf,
}

/// The gate, as its agent sees it.
pub(super) fn gate_dispatch(
    gate: &Gate,
    context_file: Utf8PathBuf,
    rejected: Option<String>,
    review: Option<(Value, u32)>,
) -> GateDispatch {
    let (review, evaluation) = review.unzip();
    GateDispatch {
        iteration: gate.iteration(),
        max_iterations: gate.spec().max_iterations,
        checks: gate.checks().to_vec(),
        route_targets: gate.spec().route_targets.clone(),
        history: gate.history().to_vec(),
        context_file,
        rejected,
        evaluation,
        review,
        ask: None,
    }
}

/// Builds the message.
pub(super) fn build(shared: &Shared, activation: &Activation) -> Result<AgentMessage, FsError> {
    let (dir, workflow) = (shared.dir(), shared.workflow());
    let phase = &*shared.phase_of(activation.phase);
    let name = |id: PhaseId| &workflow.phase(id).name;
    let routed_by = activation.routed_by.map(name);
    let values = shared.values(phase);

    // A gate reads what comes along the graph and from the phases it has sent work back to; a phase that works for a
    // gate reads that gate's feedback and answers it.
    let mut from: Vec<&PhaseName> = phase.depends_on.iter().map(|&id| name(id)).collect();
    let mut to: Vec<&PhaseName> = phase.dependents.iter().map(|&id| name(id)).collect();
    from.extend(routed_by);
    to.extend(routed_by);
    if let Some(gate) = &activation.gate {
        let routed = gate.history.iter().filter_map(|entry| match &entry.verdict.outcome {
            Outcome::Route(target) => workflow.find(target.as_str()).map(name),
            Outcome::Pass | Outcome::Escalate => None,
        });
        from.extend(routed);
    }
    let result = shared.plan.result_channel(phase);
    let files_dir = dir.phase_files(&phase.name);
    std::fs::create_dir_all(&files_dir).at("create", &files_dir)?;
    let uses_model = shared.plan.agents.get(&activation.agent).is_some_and(|agent| agent.uses_model);
    let requirement = dir.requirement();
    let board = dir.task_board();
    let design = dir.design();
    let dispatch = PhaseDispatch {
        phase: PhaseInfo {
            name: phase.name.clone(),
            kind: phase.kind,
            agent: activation.agent.clone(),
            iteration: activation.iteration,
            routed_by: routed_by.cloned(),
            role_file: activation.role_file.clone(),
            model: phase.model.clone(),
            parameters: phase.parameters.clone(),
            outputs: phase.outputs.clone(),
            action: phase.action.clone(),
            commands: phase.commands.iter().map(command).collect(),
            sources: entries(shared, phase, &phase.sources).unwrap_or_default(),
            targets: entries(shared, phase, &phase.targets).unwrap_or_default(),
            env: shared.plan.agents.get(&activation.agent).map(|a| a.needs_env.clone()).unwrap_or_default(),
            agent_tools: phase.agent_tools.clone(),
            skills: phase.skills.clone(),
            permissions: phase.permissions.clone(),
            continues: activation.continues,
            conversation: phase.conversation,
            previous: activation.previous.filter(|_| uses_model).map(|activation| PreviousActivation {
                activation,
                changed_files: None,
                more_files: 0,
            }),
            attempt: (phase.retry.is_some()).then_some(activation.attempt),
            item: values.item(),
            index: values.index(),
            config: config(shared, phase, activation.rules.clone(), &name),
        },
        requirement_file: requirement.exists().then_some(requirement),
        task_board_file: board.exists().then_some(board),
        design_dir: has_entries(&design).then_some(design),
        inputs: shared.inputs.clone(),
        incoming: unique(from)
            .into_iter()
            .flat_map(|from| sources(shared, from))
            .filter(|from| !activation.skipped.contains(from))
            .map(|from| incoming(dir, &from, &phase.name))
            .collect(),
        outgoing: unique(to)
            .into_iter()
            .chain(result.as_ref())
            .map(|to| outgoing(dir, &phase.name, to))
            .collect(),
        signal_file: dir.signal_file(&phase.name),
        files_dir,
        steering: activation.steering.clone(),
        steering_file: Some(activation.steering_file.clone()),
        transcript_file: uses_model.then(|| dir.transcript(&phase.name, activation.transcript)),
        mcp: if uses_model { workflow.mcp.clone() } else { Default::default() },
        budget: if uses_model { activation.budget } else { Budget::default() },
        gate: activation.gate.clone(),
        team: phase.team.as_ref().map(|team| team_dispatch(shared, phase, team, activation.budget)),
    };
    Ok(AgentMessage {
        run_id: shared.run_id.clone(),
        workspace: shared.workspace_of(phase.name.as_str()),
        cliq_dir: dir.root().to_owned(),
        dispatch: Dispatch::Phase(Box::new(dispatch)),
    })
}

/// Reason why a phase cannot start: an input of its team, a setting of its agent, a source or a target, whose template has no value.
pub(super) fn unresolved_input(shared: &Shared, phase: &Phase) -> Option<String> {
    let values = shared.values(phase);
    let broken = |what: &str, (key, text): (&String, &String)| {
        let error = resolve_text(text, &values).err()?;
        Some(format!("{what} `{key}`: {}", unresolved(&error)))
    };
    let mut inputs = phase.inputs.iter();
    inputs
        .find_map(|entry| broken("input", entry))
        .or_else(|| phase.config.iter().find_map(|entry| broken("config", entry)))
        .or_else(|| entries(shared, phase, &phase.sources).err())
        .or_else(|| entries(shared, phase, &phase.targets).err())
}

/// Sources or targets with their templates replaced. An entry that changes with the time gets an `identity`, which does not: so
/// that an agent that starts anew knows it again.
fn entries(shared: &Shared, phase: &Phase, entries: &[Value]) -> Result<Vec<Value>, String> {
    let values = shared.values(phase);
    let at_no_time = shared.values_at(phase, Timestamp::from_unix_millis(0));
    let resolve = |entry: &Value| {
        let mut resolved = entry.clone();
        let name = || {
            entry["name"].as_str().or_else(|| entry["file"].as_str()).unwrap_or("without a name").to_owned()
        };
        resolve_all(&mut resolved, &values)
            .map_err(|error| format!("entry `{}`: {}", name(), unresolved(&error)))?;
        if resolved == *entry {
            return Ok(resolved);
        }
        let mut timeless = entry.clone();
        if resolve_all(&mut timeless, &at_no_time).is_ok() && timeless != resolved {
            let name = timeless.to_string();
            resolved["identity"] = Uuid::new_v5(&Uuid::NAMESPACE_OID, name.as_bytes()).to_string().into();
        }
        if shared.plan.guards_inputs {
            resolved["guarded"] = true.into();
        }
        Ok(resolved)
    };
    entries.iter().map(resolve).collect()
}

/// Returns the dispatch of a team phase to its team.
fn team_dispatch(shared: &Shared, phase: &Phase, team: &str, budget: Budget) -> TeamDispatch {
    let values = shared.values(phase);
    let resolve = |text: &String| resolve_text(text, &values).unwrap_or_else(|_| text.clone());
    let inputs = phase.inputs.iter().map(|(key, text)| (key.clone(), resolve(text))).collect();
    TeamDispatch { reference: team.to_owned(), inputs, budget }
}

/// The review block of a human gate, with its templates replaced.
pub(super) fn review(shared: &Shared, phase: &Phase) -> Result<Option<Value>, String> {
    let Some(mut review) = phase.review.clone() else { return Ok(None) };
    resolve_all(&mut review, &shared.values(phase)).map_err(|error| unresolved(&error))?;
    let spec = ReviewSpec::from_value(review).map_err(|error| {
        format!(
            "its review block is wrong: `{}`: expected {}, found {}",
            error.field, error.expected, error.found
        )
    })?;
    Ok(Some(spec.to_value()))
}

fn resolve_all(value: &mut Value, values: &PhaseValues<'_>) -> Result<(), ResolveError> {
    match value {
        Value::String(text) => *text = resolve_text(text, values)?,
        Value::Array(items) => items.iter_mut().try_for_each(|item| resolve_all(item, values))?,
        Value::Object(map) => map.values_mut().try_for_each(|item| resolve_all(item, values))?,
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
    Ok(())
}

/// Returns the names under which a phase hands over: its own, or those of its items.
fn sources(shared: &Shared, from: &PhaseName) -> Vec<PhaseName> {
    let id = shared.workflow().find(from.as_str());
    id.map_or_else(|| vec![from.clone()], |id| shared.sources_of(id))
}

fn unique(names: Vec<&PhaseName>) -> Vec<&PhaseName> {
    let mut seen = BTreeSet::new();
    names.into_iter().filter(|name| seen.insert(name.as_str())).collect()
}

fn instructions(channel: &Utf8PathBuf) -> Option<Utf8PathBuf> {
    let file = channel.join("instructions.md");
    file.exists().then_some(file)
}

fn incoming(dir: &CliqDir, from: &PhaseName, to: &PhaseName) -> Incoming {
    let mut channel = dir.channel(from, to);
    if from.item().is_some() && to.item().is_some() {
        // Items of one phase hand over to another as a whole.
        let whole = PhaseName::parse(to.whole()).unwrap_or_else(|_| to.clone());
        channel = dir.channel(from, &whole);
    }
    Incoming {
        from: from.clone(),
        handoff_file: channel.join("handoff.json"),
        instructions_file: instructions(&channel),
        dir: channel,
    }
}

fn outgoing(dir: &CliqDir, from: &PhaseName, to: &PhaseName) -> Outgoing {
    let channel = dir.channel(from, to);
    Outgoing { to: to.clone(), instructions_file: instructions(&channel), dir: channel }
}

/// The role, with its templates replaced where they have a value. A role without templates is used where it lies.
pub(super) fn role_file(shared: &Shared, phase: &Phase) -> Result<Option<Utf8PathBuf>, FsError> {
    let dir = shared.dir();
    let file = dir.roles().join(format!("{}.md", phase.role));
    let Some(bytes) = read_if_exists(&file, shared.plan.max_file_bytes)? else { return Ok(None) };
    let text = String::from_utf8_lossy(&bytes);
    match resolve_text(&text, &shared.values(phase)) {
        Ok(resolved) if resolved != text => {
            let target = dir.messages().join(format!("{}.role.md", phase.name));
            write_atomic(&target, resolved.as_bytes())?;
            Ok(Some(target))
        }
        Ok(_) => Ok(Some(file)),
        Err(error) => {
            shared.warn(&phase.name, format!("{} is used as it stands: {error}", dir.relative(&file)));
            Ok(Some(file))
        }
    }
}

fn command(command: &Command) -> Value {
    let mut value =
        json!({"name": command.name, "run": command.run, "escalate_on_fail": command.escalate_on_fail});
    if command.required {
        value["required"] = true.into();
    }
    if let Some(condition) = &command.condition {
        value["if"] = condition.as_str().into();
    }
    if command.scope == Scope::Repo {
        value["scope"] = "repo".into();
    }
    if let Some(timeout) = command.timeout {
        value["timeout"] = format!("{}s", timeout.as_secs()).into();
    }
    value
}

fn config<'a>(
    shared: &Shared,
    phase: &Phase,
    rules: Option<Value>,
    name: &dyn Fn(PhaseId) -> &'a PhaseName,
) -> Object {
    let mut config = Object::new();
    if !phase.config.is_empty() {
        let values = shared.values(phase);
        let resolve = |text: &String| resolve_text(text, &values).unwrap_or_else(|_| text.clone());
        config.extend(phase.config.iter().map(|(key, text)| (key.clone(), resolve(text).into())));
    }
    if let Some(rules) = rules {
        config.insert("rules".to_owned(), rules);
    }
    if !phase.rules.is_empty() {
        let rules = phase.rules.iter().map(|(command, rule)| {
            let target = match rule {
                Rule::Route(target) => name(*target).as_str(),
                Rule::Escalate => "ESCALATE",
            };
            (command.clone(), target.into())
        });
        config.insert("rules".to_owned(), Value::Object(rules.collect()));
    }
    config
}

/// Whether a directory contains anything.
fn has_entries(dir: &Utf8Path) -> bool {
    dir.read_dir_utf8().is_ok_and(|mut entries| entries.next().is_some())
}
