#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let mut problems = Vec::new();
    let _ = cliq_document::parse(text, "write a document", &mut problems);
    assert!(cliq_document::finish(problems).len() <= 41);
});
