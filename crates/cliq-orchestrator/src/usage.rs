//! The usage of a phase or a run: sums of what agents report, by model.

use cliq_protocol::Usage;
use serde::{Deserialize, Serialize};

/// The usage of a phase or a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct UsageSummary {
    /// Tokens of input, cached ones included.
    pub tokens_in: u64,
    /// Tokens of output.
    pub tokens_out: u64,
    /// The part of the input that was read from a cache, as far as it is known.
    pub tokens_cached: u64,
    /// The cost in US dollars; `None` if a part of it is unknown.
    pub cost_usd: Option<f64>,
    /// The same for each model.
    pub models: Vec<Usage>,
}

impl UsageSummary {
    /// The summary of reports.
    #[must_use]
    pub fn of<'a>(reports: impl IntoIterator<Item = &'a Usage>) -> Self {
        let mut summary = Self::default();
        reports.into_iter().for_each(|usage| summary.add(usage));
        summary
    }

    /// Adds a report.
    pub fn add(&mut self, usage: &Usage) {
        let known_before = self.models.is_empty() || self.cost_usd.is_some();
        self.tokens_in = self.tokens_in.saturating_add(usage.tokens_in);
        self.tokens_out = self.tokens_out.saturating_add(usage.tokens_out);
        self.tokens_cached = self.tokens_cached.saturating_add(usage.tokens_cached.unwrap_or(0));
        let before = self.cost_usd.unwrap_or(0.0);
        self.cost_usd = usage.cost_usd.filter(|_| known_before).map(|cost| before + cost);
        let same = |known: &&mut Usage| known.provider == usage.provider && known.model == usage.model;
        match self.models.iter_mut().find(same) {
            Some(known) => known.add(usage),
            None => self.models.push(usage.clone()),
        }
    }

    /// Adds another summary.
    pub fn merge(&mut self, other: &Self) {
        other.models.iter().for_each(|usage| self.add(usage));
    }

    /// All tokens, of input and output.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.tokens_in.saturating_add(self.tokens_out)
    }

    /// The summary as one report, as the agent of a team phase reports the usage of its team.
    #[must_use]
    pub fn as_usage(&self) -> Usage {
        let mut sum = Usage::default();
        self.models.iter().for_each(|usage| sum.add(usage));
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_is_known_only_as_a_whole() {
        let usage = |model: &str, cost_usd| Usage {
            model: Some(model.to_owned()),
            tokens_in: 2,
            tokens_out: 1,
            cost_usd,
            ..Usage::default()
        };
        let mut summary =
            UsageSummary::of([&usage("a", Some(1.0)), &usage("b", Some(0.5)), &usage("a", Some(1.0))]);
        assert_eq!((summary.tokens(), summary.cost_usd, summary.models.len()), (9, Some(2.5), 2));
        summary.merge(&UsageSummary::of([&usage("b", None)]));
        assert_eq!((summary.tokens(), summary.cost_usd), (12, None));
        summary.add(&usage("a", Some(1.0)));
        assert_eq!(summary.cost_usd, None, "what was unknown stays unknown");
        assert_eq!(summary.models[0].cost_usd, Some(3.0));
        assert_eq!(summary.as_usage().tokens(), 15);
    }
}
