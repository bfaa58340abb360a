//! The decision: a form, and what was filled in.

use std::collections::BTreeMap;

use cliq_protocol::{FormField, FormFieldType, Object, PhaseName, ReviewSubject};
use cliq_review::{Answer, Choice, Review, Via};
use maud::{Markup, html};

use cliq_web::Form;
use cliq_web::Problem;

/// Prefix of the names of the review's form fields.
const INPUT: &str = "input.";

/// Name of the field with the page to which a form leads back.
pub(super) const BACK: &str = "back";

/// Person who decides.
pub(super) enum Answering<'a> {
    /// The reviewer whose link it is.
    As(&'a str),
    /// A person who signed in by a provider, in their own name.
    Own(String),
    /// A person who is signed in, in a reviewer's name.
    For(&'a str),
    /// A person who may only look.
    ReadOnly,
}

/// The answer that was filled in.
pub(super) fn answer_of(form: &Form, reviewer: String, actor: String, via: Via) -> Result<Answer, Problem> {
    let wrong = |what: &str| Problem::unprocessable(what, Vec::new());
    let choice = match form.get("verdict") {
        Some("approve") => Choice::Approve,
        Some("reject") => Choice::Reject,
        Some("request-changes") => {
            let to = form.get("to").map(PhaseName::parse).transpose();
            Choice::RequestChanges { to: to.map_err(|_| wrong("choose one of the phases"))? }
        }
        _ => return Err(wrong("choose: approve, request changes, or reject")),
    };
    let fields = form.0.iter().filter_map(|(key, value)| Some((key.strip_prefix(INPUT)?, value)));
    let inputs: Object = fields.map(|(name, value)| (name.to_owned(), value.as_str().into())).collect();
    // Browsers send line breaks as two characters.
    let reason = form.get("reason").map(|words| words.replace("\r\n", "\n"));
    Ok(Answer { reviewer, actor, via, choice, reason, inputs })
}

/// The form; with all controls disabled where nothing can be decided any more.
pub(super) fn form(
    review: &Review,
    path: &str,
    answering: &Answering<'_>,
    given: &BTreeMap<String, String>,
) -> Markup {
    let value = |name: &str| given.get(name).map(String::as_str).unwrap_or_default();
    let answered = match answering {
        Answering::As(name) => review.answers.iter().any(|a| a.answer.reviewer == *name),
        Answering::Own(name) => review.answers.iter().any(|a| a.answer.reviewer == *name),
        Answering::For(_) | Answering::ReadOnly => false,
    };
    let (approve, reject) = review.subject.as_ref().map_or(("Approve", "Reject"), ReviewSubject::choices);
    let disabled = !review.is_pending() || answered || matches!(answering, Answering::ReadOnly);
    let on_lines = review.on_lines().count();
    html! {
        section #decision.card aria-labelledby="decision-title" {
            h2 #decision-title { "Decision" }
            @if !review.is_pending() {
                // Nothing to fill in: a form would show other values than those that count.
                fieldset.stack disabled { legend.hidden { "Your answer" } p { "There is nothing to decide any more. The answers that count are above." } }
            } @else {
            form.stack method="post" action=(path) {
                @if let Some(back) = given.get(BACK) { input type="hidden" name=(BACK) value=(back); }
                (who(review, answering, answered, value("reviewer"), disabled))
                fieldset.stack disabled[disabled] {
                    legend.hidden { "Your answer" }
                    @for field in review.form.fields() { (input(field, value(&format!("{INPUT}{}", field.name)))) }
                    label for="reason" { "What you want to say" }
                    p.hint #reason-about {
                        @if review.subject.is_some() { "The agent gets these words." }
                        @else if on_lines > 0 { "The phase gets these words, and with a request for changes the comments on lines." }
                        @else { "Needed for a request for changes, unless there are comments on lines: the phase gets these words." }
                    }
                    textarea #reason name="reason" rows="5" maxlength="60000" aria-describedby="reason-about" { (value("reason")) }
                    @if !review.route_targets.is_empty() {
                        label for="to" { "Who makes the changes" }
                        select #to name="to" {
                            @for target in &review.route_targets { option selected[value("to") == target.as_str()] { (target) } }
                        }
                    }
                    div.actions {
                        button.primary type="submit" name="verdict" value="approve" { (approve) }
                        @if !review.route_targets.is_empty() {
                            button type="submit" name="verdict" value="request-changes" formnovalidate {
                                "Request changes"
                                @if on_lines > 0 { " with " (on_lines) @if on_lines == 1 { " comment" } @else { " comments" } }
                            }
                        }
                        button.danger type="submit" name="verdict" value="reject" formnovalidate { (reject) }
                    }
                    p.hint { (consequences(review)) }
                }
            }
            }
        }
    }
}

