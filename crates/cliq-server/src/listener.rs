//! Connections with their limits: number, speed, size of headers. Connections without a complete request give way to new ones.

mod pending;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::Request;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_io_timeout::TimeoutStream;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

use crate::metrics::Metrics;
use pending::{Pending, PendingConnection};

/// Deadline for the headers of a request, including the time before the first of them, and for the TLS handshake.
const HEADERS: Duration = Duration::from_secs(15);
/// Time for which a client may accept no byte of a response.
const WRITE: Duration = Duration::from_secs(30);
/// The most bytes of a request's line and headers together.
const MAX_HEADER_BYTES: usize = 32 * 1024;
/// Grace period of connections when the server stops.
const DRAIN: Duration = Duration::from_secs(10);

/// Time for an evicted connection to free its slot.
const EVICTION: Duration = Duration::from_millis(200);

pub(crate) struct Limits {
    pub(crate) max_connections: usize,
    pub(crate) tls: Option<TlsAcceptor>,
}

/// Serves connections until `stopping`. Then takes no more, and gives those under way a moment to end.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    limits: Limits,
    metrics: Arc<Metrics>,
    stopping: CancellationToken,
) {
    let slots = Arc::new(Semaphore::new(limits.max_connections));
    let pending = Arc::new(Pending::new(limits.max_connections));
    let connections = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            () = stopping.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Too many open files, most likely: that passes.
                tracing::warn!(%error, "a connection cannot be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let Some(slot) = take_slot(&slots, &pending).await else {
            metrics.connection_refused();
            continue;
        };
        let waiting = pending.enter(peer.ip());
        let (router, tls, metrics, stopping) =
            (router.clone(), limits.tls.clone(), Arc::clone(&metrics), stopping.clone());
        connections.spawn(async move {
            let _slot = slot;
            metrics.connection_opened();
            let evicted = waiting.evicted();
            tokio::select! {
                () = handle(stream, peer, router, tls, waiting, stopping) => {}
                () = evicted.cancelled() => metrics.connection_refused(),
            }
            metrics.connection_closed();
        });
    }
    drop(listener);
    connections.close();
    let _ = tokio::time::timeout(DRAIN, connections.wait()).await;
}

/// Takes a slot for a connection. If there is none, the oldest connection without a complete request gives way.
async fn take_slot(slots: &Arc<Semaphore>, pending: &Pending) -> Option<OwnedSemaphorePermit> {
    if let Ok(slot) = Arc::clone(slots).try_acquire_owned() {
        return Some(slot);
    }
    if !pending.evict_oldest() {
        return None;
    }
    tokio::time::timeout(EVICTION, Arc::clone(slots).acquire_owned()).await.ok()?.ok()
}

async fn handle(
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
    tls: Option<TlsAcceptor>,
    waiting: PendingConnection,
    stopping: CancellationToken,
) {
    // Events are small and wanted at once.
    let _ = stream.set_nodelay(true);
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(WRITE));
    let stream = Box::pin(stream);
    match tls {
        None => connection(stream, peer, router, waiting, stopping).await,
        Some(tls) => {
            if let Ok(Ok(stream)) = tokio::time::timeout(HEADERS, tls.accept(stream)).await {
                connection(stream, peer, router, waiting, stopping).await;
            }
        }
    }
}

async fn connection(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: SocketAddr,
    router: Router,
    waiting: PendingConnection,
    stopping: CancellationToken,
) {
    let service = service_fn(move |request: Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(peer));
        let active = waiting.activate();
        let response = router.clone().oneshot(request);
        async move {
            // The connection waits again once the whole response is sent.
            let hold = move |error| {
                let _ = &active;
                error
            };
            response.await.map(|response| response.map(|body| Body::new(body.map_err(hold))))
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS)
        .max_buf_size(MAX_HEADER_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stopping.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%peer, %error, "a connection ended");
    }
}
