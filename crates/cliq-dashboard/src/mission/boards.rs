//! Cache of the rendered mission control: open pages that are notified of a change share one rendering.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use cliq_web::{Core, Problem};

use super::{Filters, Rendered, address_of, render};

/// Time after which a rendering is old: times in it go on, and words come.
const AGE: Duration = Duration::from_secs(1);
/// Maximum number of selections that are kept.
const MOST: usize = 32;

/// Rendering of a selection; locked while it is made, so that others wait for it.
type Place = Arc<tokio::sync::Mutex<Option<Board>>>;

struct Board {
    at: Instant,
    rendered: Arc<Rendered>,
}

/// Forgets the renderings after a request that may have changed something: the visitor is led back to mission control.
pub(crate) async fn forget_after_changes(
    State(boards): State<Arc<Boards>>,
    request: Request,
    next: Next,
) -> Response {
    let may_change = !request.method().is_safe();
    let response = next.run(request).await;
    if may_change {
        boards.forget();
    }
    response
}

/// Renderings by selection.
#[derive(Default)]
pub(crate) struct Boards(Mutex<HashMap<String, Place>>);

impl Boards {
    fn place(&self, filters: &Filters) -> Place {
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let address = address_of("/", filters);
        if places.len() >= MOST && !places.contains_key(&address) {
            places.clear();
        }
        Arc::clone(places.entry(address).or_default())
    }

    /// Forgets all renderings.
    fn forget(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Returns the page for a selection as it is now.
    pub(super) async fn rendered(
        &self,
        core: &Arc<Core>,
        filters: &Filters,
    ) -> Result<Arc<Rendered>, Problem> {
        let place = self.place(filters);
        let mut board = place.lock().await;
        let changes = *core.supervisor.hub().changes().borrow();
        if let Some(board) =
            board.as_ref().filter(|board| board.rendered.changes == changes && board.at.elapsed() < AGE)
        {
            return Ok(Arc::clone(&board.rendered));
        }
        let at = Instant::now();
        let rendered = Arc::new(render(core, filters).await?);
        *board = Some(Board { at, rendered: Arc::clone(&rendered) });
        Ok(rendered)
    }
}
