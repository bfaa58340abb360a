//! Numbers in words, the same in every form of a report.

use crate::statistics::Interval;

/// Returns a rate in percent. `–` if there is none.
#[must_use]
pub fn percent(rate: Option<f64>) -> String {
    rate.map_or_else(|| "–".to_owned(), |rate| format!("{:.0} %", rate * 100.0))
}

/// Returns an interval in percent.
#[must_use]
pub fn percent_interval(interval: Interval) -> String {
    format!("{:.0}–{:.0} %", interval.low * 100.0, interval.high * 100.0)
}

/// Returns an amount of US dollars with as many digits as are of use. `–` if there is none.
#[must_use]
pub fn dollars(amount: Option<f64>) -> String {
    amount.map_or_else(
        || "–".to_owned(),
        |usd| if usd >= 1.0 { format!("${usd:.2}") } else { format!("${usd:.4}") },
    )
}

/// Returns a duration in seconds. `–` if there is none.
#[must_use]
pub fn seconds(duration: Option<f64>) -> String {
    match duration {
        None => "–".to_owned(),
        Some(s) if s < 10.0 => format!("{s:.1} s"),
        Some(s) if s < 120.0 => format!("{s:.0} s"),
        Some(s) => format!("{:.0} min", s / 60.0),
    }
}
