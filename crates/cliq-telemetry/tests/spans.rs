//! Spans of a run.

use std::fmt::Write;

use cliq_protocol::PhaseName;
use cliq_telemetry::{Batch, Mask, SpanOptions, TraceBuilder, Value};
use proptest::prelude::*;

use super::sample::{build, records, transcript};

fn shown(batch: &Batch) -> String {
    let mut out = String::new();
    for span in &batch.spans {
        let parent = batch.spans.iter().find(|other| Some(other.id) == span.parent);
        let _ = write!(
            out,
            "{} < {} [{:?}, {} ms]",
            span.name,
            parent.map_or("-", |parent| parent.name.as_str()),
            span.kind,
            span.end.since(span.start).as_millis()
        );
        for link in &span.links {
            let to = batch.spans.iter().find(|other| other.id == *link);
            let _ = write!(out, " -> {}", to.map_or("?", |to| to.name.as_str()));
        }
        out.push('\n');
        for (name, value) in &span.attributes {
            let value = match value {
                Value::Text(text) => text.clone(),
                Value::Int(number) => number.to_string(),
                Value::Double(number) => number.to_string(),
                Value::Bool(is) => is.to_string(),
                Value::Texts(texts) => format!("{texts:?}"),
            };
            if !matches!(*name, "gen_ai.conversation.id" | "cliq.run.id") {
                let _ = writeln!(out, "  {name}: {value}");
            }
        }
        if let Some(error) = &span.error {
            let _ = writeln!(out, "  ! {error}");
        }
    }
    for line in &batch.logs {
        let _ = writeln!(out, "{:?} {} {}", line.severity, line.event, line.text);
    }
    out
}

#[test]
fn spans_of_a_run() {
    insta::assert_snapshot!(shown(&build(SpanOptions::default(), &[])));
}

#[test]
fn content_is_there_only_if_asked_for() {
    let all = |content| {
        let mask = Mask::new(["a secret path".to_owned()]);
        format!("{:?}", build(SpanOptions { content, mask, ..SpanOptions::default() }, &[]))
    };
    assert!(!all(false).contains("secret"), "{}", all(false));
    for part in ["role", "task", "error", "answer", "text", "title", "reason", "failure"] {
        assert!(all(true).contains(&format!("a secret {part}")), "{part}");
    }
    assert!(!all(true).contains("a secret path"));
}

#[test]
fn a_transcript_that_is_read_anew_gives_nothing_twice() {
    let (records, lines) = (records(), transcript());
    let mut builder = TraceBuilder::new(&records[0], SpanOptions::default()).expect("a run");
    let work = PhaseName::parse("work").expect("a name");
    records[..3].iter().for_each(|record| builder.observe(record));
    builder.transcript(&work, 1, true, &lines[..8]);
    let first = builder.take().spans;
    builder.transcript(&work, 1, true, &lines);
    records[3..].iter().for_each(|record| builder.observe(record));
    let names = |spans: &[cliq_telemetry::Span]| spans.iter().map(|span| span.id).collect::<Vec<_>>();
    let rest = builder.take().spans;
    assert!(names(&first).iter().all(|id| !names(&rest).contains(id)));
    assert_eq!(first.len() + rest.len(), build(SpanOptions::default(), &[]).spans.len());
}

#[test]
fn lines_of_an_interrupted_activation_are_not_those_of_the_next() {
    let (records, lines) = (records(), transcript());
    let mut builder = TraceBuilder::new(&records[0], SpanOptions::default()).expect("a run");
    let work = PhaseName::parse("work").expect("a name");
    records[..3].iter().for_each(|record| builder.observe(record));
    let start = r#"{"ts":"2026-01-31T10:30:03.000Z","type":"start","version":1,"run_id":"r1","phase":"work","activation":2,"agent":"claude-api","continues":1}"#;
    let start = cliq_protocol::TranscriptEntry::decode(start.as_bytes()).expect("a line");
    let next: Vec<_> = [start].into_iter().chain(lines[1..].iter().cloned()).collect();
    builder.transcript(&work, 1, true, &lines[..10]);
    builder.transcript(&work, 2, true, &next);
    let spans = builder.take().spans;
    let count = |name: &str| spans.iter().filter(|span| span.name == name).count();
    // One failure and two replies; two calls.
    assert_eq!(
        (count("chat claude-sonnet-4-5"), count("chat claude-sonnet-4-5-20250929")),
        (2, 1),
        "{spans:#?}"
    );
    assert_eq!((count("execute_tool read_file"), count("execute_tool files__list")), (1, 1));
}

proptest! {
    #[test]
    fn pauses_of_the_reader_change_nothing(mut cuts in proptest::collection::vec(0_usize..13, 0..5)) {
        cuts.sort_unstable();
        prop_assert_eq!(build(SpanOptions::default(), &cuts), build(SpanOptions::default(), &[]));
    }

    #[test]
    fn no_order_of_records_makes_it_panic(order in proptest::collection::vec(0_usize..16, 0..40)) {
        let (records, lines) = (records(), transcript());
        let mut builder = TraceBuilder::new(&records[0], SpanOptions { content: true, ..SpanOptions::default() }).expect("a run");
        let work = PhaseName::parse("work").expect("a name");
        for n in order {
            builder.observe(&records[n]);
            builder.transcript(&work, 1, n == 0, &lines[..n.min(lines.len())]);
        }
        for span in builder.take().spans {
            prop_assert!(span.start <= span.end, "{}", span.name);
        }
    }
}
