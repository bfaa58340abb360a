#![no_main]

use libfuzzer_sys::fuzz_target;
use cliq_protocol::HostPattern;
fuzz_target!(|input: (&str, &str)| {
    if let Ok(pattern) = HostPattern::parse(input.0) {
        let _ = pattern.matches(input.1);
    }
});
