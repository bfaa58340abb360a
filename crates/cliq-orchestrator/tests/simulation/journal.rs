//! The inputs of a run as its journal records them.

use cliq_orchestrator::internals::{Decision, Input, Kept, KeptOutcome, Limits, MergeOutcome};
use cliq_orchestrator::{
    DecisionKind, Journal, KeptPhase, Record, RecordedBudgets, RunEvent, ValidatedWorkflow,
};
use cliq_protocol::{RunId, Timestamp, Usage};
use cliq_workflow::PhaseId;
use serde_json::json;

fn recorded(limits: &Limits, workflow: &ValidatedWorkflow) -> RecordedBudgets {
    if limits.run.is_unlimited() {
        return RecordedBudgets::default();
    }
    let mut budgets = RecordedBudgets::default();
    budgets.run = limits.run;
    budgets.models = limits.models.iter().map(|id| workflow.phase(*id).name.clone()).collect();
    budgets
}

/// The inputs as the driver journals them, through the bytes of a file.
pub(crate) fn journal_of(inputs: &[Input], workflow: &ValidatedWorkflow) -> Journal {
    let name = |id: PhaseId| workflow.name_of(id);
    let dir = tempfile::tempdir().expect("a directory");
    let path = camino::Utf8Path::from_path(dir.path()).expect("utf-8").join("journal.jsonl");
    let mut bytes = Vec::new();
    for input in inputs {
        let event = match input.clone() {
            Input::Start { max_parallel, limits, kept } => RunEvent::RunStarted {
                version: 2,
                run_id: RunId::parse("r").expect("an id"),
                team: "t".into(),
                title: None,
                phase_count: None,
                cliq_version: "0".into(),
                pid: 1,
                max_parallel,
                inputs: Default::default(),
                shape: String::new(),
                budgets: recorded(&limits, workflow),
                agent_models: Default::default(),
                trace: None,
                kept: kept.iter().map(|kept| kept_phase(kept, workflow)).collect(),
            },
            Input::UsageReported { phase, usage, is_final } => RunEvent::UsageReported {
                phase: name(phase),
                usage: Usage { tokens_in: usage.tokens, cost_usd: Some(usage.usd), ..Usage::default() },
                is_final,
            },
            Input::CommandsFinished { phase, results } => RunEvent::CommandsFinished {
                phase: name(phase),
                iteration: 1,
                results,
                max_iterations: None,
                reported: false,
            },
            Input::AgentCompleted { phase, result } => {
                RunEvent::AgentCompleted { phase: name(phase), result }
            }
            Input::WorkFailed { phase, reason, cause } => {
                let (output_tail, log_file, limited) = (None, None, None);
                RunEvent::WorkFailed { phase: name(phase), reason, output_tail, log_file, cause, limited }
            }
            Input::Decided { phase, decision } => {
                let (decision, items, reason) = match decision {
                    Decision::Run => (DecisionKind::Run, Vec::new(), None),
                    Decision::Skip => (DecisionKind::Skip, Vec::new(), None),
                    Decision::Items(items) => (DecisionKind::Items, items, None),
                    Decision::Failed(reason) => (DecisionKind::Failed, Vec::new(), Some(reason)),
                };
                let skipped = (0u32..).zip(&items).filter(|(_, item)| !item.runs).map(|(n, _)| n).collect();
                let items = items.into_iter().map(|item| item.value).collect();
                let (expressions, values) = (Default::default(), Default::default());
                RunEvent::PhaseDecided {
                    kind: workflow.phase(phase).kind,
                    phase: name(phase),
                    decision,
                    items,
                    skipped,
                    reason,
                    expressions,
                    values,
                }
            }
            Input::Merged { phase, outcome } => {
                let (conflict, files, reason) = match outcome {
                    MergeOutcome::Done => (None, Vec::new(), None),
                    MergeOutcome::Conflict { item, files, .. } => (Some(item), files, None),
                    MergeOutcome::Failed(reason) => (None, Vec::new(), Some(reason)),
                };
                RunEvent::ItemsMerged { phase: name(phase), conflict, files, notes: Vec::new(), reason }
            }
            Input::RetryDelayed { phase, due_ms } => RunEvent::RetryDelayed {
                phase: name(phase),
                until: Timestamp::from_unix_millis(due_ms).into(),
            },
            Input::RetryDue { phase } => RunEvent::RetryDue { phase: name(phase) },
            Input::Resume { from, max_parallel, limits } => RunEvent::RunResumed {
                cliq_version: "0".into(),
                pid: 2,
                max_parallel,
                from: from.map(name),
                budgets: recorded(&limits, workflow),
            },
            Input::PhaseWaits { phase, wait } => {
                let (reviews, due) =
                    wait.map(|wait| (wait.reviews, Timestamp::from_unix_millis(wait.due_ms).into())).unzip();
                let mut reviews = reviews.unwrap_or_default().into_iter();
                let review = reviews.next().unwrap_or_default();
                RunEvent::ReviewIdle { phase: name(phase), review, others: reviews.collect(), due }
            }
            Input::Park => RunEvent::RunParked { on: Vec::new(), until: Timestamp::UNIX_EPOCH.into() },
            Input::Interrupt => RunEvent::RunInterrupted,
            Input::Cancel => RunEvent::CancelRequested { by: "test".into() },
            Input::Fail { reason } => RunEvent::OrchestratorFailed { reason },
        };
        bytes.extend(Record::new(Timestamp::UNIX_EPOCH, event).encode());
    }
    bytes.extend(b"{\"event\":\"torn");
    std::fs::write(&path, bytes).expect("written");
    let journal = Journal::read(&path).expect("readable").expect("there");
    assert!(journal.torn);
    journal
}

fn kept_phase(kept: &Kept, workflow: &ValidatedWorkflow) -> KeptPhase {
    let phase = workflow.phase(kept.phase);
    let mut value = json!({"phase": phase.name, "kind": phase.kind, "run_id": "r0", "status": "completed"});
    match &kept.outcome {
        KeptOutcome::Skipped => value["status"] = "skipped".into(),
        KeptOutcome::Completed => {}
        KeptOutcome::Passed { results, answer } => {
            value["results"] = json!(results);
            value["answer"] = json!(answer);
        }
        KeptOutcome::Items { values, skipped, failed } => {
            value["items"] = json!(values);
            value["skipped"] = json!(skipped);
            let failed = failed.iter().map(|(index, reason)| json!({"index": index, "reason": reason}));
            value["failed"] = failed.collect::<Vec<_>>().into();
        }
    }
    serde_json::from_value(value).expect("a kept phase")
}
