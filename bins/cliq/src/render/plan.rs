//! Plans, as people and programs see them.

use std::fmt::Write;

use camino::Utf8Path;
use cliq_gateway::PlanEvent;
use cliq_lifecycle::{
    Infrastructure, Plan, PlanState, QuestionSubject, Stage, WorkId, reason_of, role_of, stage_of,
};
use cliq_orchestrator::UsageSummary;
use serde_json::Value;

use crate::render::usage;
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

/// Renders the state of a plan with everything a person should know or do.
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
                if let Some(why) = reason_of(&work.stage) {
                    let _ = write!(
                        text,
                        "  {}",
                        paint(ui::YELLOW, ui::plain(why.lines().next().unwrap_or_default()))
                    );
                }
            }
            if let Some(usage) = plan.usage.get(&id) {
                let mut sum = UsageSummary::default();
                usage.values().for_each(|usage| sum.merge(usage));
                let _ = write!(text, "  {}", paint(ui::DIM, short(&sum)));
            }
            text.push('\n');
        }
    }
    if let Some(usage) = plan.total_usage() {
        let _ = writeln!(text, "  usage: {}", usage::sentence(&usage));
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
            QuestionSubject::Work(id) => id.to_string(),
            QuestionSubject::Infrastructure => "infrastructure".to_owned(),
            QuestionSubject::Merge { wave } => format!("merge of wave {wave}"),
        };
        let _ = writeln!(text, "  {} question {} ({about}):", paint(ui::YELLOW, "?"), question.id);
        for line in ui::plain(&question.text).lines() {
            let _ = writeln!(text, "      {line}");
        }
        let _ = writeln!(text, "    answer: `cliq plan answer {name} --question {} TEXT`", question.id);
    }
    for guidance in &plan.guidance {
        let state = match guidance.jobs.len() {
            0 => paint(ui::YELLOW, "pending"),
            1 => paint(ui::GREEN, "delivered to 1 agent"),
            n => paint(ui::GREEN, format!("delivered to {n} agents")),
        };
        let to = guidance.task.map(|task| format!(" for {task}")).unwrap_or_default();
        let first = ui::plain(guidance.message.text.lines().next().unwrap_or_default());
        let _ = writeln!(text, "  guidance from {}{to}, {state}: {first}", ui::plain(&guidance.message.from));
    }
    if plan.is_stuck() {
        let _ = writeln!(
            text,
            "  all tasks of the wave have ended, some failed: `cliq signal emit retry_wave {name}` does those again, `advance_wave` leaves them behind"
        );
    }
    text
}

fn short(usage: &UsageSummary) -> String {
    format!("{} tokens, {}", usage::cell(usage), usage::cost(usage))
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
    format!("{} {} {} {detail}{signal}", paint(ui::DIM, event.at), event.to, paint(ui::BOLD, &event.kind))
}
