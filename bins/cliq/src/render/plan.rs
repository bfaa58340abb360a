//! Plans, as people and programs see them.

use std::fmt::Write;

use camino::Utf8Path;
use cliq_gateway::{PlanEvent, PlanRow};
use cliq_lifecycle::{About, Hold, Infrastructure, Plan, PlanState, Stage, WorkId};
use serde_json::{Value, json};

use crate::ui::{self, paint};

pub(crate) fn state(state: PlanState) -> String {
    let style = match state {
        PlanState::Ready => ui::BOLD,
        PlanState::Planning | PlanState::Implementing | PlanState::Reviewing | PlanState::Verifying => {
            ui::CYAN
        }
        PlanState::Done => ui::GREEN,
        PlanState::Cancelled => ui::YELLOW,
    };
    paint(style, state)
}

/// docs/signals.md, "Plans for programs".
pub(crate) fn document(plan: &Plan, row: &PlanRow) -> Value {
    let tasks = plan.file.waves.iter().zip(1..).flat_map(|(wave, n)| {
        wave.tasks.iter().zip(1..).map(move |(task, m)| (WorkId::Task { wave: n, task: m }, task))
    });
    let tasks: Vec<Value> = tasks
        .map(|(id, task)| {
            let mut value = json!({"id": id, "title": task.title, "stage": stage_of(plan, id)});
            if let Some(work) = plan.works.get(&id) {
                value["failures"] = work.failures.into();
                value["role"] = json!(role_of(&work.stage));
                value["why"] = json!(why_of(&work.stage));
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
        "infrastructure": plan.infrastructure,
        "verify_cycles": plan.verify_cycles,
        "force_promoted": plan.force_promoted,
        "experts": plan.experts,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
    })
}

/// How far a task is, in a word: also those of waves that are over or have not begun.
fn stage_of(plan: &Plan, id: WorkId) -> &'static str {
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

fn role_of(stage: &Stage) -> Option<&'static str> {
    match stage {
        Stage::Queued { role } | Stage::Running { role, .. } | Stage::Held { role, .. } => {
            Some(role.as_str())
        }
        Stage::Complete | Stage::Failed { .. } | Stage::SetAside { .. } => None,
    }
}

fn why_of(stage: &Stage) -> Option<String> {
    match stage {
        Stage::Held { by, .. } => Some(match by {
            Hold::Person { question } => format!("question {question}"),
            Hold::Expert { .. } => "an expert is asked".to_owned(),
            Hold::File { path, holder } => format!("{holder} has {path}"),
            Hold::Infrastructure => "infrastructure is blocked".to_owned(),
        }),
        Stage::Failed { why } | Stage::SetAside { why } => Some(why.clone()),
        Stage::Queued { .. } | Stage::Running { .. } | Stage::Complete => None,
    }
}

/// One line.
pub(crate) fn summary(plan: &Plan, name: &str) -> String {
    let mut line = format!("{}  {}", paint(ui::BOLD, name), state(plan.state));
    if plan.is_in_wave() {
        let done = plan.tasks().filter(|(_, work)| work.stage == Stage::Complete).count();
        let _ = write!(
            line,
            "  wave {} of {}: {done} of {} tasks",
            plan.wave,
            plan.file.waves.len(),
            plan.tasks().count()
        );
    }
    if plan.force_promoted {
        let _ = write!(line, "  {}", paint(ui::YELLOW, "done without being verified"));
    }
    if !plan.questions.is_empty() {
        let _ = write!(line, "  {}", paint(ui::YELLOW, "a person is asked"));
    }
    if plan.is_stuck() {
        let _ = write!(line, "  {}", paint(ui::RED, "stuck"));
    }
    line
}

