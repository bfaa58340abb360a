//! Pages and files of the web.

use camino::{Utf8Path, Utf8PathBuf};
use cliq_http::{Client, Download, Request, size};
use url::Url;

use crate::convert::{Document, to_markdown};
use crate::entry::Format;
use crate::error::file_error;
use crate::files::{content_type, extension_of, sha256, write};
use crate::pulled::{PullResult, Validators};
use crate::{ConnectorError, Context, Entry};

/// Hosts that people sign in at.
const LOGIN_HOSTS: &[&str] = &[
    "accounts.google.com",
    "login.microsoftonline.com",
    "login.live.com",
    "id.atlassian.com",
    "auth.atlassian.com",
];

/// A document of the web.
pub(crate) struct FetchRequest<'a> {
    /// Name in messages.
    pub(crate) called: &'a str,
    pub(crate) request: Request,
    pub(crate) format: Format,
    /// Whether only the main content of a page is wanted.
    pub(crate) main: bool,
    /// The extension of what is expected, where a page in its place is not an answer.
    pub(crate) expected: Option<&'a str>,
    /// Remedy if the service refuses the request.
    pub(crate) hint: &'a str,
}

/// Fetches a document to `dir/name.EXTENSION`. `None` if it has not changed since the validators were made.
pub(crate) fn fetch(
    cx: &Context<'_>,
    client: &Client,
    wanted: &FetchRequest<'_>,
    validators: &Validators,
    dir: &Utf8Path,
    name: &str,
) -> Result<Option<PullResult>, ConnectorError> {
    std::fs::create_dir_all(dir).map_err(|error| file_error("make", dir, &error))?;
    let mut request = wanted.request.clone();
    if let Some(etag) = &validators.etag {
        request = request.header("if-none-match", etag);
    }
    if let Some(time) = &validators.last_modified {
        request = request.header("if-modified-since", time);
    }
    let progress = crate::progress::Bytes::new(&*cx.progress, wanted.called);
    let download =
        client.download(&request, dir.as_std_path(), cx.bounds.file, &|done, total| progress.at(done, total));
    let download = download.map_err(|error| {
        let error = ConnectorError::from(error);
        if error.is_not_found() {
            let host = request.host();
            return ConnectorError {
                message: format!("{host} has no such document ({})", error.message),
                status: error.status,
            };
        }
        error.hint_on_refusal(wanted.hint)
    })?;
    let Some(download) = download else { return Ok(None) };
    let head = head(&download)?;
    let kind = kind_of(&download, &head);
    refuse_login(wanted, &download, kind, &head)?;

    let validators = Validators {
        etag: download.header("etag").map(str::to_owned),
        last_modified: download.header("last-modified").map(str::to_owned),
    };
    let url = download.url.clone();
    let document = match (wanted.format, kind) {
        (Format::Auto, Kind::Html) => Some(Document::Html),
        (Format::Auto, Kind::Pdf) => Some(Document::Pdf),
        _ => None,
    };
    let (path, content_type, sha256, length) = if let Some(document) = document {
        if download.size > cx.bounds.document {
            let limit = size(cx.bounds.document);
            return Err(ConnectorError::new(format!(
                "it has {}, and documents of more than {limit} are not converted; `format: raw` keeps it as it is",
                size(download.size)
            )));
        }
        let bytes = read(&download)?;
        let text = to_markdown(cx, document, &bytes, &url, download.content_type.as_deref(), wanted.main)?;
        if text.trim().is_empty() {
            return Err(ConnectorError::new(
                "the page has no text: scripts in a browser may make it; `format: raw` keeps it as it is",
            ));
        }
        let path = dir.join(format!("{name}.md"));
        write(&path, text.as_bytes())?;
        (path, "text/markdown; charset=utf-8".to_owned(), sha256(text.as_bytes()), text.len() as u64)
    } else {
        let extension = extension(&wanted.request, &download, wanted.expected, kind);
        let path =
            extension.map_or_else(|| dir.join(name), |extension| dir.join(format!("{name}.{extension}")));
        let kept = download.content_type.clone().unwrap_or_else(|| content_type(path.as_str()).to_owned());
        let (sha256, length) = (download.sha256.clone(), download.size);
        download.keep(path.as_std_path()).map_err(|error| file_error("write", &path, &error))?;
        (path, kept, sha256, length)
    };
    let entry = Entry {
        reference: wanted.called.to_owned(),
        file: cx.shown(&path),
        size: length,
        content_type: Some(content_type),
        url: Some(without_secrets(&url)),
        ..Entry::default()
    };
    Ok(Some(PullResult { entry, validators, sha256: Some(sha256) }))
}

/// Type of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Html,
    Pdf,
    Other,
}

fn kind_of(download: &Download, head: &str) -> Kind {
    let said = download.content_type.as_deref().unwrap_or_default().to_ascii_lowercase();
    let start = head.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n']).to_ascii_lowercase();
    if start.starts_with("%pdf-") {
        return Kind::Pdf;
    }
    let is_markup = start.starts_with("<!doctype html") || start.starts_with("<html");
    if is_markup || said.starts_with("text/html") || said.starts_with("application/xhtml+xml") {
        return Kind::Html;
    }
    if said.starts_with("application/pdf") {
        return Kind::Pdf;
    }
    Kind::Other
}

