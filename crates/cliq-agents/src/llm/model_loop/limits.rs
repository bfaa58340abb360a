//! Messages about limits that ended the work of a model.

use cliq_coder::Limit;

/// Describes a limit that was reached, and what raises it.
pub(super) fn message(limit: Limit, agent: &str, is_gate: bool) -> String {
    let left = if is_gate { "no verdict" } else { "partial handoff" };
    let remedy = match limit {
        Limit::Turns(_) => format!("a larger setting `agents.{agent}.max_turns` and `cliq run --resume` go on"),
        Limit::Tokens(_) => {
            "`cliq run --resume` with a larger `--budget-tokens`, or a larger `budget` of the phase in team.yml, goes on".to_owned()
        }
        Limit::Usd(_) => {
            "`cliq run --resume` with a larger `--budget-usd`, or a larger `budget` of the phase in team.yml, goes on".to_owned()
        }
        Limit::Context(_) => format!(
            "the conversation cannot be made shorter: give the server of the model a larger context, set `agents.{agent}.context_tokens` \
             to it, and `cliq run --resume` goes on"
        ),
    };
    format!("stopped at {limit}: {left}; {remedy}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_limit_value_and_remedy() {
        for (limit, parts) in [
            (Limit::Turns(3), ["stopped at max_turns (3): partial handoff", "`agents.a.max_turns`"]),
            (Limit::Tokens(500), ["stopped at budget.tokens (500): partial handoff", "`--budget-tokens`"]),
            (Limit::Usd(0.5), ["stopped at budget.usd (0.5): partial handoff", "`--budget-usd`"]),
            (
                Limit::Context(8),
                ["stopped at context_tokens (8): partial handoff", "`agents.a.context_tokens`"],
            ),
        ] {
            let text = message(limit, "a", false);
            assert!(parts.iter().all(|part| text.contains(part)) && text.contains("--resume"), "{text}");
            assert!(message(limit, "a", true).contains("no verdict"));
        }
    }
}
