//! Properties for every input: decoders never panic, encode then decode is the identity, and the division of a stream into chunks
//! does not matter.

use cliq_protocol::{
    AgentMessage, Body, ChannelBody, ChannelMessage, ChannelOrder, CommandResult, DispatchType, Envelope,
    Form, GateData, Limited, Line, NotifyRequest, Object, OrderState, Outcome, PhaseName, StreamDecoder,
    Usage, Verdict, WaitingReview, WireTime,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::Value;

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1e300f64..1e300).prop_map(Value::from),
        ".*".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Value::from),
            vec((".{0,8}", inner), 0..5).prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

fn object() -> impl Strategy<Value = Object> {
    vec((".{0,8}", value()), 0..4).prop_map(|pairs| pairs.into_iter().collect())
}

/// Unknown fields: their names begin with a letter that no known field begins with.
fn extra() -> impl Strategy<Value = Object> {
    vec(("z[a-z]{0,5}", value()), 0..3).prop_map(|pairs| pairs.into_iter().collect())
}

fn phase_name() -> impl Strategy<Value = PhaseName> {
    "[a-z0-9]([a-z0-9_-]{0,8}[a-z0-9])?".prop_filter_map("separator", |text| PhaseName::parse(&text).ok())
}

fn verdict() -> impl Strategy<Value = Verdict> {
    let outcome =
        prop_oneof![Just(Outcome::Pass), phase_name().prop_map(Outcome::Route), Just(Outcome::Escalate)];
    (outcome, option::of(".*"), extra()).prop_map(|(outcome, reason, extra)| Verdict {
        outcome,
        reason,
        extra,
    })
}

prop_compose! {
    fn check()(name in ".*", pass: bool, run in option::of(".*"), exit_code in option::of(any::<i64>()),
               duration_ms in option::of(any::<u64>()), skipped in option::of(any::<bool>()),
               output_tail in option::of(".*"), log_file in option::of(".*"), extra in extra()) -> CommandResult {
        CommandResult { name, pass, run, exit_code, duration_ms, skipped, output_tail, log_file, extra }
    }
}

fn limited() -> impl Strategy<Value = Limited> {
    let value = option::of(value().prop_filter("absent", |value| !value.is_null()));
    (".*", value, extra()).prop_map(|(limit, value, extra)| Limited { limit, value, extra })
}

fn envelope() -> impl Strategy<Value = Envelope> {
    let gate = (verdict(), vec(check(), 0..3), any::<u32>(), any::<u32>(), extra()).prop_map(
        |(verdict, checks, iteration, max_iterations, extra)| {
            Body::Gate(Box::new(GateData { verdict, checks, iteration, max_iterations, extra }))
        },
    );
    let body = prop_oneof![
        option::of(object()).prop_map(Body::Standard),
        option::of(object()).prop_map(Body::Team),
        gate
    ];
    (phase_name(), ".*", body, option::of(".*"), option::of(limited()), extra()).prop_map(
        |(phase, agent, body, text, limited, extra)| Envelope { phase, agent, body, text, limited, extra },
    )
}

fn usage() -> impl Strategy<Value = Usage> {
    let counts = (any::<u32>(), any::<u32>(), option::of(any::<u32>()));
    (option::of(".*"), option::of(".*"), counts, option::of(0.0..1e6), extra()).prop_map(
        |(provider, model, (tokens_in, tokens_out, cached), cost_usd, extra)| Usage {
            provider,
            model,
            tokens_in: tokens_in.into(),
            tokens_out: tokens_out.into(),
            tokens_cached: cached.map(Into::into),
            tokens_reasoning: cached.map(|tokens| u64::from(tokens) / 2),
            cost_usd,
            estimated: tokens_in % 2 == 1,
            extra,
        },
    )
}

