//! The rules, one by one.

use cliq_protocol::{
    ChannelBody, ChannelMessage, ChannelOrder, EnvelopeType, OrderViolation, Outcome, Verdict,
};

use super::Finding;
use super::dialogue::{Exit, Kind, Transcript};

pub(super) fn judge(kind: Kind, seen: &Transcript, findings: &mut Vec<Finding>) {
    let mut rule = |rule: &'static str, kept: bool, detail: String| {
        findings.push(Finding { dialogue: kind.name(), rule, kept, detail });
    };
    let exit = match &seen.exit {
        Ok(exit) => exit,
        Err(why) => return rule("starts", false, why.clone()),
    };
    rule("starts", true, "the agent starts".to_owned());
    let messages: Vec<&ChannelMessage> =
        seen.lines.iter().filter_map(|line| line.message.as_ref().ok()).collect();

    let broken: Vec<String> = seen
        .lines
        .iter()
        .filter_map(|line| line.message.as_ref().err().map(|fault| format!("byte {}: {fault}", line.offset)))
        .collect();
    rule("valid-lines", broken.is_empty(), or("every line of the signal file is a message", &broken));
    let tail = if seen.unterminated == 0 {
        Vec::new()
    } else {
        vec![format!("{} bytes follow the last newline", seen.unterminated)]
    };
    rule("newline", tail.is_empty(), or("every line ends in a newline", &tail));
    order(&messages, &mut rule);

    let want = if kind == Kind::Test { "test" } else { "phase" };
    let other: Vec<String> = messages
        .iter()
        .filter(|message| message.dispatch.as_str() != want)
        .map(|message| {
            format!(
                "`{}` has type \"{}\", dispatched was \"{want}\"",
                message.body.status(),
                message.dispatch.as_str()
            )
        })
        .collect();
    rule("echoes-type", other.is_empty(), or("each message echoes the dispatch type", &other));
    let odd: Vec<String> = messages
        .iter()
        .map(|m| m.ts.to_string())
        .filter(|ts| !is_wire_time(ts))
        .map(|ts| format!("{ts:?}"))
        .collect();
    rule("timestamps", odd.is_empty(), or("each `ts` is UTC with milliseconds and `Z`", &odd));
    exits(&messages, exit, seen, &mut rule);

    let end = messages.iter().map(|message| &message.body).find(|body| body.is_terminal());
    match kind {
        Kind::Test => {
            let completes = matches!(end, Some(ChannelBody::Complete { .. }));
            rule(
                "answers-test",
                completes,
                "a `test` message is answered with `ok`, then `complete`".to_owned(),
            );
            let work: Vec<String> =
                seen.handoffs.iter().map(|(channel, _)| format!("it wrote a handoff to {channel}")).collect();
            rule("test-does-no-work", work.is_empty(), or("a `test` message starts no work", &work));
        }
        Kind::Phase => handoffs(seen, EnvelopeType::Standard, "checked", &["checked--publisher"], &mut rule),
        Kind::Gate => {
            let channels = ["reviewer--publisher", "reviewer--developer", "reviewer--fixer"];
            handoffs(seen, EnvelopeType::Gate, "reviewer", &channels, &mut rule);
            verdict(end, &mut rule);
        }
    }
    rule(
        "own-files-only",
        seen.other_files.is_empty(),
        or("it writes nothing under .cliq but its signal file, handoffs and files", &seen.other_files),
    );
}

type Rule<'a> = dyn FnMut(&'static str, bool, String) + 'a;

/// Returns the expected behaviour, or the deviations from it.
fn or(should_be: &str, instead: &[String]) -> String {
    if instead.is_empty() { should_be.to_owned() } else { format!("{should_be}; but {}", instead.join("; ")) }
}

