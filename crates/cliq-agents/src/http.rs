//! Calls over HTTP, with retries.

use std::cell::Cell;
use std::io::Read;
use std::rc::Rc;
use std::time::Duration;

use backon::{BlockingRetryable, ExponentialBuilder};
use serde_json::Value;
use ureq::http::Response;
use ureq::{Agent, Body};

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(20);
/// What of an error's body is quoted.
const QUOTED: u64 = 2000;

/// Why a call failed.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) message: String,
    /// Whether the same may succeed a moment later.
    pub(crate) again: bool,
    /// How long the server wants to be left alone.
    pub(crate) pause: Option<Duration>,
}

impl Failed {
    pub(crate) fn final_one(message: impl Into<String>) -> Self {
        Self { message: message.into(), again: false, pause: None }
    }
}

/// A client that gives answers of any status, and waits so long for their first byte.
pub(crate) fn client(first_byte: Duration) -> Agent {
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .timeout_connect(Some(CONNECT))
        .timeout_recv_response(Some(first_byte))
        .user_agent(concat!("cliq/", env!("CARGO_PKG_VERSION")))
        .build();
    config.into()
}

/// Calls at most `tries` times, with growing pauses between. What the server asks for goes before what we would do.
pub(crate) fn retry<T>(
    to: &str,
    tries: usize,
    mut call: impl FnMut() -> Result<T, Failed>,
    mut notice: impl FnMut(&str),
) -> Result<T, Failed> {
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
        .when(|failed| failed.again)
        .notify(|failed, pause| {
            wanted.set(failed.pause.map(|pause| pause.min(LONGEST_PAUSE)));
            let seconds = wanted.get().unwrap_or(pause).as_secs_f32().round();
            notice(&format!("{}; trying again in {seconds} s", failed.message));
        })
        .sleep(move |pause| std::thread::sleep(asked.take().unwrap_or(pause)))
        .call()
}

/// What an answer other than 200 means.
pub(crate) fn refusal(who: &str, response: Response<Body>) -> Failed {
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
    let again = matches!(status.as_u16(), 408 | 409 | 425 | 429) || status.is_server_error();
    let said = if said.is_empty() { String::new() } else { format!(": {said}") };
    Failed { message: format!("{who} answered {status}{said}"), again, pause }
}

/// Whether an error may be gone a moment later.
pub(crate) fn is_passing(error: &ureq::Error) -> bool {
    matches!(
        error,
        ureq::Error::Io(_)
            | ureq::Error::Timeout(_)
            | ureq::Error::ConnectionFailed
            | ureq::Error::HostNotFound
    )
}
