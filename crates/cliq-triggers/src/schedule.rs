//! Ticks of a cron expression in a time zone. Pure: the present time is an argument.

use std::collections::VecDeque;

use cliq_protocol::shorten;
use croner::Cron;
use croner::parser::CronParser;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

/// Age after which a tick counts as missed. Within it, a server that was restarted fires as if nothing had happened.
const MISSED: SignedDuration = SignedDuration::from_secs(60);
/// Maximum number of ticks that `catch_up: all` fires at once: the latest ones.
const MAX_CATCH_UP: usize = 1000;
/// Maximum number of ticks that are counted after an outage. Of more, only the latest are looked at.
const MAX_COUNTED: u64 = 10_000;
/// Maximum length of a cron expression, in bytes.
const MAX_CRON: usize = 256;

/// Policy for ticks that were missed because no server was running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CatchUp {
    /// Missed ticks start nothing.
    #[default]
    None,
    /// The last missed tick fires.
    Last,
    /// Each missed tick fires, at most the latest 1,000.
    All,
}

impl CatchUp {
    /// Words of a file.
    pub const WORDS: [&'static str; 3] = ["none", "last", "all"];

    /// Returns the policy of a word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "none" => Some(Self::None),
            "last" => Some(Self::Last),
            "all" => Some(Self::All),
            _ => None,
        }
    }

    /// Word in a file.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Last => "last",
            Self::All => "all",
        }
    }
}

/// Schedule.
#[derive(Debug, Clone)]
pub struct Schedule {
    cron: Cron,
    text: String,
    zone: TimeZone,
    zone_name: String,
    catch_up: CatchUp,
}

/// Ticks after a mark that are due.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Due {
    /// Ticks that fire, oldest first.
    pub ticks: Vec<Timestamp>,
    /// Number of ticks that start nothing.
    pub missed: u64,
    /// Whether more ticks were missed than `missed`: they are not counted one by one.
    pub has_more: bool,
    /// The last tick that is due: the next mark. `None` if none is due.
    pub mark: Option<Timestamp>,
}

impl Schedule {
    /// Parses a schedule: a cron expression with five fields, six with seconds, or a nickname such as `@daily`; the name of a time zone,
    /// UTC if there is none.
    ///
    /// The expression has at most 256 bytes, and no field of it an empty part, so that time is bounded. Errors have at most 600 bytes.
    ///
    /// # Errors
    /// Returns the reason for people.
    pub fn parse(cron: &str, zone: Option<&str>, catch_up: CatchUp) -> Result<Self, String> {
        let shown = shorten(cron, MAX_CRON);
        check_form(cron).map_err(|reason| format!("{shown:?} is not a cron expression: {reason}"))?;
        let parsed = CronParser::builder().build().parse(cron);
        let parsed = parsed.map_err(|error| format!("{shown:?} is not a cron expression: {error}"))?;
        let zone_name = zone.unwrap_or("UTC").to_owned();
        let zone = TimeZone::get(&zone_name).map_err(|_| {
            let shown = shorten(&zone_name, 100);
            format!("{shown:?} is not a time zone: write a name such as Europe/Berlin")
        })?;
        let schedule = Self { cron: parsed, text: cron.to_owned(), zone, zone_name, catch_up };
        // Such as the 30th of February.
        if schedule.next_after(Timestamp::UNIX_EPOCH).is_none() {
            return Err(format!("{cron:?} has no tick"));
        }
        Ok(schedule)
    }

    /// Cron expression.
    #[must_use]
    pub fn cron(&self) -> &str {
        &self.text
    }

    /// Name of the time zone.
    #[must_use]
    pub fn zone(&self) -> &str {
        &self.zone_name
    }

    /// Policy for missed ticks.
    #[must_use]
    pub fn catch_up(&self) -> CatchUp {
        self.catch_up
    }

    /// Returns the first tick after a time, or `None` if there is none.
    #[must_use]
    pub fn next_after(&self, time: Timestamp) -> Option<Timestamp> {
        let from = time.to_zoned(self.zone.clone());
        let next = self.cron.find_next_occurrence(&from, false).ok()?.timestamp();
        // At the end of daylight saving time a local time comes twice.
        (next > time).then_some(next)
    }

    /// Returns the next ticks after a time.
    #[must_use]
    pub fn upcoming(&self, after: Timestamp, count: usize) -> Vec<Timestamp> {
        std::iter::successors(self.next_after(after), |tick| self.next_after(*tick)).take(count).collect()
    }

