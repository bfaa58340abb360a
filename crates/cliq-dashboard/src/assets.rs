//! The few files that pages need. Their addresses change with their content, so that browsers keep them for good.

use std::sync::LazyLock;

use axum::http::header;
use axum::response::{IntoResponse, Response};
use ring::digest::{SHA256, digest};

use cliq_web::{Path, Problem};

struct Asset {
    name: &'static str,
    content_type: &'static str,
    text: &'static str,
    url: String,
}

static ASSETS: LazyLock<Vec<Asset>> = LazyLock::new(|| {
    [
        ("style.css", "text/css; charset=utf-8", include_str!("assets/style.css")),
        ("app.js", "text/javascript; charset=utf-8", include_str!("assets/app.js")),
        ("studio.js", "text/javascript; charset=utf-8", include_str!("assets/studio.js")),
        ("icon.svg", "image/svg+xml", include_str!("assets/icon.svg")),
        ("icon-alert.svg", "image/svg+xml", include_str!("assets/icon-alert.svg")),
    ]
    .into_iter()
    .map(|(name, content_type, text)| {
        let hash = hex::encode(&digest(&SHA256, text.as_bytes()).as_ref()[..6]);
        Asset { name, content_type, text, url: format!("/assets/{hash}-{name}") }
    })
    .collect()
});

/// The address of a file.
pub(super) fn url(name: &str) -> &'static str {
    ASSETS.iter().find(|asset| asset.name == name).map_or("/", |asset| &asset.url)
}

/// A file. Needs no token.
pub(super) async fn asset(Path(name): Path<String>) -> Response {
    match ASSETS.iter().find(|asset| asset.url.strip_prefix("/assets/") == Some(&name)) {
        Some(asset) => {
            let headers = [
                (header::CONTENT_TYPE, asset.content_type),
                (header::CACHE_CONTROL, "public, max-age=31536000, immutable"),
            ];
            (headers, asset.text).into_response()
        }
        None => Problem::not_found("there is no such file").into_response(),
    }
}
