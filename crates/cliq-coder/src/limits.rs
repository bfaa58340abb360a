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
