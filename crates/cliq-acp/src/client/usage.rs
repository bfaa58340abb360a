//! Tokens and cost of a turn. Agents report them in different places with different meanings; the caller knows which.

use serde_json::Value;

/// Meaning of the numbers that an agent reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UsageMeaning {
    /// The agent reports no tokens.
    #[default]
    None,
    /// `usage` of the prompt's answer is that of the turn (Claude, Codex).
    Turn,
    /// `usage` of the prompt's answer is that of the last model request only: a lower bound (OpenCode, Kilo).
    LastRequest,
    /// `usage` of the prompt's answer counts from the start of the process (Copilot, Vibe, Hermes).
    Cumulative,
    /// `_meta.quota.token_count` of the prompt's answer is that of the turn (Gemini).
    Quota,
    /// `_meta.usage` of message chunks is that of one model request each (Qwen).
    Chunks,
}

/// Numbers of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tokens {
    /// Input tokens, with those that were read from a cache.
    pub input: u64,
    /// Output tokens, with those of thoughts.
    pub output: u64,
    /// Input tokens that were read from a cache.
    pub cached: u64,
}

impl Tokens {
    /// Reads a `usage` object. Returns `None` if it has no number of tokens.
    pub(crate) fn parse(usage: &Value) -> Option<Self> {
        let number = |names: &[&str]| names.iter().find_map(|name| usage.get(name)?.as_u64());
        let input = number(&["inputTokens", "input_tokens"]);
        let output = number(&["outputTokens", "output_tokens"]);
        if input.is_none() && output.is_none() {
            return None;
        }
        let cached = number(&["cachedReadTokens", "cachedInputTokens", "cached_input_tokens"]).unwrap_or(0);
        let written = number(&["cachedWriteTokens", "cacheWriteInputTokens"]).unwrap_or(0);
        let (input, output) = (input.unwrap_or(0), output.unwrap_or(0));
        // Some agents count cached tokens as input, others beside it. The total tells.
        let total = number(&["totalTokens", "total_tokens"]);
        let beside = input.saturating_add(output).saturating_add(cached).saturating_add(written);
        let input = if total == Some(beside) { beside - output } else { input };
        Some(Self { input, output, cached: cached.min(input) })
    }

    fn plus(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            cached: self.cached.saturating_add(other.cached),
        }
    }

    /// Returns the growth since an earlier count. A smaller count is one that started again.
    fn since(self, earlier: Self) -> Self {
        if self.input < earlier.input || self.output < earlier.output {
            return self;
        }
        Self {
            input: self.input - earlier.input,
            output: self.output - earlier.output,
            cached: self.cached.saturating_sub(earlier.cached),
        }
    }
}

/// Amount of money or of another unit.
#[derive(Debug, Clone, PartialEq)]
pub struct Money {
    /// Amount.
    pub amount: f64,
    /// Currency code, or another unit such as `credits`.
    pub currency: String,
}

/// Usage of a turn.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TurnUsage {
    /// Tokens, or `None` if the agent reported none.
    pub tokens: Option<Tokens>,
    /// Whether the tokens are a lower bound.
    pub is_lower_bound: bool,
    /// Cost that the agent reported for the turn.
    pub cost: Option<Money>,
    /// Tokens in the context window, and the size of the window.
    pub context: Option<(u64, u64)>,
}

/// Counter of usage over the turns of one process. Pure.
#[derive(Debug, Clone, Default)]
pub struct UsageCounter {
    meaning: UsageMeaning,
    /// Last count of an agent that counts from the start.
    earlier: Tokens,
    /// Cost of the session before the turn.
    earlier_cost: f64,
    session_cost: Option<Money>,
    chunks: Option<Tokens>,
    answer: Option<Tokens>,
    context: Option<(u64, u64)>,
}

impl UsageCounter {
    /// Returns a counter.
    #[must_use]
    pub fn new(meaning: UsageMeaning) -> Self {
        Self { meaning, ..Self::default() }
    }

    /// Begins a turn.
    pub fn begin(&mut self) {
        self.earlier_cost = self.session_cost.as_ref().map_or(0.0, |cost| cost.amount);
        self.chunks = None;
        self.answer = None;
    }

    /// Counts a `session/update`.
    pub fn update(&mut self, update: &Value) {
        if let Some(usage) = update.pointer("/_meta/usage")
            && self.meaning == UsageMeaning::Chunks
            && let Some(tokens) = Tokens::parse(usage)
        {
            self.chunks = Some(self.chunks.unwrap_or_default().plus(tokens));
        }
        if update.get("sessionUpdate").and_then(Value::as_str) != Some("usage_update") {
            return;
        }
        if let (Some(used), Some(size)) =
            (update.get("used").and_then(Value::as_u64), update.get("size").and_then(Value::as_u64))
        {
            self.context = Some((used, size));
        }
        let amount = update.pointer("/cost/amount").and_then(Value::as_f64);
        let currency = update.pointer("/cost/currency").and_then(Value::as_str);
        if let (Some(amount), Some(currency)) =
            (amount.filter(|amount| amount.is_finite() && *amount >= 0.0), currency)
        {
            self.session_cost = Some(Money { amount, currency: currency.to_owned() });
        }
    }

