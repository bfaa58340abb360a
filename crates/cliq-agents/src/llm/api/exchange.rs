//! Exchange of one request and its response, on a thread of its own: the caller can show that it waits, and can stop waiting.

use std::io::{self, BufRead, BufReader, Read};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use cliq_http::{CallError, Client, Request, read_events};

/// Maximum size of a response that is not a stream, in bytes.
const WHOLE: u64 = 64 << 20;
/// Size of the part of a page that is read, in bytes.
const PAGE: u64 = 4 << 10;
/// Maximum number of events that wait for the caller.
const QUEUE: usize = 256;

/// Part of a response.
#[derive(Debug)]
pub(super) enum Part {
    /// The server has begun to answer. The text is the media type, empty if there is none.
    Head(String),
    /// Data of an event of a stream.
    Event(String),
    /// Whole body, which is JSON or a JSON text in each line.
    Whole(Vec<u8>),
    /// Start of a web page.
    Page(String),
    /// The response is over. Without other parts, it was empty.
    End,
    /// The response broke off.
    Broken(io::Error),
    /// There is no response of status 2xx.
    Failed(CallError),
}

/// Sends a request. The receiver gets the parts of the response; the last one is `End`, `Broken` or `Failed`.
pub(super) fn start(client: &Client, request: Request) -> Receiver<Part> {
    let (sender, receiver) = sync_channel(QUEUE);
    let client = client.clone();
    // A read that waits cannot be interrupted. If the receiver is gone, the thread ends with the next part.
    std::thread::spawn(move || {
        let last = match client.open(&request) {
            Ok(response) => {
                let kind = response.headers().get("content-type").and_then(|value| value.to_str().ok());
                let _ = sender.send(Part::Head(kind.unwrap_or_default().to_ascii_lowercase()));
                match body(BufReader::new(response.into_body().into_reader()), &sender) {
                    Ok(()) => Part::End,
                    Err(error) => Part::Broken(error),
                }
            }
            Err(mut failed) => {
                failed.message = request.redact(&failed.message);
                Part::Failed(failed)
            }
        };
        let _ = sender.send(last);
    });
    receiver
}

/// Reads a body. Its first character decides whether it is JSON, a page or a stream: not every server sends the right media type.
fn body(mut body: impl BufRead, sender: &SyncSender<Part>) -> io::Result<()> {
    let first = loop {
        let buffer = body.fill_buf()?;
        let Some(&byte) = buffer.first() else { return Ok(()) };
        // White space, and the mark of the byte order.
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' | 0xEF | 0xBB | 0xBF => body.consume(1),
            byte => break byte,
        }
    };
    match first {
        b'{' | b'[' => {
            let mut bytes = Vec::new();
            body.take(WHOLE + 1).read_to_end(&mut bytes)?;
            if bytes.len() as u64 > WHOLE {
                return Err(io::Error::other("the response is longer than 64 MiB"));
            }
            let _ = sender.send(Part::Whole(bytes));
        }
        b'<' => {
            let mut bytes = Vec::new();
            body.take(PAGE).read_to_end(&mut bytes)?;
            let _ = sender.send(Part::Page(String::from_utf8_lossy(&bytes).into_owned()));
        }
        _ => read_events(body, |event| sender.send(Part::Event(event.data.clone())).is_ok())?,
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &[u8]) -> String {
        let (sender, receiver) = sync_channel(QUEUE);
        let end = body(text, &sender).map_err(|error| error.to_string());
        drop(sender);
        let parts: Vec<Part> = receiver.iter().collect();
        format!("{parts:?} {end:?}")
    }

    #[test]
    fn the_first_character_decides_on_the_form_of_a_body() {
        for (text, expected) in [
            (&b"\n {\"a\": 1}"[..], "Whole"),
            (b"\xef\xbb\xbf[1]", "Whole"),
            (b"data: x\n\n", "Event(\"x\")"),
            (b": ping\n\ndata: a\xff\n\n", "Event(\"a\u{fffd}\")"),
            (b"<html>Login</html>", "Page(\"<html>Login</html>\")"),
            (b" \r\n", "[] Ok(())"),
            (b"", "[] Ok(())"),
        ] {
            let found = parts(text);
            assert!(found.contains(expected) && found.ends_with("Ok(())"), "{found}");
        }
    }
}
