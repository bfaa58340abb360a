//! Reader of checks.

use std::collections::BTreeSet;

use cliq_document::{Located, Node, Record};
use cliq_expr::{Expression, Kind};

use super::fields::{CHECK, FILE, JUDGE, LABEL};
use super::read::Reader;
use super::{CheckKind, CheckSpec, EndState, FileRule, JudgeSpec, Label};

/// Kinds of checks, each named by its field.
const KINDS: [&str; 5] = ["run", "file", "expr", "end", "judge"];
/// Names that an expression of a check may read.
const NAMES: [&str; 5] = ["handoff", "end", "cost", "tokens", "duration"];

pub(crate) fn read_checks(nodes: &[Node], reader: &mut Reader<'_>) -> Vec<CheckSpec> {
    let mut names = BTreeSet::new();
    let mut checks = Vec::new();
    for (node, number) in nodes.iter().zip(1..) {
        let Some(record) = Record::read(node, CHECK, "a check", &mut reader.problems) else { continue };
        let given: Vec<&str> = KINDS.into_iter().filter(|kind| record.has(kind)).collect();
        let &[word] = given.as_slice() else {
            let message = match given.len() {
                0 => "a check has one of `run`, `file`, `expr`, `end`, `judge`".to_owned(),
                _ => format!("a check is of one kind, and this one is of {}", given.len()),
            };
            let help = "write one entry per check";
            reader.error("check-kind", record.span, message, help);
            continue;
        };
        foreign_fields(&record, word, reader);
        let default = || if word == "end" { "end".to_owned() } else { format!("{word}-{number}") };
        let name = record.text("name").unwrap_or_else(|| Located { value: default(), span: record.span });
        reader.name("a check", &name, &mut names);
        if let Some(kind) = kind(&record, word, reader) {
            checks.push(CheckSpec { name: name.value, kind });
        }
    }
    checks
}

/// Reports fields that belong to another kind of check.
fn foreign_fields(record: &Record<'_>, word: &str, reader: &mut Reader<'_>) {
    for (field, owner) in [("timeout", "run"), ("exists", "file"), ("absent", "file"), ("matches", "file")] {
        if let (true, Some(span)) = (owner != word, record.key(field)) {
            let message = format!("`{field}` belongs to a check with `{owner}`");
            reader.error("wrong-field", span, message, "remove it");
        }
    }
}

fn kind(record: &Record<'_>, word: &str, reader: &mut Reader<'_>) -> Option<CheckKind> {
    match word {
        "run" => Some(CheckKind::Run {
            command: record.text("run")?.value,
            timeout_s: record.duration("timeout").map_or(600, |limit| limit.as_secs()),
        }),
        "file" => file(record, reader),
        "expr" => expression(&record.text("expr")?, reader).map(CheckKind::Expr),
        "end" => Some(CheckKind::End(match record.text("end")?.value.as_str() {
            "escalated" => EndState::Escalated,
            _ => EndState::Completed,
        })),
        _ => judge(record, reader).map(CheckKind::Judge),
    }
}

fn file(check: &Record<'_>, reader: &mut Reader<'_>) -> Option<CheckKind> {
    let node = check.node("file")?;
    // The rule stands beside the path, in the check or in a mapping of its own.
    let mapping = match node.kind {
        cliq_document::Kind::Map(_) => Some(Record::read(node, FILE, "a file", &mut reader.problems)?),
        _ => None,
    };
    let (record, path) = match &mapping {
        Some(record) => (record, record.text("path")?),
        None => (check, check.text("file")?),
    };
    let parts = || path.value.split('/');
    if path.value.starts_with('/') || path.value.is_empty() || parts().any(|part| part == "..") {
        let message = format!("{:?} is not a path in the workspace", path.value);
        reader.error("invalid-path", path.span, message, "write a relative path without `..`");
        return None;
    }
    let pattern = record.text("matches");
    if let Some(empty) = pattern.as_ref().filter(|pattern| pattern.value.is_empty()) {
        let message = "every text matches an empty pattern".to_owned();
        reader.error("invalid-pattern", empty.span, message, "write a pattern, or `exists: true`");
    }
    if let Some(pattern) = &pattern
        && let Err(error) = reader.check_pattern(&pattern.value)
    {
        let message = format!("`matches` is not a regular expression: {error}");
        reader.error("invalid-pattern", pattern.span, message, "see the syntax of the Rust crate `regex`");
        return None;
    }
    // `exists: false` is `absent: true`.
    let is_absent = record.bool("absent") == Some(true) || record.bool("exists") == Some(false);
    if let (true, Some(pattern)) = (is_absent, &pattern) {
        let message = "a file cannot be absent and match".to_owned();
        reader.error("both-given", pattern.span, message, "remove one of the two");
    }
    let rule = match pattern {
        Some(pattern) => FileRule::Matches(pattern.value),
        None if is_absent => FileRule::Absent,
        None => FileRule::Exists,
    };
    Some(CheckKind::File { path: path.value, rule })
}

