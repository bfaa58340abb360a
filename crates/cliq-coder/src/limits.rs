//! Limits of an activation.

use cliq_protocol::{Budget, Price, Usage};

use crate::outcome::Limit;

/// Limits of an activation.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// Maximum number of replies, the final one included.
    pub max_turns: u32,
    /// Maximum number of tokens of a request and its reply.
    pub context_tokens: u64,
    /// Whether [`Self::context_tokens`] is known, and no guess.
    pub knows_context: bool,
    /// Number of these tokens that are kept free for the reply.
    pub reply_tokens: u64,
    /// Number of bytes that each request has beside the conversation: the descriptions of tools.
    pub fixed_bytes: usize,
    /// Remaining budget.
    pub budget: Budget,
    /// Price of the model, for a budget in US dollars.
    pub price: Option<Price>,
    /// Whether the model may call tools.
    pub has_tools: bool,
    /// Tool whose first call with a good result is the answer.
    pub answer_tool: Option<&'static str>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_turns: 200,
            context_tokens: 128_000,
            knows_context: false,
            reply_tokens: 16_000,
            fixed_bytes: 0,
            budget: Budget::default(),
            price: None,
            has_tools: false,
            answer_tool: None,
        }
    }
}

impl Limits {
    /// Cost of a usage in US dollars: that of the provider, otherwise by the price.
    fn cost(&self, usage: &Usage) -> Option<f64> {
        usage.cost_usd.or_else(|| self.price.map(|price| price.cost(usage)))
    }

    /// Returns the budget that usage has reached.
    pub(crate) fn spent(&self, spent: &Usage) -> Option<Limit> {
        let tokens = self.budget.tokens.filter(|limit| spent.tokens() >= *limit);
        let usd = self.budget.usd.filter(|limit| self.cost(spent).is_some_and(|cost| cost >= *limit));
        tokens.map(Limit::Tokens).or(usd.map(Limit::Usd))
    }

    /// Number of tokens that the budget leaves for the reply to a request of `input` tokens. `None` without a budget.
    pub(crate) fn left_for_reply(&self, spent: &Usage, input: u64) -> Option<u64> {
        let tokens =
            self.budget.tokens.map(|limit| limit.saturating_sub(spent.tokens()).saturating_sub(input));
        let usd = self.budget.usd.zip(self.price).zip(self.cost(spent)).map(|((limit, price), cost)| {
            let request = price.cost(&Usage { tokens_in: input, ..Usage::default() });
            let left = (limit - cost - request).max(0.0);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
            let tokens = (left / price.output.max(1e-9) * 1e6) as u64;
            tokens
        });
        tokens.into_iter().chain(usd).min()
    }

    /// Returns the budget that two more replies like the last one reach.
    pub(crate) fn near(&self, spent: &Usage, last: &Usage) -> Option<Limit> {
        if last.tokens() == 0 {
            return None;
        }
        let expected = spent.tokens().saturating_add(last.tokens().saturating_mul(2));
        let tokens = self.budget.tokens.filter(|limit| expected >= *limit);
        let expected = self.cost(spent).zip(self.cost(last)).map(|(spent, last)| spent + 2.0 * last);
        let usd = self.budget.usd.filter(|limit| expected.is_some_and(|expected| expected >= *limit));
        tokens.map(Limit::Tokens).or(usd.map(Limit::Usd))
    }
}
