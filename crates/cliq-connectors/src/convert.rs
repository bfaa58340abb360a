//! Documents to markdown. Documents come from strangers: a child process with limits takes them apart, so that one which is made to do
//! harm ends that process and nothing else.

mod html;
mod pdf;

use std::io::{Read, Write};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use rustix::process::{Resource, Rlimit, setrlimit};
use serde::{Deserialize, Serialize};

use crate::{ConnectorError, Context};

/// Time limit of a conversion in seconds: elapsed and processor time.
const SECONDS: u64 = 120;
/// The most memory of the child, in bytes. Deep pages need a deep stack.
const MEMORY: u64 = 3 << 30;
const STACK: usize = 1 << 30;
/// The most bytes of a result.
const RESULT: u64 = 64 << 20;

/// Type of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Document {
    /// HTML.
    Html,
    /// PDF.
    Pdf,
}

/// The line that the child reads before the document.
#[derive(Debug, Serialize, Deserialize)]
struct Order {
    kind: Document,
    /// URL of the document, to which its links are relative.
    url: String,
    content_type: Option<String>,
    /// Whether only the main content is wanted.
    main: bool,
}

/// Converts a document to markdown in a child process.
///
/// # Errors
/// The document cannot be read, or takes more memory or time than it may.
pub(crate) fn to_markdown(
    cx: &Context<'_>,
    kind: Document,
    bytes: &[u8],
    url: &str,
    content_type: Option<&str>,
    main: bool,
) -> Result<String, ConnectorError> {
    let source = DocumentSource { kind, bytes, url, content_type, main };
    convert(&cx.converter, &source, &|| cx.client.is_cancelled())
}

/// Document with what is known about it.
#[derive(Debug, Clone, Copy)]
pub struct DocumentSource<'d> {
    /// Type.
    pub kind: Document,
    /// Content.
    pub bytes: &'d [u8],
    /// URL, to which links are relative.
    pub url: &'d str,
    /// Type as the server named it, with the encoding.
    pub content_type: Option<&'d str>,
    /// Whether only the main content is wanted.
    pub main: bool,
}

/// Converts a document to markdown in a child process. `converter` is a program with its arguments, which calls [`child`].
///
/// # Errors
/// The document cannot be read, takes more memory or time than it may, or the conversion was cancelled.
pub fn convert(
    converter: &(Utf8PathBuf, Vec<String>),
    source: &DocumentSource<'_>,
    is_cancelled: &dyn Fn() -> bool,
) -> Result<String, ConnectorError> {
    let &DocumentSource { kind, bytes, url, content_type, main } = source;
    let what = match kind {
        Document::Html => "the page",
        Document::Pdf => "the PDF",
    };
    let order = Order { kind, url: url.to_owned(), content_type: content_type.map(str::to_owned), main };
    let mut input = serde_json::to_vec(&order).unwrap_or_default();
    input.push(b'\n');
    let (program, args) = converter;
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| ConnectorError::new(format!("cannot start {program} to read {what}: {error}")))?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let end = Instant::now() + Duration::from_secs(SECONDS);
    let (status, text, said) = std::thread::scope(|scope| {
        // The child may answer before it has read all.
        scope.spawn(move || {
            stdin.map(|mut stdin| stdin.write_all(&input).and_then(|()| stdin.write_all(bytes)))
        });
        let text = scope.spawn(move || read_some(stdout, RESULT + 1));
        let said = scope.spawn(move || read_some(stderr, 4096));
        let status = loop {
            match child.try_wait() {
                Ok(Some(status)) => break Some(status),
                Ok(None) if Instant::now() < end && !is_cancelled() => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                _ => {
                    let _ = child.kill();
                    let _ = child.wait();
                    break None;
                }
            }
        };
        (status, text.join().unwrap_or_default(), said.join().unwrap_or_default())
    });
    let refused = |why: &str| {
        ConnectorError::new(format!("{what} cannot be converted: {why}; `format: raw` keeps it as it is"))
    };
    match status {
        None => Err(refused(&format!("it took more than {SECONDS} s"))),
        Some(status) if status.success() => {
            if text.len() as u64 > RESULT {
                return Err(refused("its text is too long"));
            }
            String::from_utf8(text).map_err(|_| refused("its text is not UTF-8"))
        }
        Some(status) if status.code() == Some(1) => {
            let said = String::from_utf8_lossy(&said);
            Err(refused(said.trim().trim_start_matches("error: ")))
        }
        // A signal, or an abort due to a lack of memory.
        Some(_) => Err(refused("it needs more memory or time than it may, or is broken")),
    }
}

fn read_some(from: Option<impl Read>, limit: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    // What came until the pipe broke is what there is.
    let _ = from.map(|from| from.take(limit).read_to_end(&mut bytes));
    bytes
}

/// Converts a page to markdown in this process, without its limits.
///
/// # Errors
/// Returns the reason if the page cannot be converted.
pub fn html_to_markdown(bytes: &[u8]) -> Result<String, String> {
    html::to_markdown(bytes, "https://example.com/", None, true)
}

/// The child: reads an order and a document on standard input, writes markdown on standard output. For the `main` of the program that
/// [`Context::converter`] names.
#[expect(clippy::print_stderr, reason = "it is a program, and this is how it says why it failed")]
pub fn child() -> ExitCode {
    let limits = [(Resource::As, MEMORY), (Resource::Cpu, SECONDS), (Resource::Core, 0)];
    for (resource, limit) in limits {
        let _ = setrlimit(resource, Rlimit { current: Some(limit), maximum: Some(limit) });
    }
    // A panic says the same as an error.
    std::panic::set_hook(Box::new(|_| {}));
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(|| {
        let mut input = Vec::new();
        std::io::stdin().lock().read_to_end(&mut input).map_err(|error| error.to_string())?;
        let end = input.iter().position(|byte| *byte == b'\n').ok_or("there is no document")?;
        let order: Order = serde_json::from_slice(&input[..end]).map_err(|error| error.to_string())?;
        let document = &input[end + 1..];
        let text = match order.kind {
            Document::Html => {
                html::to_markdown(document, &order.url, order.content_type.as_deref(), order.main)?
            }
            Document::Pdf => pdf::to_markdown(document)?,
        };
        std::io::stdout().lock().write_all(text.as_bytes()).map_err(|error| error.to_string())
    });
    let result = match thread.map(std::thread::JoinHandle::join) {
        Ok(Ok(result)) => result,
        Ok(Err(_)) => Err("it is broken, or uses something that cannot be read yet".to_owned()),
        Err(error) => Err(error.to_string()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}
