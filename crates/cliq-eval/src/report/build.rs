//! Computation of a report.

use std::collections::{BTreeMap, HashMap};

use camino::Utf8Path;
use cliq_model::{EvaluationRow, RunTotals, TrialRow, TrialState};

use super::{
    CaseReport, CheckMark, CheckReport, JudgeReport, PairReport, PassPower, Report, Spread, Summary,
    TrialCounts, TrialReport, VERSION, VariantReport,
};
use crate::directory::EvaluationDir;
use crate::evaluation::result_of;
use crate::statistics::{CaseCounts, PairedCase, compare, flip_rate, pass_power, quantile, wilson};
use crate::suite::{CheckKind, Suite};
use crate::trial::{TrialOutcome, TrialResult};

/// Trial with its result.
struct Trial<'a> {
    row: &'a TrialRow,
    result: Option<TrialResult>,
}

impl Trial<'_> {
    fn outcome(&self) -> Option<TrialOutcome> {
        let result = self.result.as_ref().filter(|_| self.row.state == TrialState::Finished)?;
        Some(result.outcome)
    }

    fn counts(&self) -> Option<bool> {
        self.outcome().and_then(TrialOutcome::counts)
    }

    /// Usage of the run alone.
    fn own_usage(&self) -> Option<RunTotals> {
        Some(self.result.as_ref().filter(|_| self.counts().is_some())?.run_usage)
    }
}

impl Report {
    /// Computes the report of an evaluation.
    #[must_use]
    pub fn new(evaluation: &EvaluationRow, suite: &Suite, rows: &[TrialRow]) -> Self {
        let trials: Vec<Trial<'_>> = rows.iter().map(|row| Trial { row, result: result_of(row) }).collect();
        let mut groups: HashMap<(String, String), Vec<&Trial<'_>>> = HashMap::new();
        for trial in &trials {
            groups.entry((trial.row.variant.clone(), trial.row.case.clone())).or_default().push(trial);
        }
        let group = |variant: &str, case: &str| {
            groups.get(&(variant.to_owned(), case.to_owned())).map_or(&[][..], Vec::as_slice)
        };
        let variants = suite.variants.iter().map(|variant| {
            let all: Vec<&Trial<'_>> =
                suite.cases.iter().flat_map(|case| group(&variant.name, &case.name)).copied().collect();
            let counts: Vec<CaseCounts> =
                suite.cases.iter().map(|case| counts_of(group(&variant.name, &case.name))).collect();
            let k = u64::from(suite.repeats);
            VariantReport {
                name: variant.name.clone(),
                team: variant.team.clone(),
                agent: variant.agent.clone(),
                model: variant.model.clone(),
                settings: variant.settings.clone(),
                roles: variant.roles.keys().cloned().collect(),
                skills: variant.skills.clone(),
                summary: summary(&all),
                pass_power: pass_power(&counts, k).map(|value| PassPower { k, value }),
                flip_rate: flip_rate(&counts),
            }
        });
        let cases = suite.cases.iter().map(|case| CaseReport {
            name: case.name.clone(),
            variants: suite
                .variants
                .iter()
                .map(|variant| (variant.name.clone(), summary(group(&variant.name, &case.name))))
                .collect(),
        });
        let outcomes = |variant: &str, case: &str| {
            group(variant, case).iter().filter_map(|trial| trial.counts()).collect::<Vec<bool>>()
        };
        let (mut usage, mut judge_usage) = (RunTotals::default(), RunTotals::default());
        for result in trials.iter().filter_map(|trial| trial.result.as_ref()) {
            usage.add(&result.usage);
            judge_usage.add(&result.judge_usage);
        }
        let dir = EvaluationDir::new(evaluation.directory.clone());
        Self {
            version: VERSION,
            id: evaluation.id.clone(),
            suite: suite.name.clone(),
            created_at: evaluation.created_at,
            ended_at: evaluation.ended_at,
            repeats: suite.repeats,
            margin: suite.margin,
            counts: counts(&trials),
            usage,
            judge_usage,
            variants: variants.collect(),
            cases: cases.collect(),
            comparisons: pairs(suite, &outcomes),
            checks: checks(suite, &trials),
            judges: judges(suite, &trials),
            trials: trials.iter().map(|trial| trial_report(&evaluation.id, &dir, trial)).collect(),
        }
    }
}

