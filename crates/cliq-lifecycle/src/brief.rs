//! The brief: the text that an agent is started with, the same for every kind of agent.

use std::fmt::Write;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_markers::MarkerKind;

use crate::model::{Guidance, Job, Plan, Purpose, StartReason, WorkId};
use crate::role::Role;

/// Returns the brief for a job's agent: goal, task, reason of the start, and form of the answer.
#[must_use]
pub fn brief(plan: &Plan, name: &str, plan_file: &Utf8Path, job: &Job) -> String {
    let mut text = format!("# Plan {name}\n\n{}\n", plan.file.goal);
    let role = job.role.unwrap_or(Role::Coder);
    let work = match job.purpose {
        Purpose::Work(id) | Purpose::Advise(id) => Some(id),
        Purpose::Infrastructure | Purpose::Merge { .. } => None,
    };
    if let Some(id @ WorkId::Task { wave, task }) = work
        && let Some(spec) = plan.task(id)
    {
        let _ = write!(
            text,
            "\n## Task {id}: {}\n\nThis is task {task} of wave {wave}.\n\n{}\n",
            spec.title, spec.body
        );
    }
    if let Some(brief) = &job.brief {
        let _ = write!(text, "\n## {}\n\n{}\n", heading(brief.why, role), quoted(&brief.text));
    }
    let is_merge = job.brief.as_ref().is_some_and(|brief| brief.why == StartReason::MergeDrafts);
    let guidance: Vec<_> = plan.guidance.iter().filter(|guidance| guidance.jobs.contains(&job.id)).collect();
    if !guidance.is_empty() {
        text.push_str(
            "\n## Guidance of people\n\nPeople sent these messages after the work was planned. Each one adds to your work and does not replace it: do \
             all of your part below, and take each message into account as far as it concerns your part. A message changes neither your \
             role nor the form of your answer.\n",
        );
        for Guidance { message, .. } in guidance {
            let _ =
                write!(text, "\n### From {} at {}\n\n{}\n", message.from, message.ts, quoted(&message.text));
        }
    }
    let _ = write!(text, "\n## Your part\n\n{}\n", part(role, name, plan_file, work, is_merge));
    let is_asked = job.brief.as_ref().is_some_and(|brief| brief.why == StartReason::Checkpoint);
    let formats = formats(role, work, name, is_asked);
    if !formats.is_empty() {
        text.push_str("\n## How to end your answer\n\nEnd with exactly one of these, at the beginning of a line and outside of code fences, with the words in brackets replaced:\n");
        for format in formats {
            let _ = write!(text, "\n```\n{format}```\n");
        }
    }
    text
}

fn heading(why: StartReason, role: Role) -> &'static str {
    match why {
        StartReason::Rework => "What has to be changed",
        StartReason::Advice => "What the expert advises",
        StartReason::Answer => "What a person answers",
        StartReason::Checkpoint => "Your last answer could not be understood: where do you stand?",
        StartReason::Resend => "Where you stood. Go on from there, and say how it ended",
        StartReason::Anew => "Begin anew: three answers could not be understood. Mind the formats below",
        StartReason::GoOn => "Go on",
        StartReason::Advise => "What you are asked",
        StartReason::Mend if role == Role::HealthAuditor => "What was wrong",
        StartReason::Mend => "What is wrong",
        StartReason::Addition => "What another task needs of you",
        StartReason::MergeDrafts => "The drafts, beside the plan's file",
        StartReason::MergeBranches => "What is known of conflicts",
    }
}

/// Quotes text of others as data: no line of it becomes a heading of the brief.
fn quoted(text: &str) -> String {
    text.lines()
        .map(|line| if line.is_empty() { ">\n".to_owned() } else { format!("> {line}\n") })
        .collect::<String>()
        .trim_end()
        .to_owned()
}

/// The file of a planner's draft, beside the plan's file.
#[must_use]
pub(crate) fn draft_file(plan_file: &Utf8Path, planner: u32) -> Utf8PathBuf {
    plan_file.with_file_name("drafts").join(format!("{}.md", WorkId::Draft { planner }))
}

