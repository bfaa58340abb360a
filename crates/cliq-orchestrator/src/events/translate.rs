//! Events as inputs of the machine, and reports of the machine as events.

use cliq_protocol::{PhaseName, Timestamp, WireTime};
use cliq_workflow::ValidatedWorkflow;
use serde_json::Value;

use super::{DecisionKind, RunEvent};
use crate::engine::{Amount, DecidedItem, Decision, Input, MergeOutcome, PhaseWait, Report};

impl RunEvent {
    /// The input of the machine that this event records; `None` for what merely follows from inputs.
    #[must_use]
    pub fn as_input(&self, workflow: &ValidatedWorkflow) -> Option<Input> {
        let find = |phase: &PhaseName| workflow.find(phase.as_str());
        Some(match self {
            Self::RunStarted { max_parallel, budgets, kept, .. } => Input::Start {
                max_parallel: *max_parallel,
                limits: budgets.limits(workflow),
                kept: kept.iter().filter_map(|kept| kept.as_input(workflow)).collect(),
            },
            Self::RunInterrupted => Input::Interrupt,
            Self::RunResumed { max_parallel, from, budgets, .. } => Input::Resume {
                from: from.as_ref().and_then(find),
                max_parallel: *max_parallel,
                limits: budgets.limits(workflow),
            },
            Self::UsageReported { phase, usage, is_final } => {
                Input::UsageReported { phase: find(phase)?, usage: Amount::of(usage), is_final: *is_final }
            }
            Self::CommandsFinished { phase, results, .. } => {
                Input::CommandsFinished { phase: find(phase)?, results: results.clone() }
            }
            Self::AgentCompleted { phase, result } => {
                Input::AgentCompleted { phase: find(phase)?, result: result.clone() }
            }
            Self::WorkFailed { phase, reason, cause, .. } => {
                Input::WorkFailed { phase: find(phase)?, reason: reason.clone(), cause: *cause }
            }
            Self::PhaseDecided { phase, decision, items, skipped, reason, .. } => {
                let decision = match decision {
                    DecisionKind::Run => Decision::Run,
                    DecisionKind::Skip => Decision::Skip,
                    DecisionKind::Failed => Decision::Failed(reason.clone().unwrap_or_default()),
                    DecisionKind::Items => {
                        let item = |(index, value): (u32, &Value)| DecidedItem {
                            value: value.clone(),
                            runs: !skipped.contains(&index),
                        };
                        Decision::Items((0u32..).zip(items).map(item).collect())
                    }
                };
                Input::Decided { phase: find(phase)?, decision }
            }
            Self::ItemsMerged { phase, conflict, files, notes, reason } => {
                let outcome = match (reason, conflict) {
                    (Some(reason), _) => MergeOutcome::Failed(reason.clone()),
                    (None, Some(item)) => {
                        MergeOutcome::Conflict { item: *item, files: files.clone(), notes: notes.clone() }
                    }
                    (None, None) => MergeOutcome::Done,
                };
                Input::Merged { phase: find(phase)?, outcome }
            }
            Self::RetryDelayed { phase, until } => {
                // A time that cannot be read has come.
                Input::RetryDelayed {
                    phase: find(phase)?,
                    due_ms: until.time().map_or(0, Timestamp::unix_millis),
                }
            }
            Self::RetryDue { phase } => Input::RetryDue { phase: find(phase)? },
            Self::ReviewIdle { phase, review, others, due } => Input::PhaseWaits {
                phase: find(phase)?,
                // A time that cannot be read is none: the agent keeps its process.
                wait: due.as_ref().and_then(WireTime::time).map(|due| PhaseWait {
                    reviews: std::iter::once(review).chain(others).cloned().collect(),
                    due_ms: due.unix_millis(),
                }),
            },
            Self::RunParked { .. } => Input::Park,
            Self::CancelRequested { .. } => Input::Cancel,
            Self::OrchestratorFailed { reason } => Input::Fail { reason: reason.clone() },
            _ => return None,
        })
    }

    /// A report of the machine, with names.
    #[must_use]
    pub fn from_report(report: Report, workflow: &ValidatedWorkflow) -> Self {
        let name = |id| workflow.name_of(id);
        match report {
            Report::PhaseStarted { phase, iteration, routed_by } => Self::PhaseStarted {
                phase: name(phase),
                kind: workflow.phase(phase).kind,
                iteration,
                routed_by: routed_by.map(name),
            },
            Report::PhaseSkipped { phase, reason } => {
                Self::PhaseSkipped { phase: name(phase), kind: workflow.phase(phase).kind, reason }
            }
            Report::ItemsStarted { phase, items, starting } => {
                Self::ItemsStarted { phase: name(phase), items, starting }
            }
            Report::MergeConflict { phase, item, files, notes } => {
                Self::MergeConflict { phase: name(phase), item, files, notes }
            }
            Report::ItemFailed { phase, reason } => Self::ItemFailed { phase: name(phase), reason },
            Report::RetryScheduled { phase, attempt, attempts, delay_ms, reason } => {
                Self::RetryScheduled { phase: name(phase), attempt, attempts, delay_ms, reason }
            }
            Report::Verdict { gate, iteration, verdict, failing } => Self::Verdict {
                failing,
                gate: name(gate),
                iteration,
                max_iterations: workflow.phase(gate).max_iterations,
                verdict,
            },
            Report::VerdictRejected { gate, iteration, reason } => {
                Self::VerdictRejected { gate: name(gate), iteration, reason }
            }
            Report::PhaseCompleted { phase } => Self::PhaseCompleted { phase: name(phase) },
            Report::PhaseEscalated { phase, reason } => Self::PhaseEscalated { phase: name(phase), reason },
            Report::PhaseReset { phase } => Self::PhaseReset { phase: name(phase) },
            Report::PhaseStopped { phase } => Self::PhaseStopped { phase: name(phase) },
            Report::Draining { running } => {
                Self::Draining { running: running.into_iter().map(name).collect() }
            }
        }
    }
}