    /// Returns the ticks after the mark that are due at `now`.
    ///
    /// At most 10,000 ticks are counted: after a longer outage the search jumps to the latest ones, so that time does not depend on the
    /// length of the outage.
    #[must_use]
    pub fn due(&self, mark: Timestamp, now: Timestamp) -> Due {
        let mut due = Due::default();
        let mut latest = VecDeque::new();
        let mut all: u64 = 0;
        let ticks = std::iter::successors(self.next_after(mark), |tick| self.next_after(*tick));
        for tick in ticks.take_while(|tick| *tick <= now) {
            all += 1;
            if all > MAX_COUNTED {
                (due.has_more, all, latest) = (true, MAX_COUNTED, self.latest(mark, now));
                due.mark = latest.back().copied().or(due.mark);
                break;
            }
            due.mark = Some(tick);
            if latest.len() == MAX_CATCH_UP {
                latest.pop_front();
            }
            latest.push_back(tick);
        }
        due.ticks = match self.catch_up {
            CatchUp::All => latest.into(),
            CatchUp::Last => due.mark.into_iter().collect(),
            CatchUp::None => {
                due.mark.filter(|tick| now.duration_since(*tick) <= MISSED).into_iter().collect()
            }
        };
        due.missed = all.saturating_sub(due.ticks.len() as u64);
        due
    }

    /// Returns the latest ticks after `mark` that are due at `now`, oldest first. Searches backwards from `now`.
    fn latest(&self, mark: Timestamp, now: Timestamp) -> VecDeque<Timestamp> {
        let mut latest = VecDeque::new();
        let (mut before, mut is_inclusive) = (now, true);
        while latest.len() < MAX_CATCH_UP {
            let from = before.to_zoned(self.zone.clone());
            let Ok(tick) = self.cron.find_previous_occurrence(&from, is_inclusive) else { break };
            let tick = tick.timestamp();
            // At the end of daylight saving time a local time comes twice.
            if tick <= mark || tick > before || (!is_inclusive && tick == before) {
                break;
            }
            latest.push_front(tick);
            (before, is_inclusive) = (tick, false);
        }
        latest
    }
}

/// Returns a point in time as ticks are counted: in the calendar of a time zone.
pub(crate) fn tick_at(time: cliq_protocol::Timestamp) -> Timestamp {
    // The ranges of both are the same, save for the last second.
    Timestamp::from_millisecond(time.unix_millis()).unwrap_or(Timestamp::MAX)
}

