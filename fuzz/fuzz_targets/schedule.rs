#![no_main]

use libfuzzer_sys::fuzz_target;
use cliq_triggers::{CatchUp, Schedule};
fuzz_target!(|input: (&str, &str, u32)| {
    let (cron, zone, seconds) = input;
    let zone = Some(zone).filter(|zone| !zone.is_empty());
    let Ok(schedule) = Schedule::parse(cron, zone, CatchUp::All) else { return };
    let mark = jiff::Timestamp::UNIX_EPOCH;
    let now = mark + jiff::SignedDuration::from_secs(i64::from(seconds));
    let due = schedule.due(mark, now);
    assert!(due.ticks.len() <= 1000 && due.ticks.is_sorted());
});
