//! The usage of an activation: the sum over its calls, reported while it grows.

use cliq_sdk::{Reporter, Usage};

/// Adds up the usage of an activation and reports it, so that the orchestrator can keep a budget.
pub(crate) struct Meter<'a> {
    reporter: &'a Reporter,
    /// The usage of calls that have ended.
    settled: Usage,
    /// The usage of the current call so far.
    current: Usage,
}

impl<'a> Meter<'a> {
    pub(crate) fn new(reporter: &'a Reporter) -> Self {
        Self { reporter, settled: Usage::default(), current: Usage::default() }
    }

    /// The current call has used this much so far.
    pub(crate) fn report(&mut self, usage: Usage) {
        if usage.tokens() == 0 || usage == self.current {
            return;
        }
        self.current = usage;
        // Where the channel cannot be written, the end of the phase fails too, and says so.
        let _ = self.reporter.usage(&self.total());
    }

    /// The current call has ended.
    pub(crate) fn settle(&mut self) {
        self.settled = self.total();
        self.current = Usage::default();
    }

    /// The usage of the activation so far.
    pub(crate) fn total(&self) -> Usage {
        let mut total = self.settled.clone();
        if self.current.tokens() > 0 {
            total.add(&self.current);
        }
        total
    }
}

/// A line for the log: tokens, and the cost where it is known.
pub(crate) fn line(usage: &Usage) -> String {
    let cached = match usage.tokens_cached {
        Some(cached @ 1..) => format!(" ({cached} cached)"),
        _ => String::new(),
    };
    let cost = usage.cost_usd.map(|cost| format!(", {cost:.4} USD")).unwrap_or_default();
    let estimated = if usage.estimated { ", estimated" } else { "" };
    format!("[{} tokens in{cached}, {} out{cost}{estimated}]", usage.tokens_in, usage.tokens_out)
}
