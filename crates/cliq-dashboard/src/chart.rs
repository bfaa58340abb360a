//! Bars as SVG. Each chart stands beside a table with the same numbers.

use maud::{Markup, html};

/// A bar.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Bar {
    /// Name of the bar.
    pub(super) label: String,
    /// Length, in any unit.
    pub(super) value: f64,
    /// The value for people.
    pub(super) text: String,
}

/// Bars below each other.
pub(super) fn bars(title: &str, bars: &[Bar]) -> Markup {
    const LABEL: f64 = 170.0;
    const WIDTH: f64 = 640.0;
    const LINE: f64 = 26.0;
    let most = bars.iter().map(|bar| bar.value).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let height = bars.len() as f64 * LINE;
    html! {
        div.scroll tabindex="0" role="region" aria-label=(title) {
            svg.chart xmlns="http://www.w3.org/2000/svg" width=(WIDTH) height=(height) viewBox=(format!("0 0 {WIDTH} {height}")) role="img" aria-label=(title) {
                @for (n, bar) in bars.iter().enumerate() {
                    @let y = n as f64 * LINE;
                    @let length = (bar.value / most * (WIDTH - LABEL - 110.0)).max(1.0);
                    text x="0" y=(format!("{:.0}", y + 16.0)) { (bar.label.chars().take(24).collect::<String>()) }
                    rect x=(LABEL) y=(format!("{:.0}", y + 4.0)) width=(format!("{length:.1}")) height="16" rx="2" {}
                    text x=(format!("{:.1}", LABEL + length + 8.0)) y=(format!("{:.0}", y + 16.0)) { (bar.text) }
                }
            }
        }
    }
}

/// Columns side by side, as for days.
pub(super) fn columns(title: &str, bars: &[Bar]) -> Markup {
    const WIDTH: f64 = 900.0;
    const HEIGHT: f64 = 180.0;
    let most = bars.iter().map(|bar| bar.value).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let step = WIDTH / bars.len().max(1) as f64;
    let every = bars.len().div_ceil(8).max(1);
    html! {
        div.scroll tabindex="0" role="region" aria-label=(title) {
            svg.chart xmlns="http://www.w3.org/2000/svg" width=(WIDTH) height=(HEIGHT) viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(title) {
                line x1="0" x2=(WIDTH) y1="150" y2="150" {}
                @for (n, bar) in bars.iter().enumerate() {
                    @let x = n as f64 * step;
                    @let height = bar.value / most * 140.0;
                    g {
                        title { (bar.label) ": " (bar.text) }
                        rect x=(format!("{:.1}", x + 1.0)) y=(format!("{:.1}", 150.0 - height)) width=(format!("{:.1}", (step - 2.0).max(1.0))) height=(format!("{height:.1}")) {}
                    }
                    @if n % every == 0 { text x=(format!("{x:.1}")) y="168" { (bar.label) } }
                }
            }
        }
    }
}
