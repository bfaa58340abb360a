//! The machines as tables, made by asking them: what docs/signals.md shows.

use cliq_gateway::SignalType;
use cliq_markers::MarkerKind;
use serde_json::{Map, Value};

use crate::machine::{Command, Context, Event};
use crate::model::{Brief, Config, Plan, Stage, StartReason, TaskLoop, WaitingFor, WorkId};
use crate::plan_file::{PlanFile, TaskSpec, WaveSpec};
use crate::role::Role;

const COMMANDS: [(&str, Command); 5] = [
    ("start-over", Command::StartOver),
    ("reimplement", Command::Reimplement),
    ("request-review", Command::RequestReview),
    ("cancel", Command::Cancel),
    ("reopen", Command::Reopen),
];

fn file(waves: usize) -> PlanFile {
    let task = |n: u32| TaskSpec { title: format!("task {n}"), body: "Do it.".to_owned(), files: Vec::new() };
    let wave = WaveSpec { tasks: (1..=2).map(task).collect() };
    PlanFile { goal: "Goal.".to_owned(), branches: false, waves: vec![wave; waves] }
}

fn payload(kind: SignalType, wave: u32) -> Map<String, Value> {
    let pair = |key: &str, n: u32| (key.to_owned(), Value::from(n));
    match kind {
        SignalType::ImplementWave => Map::from_iter([pair("wave_number", wave)]),
        SignalType::ImplementTaskFinished => {
            Map::from_iter([pair("wave_number", wave), pair("task_number", 1)])
        }
        SignalType::PlannerDraftFinished => Map::from_iter([("planner_id".to_owned(), "a".into())]),
        _ => Map::new(),
    }
}

fn signal(plan: &mut Plan, kind: SignalType, wave: u32, context: &Context<'_>) {
    // Where it does not fit, the table shows it.
    let _ = plan.step(Event::Signal { kind, payload: payload(kind, wave) }, context);
}

/// Every situation of a plan with every signal and every command, as a table in markdown.
#[must_use]
pub fn plan_table() -> String {
    use SignalType as S;
    let planned = file(2);
    let config = Config { architect: true, readiness_max_verify_cycles: 2, ..Config::default() };
    let context = Context { config, file: Ok(&planned) };
    let after = |signals: &[(S, u32)]| {
        let mut plan = Plan::new(file(0));
        signals.iter().for_each(|(kind, wave)| signal(&mut plan, *kind, *wave, &context));
        plan
    };
    let begun = [(S::ImplementWave, 1), (S::ElaboratorFinished, 1)];
    let mut failed = after(&begun);
    fail_all(&mut failed, &context);
    let mut over = after(&begun);
    complete_all(&mut over, &context);
    let mut reviewing = over.clone();
    signal(&mut reviewing, S::ImplementWave, 2, &context);
    complete_all(&mut reviewing, &context);
    let with = |plan: &Plan, signals: &[S]| {
        let mut plan = plan.clone();
        signals.iter().for_each(|kind| signal(&mut plan, *kind, 1, &context));
        plan
    };
    let command = |plan: &Plan, command: Command| {
        let mut plan = plan.clone();
        let _ = plan.step(Event::Person(command), &context);
        plan
    };
    let verifying = with(&reviewing, &[S::ReviewApproved]);
    let last = with(&verifying, &[S::VerifyFailed, S::ImplementFinished, S::ReviewApproved]);
    let situations = [
        ("ready", after(&[])),
        ("planning", after(&[(S::PlanStart, 0)])),
        ("implementing: architect", after(&begun[..1])),
        ("implementing: wave 1 of 2", after(&begun)),
        ("implementing: wave 1, all tasks ended, some failed", failed),
        ("implementing: between waves 1 and 2", over),
        ("reviewing", reviewing.clone()),
        ("implementing: fixer", with(&reviewing, &[S::ReviewChangesRequested])),
        ("verifying", verifying.clone()),
        ("verifying, for the last time", last),
        ("done", with(&verifying, &[S::VerifyApproved])),
        ("cancelled", command(&reviewing, Command::Cancel)),
    ];
    let mut rows = vec!["| |".to_owned(), "|---|".to_owned()];
    for (name, _) in &situations {
        rows[0].extend([" ", *name, " |"]);
        rows[1].push_str("---|");
    }
    for kind in S::all() {
        let cells = situations.iter().map(|(_, plan)| {
            // The wave that would be next.
            let wave = match kind {
                S::ImplementWave => plan.wave + 1,
                _ => plan.wave.max(1),
            };
            cell(plan, Event::Signal { kind, payload: payload(kind, wave) }, &context)
        });
        rows.push(row(&format!("`{kind}`"), cells));
    }
    for (name, command) in COMMANDS {
        let cells = situations.iter().map(|(_, plan)| cell(plan, Event::Person(command.clone()), &context));
        rows.push(row(&format!("`cliq plan {name}`"), cells));
    }
    rows.join("\n") + "\n"
}

fn row(name: &str, cells: impl Iterator<Item = String>) -> String {
    let cells: Vec<String> = cells.collect();
    format!("| {name} | {} |", cells.join(" | "))
}

