#![no_main]

use libfuzzer_sys::fuzz_target;
use cliq_protocol::ChannelMessage;
fuzz_target!(|bytes: &[u8]| {
    if let Ok(value) = ChannelMessage::decode(bytes) {
        let again = ChannelMessage::decode(&value.encode());
        assert!(again.is_ok());
    }
});
