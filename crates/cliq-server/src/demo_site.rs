//! A small site on this machine, for `cliq demo --pull`: gives the files of a directory, and takes files below `published/`.

use std::net::SocketAddr;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use camino::{Utf8Component, Utf8Path, Utf8PathBuf};

/// The site. It is served until this value goes.
#[derive(Debug)]
pub struct DemoSite {
    url: String,
    _runtime: tokio::runtime::Runtime,
}

impl DemoSite {
    /// Serves a directory on a free port of this machine.
    ///
    /// # Errors
    /// No port is free.
    pub fn start(dir: &Utf8Path) -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let listener =
            runtime.block_on(tokio::net::TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))))?;
        let url = format!("http://{}", listener.local_addr()?);
        let routes = Router::new().route("/{*path}", get(give).put(take)).with_state(dir.to_owned());
        runtime.spawn(async move { axum::serve(listener, routes).await });
        Ok(Self { url, _runtime: runtime })
    }

    /// URL of the site.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }
}

/// A file of the directory; `None` for paths that lead out.
fn file_of(dir: &Utf8Path, path: &str) -> Option<Utf8PathBuf> {
    let path = Utf8Path::new(path);
    path.components().all(|part| matches!(part, Utf8Component::Normal(_))).then(|| dir.join(path))
}

async fn give(State(dir): State<Utf8PathBuf>, Path(path): Path<String>, headers: HeaderMap) -> Response {
    let Some(file) = file_of(&dir, &path) else { return StatusCode::NOT_FOUND.into_response() };
    let Ok(bytes) = tokio::fs::read(&file).await else { return StatusCode::NOT_FOUND.into_response() };
    let etag = format!(
        "\"{:x}-{}\"",
        bytes.iter().fold(5381_u64, |hash, byte| hash.wrapping_mul(33) ^ u64::from(*byte)),
        bytes.len()
    );
    if headers.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == etag.as_bytes()) {
        return StatusCode::NOT_MODIFIED.into_response();
    }
    let kind = match file.extension() {
        Some("html") => "text/html; charset=utf-8",
        Some("csv") => "text/csv; charset=utf-8",
        Some("md") => "text/markdown; charset=utf-8",
        _ => "application/octet-stream",
    };
    ([(header::CONTENT_TYPE, kind.to_owned()), (header::ETAG, etag)], bytes).into_response()
}

async fn take(State(dir): State<Utf8PathBuf>, Path(path): Path<String>, body: Bytes) -> StatusCode {
    let Some(file) = file_of(&dir, &path).filter(|_| path.starts_with("published/")) else {
        return StatusCode::FORBIDDEN;
    };
    let made = match file.parent() {
        Some(parent) => tokio::fs::create_dir_all(parent).await,
        None => Ok(()),
    };
    match made {
        Ok(()) if tokio::fs::write(&file, &body).await.is_ok() => StatusCode::CREATED,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
