//! Retries.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use backon::{BlockingRetryable, ExponentialBuilder};
use cliq_protocol::without_credentials;
use serde_json::Value;
use ureq::Body;
use ureq::http::Response;

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// Polling interval for cancellation during a pause.
const SLICE: Duration = Duration::from_millis(100);
/// Maximum size of an error body that is read, and of the part that is quoted.
const READ: u64 = 16 << 10;
const QUOTED: usize = 400;

/// Reason why a call failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CallError {
    /// Cause, for people. Contains no secret that was not in the response.
    pub message: String,
    /// Whether the same call may succeed later.
    pub is_transient: bool,
    /// The pause that the server asked for (`Retry-After`).
    pub pause: Option<Duration>,
    /// The status, where there was an answer.
    pub status: Option<u16>,
    /// Whether it is certain that the server did nothing: there was no connection, or it answered 429 or 503.
    pub was_refused: bool,
    /// Whether the server did not answer in time.
    pub is_timeout: bool,
    /// Types and codes of the error in the body, as the server names them.
    pub names: Vec<String>,
}

impl CallError {
    /// An error that another try will not mend. Passwords in addresses of the message are taken out.
    pub fn permanent(message: impl Into<String>) -> Self {
        Self {
            message: without_credentials(&message.into()).into_owned(),
            is_transient: false,
            pause: None,
            status: None,
            was_refused: false,
            is_timeout: false,
            names: Vec::new(),
        }
    }

    /// An error that another try may mend, or not.
    pub fn new(message: impl Into<String>, is_transient: bool) -> Self {
        Self { is_transient, ..Self::permanent(message) }
    }

    /// The error for a call that got no answer.
    #[must_use]
    pub fn transport(who: &str, error: &ureq::Error) -> Self {
        let was_refused = matches!(error, ureq::Error::ConnectionFailed | ureq::Error::HostNotFound)
            || matches!(error, ureq::Error::Io(error) if error.kind() == io::ErrorKind::ConnectionRefused)
            || matches!(error, ureq::Error::Timeout(ureq::Timeout::Connect | ureq::Timeout::Resolve));
        let message = match error {
            ureq::Error::Timeout(what) => format!("{who} did not answer in time ({what})"),
            ureq::Error::TooManyRedirects => format!("{who} redirects in a circle, or too often"),
            error => format!("{who} cannot be reached: {error}"),
        };
        let is_transient = is_transient(error);
        let is_timeout = matches!(error, ureq::Error::Timeout(_)) && !was_refused;
        Self { is_transient, was_refused, is_timeout, ..Self::permanent(message) }
    }

    /// The error for an answer that broke off.
    #[must_use]
    pub fn broken(who: &str, error: &io::Error) -> Self {
        let is_timeout = error.kind() == io::ErrorKind::TimedOut
            || error
                .get_ref()
                .and_then(|inner| inner.downcast_ref())
                .is_some_and(|inner| matches!(inner, ureq::Error::Timeout(_)));
        let message = match is_timeout {
            true => format!("{who} did not go on with its answer in time"),
            false => format!("the answer of {who} broke off: {error}"),
        };
        Self { is_transient: true, is_timeout, ..Self::permanent(message) }
    }

    /// Whether the server says that there is no such thing.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self.status, Some(404 | 410))
    }
}

/// Whether an error may be gone a moment later.
fn is_transient(error: &ureq::Error) -> bool {
    matches!(
        error,
        ureq::Error::Io(_)
            | ureq::Error::Timeout(_)
            | ureq::Error::ConnectionFailed
            | ureq::Error::HostNotFound
    )
}

/// Calls at most `tries` times, with growing pauses between. The pause that the server asks for goes before the computed one, up to
/// a minute. `notice` gets a sentence before each pause.
///
/// # Errors
/// The last try failed, or an earlier one with an error that another try will not mend.
pub fn retry<T>(
    to: &str,
    tries: usize,
    call: impl FnMut() -> Result<T, CallError>,
    notice: impl FnMut(&str),
) -> Result<T, CallError> {
    retry_until(to, tries, call, notice, &Arc::default())
}

