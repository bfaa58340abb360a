//! A message to a task: the decision of the review that it waits for, a comment, or guidance for its agents.

use cliq_a2a::{A2aError, ErrorKind, Message, PipelineRequest, Version, wire};
use cliq_model::StoredTask;
use cliq_orchestrator::SteerError;
use cliq_protocol::{NewSteering, Object, PhaseName, SteeringError};
use cliq_review::{
    Answer, Choice, Comment, Event, Refusal, Review, ReviewFilter, Reviews, ReviewsError, Via,
};
use cliq_supervisor::SteeringRefusal;
use serde_json::Value;

use super::A2aCaller;
use super::lookup::{find, internal};
use crate::app::App;

/// Passes a message to its task, and adds it to the history of the task. Returns the task.
pub(super) async fn pass(
    app: &App,
    caller: &A2aCaller,
    id: &str,
    message: &Message,
) -> Result<StoredTask, A2aError> {
    let mut found = answer(app, caller, id, message).await?;
    loop {
        let known: Value = serde_json::from_str(&found.task.messages).unwrap_or_default();
        let mut messages = known.as_array().cloned().unwrap_or_default();
        if messages.iter().any(|known| known["messageId"] == message.message_id) {
            return Ok(found);
        }
        messages.push(wire::write_message(Version::V1_0, message));
        let messages = Value::Array(messages).to_string();
        let put = app.tasks.put_messages(&found.run.id, &found.task.messages, &messages).await;
        let is_put = put.map_err(|error| internal(&error))?;
        found = find(app, &caller.owner(), id).await?;
        if is_put {
            return Ok(found);
        }
    }
}

/// Decides the review that a task waits for, by the data of a message: `verdict`, `target`, `reason`, `inputs`, `reviewer`, `review`. A
/// text without a verdict is a comment for its reviewers, or guidance for the agents of a task that works (docs/a2a.md). Returns
/// the task.
async fn answer(app: &App, caller: &A2aCaller, id: &str, message: &Message) -> Result<StoredTask, A2aError> {
    let found = find(app, &caller.owner(), id).await?;
    if message.context_id.as_ref().is_some_and(|given| *given != found.task.context_id) {
        return Err(A2aError::wrong("message.contextId", "is not the context of the task"));
    }
    let refused =
        |message: String| A2aError::new(ErrorKind::UnsupportedOperation, message).with("taskId", id);
    let state = found.run.life.state;
    if state.is_final() {
        let state = state.as_str();
        return Err(refused(format!(
            "the task is {state} and takes no more messages: send a new one, with its id in referenceTaskIds"
        )));
    }
    let data = PipelineRequest::data_of(message)?;
    let filter = ReviewFilter {
        project: Some(found.run.workspace.to_string()),
        limit: 1000,
        ..ReviewFilter::default()
    };
    let reviews = app.core.reviews.list(&filter).await.map_err(|error| unavailable(&error))?;
    let named = data.get("review").and_then(Value::as_str);
    let chosen = |review: &&Review| named.map_or(review.is_pending(), |id| review.id.as_str() == id);
    let candidates: Vec<&Review> = reviews.iter().filter(chosen).collect();
    if let Some(text) = message.text().filter(|_| !data.contains_key("verdict"))
        && candidates.iter().any(|review| review.is_pending())
    {
        for review in candidates {
            let (id, actor) = (message.message_id.clone(), caller.0.label.clone());
            let comment = Comment { id, actor, via: Via::A2a, text: text.clone(), place: None };
            match app.core.reviews.apply(&review.id, Event::Comment(comment)).await {
                Ok(_) => {}
                Err(ReviewsError::Refused { refusal, .. }) => {
                    return Err(A2aError::wrong("message.parts", refusal.to_string()));
                }
                Err(error) => return Err(unavailable(&error)),
            }
        }
        return find(app, &caller.owner(), id).await;
    }
    let review = match candidates.as_slice() {
        [only] => *only,
        [] => match reviews.first().filter(|last| was_decided_by(last, caller, &data)) {
            // The response to the same message was lost.
            Some(_) => return Ok(found),
            None => return guide(app, caller, &found, message, &data).await,
        },
        several => {
            let ids: Vec<String> =
                several.iter().map(|review| format!("{} ({})", review.id, review.phase)).collect();
            return Err(A2aError::wrong(
                "data.review",
                format!("says which of the reviews it is: {}", ids.join(", ")),
            ));
        }
    };
    let choice = choice(&data)?;
    let reviewer = review.reviewer_for(data.get("reviewer").and_then(Value::as_str), &caller.0.label);
    let reviewer = reviewer.map_err(|refusal| A2aError::wrong("data.reviewer", refusal.to_string()))?;
    let reason = match data.get("reason") {
        Some(Value::String(reason)) => Some(reason.clone()),
        // Words of the message itself will do.
        _ => message.text(),
    };
    let inputs: Object = data.get("inputs").and_then(Value::as_object).cloned().unwrap_or_default();
    let answer = Answer { reviewer, actor: caller.0.label.clone(), via: Via::A2a, choice, reason, inputs };
    match app.core.reviews.apply(&review.id, Event::Answer(answer)).await {
        Ok(_) => find(app, &caller.owner(), id).await,
        Err(ReviewsError::Refused { review, .. }) if was_decided_by(&review, caller, &data) => Ok(found),
        Err(ReviewsError::Refused { refusal, .. }) => Err(match refusal {
            Refusal::Inputs(problems) => A2aError::wrong("data.inputs", problems.join("; ")),
            Refusal::Target { .. } => A2aError::wrong("data.target", refusal.to_string()),
            Refusal::NoWords | Refusal::TooLong => A2aError::wrong("data.reason", refusal.to_string()),
            _ => refused(refusal.to_string()),
        }),
        Err(error) => Err(unavailable(&error)),
    }
}

