#![no_main]

use libfuzzer_sys::fuzz_target;
use cliq_protocol::Form;
fuzz_target!(|input: (&[u8], &[u8], bool)| {
    let (form, answers, is_complete) = input;
    let (Ok(form), Ok(answers)) = (serde_json::from_slice(form), serde_json::from_slice(answers)) else { return };
    let Ok(form) = Form::from_value(form, "form") else { return };
    if let Err(problems) = form.check(&answers, is_complete) {
        assert!(problems.len() <= 21 && problems.iter().all(|problem| problem.len() <= 300));
    }
});
