//! Pages of the network for models with tools (docs/models.md).

use std::time::Duration;

use cliq_coder::tools::{Page, PageReader};
use cliq_connectors::convert::{Document, DocumentSource, convert};
use cliq_http::{Client, Guard, Limits, Request};

/// Maximum size of a page in bytes.
const SIZE: u64 = 8 << 20;
/// Deadline for a page.
const TIME: Duration = Duration::from_secs(60);

/// Reader of pages by HTTP. The process that has it is in the sandbox of the tools, whose network and proxy it uses.
pub(crate) struct HttpPages {
    client: Client,
}

impl HttpPages {
    pub(crate) fn new() -> Self {
        let limits = Limits { whole: TIME, answer: SIZE, tries: 2, ..Limits::default() };
        Self { client: Client::proxied(limits) }
    }
}

impl PageReader for HttpPages {
    fn read(&self, url: &str) -> Result<Page, String> {
        // Its form only: the sandbox decides about hosts.
        let url = Guard::default().parse(url).map_err(|error| format!("{url} cannot be read: {error}"))?;
        let answer = self.client.send(&Request::get(url.as_str()).called(url.host())).map_err(|error| {
            format!("{} cannot be read: {}", url.as_str(), reason(&error.to_string(), url.host()))
        })?;
        let content_type = answer.header("content-type").map(str::to_owned);
        let kind = content_type.as_deref().unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let document = match kind.as_str() {
            "text/html" | "application/xhtml+xml" => Some(Document::Html),
            "application/pdf" => Some(Document::Pdf),
            _ => None,
        };
        let text = match document {
            Some(kind) => {
                let source = DocumentSource {
                    kind,
                    bytes: &answer.body,
                    url: &answer.url,
                    content_type: content_type.as_deref(),
                    main: false,
                };
                convert(&crate::outside::converter(), &source, &|| false)
                    .map_err(|error| format!("{}: {error}", answer.url))?
            }
            None => String::from_utf8(answer.body).map_err(|_| {
                let kind = if kind.is_empty() { "of an unknown type" } else { kind.as_str() };
                format!("{} is {kind}, and not text", answer.url)
            })?,
        };
        Ok(Page { url: answer.url, text })
    }
}

/// Reason for the model: the proxy of a sandbox says it by a status.
fn reason(error: &str, host: &str) -> String {
    if error.contains("proxy server responded 403") {
        return format!(
            "the sandbox of the tools does not allow {host} (`sandbox.network` in the settings of the person does)"
        );
    }
    if error.contains("proxy server responded 502") {
        return format!("{host} cannot be reached: nothing answers there");
    }
    error.to_owned()
}
