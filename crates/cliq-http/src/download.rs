//! Answers that are streamed to a file.

use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;
use ureq::ResponseExt;
use ureq::http::{HeaderMap, StatusCode};

use crate::calls::{Client, check_encoding, shown, too_long};
use crate::request::Request;
use crate::retry::CallError;

const CHUNK: usize = 256 << 10;

/// A file that came, whole.
#[derive(Debug)]
pub struct Download {
    /// The file, under a temporary name in the directory that was asked for. It goes with this value unless it is kept.
    pub file: NamedTempFile,
    /// Size in bytes.
    pub size: u64,
    /// SHA-256 in hexadecimal.
    pub sha256: String,
    /// Media type as sent by the server.
    pub content_type: Option<String>,
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// Final URL after redirects.
    pub url: String,
}

/// Head of a response.
struct Head {
    status: StatusCode,
    headers: HeaderMap,
    url: String,
}

impl Download {
    /// A header as text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Gives the file its name, in one step.
    ///
    /// # Errors
    /// Returns an error if the file cannot be renamed.
    pub fn keep(self, path: &Path) -> io::Result<()> {
        self.file.persist(path).map(drop).map_err(|error| error.error)
    }
}

/// A temporary file beside the one it becomes. Its name begins with `.` and ends with `.part`.
///
/// # Errors
/// Returns an error if the file cannot be created.
pub fn part_file(dir: &Path) -> io::Result<NamedTempFile> {
    let permissions = std::fs::Permissions::from_mode(0o644);
    tempfile::Builder::new().prefix(".").suffix(".part").permissions(permissions).tempfile_in(dir)
}

/// Part of a body received so far.
struct PartialBody {
    file: NamedTempFile,
    digest: Sha256,
    size: u64,
    /// Validator for `If-Range`, with which a later attempt continues.
    validator: Option<String>,
}

impl PartialBody {
    fn begin_again(&mut self) -> io::Result<()> {
        self.file.as_file_mut().set_len(0)?;
        self.file.as_file_mut().rewind()?;
        self.digest = Sha256::new();
        self.size = 0;
        self.validator = None;
        Ok(())
    }
}

impl Client {
    /// Streams an answer to a file in `dir`. What breaks off goes on where it stopped, where the server can do that. `None` if the
    /// server says that nothing changed (304). `progress` gets the bytes that have come and, where known, how many there are.
    ///
    /// # Errors
    /// As for [`Client::send`]; a body of more than `limit` bytes, decompressed; a file that cannot be written. Nothing is left behind.
    pub fn download(
        &self,
        request: &Request,
        dir: &Path,
        limit: u64,
        progress: &(dyn Fn(u64, Option<u64>) + Sync),
    ) -> Result<Option<Download>, CallError> {
        let file = part_file(dir).map_err(|error| unwritable(dir, &error))?;
        let mut received = PartialBody { file, digest: Sha256::new(), size: 0, validator: None };
        let head = self.tries(request, || self.receive(request, &mut received, limit, progress))?;
        let Some(Head { status, headers, url }) = head else { return Ok(None) };
        let content_type =
            headers.get("content-type").and_then(|value| value.to_str().ok()).map(str::to_owned);
        let sha256 = hex::encode(received.digest.finalize());
        Ok(Some(Download {
            file: received.file,
            size: received.size,
            sha256,
            content_type,
            status: status.as_u16(),
            headers,
            url,
        }))
    }

    fn receive(
        &self,
        request: &Request,
        received: &mut PartialBody,
        limit: u64,
        progress: &(dyn Fn(u64, Option<u64>) + Sync),
    ) -> Result<Option<Head>, CallError> {
        let who = request.who();
        let path = received.file.path().to_owned();
        let failed = |error: &io::Error| {
            CallError::permanent(format!("cannot write {}: {}", path.display(), plain(error)))
        };
        // Compressed bodies could not be gone on with, and say nothing of their size.
        let mut asked = request.clone().header("accept-encoding", "identity");
        // A part that the caller wants is a whole of its own.
        let wants_part = request.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("range"));
        if let Some(validator) = received.validator.as_ref().filter(|_| received.size > 0 && !wants_part) {
            asked = asked.header("range", format!("bytes={}-", received.size)).header("if-range", validator);
        }
        let response = self.open(&asked)?;
        let status = response.status();
        if status == StatusCode::NOT_MODIFIED {
            return Ok(None);
        }
        if status.is_redirection() {
            return Err(CallError::permanent(format!("{who} answered {status} without saying where it is")));
        }
        let headers = response.headers().clone();
        check_encoding(request, &headers)?;
        let is_rest = headers
            .get("content-range")
            .and_then(|value| value.to_str().ok())
            .is_some_and(|range| range.starts_with(&format!("bytes {}-", received.size)));
        let goes_on = status == StatusCode::PARTIAL_CONTENT && !wants_part;
        if !goes_on || !is_rest {
            let was_begun = received.size > 0;
            received.begin_again().map_err(|error| failed(&error))?;
            if goes_on {
                let message = format!("{who} sent another part of the file than was asked for");
                return Err(CallError::new(message, was_begun));
            }
        }
        let is_compressed = headers.contains_key("content-encoding");
        received.validator = validator(&headers).filter(|_| !is_compressed);
        let total = response.body().content_length().filter(|_| !is_compressed);
        let total = total.map(|rest| rest + received.size);
        if total.is_some_and(|total| total > limit) {
            return Err(too_long(&who, limit));
        }
        let url = shown(&response.get_uri().clone(), request);
        let mut body = response.into_body().into_reader();
        let mut chunk = vec![0; CHUNK];
        loop {
            if self.is_cancelled() {
                return Err(CallError::permanent(format!("{who}: cancelled")));
            }
            let count = match body.read(&mut chunk) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(CallError::broken(&who, &error)),
            };
            if received.size + count as u64 > limit {
                return Err(too_long(&who, limit));
            }
            received.file.write_all(&chunk[..count]).map_err(|error| failed(&error))?;
            received.digest.update(&chunk[..count]);
            received.size += count as u64;
            progress(received.size, total);
        }
        if let Some(total) = total.filter(|total| *total != received.size) {
            let error = io::Error::other(format!("{} of {total} bytes came", received.size));
            return Err(CallError::broken(&who, &error));
        }
        // The rest of what began with 200.
        let status = if goes_on { StatusCode::OK } else { status };
        Ok(Some(Head { status, headers, url }))
    }
}

/// A strong `ETag`, or else the time of the last change: what `If-Range` takes (RFC 9110, section 13.1.5).
fn validator(headers: &HeaderMap) -> Option<String> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let takes_ranges = text("accept-ranges").is_some_and(|value| value.contains("bytes"));
    let etag = text("etag").filter(|etag| !etag.starts_with("W/"));
    etag.or_else(|| text("last-modified")).filter(|_| takes_ranges)
}

/// An error of the system without the path that the library adds to it.
fn plain(error: &io::Error) -> String {
    error
        .raw_os_error()
        .map_or_else(|| error.to_string(), |code| io::Error::from_raw_os_error(code).to_string())
}

fn unwritable(dir: &Path, error: &io::Error) -> CallError {
    CallError::permanent(format!("cannot write in {}: {error}", dir.display()))
}