/// As [`retry`], with pauses that end early once it is cancelled.
pub(crate) fn retry_until<T>(
    to: &str,
    tries: usize,
    mut call: impl FnMut() -> Result<T, CallError>,
    mut notice: impl FnMut(&str),
    cancelled: &Arc<AtomicBool>,
) -> Result<T, CallError> {
    let backoff = ExponentialBuilder::new()
        .with_min_delay(FIRST_PAUSE)
        .with_max_delay(LONGEST_PAUSE)
        .with_max_times(tries.saturating_sub(1))
        .with_jitter();
    let wanted = Rc::new(Cell::new(None));
    let (asked, cancelled) = (Rc::clone(&wanted), Arc::clone(cancelled));
    let span = tracing::info_span!("http_request", to, tries = 0, outcome = tracing::field::Empty);
    let mut count = 0;
    let counted = || {
        count += 1;
        let result = span.in_scope(&mut call);
        span.record("tries", count);
        // Not the message of an error: an address in it may be as good as a key.
        span.record("outcome", if result.is_ok() { "ok" } else { "failed" });
        result
    };
    counted
        .retry(backoff)
        .when(|failed| failed.is_transient)
        .notify(|failed, pause| {
            wanted.set(failed.pause.map(|pause| pause.min(LONGEST_PAUSE)));
            let seconds = wanted.get().unwrap_or(pause).as_secs_f32().round();
            notice(&format!("{}; trying again in {seconds} s", failed.message));
        })
        .sleep(move |pause| {
            let end = Instant::now() + asked.take().unwrap_or(pause);
            while !cancelled.load(Ordering::Relaxed)
                && let Some(rest) = end.checked_duration_since(Instant::now()).filter(|rest| !rest.is_zero())
            {
                std::thread::sleep(rest.min(SLICE));
            }
        })
        .call()
}

/// The error for a response whose status is not a success. Reads the start of its body.
#[must_use]
pub(crate) fn refusal(who: &str, response: Response<Body>) -> CallError {
    let status = response.status();
    let pause =
        response.headers().get("retry-after").and_then(|value| retry_after(value.to_str().ok()?.trim()));
    let mut body = String::new();
    let _ = response.into_body().into_reader().take(READ).read_to_string(&mut body);
    let names = names_in(&body);
    let mut said = said_in(&body);
    if let Some((end, _)) = said.char_indices().nth(QUOTED) {
        said.truncate(end);
        said.push('…');
    }
    let is_transient = matches!(status.as_u16(), 408 | 409 | 425 | 429) || status.is_server_error();
    let said = if said.is_empty() { String::new() } else { format!(": {said}") };
    let was_refused = matches!(status.as_u16(), 429 | 503);
    let status_code = Some(status.as_u16());
    CallError {
        message: format!("{who} answered {status}{said}"),
        is_transient,
        pause,
        status: status_code,
        was_refused,
        is_timeout: false,
        names,
    }
}

/// Returns the types and codes of the error in a JSON body.
fn names_in(body: &str) -> Vec<String> {
    let Ok(value) = serde_json::from_str::<Value>(body) else { return Vec::new() };
    let value = value.get(0).unwrap_or(&value);
    let places = ["/error/type", "/error/code", "/error/status", "/type", "/code"];
    let names = places.iter().filter_map(|place| value.pointer(place)?.as_str());
    names.filter(|name| *name != "error").map(|name| name.chars().take(80).collect()).collect()
}

/// A number of seconds, or a time (RFC 9110, section 10.2.3).
fn retry_after(text: &str) -> Option<Duration> {
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let time = httpdate::parse_http_date(text).ok()?;
    Some(time.duration_since(SystemTime::now()).unwrap_or_default())
}

/// Returns the message in an error body: the JSON field in which services put it, or the text itself. Pages are not quoted.
fn said_in(body: &str) -> String {
    let Ok(value) = cliq_protocol::lenient_json(body.as_bytes()) else {
        let text = body.trim();
        return if text.starts_with('<') { xml_message(text) } else { text.to_owned() };
    };
    let value = value.get(0).unwrap_or(&value);
    let one =
        ["/error/message", "/message", "/error_description", "/error", "/title", "/detail", "/description"];
    if let Some(text) =
        one.iter().find_map(|place| value.pointer(place)?.as_str()).filter(|text| !text.is_empty())
    {
        return text.to_owned();
    }
    let mut texts: Vec<String> = Vec::new();
    for list in ["errorMessages", "errors"] {
        match value.get(list) {
            Some(Value::Array(items)) => texts.extend(items.iter().filter_map(|item| {
                let text = item
                    .as_str()
                    .or_else(|| item.get("message")?.as_str())
                    .or_else(|| item.get("title")?.as_str());
                text.map(str::to_owned)
            })),
            Some(Value::Object(fields)) => {
                texts.extend(
                    fields
                        .iter()
                        .map(|(field, said)| format!("{field}: {}", said.as_str().unwrap_or_default())),
                );
            }
            _ => {}
        }
    }
    if texts.is_empty() { body.trim().to_owned() } else { texts.join("; ") }
}

/// The `Message` of an error in XML, as S3 has it; nothing for other markup.
fn xml_message(text: &str) -> String {
    let between = |name: &str| {
        let (_, rest) = text.split_once(&format!("<{name}>"))?;
        rest.split_once(&format!("</{name}>")).map(|(inner, _)| inner.to_owned())
    };
    match (between("Code"), between("Message")) {
        (Some(code), Some(message)) => format!("{code}: {message}"),
        (code, message) => code.or(message).unwrap_or_default(),
    }
}
