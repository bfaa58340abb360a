//! Trace context of requests: the header `traceparent` (docs/telemetry.md).

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use cliq_protocol::TraceContext;

tokio::task_local! {
    /// Span of the caller of the request that the task handles.
    static CALLER: Option<TraceContext>;
}

/// Keeps the context of the caller for the handlers of the request. A header that is none is as good as no header, as the recommendation says.
pub(crate) async fn keep(request: Request, next: Next) -> Response {
    let mut headers = request.headers().get_all("traceparent").iter();
    // Of several headers none is known to be right.
    let caller = headers.next().filter(|_| headers.next().is_none());
    let caller = caller.and_then(|header| header.to_str().ok()?.parse().ok());
    CALLER.scope(caller, next.run(request)).await
}

/// Span of the caller of the request that this task handles.
pub(crate) fn incoming() -> Option<TraceContext> {
    CALLER.try_with(|caller| *caller).ok().flatten()
}
