//! Conditions, lists and retries of a phase as they stand in team.yml (docs/expressions.md).

use std::collections::BTreeSet;
use std::time::Duration;

use cliq_expr::{Expression, Kind as ValueKind};

use crate::fields;
use crate::model::{FailureCause, Retry};
use cliq_document::Kind;
use cliq_document::{Diagnostic, did_you_mean};
use cliq_document::{Located, Record};

/// Largest delay between two attempts.
const MAX_DELAY: Duration = Duration::from_secs(7 * 24 * 3600);

/// Expressions of a phase, each with its place.
#[derive(Default)]
pub(crate) struct RawConditions {
    pub(crate) when: Option<Located<Expression>>,
    pub(crate) for_each: Option<Located<Expression>>,
    pub(crate) rules: Vec<RawRule>,
    pub(crate) retry: Option<Retry>,
}

/// An entry of a list of rules.
pub(crate) struct RawRule {
    pub(crate) condition: Located<Expression>,
    pub(crate) to: Located<String>,
    pub(crate) reason: Option<String>,
}

impl RawConditions {
    /// Reads the fields of a phase. Mistakes of syntax and of type are reported.
    pub(crate) fn read(record: &Record<'_>, problems: &mut Vec<Diagnostic>) -> Self {
        Self {
            when: expression(record, "when", ValueKind::Bool, problems),
            for_each: expression(record, "for_each", ValueKind::List, problems),
            rules: read_rules(record, problems),
            retry: read_retry(record, problems),
        }
    }
}

fn expression(
    record: &Record<'_>,
    field: &str,
    wanted: ValueKind,
    problems: &mut Vec<Diagnostic>,
) -> Option<Located<Expression>> {
    let Located { value, span } = record.text(field)?;
    let expression = match Expression::parse(&value) {
        Ok(expression) => expression,
        Err(error) => {
            let place = match error.line {
                1 => format!("at character {}", error.column),
                line => format!("in its line {line} at character {}", error.column),
            };
            let message = format!("`{field}` is not an expression: {place}: {}", error.message);
            problems.push(Diagnostic::error(
                "invalid-expression",
                span,
                message,
                "docs/expressions.md in the repository of cliq describes expressions",
            ));
            return None;
        }
    };
    let found = expression.kind();
    if found != wanted && found != ValueKind::Unknown {
        let message = format!("`{field}` needs {}, and `{value}` is {}", wanted.noun(), found.noun());
        let help = match (wanted, found) {
            (ValueKind::Bool, ValueKind::Text) => format!("compare it: `{value} == \"…\"`"),
            (ValueKind::Bool, ValueKind::Number) => format!("compare it: `{value} > 0`"),
            (ValueKind::Bool, ValueKind::List) => format!("compare its size: `size({value}) > 0`"),
            (ValueKind::List, _) => "write a list, such as `handoff.PHASE.items`".to_owned(),
            _ => "write a comparison".to_owned(),
        };
        // Its names are checked all the same: a mistake in them may be the cause.
        problems.push(Diagnostic::error("expression-type", span, message, help));
    }
    Some(Located { value: expression, span })
}

fn read_rules(record: &Record<'_>, problems: &mut Vec<Diagnostic>) -> Vec<RawRule> {
    let mut rules = Vec::new();
    for node in record.list("rules") {
        let Some(entry) = Record::read(node, fields::RULE, "a rule", problems) else { continue };
        let condition = expression(&entry, "if", ValueKind::Bool, problems);
        let (Some(condition), Some(to)) = (condition, entry.text("to")) else { continue };
        rules.push(RawRule { condition, to, reason: entry.text("reason").map(|reason| reason.value) });
    }
    rules
}

fn read_retry(record: &Record<'_>, problems: &mut Vec<Diagnostic>) -> Option<Retry> {
    let node = record.node("retry").filter(|node| matches!(node.kind, Kind::Map(_)))?;
    let retry = Record::read(node, fields::RETRY, "`retry`", problems)?;
    let backoff = match retry.text("backoff") {
        None => 1.0,
        Some(text) => match (text.value.as_str(), text.value.parse::<f64>()) {
            ("constant", _) => 1.0,
            ("exponential", _) => 2.0,
            (_, Ok(factor)) if (1.0..=10.0).contains(&factor) => factor,
            _ => {
                let message = format!("`backoff` cannot be {:?}", text.value);
                let help = "write a factor from 1 to 10, `constant` or `exponential`";
                problems.push(Diagnostic::error("invalid-value", text.span, message, help));
                1.0
            }
        },
    };
    let delay = retry.duration("delay").unwrap_or_default();
    if delay > MAX_DELAY
        && let Some(node) = retry.node("delay")
    {
        let message = "`delay` is longer than 7 days";
        problems.push(Diagnostic::error("out-of-range", node.span, message, "write 7d or less"));
    }
    let mut on = BTreeSet::new();
    let words: Vec<&str> = FailureCause::ALL.iter().map(|cause| cause.as_str()).collect();
    for word in retry.texts("on") {
        match FailureCause::parse(&word.value) {
            Some(cause) => {
                on.insert(cause);
            }
            None => {
                let message = format!("`on` cannot contain {:?}", word.value);
                let help = did_you_mean(&word.value, &words);
                problems.push(Diagnostic::error("invalid-value", word.span, message, help));
            }
        }
    }
    if on.is_empty() {
        on.extend(FailureCause::ALL);
    }
    let attempts = retry.integer("attempts").and_then(|n| u32::try_from(n).ok())?;
    Some(Retry { attempts, delay, backoff, on, max_delay: MAX_DELAY })
}
