//! Paired bootstrap by case.

use super::distribution::{normal_cdf, t_quantile};
use super::interval::{CONFIDENCE, Interval};
use super::summary::quantile;

/// Number of resamples.
const RESAMPLES: usize = 2000;
/// Seed of the generator, so that a report is reproducible.
const SEED: u64 = 0x0063_6c69_7120_6576;

/// Returns the interval of the mean of differences by case, by resampling cases. The percentiles are expanded for few cases, with
/// Student's t distribution (Hesterberg 2015). `None` if there are fewer than two cases.
#[must_use]
pub fn bootstrap_difference(differences: &[f64]) -> Option<Interval> {
    let n = differences.len();
    if n < 2 {
        return None;
    }
    let mut random = fastrand::Rng::with_seed(SEED);
    let mean =
        |random: &mut fastrand::Rng| (0..n).map(|_| differences[random.usize(..n)]).sum::<f64>() / n as f64;
    let means: Vec<f64> = (0..RESAMPLES).map(|_| mean(&mut random)).collect();
    let t = t_quantile(1.0 - (1.0 - CONFIDENCE) / 2.0, n as u64 - 1);
    let tail = normal_cdf(-(n as f64 / (n as f64 - 1.0)).sqrt() * t);
    Some(Interval { low: quantile(&means, tail)?, high: quantile(&means, 1.0 - tail)? })
}
