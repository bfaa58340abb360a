//! Gate of an evaluation: an expression that must hold for each variant, and baselines. Pure but for files of baselines.

use std::collections::BTreeMap;

use camino::Utf8Path;
use cliq_expr::Expression;
use cliq_protocol::Object;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::error::EvalError;
use crate::report::{Report, VariantReport};
use crate::statistics::{Conclusion, PairedCase, compare};
use crate::trial::TrialOutcome;

/// Maximum size of a baseline, in bytes.
const MAX_BASELINE: u64 = 64 << 20;
/// Names that the expression of a gate may read.
pub const NAMES: [&str; 14] = [
    "variant",
    "pass_rate",
    "pass_rate_low",
    "pass_rate_high",
    "pass_power",
    "flip_rate",
    "trials",
    "passed",
    "cost",
    "cost_p90",
    "duration",
    "infrastructure",
    "baseline",
    "regressed",
];

/// Results that later evaluations are compared with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Baseline {
    /// Version of the document.
    pub version: u32,
    /// Name of the suite.
    pub suite: String,
    /// Id of the evaluation.
    pub evaluation: String,
    /// Variants by name.
    pub variants: BTreeMap<String, BaselineVariant>,
}

/// Results of a variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BaselineVariant {
    /// Pass rate. `null` without trials.
    pub pass_rate: Option<f64>,
    /// Number of trials.
    pub trials: u64,
    /// Median cost in US dollars.
    pub cost: Option<f64>,
    /// Median duration in seconds.
    pub duration: Option<f64>,
    /// Outcomes by case.
    pub cases: BTreeMap<String, Vec<bool>>,
}

impl Baseline {
    /// Returns the baseline of a report.
    #[must_use]
    pub fn of(report: &Report) -> Self {
        let variants = report.variants.iter().map(|variant| {
            let summary = &variant.summary;
            let baseline = BaselineVariant {
                pass_rate: summary.pass_rate,
                trials: summary.trials,
                cost: summary.cost_usd.map(|cost| cost.median),
                duration: summary.duration_s.map(|time| time.median),
                cases: outcomes(report, &variant.name),
            };
            (variant.name.clone(), baseline)
        });
        let (suite, evaluation) = (report.suite.clone(), report.id.clone());
        Self { version: 1, suite, evaluation, variants: variants.collect() }
    }

    /// Reads a baseline.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or is not a baseline.
    pub fn read(path: &Utf8Path) -> Result<Self, EvalError> {
        let failed = |message: String| EvalError::Baseline { path: path.to_owned(), message };
        let text = cliq_fs::read_text(path, MAX_BASELINE).map_err(|error| failed(error.to_string()))?;
        let baseline: Self = serde_json::from_str(&text).map_err(|error| failed(error.to_string()))?;
        if baseline.version != 1 {
            return Err(failed(format!("version {} is not known", baseline.version)));
        }
        Ok(baseline)
    }

    /// Writes the baseline whole.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn write(&self, path: &Utf8Path) -> Result<(), EvalError> {
        let text = serde_json::to_string_pretty(self).unwrap_or_default() + "\n";
        Ok(cliq_fs::write_atomic(path, text.as_bytes())?)
    }
}

fn outcomes(report: &Report, variant: &str) -> BTreeMap<String, Vec<bool>> {
    let mut cases: BTreeMap<String, Vec<bool>> = BTreeMap::new();
    for trial in report.trials.iter().filter(|trial| trial.variant == variant) {
        if let Some(pass) = trial.outcome.and_then(TrialOutcome::counts) {
            cases.entry(trial.case.clone()).or_default().push(pass);
        }
    }
    cases
}

/// Expression of a gate.
#[derive(Debug)]
pub struct Gate {
    expression: Expression,
}

/// Outcome of a gate for a variant.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GateResult {
    /// Variant.
    pub variant: String,
    /// Whether the expression holds. Without trials that count, no expression does.
    pub holds: bool,
    /// Values that the expression read, and `trials` if there are none.
    pub values: Object,
}

