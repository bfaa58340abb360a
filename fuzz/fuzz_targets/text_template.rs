#![no_main]

use cliq_fuzz::Values;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = cliq_workflow::resolve_text(text, &Values);
});
