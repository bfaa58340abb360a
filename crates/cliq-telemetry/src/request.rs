//! Spans of the requests that a process serves (docs/telemetry.md).

use cliq_protocol::{SpanId, Timestamp, TraceContext, TraceId};

use crate::conventions::{key, operation};
use crate::options::Sampler;
use crate::span::{Attribute, Span, SpanKind};

/// Methods that the conventions know by name.
const METHODS: &[&str] =
    &["CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "QUERY", "TRACE"];

/// Span of a request that is being served.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RequestSpan {
    context: TraceContext,
    parent: Option<SpanId>,
    start: Timestamp,
}

/// Request over HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HttpRequest<'a> {
    /// Method.
    pub method: &'a str,
    /// Route, such as `/api/v1/runs/{id}`.
    pub route: Option<&'a str>,
    /// Path, without secrets.
    pub path: &'a str,
    /// Scheme: `http` or `https`.
    pub scheme: &'a str,
}

/// End of a call of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallEnd {
    /// The call has a result.
    Done,
    /// The call failed.
    Failed,
    /// The caller went away.
    Cancelled,
}

/// Class of the error of a request whose caller went away.
const CANCELLED: &str = "cancelled";

impl RequestSpan {
    /// Begins the span of a request. `unique` is a name that no other request has.
    #[must_use]
    pub fn begin(sampler: Sampler, caller: Option<TraceContext>, unique: &str, start: Timestamp) -> Self {
        let trace = caller.map_or_else(|| TraceId::of(unique), |caller| caller.trace);
        let span = trace.span(&["request", unique]);
        let is_sampled = sampler.is_sampled(trace, caller);
        let context = TraceContext { trace, span, is_sampled };
        Self { context, parent: caller.map(|caller| caller.span), start }
    }

    /// Context of what the request starts.
    #[must_use]
    pub fn context(&self) -> TraceContext {
        self.context
    }

    /// Ends the span of a request over HTTP. A status from 500 on is a failure; without a status the caller went away before the response.
    #[must_use]
    pub fn end_http(self, request: HttpRequest<'_>, status: Option<u16>, end: Timestamp) -> Span {
        let HttpRequest { method, route, path, scheme } = request;
        let known = METHODS.contains(&method);
        let mut attributes: Vec<Attribute> = vec![
            (key::HTTP_METHOD, if known { method } else { "_OTHER" }.into()),
            (key::URL_PATH, path.into()),
            (key::URL_SCHEME, scheme.into()),
        ];
        attributes.extend(status.map(|status| (key::HTTP_STATUS, u32::from(status).into())));
        if !known {
            attributes.push((key::HTTP_METHOD_ORIGINAL, method.into()));
        }
        attributes.extend(route.map(|route| (key::HTTP_ROUTE, route.into())));
        let error = match status {
            None => Some(CANCELLED.to_owned()),
            Some(status) => (status >= 500).then(|| status.to_string()),
        };
        attributes.extend(error.clone().map(|error| (key::ERROR, error.into())));
        let method = if known { method } else { "HTTP" };
        let name = route.map_or_else(|| method.to_owned(), |route| format!("{method} {route}"));
        self.end(name, attributes, error.map(|error| format!("the request failed: {error}")), end)
    }

    /// Ends the span of a call of a tool over MCP.
    #[must_use]
    pub fn end_tool(self, tool: &str, call: CallEnd, end: Timestamp) -> Span {
        let mut attributes: Vec<Attribute> = vec![
            (key::MCP_METHOD, "tools/call".into()),
            (key::OPERATION, operation::EXECUTE_TOOL.into()),
            (key::TOOL, tool.into()),
        ];
        let error = match call {
            CallEnd::Done => None,
            CallEnd::Failed => Some("tool_error"),
            CallEnd::Cancelled => Some(CANCELLED),
        };
        attributes.extend(error.map(|error| (key::ERROR, error.into())));
        let error = error.map(|error| format!("the call failed: {error}"));
        self.end(format!("tools/call {tool}"), attributes, error, end)
    }

    fn end(self, name: String, attributes: Vec<Attribute>, error: Option<String>, end: Timestamp) -> Span {
        Span {
            trace: self.context.trace,
            id: self.context.span,
            parent: self.parent,
            name,
            kind: SpanKind::Server,
            start: self.start,
            end: end.max(self.start),
            attributes,
            links: Vec::new(),
            error,
            measurements: Vec::new(),
        }
    }
}
