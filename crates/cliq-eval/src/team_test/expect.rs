//! Reader of expectations. Those that the team cannot meet, and those that contradict each other, are errors.

use std::collections::BTreeMap;

use cliq_document::{Entry, Located, Node, Record, Span};
use cliq_workflow::ValidatedWorkflow;

use super::fields::{EXPECT, PROMPT};
use super::read::{command_ends, find_phase, has_no_script, listed, mapping};
use super::replies::check_verdict;
use super::{CommandEnd, Expectations, PromptExpectation};
use crate::suite::read::Reader;

pub(super) fn read_expectations(
    node: Option<&Node>,
    workflow: &ValidatedWorkflow,
    reader: &mut Reader<'_>,
) -> Expectations {
    let default = || Expectations { end: "completed".to_owned(), ..Expectations::default() };
    let Some(node) = node else { return default() };
    let Some(record) = Record::read(node, EXPECT, "`expect`", &mut reader.problems) else { return default() };
    let mut places = Places::default();
    let mut expect = Expectations {
        end: record.text("end").map_or_else(|| default().end, |end| end.value),
        reasons: record.texts("reason").into_iter().map(|text| text.value).collect(),
        ..Expectations::default()
    };
    if let (Some(span), "completed") = (record.key("reason"), expect.end.as_str()) {
        let message = "a run that completes has no reason".to_owned();
        reader.error("contradiction", span, message, "set `end:`, or remove `reason:`");
    }
    for name in record.texts("order") {
        if find_phase(&name, workflow, reader).is_some() {
            places.add(&name.value, name.span);
            expect.order.push(name.value);
        }
    }
    if let Some(node) = record.node("runs") {
        runs(node, workflow, &mut expect, reader);
    }
    if let Some(node) = record.node("verdicts") {
        verdicts(node, workflow, &mut expect, &mut places, reader);
    }
    for node in record.list("prompts") {
        expect.prompts.extend(prompt(node, workflow, &mut places, reader));
    }
    if let Some(node) = record.node("commands") {
        for ((phase, command), ends) in command_ends(node, &CommandEnd::WORDS, workflow, reader) {
            if let Some(first) = ends.first() {
                places.add(&phase, first.span);
            }
            expect.commands.insert((phase, command), ends.into_iter().map(|end| end.value).collect());
        }
    }
    for field in ["order", "runs", "verdicts", "prompts", "commands", "reason"] {
        let is_empty = record.node(field).is_some_and(|node| match &node.kind {
            cliq_document::Kind::List(items) => items.is_empty(),
            cliq_document::Kind::Map(entries) => entries.is_empty(),
            _ => false,
        });
        if let (true, Some(span)) = (is_empty, record.key(field)) {
            let message = format!("`{field}` is empty and expects nothing");
            reader.error("empty-list", span, message, "remove it, or write what is expected");
        }
    }
    check_counts(&expect, &places, reader);
    expect
}

/// Places of expectations about phases, by phase.
#[derive(Default)]
struct Places(BTreeMap<String, Vec<Span>>);

impl Places {
    fn add(&mut self, phase: &str, span: Span) {
        self.0.entry(phase.to_owned()).or_default().push(span);
    }
}

/// Reports expectations about a phase that contradict the number of its starts.
fn check_counts(expect: &Expectations, places: &Places, reader: &mut Reader<'_>) {
    for (phase, runs) in &expect.runs {
        let spans = places.0.get(phase).map_or(&[][..], Vec::as_slice);
        let starts = expect.order.iter().filter(|name| *name == phase).count();
        let verdicts = expect.verdicts.get(phase).map_or(0, Vec::len);
        let Some(span) = spans.last() else { continue };
        let message = if *runs == 0 {
            format!("`runs` excludes phase `{phase}`, and this expects something of it")
        } else if starts > *runs as usize {
            format!("`runs` has {runs} for phase `{phase}`, and `order` has it {starts} times")
        } else if verdicts > 0 && verdicts < *runs as usize {
            format!("gate `{phase}` gives {verdicts} verdicts, and `runs` has {runs}")
        } else {
            continue;
        };
        reader.error("contradiction", *span, message, "change one of the two");
    }
}

