#![no_main]

use libfuzzer_sys::fuzz_target;
use cliq_protocol::Envelope;
fuzz_target!(|bytes: &[u8]| {
    if let Ok(value) = Envelope::decode(bytes) {
        let again = Envelope::decode(&value.encode());
        assert!(again.is_ok());
    }
});