/// Returns the consequences of the choices.
fn consequences(review: &Review) -> &'static str {
    match &review.subject {
        None => {
            "Approve: the run goes on. Request changes: the phase you choose works again, and you are asked again. Reject: the run stops."
        }
        Some(ReviewSubject::Permission { .. }) => {
            "Allow once: the agent does it, and asks again the next time. Refuse: the agent goes on without it."
        }
        Some(ReviewSubject::Question { .. }) => {
            "Answer: the agent gets the values. Decline: the agent goes on without an answer."
        }
    }
}

fn who(review: &Review, answering: &Answering<'_>, answered: bool, given: &str, disabled: bool) -> Markup {
    let names = review.waits_for();
    html! {
        @match answering {
            Answering::ReadOnly => p { "You may look at this review. Its reviewers decide it, or a token with the scope " code { "run" } "." },
            Answering::Own(name) if answered && review.is_pending() => p { strong { (name) } " has answered. The review waits for others." },
            Answering::Own(name) => p { "You answer as " strong { (name) } "." },
            Answering::As(name) if answered && review.is_pending() => p { strong { (name) } " has answered. The review waits for others." },
            Answering::As(name) => p { "You answer as " strong { (name) } "." },
            Answering::For(_) if !review.is_pending() => {}
            Answering::For(actor) => {
                @if names.len() > 1 {
                    label for="reviewer" { "Answer in the name of" }
                    select #reviewer name="reviewer" disabled[disabled] {
                        @for name in &names { option selected[*name == given] { (name) } }
                    }
                } @else {
                    p { "You answer in the name of " strong { (names.join("")) } ", signed in as " (actor) "." }
                }
            }
        }
    }
}

fn input(field: &FormField, given: &str) -> Markup {
    let name = format!("{INPUT}{}", field.name);
    let about = field.help.as_ref().map(|_| format!("{name}-about"));
    let default =
        field.default.as_ref().map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    let value = if given.is_empty() { default.unwrap_or_default() } else { given.to_owned() };
    let label = html! { (field.label) @if field.required { " (required)" } };
    let help = html! { @if let Some(help) = &field.help { p.hint id=[about.as_deref()] { (help) } } };
    html! {
        @match &field.kind {
            FormFieldType::Boolean => {
                fieldset.choices aria-describedby=[about.as_deref()] {
                    legend { (label) }
                    (help)
                    @for (word, text) in [("true", "Yes"), ("false", "No")] {
                        label { input type="radio" name=(name) value=(word) required[field.required] checked[value == word]; " " (text) }
                    }
                }
            }
            FormFieldType::Select(choices) => {
                label for=(name) { (label) }
                (help)
                select id=(name) name=(name) required[field.required] aria-describedby=[about.as_deref()] {
                    @if field.default.is_none() { option value="" { "Choose" } }
                    @for choice in choices { option value=(choice) selected[*choice == value] { (choice) } }
                }
            }
            FormFieldType::Textarea => {
                label for=(name) { (label) }
                (help)
                textarea id=(name) name=(name) rows="4" required[field.required] aria-describedby=[about.as_deref()] { (value) }
            }
            FormFieldType::Text | FormFieldType::Number => {
                @let mode = (field.kind == FormFieldType::Number).then_some("decimal");
                label for=(name) { (label) }
                (help)
                input id=(name) name=(name) value=(value) inputmode=[mode] required[field.required] aria-describedby=[about.as_deref()];
            }
        }
    }
}
