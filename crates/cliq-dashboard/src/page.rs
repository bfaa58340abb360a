//! Result of a page: HTML, or a problem that is rendered as a page.

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{Html, IntoResponse, Response};
use cliq_web::Problem;
use maud::Markup;

use crate::layout;
use crate::visitor::Visitor;

/// Page, or a problem that is rendered as a page.
pub(crate) type Page = Result<Html<String>, PageError>;

/// Problem that is rendered as a page.
#[derive(Debug, Clone)]
pub struct PageError(Problem);

impl From<Problem> for PageError {
    fn from(problem: Problem) -> Self {
        Self(problem)
    }
}

impl From<cliq_model::StoreError> for PageError {
    fn from(error: cliq_model::StoreError) -> Self {
        Self(error.into())
    }
}

impl PageError {
    pub(crate) fn render(&self, visitor: &Visitor) -> Response {
        let page = layout::page(visitor, &self.0.title, None, &layout::problem(&self.0));
        (self.0.status(), page).into_response()
    }
}

impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        let page = layout::bare(&self.0.title, &layout::problem(&self.0));
        let mut response = (self.0.status(), page).into_response();
        // `with_navigation` knows the visitor.
        response.extensions_mut().insert(self);
        response
    }
}

/// Gives pages of problems the navigation if the visitor is signed in.
pub(crate) async fn with_navigation(visitor: Option<Visitor>, request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    match (visitor, response.extensions().get::<PageError>()) {
        (Some(visitor), Some(error)) => error.render(&visitor),
        _ => response,
    }
}

/// Returns a page of the dashboard.
pub(crate) fn show(visitor: &Visitor, title: &str, current: &str, content: &Markup) -> Page {
    Ok(layout::page(visitor, title, Some(current), content))
}
