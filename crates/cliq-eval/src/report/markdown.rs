//! Report in markdown, for comments of pull requests and files.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::words::{dollars, percent, percent_interval, seconds};
use super::{Report, Summary};
use crate::trial::TrialOutcome;

/// Maximum number of trials that are named with their reason.
const LISTED: usize = 20;

impl Report {
    /// Renders the report as markdown.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        let mut out = String::new();
        // Writing into a string never fails.
        let _ = self.write_markdown(&mut out);
        out
    }

    fn write_markdown(&self, out: &mut String) -> std::fmt::Result {
        writeln!(out, "# Evaluation {}\n", cell(&self.suite))?;
        writeln!(out, "{}\n", self.counts_sentence())?;
        for pair in &self.comparisons {
            writeln!(out, "**{}**\n", cell(&pair.sentence))?;
        }
        writeln!(
            out,
            "| variant | pass rate | 95 % | trials | pass^{} | flips | cost, median | p90 | time, median | p90 |",
            self.repeats
        )?;
        writeln!(out, "|---|---|---|---|---|---|---|---|---|---|")?;
        for variant in &self.variants {
            let Summary { trials, passed, pass_rate, pass_rate_interval, cost_usd, duration_s, .. } =
                &variant.summary;
            writeln!(
                out,
                "| {} | {} | {} | {passed}/{trials} | {} | {} | {} | {} | {} | {} |",
                cell(&variant.name),
                percent(*pass_rate),
                percent_interval(*pass_rate_interval),
                percent(variant.pass_power.map(|power| power.value)),
                percent(variant.flip_rate),
                dollars(cost_usd.map(|cost| cost.median)),
                dollars(cost_usd.map(|cost| cost.p90)),
                seconds(duration_s.map(|time| time.median)),
                seconds(duration_s.map(|time| time.p90)),
            )?;
        }
        writeln!(out)?;
        for variant in &self.variants {
            writeln!(out, "- {}: {}", cell(&variant.name), cell(&variant.used()))?;
        }
        let names: Vec<String> = self.variants.iter().map(|variant| cell(&variant.name)).collect();
        writeln!(out, "\n| case | {} |\n|---{}|", names.join(" | "), "|---".repeat(names.len()))?;
        for case in &self.cases {
            let of = |name: &str| {
                case.variants
                    .get(name)
                    .map_or_else(String::new, |summary| format!("{}/{}", summary.passed, summary.trials))
            };
            let cells: Vec<String> = self.variants.iter().map(|variant| of(&variant.name)).collect();
            writeln!(out, "| {} | {} |", cell(&case.name), cells.join(" | "))?;
        }
        self.write_marks(out)?;
        for judge in &self.judges {
            writeln!(out, "\nJudge `{}` {}", cell(&judge.check), judge.sentence())?;
        }
        self.write_failures(out)
    }

    fn write_marks(&self, out: &mut String) -> std::fmt::Result {
        let marks = self.marks();
        if !marks.is_empty() {
            writeln!(out, "\nChecks that tell nothing:\n")?;
        }
        marks.iter().try_for_each(|mark| writeln!(out, "- {}", cell(mark)))
    }

    /// Returns the checks that tell nothing, a line each: the check, its mark, and its cases.
    #[must_use]
    pub fn marks(&self) -> Vec<String> {
        let mut groups: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
        for check in &self.checks {
            if let Some(mark) = check.mark {
                groups.entry((&check.check, mark.words())).or_default().push(&check.case);
            }
        }
        let line = |((check, mark), cases): (&(&str, &str), &Vec<&str>)| {
            let all = cases.len() == self.cases.len() && cases.len() > 1;
            let place = if all { format!("all {} cases", cases.len()) } else { cases.join(", ") };
            format!("{check} {mark} in {place}")
        };
        groups.iter().map(line).collect()
    }

    fn write_failures(&self, out: &mut String) -> std::fmt::Result {
        let failed: Vec<_> = self
            .trials
            .iter()
            .filter(|trial| {
                matches!(trial.outcome, Some(TrialOutcome::Failed | TrialOutcome::Infrastructure))
            })
            .collect();
        if !failed.is_empty() {
            writeln!(out, "\nTrials that did not pass:\n")?;
        }
        for trial in failed.iter().take(LISTED) {
            let reason = trial.reason.as_deref().unwrap_or_default().lines().next().unwrap_or_default();
            writeln!(
                out,
                "- {} {}, {}, repeat {}: {}",
                trial.number,
                cell(&trial.variant),
                cell(&trial.case),
                trial.repeat,
                cell(reason)
            )?;
        }
        if failed.len() > LISTED {
            writeln!(out, "- {} more", failed.len() - LISTED)?;
        }
        Ok(())
    }

    /// Returns the numbers of trials as a sentence.
    #[must_use]
    pub fn counts_sentence(&self) -> String {
        let counts = &self.counts;
        let mut out = format!("{} of {} trials passed", counts.passed, counts.counted);
        for (n, what) in [
            (counts.infrastructure, "failed for reasons of infrastructure and do not count"),
            (counts.skipped, "were skipped: the budget is used up"),
            (counts.left, "are left"),
        ] {
            if n > 0 {
                let _ = write!(out, "; {n} {what}");
            }
        }
        let _ = write!(out, ". Used: {}", dollars(self.usage.cost_usd));
        if self.judge_usage.tokens() > 0 {
            let _ = write!(out, ", of which judges {}", dollars(self.judge_usage.cost_usd));
        }
        out + "."
    }
}

impl super::JudgeReport {
    /// Returns the agreement as a sentence without its subject.
    #[must_use]
    pub fn sentence(&self) -> String {
        format!(
            "agrees with people in {} of {} trials ({}, {}); too lenient in {}, too strict in {}.",
            self.agreed,
            self.labels,
            percent(self.agreement),
            percent_interval(self.agreement_interval),
            self.too_lenient,
            self.too_strict
        )
    }
}

/// Text for a cell of a table: on one line, without markup.
fn cell(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '\n' | '\r' => out.push(' '),
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}
