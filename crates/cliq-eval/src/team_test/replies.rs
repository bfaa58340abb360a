//! Reader of replies, checked against the phases of the team.

use std::collections::BTreeMap;

use cliq_document::{Located, Node, Record, did_you_mean};
use cliq_project::{ScriptedOutcome, ScriptedReply};
use cliq_protocol::PhaseKind;
use cliq_workflow::{Phase, ValidatedWorkflow};

use super::fields::REPLY;
use super::read::{check_path, find_phase, has_no_script, listed, mapping};
use crate::suite::read::{Reader, texts};

pub(super) fn read_replies(
    node: &Node,
    workflow: &ValidatedWorkflow,
    reader: &mut Reader<'_>,
) -> BTreeMap<String, Vec<ScriptedReply>> {
    let mut replies = BTreeMap::new();
    for entry in mapping(node, "replies", "write `PHASE: [{text: …}]`", reader).unwrap_or_default() {
        let name = Located { value: entry.key.clone(), span: entry.span };
        let Some(phase) = find_phase(&name, workflow, reader) else { continue };
        if let Some(why) = has_no_script(phase, workflow) {
            let message = format!("phase `{}` {why}: it has no replies", phase.name);
            reader.error("no-agent", name.span, message, "remove it, or set results under `commands:`");
            continue;
        }
        let of_phase = listed(&entry.value).iter();
        let of_phase: Vec<_> = of_phase.filter_map(|node| reply(node, phase, workflow, reader)).collect();
        replies.insert(name.value, of_phase);
    }
    replies
}

/// Names of the phases that a gate may send work back to.
pub(super) fn targets<'w>(phase: &Phase, workflow: &'w ValidatedWorkflow) -> Vec<&'w str> {
    phase.route_targets.iter().map(|target| workflow.phase(*target).name.as_str()).collect()
}

/// Reports a verdict that a gate cannot give.
pub(super) fn check_verdict(
    verdict: &Located<String>,
    phase: &Phase,
    workflow: &ValidatedWorkflow,
    reader: &mut Reader<'_>,
) {
    let targets = targets(phase, workflow);
    let word = verdict.value.as_str();
    if !matches!(word, "pass" | "escalate") && !targets.contains(&word) {
        let known: Vec<&str> = ["pass", "escalate"].into_iter().chain(targets).collect();
        let message = format!("gate `{}` cannot give the verdict {word:?}", phase.name);
        reader.error("invalid-verdict", verdict.span, message, did_you_mean(word, &known));
    }
}

fn reply(
    node: &Node,
    phase: &Phase,
    workflow: &ValidatedWorkflow,
    reader: &mut Reader<'_>,
) -> Option<ScriptedReply> {
    let record = Record::read(node, REPLY, "a reply", &mut reader.problems)?;
    let is_gate = phase.kind.is_gate();
    let gate_fields: &[&str] = if is_gate { &["text"] } else { &["verdict", "reason"] };
    for field in gate_fields {
        if let Some(span) = record.key(field) {
            let (what, help) = match is_gate {
                true => ("a gate hands over a verdict and no text", "write `reason:`"),
                false => ("only a gate gives a verdict", "write `text:` or `data:`"),
            };
            let message = format!("phase `{}` cannot have `{field}`: {what}", phase.name);
            reader.error("wrong-field", span, message, help);
        }
    }
    if record.has("error")
        && let Some((field, span)) =
            record.names().find(|(name, _)| !matches!(*name, "error" | "item" | "files" | "remove"))
    {
        let message = format!("a reply with `error` hands over nothing, and this one has `{field}`");
        reader.error("wrong-field", span, message, "remove one of the two");
    }
    if let (Some(span), None) = (record.key("item"), &phase.for_each) {
        let message = format!("phase `{}` works on no list", phase.name);
        reader.error("wrong-field", span, message, "remove `item`");
    }
    let verdict = record.text("verdict");
    if let Some(verdict) = verdict.as_ref().filter(|_| is_gate) {
        check_verdict(verdict, phase, workflow, reader);
    }
    let data = record.node("data").and_then(|node| match node.to_json() {
        serde_json::Value::Object(data) => Some(data),
        _ => {
            let message = format!("`data` is a mapping, here is {}", node.describe());
            reader.error("wrong-type", node.span, message, "write `key: value` lines");
            None
        }
    });
    if let (Some(data), Some(schema), Some(span)) = (&data, &phase.outputs, record.key("data"))
        && let Some(why) = cliq_project::internals::schema_violation(schema, data)
    {
        let message = format!("phase `{}` cannot hand this over: {why}", phase.name);
        reader.error("invalid-data", span, message, "see `outputs` of the phase in team.yml");
    }
    let mut files: BTreeMap<String, Option<String>> = BTreeMap::new();
    let written = texts(&record, "files").into_iter().map(|(path, text)| (path, Some(text)));
    for (path, text) in written.chain(record.texts("remove").into_iter().map(|path| (path, None))) {
        check_path(&path, reader);
        if files.insert(path.value.clone(), text).is_some() {
            let message = format!("{} is both written and removed", path.value);
            reader.error("both-given", path.span, message, "remove one of the two");
        }
    }
    if phase.kind == PhaseKind::HumanGate && !files.is_empty() {
        let span = record.key("files").or_else(|| record.key("remove")).unwrap_or(record.span);
        let message = format!("people at `{}` write no files", phase.name);
        reader.error("wrong-field", span, message, "remove it");
    }
    Some(ScriptedReply {
        item: record.integer("item").and_then(|item| u32::try_from(item).ok()),
        text: record.text("text").map(|text| text.value),
        data,
        files,
        verdict: verdict.map(|word| match word.value.as_str() {
            "pass" => ScriptedOutcome::Pass,
            "escalate" => ScriptedOutcome::Escalate,
            target => ScriptedOutcome::Route(target.to_owned()),
        }),
        reason: record.text("reason").map(|text| text.value),
        error: record.text("error").map(|text| text.value),
    })
}
