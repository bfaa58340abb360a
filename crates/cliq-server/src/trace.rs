//! Trace context of requests: the header `traceparent`, and the spans of the server (docs/telemetry.md).

use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use cliq_protocol::TraceContext;
use cliq_telemetry::{CallEnd, HttpRequest, ProcessTelemetry, RequestSpan, Span};

use crate::access::without_secret;
use crate::app::App;

const HEADER: &str = "traceparent";

tokio::task_local! {
    /// Span that the runs of the request belong to.
    static PARENT: Option<TraceContext>;
}

/// Keeps the context for the handlers of a request, and exports the span of a request that changes something.
pub(crate) async fn keep(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    let caller = caller_of(request.headers());
    // A call over MCP has a span of its own, and the context of its message goes before that of the request.
    let is_mcp = request.uri().path() == "/mcp";
    let changes = !matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    let telemetry = app.options.telemetry.as_ref().filter(|_| changes && !is_mcp);
    let span = OpenSpan::begin(telemetry, caller, || ServedHttp {
        method: request.method().clone(),
        route: request.extensions().get().cloned(),
        path: without_secret(request.uri().path()).to_owned(),
        scheme: if app.options.tls.is_some() { "https" } else { "http" },
    });
    if let Some(context) = span.context() {
        request.extensions_mut().insert(context);
        // Deliveries keep their headers until they start something.
        if let Ok(value) = HeaderValue::from_str(&context.to_string()) {
            request.headers_mut().insert(HEADER, value);
        }
    }
    let response = within(span.context(), next.run(request)).await;
    span.end(response.status());
    response
}

/// Span of the caller. A header that is none is as good as no header, as the recommendation says.
fn caller_of(headers: &HeaderMap) -> Option<TraceContext> {
    let mut all = headers.get_all(HEADER).iter();
    // Of several headers none is known to be right.
    let caller = all.next().filter(|_| all.next().is_none());
    caller.and_then(|header| header.to_str().ok()?.parse().ok())
}

/// Span that the runs of the request belong to, which this task handles.
pub(crate) fn incoming() -> Option<TraceContext> {
    PARENT.try_with(|parent| *parent).ok().flatten()
}

/// Does work whose runs belong to a span.
pub(crate) async fn within<T>(parent: Option<TraceContext>, work: impl Future<Output = T>) -> T {
    PARENT.scope(parent, work).await
}

/// Kind of a request that is being served.
pub(crate) trait Served {
    /// End of a request whose caller has not gone away.
    type End;

    /// Ends the span. Without an end the caller went away.
    fn end(self, span: RequestSpan, end: Option<Self::End>) -> Span;
}

/// Request over HTTP.
struct ServedHttp {
    method: Method,
    route: Option<MatchedPath>,
    /// Path without secrets.
    path: String,
    scheme: &'static str,
}

impl Served for ServedHttp {
    type End = StatusCode;

    fn end(self, span: RequestSpan, status: Option<StatusCode>) -> Span {
        let request = HttpRequest {
            method: self.method.as_str(),
            route: self.route.as_ref().map(MatchedPath::as_str),
            path: &self.path,
            scheme: self.scheme,
        };
        span.end_http(request, status.map(|status| status.as_u16()), cliq_fs::now())
    }
}

/// Call of a tool over MCP, by its name.
pub(crate) struct ServedCall(pub(crate) String);

impl Served for ServedCall {
    /// Whether the call succeeded.
    type End = bool;

    fn end(self, span: RequestSpan, is_done: Option<bool>) -> Span {
        let call = match is_done {
            Some(true) => CallEnd::Done,
            Some(false) => CallEnd::Failed,
            None => CallEnd::Cancelled,
        };
        span.end_tool(&self.0, call, cliq_fs::now())
    }
}

/// Span of a request that is being served, if it is exported. Where it is dropped, the caller went away.
pub(crate) struct OpenSpan<'a, S: Served> {
    caller: Option<TraceContext>,
    own: Option<(&'a ProcessTelemetry, RequestSpan, S)>,
}

impl<'a, S: Served> OpenSpan<'a, S> {
    /// Begins a span, unless there is no telemetry.
    pub(crate) fn begin(
        telemetry: Option<&'a ProcessTelemetry>,
        caller: Option<TraceContext>,
        served: impl FnOnce() -> S,
    ) -> Self {
        let own = telemetry.map(|telemetry| {
            let unique = uuid::Uuid::now_v7().to_string();
            let span = RequestSpan::begin(telemetry.sampler, caller, &unique, cliq_fs::now());
            (telemetry, span, served())
        });
        Self { caller, own }
    }

    /// Context of what the request starts.
    pub(crate) fn context(&self) -> Option<TraceContext> {
        self.own.as_ref().map(|(_, span, _)| span.context()).or(self.caller)
    }

    /// Ends the span.
    pub(crate) fn end(mut self, end: S::End) {
        self.push(Some(end));
    }

    fn push(&mut self, end: Option<S::End>) {
        let Some((telemetry, span, served)) = self.own.take() else { return };
        if span.context().is_sampled {
            telemetry.spans.push(served.end(span, end));
        }
    }
}

impl<S: Served> Drop for OpenSpan<'_, S> {
    fn drop(&mut self) {
        self.push(None);
    }
}
