//! Conclusions on simulated suites of agents with known pass probabilities: how often they are wrong, whether intervals contain the true
//! value, and whether the advised number of repeats suffices.

use cliq_eval::statistics::{Conclusion, PairedCase, compare, wilson};

/// Number of simulated suites of each kind.
const SUITES: u32 = 1000;
/// Difference that is too small to matter.
const MARGIN: f64 = 0.1;

struct Counts {
    better: u32,
    worse: u32,
    rate_inside: u32,
    difference_inside: u32,
    undecided: u32,
    sufficed: u32,
}

fn outcomes(random: &mut fastrand::Rng, probability: f64, repeats: u64) -> Vec<bool> {
    (0..repeats).map(|_| random.f64() < probability).collect()
}

fn simulate(first: f64, second: f64, cases: usize, repeats: u64, seed: u64) -> Counts {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut counts =
        Counts { better: 0, worse: 0, rate_inside: 0, difference_inside: 0, undecided: 0, sufficed: 0 };
    for _ in 0..SUITES {
        let mut table: Vec<PairedCase> = (0..cases)
            .map(|_| PairedCase {
                first: outcomes(&mut random, first, repeats),
                second: outcomes(&mut random, second, repeats),
            })
            .collect();
        let comparison = compare(&table, MARGIN, 1);
        let passed = table.iter().flat_map(|case| &case.first).filter(|pass| **pass).count() as u64;
        counts.rate_inside += u32::from(wilson(passed, cases as u64 * repeats).contains(first));
        counts.difference_inside += u32::from(comparison.difference_interval.contains(first - second));
        match comparison.conclusion {
            Conclusion::Better => counts.better += 1,
            Conclusion::Worse => counts.worse += 1,
            Conclusion::NoLargerDifference { .. } => {}
            Conclusion::MoreRepeats { repeats: more } => {
                counts.undecided += 1;
                for case in &mut table {
                    case.first.extend(outcomes(&mut random, first, more.unwrap_or(0)));
                    case.second.extend(outcomes(&mut random, second, more.unwrap_or(0)));
                }
                let is_decided =
                    !matches!(compare(&table, MARGIN, 1).conclusion, Conclusion::MoreRepeats { .. });
                counts.sufficed += u32::from(is_decided);
            }
        }
    }
    counts
}

#[test]
fn conclusions_claim_no_more_than_trials_show() {
    for (first, second, name) in [(0.8, 0.6, "0.8 and 0.6"), (0.8, 0.79, "0.8 and 0.79"), (0.8, 0.8, "equal")]
    {
        // With these numbers of trials the Wilson interval covers each of the rates in 94.4 to 95.6 %, computed exactly.
        for (cases, repeats) in [(20, 6), (30, 5)] {
            let counts = simulate(first, second, cases, repeats, 11);
            let share = |n: u32| f64::from(n) / f64::from(SUITES);
            let what = format!("{name}, {cases} cases, {repeats} repeats");
            let wrong = if first > second { counts.worse } else { counts.better + counts.worse };
            assert!(share(wrong) <= 0.05, "{what}: a wrong conclusion in {}", share(wrong));
            for (inside, interval) in [(counts.rate_inside, "rate"), (counts.difference_inside, "difference")]
            {
                let inside = share(inside);
                assert!(
                    (0.93..=0.97).contains(&inside),
                    "{what}: the interval of the {interval} is right in {inside}"
                );
            }
            if counts.undecided >= 30 {
                let sufficed = f64::from(counts.sufficed) / f64::from(counts.undecided);
                assert!(sufficed >= 0.8, "{what}: the advised repeats suffice in {sufficed}");
            }
            if first - second > 0.1 {
                assert!(share(counts.better) > 0.6, "{what}: better in {}", share(counts.better));
            }
        }
    }
}