    /// Counts the answer to the prompt.
    pub fn answer(&mut self, result: &Value) {
        let usage = match self.meaning {
            UsageMeaning::None | UsageMeaning::Chunks => None,
            UsageMeaning::Turn | UsageMeaning::LastRequest | UsageMeaning::Cumulative => result.get("usage"),
            UsageMeaning::Quota => result.pointer("/_meta/quota/token_count"),
        };
        self.answer = usage.and_then(Tokens::parse);
    }

    /// Ends the turn and returns its usage.
    pub fn finish(&mut self) -> TurnUsage {
        let answer = self.answer.take();
        let tokens = match self.meaning {
            UsageMeaning::None => None,
            UsageMeaning::Turn | UsageMeaning::LastRequest | UsageMeaning::Quota => answer,
            UsageMeaning::Cumulative => answer.map(|total| {
                let tokens = total.since(self.earlier);
                self.earlier = total;
                tokens
            }),
            UsageMeaning::Chunks => self.chunks.take(),
        };
        let cost = self.session_cost.as_ref().map(|cost| Money {
            amount: if cost.amount >= self.earlier_cost {
                cost.amount - self.earlier_cost
            } else {
                cost.amount
            },
            currency: cost.currency.clone(),
        });
        let is_lower_bound = tokens.is_some() && self.meaning == UsageMeaning::LastRequest;
        TurnUsage { tokens, is_lower_bound, cost, context: self.context }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn turn(counter: &mut UsageCounter, updates: &[Value], answer: &Value) -> TurnUsage {
        counter.begin();
        updates.iter().for_each(|update| counter.update(update));
        counter.answer(answer);
        counter.finish()
    }

    fn tokens(input: u64, output: u64, cached: u64) -> Option<Tokens> {
        Some(Tokens { input, output, cached })
    }

    #[test]
    fn each_meaning_gives_the_tokens_of_the_turn() {
        let usage =
            |input: u64, output: u64| json!({ "usage": { "inputTokens": input, "outputTokens": output } });
        let mut counter = UsageCounter::new(UsageMeaning::Turn);
        assert_eq!(turn(&mut counter, &[], &usage(10, 2)).tokens, tokens(10, 2, 0));
        assert_eq!(turn(&mut counter, &[], &usage(10, 2)).tokens, tokens(10, 2, 0));
        assert_eq!(turn(&mut counter, &[], &json!({ "usage": null })).tokens, None);

        let mut counter = UsageCounter::new(UsageMeaning::Cumulative);
        assert_eq!(turn(&mut counter, &[], &usage(1000, 20)).tokens, tokens(1000, 20, 0));
        assert_eq!(turn(&mut counter, &[], &usage(3000, 50)).tokens, tokens(2000, 30, 0));
        assert_eq!(turn(&mut counter, &[], &usage(500, 10)).tokens, tokens(500, 10, 0));

        let last = turn(&mut UsageCounter::new(UsageMeaning::LastRequest), &[], &usage(10, 2));
        assert!(last.is_lower_bound);

        let quota =
            json!({ "_meta": { "quota": { "token_count": { "input_tokens": 7, "output_tokens": 3 } } } });
        let mut counter = UsageCounter::new(UsageMeaning::Quota);
        assert_eq!(turn(&mut counter, &[], &quota).tokens, tokens(7, 3, 0));

        let chunk = json!({ "sessionUpdate": "agent_message_chunk", "_meta": { "usage": { "inputTokens": 5, "outputTokens": 1 } } });
        let mut counter = UsageCounter::new(UsageMeaning::Chunks);
        assert_eq!(turn(&mut counter, &[chunk.clone(), chunk], &json!({})).tokens, tokens(10, 2, 0));
        assert_eq!(turn(&mut counter, &[], &json!({})).tokens, None);

        let mut counter = UsageCounter::new(UsageMeaning::None);
        assert_eq!(turn(&mut counter, &[], &usage(10, 2)).tokens, None);
    }

    #[test]
    fn cached_tokens_are_part_of_the_input() {
        let beside =
            json!({ "inputTokens": 200, "outputTokens": 40, "cachedReadTokens": 1800, "totalTokens": 2040 });
        assert_eq!(Tokens::parse(&beside), tokens(2000, 40, 1800));
        let within =
            json!({ "inputTokens": 2000, "outputTokens": 40, "cachedReadTokens": 1800, "totalTokens": 2040 });
        assert_eq!(Tokens::parse(&within), tokens(2000, 40, 1800));
        let huge = json!({ "inputTokens": u64::MAX, "outputTokens": u64::MAX, "cachedReadTokens": u64::MAX });
        assert_eq!(Tokens::parse(&huge), tokens(u64::MAX, u64::MAX, u64::MAX));
        assert_eq!(Tokens::parse(&json!({ "inputTokens": -1, "outputTokens": "x" })), None);
    }

    #[test]
    fn cost_of_a_turn_is_the_growth_of_the_session() {
        let cost = |amount: f64| json!({ "sessionUpdate": "usage_update", "used": 5, "size": 10, "cost": { "amount": amount, "currency": "USD" } });
        let mut counter = UsageCounter::new(UsageMeaning::None);
        let first = turn(&mut counter, &[cost(0.25), cost(0.5)], &json!({}));
        assert_eq!(first.cost.map(|cost| cost.amount), Some(0.5));
        let second = turn(&mut counter, &[cost(0.75)], &json!({}));
        assert_eq!((second.cost.map(|cost| cost.amount), second.context), (Some(0.25), Some((5, 10))));
    }
}