fn expression(source: &Located<String>, reader: &mut Reader<'_>) -> Option<String> {
    let expression = match Expression::parse(&source.value) {
        Ok(expression) => expression,
        Err(error) => {
            let message = format!("not an expression: {error}");
            reader.error(
                "invalid-expression",
                source.span,
                message,
                "expressions are in CEL: docs/expressions.md in the repository of cliq",
            );
            return None;
        }
    };
    if !matches!(expression.kind(), Kind::Bool | Kind::Unknown) {
        let message = "a check is true or false, and this expression is neither".to_owned();
        reader.error("invalid-expression", source.span, message, "compare the value, such as `… > 0`");
    }
    for reference in expression.references() {
        if !NAMES.contains(&reference.root.as_str()) {
            let message = format!("there is no name `{}` here", reference.root);
            let help = cliq_document::did_you_mean(&reference.root, &NAMES);
            reader.error("unknown-name", source.span, message, help);
        }
    }
    Some(source.value.clone())
}

fn judge(record: &Record<'_>, reader: &mut Reader<'_>) -> Option<JudgeSpec> {
    let record = Record::read(record.node("judge")?, JUDGE, "a judge", &mut reader.problems)?;
    let rubric = reader.text_or_file(&record, "a judge", "rubric");
    let labels = record.node("labels").map(|node| labels(node, reader)).unwrap_or_default();
    let agent = record.text("agent").map(|agent| {
        reader.agent(&agent);
        agent.value
    });
    let model = record.text("model");
    if let (None, Some(model)) = (&agent, &model) {
        let message = "a judge with `model` needs `agent`".to_owned();
        reader.error("missing-field", model.span, message, "add `agent:`, the agent that uses the model");
    }
    Some(JudgeSpec { agent, model: model.map(|text| text.value), rubric: rubric?, labels })
}

fn labels(node: &Node, reader: &mut Reader<'_>) -> Vec<Label> {
    if let cliq_document::Kind::List(items) = &node.kind {
        let read = |item: &Node| {
            let record = Record::read(item, LABEL, "a label", &mut reader.problems)?;
            Some(Label {
                case: record.text("case")?.value,
                variant: record.text("variant").map(|text| text.value),
                repeat: record.integer("repeat").and_then(|n| u32::try_from(n).ok()),
                pass: record.bool("pass")?,
            })
        };
        return items.iter().filter_map(read).collect();
    }
    let Some(path) = node.scalar().map(|value| Located { value, span: node.span }) else {
        let message = "`labels` is a list, or the name of a file".to_owned();
        reader.error("wrong-type", node.span, message, "write `labels: labels.jsonl`");
        return Vec::new();
    };
    let Some(text) = reader.file(&path) else { return Vec::new() };
    let mut labels = Vec::new();
    for (line, number) in text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty()) {
        match serde_json::from_str(line) {
            Ok(label) => labels.push(label),
            Err(error) => {
                let message = format!("{}:{number}: not a label: {error}", path.value);
                let help = "write a line such as {\"case\": \"polite\", \"pass\": true}";
                reader.error("invalid-label", path.span, message, help);
            }
        }
    }
    labels
}
