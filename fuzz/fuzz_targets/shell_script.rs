#![no_main]

use cliq_fuzz::Values;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|script: &str| {
    let _ = cliq_workflow::resolve_script(script, &Values);
});
