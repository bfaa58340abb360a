//! Points in time, and timestamps of others.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Length in bytes of the usual form, `2026-01-31T10:30:00.000Z`.
const USUAL_LEN: usize = 24;

/// A point in time, in milliseconds since 1970-01-01T00:00:00Z.
///
/// As text and in JSON it is UTC in ISO-8601 with milliseconds and `Z` (docs/protocol.md). Other ISO-8601 texts with an offset are accepted.
/// The range is that of the calendar, years -9999 to 9999: results outside of it become the nearest end.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// The text is not a point in time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a time: write it as 2026-01-31T10:30:00.000Z")]
pub struct TimestampError {
    text: String,
}

impl Timestamp {
    /// 1970-01-01T00:00:00Z.
    pub const UNIX_EPOCH: Self = Self(0);
    /// The earliest point in time.
    pub const MIN: Self = Self(-377_705_023_201_000);
    /// The latest point in time.
    pub const MAX: Self = Self(253_402_207_200_999);

    /// Returns the time `millis` milliseconds after 1970, limited to the range of the type.
    #[must_use]
    pub const fn from_unix_millis(millis: i64) -> Self {
        match millis {
            ..=-377_705_023_201_000 => Self::MIN,
            253_402_207_200_999.. => Self::MAX,
            millis => Self(millis),
        }
    }

    /// Milliseconds since 1970.
    #[must_use]
    pub const fn unix_millis(self) -> i64 {
        self.0
    }

    /// Parses ISO-8601 text with an offset. Fractions of a millisecond are cut off.
    ///
    /// # Errors
    /// Returns an error if the text is not a point in time.
    pub fn parse(text: &str) -> Result<Self, TimestampError> {
        Self::parse_usual(text)
            .or_else(|| Some(Self::from_unix_millis(text.parse::<jiff::Timestamp>().ok()?.as_millisecond())))
            .ok_or_else(|| TimestampError { text: text.to_owned() })
    }

    /// Parses the usual form only: the text that [`fmt::Display`] gives for years 0 to 9999.
    // Journals have one timestamp per event, and the general parser takes longer than all else that is done with an event.
    fn parse_usual(text: &str) -> Option<Self> {
        let bytes: &[u8; USUAL_LEN] = text.as_bytes().try_into().ok()?;
        let is_separated = bytes[4] == b'-'
            && bytes[7] == b'-'
            && bytes[10] == b'T'
            && bytes[13] == b':'
            && bytes[16] == b':'
            && bytes[19] == b'.'
            && bytes[23] == b'Z';
        if !is_separated {
            return None;
        }
        let number = |from: usize, to: usize| {
            bytes[from..to]
                .iter()
                .try_fold(0_i64, |sum, byte| byte.is_ascii_digit().then(|| sum * 10 + i64::from(byte - b'0')))
        };
        let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
        let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
        let is_date = (1..=12).contains(&month) && (1..=days_of_month(year, month)).contains(&day);
        if !is_date || hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        let days = days_since_1970(year, month, day);
        let millis = (((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + number(20, 23)?;
        (millis <= Self::MAX.0).then_some(Self(millis))
    }

    /// Returns the time `duration` later.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        Self::from_unix_millis(self.0.saturating_add(millis_of(duration)))
    }

    /// Returns the time `duration` earlier.
    #[must_use]
    pub fn before(self, duration: Duration) -> Self {
        Self::from_unix_millis(self.0.saturating_sub(millis_of(duration)))
    }

    /// Returns the time that passed since `earlier`: zero if `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        // The range of the type is far below that of the difference.
        Duration::from_millis(u64::try_from(self.0 - earlier.0).unwrap_or(0))
    }

    /// Writes the usual form of a time of the years 0 to 9999.
    fn usual(self) -> Option<[u8; USUAL_LEN]> {
        let (days, millis) = (self.0.div_euclid(86_400_000), self.0.rem_euclid(86_400_000));
        let (year, month, day) = date_of(days);
        if !(0..=9999).contains(&year) {
            return None;
        }
        let mut text = *b"0000-00-00T00:00:00.000Z";
        let mut write = |to: usize, len: usize, mut number: i64| {
            for place in text[to - len..to].iter_mut().rev() {
                *place = b"0123456789"[usize::try_from(number.rem_euclid(10)).unwrap_or_default()];
                number /= 10;
            }
        };
        write(4, 4, year);
        write(7, 2, month);
        write(10, 2, day);
        write(13, 2, millis / 3_600_000);
        write(16, 2, millis / 60_000 % 60);
        write(19, 2, millis / 1000 % 60);
        write(23, 3, millis % 1000);
        Some(text)
    }
}

fn millis_of(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

fn is_leap_year(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_of_month(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap_year(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Number of days from 1970-01-01 to a date of the proleptic Gregorian calendar.
// Years begin in March here, so that the leap day is the last one, and are grouped to 400, after which the calendar repeats.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year * 365 + year / 4 - year / 100 + day_of_year - 719_468
}

/// Year, month and day of the day that lies `days` after 1970-01-01: the inverse of [`days_since_1970`].
fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + i64::from(month <= 2), month, day)
}

impl FromStr for Timestamp {
    type Err = TimestampError;

    fn from_str(text: &str) -> Result<Self, TimestampError> {
        Self::parse(text)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(usual) = self.usual() {
            return f.pad(std::str::from_utf8(&usual).unwrap_or_default());
        }
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(time) => f.pad(&format!("{time:.3}")),
            Err(_) => Err(fmt::Error),
        }
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Timestamp;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Timestamp, E> {
                Timestamp::parse(text).map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Text)
    }
}

/// A timestamp in a message or record of another program, kept verbatim.
///
/// The text need not be a time: a timestamp informs people, and a malformed one must not cost a message. Decisions use
/// [`WireTime::time`].
#[derive(Clone, PartialEq, Eq)]
pub struct WireTime(Repr);

#[derive(Clone, PartialEq, Eq)]
enum Repr {
    /// The usual form, which is the same text again. Two values are equal if their texts are.
    Time(Timestamp),
    /// Any other text.
    Text(Box<str>),
}

impl WireTime {
    /// Keeps a text verbatim.
    #[must_use]
    pub fn from_text(text: impl AsRef<str>) -> Self {
        let text = text.as_ref();
        Self(Timestamp::parse_usual(text).map_or_else(|| Repr::Text(text.into()), Repr::Time))
    }

