//! The loop as a machine: every sequence of replies, results, refusals and messages.

use cliq_coder::{Limit, Limits, Loop, Step, Turn};
use cliq_protocol::{
    Budget, FailedCall, FailedCallKind, Object, Origin, Price, ReplyUsage, Role, ToolCall, ToolResult,
    TranscriptBody, Usage,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// Reaction of the world to a step.
#[derive(Debug, Clone)]
enum Reaction {
    /// A reply with text and calls. Results have these sizes.
    Reply { text: bool, results: Vec<usize>, counted: bool },
    /// The API refuses the request as too long.
    TooLong,
    /// A steering message comes before the request.
    Steering,
}

fn reaction() -> impl Strategy<Value = Reaction> {
    prop_oneof![
        6 => (any::<bool>(), vec(prop_oneof![0..200_usize, 1_000..9_000_usize], 0..4), any::<bool>())
            .prop_map(|(text, results, counted)| Reaction::Reply { text, results, counted }),
        1 => Just(Reaction::TooLong),
        1 => Just(Reaction::Steering),
    ]
}

fn message(role: Role, text: &str, origin: Option<Origin>) -> TranscriptBody {
    TranscriptBody::Message { role, text: text.to_owned(), origin, steering: Vec::new(), images: Vec::new() }
}

fn usage(agent: &Loop, counted: bool) -> TranscriptBody {
    let usage = Usage { tokens_in: agent.estimate().max(1), tokens_out: 20, ..Usage::default() };
    TranscriptBody::Usage(ReplyUsage { usage: counted.then_some(usage), ..ReplyUsage::default() })
}

/// Every call has exactly one result in the turn after it, and no result is without its call.
fn check_pairs(turns: &[Turn], open: usize) {
    for (n, turn) in turns.iter().enumerate() {
        match turn {
            Turn::Assistant(reply) if !reply.calls.is_empty() => {
                let ids: Vec<&str> = reply.calls.iter().map(|call| call.id.as_str()).collect();
                let results: Vec<&str> = match turns.get(n + 1) {
                    Some(Turn::Results(results)) => results.iter().map(|result| result.id.as_str()).collect(),
                    _ => Vec::new(),
                };
                let is_last = turns.len() <= n + 2;
                assert!(
                    results == ids || is_last && results.len() + open == ids.len(),
                    "{ids:?} {results:?}"
                );
            }
            Turn::Results(_) => assert!(matches!(turns[n - 1], Turn::Assistant(_))),
            _ => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn loops_end_stay_within_limits_and_continue_from_their_lines(
        reactions in vec(reaction(), 1..120),
        max_turns in 1..40_u32,
        context in 2_000..20_000_u64,
        tokens in proptest::option::of(1_000..400_000_u64),
        cut in any::<prop::sample::Index>(),
    ) {
        let limits = Limits {
            max_turns,
            context_tokens: context,
            reply_tokens: context / 4,
            budget: Budget { tokens, usd: None },
            has_tools: true,
            ..Limits::default()
        };
        let mut agent = Loop::new(limits.clone());
        let mut lines = vec![message(Role::User, "The task.", Some(Origin::Task))];
        agent.apply(&lines[0]);
        let (mut reactions, mut number, mut asked) = (reactions.into_iter(), 0, 0);
        let mut record = |agent: &mut Loop, body: TranscriptBody| {
            agent.apply(&body);
            lines.push(body);
        };
        let mut sizes = Vec::new();
        loop {
            check_pairs(agent.turns(), agent.open_calls().len());
            match agent.next() {
                Step::Ask { may_call } => {
                    prop_assert!(agent.open_calls().is_empty());
                    let capacity = context - context / 4;
                    prop_assert!(!may_call || agent.estimate() <= capacity || agent.turns().len() < 3, "{}", agent.estimate());
                    asked += 1;
                    prop_assert!(agent.replies() < max_turns + 3);
                    match reactions.next() {
                        Some(Reaction::TooLong) => record(&mut agent, TranscriptBody::Error(FailedCall { message: "too long".into(), kind: FailedCallKind::TooLong, usage: None })),
                        Some(Reaction::Steering) => record(&mut agent, message(Role::User, "Also greet Ana.", Some(Origin::Steering))),
                        Some(Reaction::Reply { text, results, counted }) => {
                            if text {
                                record(&mut agent, message(Role::Assistant, "I work.", None));
                            }
                            for size in results {
                                number += 1;
                                sizes.push(size);
                                // Equal calls with equal results would be a repetition.
                                let arguments = Object::from_iter([("n".to_owned(), number.into())]);
                                let call = ToolCall { id: number.to_string(), name: "read_file".into(), arguments, invalid: None, provider_data: None };
                                record(&mut agent, TranscriptBody::ToolCall(call));
                            }
                            let end = usage(&agent, counted);
                            record(&mut agent, end);
                        }
                        None => {
                            record(&mut agent, message(Role::Assistant, "Done.", None));
                            let end = usage(&agent, true);
                            record(&mut agent, end);
                        }
                    }
                }
                Step::Run(calls) => {
                    // Results come in any order.
                    for call in calls.iter().rev() {
                        let size = sizes[call.id.parse::<usize>().unwrap() - 1];
                        let result = ToolResult::new(call.id.clone(), Ok("x".repeat(size)));
                        record(&mut agent, TranscriptBody::ToolResult(result));
                    }
                }
                Step::Add(body) => record(&mut agent, body),
                Step::Answer(text) => {
                    prop_assert!(!text.is_empty());
                    break;
                }
                Step::Limited { .. } | Step::Fail(_) => break,
            }
            prop_assert!(asked < 400, "the loop does not end");
        }
        // The same lines lead to the same state, at every point.
        let at = cut.index(lines.len() + 1);
        let mut again = Loop::new(limits);
        lines[..at].iter().for_each(|line| again.apply(line));
        let mut whole = again.clone();
        lines[at..].iter().for_each(|line| whole.apply(line));
        prop_assert_eq!(&whole, &agent);
        // A steering message is never lost, not even by a summary.
        let steered = lines.iter().any(|line| matches!(line, TranscriptBody::Message { origin: Some(Origin::Steering), .. }));
        let is_there = agent.turns().iter().any(|turn| matches!(turn, Turn::User { text, .. } if text.contains("greet Ana")));
        prop_assert!(!steered || is_there);
    }
}

#[test]
fn limit_leads_to_a_partial_handoff_without_tools() {
    let mut agent = Loop::new(Limits { max_turns: 2, has_tools: true, ..Limits::default() });
    agent.apply(&message(Role::User, "The task.", Some(Origin::Task)));
    assert_eq!(agent.next(), Step::Ask { may_call: true });
    let call = ToolCall {
        id: "1".into(),
        name: "search".into(),
        arguments: Object::new(),
        invalid: None,
        provider_data: None,
    };
    agent.apply(&TranscriptBody::ToolCall(call));
    agent.apply(&TranscriptBody::Usage(ReplyUsage::default()));
    assert!(matches!(agent.next(), Step::Run(calls) if calls.len() == 1));
    agent.apply(&TranscriptBody::ToolResult(ToolResult::new("1", Ok("x".into()))));
    let Step::Add(notice) = agent.next() else { panic!("{:?}", agent.next()) };
    assert!(
        matches!(&notice, TranscriptBody::Message { origin: Some(Origin::Limit), text, .. } if text.contains("limit of 2 replies"))
    );
    agent.apply(&notice);
    assert_eq!(agent.next(), Step::Ask { may_call: false });
    agent.apply(&message(Role::Assistant, "So far.", None));
    agent.apply(&TranscriptBody::Usage(ReplyUsage::default()));
    let limit = Limit::Turns(2);
    assert_eq!(agent.next(), Step::Limited { limit, partial: "So far.".into() });
}

/// An image leaves the conversation with its result, and its size with it.
#[test]
fn images_make_room_with_their_results() {
    let mut agent = Loop::new(Limits {
        context_tokens: 8_000,
        reply_tokens: 1_000,
        has_tools: true,
        ..Limits::default()
    });
    agent.apply(&message(Role::User, "The task.", Some(Origin::Task)));
    for n in 0..6 {
        let id = n.to_string();
        let call = ToolCall {
            id: id.clone(),
            name: "read_image".into(),
            arguments: Object::from_iter([("n".to_owned(), n.into())]),
            invalid: None,
            provider_data: None,
        };
        agent.apply(&TranscriptBody::ToolCall(call));
        agent.apply(&TranscriptBody::Usage(ReplyUsage::default()));
        let images = vec![format!(".cliq/files/dev/.images/{n}.png")];
        let result = ToolResult { images, ..ToolResult::new(id, Ok("page.png: image/png".into())) };
        agent.apply(&TranscriptBody::ToolResult(result));
        assert_eq!(agent.next(), Step::Ask { may_call: true }, "image {n} fits");
    }
    let shown: usize = agent
        .turns()
        .iter()
        .map(|turn| match turn {
            cliq_coder::Turn::Results(results) => results.iter().map(|result| result.images.len()).sum(),
            _ => 0,
        })
        .sum();
    assert!((1..6).contains(&shown), "{shown} images");
}

proptest! {
    /// A cap never exceeds what is left but for the shortest reply, and there is none where enough is left.
    #[test]
    fn replies_are_capped_by_what_budget_and_context_leave(
        context in 1_000_u64..300_000,
        knows_context: bool,
        budget in proptest::option::of(0_u64..200_000),
        usd in proptest::option::of(0.0_f64..2.0),
        spent in 0_u64..100_000,
        task in 1_usize..400_000,
    ) {
        let price = Price { input: 3.0, output: 15.0, cached: None };
        let limits = Limits {
            context_tokens: context,
            knows_context,
            reply_tokens: context / 4,
            budget: Budget { tokens: budget, usd },
            price: Some(price),
            ..Limits::default()
        };
        let mut agent = Loop::new(limits);
        agent.apply(&message(Role::User, &"x".repeat(task), Some(Origin::Task)));
        let usage = Usage { tokens_in: spent, ..Usage::default() };
        let failed = FailedCall { message: "f".into(), kind: FailedCallKind::Passing, usage: Some(usage) };
        agent.apply(&TranscriptBody::Error(failed));
        let input = agent.estimate();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a cost")]
        let by_usd = usd.map(|usd| ((usd - (spent + input) as f64 * 3e-6).max(0.0) / 15e-6) as u64);
        let by_tokens = budget.map(|budget| budget.saturating_sub(spent + input));
        let by_context = knows_context.then(|| context.saturating_sub(input));
        let left = by_usd.into_iter().chain(by_tokens).chain(by_context).min();
        match (agent.reply_cap(), left) {
            (Some(cap), Some(left)) => prop_assert!(cap >= 256 && cap <= left.max(256) + 1, "{cap} of {left}"),
            (Some(cap), None) => prop_assert!(false, "{cap} of nothing"),
            (None, Some(left)) => prop_assert!(left >= 31_999, "no cap with {left} left"),
            (None, None) => {}
        }
    }
}

#[test]
fn a_budget_ends_the_loop_before_the_next_reply() {
    let mut agent = Loop::new(Limits {
        budget: Budget { tokens: Some(1_000), usd: None },
        has_tools: true,
        ..Limits::default()
    });
    agent.apply(&message(Role::User, "The task.", Some(Origin::Task)));
    let reply = |agent: &mut Loop, tokens_in: u64| {
        let id = agent.replies().to_string();
        let call = ToolCall {
            id: id.clone(),
            name: "search".into(),
            arguments: Object::new(),
            invalid: None,
            provider_data: None,
        };
        agent.apply(&TranscriptBody::ToolCall(call));
        let usage = Usage { tokens_in, ..Usage::default() };
        agent.apply(&TranscriptBody::Usage(ReplyUsage { usage: Some(usage), ..ReplyUsage::default() }));
        agent.apply(&TranscriptBody::ToolResult(ToolResult::new(id, Ok("x".into()))));
    };
    reply(&mut agent, 300);
    assert_eq!(agent.next(), Step::Ask { may_call: true });
    reply(&mut agent, 300);
    assert!(matches!(agent.next(), Step::Add(_)), "two more replies would exceed the budget");
    reply(&mut agent, 500);
    let limit = Limit::Tokens(1_000);
    assert!(matches!(agent.next(), Step::Limited { limit: reached, .. } if reached == limit));
}

#[test]
fn feedback_continues_the_conversation_with_limits_of_its_own() {
    let answer =
        |text: &str| [message(Role::Assistant, text, None), TranscriptBody::Usage(ReplyUsage::default())];
    let mut agent = Loop::new(Limits { max_turns: 2, has_tools: true, ..Limits::default() });
    agent.apply(&message(Role::User, "The task.", Some(Origin::Task)));
    answer("Done.").iter().for_each(|body| agent.apply(body));
    assert_eq!(agent.next(), Step::Answer("Done.".to_owned()));
    agent.apply(&TranscriptBody::End { text: "Done.".to_owned() });
    agent.apply(&message(Role::User, "Mend it.", Some(Origin::Feedback)));
    assert_eq!(agent.next(), Step::Ask { may_call: true }, "the limit of replies holds for each activation");
    assert_eq!((agent.turns().len(), agent.replies()), (3, 0));
    answer("Mended.").iter().for_each(|body| agent.apply(body));
    assert_eq!(agent.next(), Step::Answer("Mended.".to_owned()));
}

#[test]
fn summary_keeps_the_feedback() {
    let mut agent = Loop::new(Limits { has_tools: true, ..Limits::default() });
    agent.apply(&message(Role::User, "The task.", Some(Origin::Task)));
    for (feedback, answer) in [("First feedback.", "A"), ("Second feedback.", "B")] {
        agent.apply(&message(Role::User, feedback, Some(Origin::Feedback)));
        agent.apply(&message(Role::Assistant, answer, None));
        agent.apply(&TranscriptBody::Usage(ReplyUsage::default()));
    }
    agent.apply(&message(Role::User, "Summarize.", Some(Origin::Summary)));
    agent.apply(&message(Role::Assistant, "What I did.", None));
    agent.apply(&TranscriptBody::Usage(ReplyUsage::default()));
    let [_, Turn::User { text, .. }] = agent.turns() else { panic!("{:?}", agent.turns()) };
    assert!(text.contains("What I did.") && text.contains("Second feedback."), "{text}");
    assert!(!text.contains("First feedback."), "{text}");
}
