//! Quantiles of distributions, and the exact test of McNemar.

use statrs::distribution::{Binomial, ContinuousCDF, DiscreteCDF, Normal, StudentsT};

/// Returns the probability that a standard normal variable is at most `x`.
pub(super) fn normal_cdf(x: f64) -> f64 {
    Normal::standard().cdf(x)
}

/// Returns the quantile of Student's t distribution. `freedom` is at least 1.
pub(super) fn t_quantile(probability: f64, freedom: u64) -> f64 {
    let distribution = StudentsT::new(0.0, 1.0, freedom.max(1) as f64);
    distribution.map_or(f64::INFINITY, |distribution| distribution.inverse_cdf(probability))
}

/// Returns the two-sided p-value of McNemar's exact test. `first` counts pairs in which only the first variant passed, `second` those in
/// which only the second one did.
#[must_use]
pub fn mcnemar_exact(first: u64, second: u64) -> f64 {
    let discordant = first + second;
    if discordant == 0 {
        return 1.0;
    }
    let tail = Binomial::new(0.5, discordant).map_or(1.0, |binomial| binomial.cdf(first.min(second)));
    (2.0 * tail).min(1.0)
}
