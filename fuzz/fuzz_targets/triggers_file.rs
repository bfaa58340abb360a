#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    assert!(cliq_triggers::read_triggers(text, &|_| None).diagnostics.len() <= 41);
});
