//! The client for services: every call has deadlines, a cap on its answer, a bounded number of tries, and can be cancelled.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::Value;
use ureq::http::{HeaderMap, Response, Uri};
use ureq::{Agent, Body, ResponseExt, SendBody};

use crate::guard::Guard;
use crate::request::{Content, Repeat, Request};
use crate::retry::{CallError, refusal, retry_until};
use crate::size::size;

/// User agent of the client.
const USER_AGENT: &str = concat!("cliq/", env!("CARGO_PKG_VERSION"));

/// Maximum number of connections that are kept open to a host.
const MAX_KEPT: usize = 16;

/// Limits of calls (docs/pull-push.md).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Deadline for a connection.
    pub connect: Duration,
    /// Deadline for the head of a response.
    pub first_byte: Duration,
    /// Maximum time without data in either direction.
    pub idle: Duration,
    /// Deadline for one attempt with its body.
    pub whole: Duration,
    /// Maximum number of attempts of a call.
    pub tries: usize,
    /// The most bytes of an answer that is kept in memory.
    pub answer: u64,
    /// Maximum number of redirects. With 0, a redirect is a response.
    pub redirects: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(20),
            first_byte: Duration::from_secs(60),
            idle: Duration::from_secs(60),
            whole: Duration::from_secs(30 * 60),
            tries: 4,
            answer: 64 << 20,
            redirects: 5,
        }
    }
}

/// An answer that was a success, a redirect that is not followed, or one that the request is prepared for ([`Request::answers`]).
#[derive(Debug, Clone)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Vec<u8>,
    /// Final URL after redirects.
    pub url: String,
}

impl Answer {
    /// A header as text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

type Notice = dyn Fn(&str) + Send + Sync;

/// A client for services. Clones share connections and cancellation. Calls block their thread.
#[derive(Clone)]
pub struct Client {
    /// Connections by the proxy of the environment, if there is one.
    agent: Agent,
    /// Connections to servers on this machine, which no proxy reaches.
    direct: Agent,
    pub(crate) limits: Limits,
    cancelled: Arc<AtomicBool>,
    notice: Arc<Notice>,
    /// Number of responses since a connection was last found to be closed: the most connections that may be kept.
    kept: Arc<AtomicUsize>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl Client {
    /// A client for addresses that a person set. It follows redirects without credentials to other hosts. Servers on this machine are
    /// reached without the proxy of the environment.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self::of(limits, |config| Agent::new_with_config(config.build()))
    }

    /// As [`Client::new`], with the proxy of the environment for servers on this machine too. In a sandbox the proxy is the only way.
    #[must_use]
    pub fn proxied(limits: Limits) -> Self {
        let client = Self::new(limits);
        Self { direct: client.agent.clone(), ..client }
    }

    /// A client for addresses that a caller chose: each address that it connects to is checked by the guard, those of redirects
    /// too. It uses no proxy.
    #[must_use]
    pub fn guarded(limits: Limits, guard: &Guard) -> Self {
        Self::of(limits, |config| guard.agent(config.proxy(None).build()))
    }

    fn of(
        limits: Limits,
        make: impl Fn(ureq::config::ConfigBuilder<ureq::typestate::AgentScope>) -> Agent,
    ) -> Self {
        let config = || {
            Agent::config_builder()
                .http_status_as_error(false)
                .max_redirects(limits.redirects)
                .max_redirects_will_error(limits.redirects > 0)
                .timeout_connect(Some(limits.connect))
                .timeout_recv_response(Some(limits.first_byte))
                .timeout_per_read(Some(limits.idle))
                .timeout_per_write(Some(limits.idle))
                .timeout_per_call(Some(limits.whole))
                .max_idle_connections_per_host(MAX_KEPT)
                .user_agent(USER_AGENT)
        };
        Self {
            agent: make(config()),
            direct: make(config().proxy(None)),
            limits,
            cancelled: Arc::default(),
            notice: Arc::new(|_| {}),
            kept: Arc::default(),
        }
    }

