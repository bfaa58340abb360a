//! Measurements of a run that rests several times.

use camino::Utf8Path;
use cliq_fs::CliqDir;
use cliq_protocol::RunId;
use cliq_telemetry::{RunFollower, SpanOptions};
use proptest::prelude::*;

use super::sample::JOURNAL;

const PARKED: &str = r#"{"event":"run_parked","on":["v1"],"until":"2026-02-01T10:30:06.000Z","ts":"2026-01-31T10:30:06.000Z"}"#;

proptest! {
    /// However often a run rests, each measurement is counted at one of its rests, and none twice.
    #[test]
    fn each_measurement_is_counted_once(rests in prop::collection::btree_set(1_usize..16, 0..5)) {
        let root = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(root.path()).unwrap();
        std::fs::create_dir_all(root.join(".cliq")).unwrap();
        let dir = CliqDir::at(&root.join(".cliq"), root).unwrap();
        let run: RunId = RunId::parse("r1").unwrap();
        let read = || {
            let measured = RunFollower::last_segment(dir.clone(), &run, SpanOptions::default());
            measured.unwrap().expect("the run is there").measurements
        };
        let (mut text, mut counted) = (String::new(), Vec::new());
        for (n, line) in JOURNAL.trim().lines().enumerate() {
            if rests.contains(&n) {
                text.push_str(PARKED);
                text.push('\n');
                std::fs::write(dir.journal(), &text).unwrap();
                counted.extend(read());
            }
            text.push_str(line);
            text.push('\n');
        }
        std::fs::write(dir.journal(), &text).unwrap();
        counted.extend(read());
        let mut follower = RunFollower::new(dir.clone(), SpanOptions::default());
        let spans = follower.read().unwrap().expect("a batch").spans;
        let all: Vec<_> = spans.into_iter().flat_map(|span| span.measurements).collect();
        prop_assert!(!all.is_empty());
        prop_assert_eq!(counted, all);
        let other = RunFollower::last_segment(dir.clone(), &RunId::parse("r2").unwrap(), SpanOptions::default());
        prop_assert!(other.unwrap().is_none());
    }
}
