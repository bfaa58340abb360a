#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, &str)| {
    if let Ok(glob) = cliq_workflow::parse_glob(input.0) {
        let _ = glob.matches(input.1.into());
    }
});
