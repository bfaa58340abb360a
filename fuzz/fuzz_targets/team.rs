#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let checked = cliq_workflow::check(text, &cliq_workflow::NoFiles);
    assert!(checked.workflow.is_some() != checked.has_errors() && checked.diagnostics.len() <= 41);
});
