//! Limits of an activation.

use cliq_protocol::{Budget, Price, Usage};

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
        }
    }
}

impl Limits {
    /// Cost of a usage in US dollars: that of the provider, otherwise by the price.
    fn cost(&self, usage: &Usage) -> Option<f64> {
        usage.cost_usd.or_else(|| self.price.map(|price| price.cost(usage)))
    }

    /// Whether usage has reached the budget.
    pub(crate) fn is_spent(&self, spent: &Usage) -> bool {
        self.budget.tokens.is_some_and(|limit| spent.tokens() >= limit)
            || self.budget.usd.zip(self.cost(spent)).is_some_and(|(limit, cost)| cost >= limit)
    }

    /// Whether two more replies like the last one reach the budget.
    pub(crate) fn is_near(&self, spent: &Usage, last: &Usage) -> bool {
        let tokens = |limit: u64| spent.tokens().saturating_add(last.tokens().saturating_mul(2)) >= limit;
        let usd = |limit: f64| {
            self.cost(spent).zip(self.cost(last)).is_some_and(|(spent, last)| spent + 2.0 * last >= limit)
        };
        last.tokens() > 0 && (self.budget.tokens.is_some_and(tokens) || self.budget.usd.is_some_and(usd))
    }
}
