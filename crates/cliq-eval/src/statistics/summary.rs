//! Consistency of repeats, and quantiles.

/// Passed and counted trials of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CaseCounts {
    /// Trials that passed.
    pub passed: u64,
    /// Trials that were counted: infrastructure errors are not.
    pub trials: u64,
}

/// Returns pass^k: the probability that `k` repeats of a case all pass, as the mean of the unbiased estimates of the cases. `None` if no
/// case has `k` trials.
#[must_use]
pub fn pass_power(cases: &[CaseCounts], k: u64) -> Option<f64> {
    // C(passed, k) / C(trials, k), as a product that does not overflow.
    let of = |case: &CaseCounts| {
        (0..k).map(|n| case.passed.saturating_sub(n) as f64 / (case.trials - n) as f64).product::<f64>()
    };
    mean(cases.iter().filter(|case| k > 0 && case.trials >= k).map(of))
}

/// Returns the flip rate: the probability that two repeats of a case differ, as the mean of the cases. `None` if no case has two trials.
#[must_use]
pub fn flip_rate(cases: &[CaseCounts]) -> Option<f64> {
    let of = |case: &CaseCounts| {
        let (passed, n) = (case.passed as f64, case.trials as f64);
        2.0 * passed * (n - passed) / (n * (n - 1.0))
    };
    mean(cases.iter().filter(|case| case.trials >= 2).map(of))
}

/// Returns a quantile with linear interpolation between the two nearest values. `None` if there are no values.
#[must_use]
pub fn quantile(values: &[f64], probability: f64) -> Option<f64> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    let place = probability.clamp(0.0, 1.0) * last as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    Some(below + (above - below) * place.fract())
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0_u64), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / count as f64)
}
