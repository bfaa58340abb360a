//! `rules`: a gate that decides from the command results alone.

use cliq_sdk::{CommandResult, GateContext, Verdict};
use serde_json::Value;

/// PASS when every command passes; else where the first failing command's rule says, else to the first route target;
/// ESCALATE where that is nowhere (docs/team-yml.md).
#[must_use]
pub fn decide(ctx: &GateContext) -> Verdict {
    if let Some(verdict) =
        ctx.phase().config.get("rules").and_then(Value::as_array).and_then(|r| by_condition(ctx, r))
    {
        return verdict;
    }
    let failed: Vec<&CommandResult> = ctx.checks().iter().filter(|check| !check.pass).collect();
    let skipped = ctx.checks().iter().filter(|check| check.was_skipped()).count();
    let n = ctx.checks().len();
    if failed.is_empty() {
        let note = if skipped == 0 { String::new() } else { format!(", {skipped} skipped") };
        return Verdict::pass(format!("{} of {n} commands pass{note}.", n - skipped));
    }
    let names = failed.iter().map(|check| check.label()).collect::<Vec<_>>().join(", ");
    let reason = format!("{} of {} commands fail: {names}.", failed.len(), n);
    let rules = ctx.phase().config.get("rules");
    let rule = failed.iter().find_map(|check| rules?.get(&check.name)?.as_str());
    match rule {
        Some("ESCALATE") => Verdict::escalate(reason),
        Some(target) => match ctx.route_targets().iter().find(|name| **name == target) {
            Some(target) => Verdict::route(target.clone(), reason),
            None => Verdict::escalate(format!(
                "{reason} The rule routes to `{target}`, where this gate may not route."
            )),
        },
        None => match ctx.route_targets().first() {
            Some(target) => Verdict::route(target.clone(), reason),
            None => Verdict::escalate(format!("{reason} There is nowhere to route to.")),
        },
    }
}

/// Verdict of the first condition that holds. The orchestrator evaluates conditions (docs/expressions.md).
fn by_condition(ctx: &GateContext, rules: &[Value]) -> Option<Verdict> {
    let rule = rules.iter().find(|rule| rule["holds"] == true)?;
    let condition = rule["if"].as_str().unwrap_or_default();
    let reason = match rule["reason"].as_str() {
        Some(reason) => format!("{reason} (`{condition}`)"),
        None => format!("`{condition}` holds."),
    };
    Some(match rule["to"].as_str().unwrap_or_default() {
        "PASS" => Verdict::pass(reason),
        "ESCALATE" => Verdict::escalate(reason),
        target => match ctx.route_targets().iter().find(|name| **name == target) {
            Some(target) => Verdict::route(target.clone(), reason),
            None => Verdict::escalate(format!(
                "{reason} The rule routes to `{target}`, where this gate may not route."
            )),
        },
    })
}
