//! Retries.

use std::cell::Cell;
use std::io::Read;
use std::rc::Rc;
use std::time::Duration;

use backon::{BlockingRetryable, ExponentialBuilder};
use serde_json::Value;
use ureq::Body;
use ureq::http::Response;

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// What of an error's body is quoted.
const QUOTED: u64 = 2000;

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CallError {
    /// What happened, for people. Never contains a secret that was not in the response.
    pub message: String,
    /// Whether the same call may succeed later.
    pub is_transient: bool,
    /// The pause that the server asked for (`Retry-After`).
    pub pause: Option<Duration>,
}

impl CallError {
    /// An error that another try will not mend.
    pub fn permanent(message: impl Into<String>) -> Self {
        Self { message: message.into(), is_transient: false, pause: None }
    }
}

/// Calls at most `tries` times, with growing pauses between. The pause that the server asks for goes before the computed one, up to
/// a minute. `notice` gets a sentence before each pause.
///
/// # Errors
/// The last try failed, or an earlier one with an error that another try will not mend.
pub fn retry<T>(
    to: &str,
    tries: usize,
    mut call: impl FnMut() -> Result<T, CallError>,
    mut notice: impl FnMut(&str),
) -> Result<T, CallError> {
    let backoff = ExponentialBuilder::new()
        .with_min_delay(FIRST_PAUSE)
        .with_max_delay(LONGEST_PAUSE)
        .with_max_times(tries.saturating_sub(1))
        .with_jitter();
    let wanted = Rc::new(Cell::new(None));
    let asked = Rc::clone(&wanted);
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
        .sleep(move |pause| std::thread::sleep(asked.take().unwrap_or(pause)))
        .call()
}

/// The error for a response whose status is not a success. Reads the start of its body.
#[must_use]
pub fn refusal(who: &str, response: Response<Body>) -> CallError {
    let status = response.status();
    let pause = response.headers().get("retry-after").and_then(|v| v.to_str().ok()?.trim().parse().ok());
    let pause = pause.and_then(|seconds: f64| Duration::try_from_secs_f64(seconds).ok());
    let mut body = String::new();
    let _ = response.into_body().into_reader().take(QUOTED).read_to_string(&mut body);
    let said = serde_json::from_str::<Value>(&body).ok();
    let said = said.as_ref().and_then(|value| {
        let value = value.get(0).unwrap_or(value);
        value
            .pointer("/error/message")
            .or_else(|| value.get("message"))
            .or_else(|| value.get("error"))?
            .as_str()
    });
    let said = said.unwrap_or(body.trim());
    let is_transient = matches!(status.as_u16(), 408 | 409 | 425 | 429) || status.is_server_error();
    let said = if said.is_empty() { String::new() } else { format!(": {said}") };
    CallError { message: format!("{who} answered {status}{said}"), is_transient, pause }
}
