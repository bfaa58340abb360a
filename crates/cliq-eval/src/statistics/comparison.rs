//! Comparison of two variants on the same cases.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::bootstrap::bootstrap_difference;
use super::distribution::mcnemar_exact;
use super::interval::{Interval, newcombe};
use super::repeats::repeats_needed;

/// Difference of pass rates that is too small to matter, unless the suite says otherwise.
pub const DEFAULT_MARGIN: f64 = 0.1;
/// Fewest cases for which cases are resampled. With fewer, trials are taken as independent.
const FEWEST_CASES: usize = 8;
/// Largest p-value of a difference.
const ALPHA: f64 = 0.05;

/// Outcomes of two variants on one case, `true` for a pass. Outcomes with the same index are a pair.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PairedCase {
    /// Outcomes of the first variant.
    pub first: Vec<bool>,
    /// Outcomes of the second variant.
    pub second: Vec<bool>,
}

/// Conclusion of a comparison. Claims no more than the interval and the test both support.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "conclusion", rename_all = "snake_case")]
pub enum Conclusion {
    /// The first variant passes more often.
    Better,
    /// The first variant passes less often.
    Worse,
    /// The pass rates differ by less than the margin.
    NoLargerDifference {
        /// Margin, from 0 to 1.
        margin: f64,
    },
    /// The trials do not decide.
    MoreRepeats {
        /// Number of further repeats that probably decide; `None` if there are more than a million, or no trials yet.
        repeats: Option<u64>,
    },
}

/// Comparison of a first with a second variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Pass rate of the first minus that of the second variant.
    pub difference: f64,
    /// Interval of the difference.
    pub difference_interval: Interval,
    /// Method of the interval: `bootstrap` (by case) or `newcombe` (fewer than eight cases).
    pub method: String,
    /// Pairs in which only the first variant passed.
    pub only_first: u64,
    /// Pairs in which only the second variant passed.
    pub only_second: u64,
    /// P-value of McNemar's exact test.
    pub p_value: f64,
    /// Cases with trials of both variants.
    pub cases: u64,
    /// Conclusion.
    #[serde(flatten)]
    pub conclusion: Conclusion,
}

/// Compares two variants. `margin` is the difference of pass rates that is too small to matter. `comparisons` is the number of comparisons
/// that are reported together: the more there are, the smaller the p-value that a difference needs (Bonferroni).
#[must_use]
pub fn compare(cases: &[PairedCase], margin: f64, comparisons: usize) -> Comparison {
    let cases: Vec<&PairedCase> =
        cases.iter().filter(|case| !case.first.is_empty() && !case.second.is_empty()).collect();
    let rate = |outcomes: &[bool]| passed(outcomes) as f64 / outcomes.len() as f64;
    let total = |side: fn(&PairedCase) -> &[bool]| {
        cases
            .iter()
            .fold((0, 0), |(good, all), case| (good + passed(side(case)), all + side(case).len() as u64))
    };
    let (first, second) = (total(|case| &case.first), total(|case| &case.second));
    let differences: Vec<f64> = cases.iter().map(|case| rate(&case.first) - rate(&case.second)).collect();
    let by_case = (differences.len() >= FEWEST_CASES).then(|| bootstrap_difference(&differences)).flatten();
    let (interval, method) = match by_case {
        Some(interval) => (interval, "bootstrap"),
        None => (newcombe(first, second), "newcombe"),
    };
    let difference = match differences.len() {
        0 => 0.0,
        n => differences.iter().sum::<f64>() / n as f64,
    };
    let pairs = || cases.iter().flat_map(|case| case.first.iter().zip(&case.second));
    let count =
        |a: bool, b: bool| pairs().filter(|(first, second)| (**first, **second) == (a, b)).count() as u64;
    let (only_first, only_second) = (count(true, false), count(false, true));
    let p_value = mcnemar_exact(only_first, only_second);
    let is_significant = p_value < ALPHA / comparisons.max(1) as f64;
    let conclusion = if is_significant && interval.low > 0.0 {
        Conclusion::Better
    } else if is_significant && interval.high < 0.0 {
        Conclusion::Worse
    } else if !cases.is_empty() && interval.low > -margin && interval.high < margin {
        Conclusion::NoLargerDifference { margin }
    } else {
        Conclusion::MoreRepeats { repeats: repeats_needed(first, second, cases.len() as u64, margin) }
    };
    Comparison {
        difference,
        difference_interval: interval,
        method: method.to_owned(),
        only_first,
        only_second,
        p_value,
        cases: cases.len() as u64,
        conclusion,
    }
}

fn passed(outcomes: &[bool]) -> u64 {
    outcomes.iter().filter(|outcome| **outcome).count() as u64
}

impl Comparison {
    /// Returns the conclusion as a sentence about the variants with these names.
    #[must_use]
    pub fn sentence(&self, first: &str, second: &str) -> String {
        let points = |value: f64| Points(value.abs());
        let Interval { low, high } = self.difference_interval;
        match self.conclusion {
            Conclusion::Better => format!(
                "{first} is better than {second}: it passes {} more often ({} to {}, {}).",
                points(self.difference),
                points(low),
                points(high),
                PValue(self.p_value)
            ),
            Conclusion::Worse => format!(
                "{first} is worse than {second}: it passes {} less often ({} to {}, {}).",
                points(self.difference),
                points(high),
                points(low),
                PValue(self.p_value)
            ),
            Conclusion::NoLargerDifference { margin } => {
                format!("{first} and {second} do not differ by more than {}.", points(margin))
            }
            Conclusion::MoreRepeats { repeats: Some(1) } => {
                format!("{first} and {second}: not decided. About 1 more repeat is needed.")
            }
            Conclusion::MoreRepeats { repeats: Some(n) } => {
                format!("{first} and {second}: not decided. About {n} more repeats are needed.")
            }
            Conclusion::MoreRepeats { repeats: None } => {
                format!(
                    "{first} and {second}: not decided, and too few trials to say how many more are needed."
                )
            }
        }
    }
}

/// Difference of rates in percentage points.
struct Points(f64);

impl fmt::Display for Points {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.0} points", self.0 * 100.0)
    }
}

/// P-value with as many digits as are of use.
struct PValue(f64);

impl fmt::Display for PValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < 0.001 { f.write_str("p < 0.001") } else { write!(f, "p = {:.3}", self.0) }
    }
}
