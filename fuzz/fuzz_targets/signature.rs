#![no_main]

use libfuzzer_sys::fuzz_target;
use cliq_triggers::{Scheme, verify};
fuzz_target!(|input: (u8, Vec<(String, String)>, &[u8], i64)| {
    let (scheme, headers, body, now) = input;
    let word = Scheme::WORDS[usize::from(scheme) % Scheme::WORDS.len()];
    let scheme = Scheme::parse(word).expect("a scheme");
    let header = |name: &str| headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
    assert!(verify(scheme, "a secret that no input knows", header, body, now).is_err());
});