/// Sends the text of a message to the agents of a working task, as steering (docs/steering.md). `phase` in its data names one phase.
async fn guide(
    app: &App,
    caller: &A2aCaller,
    found: &StoredTask,
    message: &Message,
    data: &Object,
) -> Result<StoredTask, A2aError> {
    let id = found.run.id.as_str();
    if data.contains_key("verdict") {
        let reason = "no review of the task waits for a decision";
        return Err(A2aError::new(ErrorKind::UnsupportedOperation, reason).with("taskId", id));
    }
    let phase = data.get("phase").and_then(Value::as_str).map(PhaseName::parse).transpose();
    let phase = phase.map_err(|error| A2aError::wrong("data.phase", error.to_string()))?;
    let text = message.text().unwrap_or_default();
    let author = &caller.0.label;
    // An id of any other form gets one that stands for it.
    let stand_in =
        || uuid::Uuid::new_v5(&uuid::Uuid::NAMESPACE_OID, message.message_id.as_bytes()).to_string();
    let new = match NewSteering::new(message.message_id.clone(), author, &text, phase.clone()) {
        Err(SteeringError::Id) => NewSteering::new(stand_in(), author, &text, phase),
        new => new,
    };
    let new = new.map_err(|error| A2aError::wrong("message.parts", error.to_string()))?;
    match app.core.supervisor.steer(&found.run.id, new).await {
        Ok(_) => find(app, &caller.owner(), id).await,
        Err(SteeringRefusal::Refused(error)) => Err(match error {
            SteerError::NoSuchPhase { .. } | SteerError::NoAgent(_) => {
                A2aError::wrong("data.phase", error.to_string())
            }
            SteerError::Ended(_) | SteerError::TooMany | SteerError::Conflict(_) => {
                A2aError::new(ErrorKind::UnsupportedOperation, error.to_string()).with("taskId", id)
            }
            error => not_sent(&error),
        }),
        Err(SteeringRefusal::Store(error)) => Err(internal(&error)),
        Err(error) => Err(not_sent(&error)),
    }
}

fn not_sent(error: &dyn std::error::Error) -> A2aError {
    tracing::error!(%error, "a message cannot be passed to a run");
    A2aError::new(ErrorKind::Internal, "the message cannot be passed on at the moment; send it again later")
}

fn unavailable(error: &ReviewsError) -> A2aError {
    tracing::error!(%error, "the reviews cannot be used");
    A2aError::new(ErrorKind::Internal, "the reviews cannot be used at the moment; try again later")
}

/// The choice of a decision. The words of gates are taken too.
fn choice(data: &Object) -> Result<Choice, A2aError> {
    let wrong = || {
        A2aError::wrong(
            "data.verdict",
            "must be `approve`, `request-changes` or `reject`: the task waits for a review",
        )
    };
    let word = data.get("verdict").and_then(Value::as_str).ok_or_else(wrong)?;
    let (word, inline) = word.split_once(':').map_or((word, None), |(word, target)| (word, Some(target)));
    let target = data.get("target").or_else(|| data.get("to")).and_then(Value::as_str).or(inline);
    Ok(match word.to_ascii_lowercase().as_str() {
        "approve" | "pass" => Choice::Approve,
        "reject" | "escalate" => Choice::Reject,
        "request-changes" | "request_changes" | "route" => {
            let to = target.map(|target| PhaseName::parse(target.trim())).transpose();
            Choice::RequestChanges {
                to: to.map_err(|error| A2aError::wrong("data.target", error.to_string()))?,
            }
        }
        _ => return Err(wrong()),
    })
}

/// Whether the last answer of a review is this very one.
fn was_decided_by(review: &Review, caller: &A2aCaller, data: &Object) -> bool {
    let last = review.answers.last().map(|accepted| &accepted.answer);
    last.is_some_and(|last| {
        last.via == Via::A2a
            && last.actor == caller.0.label
            && choice(data).is_ok_and(|choice| choice.as_str() == last.choice.as_str())
    })
}
