#![no_main]

use libfuzzer_sys::fuzz_target;
use cliq_review::Directory;
fuzz_target!(|bytes: &[u8]| {
    let Ok(value) = serde_json::from_slice::<serde_json::Value>(bytes) else { return };
    if let Ok(directory) = Directory::from_value(&value) {
        let _ = directory.expand(&cliq_protocol::Reviewers::Name("a".to_owned()));
    }
});