/// Checks what the parser would need much time for: the length, and fields with an empty part, which never match.
fn check_form(cron: &str) -> Result<(), String> {
    if cron.len() > MAX_CRON {
        return Err(format!("it has {} bytes; {MAX_CRON} is the most", cron.len()));
    }
    match cron.split_whitespace().find(|field| field.split(',').any(str::is_empty)) {
        Some(field) => Err(format!("the field {field:?} has an empty part")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a time")
    }

    fn schedule(cron: &str, zone: &str, catch_up: CatchUp) -> Schedule {
        Schedule::parse(cron, Some(zone), catch_up).expect("a schedule")
    }

    #[test]
    fn wrong_schedules_are_refused_with_the_reason() {
        for (cron, zone, reason) in [
            ("* * *", None, "not a cron expression"),
            ("61 * * * *", None, "not a cron expression"),
            ("0 0 30 2 *", None, "has no tick"),
            ("0 0 * * *", Some("Mars/Olympus"), "not a time zone"),
            ("", None, "not a cron expression"),
        ] {
            let error = Schedule::parse(cron, zone, CatchUp::None).unwrap_err();
            assert!(error.contains(reason), "{cron}: {error}");
        }
    }

    #[test]
    fn expressions_that_can_never_match_are_refused_at_once() {
        // The parser of the crate searches thousands of years for a tick of these.
        for cron in [
            include_str!("../../../fixtures/fuzz/cron-empty-list.txt").trim_end(),
            include_str!("../../../fixtures/fuzz/cron-slow-fuzzed.bin"),
            "* , * * *",
            ",,,,, * * * *",
            "1, * * * *",
            "* * * * MON,",
            &format!("{} * * * *", "1,".repeat(500_000)),
            &"* ".repeat(1_000_000),
        ] {
            let error = Schedule::parse(cron, None, CatchUp::None).unwrap_err();
            assert!(error.contains("is not a cron expression") && error.len() < 700, "{error}");
        }
        let zone = "x".repeat(1_000_000);
        assert!(Schedule::parse("* * * * *", Some(&zone), CatchUp::None).unwrap_err().len() < 700);
    }

    #[test]
    fn long_outages_are_jumped_over() {
        // Ten years by the second: counted one by one, this would take minutes.
        let (mark, now) = (at("2016-01-01T00:00:00Z"), at("2026-01-01T00:00:00Z"));
        for (cron, zone) in
            [("* * * * * *", "Europe/Berlin"), ("*/5 * * * * *", "UTC"), ("* * * * *", "America/New_York")]
        {
            let due = schedule(cron, zone, CatchUp::All).due(mark, now);
            assert_eq!((due.ticks.len(), due.has_more, due.mark), (1000, true, Some(now)), "{cron}");
            assert!(due.ticks.is_sorted() && due.ticks.last() == Some(&now), "{cron}");
            let exact = schedule(cron, zone, CatchUp::All);
            assert_eq!(exact.upcoming(due.ticks[0], 999), due.ticks[1..], "{cron}");
            assert_eq!(schedule(cron, zone, CatchUp::Last).due(mark, now).ticks, [now]);
        }
        let due = schedule("* * * * * *", "UTC", CatchUp::None).due(mark, at("2016-01-01T00:10:00Z"));
        assert_eq!((due.missed, due.has_more), (599, false));
    }

    #[test]
    fn daylight_saving_time_neither_doubles_nor_loses_a_daily_tick() {
        let daily = schedule("30 2 * * *", "Europe/Berlin", CatchUp::All);
        // 2026-03-29 has no 02:30, 2026-10-25 has two.
        for (from, to, days) in [
            ("2026-03-27T00:00:00Z", "2026-03-31T00:00:00Z", 4),
            ("2026-10-23T00:00:00Z", "2026-10-27T00:00:00Z", 4),
        ] {
            let due = daily.due(at(from), at(to));
            assert_eq!(due.ticks.len(), days, "{:?}", due.ticks);
        }
        let hourly = schedule("0 * * * *", "Europe/Berlin", CatchUp::All);
        assert_eq!(hourly.due(at("2026-10-24T12:30:00Z"), at("2026-10-25T12:30:00Z")).ticks.len(), 24);
        assert_eq!(hourly.due(at("2026-03-28T12:30:00Z"), at("2026-03-29T12:30:00Z")).ticks.len(), 24);
    }

    #[test]
    fn missed_ticks_obey_the_policy() {
        let (mark, now) = (at("2026-01-01T00:00:00Z"), at("2026-01-01T05:00:30Z"));
        let due = |policy| schedule("0 * * * *", "UTC", policy).due(mark, now);
        assert_eq!(
            (due(CatchUp::None).ticks.len(), due(CatchUp::None).missed),
            (1, 4),
            "the last one is fresh"
        );
        assert_eq!(due(CatchUp::Last).ticks, [at("2026-01-01T05:00:00Z")]);
        assert_eq!(due(CatchUp::All).ticks.len(), 5);
        let late = schedule("0 * * * *", "UTC", CatchUp::None).due(mark, at("2026-01-01T05:30:00Z"));
        assert_eq!((late.ticks.len(), late.missed, late.mark), (0, 5, Some(at("2026-01-01T05:00:00Z"))));
        let none = schedule("0 * * * *", "UTC", CatchUp::All).due(mark, mark);
        assert_eq!(none, Due::default());
    }

    proptest! {
        /// Servers look at any moments, with clocks that jump: each tick of the time that was seen fires once with `all`.
        #[test]
        fn each_tick_fires_once_however_clocks_jump(jumps in prop::collection::vec(-7200_i64..7200, 1..60)) {
            let schedule = schedule("*/7 * * * *", "America/New_York", CatchUp::All);
            let start = at("2026-10-31T22:00:00Z");
            let (mut mark, mut now, mut latest) = (start, start, start);
            let mut fired = Vec::new();
            for jump in jumps {
                now = now.checked_add(SignedDuration::from_secs(jump)).unwrap().max(start);
                latest = latest.max(now);
                let due = schedule.due(mark, now);
                fired.extend(due.ticks.iter().copied());
                mark = due.mark.unwrap_or(mark);
            }
            let all: Vec<_> = std::iter::successors(schedule.next_after(start), |tick| schedule.next_after(*tick))
                .take_while(|tick| *tick <= latest).collect();
            prop_assert_eq!(fired, all);
        }
    }
}
