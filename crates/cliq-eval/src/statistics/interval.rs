//! Confidence intervals of proportions and of their difference.

use serde::{Deserialize, Serialize};

/// Confidence level of every interval.
pub const CONFIDENCE: f64 = 0.95;
/// Quantile of the normal distribution at 0.975.
const Z: f64 = 1.959_963_984_540_054;

/// Interval with both ends included. In JSON `[low, high]`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(from = "(f64, f64)", into = "(f64, f64)")]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl From<(f64, f64)> for Interval {
    fn from((low, high): (f64, f64)) -> Self {
        Self { low, high }
    }
}

impl From<Interval> for (f64, f64) {
    fn from(interval: Interval) -> Self {
        (interval.low, interval.high)
    }
}

impl Interval {
    /// Whether a value is in the interval.
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

/// Returns the Wilson score interval of a proportion. The whole range from 0 to 1 if there are no trials.
#[must_use]
pub fn wilson(passed: u64, trials: u64) -> Interval {
    if trials == 0 {
        return Interval { low: 0.0, high: 1.0 };
    }
    let n = trials as f64;
    let p = passed as f64 / n;
    let scale = 1.0 + Z * Z / n;
    let center = (p + Z * Z / (2.0 * n)) / scale;
    let half = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt() / scale;
    // At the ends rounding errors must not leave 0 and 1 outside.
    let low = if passed == 0 { 0.0 } else { (center - half).max(0.0) };
    let high = if passed == trials { 1.0 } else { (center + half).min(1.0) };
    Interval { low, high }
}

/// Returns Newcombe's hybrid score interval of the difference of two independent proportions, first minus second.
#[must_use]
pub fn newcombe(first: (u64, u64), second: (u64, u64)) -> Interval {
    let rate = |(passed, trials): (u64, u64)| if trials == 0 { 0.5 } else { passed as f64 / trials as f64 };
    let (a, b) = (rate(first), rate(second));
    let (wa, wb) = (wilson(first.0, first.1), wilson(second.0, second.1));
    let below = ((a - wa.low).powi(2) + (wb.high - b).powi(2)).sqrt();
    let above = ((wa.high - a).powi(2) + (b - wb.low).powi(2)).sqrt();
    Interval { low: (a - b - below).max(-1.0), high: (a - b + above).min(1.0) }
}
