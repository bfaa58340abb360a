#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Err(problems) = cliq_lifecycle::PlanFile::parse(text) {
        assert!(!problems.is_empty() && problems.len() <= 21);
    }
});