    /// Gives sentences such as "… answered 503; trying again in 2 s" to `notice`.
    #[must_use]
    pub fn with_notice(mut self, notice: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.notice = Arc::new(notice);
        self
    }

    /// Ends all calls of this client and its clones, those that wait included. Later calls fail at once.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
        self.agent.clone().shutdown();
        self.direct.clone().shutdown();
    }

    /// Whether it was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Sends a request, and reads the answer into memory.
    ///
    /// # Errors
    /// No answer, a status that is not a success, or a body that is longer than the limit. Never shows a secret.
    pub fn send(&self, request: &Request) -> Result<Answer, CallError> {
        self.tries(request, || {
            let response = self.open(request)?;
            self.read(request, response)
        })
    }

    /// Sends a request, and reads the answer as JSON. An empty answer is `null`.
    ///
    /// # Errors
    /// As for [`Self::send`], and the answer is not JSON.
    pub fn json(&self, request: &Request) -> Result<Value, CallError> {
        json_of(request, &self.send(request)?)
    }

    /// Calls at most as often as the limits say, and as the request allows.
    pub(crate) fn tries<T>(
        &self,
        request: &Request,
        mut call: impl FnMut() -> Result<T, CallError>,
    ) -> Result<T, CallError> {
        let who = request.who();
        let one = || {
            if self.is_cancelled() {
                return Err(CallError::permanent(format!("{who}: cancelled")));
            }
            call().map_err(|mut error| {
                error.message = request.redact(&error.message);
                // 409 is an answer to what was asked: the same again gets the same.
                if error.status == Some(409) || (request.repeat == Repeat::Refused && !error.was_refused) {
                    error.is_transient = false;
                }
                if self.is_cancelled() {
                    error = CallError::permanent(format!("{who}: cancelled"));
                }
                error
            })
        };
        retry_until(&who, self.limits.tries, one, |said| (self.notice)(said), &self.cancelled)
    }

    /// Sends a request once, and gives the response as it begins, for bodies that are read while they come. Its status is a success, a
    /// redirect that was not followed, 304, or one that the request is prepared for.
    ///
    /// # Errors
    /// No answer, or another status. Errors of this one call are not redacted: [`Request::redact`] does it.
    pub fn open(&self, request: &Request) -> Result<Response<Body>, CallError> {
        let who = request.who();
        let mut result = self.exchange(request)?;
        // Each of the kept connections may be closed; a new one is opened after them.
        while result.as_ref().is_err_and(was_closed) && self.may_reopen(request) {
            result = self.exchange(request)?;
        }
        let response = result.map_err(|error| match self.proxy_of(request) {
            Some(proxy) => CallError::transport(&format!("{who}, through the proxy {proxy},"), &error),
            None => CallError::transport(&who, &error),
        })?;
        self.kept.fetch_add(1, Ordering::Relaxed);
        let status = response.status();
        if status.is_success() || status.is_redirection() || request.answers.contains(&status.as_u16()) {
            Ok(response)
        } else {
            Err(refusal(&who, response))
        }
    }

    /// Whether a request may be sent again after a connection was found to be closed: there may be kept connections, and one less now.
    fn may_reopen(&self, request: &Request) -> bool {
        let kept = |kept: usize| kept.min(MAX_KEPT).checked_sub(1);
        request.reopens
            && !self.is_cancelled()
            && self.kept.fetch_update(Ordering::Relaxed, Ordering::Relaxed, kept).is_ok()
    }

    /// Host and port of the proxy that a request goes through.
    fn proxy_of(&self, request: &Request) -> Option<String> {
        let uri = request.url.parse::<Uri>().ok().filter(|uri| !is_on_this_machine(uri))?;
        let proxy = self.agent.config().proxy().filter(|proxy| !proxy.is_no_proxy(&uri))?;
        Some(format!("{}:{}", proxy.host(), proxy.port()))
    }