impl Gate {
    /// Parses an expression.
    ///
    /// # Errors
    /// Returns an error if it is not an expression or reads an unknown name.
    pub fn parse(source: &str) -> Result<Self, EvalError> {
        let failed = |message: String| EvalError::Expression { expression: source.to_owned(), message };
        let expression = Expression::parse(source).map_err(|error| failed(error.to_string()))?;
        if let Some(unknown) =
            expression.references().iter().find(|reference| !NAMES.contains(&reference.root.as_str()))
        {
            let help = cliq_document::did_you_mean(&unknown.root, &NAMES);
            return Err(failed(format!("there is no name `{}`: {help}", unknown.root)));
        }
        Ok(Self { expression })
    }

    /// Evaluates the expression for each variant (docs/eval.md).
    ///
    /// # Errors
    /// Returns an error if the expression cannot be evaluated, or is neither true nor false.
    pub fn evaluate(
        &self,
        report: &Report,
        baseline: Option<&Baseline>,
    ) -> Result<Vec<GateResult>, EvalError> {
        let failed = |message: String| EvalError::Expression {
            expression: self.expression.source().to_owned(),
            message,
        };
        // Alone, `baseline` is its pass rate: `pass_rate >= baseline - 0.05`.
        let mut references = self.expression.references().iter();
        let is_rate = references.any(|reference| reference.root == "baseline" && reference.member.is_none());
        let of = |variant: &VariantReport| {
            let values = values(report, variant, baseline, is_rate);
            let evaluated = self.expression.evaluate(&values).map_err(|error| {
                let is_unknown = self.expression.reads("regressed") && values["regressed"].is_null();
                let note = if is_unknown {
                    ": `regressed` is null, as the baseline has no trials of this variant and its cases"
                } else {
                    ""
                };
                failed(format!("variant {}: {error}{note}", variant.name))
            })?;
            let Value::Bool(holds) = evaluated else {
                return Err(failed(format!("its value is {evaluated}, neither true nor false")));
            };
            let has_trials = variant.summary.trials > 0;
            let is_shown = |name: &str| self.expression.reads(name) || !has_trials && name == "trials";
            let read = values.into_iter().filter(|(name, _)| is_shown(name)).collect();
            Ok(GateResult { variant: variant.name.clone(), holds: holds && has_trials, values: read })
        };
        report.variants.iter().map(of).collect()
    }
}

/// Values that an expression may read. `is_rate` makes `baseline` its pass rate.
fn values(report: &Report, variant: &VariantReport, baseline: Option<&Baseline>, is_rate: bool) -> Object {
    let summary = &variant.summary;
    let before = baseline.and_then(|baseline| baseline.variants.get(&variant.name));
    let baseline = before.map_or(Value::Null, |before| {
        if is_rate {
            return json!(before.pass_rate);
        }
        json!({"pass_rate": before.pass_rate, "trials": before.trials, "cost": before.cost, "duration": before.duration})
    });
    let values = json!({
        "variant": variant.name,
        "pass_rate": summary.pass_rate.unwrap_or(0.0),
        "pass_rate_low": summary.pass_rate_interval.low,
        "pass_rate_high": summary.pass_rate_interval.high,
        "pass_power": variant.pass_power.map_or(0.0, |power| power.value),
        "flip_rate": variant.flip_rate.unwrap_or(0.0),
        "trials": summary.trials,
        "passed": summary.passed,
        "cost": summary.cost_usd.map(|cost| cost.median),
        "cost_p90": summary.cost_usd.map(|cost| cost.p90),
        "duration": summary.duration_s.map(|time| time.median),
        "infrastructure": summary.infrastructure,
        "baseline": baseline,
        "regressed": before.and_then(|before| has_regressed(report, &variant.name, before)),
    });
    match values {
        Value::Object(values) => values,
        _ => Object::new(),
    }
}

/// Whether a variant is worse than before, as far as the trials of both show. `None` if no case has trials of both.
fn has_regressed(report: &Report, variant: &str, before: &BaselineVariant) -> Option<bool> {
    let now = outcomes(report, variant);
    let cases: Vec<PairedCase> = now
        .into_iter()
        .map(|(case, first)| PairedCase {
            second: before.cases.get(&case).cloned().unwrap_or_default(),
            first,
        })
        .collect();
    let is_compared = cases.iter().any(|case| !case.first.is_empty() && !case.second.is_empty());
    is_compared.then(|| compare(&cases, report.margin, 1).conclusion == Conclusion::Worse)
}
