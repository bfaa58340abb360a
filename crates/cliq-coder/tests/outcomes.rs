//! Ends of the loop: only an answer completes it, whatever replies, refusals and kills come before.

use cliq_coder::{Failure, Limit, Limits, Loop, Repeated, Step, Turn};
use cliq_protocol::{
    Budget, FailedCall, FailedCallKind, Object, Origin, ReplyKind, ReplyUsage, Role, ToolCall, ToolResult,
    TranscriptBody, Usage,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

fn message(role: Role, text: &str, origin: Option<Origin>) -> TranscriptBody {
    TranscriptBody::Message { role, text: text.to_owned(), origin, steering: Vec::new(), images: Vec::new() }
}

fn call(id: &str, argument: u32) -> ToolCall {
    let arguments = Object::from_iter([("n".to_owned(), argument.into())]);
    ToolCall { id: id.into(), name: "search".into(), arguments, invalid: None, provider_data: None }
}

fn result(id: &str, text: &str) -> TranscriptBody {
    TranscriptBody::ToolResult(ToolResult::new(id, Ok(text.into())))
}

fn error(kind: FailedCallKind) -> TranscriptBody {
    TranscriptBody::Error(FailedCall { message: "failed".into(), kind, usage: None })
}

/// Lines of a reply.
fn reply(
    text: &str,
    calls: &[ToolCall],
    kind: Option<ReplyKind>,
    usage: Option<Usage>,
) -> Vec<TranscriptBody> {
    let text = (!text.is_empty()).then(|| message(Role::Assistant, text, None));
    let calls = calls.iter().cloned().map(TranscriptBody::ToolCall);
    let detail = (kind == Some(ReplyKind::CutOff)).then(|| "its limit of 60 tokens".to_owned());
    let end = ReplyUsage { usage, kind, detail, duration_ms: None };
    text.into_iter().chain(calls).chain([TranscriptBody::Usage(end)]).collect()
}

/// Loop with its lines.
struct Bench {
    agent: Loop,
    lines: Vec<TranscriptBody>,
}

impl Bench {
    fn new(limits: Limits) -> Self {
        let mut this = Self { agent: Loop::new(limits), lines: Vec::new() };
        this.take([message(Role::User, "The task.", Some(Origin::Task))]);
        this
    }

    fn tools(max_turns: u32) -> Self {
        Self::new(Limits { max_turns, has_tools: true, ..Limits::default() })
    }

    fn take(&mut self, lines: impl IntoIterator<Item = TranscriptBody>) {
        for line in lines {
            self.agent.apply(&line);
            self.lines.push(line);
        }
    }

    /// Takes a reply that was requested.
    fn says(&mut self, text: &str, calls: &[ToolCall], kind: ReplyKind) {
        assert!(matches!(self.agent.next(), Step::Ask { .. }), "{:?}", self.agent.next());
        self.take(reply(text, calls, Some(kind), None));
    }

    /// Takes a reply with one call, and its result.
    fn calls(&mut self, id: u32) {
        self.says("", &[call(&id.to_string(), id)], ReplyKind::Calls);
        assert!(matches!(self.agent.next(), Step::Run(_)), "{:?}", self.agent.next());
        self.take([result(&id.to_string(), "nothing")]);
    }

    /// Adds the message that the loop requests. Returns its text.
    fn adds(&mut self, origin: Origin) -> String {
        let Step::Add(line) = self.agent.next() else { panic!("{:?}", self.agent.next()) };
        let TranscriptBody::Message { text, origin: Some(own), .. } = &line else { panic!("{line:?}") };
        assert_eq!(*own, origin, "{text}");
        let text = text.clone();
        self.take([line]);
        text
    }

    /// Another process continues from the lines.
    fn resumed(&self, limits: Limits) -> Self {
        let mut this = Self { agent: Loop::new(limits), lines: Vec::new() };
        this.take(self.lines.iter().cloned());
        this
    }
}

#[test]
fn larger_limit_of_turns_goes_on_and_the_same_one_ends_at_once() {
    let limits = |max_turns| Limits { max_turns, has_tools: true, ..Limits::default() };
    let mut bench = Bench::tools(3);
    bench.calls(1);
    bench.calls(2);
    assert!(bench.adds(Origin::Limit).contains("limit of 3 replies"));
    bench.says("Half is done.", &[], ReplyKind::Answer);
    let limited = Step::Limited { limit: Limit::Turns(3), partial: "Half is done.".into() };
    assert_eq!(bench.agent.next(), limited);
    for is_recorded in [false, true] {
        if is_recorded {
            bench.take([error(FailedCallKind::Final)]);
        }
        assert_eq!(bench.resumed(limits(3)).agent.next(), limited);
        let mut resumed = bench.resumed(limits(9));
        assert!(resumed.adds(Origin::Resume).contains("was raised"));
        assert_eq!(resumed.agent.next(), Step::Ask { may_call: true });
        resumed.calls(3);
        resumed.says("All is done.", &[], ReplyKind::Answer);
        assert_eq!(resumed.agent.next(), Step::Answer("All is done.".into()));
    }
}

#[test]
fn larger_budget_goes_on_after_its_notice() {
    let limits = |tokens| {
        let budget = Budget { tokens: Some(tokens), usd: None };
        Limits { budget, has_tools: true, ..Limits::default() }
    };
    let used = |tokens_in| Some(Usage { tokens_in, ..Usage::default() });
    let mut bench = Bench::new(limits(1_000));
    bench.take(reply("", &[call("1", 1)], Some(ReplyKind::Calls), used(400)));
    bench.take([result("1", "x")]);
    assert!(bench.adds(Origin::Limit).contains("budget"));
    // The last reply is cheap: the budget is not spent, and the work ended because of it all the same.
    bench.take(reply("Half.", &[], Some(ReplyKind::Answer), used(100)));
    let limited = Step::Limited { limit: Limit::Tokens(1_000), partial: "Half.".into() };
    assert_eq!(bench.agent.next(), limited);
    assert_eq!(bench.resumed(limits(1_000)).agent.next(), limited);
    bench.resumed(limits(9_000)).adds(Origin::Resume);
    // A budget that is spent ends the loop without another request.
    let mut bench = Bench::new(limits(1_000));
    bench.take(reply("I look.", &[call("1", 1)], Some(ReplyKind::Calls), used(1_001)));
    bench.take([result("1", "x")]);
    let limited = Step::Limited { limit: Limit::Tokens(1_000), partial: "I look.".into() };
    assert_eq!(bench.agent.next(), limited);
}

#[test]
fn calls_in_the_last_turn_are_told_and_are_no_answer() {
    let mut bench = Bench::tools(2);
    bench.calls(1);
    bench.adds(Origin::Limit);
    bench.says("Once more.", &[call("2", 2)], ReplyKind::Calls);
    assert!(bench.adds(Origin::Retry).contains("`search`"));
    assert_eq!(bench.agent.next(), Step::Ask { may_call: false });
    bench.says("", &[call("3", 3)], ReplyKind::Calls);
    assert_eq!(bench.agent.next(), Step::Limited { limit: Limit::Turns(2), partial: "Once more.".into() });
    // No call is left without its result.
    assert!(!bench.agent.turns().iter().any(
        |turn| matches!(turn, Turn::Assistant(reply) if reply.calls.len() == 1 && reply.calls[0].id != "1")
    ));
}

#[test]
fn cut_reply_is_continued_once_and_joined() {
    let mut bench = Bench::tools(20);
    bench.says("The answer is fo", &[], ReplyKind::CutOff);
    // An old transcript ends here, with an error.
    bench.take([error(FailedCallKind::Final)]);
    let mut bench = bench.resumed(Limits { has_tools: true, ..Limits::default() });
    bench.adds(Origin::Continue);
    assert!(bench.agent.is_within_answer());
    let mut again = bench.resumed(Limits { has_tools: true, ..Limits::default() });
    bench.says("rty-two.", &[], ReplyKind::Answer);
    assert_eq!(bench.agent.next(), Step::Answer("The answer is forty-two.".into()));

    again.says("rty", &[], ReplyKind::CutOff);
    let Step::Fail(failure) = again.agent.next() else { panic!("{:?}", again.agent.next()) };
    assert_eq!(failure, Failure::CutOff { detail: Some("its limit of 60 tokens".into()) });
    assert!(failure.to_string().contains("its limit of 60 tokens"), "{failure}");
    // Its activation ended: the next one asks for a whole answer.
    again.take([error(FailedCallKind::Final)]);
    assert!(again.adds(Origin::Resume).contains("from its beginning"));
    again.says("Forty-two.", &[], ReplyKind::Answer);
    assert_eq!(again.agent.next(), Step::Answer("Forty-two.".into()));
}

#[test]
fn thoughts_that_were_cut_off_are_not_continued() {
    let mut bench = Bench::tools(20);
    bench.take([TranscriptBody::Thinking { text: "The build is gre".into(), provider_data: None }]);
    bench.says("", &[], ReplyKind::CutOff);
    assert!(bench.adds(Origin::Continue).contains("from its beginning"));
    bench.says("ROUTE to dev: no test.", &[], ReplyKind::Answer);
    assert_eq!(bench.agent.next(), Step::Answer("ROUTE to dev: no test.".into()));
}

#[test]
fn message_between_the_parts_of_an_answer_leads_to_a_whole_one() {
    let mut bench = Bench::tools(20);
    bench.says("The answer is fo", &[], ReplyKind::CutOff);
    bench.adds(Origin::Continue);
    bench.take([message(Role::User, "In German.", Some(Origin::Steering))]);
    assert!(bench.adds(Origin::Continue).contains("from its beginning"));
    bench.says("Zweiundvierzig.", &[], ReplyKind::Answer);
    assert_eq!(bench.agent.next(), Step::Answer("Zweiundvierzig.".into()));
    // A call that the cut divides is no answer either.
    let mut bench = Bench::tools(20);
    bench.says("I look. <tool_", &[], ReplyKind::CutOff);
    bench.adds(Origin::Continue);
    bench.says("call>{\"name\": \"search\"}</tool_call>", &[], ReplyKind::Answer);
    assert!(bench.adds(Origin::Continue).contains("from its beginning"));
}

#[test]
fn calls_of_a_cut_reply_are_not_run() {
    let mut bench = Bench::tools(20);
    bench.says("", &[call("1", 1), call("2", 2)], ReplyKind::CutOff);
    assert!(bench.agent.open_calls().is_empty());
    for id in ["1", "2"] {
        let Step::Add(line) = bench.agent.next() else { panic!("{:?}", bench.agent.next()) };
        assert!(
            matches!(&line, TranscriptBody::ToolResult(result) if result.id == id && result.is_error && result.text.contains("cut off"))
        );
        bench.take([line]);
    }
    bench.calls(3);
    bench.says("Done.", &[], ReplyKind::Answer);
    assert_eq!(bench.agent.next(), Step::Answer("Done.".into()));
}

#[test]
fn useless_replies_are_retried_once() {
    let refused = Failure::Refused { detail: None };
    for (kind, calls, has_tools, failure) in [
        (ReplyKind::Empty, vec![], true, Failure::Empty),
        (ReplyKind::Refused, vec![], true, refused),
        (ReplyKind::Calls, vec![call("1", 1)], false, Failure::Calls),
    ] {
        let mut bench = Bench::new(Limits { has_tools, ..Limits::default() });
        bench.says("", &calls, kind);
        bench.adds(Origin::Retry);
        let mut other = bench.resumed(Limits { has_tools, ..Limits::default() });
        other.says("Yes.", &[], ReplyKind::Answer);
        assert_eq!(other.agent.next(), Step::Answer("Yes.".into()), "{kind}");
        bench.says("", &calls, kind);
        assert_eq!(bench.agent.next(), Step::Fail(failure), "{kind}");
        bench.take([error(FailedCallKind::Final)]);
        bench.adds(Origin::Resume);
        assert!(matches!(bench.agent.next(), Step::Ask { .. }), "{kind}");
    }
}

#[test]
fn summary_is_text_without_calls() {
    let large = || {
        let mut bench = Bench::new(Limits {
            context_tokens: 2_000,
            reply_tokens: 500,
            has_tools: true,
            ..Limits::default()
        });
        let text = "I think. ".repeat(600);
        bench.says(&text, &[call("1", 1)], ReplyKind::Calls);
        bench.take([result("1", "x")]);
        bench.adds(Origin::Summary);
        bench
    };
    for (kind, calls) in
        [(ReplyKind::Calls, vec![call("2", 2)]), (ReplyKind::CutOff, vec![]), (ReplyKind::Empty, vec![])]
    {
        let mut bench = large();
        let text = if kind == ReplyKind::Empty { "" } else { "I did" };
        bench.says(text, &calls, kind);
        assert!(bench.adds(Origin::Retry).contains("summary"), "{kind}");
        assert_eq!(bench.agent.next(), Step::Ask { may_call: false });
        let mut other = bench.resumed(Limits {
            context_tokens: 2_000,
            reply_tokens: 500,
            has_tools: true,
            ..Limits::default()
        });
        other.says("I did a half.", &[], ReplyKind::Answer);
        assert_eq!(other.agent.turns().len(), 2, "{kind}");
        assert_eq!(other.agent.next(), Step::Ask { may_call: true }, "{kind}");
        bench.says(text, &calls, kind);
        assert!(matches!(bench.agent.next(), Step::Fail(Failure::Summary(_))), "{kind}");
    }
}

#[test]
fn equal_failing_calls_end_the_loop() {
    let mut bench = Bench::tools(200);
    for id in 0..5 {
        assert_eq!(bench.agent.next(), Step::Ask { may_call: true });
        let text = format!("Attempt {id}.");
        bench.says(&text, &[call(&id.to_string(), 7)], ReplyKind::Calls);
        bench.take([result(&id.to_string(), "not found")]);
    }
    let Step::Fail(failure) = bench.agent.next() else { panic!("{:?}", bench.agent.next()) };
    let repeated = Repeated::Calls { tools: vec!["search".into()] };
    assert_eq!(failure, Failure::Repetition(repeated));
    assert!(failure.to_string().contains("`search` with the same arguments and the same result 5 times"));
}

#[test]
fn context_that_is_too_small_is_named_as_the_limit() {
    let mut bench = Bench::tools(20);
    // Nothing can be removed from a task.
    bench.take([error(FailedCallKind::TooLong)]);
    let limited = Step::Limited { limit: Limit::Context(128_000), partial: String::new() };
    assert_eq!(bench.agent.next(), limited);
    // The server may have a larger context when the run is resumed.
    bench.take([error(FailedCallKind::Final)]);
    bench.adds(Origin::Resume);
    assert!(matches!(bench.agent.next(), Step::Ask { .. }));
}

#[test]
fn counts_of_a_cut_request_are_not_learned() {
    let mut bench = Bench::new(Limits::default());
    bench.take([message(Role::User, &"word ".repeat(4_000), Some(Origin::Steering))]);
    let before = bench.agent.estimate();
    let cut = Usage { tokens_in: before / 4, ..Usage::default() };
    assert!(bench.agent.is_input_cut(&cut));
    bench.take(reply("Yes.", &[], None, Some(cut)));
    assert!(bench.agent.estimate() >= before);
    // A plausible count is learned.
    let mut bench = Bench::new(Limits::default());
    bench.take([message(Role::User, &"word ".repeat(4_000), Some(Origin::Steering))]);
    let plausible = Usage { tokens_in: before * 2 / 3, ..Usage::default() };
    assert!(!bench.agent.is_input_cut(&plausible));
    bench.take(reply("Yes.", &[], None, Some(plausible)));
    assert!(bench.agent.estimate() < before * 3 / 4);
}

/// Event of the world.
#[derive(Debug, Clone)]
enum Event {
    Reply { kind: Option<ReplyKind>, text: bool, thought: bool, calls: u32, tokens: Option<u64>, size: usize },
    TooLong,
    Steering,
}

fn event() -> impl Strategy<Value = Event> {
    let kind = prop_oneof![
        1 => Just(None),
        5 => proptest::sample::select(ReplyKind::ALL.to_vec()).prop_map(Some),
        4 => Just(Some(ReplyKind::Calls)),
    ];
    let reply = (kind, any::<bool>(), any::<bool>(), 0..3_u32, option::of(1..2_000_u64), 0..3_000_usize)
        .prop_map(|(kind, text, thought, calls, tokens, size)| Event::Reply {
            kind,
            text,
            thought,
            calls,
            tokens,
            size,
        });
    prop_oneof![10 => reply, 1 => Just(Event::TooLong), 1 => Just(Event::Steering)]
}

/// Number of bytes of a conversation.
fn size(turns: &[Turn]) -> usize {
    let of_reply = |reply: &cliq_coder::Reply| {
        let calls = reply
            .calls
            .iter()
            .map(|call| call.name.len() + serde_json::to_string(&call.arguments).expect("JSON").len() + 32);
        let thinking = reply.thinking.iter().map(|thought| thought.text.len());
        reply.text.len() + calls.sum::<usize>() + thinking.sum::<usize>()
    };
    let of = |turn: &Turn| match turn {
        Turn::User { text, .. } => text.len(),
        Turn::Assistant(reply) => of_reply(reply),
        Turn::Results(results) => results.iter().map(|result| result.text.len() + 32).sum(),
    };
    turns.iter().map(of).sum()
}

/// Removes lines of a reply whose end is missing, as a resumed activation does.
fn whole(lines: &mut Vec<TranscriptBody>) {
    let is_part = |line: &TranscriptBody| {
        matches!(
            line,
            TranscriptBody::Thinking { .. }
                | TranscriptBody::ToolCall(_)
                | TranscriptBody::Message { role: Role::Assistant, .. }
        )
    };
    while lines.last().is_some_and(is_part) {
        lines.pop();
    }
}

/// Runs a loop to its end. After each number of lines in `kills`, its process is killed and another one continues.
fn run(limits: &Limits, events: &[Event], kills: &[usize]) -> (Vec<TranscriptBody>, Step) {
    let mut bench = Bench::new(limits.clone());
    let mut kills: Vec<usize> = kills.to_vec();
    kills.sort_unstable();
    kills.reverse();
    let (mut at, mut asked, mut smallest_refused) = (0, 0, usize::MAX);
    loop {
        let is_killed = kills.last().is_some_and(|kill| bench.lines.len() >= *kill);
        if is_killed {
            kills.pop();
            whole(&mut bench.lines);
            bench = bench.resumed(limits.clone());
        }
        let mut lines = match bench.agent.next() {
            Step::Ask { .. } => {
                asked += 1;
                assert!(asked < 400, "the loop does not end");
                let size = size(bench.agent.turns());
                assert!(size < smallest_refused, "{size} bytes after {smallest_refused} were refused");
                let event = events.get(at).cloned().unwrap_or(Event::Reply {
                    kind: Some(ReplyKind::Answer),
                    text: true,
                    thought: false,
                    calls: 0,
                    tokens: None,
                    size: 0,
                });
                match event {
                    Event::TooLong => {
                        smallest_refused = size;
                        at += 1;
                        vec![error(FailedCallKind::TooLong)]
                    }
                    Event::Steering => {
                        at += 1;
                        vec![message(Role::User, "Also greet Ana.", Some(Origin::Steering))]
                    }
                    Event::Reply { kind, text, thought, calls, tokens, .. } => {
                        let calls: Vec<ToolCall> = (0..calls)
                            .map(|n| call(&format!("{at}.{n}"), n + u32::from(at % 2 == 0)))
                            .collect();
                        let usage = tokens.map(|tokens_in| Usage { tokens_in, ..Usage::default() });
                        let text = if text { format!("Reply {at}.") } else { String::new() };
                        let thought = thought.then(|| TranscriptBody::Thinking {
                            text: "Done: PASS.".into(),
                            provider_data: None,
                        });
                        let lines = thought.into_iter().chain(reply(&text, &calls, kind, usage)).collect();
                        at += 1;
                        lines
                    }
                }
            }
            Step::Run(calls) => {
                let of = |id: &str| id.split('.').next().and_then(|at| at.parse::<usize>().ok());
                let size = |id: &str| match of(id).and_then(|at| events.get(at)) {
                    Some(Event::Reply { size, .. }) => *size,
                    _ => 0,
                };
                calls.iter().map(|call| result(&call.id, &"x".repeat(size(&call.id)))).collect()
            }
            Step::Add(line) => vec![line],
            end @ (Step::Answer(_) | Step::Limited { .. } | Step::Fail(_)) => {
                if kills.is_empty() {
                    return (bench.lines, end);
                }
                // Killed at the very end, before the end was reported.
                kills.clear();
                bench = bench.resumed(limits.clone());
                continue;
            }
        };
        // A kill between two lines of a reply: the reply is lost, and the same one is given again.
        if let Some(kill) = kills.last()
            && bench.lines.len() + lines.len() > *kill
            && matches!(lines.last(), Some(TranscriptBody::Usage(_)))
        {
            lines.truncate(kill.saturating_sub(bench.lines.len()));
            at -= 1;
        }
        bench.take(lines);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn loops_complete_only_with_an_answer_and_kills_change_nothing(
        events in vec(event(), 0..40),
        max_turns in 1..12_u32,
        context in 1_000..20_000_u64,
        tokens in option::of(1_000..20_000_u64),
        has_tools in proptest::bool::weighted(0.9),
        kills in vec(1..60_usize, 0..4),
    ) {
        let budget = Budget { tokens, usd: None };
        let reply_tokens = context / 4;
        let limits = Limits { max_turns, context_tokens: context, reply_tokens, budget, has_tools, ..Limits::default() };
        let (lines, end) = run(&limits, &events, &[]);
        if let Step::Answer(answer) = &end {
            let last = lines.iter().rposition(|line| matches!(line, TranscriptBody::Usage(_))).expect("a reply");
            let TranscriptBody::Usage(usage) = &lines[last] else { unreachable!() };
            prop_assert!(matches!(usage.kind, Some(ReplyKind::Answer) | None), "{:?}", usage.kind);
            let parts: Vec<&TranscriptBody> = lines[..last].iter().rev()
                .take_while(|line| !matches!(line, TranscriptBody::Usage(_) | TranscriptBody::Message { role: Role::User, .. })).collect();
            let has_call = parts.iter().any(|line| matches!(line, TranscriptBody::ToolCall(_)));
            prop_assert!(!has_call, "{parts:?}");
            let text = parts.iter().find_map(|line| match line {
                TranscriptBody::Message { role: Role::Assistant, text, .. } => Some(text.clone()),
                _ => None,
            });
            let text = text.unwrap_or_default();
            prop_assert!(!text.is_empty() && answer.ends_with(&text) && !answer.contains("PASS"), "{answer}");
            // The answer is not what the notice of a limit demanded.
            let origins: Vec<Origin> = lines.iter().filter_map(|line| match line {
                TranscriptBody::Message { role: Role::User, origin: Some(origin), .. } => Some(*origin),
                _ => None,
            }).collect();
            let notice = origins.iter().rposition(|origin| *origin == Origin::Limit);
            let resumed = origins.iter().rposition(|origin| *origin == Origin::Resume);
            prop_assert!(notice.is_none() || resumed > notice, "{origins:?}");
        }
        let (killed_lines, killed_end) = run(&limits, &events, &kills);
        prop_assert_eq!(killed_end, end);
        prop_assert_eq!(killed_lines, lines);
    }
}

/// A look at the whole reply: after an interruption between the results of two calls it says the same.
#[test]
fn answers_by_calls_that_differ_are_noticed_with_any_number_of_results() {
    let answer = |id: &str, n: u32| ToolCall { name: "give_verdict".into(), ..call(id, n) };
    for (calls, differ) in [
        (vec![answer("a", 1), answer("b", 2)], true),
        (vec![answer("a", 1), call("b", 2), answer("c", 2)], true),
        (vec![answer("a", 1), answer("b", 1)], false),
        (vec![answer("a", 1), call("b", 2)], false),
        (vec![call("a", 1), call("b", 2)], false),
    ] {
        let limits = Limits { has_tools: true, answer_tool: Some("give_verdict"), ..Limits::default() };
        let mut bench = Bench::new(limits);
        bench.take(reply("", &calls, Some(ReplyKind::Calls), None));
        assert_eq!(bench.agent.do_answers_differ(), differ, "{calls:?}");
        bench.take([TranscriptBody::ToolResult(ToolResult::new("a", Err("differ".into())))]);
        assert_eq!(bench.agent.do_answers_differ(), differ, "{calls:?}");
    }
    assert!(!Bench::tools(3).agent.do_answers_differ());
}