fn counts_of(trials: &[&Trial<'_>]) -> CaseCounts {
    let counted = trials.iter().filter_map(|trial| trial.counts());
    let (passed, trials) = counted.fold((0, 0), |(passed, all), pass| (passed + u64::from(pass), all + 1));
    CaseCounts { passed, trials }
}

fn summary(trials: &[&Trial<'_>]) -> Summary {
    let CaseCounts { passed, trials: counted } = counts_of(trials);
    let with =
        |outcome: TrialOutcome| trials.iter().filter(|trial| trial.outcome() == Some(outcome)).count() as u64;
    let usages: Vec<RunTotals> = trials.iter().filter_map(|trial| trial.own_usage()).collect();
    let costs: Vec<f64> = usages.iter().filter_map(|usage| usage.cost_usd).collect();
    let tokens: Vec<f64> = usages.iter().map(|usage| usage.tokens() as f64).collect();
    let durations: Vec<f64> = trials
        .iter()
        .filter(|trial| trial.counts().is_some())
        .filter_map(|trial| Some(trial.result.as_ref()?.duration_ms as f64 / 1000.0))
        .collect();
    Summary {
        trials: counted,
        passed,
        pass_rate: (counted > 0).then(|| passed as f64 / counted as f64),
        pass_rate_interval: wilson(passed, counted),
        cost_usd: spread(&costs),
        tokens: spread(&tokens).filter(|spread| spread.total > 0.0),
        duration_s: spread(&durations),
        infrastructure: with(TrialOutcome::Infrastructure),
        skipped: with(TrialOutcome::Skipped),
    }
}

fn spread(values: &[f64]) -> Option<Spread> {
    Some(Spread { median: quantile(values, 0.5)?, p90: quantile(values, 0.9)?, total: values.iter().sum() })
}

fn counts(trials: &[Trial<'_>]) -> TrialCounts {
    let mut counts = TrialCounts { all: trials.len() as u64, ..TrialCounts::default() };
    for trial in trials {
        match trial.outcome() {
            None => counts.left += 1,
            Some(TrialOutcome::Infrastructure) => counts.infrastructure += 1,
            Some(TrialOutcome::Skipped) => counts.skipped += 1,
            Some(outcome) => {
                counts.counted += 1;
                counts.passed += u64::from(outcome == TrialOutcome::Passed);
            }
        }
    }
    counts
}

/// Compares each variant with those before it: the later one is the first of the pair, as it is the one in question.
fn pairs(suite: &Suite, outcomes: &dyn Fn(&str, &str) -> Vec<bool>) -> Vec<PairReport> {
    let count = suite.variants.len();
    let all = count * count.saturating_sub(1) / 2;
    let mut pairs = Vec::new();
    for (index, first) in suite.variants.iter().enumerate() {
        for second in &suite.variants[..index] {
            let cases: Vec<PairedCase> = suite
                .cases
                .iter()
                .map(|case| PairedCase {
                    first: outcomes(&first.name, &case.name),
                    second: outcomes(&second.name, &case.name),
                })
                .collect();
            let comparison = compare(&cases, suite.margin, all);
            let sentence = comparison.sentence(&first.name, &second.name);
            pairs.push(PairReport {
                first: first.name.clone(),
                second: second.name.clone(),
                comparison,
                sentence,
            });
        }
    }
    pairs
}

fn checks(suite: &Suite, trials: &[Trial<'_>]) -> Vec<CheckReport> {
    let mut numbers: HashMap<(&str, &str), (u64, u64)> = HashMap::new();
    for trial in trials.iter().filter(|trial| trial.counts().is_some()) {
        for check in trial.result.iter().flat_map(|result| &result.checks) {
            let (passed, failed) = numbers.entry((trial.row.case.as_str(), check.name.as_str())).or_default();
            *(if check.pass { passed } else { failed }) += 1;
        }
    }
    let of_case = |case: &crate::suite::Case| {
        let checks = case.checks.iter().map(|check| {
            let key = (case.name.as_str(), check.name.as_str());
            let (passed, failed) = numbers.get(&key).copied().unwrap_or_default();
            // The end that each case has by itself is expected to hold.
            let is_own = check.name != "end";
            let mark = match (passed, failed) {
                (0, 0) => None,
                (_, 0) if is_own => Some(CheckMark::NeverFailed),
                (0, _) => Some(CheckMark::NeverPassed),
                _ => None,
            };
            CheckReport { case: case.name.clone(), check: check.name.clone(), passed, failed, mark }
        });
        checks.collect::<Vec<_>>()
    };
    suite.cases.iter().flat_map(of_case).collect()
}

fn judges(suite: &Suite, trials: &[Trial<'_>]) -> Vec<JudgeReport> {
    // Judge, person.
    let mut judgements: BTreeMap<&str, Vec<(bool, bool)>> = BTreeMap::new();
    for case in &suite.cases {
        for check in &case.checks {
            let CheckKind::Judge(judge) = &check.kind else { continue };
            for trial in trials.iter().filter(|trial| trial.row.case == case.name) {
                let fits = |label: &&crate::suite::Label| {
                    label.case == case.name
                        && label.variant.as_ref().is_none_or(|name| *name == trial.row.variant)
                        && label.repeat.is_none_or(|repeat| repeat == trial.row.repeat)
                };
                let Some(label) = judge.labels.iter().find(fits) else { continue };
                let result = trial.result.as_ref().filter(|_| trial.counts().is_some());
                let found =
                    result.and_then(|result| result.checks.iter().find(|result| result.name == check.name));
                if let Some(found) = found {
                    judgements.entry(&check.name).or_default().push((found.pass, label.pass));
                }
            }
        }
    }
    let report = |(check, pairs): (&str, Vec<(bool, bool)>)| {
        let count = |wanted: (bool, bool)| pairs.iter().filter(|pair| **pair == wanted).count() as u64;
        let labels = pairs.len() as u64;
        let (too_lenient, too_strict) = (count((true, false)), count((false, true)));
        let agreed = labels - too_lenient - too_strict;
        JudgeReport {
            check: check.to_owned(),
            labels,
            agreed,
            agreement: (labels > 0).then(|| agreed as f64 / labels as f64),
            agreement_interval: wilson(agreed, labels),
            too_lenient,
            too_strict,
        }
    };
    judgements.into_iter().map(report).collect()
}

fn trial_report(evaluation: &str, dir: &EvaluationDir, trial: &Trial<'_>) -> TrialReport {
    let TrialRow { number, variant, case, repeat, run_id, attempts, .. } = trial.row;
    let result = trial.result.as_ref();
    let failed = result.iter().flat_map(|result| &result.checks).filter(|check| !check.pass);
    TrialReport {
        number: *number,
        variant: variant.clone(),
        case: case.clone(),
        repeat: *repeat,
        outcome: trial.outcome(),
        reason: result.and_then(|result| result.reason.clone()),
        failed_checks: failed.map(|check| check.name.clone()).collect(),
        run_id: run_id.clone(),
        workspace: dir.trial(*number).into_string(),
        page: format!("/evaluations/{evaluation}/trials/{number}"),
        attempts: *attempts,
        cost_usd: trial.own_usage().and_then(|usage| usage.cost_usd),
        duration_s: result.map_or(0.0, |result| result.duration_ms as f64 / 1000.0),
    }
}

/// Variant of a report, for a comparison with one of another report.
#[derive(Debug, Clone, Copy)]
pub struct Selection<'a> {
    /// Report.
    pub report: &'a Report,
    /// Name of the variant.
    pub variant: &'a str,
}

impl Selection<'_> {
    fn outcomes(&self, case: &str) -> Vec<bool> {
        let trials = self.report.trials.iter();
        let own = trials.filter(|trial| trial.variant == self.variant && trial.case == case);
        own.filter_map(|trial| trial.outcome.and_then(TrialOutcome::counts)).collect()
    }

    /// Returns the name of the variant, with the id of the evaluation if `other` has the same name.
    fn title(&self, other: &Selection<'_>) -> String {
        if self.variant == other.variant {
            let id = Utf8Path::new(&self.report.id).as_str();
            format!("{} ({})", self.variant, id.rsplit('-').next().unwrap_or(id))
        } else {
            self.variant.to_owned()
        }
    }
}

/// Compares variants of two reports on the cases that both have.
#[must_use]
pub fn compare_reports(
    first: Selection<'_>,
    second: Selection<'_>,
    margin: f64,
    comparisons: usize,
) -> PairReport {
    let cases: Vec<PairedCase> = first
        .report
        .cases
        .iter()
        .map(|case| PairedCase { first: first.outcomes(&case.name), second: second.outcomes(&case.name) })
        .collect();
    let comparison = compare(&cases, margin, comparisons);
    let (first_title, second_title) = (first.title(&second), second.title(&first));
    let sentence = comparison.sentence(&first_title, &second_title);
    PairReport { first: first_title, second: second_title, comparison, sentence }
}
