//! Tests that could not be run on this machine.

use std::fs;
use std::io::Write;
use std::path::Path;

/// Records that the running test could not be run here, and why. `./test` lists these at its end.
pub fn not_run(why: &str) {
    eprintln!("SKIPPED: {why}");
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tmp");
    fs::create_dir_all(&dir).expect("a directory");
    let mut file = fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(dir.join("not-run"))
        .expect("the list of tests not run");
    file.write_all(format!("{test}: {why}\n").as_bytes()).expect("written");
}