fn order(messages: &[&ChannelMessage], rule: &mut Rule<'_>) {
    let mut order = ChannelOrder::new();
    let violations: Vec<OrderViolation> =
        messages.iter().filter_map(|m| order.accept(&m.body).err()).collect();
    let of = |pick: fn(&OrderViolation) -> bool| -> Vec<String> {
        violations.iter().filter(|v| pick(v)).map(ToString::to_string).collect()
    };
    let mut acks = of(|v| matches!(v, OrderViolation::BeforeOk { .. }));
    if !messages.iter().any(|m| m.body == ChannelBody::Ok) {
        acks.push("there is no `ok`".to_owned());
    }
    rule("acks-first", acks.is_empty(), or("the first message is `ok`", &acks));
    let second = of(|v| matches!(v, OrderViolation::SecondOk));
    rule("one-ok", second.is_empty(), or("there is one `ok`", &second));
    let ends = messages.iter().filter(|m| m.body.is_terminal()).count();
    rule("one-end", ends == 1, format!("there is one `complete` or `error`; here are {ends}"));
    let after = of(|v| matches!(v, OrderViolation::AfterTerminal { .. }));
    rule("nothing-after-end", after.is_empty(), or("nothing follows the terminal message", &after));
}

fn exits(messages: &[&ChannelMessage], exit: &Exit, seen: &Transcript, rule: &mut Rule<'_>) {
    let completed = messages.iter().any(|m| matches!(m.body, ChannelBody::Complete { .. }));
    let (left, detail) = match exit {
        Exit::Stayed => (false, "it still ran 5 s after its terminal message"),
        Exit::TimedOut => (false, "it neither exited nor wrote a terminal message in time"),
        Exit::Status(_) | Exit::Signal => (true, "it exits within 5 s of its terminal message"),
    };
    rule("exits", left, detail.to_owned());
    if left && completed {
        let status = match exit {
            Exit::Status(code) => format!("exit status {code}"),
            _ => "a signal".to_owned(),
        };
        rule(
            "exit-status",
            matches!(exit, Exit::Status(0)),
            format!("exit status 0 after `complete`; here: {status}"),
        );
    }
    rule("leaves-nothing", !seen.left_processes, "no process of it is left when it has exited".to_owned());
}

fn handoffs(seen: &Transcript, kind: EnvelopeType, phase: &str, channels: &[&str], rule: &mut Rule<'_>) {
    let mut wrong = Vec::new();
    for (channel, envelope) in &seen.handoffs {
        if !channels.contains(&channel.as_str()) {
            wrong.push(format!("{channel} is not among the outgoing channels"));
        }
        match envelope {
            Err(why) => wrong.push(format!("{channel}/handoff.json: {why}")),
            Ok(envelope) if envelope.phase != phase => {
                wrong.push(format!(
                    "{channel}/handoff.json: `phase` is \"{}\", not \"{phase}\"",
                    envelope.phase
                ));
            }
            Ok(envelope) if kind == EnvelopeType::Standard && envelope.phase_type() != kind => {
                wrong.push(format!(
                    "{channel}/handoff.json: `phase_type` is \"{}\"",
                    envelope.phase_type().as_str()
                ));
            }
            Ok(_) => {}
        }
    }
    rule(
        "handoffs",
        wrong.is_empty(),
        or("each handoff is an envelope of this phase in one of its outgoing channels", &wrong),
    );
}

fn verdict(end: Option<&ChannelBody>, rule: &mut Rule<'_>) {
    let problem = match end {
        Some(ChannelBody::Complete { result }) => {
            match result.as_ref().and_then(|r| r.get("verdict")).cloned().map(Verdict::from_value) {
                None => Some("`complete` has no `result.verdict`".to_owned()),
                Some(Err(why)) => Some(why.to_string()),
                Some(Ok(Verdict { outcome: Outcome::Route(target), .. }))
                    if target != "developer" && target != "fixer" =>
                {
                    Some(format!("it routes to `{target}`, which is not among the route targets"))
                }
                Some(Ok(verdict)) => verdict
                    .target_beside_pass()
                    .map(|target| format!("it is a PASS with the target `{target}`")),
            }
        }
        // An agent may fail; then there is no verdict to look at.
        Some(ChannelBody::Error { .. }) => None,
        _ => Some("there is no `complete`".to_owned()),
    };
    rule(
        "verdict",
        problem.is_none(),
        or("a gate completes with a verdict that it may give", &problem.into_iter().collect::<Vec<_>>()),
    );
}

/// `2026-05-29T06:04:14.222Z`
fn is_wire_time(ts: &str) -> bool {
    let shape: String = ts.chars().map(|c| if c.is_ascii_digit() { '9' } else { c }).collect();
    shape == "9999-99-99T99:99:99.999Z" && cliq_protocol::Timestamp::parse(ts).is_ok()
}
