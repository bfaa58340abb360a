//! Sentinel files: what their names say (docs/signals.md).

use crate::kind::SignalType;
use crate::signal::{NewSignal, PlanName, RejectedSignal, fields};

/// Prefix of the name of a signal of any type: `signal-TYPE-ID-PLAN`, with a unique ID without `-`.
const ANY: &str = "signal-";

/// A name for the file of a signal, unlike any other.
pub(crate) fn name(signal: &NewSignal) -> String {
    format!("{ANY}{}-{}-{}", signal.kind(), uuid::Uuid::now_v7().simple(), signal.plan())
}

/// Reads a file's name and contents as a signal.
///
/// # Errors
/// The name is not that of a sentinel file, or its type does not accept the contents.
pub(crate) fn read(name: &str, contents: &str) -> Result<NewSignal, RejectedSignal> {
    let refused = |problem: String| RejectedSignal { problems: vec![problem] };
    let plan = |text: &str| PlanName::parse(text).map_err(refused);
    if let Some(rest) = name.strip_prefix("implement-task-finished-w") {
        let numbers = number(rest).and_then(|(wave, rest)| {
            let (task, rest) = number(rest.strip_prefix("-t")?)?;
            Some((wave, task, rest.strip_prefix('-')?))
        });
        if let Some((wave, task, rest)) = numbers {
            let payload = numbered(contents, &[("wave_number", wave), ("task_number", task)]);
            return NewSignal::new(SignalType::ImplementTaskFinished, plan(rest)?, &payload);
        }
    } else if let Some((wave, rest)) = name.strip_prefix("implement-wave-").and_then(number)
        && let Some(rest) = rest.strip_prefix('-')
    {
        let payload = numbered(contents, &[("wave_number", wave)]);
        return NewSignal::new(SignalType::ImplementWave, plan(rest)?, &payload);
    }
    if let Some(rest) = name.strip_prefix(ANY)
        && let [kind, _, plan] = rest.splitn(3, '-').collect::<Vec<_>>()[..]
    {
        return NewSignal::parse(kind, plan, contents);
    }
    if let Some((kind, rest)) = of_type(name) {
        return NewSignal::new(kind, plan(rest)?, contents);
    }
    let types: Vec<String> = SignalType::all()
        .filter(|kind| !has_numbers(*kind))
        .map(|kind| format!("{}-PLAN", kind.as_str().replace('_', "-")))
        .collect();
    Err(refused(format!(
        "{name:?} is not the name of a signal file; the names are: {}, implement-wave-N-PLAN, implement-task-finished-wN-tN-PLAN, signal-TYPE-ID-PLAN",
        types.join(", ")
    )))
}

/// Reads `TYPE-PLAN`. A type is written with `-` or `_`, or by an alias. The longest type counts: the plan of
/// `review-changes-requested-PLAN` is `PLAN`.
fn of_type(name: &str) -> Option<(SignalType, &str)> {
    let matching =
        SignalType::spellings().filter(|(_, kind)| !has_numbers(*kind)).filter_map(|(spelling, kind)| {
            let written = name.get(..spelling.len())?;
            let rest = name[spelling.len()..].strip_prefix('-')?;
            (written.replace('-', "_") == spelling).then_some((spelling.len(), kind, rest))
        });
    matching.max_by_key(|(length, ..)| *length).map(|(_, kind, rest)| (kind, rest))
}

/// Whether the name of the file contains the numbers that the type needs.
fn has_numbers(kind: SignalType) -> bool {
    matches!(kind, SignalType::ImplementWave | SignalType::ImplementTaskFinished)
}

/// Digits at the beginning, and what follows them.
fn number(text: &str) -> Option<(u32, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    Some((text[..digits].parse().ok()?, &text[digits..]))
}

/// The payload of a file whose name has numbers: they override the contents.
fn numbered(contents: &str, numbers: &[(&str, u32)]) -> String {
    let mut payload = fields(contents);
    payload.extend(numbers.iter().map(|(key, number)| ((*key).to_owned(), (*number).into())));
    serde_json::Value::Object(payload).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(name: &str, contents: &str) -> Result<String, String> {
        let signal = read(name, contents).map_err(|refused| refused.to_string())?;
        Ok(format!("{} {} {}", signal.kind(), signal.plan(), signal.payload_text()))
    }

    #[test]
    fn names() {
        for (name, contents, expected) in [
            ("planner-finished-my-plan", "", "planner_finished my-plan "),
            ("planner-finished-my-plan.md", "", "planner_finished my-plan "),
            ("review-changes-requested-p", "fix it\n", "review_changes_requested p {\"body\":\"fix it\"}"),
            ("review-changes-requested", "", "review_changes_requested requested "),
            ("review_changes_requested-p", "", "review_changes_requested p "),
            ("readiness-approved-p", "", "verify_approved p "),
            ("master-approved-p", "", "verify_approved p "),
            ("readiness-changes-p", "", "verify_failed p "),
            ("readiness-changes-requested-p", "no", "verify_failed p {\"body\":\"no\"}"),
            ("architect-finished-p", "", "elaborator_finished p "),
            ("plan-start-p", "", "plan_start p "),
            ("planner-draft-finished-p", "{\"planner_id\":2}", "planner_draft_finished p {\"planner_id\":2}"),
            ("retry-wave-p", "", "retry_wave p "),
            ("review-changes-p", "fix it\n", "review_changes_requested p {\"body\":\"fix it\"}"),
            ("verify-failed-p", "{\"body\":\"no\"}", "verify_failed p {\"body\":\"no\"}"),
            ("implement-wave-2-p", "", "implement_wave p {\"wave_number\":2}"),
            (
                "implement-task-finished-w2-t3-p",
                "{\"wave_number\":9,\"x\":1}",
                "implement_task_finished p {\"wave_number\":2,\"x\":1,\"task_number\":3}",
            ),
            ("implement-finished-wave-1", "", "implement_finished wave-1 "),
            ("signal-verify_failed-7-my-plan", "no", "verify_failed my-plan {\"body\":\"no\"}"),
        ] {
            assert_eq!(summary(name, contents).as_deref(), Ok(expected), "{name}");
        }
        for name in [
            "",
            "notes.txt",
            "planner-finished-",
            "planner-finished-a b",
            "implement-wave-0-p",
            "implement-wave-x-p",
            "implement-task-finished-w1-p",
            "implement-task-finished-w1-t0-p",
            "cancel-p",
            "signal-",
            "signal-verify_failed-p",
            "signal-cancelled-7-p",
            "review-changes-requested-",
            "review-approved",
            "réview-approved-p",
            "retry-wave-",
        ] {
            assert!(summary(name, "").is_err(), "{name:?}");
        }
        let signal = NewSignal::parse("planner_draft_finished", "my-plan", "{\"planner_id\":2}").unwrap();
        assert_eq!(read(&name(&signal), &signal.payload_text()), Ok(signal));
        assert!(summary("elaborator-finished-p", "text").is_err(), "it takes no payload");
    }
}
