//! Usage of runs, summed.

use std::collections::BTreeMap;

use cliq_protocol::TeamName;

use crate::run::RunTotals;

/// Usage of the runs of a team that were requested on a day.
#[derive(Debug, Clone, PartialEq)]
pub struct DayTotals {
    /// Day in UTC, as YYYY-MM-DD.
    pub day: String,
    /// Name of the team.
    pub team: TeamName,
    /// Number of runs.
    pub runs: u64,
    /// Tokens and cost.
    pub totals: RunTotals,
}

/// Usage of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelTotals {
    /// Name of the model.
    pub model: String,
    /// Number of runs that used it.
    pub runs: u64,
    /// Tokens and cost.
    pub totals: RunTotals,
}

/// Usage of runs since a time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct UsageTotals {
    /// By day and team, in this order.
    pub days: Vec<DayTotals>,
    /// By model. Runs that have not ended are not counted.
    pub models: Vec<ModelTotals>,
}

impl UsageTotals {
    /// Sums by team, in the order of names.
    #[must_use]
    pub fn by_team(&self) -> Vec<(String, u64, RunTotals)> {
        self.by(|row| row.team.as_str())
    }

    /// Sums by day, in the order of time.
    #[must_use]
    pub fn by_day(&self) -> Vec<(String, u64, RunTotals)> {
        self.by(|row| &row.day)
    }

    fn by(&self, key: impl Fn(&DayTotals) -> &str) -> Vec<(String, u64, RunTotals)> {
        let mut sums = BTreeMap::<&str, (u64, RunTotals)>::new();
        for row in &self.days {
            let (runs, totals) = sums.entry(key(row)).or_default();
            *runs += row.runs;
            totals.add(&row.totals);
        }
        sums.into_iter().map(|(key, (runs, totals))| (key.to_owned(), runs, totals)).collect()
    }
}

impl RunTotals {
    /// Reads `tokens_in`, `tokens_out` and `cost_usd` of a document of usage. What it does not have is 0 or unknown.
    #[must_use]
    pub fn of_document(usage: &serde_json::Value) -> Self {
        let number = |key: &str| usage[key].as_u64().unwrap_or(0);
        Self {
            tokens_in: number("tokens_in"),
            tokens_out: number("tokens_out"),
            cost_usd: usage["cost_usd"].as_f64(),
        }
    }

    /// Returns the tokens of prompts and replies together.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.tokens_in + self.tokens_out
    }

    /// Adds other totals. A cost is a lower bound if one of them is not known.
    pub fn add(&mut self, other: &Self) {
        self.tokens_in += other.tokens_in;
        self.tokens_out += other.tokens_out;
        self.cost_usd = match (self.cost_usd, other.cost_usd) {
            (None, None) => None,
            (a, b) => Some(a.unwrap_or(0.0) + b.unwrap_or(0.0)),
        };
    }
}