    /// Sends a request once. The outer error is that of a request that cannot be made.
    fn exchange(&self, request: &Request) -> Result<Result<Response<Body>, ureq::Error>, CallError> {
        let mut http = ureq::http::Request::builder().method(request.method.clone()).uri(&request.url);
        for (name, value) in &request.headers {
            http = http.header(name.as_str(), value.as_str());
        }
        let is_direct = request.url.parse::<Uri>().is_ok_and(|uri| is_on_this_machine(&uri));
        let agent = if is_direct { &self.direct } else { &self.agent };
        let who = request.who();
        let invalid = |error: ureq::http::Error| {
            CallError::permanent(format!("the request to {who} cannot be made: {error}"))
        };
        let result = match &request.content {
            Content::Nothing => {
                // A body is expected of these, be it empty.
                if matches!(request.method.as_str(), "POST" | "PUT" | "PATCH") {
                    agent.run(http.body(&[][..]).map_err(invalid)?)
                } else {
                    agent.run(http.body(()).map_err(invalid)?)
                }
            }
            Content::Bytes(bytes) => agent.run(http.body(bytes.as_slice()).map_err(invalid)?),
            Content::File { path, offset, length } => {
                let opened = File::open(path).and_then(|mut file| {
                    file.seek(SeekFrom::Start(*offset))?;
                    Ok(file.take(*length))
                });
                let file = opened.map_err(|error| {
                    CallError::permanent(format!("cannot read {}: {error}", path.display()))
                })?;
                let http = http.header("content-length", *length);
                agent.run(http.body(SendBody::from_owned_reader(file)).map_err(invalid)?)
            }
        };
        Ok(result)
    }

    fn read(&self, request: &Request, response: Response<Body>) -> Result<Answer, CallError> {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let url = response.get_uri().clone();
        check_encoding(request, &headers)?;
        let mut body = Vec::new();
        let limit = self.limits.answer;
        let read = response.into_body().into_reader().take(limit + 1).read_to_end(&mut body);
        read.map_err(|error| CallError::broken(&request.who(), &error))?;
        if body.len() as u64 > limit {
            return Err(too_long(&request.who(), limit));
        }
        Ok(Answer { status, headers, body, url: shown(&url, request) })
    }
}

/// Whether an address names this machine: `localhost`, or a loopback address.
fn is_on_this_machine(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default();
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Whether the server closed a connection before the first byte of its response.
fn was_closed(error: &ureq::Error) -> bool {
    use std::io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(error, ureq::Error::Io(error) if matches!(error.kind(), UnexpectedEof | ConnectionReset | ConnectionAborted | BrokenPipe))
}

/// The address that answered; that of the request where it was not redirected, as the caller wrote it.
pub(crate) fn shown(url: &Uri, request: &Request) -> String {
    let asked = request.url.parse::<Uri>().ok();
    if asked.as_ref() == Some(url) { request.url.clone() } else { url.to_string() }
}

/// The body of an answer as JSON.
pub(crate) fn json_of(request: &Request, answer: &Answer) -> Result<Value, CallError> {
    if answer.body.iter().all(u8::is_ascii_whitespace) {
        return Ok(Value::Null);
    }
    cliq_protocol::lenient_json(&answer.body).map_err(|_| {
        let what = answer.header("content-type").unwrap_or("something without a type");
        CallError::permanent(format!(
            "{} answered no JSON but {what}: is that the address of its API?",
            request.who()
        ))
    })
}

/// Bodies that are compressed in a way that was not asked for cannot be read.
pub(crate) fn check_encoding(request: &Request, headers: &HeaderMap) -> Result<(), CallError> {
    // The client decodes gzip and drops the header.
    match headers.get("content-encoding").and_then(|value| value.to_str().ok()) {
        None | Some("identity" | "gzip" | "x-gzip" | "") => Ok(()),
        Some(other) => Err(CallError::permanent(format!(
            "{} sent a body in the encoding `{other}`, which was not asked for",
            request.who()
        ))),
    }
}

pub(crate) fn too_long(who: &str, limit: u64) -> CallError {
    CallError::permanent(format!("{who} sent more than {} and was stopped", size(limit)))
}
