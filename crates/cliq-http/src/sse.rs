//! Server-sent events.

use std::io::{self, BufRead, Read};

/// The longest event that is taken, in bytes.
const LIMIT: usize = 16 * 1024 * 1024;

/// An event of a stream.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct SseEvent {
    /// The last id of the stream so far: where a reader goes on (`Last-Event-ID`).
    pub id: Option<String>,
    /// Payload of the event.
    pub data: String,
}

/// Gives each event to `each` until that returns `false` or the stream ends. Invalid UTF-8 is read with U+FFFD.
///
/// # Errors
/// The stream cannot be read, or has an event of more than 16 MiB.
pub fn read_events(mut stream: impl BufRead, mut each: impl FnMut(&SseEvent) -> bool) -> io::Result<()> {
    let (mut event, mut line) = (SseEvent::default(), Vec::new());
    loop {
        line.clear();
        let read = stream.by_ref().take(LIMIT as u64 + 1).read_until(b'\n', &mut line)?;
        if event.data.len() + line.len() > LIMIT {
            return Err(io::Error::other("an event of the stream is too long"));
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end_matches(['\r', '\n']);
        if text.is_empty() {
            if !event.data.is_empty() && !each(&event) {
                return Ok(());
            }
            event.data.clear();
            if read == 0 {
                return Ok(());
            }
        } else if let Some(value) = field(text, "data:") {
            if !event.data.is_empty() {
                event.data.push('\n');
            }
            event.data.push_str(value);
        } else if let Some(value) = field(text, "id:") {
            event.id = Some(value.to_owned());
        }
        // Comments, names and retry times are not used.
    }
}

fn field<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let value = line.strip_prefix(name)?;
    Some(value.strip_prefix(' ').unwrap_or(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_separated() {
        let text = ": hello\r\nevent: x\r\ndata: one\r\n\r\ndata:two\ndata: lines\n\n\n\nid: 4\n\ndata: last";
        let mut seen = Vec::new();
        read_events(text.as_bytes(), |event| {
            seen.push((event.id.clone(), event.data.clone()));
            true
        })
        .expect("readable");
        let last = (Some("4".to_owned()), "last".to_owned());
        assert_eq!(seen, [(None, "one".to_owned()), (None, "two\nlines".to_owned()), last]);
        let mut count = 0;
        read_events(text.as_bytes(), |_| {
            count += 1;
            false
        })
        .expect("readable");
        assert_eq!(count, 1);
    }

    #[test]
    fn invalid_text_is_read_with_replacement_characters() {
        let mut seen = Vec::new();
        read_events(&b"data: a\xff\xf0\x9f b\n\ndata: c\n\n"[..], |event| {
            seen.push(event.data.clone());
            true
        })
        .expect("readable");
        assert_eq!(seen, ["a\u{fffd}\u{fffd} b", "c"]);
    }

    #[test]
    fn an_endless_line_is_refused() {
        let endless = io::BufReader::new(io::repeat(b'x'));
        assert!(read_events(endless, |_| true).is_err());
    }
}
