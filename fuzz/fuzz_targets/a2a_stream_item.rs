#![no_main]

use libfuzzer_sys::fuzz_target;
use cliq_a2a::{Version, wire};
fuzz_target!(|bytes: &[u8]| {
    if let Ok(value) = serde_json::from_slice(bytes) {
        for version in [Version::V0_3, Version::V1_0] {
            let _ = wire::read_stream_item(version, &value);
            let _ = wire::read_task(version, &value);
        }
    }
});
