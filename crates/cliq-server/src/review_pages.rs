//! The pages of one review, served by the run that waits for it, where no server is there.
//!
//! On a port of the loopback address that the system chooses; only who has a link sees anything. The pages are gone when this is dropped.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use cliq_review::{ReviewId, Reviews};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::access::{AllowedHosts, header_text, is_own_origin, protect};
use crate::listener::{self, Limits};
use crate::metrics::Metrics;
use cliq_dashboard::{ReviewSite, assets_router, link_router};
use cliq_web::Problem;

/// Maximum number of concurrent connections.
const MAX_CONNECTIONS: usize = 64;
/// Deadline of a request.
const REQUEST: Duration = Duration::from_secs(60);

/// The pages of one review, on the loopback address.
#[derive(Debug)]
pub struct ReviewPages {
    address: SocketAddr,
    stopping: CancellationToken,
    looked_at: Arc<Mutex<Option<Instant>>>,
}

impl ReviewPages {
    /// Serves the pages of a review. Needs a tokio runtime with IO and time.
    ///
    /// # Errors
    /// No port can be had.
    pub async fn serve(reviews: Arc<dyn Reviews>, review: ReviewId) -> io::Result<Self> {
        let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = socket.local_addr()?;
        let looked_at = Arc::default();
        let guarded = GuardState { hosts: AllowedHosts::new([]), looked_at: Arc::clone(&looked_at) };
        let router: Router = Router::new()
            .merge(link_router(ReviewSite { reviews, only: Some(review) }))
            .merge(assets_router())
            .fallback(async || Problem::not_found("there is nothing at this address"))
            .layer(axum::middleware::from_fn_with_state(Arc::new(guarded), guard));
        let stopping = CancellationToken::new();
        let limits = Limits { max_connections: MAX_CONNECTIONS, tls: None };
        tokio::spawn(listener::serve(socket, router, limits, Arc::new(Metrics::default()), stopping.clone()));
        Ok(Self { address, stopping, looked_at })
    }

    /// The address that links begin with.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Time since the last request for a page.
    #[must_use]
    pub fn looked_at(&self) -> Option<Duration> {
        self.looked_at.lock().unwrap_or_else(PoisonError::into_inner).map(|at| at.elapsed())
    }

    /// The port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.address.port()
    }
}

impl Drop for ReviewPages {
    fn drop(&mut self) {
        self.stopping.cancel();
    }
}

/// State of the guard.
struct GuardState {
    hosts: AllowedHosts,
    looked_at: Arc<Mutex<Option<Instant>>>,
}

/// As the server's guard: names of other sites, and forms of other sites, are refused.
async fn guard(State(guarded): State<Arc<GuardState>>, request: Request, next: Next) -> Response {
    *guarded.looked_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    let headers = request.headers();
    let host =
        header_text(headers, &header::HOST).or_else(|| request.uri().host()).unwrap_or_default().to_owned();
    let changes = !matches!(*request.method(), Method::GET | Method::HEAD);
    let origin = header_text(headers, &header::ORIGIN);
    let mut response = if !guarded.hosts.allows(&host) {
        Problem::forbidden(
            "the pages are served to `localhost` only; forward the port to reach them from elsewhere",
        )
        .into_response()
    } else if changes && origin.is_some_and(|origin| !is_own_origin(origin, &host)) {
        Problem::forbidden("the request comes from a page of another site").into_response()
    } else {
        match tokio::time::timeout(REQUEST, next.run(request)).await {
            Ok(response) => response,
            Err(_) => Problem::timeout().into_response(),
        }
    };
    protect(response.headers_mut(), &uuid::Uuid::now_v7().to_string());
    response
}
