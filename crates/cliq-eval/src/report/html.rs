//! Report as one HTML file without script.

use maud::{DOCTYPE, Markup, html};

use super::words::{dollars, percent, percent_interval, seconds};
use super::{Report, Summary, TrialReport};
use crate::trial::TrialOutcome;

const STYLE: &str = "
:root { color-scheme: light dark; --fg: #1b1f24; --bg: #fff; --quiet: #57606a; --line: #d0d7de; --card: #f6f8fa; --good: #116329; --bad: #a40e26; --accent: #0b57c2; }
@media (prefers-color-scheme: dark) { :root { --fg: #e6edf3; --bg: #0d1117; --quiet: #9ea7b1; --line: #30363d; --card: #161b22; --good: #7ee787; --bad: #ffa198; --accent: #79b8ff; } }
body { margin: 0 auto; max-width: 1100px; padding: 16px; background: var(--bg); color: var(--fg); font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 26px; } h2 { font-size: 19px; margin-top: 28px; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: 6px 12px 6px 0; border-bottom: 1px solid var(--line); vertical-align: top; font-variant-numeric: tabular-nums; }
th { font-size: 13px; color: var(--quiet); }
.sentence { background: var(--card); border-left: 4px solid var(--accent); padding: 8px 14px; }
.quiet { color: var(--quiet); } .good { color: var(--good); } .bad { color: var(--bad); } a { color: var(--accent); }
td.why { overflow-wrap: anywhere; max-width: 480px; } svg text { fill: var(--fg); font: 13px system-ui, sans-serif; } svg .rail { stroke: var(--line); } svg .range { stroke: var(--accent); stroke-width: 4; } svg circle { fill: var(--fg); }
";

/// Maximum number of trials in the table of trials that did not pass.
const LISTED: usize = 200;

impl Report {
    /// Renders the report as an HTML document. `server` is the address of a server whose pages of runs are linked.
    #[must_use]
    pub fn to_html(&self, server: Option<&str>) -> String {
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    title { "Evaluation " (self.suite) }
                    style { (maud::PreEscaped(STYLE)) }
                }
                body { main { h1 { "Evaluation " (self.suite) } (self.body(server)) } }
            }
        };
        page.into_string()
    }

    /// Renders the parts of the report below its heading, for a page of its own or of the dashboard.
    #[must_use]
    pub fn body(&self, server: Option<&str>) -> Markup {
        html! {
            p.quiet { (self.created_at) " · " code { (self.id) } }
            p { (self.counts_sentence()) }
            @for pair in &self.comparisons { p.sentence { (pair.sentence) } }
            h2 { "Variants" }
            (self.intervals())
            (self.variants_table())
            h2 { "Cases" }
            (self.cases_table())
            (self.checks_section())
            @for judge in &self.judges { p { "Judge " code { (judge.check) } " " (judge.sentence()) } }
            (self.trials_section(server))
        }
    }

    /// Pass rates with their intervals on one scale.
    fn intervals(&self) -> Markup {
        const LABEL: f64 = 160.0;
        const WIDTH: f64 = 640.0;
        const LINE: f64 = 28.0;
        let x = |rate: f64| LABEL + rate * (WIDTH - LABEL - 80.0);
        let height = self.variants.len() as f64 * LINE + 20.0;
        html! {
            div.scroll tabindex="0" role="region" aria-label="Pass rates" {
                svg.chart xmlns="http://www.w3.org/2000/svg" width=(WIDTH) height=(height) viewBox=(format!("0 0 {WIDTH} {height}")) role="img" aria-label="Pass rates with intervals; the table has the numbers" {
                    @for (n, variant) in self.variants.iter().enumerate() {
                        @let y = n as f64 * LINE + 14.0;
                        @let interval = variant.summary.pass_rate_interval;
                        text x="0" y=(y + 5.0) { (variant.name.chars().take(20).collect::<String>()) }
                        line.rail x1=(x(0.0)) x2=(x(1.0)) y1=(y) y2=(y) {}
                        line.range x1=(x(interval.low)) x2=(x(interval.high)) y1=(y) y2=(y) {}
                        @if let Some(rate) = variant.summary.pass_rate { circle cx=(x(rate)) cy=(y) r="5" {} }
                        text x=(x(1.0) + 10.0) y=(y + 5.0) { (percent(variant.summary.pass_rate)) }
                    }
                    @for tick in [0.0, 0.5, 1.0] { text x=(x(tick) - 8.0) y=(height - 4.0) { (format!("{:.0} %", tick * 100.0)) } }
                }
            }
        }
    }

    fn variants_table(&self) -> Markup {
        html! {
            div.scroll tabindex="0" role="region" aria-label="Variants" {
                table {
                    thead { tr {
                        th { "Variant" } th { "Pass rate" } th { "95 %" } th { "Trials" } th { "pass^" (self.repeats) } th { "Flips" }
                        th { "Cost, median" } th { "p90" } th { "Time, median" } th { "p90" }
                    } }
                    tbody { @for variant in &self.variants { tr {
                        @let Summary { trials, passed, pass_rate, pass_rate_interval, cost_usd, duration_s, infrastructure, .. } = &variant.summary;
                        td { strong { (variant.name) } div.quiet { (variant.used()) } }
                        td data-label="pass rate" { (percent(*pass_rate)) }
                        td data-label="95 %" { (percent_interval(*pass_rate_interval)) }
                        td data-label="trials" { (passed) "/" (trials) @if *infrastructure > 0 { " (" (infrastructure) " of infrastructure)" } }
                        td data-label="pass^k" { (percent(variant.pass_power.map(|power| power.value))) }
                        td data-label="flips" { (percent(variant.flip_rate)) }
                        td data-label="cost" { (dollars(cost_usd.map(|cost| cost.median))) }
                        td data-label="p90" { (dollars(cost_usd.map(|cost| cost.p90))) }
                        td data-label="time" { (seconds(duration_s.map(|time| time.median))) }
                        td data-label="p90" { (seconds(duration_s.map(|time| time.p90))) }
                    } } }
                }
            }
        }
    }

    fn cases_table(&self) -> Markup {
        html! {
            div.scroll tabindex="0" role="region" aria-label="Cases" {
                table {
                    thead { tr { th { "Case" } @for variant in &self.variants { th { (variant.name) } } } }
                    tbody { @for case in &self.cases { tr {
                        td { (case.name) }
                        @for variant in &self.variants {
                            td data-label=(variant.name) { @if let Some(summary) = case.variants.get(&variant.name) { (summary.passed) "/" (summary.trials) } }
                        }
                    } } }
                }
            }
        }
    }

    fn checks_section(&self) -> Markup {
        html! {
            h2 { "Checks" }
            @for mark in self.marks() { p { "Check " (mark) ": it tells nothing." } }
            details { summary { (self.checks.len()) " checks" }
            div.scroll tabindex="0" role="region" aria-label="Checks" {
                table {
                    thead { tr { th { "Case" } th { "Check" } th { "Passed" } th { "Failed" } th { "Note" } } }
                    tbody { @for check in &self.checks { tr {
                        td { (check.case) }
                        td { code { (check.check) } }
                        td data-label="passed" { (check.passed) }
                        td data-label="failed" { (check.failed) }
                        td { @if let Some(mark) = check.mark { (mark.words()) } }
                    } } }
                }
            } }
        }
    }

    fn trials_section(&self, server: Option<&str>) -> Markup {
        let failed: Vec<&TrialReport> = self
            .trials
            .iter()
            .filter(|trial| trial.outcome.is_some_and(|outcome| outcome != TrialOutcome::Passed))
            .collect();
        html! {
            h2 { "Trials that did not pass" }
            @if failed.is_empty() { p.quiet { "None." } } @else {
                div.scroll tabindex="0" role="region" aria-label="Trials that did not pass" {
                    table {
                        thead { tr { th { "Trial" } th { "Variant" } th { "Case" } th { "Outcome" } th { "Reason" } } }
                        tbody { @for trial in failed.iter().take(LISTED) { tr {
                            td { (trial_link(trial, server)) ", repeat " (trial.repeat) }
                            td { (trial.variant) }
                            td { (trial.case) }
                            td { @match trial.outcome {
                                Some(TrialOutcome::Failed) => span.bad { "failed" },
                                Some(TrialOutcome::Infrastructure) => "infrastructure",
                                Some(TrialOutcome::Skipped) => "skipped",
                                Some(TrialOutcome::Passed) | None => "",
                            } }
                            td.why { (trial.reason.as_deref().unwrap_or_default()) }
                        } } }
                    }
                }
                @if failed.len() > LISTED { p.quiet { (failed.len() - LISTED) " more." } }
            }
        }
    }
}

/// Number of a trial, linked to its run if there is a server.
fn trial_link(trial: &TrialReport, server: Option<&str>) -> Markup {
    html! {
        @match server {
            Some(server) => a href=(format!("{server}{}", trial.page)) { (trial.number) },
            None => span title=(trial.workspace) { (trial.number) },
        }
    }
}
