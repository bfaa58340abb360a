#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let scan = cliq_markers::scan(text);
    let _ = scan.decisive().map(cliq_markers::Marker::head);
});
