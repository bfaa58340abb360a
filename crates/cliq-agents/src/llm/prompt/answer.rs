//! Instructions for the form of an answer: text, a tool, or a JSON object.

use std::fmt::Write;

use cliq_sdk::PhaseName;
use serde_json::Value;

/// Form in which a model gives a verdict, or data with a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerForm {
    /// Text that ends with it.
    Text,
    /// Call of a tool, or text if the model cannot call it.
    Tool,
    /// JSON object, which the server enforces if it can.
    Object,
}

/// Returns the prompt after a reply without a usable verdict.
pub(crate) fn again(why: &str, targets: &[PhaseName]) -> String {
    format!("Your answer has no usable verdict: {why}. {}", verdict_instructions(targets))
}

/// Returns the instructions for the answer of a standard phase.
pub(super) fn answer_instructions(form: AnswerForm, schema: Option<&Value>) -> String {
    let free = "\n\nAnswer in Markdown: what you did or found, for those who work after you. If there are facts that programs are to \
         use, end with one fenced block of JSON that holds an object:\n\n```json\n{\"key\": \"value\"}\n```\n";
    let Some(schema) = schema else { return free.to_owned() };
    let schema = format!("```json\n{schema:#}\n```");
    let as_text = format!(
        "nswer in Markdown: what you did or found, for those who work after you. End with one fenced block of JSON, an object that \
         matches this schema:\n\n{schema}\n"
    );
    match form {
        AnswerForm::Text => format!("\n\nA{as_text}"),
        AnswerForm::Tool => {
            format!("\n\nHand over your result with the tool `hand_over`. If you cannot call it, a{as_text}")
        }
        AnswerForm::Object => format!(
            "\n\nAnswer with a JSON object and nothing else: `text` is Markdown, what you did or found, for those who work after you; \
             `data` is an object that matches this schema:\n\n{schema}\n"
        ),
    }
}

/// Returns the prompt after an answer whose data violates the schema.
pub(crate) fn again_with_data(why: &str, schema: Option<&Value>) -> String {
    format!(
        "Your answer cannot be handed over: {why}. Give it again, complete.{}",
        answer_instructions(AnswerForm::Text, schema)
    )
}

/// Returns the instructions for a verdict that is a JSON object.
pub(super) fn verdict_object(targets: &[PhaseName]) -> String {
    let mut text = "Answer with a JSON object and nothing else. `findings`: what you found, so that the phase that mends it knows what to do. \
        `outcome`: PASS if the work is good, "
        .to_owned();
    if !targets.is_empty() {
        text.push_str("ROUTE if it has to be mended, ");
    }
    text.push_str("ESCALATE if a person has to decide. `reason`: why, in a sentence.");
    if !targets.is_empty() {
        text.push_str(" `target`: one of the route targets if the outcome is ROUTE, otherwise null.");
    }
    text.push('\n');
    text
}

/// Returns the instructions for a verdict at the end of a text.
pub(super) fn verdict_instructions(targets: &[PhaseName]) -> String {
    let mut text =
        "Say first what you found, so that the phase that fixes it knows what to do. End your answer with your verdict, on a line of its own and exactly in one of these forms:\n\n\
        PASS: why the work is good\n"
            .to_owned();
    if let Some(first) = targets.first() {
        let _ = writeln!(text, "ROUTE to {first}: what has to be mended (or another of the route targets)");
    }
    text.push_str("ESCALATE: why a person has to decide\n");
    text
}
