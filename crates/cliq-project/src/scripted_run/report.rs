//! Report of a run with scripted agents, folded from its events.

use camino::Utf8Path;
use cliq_agents::{ActivationRecord, split_item};
use cliq_orchestrator::{PhaseStatus, RunEvent, RunView};
use cliq_protocol::{CommandResult, Outcome, PhaseKind, PhaseName};
use serde::Serialize;

/// Maximum size of the record of an activation, in bytes.
const MAX_RECORD: u64 = 64 << 20;

/// Outcome of a run with scripted agents.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ScriptedReport {
    /// End of the run: `completed`, `escalated`, `failed` or `cancelled`. `None` if no end is recorded.
    pub end: Option<String>,
    /// Reason why it did not complete.
    pub reason: Option<String>,
    /// Phase that the reason is about.
    pub phase: Option<PhaseName>,
    /// Names of the phases in the order of their starts. A phase that ran again is there again.
    pub order: Vec<PhaseName>,
    /// Phases in the order of team.yml.
    pub phases: Vec<ScriptedPhase>,
    /// Activations of scripted agents with their prompts, in the order of their starts.
    pub activations: Vec<PhaseActivation>,
    /// Verdicts in the order in which they were given.
    pub verdicts: Vec<ScriptedVerdict>,
    /// Results of commands.
    pub commands: Vec<ScriptedCommand>,
    /// Warnings of the run.
    pub warnings: Vec<String>,
}

/// Phase of a run with scripted agents.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ScriptedPhase {
    /// Name of the phase.
    pub name: PhaseName,
    /// Type of the phase.
    #[serde(rename = "type")]
    pub kind: PhaseKind,
    /// Status at the end.
    pub status: PhaseStatus,
    /// Number of starts. The items of a list count as one.
    pub runs: u32,
    /// Last message about the phase, such as the reason why it was skipped.
    pub message: Option<String>,
}

/// Activation of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PhaseActivation {
    /// Name of the phase.
    pub phase: String,
    /// Index of the item, 0-based, if the phase works on a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<u32>,
    /// Number of the activation of the phase or the item, 1-based.
    pub activation: u32,
    /// Agent that the team names for the phase.
    pub agent: String,
    /// Prompt, as a model agent without tools would get it. `None` for an agent that is not scripted, and for one that failed before.
    pub prompt: Option<String>,
    /// Index of the reply in the script, 0-based. `None` for a default reply.
    pub reply: Option<usize>,
}

/// Verdict of a gate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ScriptedVerdict {
    /// Name of the gate.
    pub gate: PhaseName,
    /// `PASS`, `ROUTE` or `ESCALATE`.
    pub outcome: &'static str,
    /// Phase that the work goes back to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<PhaseName>,
    /// Reason of the verdict.
    pub reason: Option<String>,
}

/// Result of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ScriptedCommand {
    /// Name of the phase, or of the item as `PHASE.INDEX`.
    pub phase: PhaseName,
    /// Number of the activation of the phase, 1-based.
    pub activation: u32,
    /// Name of the command.
    pub command: String,
    /// Whether the command passed.
    pub pass: bool,
    /// Whether its condition did not hold.
    pub skipped: bool,
    /// Whether the result is one of the script: the command did not run.
    pub scripted: bool,
    /// End of its output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
}

/// Activation before its record is read.
#[derive(Debug)]
struct StartedAgent {
    phase: PhaseName,
    activation: u32,
    agent: String,
}

/// Events of a run so far.
#[derive(Debug, Default)]
pub(super) struct Events {
    order: Vec<PhaseName>,
    started: Vec<StartedAgent>,
    verdicts: Vec<ScriptedVerdict>,
    commands: Vec<ScriptedCommand>,
    warnings: Vec<String>,
}

impl Events {
    pub(super) fn apply(&mut self, event: &RunEvent) {
        match event {
            RunEvent::PhaseStarted { phase, .. } if split_item(phase.as_str()).1.is_none() => {
                self.order.push(phase.clone());
            }
            RunEvent::ItemsStarted { phase, .. } => self.order.push(phase.clone()),
            RunEvent::AgentStarted { phase, iteration, agent, .. } => self.started.push(StartedAgent {
                phase: phase.clone(),
                activation: *iteration,
                agent: agent.clone(),
            }),
            RunEvent::Verdict { gate, verdict, .. } => {
                let (outcome, target) = match &verdict.outcome {
                    Outcome::Pass => ("PASS", None),
                    Outcome::Route(target) => ("ROUTE", Some(target.clone())),
                    Outcome::Escalate => ("ESCALATE", None),
                };
                let reason = verdict.reason.clone();
                self.verdicts.push(ScriptedVerdict { gate: gate.clone(), outcome, target, reason });
            }
            RunEvent::CommandsFinished { phase, iteration, results, .. } => {
                let row = |result: &CommandResult| ScriptedCommand {
                    phase: phase.clone(),
                    activation: *iteration,
                    command: result.name.clone(),
                    pass: result.pass,
                    skipped: result.skipped == Some(true),
                    scripted: result.extra.get("scripted") == Some(&true.into()),
                    output: result.output_tail.clone(),
                };
                self.commands.extend(results.iter().map(row));
            }
            RunEvent::Warning { message, .. } => self.warnings.push(message.clone()),
            RunEvent::CompletionContradicted { phase, reason } => {
                self.warnings.push(format!("{phase}: {reason}"));
            }
            _ => {}
        }
    }

    /// Returns the report, with the records that scripted agents wrote.
    pub(super) fn report(self, view: &RunView, records: &Utf8Path) -> ScriptedReport {
        let records = read_records(records);
        let activation = |started: StartedAgent| {
            let record = records
                .iter()
                .find(|record| record.phase == started.phase && record.activation == started.activation);
            let (phase, item) = split_item(started.phase.as_str());
            PhaseActivation {
                phase: phase.to_owned(),
                item,
                activation: started.activation,
                agent: started.agent,
                prompt: record.map(|record| record.prompt.clone()),
                reply: record.and_then(|record| record.reply),
            }
        };
        let runs = |name: &PhaseName| self.order.iter().filter(|started| *started == name).count();
        let phases = view.phases.iter().filter(|phase| split_item(phase.name.as_str()).1.is_none());
        let phases: Vec<ScriptedPhase> = phases
            .map(|phase| ScriptedPhase {
                name: phase.name.clone(),
                kind: phase.kind,
                status: phase.status,
                runs: u32::try_from(runs(&phase.name)).unwrap_or(u32::MAX),
                message: phase.message.clone(),
            })
            .collect();
        ScriptedReport {
            end: view.status.as_ref().map(|status| status.to_lowercase()),
            reason: view.reason.clone(),
            phase: view.phase.clone(),
            phases,
            activations: self.started.into_iter().map(activation).collect(),
            order: self.order,
            verdicts: self.verdicts,
            commands: self.commands,
            warnings: self.warnings,
        }
    }
}

fn read_records(dir: &Utf8Path) -> Vec<ActivationRecord> {
    let Ok(entries) = dir.read_dir_utf8() else { return Vec::new() };
    let read = |path: &Utf8Path| serde_json::from_slice(&cliq_fs::read_limited(path, MAX_RECORD).ok()?).ok();
    entries.filter_map(Result::ok).filter_map(|entry| read(entry.path())).collect()
}