fn waiting() -> impl Strategy<Value = WaitingReview> {
    let times =
        (".*", ".*").prop_map(|(since, until)| (WireTime::from_text(since), WireTime::from_text(until)));
    let form = prop_oneof![
        Just(Form::default()),
        ".*".prop_map(|label| {
            let field =
                serde_json::json!([{"name": "a", "label": label, "type": "boolean", "default": true}]);
            Form::from_value(field, "inputs").expect("a form")
        }),
    ];
    (".*", vec(".*", 0..3), times, option::of(".*"), vec(phase_name(), 0..3), form).prop_map(
        |(id, reviewers, (since, until), page, route_targets, inputs)| WaitingReview {
            reviewers,
            since,
            due: page.as_ref().map(|_| until.clone()),
            until,
            others: page.iter().cloned().collect(),
            asks: page.clone(),
            answer: page.as_ref().map(|_| id.clone()),
            id,
            page,
            route_targets,
            inputs,
        },
    )
}

fn body() -> impl Strategy<Value = ChannelBody> {
    prop_oneof![
        Just(ChannelBody::Ok),
        (option::of(".*"), option::of(usage()), option::of(waiting())).prop_map(
            |(message, usage, review)| {
                ChannelBody::Progress { message, usage: usage.map(Box::new), review: review.map(Box::new) }
            }
        ),
        (option::of(".*"), ".*", option::of(".*"), ".*", option::of(value()), extra()).prop_map(
            |(id, agent, channel, event, payload, extra)| {
                ChannelBody::Notify(NotifyRequest { id, agent, channel, event, payload, extra })
            }
        ),
        option::of(value()).prop_map(|result| ChannelBody::Complete { result }),
        (".*", option::of(usage()), option::of(limited())).prop_map(|(error, usage, limited)| {
            ChannelBody::Error { error, usage: usage.map(Box::new), limited }
        }),
    ]
}

fn message() -> impl Strategy<Value = ChannelMessage> {
    let dispatch =
        prop_oneof![Just(DispatchType::Phase), Just(DispatchType::Notify), Just(DispatchType::Test)];
    (".*", dispatch, body(), extra()).prop_map(|(ts, dispatch, body, extra)| ChannelMessage {
        ts: WireTime::from_text(ts),
        dispatch,
        body,
        extra,
    })
}

/// A stream of good lines, garbage, blank lines, CRLF and, at times, an unterminated end.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        4 => message().prop_map(|m| m.encode()),
        1 => message().prop_map(|m| { let mut l = m.encode(); l.pop(); l.extend(b"\r\n"); l }),
        2 => vec(any::<u8>(), 0..80),
        1 => Just(b"\n\r\n  \n".to_vec()),
        1 => vec(Just(b'x'), 150..260),
    ];
    vec(line, 0..12).prop_map(|lines| lines.concat())
}

fn decode(stream: &[u8], cuts: &[usize]) -> Vec<Line> {
    let mut decoder = StreamDecoder::with_limit(200);
    let mut lines = Vec::new();
    let mut at = 0;
    for cut in cuts.iter().map(|c| c % (stream.len() + 1)).collect::<std::collections::BTreeSet<_>>() {
        decoder.feed(&stream[at..cut], |line| lines.push(line));
        at = cut;
    }
    decoder.feed(&stream[at..], |line| lines.push(line));
    assert_eq!(decoder.offset(), stream.len() as u64);
    lines
}

/// Fields as agents may write them, rightly and wrongly.
fn channel_line() -> impl Strategy<Value = String> {
    let field = |name: &'static str, values: &'static [&'static str]| {
        prop::option::weighted(0.9, prop::sample::select(values)).prop_map(move |value| Some((name, value?)))
    };
    let fields = (
        field("ts", &["\"2026-01-01T00:00:00.000Z\"", "\"\"", "1", "null"]),
        field("version", &["1", "1", "1", "2", "\"1\"", "1.0", "null"]),
        field("type", &["\"phase\"", "\"notify\"", "\"test\"", "\"x\"", "null"]),
        field("status", &["\"progress\"", "\"progress\"", "\"ok\"", "\"x\"", "null"]),
        field("message", &["\"m \\u00e4\\n\"", "null", "1", "\"\""]),
        prop::option::weighted(0.2, Just(("more", "{\"a\": null}"))),
        prop::option::weighted(0.1, Just(("message", "\"twice\""))),
    );
    fields.prop_map(|(a, b, c, d, e, f, g)| {
        let fields = [a, b, c, d, e, f, g].into_iter().flatten();
        let fields: Vec<String> = fields.map(|(name, value)| format!("\"{name}\": {value}")).collect();
        format!("{{{}}}", fields.join(", "))
    })
}

