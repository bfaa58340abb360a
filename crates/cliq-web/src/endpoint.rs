//! Handlers of requests behind one type.
//!
//! axum compiles each layer between router and handler once per type of handler. Behind one type, all handlers
//! cost what one does, for one indirect call per request (docs/decisions/0090-handlers-have-one-type.md).

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use axum::extract::Request;
use axum::handler::Handler;
use axum::response::Response;
use axum::routing::{self, MethodFilter, MethodRouter};

type Answer = Pin<Box<dyn Future<Output = Response> + Send>>;

/// A handler whose type names the state only.
pub struct Endpoint<S>(Arc<dyn Fn(Request, S) -> Answer + Send + Sync>);

impl<S> Endpoint<S> {
    /// Takes an asynchronous function with extractors for parameters, as axum does.
    pub fn new<H, T>(handler: H) -> Self
    where
        H: Handler<T, S, Future = Answer>,
    {
        Self(Arc::new(move |request, state| handler.clone().call(request, state)))
    }
}

impl<S> Clone for Endpoint<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S> fmt::Debug for Endpoint<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Endpoint")
    }
}

impl<S: 'static> Handler<(), S> for Endpoint<S> {
    type Future = Answer;

    fn call(self, request: Request, state: S) -> Answer {
        (self.0)(request, state)
    }
}

/// Routes the methods of a filter to a handler.
pub fn on<S: Clone + Send + Sync + 'static>(
    methods: MethodFilter,
    endpoint: Endpoint<S>,
) -> MethodRouter<S, Infallible> {
    routing::on(methods, endpoint)
}

/// Routes GET and HEAD to a handler.
pub fn get<H, T, S>(handler: H) -> MethodRouter<S, Infallible>
where
    H: Handler<T, S, Future = Answer>,
    S: Clone + Send + Sync + 'static,
{
    on(MethodFilter::GET, Endpoint::new(handler))
}

/// Routes POST to a handler.
pub fn post<H, T, S>(handler: H) -> MethodRouter<S, Infallible>
where
    H: Handler<T, S, Future = Answer>,
    S: Clone + Send + Sync + 'static,
{
    on(MethodFilter::POST, Endpoint::new(handler))
}

/// Routes every method to a handler.
pub fn any<H, T, S>(handler: H) -> MethodRouter<S, Infallible>
where
    H: Handler<T, S, Future = Answer>,
    S: Clone + Send + Sync + 'static,
{
    routing::any(Endpoint::new(handler))
}