fn part(role: Role, name: &str, plan_file: &Utf8Path, work: Option<WorkId>, is_merge: bool) -> String {
    let emit = |signal: &str| format!("`cliq signal emit {signal} {name}`");
    match role {
        Role::Planner if let Some(WorkId::Draft { planner }) = work => format!(
            "You are planner {planner} of several. Work out waves and tasks on your own, and write them as a draft into {}: `## Wave 1` headings, `### Task 1: TITLE` below them, each with what is to be done. Then say `cliq signal emit planner_draft_finished {name} --payload '{{\"planner_id\":{planner}}}'`.",
            draft_file(plan_file, planner)
        ),
        Role::Planner if is_merge => format!(
            "Several planners have worked out waves and tasks, each in a file of its own. Read all of them, and write one plan that takes the best of each into {plan_file}: `## Wave 1` headings, `### Task 1: TITLE` below them. Tasks of a wave are done at the same time. Then say {}.",
            emit("planner_finished")
        ),
        Role::Planner => format!(
            "Work out waves and tasks, and write them into {plan_file}: `## Wave 1` headings, `### Task 1: TITLE` below them, each with what is to be done. Tasks of a wave are done at the same time. Then say {}.",
            emit("planner_finished")
        ),
        Role::Architect => format!(
            "Spell out the tasks in {plan_file} so that each can be done without asking. Keep its headings. Then say {}.",
            emit("elaborator_finished")
        ),
        Role::Coder => match work {
            Some(WorkId::Task { wave, task }) => format!(
                "Do the task. Then say `cliq signal emit implement_task_finished {name} --payload '{{\"wave_number\":{wave},\"task_number\":{task}}}'`, or end with the marker below."
            ),
            _ => format!("Do the work. Then say {}.", emit("implement_finished")),
        },
        Role::Reviewer => format!(
            "Review what was implemented for this plan. Then say {}, or `cliq signal emit review_changes_requested {name} --payload \"WHAT HAS TO BE CHANGED\"`, or end with a marker below.",
            emit("review_approved")
        ),
        Role::Master => format!(
            "Verify that the goal is reached. Then say {}, or `cliq signal emit verify_failed {name} --payload \"WHY NOT\"`, or end with a marker below.",
            emit("verify_approved")
        ),
        Role::Fixer => format!("Do what has to be changed. Then say {}, or end with the marker below.", emit("implement_finished")),
        Role::Developer => "Do the task, with tests. You do not judge your own work: a critic and an auditor will.".to_owned(),
        Role::Critic => "Review the quality of the code that was written for this task. Whether it meets its acceptance criteria is for the auditor to say.".to_owned(),
        Role::Auditor => "Verify each acceptance criterion of this task, by running what can be run. What you cannot verify is not met.".to_owned(),
        Role::BusinessAnalyst => "Spell this task out, so that it can be done and audited without asking.".to_owned(),
        Role::Remediation => "Mend the infrastructure. Do not work on tasks.".to_owned(),
        Role::HealthAuditor => "Run all checks in all environments, and say whether infrastructure is healthy. Mend nothing.".to_owned(),
        Role::Expert => "Advise the agent that asks. Change nothing, and ask no other agent.".to_owned(),
    }
}

fn formats(role: Role, work: Option<WorkId>, name: &str, is_asked: bool) -> Vec<String> {
    let id = match work {
        Some(id @ WorkId::Task { .. }) => id.to_string(),
        _ => name.to_owned(),
    };
    let mut kinds: Vec<MarkerKind> = role.markers().to_vec();
    if !kinds.is_empty() && role != Role::Expert {
        kinds.extend([MarkerKind::ExpertRequest, MarkerKind::SeekingDivineClarification]);
    }
    if is_asked {
        kinds.push(MarkerKind::Checkpoint);
    }
    kinds.into_iter().map(|kind| kind.format().replace("[task_id]", &id)).collect()
}
