#![no_main]

use cliq_orchestrator::{Journal, RunView};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let path = std::env::temp_dir().join(format!("cliq-fuzz-journal-{}.jsonl", std::process::id()));
    std::fs::write(&path, bytes).expect("a file");
    let path = camino::Utf8Path::from_path(&path).expect("UTF-8");
    match Journal::read(path) {
        Ok(Some(journal)) => drop(RunView::of(&journal)),
        Ok(None) => unreachable!("the file exists"),
        Err(error) => assert!(error.to_string().len() < 10_000),
    }
});
