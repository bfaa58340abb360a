//! Saved views: names for addresses with filters. They belong to a browser, which sends them as a cookie, and work without script.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Redirect, Response};
use cliq_web::{Form, Problem};
use maud::{Markup, html};

use crate::page::PageError;
use crate::visitor::Visitor;

const COOKIE: &str = "cliq_views";
/// The most views of a browser, and the most characters of a name and an address: all of it fits into a cookie.
const MOST: usize = 12;
const MAX_NAME: usize = 40;
const MAX_ADDRESS: usize = 200;
/// A year.
const AGE: &str = "31536000";

/// Saved views of a browser, by name and address.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Views(Vec<(String, String)>);

impl Views {
    /// Reads the views of a cookie. What is no view is left out.
    fn read(headers: &HeaderMap) -> Self {
        let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs =
            cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
        let text = pairs.find(|(name, _)| *name == COOKIE).map_or("", |(_, text)| text);
        let all: Vec<(String, String)> = serde_urlencoded::from_str(text).unwrap_or_default();
        Self(all.into_iter().filter(|(name, address)| is_view(name, address)).take(MOST).collect())
    }

    /// Renders the views, and the form that saves the present address. `current` is the address of the page with its query.
    pub(super) fn render(&self, current: &str) -> Markup {
        let saved = self.0.iter().find(|(_, address)| address == current);
        html! {
            div.filters role="group" aria-label="Saved views" {
                @for (name, address) in &self.0 { a href=(address) aria-current=[(address == current).then_some("true")] { (name) } }
                @match saved {
                    Some((name, _)) => {
                        form.inline method="post" action="/views" {
                            input type="hidden" name="remove" value=(name);
                            input type="hidden" name="address" value=(current);
                            button.ghost type="submit" { "Forget this view" }
                        }
                    }
                    None if current.contains('?') && current.len() <= MAX_ADDRESS => {
                        details {
                            summary { "Save this view" }
                            form.inline method="post" action="/views" {
                                input type="hidden" name="address" value=(current);
                                label for="view-name" { "Name of the view" }
                                input #view-name name="name" required maxlength=(MAX_NAME);
                                button type="submit" { "Save" }
                            }
                        }
                    }
                    None => {}
                }
            }
        }
    }

    fn cookie(&self) -> Option<HeaderValue> {
        let text = serde_urlencoded::to_string(&self.0).ok()?;
        format!("{COOKIE}={text}; Path=/; HttpOnly; SameSite=Lax; Max-Age={AGE}").parse().ok()
    }
}

fn is_view(name: &str, address: &str) -> bool {
    let is_name = !name.is_empty() && name.chars().count() <= MAX_NAME && !name.chars().any(char::is_control);
    let is_page = ["/?", "/runs?"].iter().any(|page| address.starts_with(page));
    is_name && is_page && address.len() <= MAX_ADDRESS && crate::mission::is_way_back(address)
}

impl<S: Sync> FromRequestParts<S> for Views {
    type Rejection = std::convert::Infallible;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        Ok(Self::read(&parts.headers))
    }
}

/// Saves or forgets a view, and shows its page.
pub(super) async fn save(_: Visitor, mut views: Views, form: Form) -> Result<Response, PageError> {
    let address = form.get("address").unwrap_or_default().to_owned();
    if let Some(name) = form.get("remove") {
        views.0.retain(|(known, other)| known != name || *other != address);
    } else {
        let name = form.get("name").unwrap_or_default().trim().to_owned();
        if !is_view(&name, &address) {
            let why = format!(
                "a view has a name of 1 to {MAX_NAME} characters and filters of mission control or of the runs"
            );
            return Err(Problem::unprocessable("the view cannot be saved", vec![why]).into());
        }
        // A name stands for one view of each page.
        let page = |address: &str| address.split('?').next().map(str::to_owned);
        views.0.retain(|(known, other)| *known != name || page(other) != page(&address));
        if views.0.len() >= MOST {
            let why = format!("a browser has {MOST} views at most: forget one");
            return Err(Problem::unprocessable("the view cannot be saved", vec![why]).into());
        }
        views.0.push((name, address.clone()));
    }
    let back = if crate::mission::is_way_back(&address) { address.as_str() } else { "/" };
    let mut response = Redirect::to(back).into_response();
    response.headers_mut().extend(views.cookie().map(|cookie| (header::SET_COOKIE, cookie)));
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_come_back_from_their_cookie() {
        let views = Views(vec![
            ("Mine; & \"all\" = ü".to_owned(), "/?team=%40local%2Fx".to_owned()),
            ("Failed".to_owned(), "/runs?state=failed".to_owned()),
        ]);
        let cookie = views.cookie().expect("a cookie");
        let pair = cookie.to_str().expect("text").split(';').next().unwrap_or_default().to_owned();
        let headers =
            HeaderMap::from_iter([(header::COOKIE, format!("a=b; {pair}").parse().expect("a header"))]);
        assert_eq!(Views::read(&headers), views);
        for strange in [
            "cliq_views",
            "cliq_views=%ff",
            "cliq_views=a=//evil.example",
            "cliq_views=a=https%3A%2F%2Fx%2F%3F",
            "cliq_views=a=%2F%3F%0A",
        ] {
            let headers = HeaderMap::from_iter([(header::COOKIE, strange.parse().expect("a header"))]);
            assert_eq!(Views::read(&headers), Views::default(), "{strange}");
        }
    }
}
