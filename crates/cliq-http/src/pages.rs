//! Answers that come in pages.

use std::collections::HashSet;

use serde_json::Value;

use crate::calls::{Answer, Client, json_of};
use crate::request::{Content, Request};
use crate::retry::CallError;

/// The most pages of one answer, whatever their size.
const MAX_PAGES: usize = 10_000;

/// Page of results.
#[derive(Debug, Default)]
pub struct Page {
    /// Items of the page.
    pub items: Vec<Value>,
    /// The request for the next page, if there is one.
    pub next: Option<Request>,
}

/// Items of all pages.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Items {
    /// The items, in the server's order.
    pub items: Vec<Value>,
    /// Whether there are more than the limit.
    pub more: bool,
}

impl Client {
    /// Reads page after page until there is no next one or `limit` items are there. `read` takes a page apart.
    ///
    /// # Errors
    /// A call fails, or the server sends the client in a circle.
    pub fn pages(
        &self,
        first: Request,
        limit: usize,
        mut read: impl FnMut(Value, &Answer) -> Result<Page, CallError>,
    ) -> Result<Items, CallError> {
        let (mut all, mut seen, mut next) = (Items::default(), HashSet::new(), Some(first));
        while let Some(request) = next.take() {
            let body = match &request.content {
                Content::Bytes(bytes) => bytes.clone(),
                Content::Nothing | Content::File { .. } => Vec::new(),
            };
            if !seen.insert((request.url.clone(), body)) || seen.len() > MAX_PAGES {
                let who = request.who();
                return Err(CallError::permanent(format!(
                    "{who} names as the next page one that was read before"
                )));
            }
            let answer = self.send(&request)?;
            let mut page = read(json_of(&request, &answer)?, &answer)?;
            let room = limit - all.items.len();
            all.more = page.items.len() > room || (page.items.len() == room && page.next.is_some());
            page.items.truncate(room);
            all.items.append(&mut page.items);
            if all.items.len() < limit {
                next = page.next;
            }
        }
        Ok(all)
    }
}
