//! The form that answers a review.

use cliq_protocol::{FormFieldType, Object};
use cliq_review::Choice;
use serde_json::Value;

use crate::form::{Field, FormState};
use crate::model::{ReviewDetail, RunKey};
use crate::source::Action;

/// Answers in the order of their display.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerKind {
    Approve,
    RequestChanges,
    Reject,
}

/// Option for an answer in the name of the user of this machine.
const OWN_NAME: &str = "me";

/// Returns the possible answers with their words.
pub(crate) fn kinds(detail: &ReviewDetail) -> Vec<(AnswerKind, &'static str)> {
    let review = &detail.review;
    if review.subject.is_some() {
        let is_question = !review.form.is_empty();
        let (yes, no) = if is_question { ("answer", "decline") } else { ("allow", "refuse") };
        return vec![(AnswerKind::Approve, yes), (AnswerKind::Reject, no)];
    }
    let mut kinds = vec![(AnswerKind::Approve, "approve")];
    if !review.route_targets.is_empty() {
        kinds.push((AnswerKind::RequestChanges, "request changes"));
    }
    kinds.push((AnswerKind::Reject, "reject"));
    kinds
}

/// Fields for an answer. Those of the review's form are there for an approval, the phase for a request for changes.
pub(crate) fn fields(detail: &ReviewDetail, chosen: usize) -> Vec<Field> {
    let kinds = kinds(detail);
    let names = kinds.iter().map(|(_, name)| (*name).to_owned()).collect();
    let mut fields = vec![Field::choice("answer", "answer", names, chosen)];
    let kind = kinds.get(chosen).map_or(AnswerKind::Approve, |(kind, _)| *kind);
    let review = &detail.review;
    if kind == AnswerKind::RequestChanges && review.route_targets.len() > 1 {
        let targets = review.route_targets.iter().map(ToString::to_string).collect();
        fields.push(Field::choice("to", "work again", targets, 0));
    }
    if kind == AnswerKind::Approve {
        for field in review.form.fields() {
            let id = format!("input:{}", field.name);
            let default = field.default.as_ref();
            let text = match default {
                Some(Value::String(text)) => text.clone(),
                Some(other) => other.to_string(),
                None => String::new(),
            };
            let made = match &field.kind {
                FormFieldType::Text | FormFieldType::Number => Field::line(&id, &field.label, &text),
                FormFieldType::Textarea => Field::lines(&id, &field.label, &text),
                FormFieldType::Boolean => {
                    Field::switch(&id, &field.label, default.and_then(Value::as_bool).unwrap_or(false))
                }
                FormFieldType::Select(options) => {
                    let at = options.iter().position(|option| *option == text).unwrap_or(0);
                    Field::choice(&id, &field.label, options.clone(), at)
                }
            };
            fields.push(made.required(field.required).helped(field.help.as_deref()));
        }
    }
    let reviewers = review.waits_for();
    if reviewers.len() > 1 {
        let names = std::iter::once(OWN_NAME).chain(reviewers).map(str::to_owned).collect();
        fields.push(Field::choice("reviewer", "in the name of", names, 0));
    }
    let is_needed = kind == AnswerKind::RequestChanges && review.on_lines().next().is_none();
    fields.push(Field::lines("message", "message", "").required(is_needed));
    fields
}

/// Returns the answer of a form.
///
/// # Errors
/// Returns the problems of the fields.
pub(crate) fn action(form: &FormState, detail: &ReviewDetail, run: &RunKey) -> Result<Action, Vec<String>> {
    let review = &detail.review;
    let kinds = kinds(detail);
    let kind =
        form.chosen("answer").and_then(|at| kinds.get(at)).map_or(AnswerKind::Approve, |(kind, _)| *kind);
    let text = form.text("message").trim().to_owned();
    let message = Some(text).filter(|text| !text.is_empty());
    let mut inputs = Object::new();
    let choice = match kind {
        AnswerKind::Approve => {
            let mut problems = Vec::new();
            for field in review.form.fields() {
                let id = format!("input:{}", field.name);
                let text = form.text(&id);
                let value = match field.kind {
                    FormFieldType::Boolean => Value::Bool(text == "true"),
                    _ if text.trim().is_empty() => {
                        if field.required {
                            problems.push(format!("{} is required", field.label));
                        }
                        continue;
                    }
                    _ => Value::String(text),
                };
                inputs.insert(field.name.clone(), value);
            }
            if problems.is_empty()
                && let Err(found) = review.form.check(&inputs, false)
            {
                problems = found;
            }
            if !problems.is_empty() {
                return Err(problems);
            }
            Choice::Approve
        }
        AnswerKind::RequestChanges => {
            if message.is_none() && review.on_lines().next().is_none() {
                return Err(vec!["a request for changes has a message or comments on lines".to_owned()]);
            }
            let at = form.chosen("to").unwrap_or(0);
            Choice::RequestChanges { to: review.route_targets.get(at).cloned() }
        }
        AnswerKind::Reject => Choice::Reject,
    };
    let reviewer = form.chosen("reviewer").filter(|at| *at > 0).map(|_| form.text("reviewer"));
    Ok(Action::Answer { run: run.clone(), review: review.id.clone(), choice, message, inputs, reviewer })
}
