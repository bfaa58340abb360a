//! Number of further repeats after which a comparison is probably conclusive.

use super::distribution::{normal_cdf, t_quantile};
use super::interval::CONFIDENCE;

/// Probability with which the advised number of repeats suffices.
const ASSURANCE: f64 = 0.95;
/// Largest number of repeats that is searched for.
const MOST: u64 = 1_000_000;

/// Returns the smallest number of further repeats of `cases` cases after which the difference of two pass rates is probably either
/// larger than chance or smaller than `margin`. `None` if more than a million would be needed.
///
/// The true difference is taken as normal around the measured one; so the answer allows for a measurement that was lucky.
#[must_use]
pub fn repeats_needed(first: (u64, u64), second: (u64, u64), cases: u64, margin: f64) -> Option<u64> {
    let before = first.1.min(second.1);
    if before == 0 || cases == 0 {
        return None;
    }
    let raw = |(passed, trials): (u64, u64)| passed as f64 / trials as f64;
    // With one success and one failure more: a rate of 0 or 1 has a variance too.
    let smooth = |(passed, trials): (u64, u64)| (passed as f64 + 1.0) / (trials as f64 + 2.0);
    let variance = [first, second].map(smooth).iter().map(|rate| rate * (1.0 - rate)).sum::<f64>();
    let difference = raw(first) - raw(second);
    let width = t_quantile(1.0 - (1.0 - CONFIDENCE) / 2.0, cases.saturating_sub(1).max(4));
    let suffices = |repeats: u64| {
        let (n0, n1) = (before as f64, (repeats * cases) as f64);
        let half = width * (variance / (n0 + n1)).sqrt();
        // Distribution of the difference of all trials, given those so far.
        let spread = (n1 / (n0 + n1)) * (variance / n0 + variance / n1).sqrt();
        let below = |value: f64| normal_cdf((value - difference) / spread);
        // A difference in between decides nothing. Beyond `half` it is larger than chance, within `small` smaller than the margin.
        let small = (margin - half).clamp(0.0, half);
        let undecided = below(half) - below(small) + below(-small) - below(-half);
        1.0 - undecided >= ASSURANCE
    };
    // The probability grows with the number of repeats, but for rounding.
    let mut high = 1;
    while !suffices(high) {
        high *= 2;
        if high > MOST {
            return None;
        }
    }
    let mut low = high / 2;
    while high - low > 1 {
        let middle = low.midpoint(high);
        if suffices(middle) { high = middle } else { low = middle }
    }
    Some(high)
}