proptest! {
    #[test]
    fn usual_lines_are_read_like_all_others(line in channel_line()) {
        let value = serde_json::from_str(&line).expect("JSON");
        let slowly = ChannelMessage::from_value(value);
        match ChannelMessage::decode(line.as_bytes()) {
            Ok(message) => prop_assert_eq!(Ok(message), slowly),
            Err(error) => prop_assert_eq!(error.to_string(), slowly.expect_err("it is wrong").to_string()),
        }
    }

    #[test]
    fn any_bytes_decode_to_a_value_or_an_error(bytes in vec(any::<u8>(), 0..300)) {
        let _ = Envelope::decode(&bytes);
        let _ = ChannelMessage::decode(&bytes);
        let _ = AgentMessage::decode(&bytes);
        StreamDecoder::new().feed(&bytes, |_| ());
    }

    #[test]
    fn any_json_decodes_to_a_value_or_an_error(value in value()) {
        let bytes = value.to_string().into_bytes();
        let _ = Envelope::decode(&bytes);
        let _ = ChannelMessage::decode(&bytes);
        let _ = AgentMessage::decode(&bytes);
    }

    #[test]
    fn envelopes_round_trip(envelope in envelope()) {
        prop_assert_eq!(Envelope::decode(&envelope.encode()).unwrap(), envelope);
    }

    #[test]
    fn messages_round_trip_in_one_line(message in message()) {
        let line = message.encode();
        prop_assert_eq!(line.iter().position(|&b| b == b'\n'), Some(line.len() - 1));
        prop_assert_eq!(ChannelMessage::decode(&line).unwrap(), message);
    }

    #[test]
    fn verdicts_round_trip_in_both_forms(verdict in verdict()) {
        prop_assert_eq!(&Verdict::from_value(verdict.to_value()).unwrap(), &verdict);
        prop_assert_eq!(verdict.to_string().parse::<Verdict>().unwrap().outcome, verdict.outcome);
    }

    #[test]
    fn the_cut_into_chunks_does_not_matter(stream in stream(), cuts in vec(any::<usize>(), 0..20)) {
        let all: Vec<usize> = (0..=stream.len()).collect();
        let whole = decode(&stream, &[]);
        prop_assert_eq!(&decode(&stream, &cuts), &whole);
        prop_assert_eq!(&decode(&stream, &all), &whole);
    }

    #[test]
    fn accepted_messages_are_in_protocol_order(bodies in vec(body(), 0..20)) {
        let mut order = ChannelOrder::new();
        let accepted: Vec<&ChannelBody> = bodies.iter().filter(|body| order.accept(body).is_ok()).collect();
        let oks = accepted.iter().filter(|b| ***b == ChannelBody::Ok).count();
        let ends = accepted.iter().filter(|b| b.is_terminal()).count();
        prop_assert!(oks <= 1 && ends <= 1);
        if let Some(first) = accepted.first() {
            prop_assert_eq!(*first, &ChannelBody::Ok);
        }
        if ends == 1 {
            prop_assert!(accepted.last().is_some_and(|b| b.is_terminal()));
        }
        prop_assert_eq!(order.state() == OrderState::Finished, ends == 1);
    }

    #[test]
    fn names_that_parse_are_safe_path_segments(text in "\\PC{0,70}") {
        if let Ok(name) = PhaseName::parse(&text) {
            prop_assert!(!name.as_str().contains(['/', '.', '\0']) && !name.as_str().contains("--"));
            prop_assert_eq!(name.as_str(), text.as_str());
        }
    }
}
