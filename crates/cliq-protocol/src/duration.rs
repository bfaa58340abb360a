//! Durations as team.yml and settings write them: `90s`, `45m`, `8h`, `2d` (docs/team-yml.md).

use std::time::Duration;

/// Parses a duration of at least one second.
///
/// Time is linear in the size of the text; an error has at most 300 bytes.
///
/// # Errors
/// Says what is wrong with the text.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = match &text[digits.len()..] {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        "" => return Err("it has no unit".to_owned()),
        other => return Err(format!("{:?} is not a unit", crate::shorten(other, 40))),
    };
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err("it has no whole number".to_owned());
    }
    let number: u64 = digits.parse().map_err(|_| "the number is too large".to_owned())?;
    let seconds = number
        .checked_mul(unit)
        .filter(|s| *s <= 3650 * 86_400)
        .ok_or_else(|| "it is longer than ten years".to_owned())?;
    if seconds == 0 {
        return Err("it must be longer than zero".to_owned());
    }
    Ok(Duration::from_secs(seconds))
}

/// A duration as team.yml writes it, in the largest unit that fits: `90s`, `45m`, `8h`, `2d`. Parts of a second are dropped.
#[must_use]
pub fn format_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (number, unit) = match seconds {
        0 => (0, "s"),
        s if s.is_multiple_of(86_400) => (s / 86_400, "d"),
        s if s.is_multiple_of(3600) => (s / 3600, "h"),
        s if s.is_multiple_of(60) => (s / 60, "m"),
        s => (s, "s"),
    };
    format!("{number}{unit}")
}
