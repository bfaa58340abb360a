#![no_main]

use libfuzzer_sys::fuzz_target;
use cliq_protocol::AgentMessage;
fuzz_target!(|bytes: &[u8]| {
    if let Ok(value) = AgentMessage::decode(bytes) {
        let again = AgentMessage::decode(&value.encode());
        assert!(again.is_ok());
    }
});
