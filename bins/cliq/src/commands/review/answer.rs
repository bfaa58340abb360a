//! Answering: approve, request changes, reject.

use std::process::ExitCode;

use cliq_fs::{CliqDir, ProjectLock};
use cliq_model::{RunState, RunStore};
use cliq_project::Project;
use cliq_protocol::{FormFieldType, Object, RunId};
use cliq_review::{Answer, Choice, Event, Review, Via};

use super::{ReviewSource, document, find, refused};
use crate::args::AnswerArgs;
use crate::commands::audit::record;
use crate::failure::Failure;
use crate::server_record::server_url;
use crate::ui::{self, GREEN, paint};
use crate::{gateway, project, reviews};

pub(super) async fn run(args: &AnswerArgs, choice: Choice) -> Result<ExitCode, Failure> {
    let ReviewSource { review, reviews } = find::find(&args.id, false).await?;
    let actor = reviews::user();
    let reviewer =
        review.reviewer_for(args.reviewer.as_deref(), &actor).map_err(|refusal| refused(&refusal))?;
    let mut inputs: Object =
        args.inputs.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect();
    let asks = review.is_pending() && ui::can_ask() && !args.json;
    if asks && choice == Choice::Approve {
        ask_for_inputs(&review, &mut inputs)?;
    }
    let mut reason = args.message.clone();
    if asks && reason.is_none() && matches!(choice, Choice::RequestChanges { .. }) {
        reason = Some(ui::ask("What is to be changed?")?);
    }
    let answer = Answer { reviewer, actor, via: Via::CommandLine, choice, reason, inputs };
    let review = reviews.apply(&review.id, Event::Answer(answer)).await?;
    // In a container or with a server elsewhere, the reviews are kept there.
    if let Ok(store) = gateway::open().await {
        record(store.as_ref(), "review answer", review.id.as_str()).await;
    }
    if args.json {
        ui::json(&document(&review))?;
        return Ok(ExitCode::SUCCESS);
    }
    match review.ending() {
        Some(ending) => ui::line(format!("{} {}: {}", paint(GREEN, "✓"), review.phase, ui::plain(&ending)))?,
        None => ui::line(format!(
            "{} recorded; the review waits for {}",
            paint(GREEN, "✓"),
            review.waits_for().join(", ")
        ))?,
    }
    hint_of_run(&review).await;
    Ok(ExitCode::SUCCESS)
}

/// Answers a review of a project in the name of this machine's user, by an editor.
pub(in crate::commands) async fn answer_in_editor(
    project: &Project,
    id: &str,
    choice: Choice,
    reason: Option<String>,
    inputs: Object,
) -> Result<(), Failure> {
    let ReviewSource { review, reviews } = find::find_in(project, id).await?;
    let actor = reviews::user();
    let reviewer = review.reviewer_for(None, &actor).map_err(|refusal| refused(&refusal))?;
    let answer = Answer { reviewer, actor, via: Via::Editor, choice, reason, inputs };
    reviews.apply(&review.id, Event::Answer(answer)).await?;
    if let Ok(store) = gateway::open().await {
        record(store.as_ref(), "review answer", review.id.as_str()).await;
    }
    Ok(())
}

/// Asks for what an approval needs and was not given.
fn ask_for_inputs(review: &Review, inputs: &mut Object) -> Result<(), Failure> {
    for field in review.form.fields() {
        if inputs.contains_key(&field.name) || (!field.required && field.default.is_some()) {
            continue;
        }
        let choices = match &field.kind {
            FormFieldType::Select(choices) => format!(" ({})", choices.join(", ")),
            FormFieldType::Boolean => " (yes, no)".to_owned(),
            _ => String::new(),
        };
        let help = field.help.as_ref().map(|help| format!("\n  {help}")).unwrap_or_default();
        let optional = if field.required { "" } else { ", empty for none" };
        loop {
            let given = ui::ask(&format!("{}{choices}{optional}:{help}", field.label))?;
            let one: Object = [(field.name.clone(), given.as_str().into())].into_iter().collect();
            match review.form.check(&one, false) {
                Ok(_) if given.trim().is_empty() && field.required && field.default.is_none() => {
                    ui::warning("this is needed");
                }
                Ok(_) => {
                    inputs.insert(field.name.clone(), given.into());
                    break;
                }
                Err(problems) => ui::warning(&problems.join("; ")),
            }
        }
    }
    Ok(())
}

/// Prints the next step if no run waits for the answer at the moment.
async fn hint_of_run(review: &Review) {
    let here = project::open().ok().filter(|project| project.dir().workspace() == review.project);
    let dir = here.map(|project| project.dir().clone()).or_else(|| CliqDir::open(&review.project).ok());
    let runs = dir.and_then(|dir| ProjectLock::holder(&dir).ok().flatten()).is_some();
    if review.is_pending() || runs || !review.project.exists() {
        return;
    }
    match run_of_server(review).await {
        Some(state) if state.is_final() => {}
        Some(_) if server_url().is_ok_and(|url| url.is_some()) => ui::hint("the server continues the run"),
        Some(_) => ui::hint("`cliq server start` continues the run"),
        None => ui::hint(
            "the run is not going on at the moment: `cliq run --resume` takes it up with this answer",
        ),
    }
}

/// State of the run of a review, if a server started the run. A store that cannot be read says no.
async fn run_of_server(review: &Review) -> Option<RunState> {
    let id = RunId::parse_uuid(review.run_id.as_str())?;
    let run = gateway::open().await.ok()?.run(&id).await.ok()??;
    run.origin.is_started_by_server().then_some(run.life.state)
}