/// The beginning of a document.
fn head(download: &Download) -> Result<String, ConnectorError> {
    use std::io::Read;
    let mut bytes = Vec::new();
    let read = download.file.reopen().and_then(|file| file.take(64 << 10).read_to_end(&mut bytes));
    read.map_err(|error| ConnectorError::new(format!("cannot read what came: {error}")))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn read(download: &Download) -> Result<Vec<u8>, ConnectorError> {
    std::fs::read(download.file.path())
        .map_err(|error| ConnectorError::new(format!("cannot read what came: {error}")))
}

/// Returns an error if a sign-in page came in place of the document.
fn refuse_login(
    wanted: &FetchRequest<'_>,
    download: &Download,
    kind: Kind,
    head: &str,
) -> Result<(), ConnectorError> {
    if kind != Kind::Html {
        return Ok(());
    }
    let came_from = Url::parse(&download.url).ok();
    let host = came_from.as_ref().and_then(Url::host_str).unwrap_or_default();
    let was_redirected =
        came_from.as_ref().map(Url::path) != Url::parse(wanted.request.url()).ok().as_ref().map(Url::path);
    let asks_for_password = head.to_ascii_lowercase().replace(['"', '\''], "").contains("type=password");
    if LOGIN_HOSTS.contains(&host) || (asks_for_password && (was_redirected || wanted.expected.is_some())) {
        return Err(ConnectorError::new(format!(
            "a page to sign in came in place of the document, from {host}: {}",
            wanted.hint
        )));
    }
    if let Some(expected) = wanted.expected.filter(|expected| !matches!(*expected, "html" | "htm")) {
        return Err(ConnectorError::new(format!(
            "a web page came in place of a document ({expected}), from {host}: {}",
            wanted.hint
        )));
    }
    Ok(())
}

/// The extension of what is kept: that of the address where it is one, else the usual one of its type.
fn extension(request: &Request, download: &Download, expected: Option<&str>, kind: Kind) -> Option<String> {
    let of_type = download.content_type.as_deref().and_then(extension_of);
    let expected = expected.map(str::to_owned);
    match kind {
        Kind::Html => Some("html".to_owned()),
        Kind::Pdf => Some("pdf".to_owned()),
        Kind::Other => {
            expected.or_else(|| extension_of_url(request.url())).or_else(|| of_type.map(str::to_owned))
        }
    }
}

/// The extension that an address ends with.
pub(crate) fn extension_of_url(url: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    let name = url.path_segments()?.next_back()?.to_owned();
    let (stem, extension) = name.rsplit_once('.')?;
    let right = !stem.is_empty()
        && (1..=8).contains(&extension.len())
        && extension.chars().all(|c| c.is_ascii_alphanumeric());
    let is_program =
        matches!(extension.to_ascii_lowercase().as_str(), "php" | "asp" | "aspx" | "jsp" | "cgi");
    // `v1.2` is not a file of type `2`.
    let is_number = extension.chars().all(|c| c.is_ascii_digit());
    (right && !is_program && !is_number).then(|| extension.to_ascii_lowercase())
}

/// Extensions of documents: a page in their place is not a document.
pub(crate) fn is_document(extension: &str) -> bool {
    const DOCUMENTS: &[&str] = &[
        "pdf", "docx", "doc", "xlsx", "xls", "pptx", "ppt", "odt", "ods", "csv", "json", "zip", "png", "jpg",
        "jpeg",
    ];
    DOCUMENTS.contains(&extension)
}

/// An address without user, password and query: they may be secret, and it is kept in files.
pub(crate) fn without_secrets(text: &str) -> String {
    let Ok(mut url) = Url::parse(text) else { return text.to_owned() };
    let _ = url.set_username("");
    let _ = url.set_password(None);
    let secret = |key: &str| {
        let key = key.to_ascii_lowercase();
        ["token", "key", "sig", "secret", "password", "auth", "credential"]
            .iter()
            .any(|word| key.contains(word))
    };
    if url.query_pairs().any(|(key, _)| secret(&key)) {
        let kept: Vec<(String, String)> = url
            .query_pairs()
            .filter(|(key, _)| !secret(key))
            .map(|(k, v)| (k.into_owned(), v.into_owned()))
            .collect();
        url.set_query(None);
        if !kept.is_empty() {
            url.query_pairs_mut().extend_pairs(kept);
        }
    }
    url.into()
}

/// The path of the directory of pulled content.
pub(crate) fn pull_dir(cliq_dir: &Utf8Path) -> Utf8PathBuf {
    cliq_dir.join("pull")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_of_addresses() {
        let of = |url: &str| extension_of_url(url);
        assert_eq!(of("https://h/a/report.PDF?x=1").as_deref(), Some("pdf"));
        assert_eq!(of("https://h/archive.tar.gz").as_deref(), Some("gz"));
        for url in [
            "https://h/",
            "https://h/a",
            "https://h/index.php",
            "https://h/v1.2",
            "https://h/.hidden",
            "no address",
        ] {
            assert_eq!(of(url), None, "{url}");
        }
    }

    #[test]
    fn secrets_of_addresses_are_not_kept() {
        assert_eq!(
            without_secrets("https://u:p@h/a?page=2&X-Amz-Signature=abc&access_token=t"),
            "https://h/a?page=2"
        );
        assert_eq!(without_secrets("https://h/a?q=1"), "https://h/a?q=1");
    }
}
