#![no_main]

use libfuzzer_sys::fuzz_target;
use cliq_protocol::Usage;
fuzz_target!(|bytes: &[u8]| {
    let Ok(value) = serde_json::from_slice::<serde_json::Value>(bytes) else { return };
    let _ = Usage::of_result(&value);
});