/// How a plan stands, with all that a person should know or do.
pub(crate) fn status(plan: &Plan, name: &str) -> String {
    let mut text = format!("{}\n", summary(plan, name));
    for (wave, number) in plan.file.waves.iter().zip(1..) {
        let _ = writeln!(text, "  {}", paint(ui::DIM, format!("wave {number}")));
        for (task, n) in wave.tasks.iter().zip(1..) {
            let id = WorkId::Task { wave: number, task: n };
            let (sign, style) = match stage_of(plan, id) {
                "complete" => ("✓", ui::GREEN),
                "failed" => ("✗", ui::RED),
                "running" => ("▸", ui::CYAN),
                "held" | "set_aside" => ("‖", ui::YELLOW),
                _ => ("·", ui::DIM),
            };
            let _ = write!(text, "    {} {id} {}", paint(style, sign), ui::plain(&task.title));
            if let Some(work) = plan.works.get(&id) {
                if let Some(role) = role_of(&work.stage) {
                    let waits = if matches!(work.stage, Stage::Queued { .. }) { " waits" } else { "" };
                    let _ = write!(text, "  {}", paint(ui::DIM, format!("{role}{waits}")));
                }
                if let Some(why) = why_of(&work.stage) {
                    let _ = write!(
                        text,
                        "  {}",
                        paint(ui::YELLOW, ui::plain(why.lines().next().unwrap_or_default()))
                    );
                }
            }
            text.push('\n');
        }
    }
    if let Some(role) = plan.works.get(&WorkId::Plan).and_then(|work| role_of(&work.stage)) {
        let _ = writeln!(text, "  {} {role}", paint(ui::CYAN, "▸"));
    }
    if let Infrastructure::Blocked { report, attempt, role, .. } = &plan.infrastructure {
        let first = ui::plain(report.lines().next().unwrap_or_default());
        let _ = writeln!(
            text,
            "  {} infrastructure is blocked ({first}); attempt {attempt}, {role}",
            paint(ui::RED, "!")
        );
    }
    for question in &plan.questions {
        let about = match question.about {
            About::Work(id) => id.to_string(),
            About::Infrastructure => "infrastructure".to_owned(),
            About::Merge { wave } => format!("merge of wave {wave}"),
        };
        let _ = writeln!(text, "  {} question {} ({about}):", paint(ui::YELLOW, "?"), question.id);
        for line in ui::plain(&question.text).lines() {
            let _ = writeln!(text, "      {line}");
        }
        let _ = writeln!(text, "    answer: `cliq plan answer {name} --question {} TEXT`", question.id);
    }
    if plan.is_stuck() {
        let _ = writeln!(
            text,
            "  all tasks of the wave have ended, some in vain: `cliq signal emit retry_wave {name}` does those again, `advance_wave` leaves them behind"
        );
    }
    text
}

/// The goal and every task, with how far each is.
pub(crate) fn whole(plan: &Plan, name: &str, dir: &Utf8Path) -> String {
    let mut text = status(plan, name);
    let _ = writeln!(text, "\n{}\n", ui::plain(&plan.file.goal));
    for (wave, number) in plan.file.waves.iter().zip(1..) {
        for n in (1..).take(wave.tasks.len()) {
            let id = WorkId::Task { wave: number, task: n };
            if let Some(task) = plan.task(id) {
                let _ = writeln!(
                    text,
                    "{}\n{}\n",
                    paint(ui::BOLD, format!("{id} {}", ui::plain(&task.title))),
                    ui::plain(&task.body)
                );
            }
        }
    }
    let _ = writeln!(text, "{}", paint(ui::DIM, format!("its file and its agents' logs: {dir}")));
    text
}

/// A line of the event log.
pub(crate) fn event(event: &PlanEvent) -> String {
    let detail = match &event.detail {
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| {
                let value = value.as_str().map_or_else(
                    || value.to_string(),
                    |text| text.lines().next().unwrap_or_default().to_owned(),
                );
                format!("{key}={}", ui::plain(&value))
            })
            .collect::<Vec<_>>()
            .join(" "),
        _ => String::new(),
    };
    let signal = event.signal.map_or(String::new(), |id| paint(ui::DIM, format!("  signal {id}")));
    format!("{} {} {} {detail}{signal}", paint(ui::DIM, &event.at), event.to, paint(ui::BOLD, &event.kind))
}
