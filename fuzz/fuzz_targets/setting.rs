#![no_main]

use libfuzzer_sys::fuzz_target;
use cliq_settings::Key;
fuzz_target!(|input: (&str, &str)| {
    if let Ok(key) = Key::find(input.0) {
        let _ = key.parse(input.0, input.1);
    }
});
