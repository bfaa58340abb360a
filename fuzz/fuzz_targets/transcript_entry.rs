#![no_main]

use libfuzzer_sys::fuzz_target;
use cliq_protocol::TranscriptEntry;
fuzz_target!(|bytes: &[u8]| {
    if let Ok(value) = TranscriptEntry::decode(bytes) {
        let again = TranscriptEntry::decode(&value.encode());
        assert!(again.is_ok());
    }
});