fn cell(plan: &Plan, event: Event, context: &Context<'_>) -> String {
    let mut next = plan.clone();
    match next.step(event, context) {
        Err(_) => "–".to_owned(),
        Ok(effects) if effects.ignored.is_some() => "ignored".to_owned(),
        Ok(_) if next.force_promoted && !plan.force_promoted => format!("{} (forced)", next.state),
        Ok(_) => next.state.to_string(),
    }
}

fn complete_all(plan: &mut Plan, context: &Context<'_>) {
    for task in 1..=2 {
        let kind = SignalType::ImplementTaskFinished;
        let mut payload = payload(kind, plan.wave);
        payload.insert("task_number".to_owned(), task.into());
        let _ = plan.step(Event::Signal { kind, payload }, context);
    }
}

fn fail_all(plan: &mut Plan, context: &Context<'_>) {
    for work in plan.works.values_mut() {
        work.stage = Stage::Failed { why: "it does not work".to_owned() };
    }
    plan.jobs.clear();
    // Anything that changes nothing, for what follows.
    signal(plan, SignalType::ReviewApproved, 1, context);
}

/// Returns a markdown table of the markers of each role in the quality loop and their effect on the task.
#[must_use]
pub fn task_table() -> String {
    let planned = file(1);
    let config = Config { task_loop: TaskLoop::Markers, ..Config::default() };
    let context = Context { config, file: Ok(&planned) };
    let id = WorkId::Task { wave: 1, task: 1 };
    let roles = [Role::BusinessAnalyst, Role::Developer, Role::Critic, Role::Auditor];
    let running = |role: Role, failures: u32| {
        let mut plan = Plan::new(planned.clone());
        signal(&mut plan, SignalType::ImplementWave, 1, &context);
        let mut job = 0;
        if let Some(work) = plan.works.get_mut(&id)
            && let Stage::Running { role: at, job: number } = &mut work.stage
        {
            (*at, work.failures, job) = (role, failures, *number);
        }
        plan.jobs.iter_mut().filter(|other| other.id == job).for_each(|job_| job_.role = Some(role));
        (plan, job)
    };
    let mut rows = vec!["| |".to_owned(), "|---|".to_owned()];
    for role in roles {
        rows[0].extend([" ", role.as_str(), " |"]);
        rows[1].push_str("---|");
    }
    let mut add = |name: &str, text: &str, failures: u32, strikes: u32| {
        let cells = roles.into_iter().map(|role| {
            let (mut plan, job) = running(role, failures);
            if let Some(work) = plan.works.get_mut(&id) {
                (work.strikes, work.restarts) = (strikes % 3, strikes / 3);
                let asked = Brief { why: StartReason::Checkpoint, text: String::new() };
                work.brief = Some(asked).filter(|_| work.strikes > 0);
            }
            match plan
                .step(Event::JobEnded { job, text: text.to_owned(), success: true, usage: None }, &context)
            {
                Ok(_) => plan.works.get(&id).map_or_else(|| "–".to_owned(), |work| describe(work, role)),
                Err(_) => "–".to_owned(),
            }
        });
        rows.push(row(name, cells));
    };
    for kind in MarkerKind::all() {
        let text = match kind.format() {
            text if kind == MarkerKind::FileConflict => text.replace("[agent or task, or UNKNOWN]", "w1-t2"),
            text => text.replace("[task_id]", &id.to_string()),
        };
        add(&format!("`{kind}`"), &text, 0, 0);
        if matches!(kind, MarkerKind::ReviewFailed | MarkerKind::AuditFailed) {
            add(&format!("`{kind}`, the third failure"), &text, 2, 0);
        }
        if kind == MarkerKind::Checkpoint {
            add(&format!("`{kind}`, when it is asked for"), &text, 0, 1);
        }
    }
    add("`AUDIT_PASSED` of another task", "AUDIT_PASSED: w1-t2\n", 0, 0);
    add("no marker", "I am done.", 0, 0);
    add("no marker, the third time", "I am done.", 0, 2);
    add("no marker, three more times", "I am done.", 0, 5);
    rows.join("\n") + "\n"
}

fn describe(work: &crate::model::Work, before: Role) -> String {
    let again = |role: Role| {
        let why = work.brief.as_ref().map(|brief| format!("{:?}", brief.why).to_lowercase());
        let why = why.filter(|_| role == before || work.failures > 0 || work.restarts > 0);
        why.map_or_else(|| role.to_string(), |why| format!("{role}: {why}"))
    };
    match &work.stage {
        Stage::Queued { role } | Stage::Running { role, .. } => again(*role),
        Stage::Held { by: WaitingFor::Person { .. }, .. } => "a person is asked".to_owned(),
        Stage::Held { by: WaitingFor::Expert { .. }, .. } => "an expert is asked".to_owned(),
        Stage::Held { by: WaitingFor::File { .. }, .. } => "waits for the file".to_owned(),
        Stage::Held { by: WaitingFor::Infrastructure, .. } => "waits for remediation".to_owned(),
        Stage::Complete => "**complete**".to_owned(),
        Stage::Failed { .. } => "**failed**".to_owned(),
        Stage::SetAside { .. } => "set aside".to_owned(),
    }
}