    /// Returns the point in time, or `None` if the text is not one.
    #[must_use]
    pub fn time(&self) -> Option<Timestamp> {
        match &self.0 {
            Repr::Time(time) => Some(*time),
            Repr::Text(text) => Timestamp::parse(text).ok(),
        }
    }
}

impl From<Timestamp> for WireTime {
    fn from(time: Timestamp) -> Self {
        if time.usual().is_some() { Self(Repr::Time(time)) } else { Self::from_text(time.to_string()) }
    }
}

impl fmt::Display for WireTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Time(time) => fmt::Display::fmt(time, f),
            Repr::Text(text) => f.pad(text),
        }
    }
}

impl fmt::Debug for WireTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Time(time) => fmt::Debug::fmt(time, f),
            Repr::Text(text) => fmt::Debug::fmt(text, f),
        }
    }
}

impl Serialize for WireTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Repr::Time(time) => time.serialize(serializer),
            Repr::Text(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for WireTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = WireTime;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<WireTime, E> {
                Ok(WireTime::from_text(text))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn by_jiff(time: Timestamp) -> String {
        let nanos = i32::try_from(time.0.rem_euclid(1000) * 1_000_000).unwrap();
        format!("{:.3}", jiff::Timestamp::new(time.0.div_euclid(1000), nanos).unwrap())
    }

    #[test]
    fn range_is_that_of_the_calendar() {
        assert_eq!(Timestamp::MIN.0, jiff::Timestamp::MIN.as_millisecond());
        assert_eq!(Timestamp::MAX.0, jiff::Timestamp::MAX.as_millisecond());
        for millis in [i64::MIN, -1, 0, 1, 1_764_000_000_123, i64::MAX] {
            let time = Timestamp::from_unix_millis(millis);
            assert_eq!(time.to_string(), by_jiff(time));
            assert_eq!(Timestamp::parse(&time.to_string()), Ok(time));
        }
    }

    #[test]
    fn arithmetic_stays_in_range() {
        let time = Timestamp::from_unix_millis(1000);
        assert_eq!(time.after(Duration::MAX), Timestamp::MAX);
        assert_eq!(time.before(Duration::MAX), Timestamp::MIN);
        assert_eq!(time.after(Duration::from_secs(2)).since(time), Duration::from_secs(2));
        assert_eq!(time.since(Timestamp::MAX), Duration::ZERO);
        assert_eq!(Timestamp::MAX.since(Timestamp::MIN).as_millis(), 631_107_230_401_999);
    }

    #[test]
    fn parse_accepts_offsets_and_refuses_other_text() {
        let time = Timestamp::from_unix_millis(1_769_851_800_000);
        for text in ["2026-01-31T09:30:00.000Z", "2026-01-31T09:30:00Z", "2026-01-31T10:30:00+01:00"] {
            assert_eq!(text.parse(), Ok(time), "{text}");
        }
        for text in ["", "soon", "2026-01-31", "2026-02-29T00:00:00.000Z", "2026-01-31T24:00:00.000Z"] {
            let error = Timestamp::parse(text).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("{text:?} is not a time: write it as 2026-01-31T10:30:00.000Z")
            );
        }
    }

    proptest! {
        #[test]
        fn text_of_a_time_is_that_of_the_calendar(millis in prop_oneof![
            Timestamp::MIN.0..=Timestamp::MAX.0,
            0_i64..4_102_444_800_000,
        ]) {
            let time = Timestamp::from_unix_millis(millis);
            let text = time.to_string();
            prop_assert_eq!(&text, &by_jiff(time));
            prop_assert_eq!(Timestamp::parse(&text), Ok(time));
            prop_assert_eq!(WireTime::from_text(&text), WireTime::from(time));
            let json = serde_json::to_string(&time).unwrap();
            prop_assert_eq!(serde_json::from_str::<Timestamp>(&json).unwrap(), time);
        }

        #[test]
        fn usual_form_means_what_the_calendar_says(
            year in 0_i64..10_000, month in 0_i64..14, day in 0_i64..33,
            hour in 0_i64..26, minute in 0_i64..62, second in 0_i64..60, millis in 0_i64..1000,
        ) {
            let text = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z");
            let by_jiff = text.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_millisecond);
            prop_assert_eq!(Timestamp::parse_usual(&text).map(Timestamp::unix_millis), by_jiff);
        }

        #[test]
        fn text_of_others_survives(text in "\\PC{0,30}") {
            let wire = WireTime::from_text(&text);
            prop_assert_eq!(wire.to_string(), text.as_str());
            let json = serde_json::to_string(&wire).unwrap();
            prop_assert_eq!(&json, &serde_json::to_string(&text).unwrap());
            prop_assert_eq!(serde_json::from_str::<WireTime>(&json).unwrap(), wire);
        }
    }
}