fn located(entry: &Entry) -> Located<String> {
    Located { value: entry.key.clone(), span: entry.span }
}

fn runs(node: &Node, workflow: &ValidatedWorkflow, expect: &mut Expectations, reader: &mut Reader<'_>) {
    for entry in mapping(node, "runs", "write `PHASE: NUMBER`", reader).unwrap_or_default() {
        let name = located(entry);
        if find_phase(&name, workflow, reader).is_none() {
            continue;
        }
        match entry.value.scalar().and_then(|number| number.parse::<u32>().ok()) {
            Some(number) => drop(expect.runs.insert(name.value, number)),
            None => {
                let message = format!(
                    "`runs.{}` is a whole number from 0 on, here is {}",
                    name.value,
                    entry.value.describe()
                );
                reader.error("wrong-type", entry.value.span, message, "write the number of starts");
            }
        }
    }
}

fn verdicts(
    node: &Node,
    workflow: &ValidatedWorkflow,
    expect: &mut Expectations,
    places: &mut Places,
    reader: &mut Reader<'_>,
) {
    for entry in mapping(node, "verdicts", "write `GATE: [pass]`", reader).unwrap_or_default() {
        let name = located(entry);
        let Some(phase) = find_phase(&name, workflow, reader) else { continue };
        if !phase.kind.is_gate() {
            let message = format!("phase `{}` is not a gate and gives no verdict", phase.name);
            reader.error("not-a-gate", name.span, message, "remove it");
            continue;
        }
        let mut words = Vec::new();
        for node in listed(&entry.value) {
            let verdict = Located { value: node.scalar().unwrap_or_default(), span: node.span };
            check_verdict(&verdict, phase, workflow, reader);
            words.push(verdict.value);
        }
        if words.is_empty() {
            let message = format!("`verdicts.{}` is empty", name.value);
            let help = format!("for a gate that does not run write `runs: {{{}: 0}}`", name.value);
            reader.error("empty-list", name.span, message, help);
        }
        places.add(&name.value, name.span);
        expect.verdicts.insert(name.value, words);
    }
}

fn prompt(
    node: &Node,
    workflow: &ValidatedWorkflow,
    places: &mut Places,
    reader: &mut Reader<'_>,
) -> Option<PromptExpectation> {
    let record = Record::read(node, PROMPT, "a prompt", &mut reader.problems)?;
    let name = record.text("phase")?;
    let phase = find_phase(&name, workflow, reader)?;
    if let Some(why) = has_no_script(phase, workflow) {
        let message = format!("phase `{}` {why}: nothing is asked", phase.name);
        reader.error("no-agent", name.span, message, "remove it");
    }
    if let (Some(span), None) = (record.key("item"), &phase.for_each) {
        let message = format!("phase `{}` works on no list", phase.name);
        reader.error("wrong-field", span, message, "remove `item`");
    }
    let texts =
        |name: &str| -> Vec<String> { record.texts(name).into_iter().map(|text| text.value).collect() };
    let (contains, lacks) = (texts("contains"), texts("lacks"));
    if let Some(both) = contains.iter().find(|text| lacks.contains(text)) {
        let message = format!("the prompt cannot both contain and lack {both:?}");
        reader.error("contradiction", record.span, message, "remove one of the two");
    }
    for text in record.texts("contains").iter().chain(&record.texts("lacks")) {
        if text.value.is_empty() {
            let message = "every prompt contains an empty text".to_owned();
            reader.error("empty-text", text.span, message, "write a text, or remove it");
        }
    }
    if contains.is_empty() && lacks.is_empty() {
        let message = "a prompt needs `contains` or `lacks`".to_owned();
        reader.error("missing-field", record.span, message, "add `contains: TEXT`");
    }
    places.add(&name.value, name.span);
    let number = |name: &str| record.integer(name).and_then(|number| u32::try_from(number).ok());
    Some(PromptExpectation {
        phase: name.value,
        activation: number("activation"),
        item: number("item"),
        contains,
        lacks,
    })
}
