//! Plans as a JSON document for programs, and in words.

use cliq_gateway::PlanRow;
use serde_json::{Value, json};

use crate::model::{Plan, Stage, WaitingFor, WorkId};

/// The JSON document of a plan for programs: `docs/signals.md`, "For programs".
#[must_use]
pub fn plan_document(plan: &Plan, row: &PlanRow) -> Value {
    let tasks = plan.file.waves.iter().zip(1..).flat_map(|(wave, n)| {
        wave.tasks.iter().zip(1..).map(move |(task, m)| (WorkId::Task { wave: n, task: m }, task))
    });
    let tasks: Vec<Value> = tasks
        .map(|(id, task)| {
            let mut value = json!({"id": id, "title": task.title, "stage": stage_of(plan, id)});
            if let Some(work) = plan.works.get(&id) {
                value["failures"] = work.failures.into();
                value["role"] = json!(role_of(&work.stage));
                value["why"] = json!(reason_of(&work.stage));
            }
            value
        })
        .collect();
    json!({
        "project": row.project,
        "name": row.name,
        "state": plan.state,
        "wave": plan.wave,
        "waves": plan.file.waves.len(),
        "wave_over": plan.wave_over,
        "stuck": plan.is_stuck(),
        "tasks": tasks,
        "jobs": plan.jobs,
        "questions": plan.questions,
        "guidance": plan.guidance,
        "infrastructure": plan.infrastructure,
        "verify_cycles": plan.verify_cycles,
        "force_promoted": plan.force_promoted,
        "experts": plan.experts,
        "usage": plan.total_usage(),
        "usage_by_task": plan.usage,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
    })
}

/// The stage of a task in a word, in waves that are over or have not begun too.
#[must_use]
pub fn stage_of(plan: &Plan, id: WorkId) -> &'static str {
    let WorkId::Task { wave, .. } = id else { return "" };
    let later = wave > plan.wave;
    match plan.works.get(&id).map(|work| &work.stage) {
        Some(Stage::Queued { .. }) => "queued",
        Some(Stage::Running { .. }) => "running",
        Some(Stage::Held { .. }) => "held",
        Some(Stage::Complete) => "complete",
        Some(Stage::Failed { .. }) => "failed",
        Some(Stage::SetAside { .. }) => "set_aside",
        None if plan.completed.contains(&id) => "complete",
        None if later || plan.wave == 0 => "pending",
        None => "not_done",
    }
}

/// The role that works on it or is next.
#[must_use]
pub fn role_of(stage: &Stage) -> Option<&'static str> {
    match stage {
        Stage::Queued { role } | Stage::Running { role, .. } | Stage::Held { role, .. } => {
            Some(role.as_str())
        }
        Stage::Complete | Stage::Failed { .. } | Stage::SetAside { .. } => None,
    }
}

/// Returns the reason for waiting or for giving up.
#[must_use]
pub fn reason_of(stage: &Stage) -> Option<String> {
    match stage {
        Stage::Held { by, .. } => Some(match by {
            WaitingFor::Person { question } => format!("question {question}"),
            WaitingFor::Expert { .. } => "an expert is asked".to_owned(),
            WaitingFor::File { path, holder } => format!("{holder} has {path}"),
            WaitingFor::Infrastructure => "infrastructure is blocked".to_owned(),
        }),
        Stage::Failed { why } | Stage::SetAside { why } => Some(why.clone()),
        Stage::Queued { .. } | Stage::Running { .. } | Stage::Complete => None,
    }
}
