//! Server-sent events, as the APIs of models stream them.

use std::io::{self, BufRead};

/// The longest event that is taken.
const LIMIT: usize = 16 * 1024 * 1024;

/// Hands the data of each event to `each` until that says stop (`false`) or the stream ends.
pub(crate) fn read(mut stream: impl BufRead, mut each: impl FnMut(&str) -> bool) -> io::Result<()> {
    let (mut data, mut line) = (String::new(), Vec::new());
    loop {
        line.clear();
        let read = stream.read_until(b'\n', &mut line)?;
        let text = std::str::from_utf8(&line).map_err(io::Error::other)?.trim_end_matches(['\r', '\n']);
        if text.is_empty() {
            if !data.is_empty() && !each(&data) {
                return Ok(());
            }
            data.clear();
            if read == 0 {
                return Ok(());
            }
        } else if let Some(value) = text.strip_prefix("data:") {
            if !data.is_empty() {
                data.push('\n');
            }
            data.push_str(value.strip_prefix(' ').unwrap_or(value));
            if data.len() > LIMIT {
                return Err(io::Error::other("an event of the stream is too long"));
            }
        }
        // Comments, names, ids and retry times say nothing here.
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_separated() {
        let text = ": hello\r\nevent: x\r\ndata: one\r\n\r\ndata:two\ndata: lines\n\n\n\nid: 4\n\ndata: last";
        let mut seen = Vec::new();
        read(text.as_bytes(), |data| {
            seen.push(data.to_owned());
            true
        })
        .expect("readable");
        assert_eq!(seen, ["one", "two\nlines", "last"]);
        let mut count = 0;
        read(text.as_bytes(), |_| {
            count += 1;
            false
        })
        .expect("readable");
        assert_eq!(count, 1);
    }
}
