//! Last error of a program, from its log.

use std::io::{Read, Seek, SeekFrom};

use camino::Utf8Path;

use crate::open_regular;

/// Number of trailing bytes of a log that are read.
const TAIL: u64 = 4096;

/// Returns the last message of a `cliq` process: its last error with the hints below it, else its last lines. Empty if it printed
/// nothing.
#[must_use]
pub fn last_error(log: &Utf8Path) -> String {
    let read = || -> std::io::Result<String> {
        let (mut file, size) = open_regular(log).map_err(|error| error.source)?;
        file.seek(SeekFrom::Start(size.saturating_sub(TAIL)))?;
        let mut bytes = Vec::new();
        file.take(TAIL).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    let text = read().unwrap_or_default();
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let begin = lines.iter().rposition(|line| line.starts_with("error:"));
    // The lines below a heading are its sentences.
    let joined = lines[begin.unwrap_or(lines.len().saturating_sub(5))..].join("; ").replace(":; ", ": ");
    joined.trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_error_is_found_with_its_hints() {
        let dir = tempfile::tempdir().expect("a directory");
        let log = Utf8Path::from_path(dir.path()).expect("UTF-8").join("log");
        assert_eq!(last_error(&log), "");
        for (text, words) in [
            ("error: old\nstarting\nerror: no image\n  hint: build it\n", "no image; hint: build it"),
            (
                "error: cannot start the run:\n  a is missing\n  b is missing\n",
                "cannot start the run: a is missing; b is missing",
            ),
            ("1\n2\n3\n\n4\n5\n6\n", "2; 3; 4; 5; 6"),
        ] {
            std::fs::write(&log, text).expect("written");
            assert_eq!(last_error(&log), words);
        }
    }
}
