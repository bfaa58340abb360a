#![no_main]

use libfuzzer_sys::fuzz_target;
use cliq_protocol::Reviewers;
fuzz_target!(|bytes: &[u8]| {
    let Ok(value) = serde_json::from_slice::<serde_json::Value>(bytes) else { return };
    let _ = Reviewers::from_value(value, "reviewer");
});
