#![no_main]

use libfuzzer_sys::fuzz_target;
use cliq_protocol::StreamDecoder;
fuzz_target!(|chunks: Vec<Vec<u8>>| {
    let mut decoder = StreamDecoder::with_limit(1000);
    for chunk in &chunks {
        decoder.feed(chunk, |_| {});
    }
});
