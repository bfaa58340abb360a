#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (Option<&str>, &[u8])| {
    let _ = cliq_triggers::fuzz::parse_body(input.0, input.1);
});
