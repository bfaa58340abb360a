//! Previews of files: markdown, tables, JSON, images, text. All of it is text of agents.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use camino::Utf8Path;
use cliq_project::internals::image_type;
use maud::{Markup, html};

use crate::markdown;
use crate::text::shown;

/// The most bytes of a text, and of an image.
const MAX_TEXT: usize = 60_000;
const MAX_IMAGE: usize = 2 << 20;
/// The most rows and columns of a table.
const ROWS: usize = 50;
const COLUMNS: usize = 20;

/// First bytes of a PDF document.
pub(super) const PDF: &[u8] = b"%PDF-";

/// Renders a preview of a file by its name and content. `document` is the address from which a frame loads a PDF document.
pub(super) fn preview(path: &str, bytes: &[u8], document: &str) -> Markup {
    let extension = Utf8Path::new(path).extension().unwrap_or_default().to_ascii_lowercase();
    if let Some(media_type) = image_type(bytes) {
        if bytes.len() > MAX_IMAGE {
            return html! { p.quiet { "The image is too large to be shown." } };
        }
        let data = format!("data:{media_type};base64,{}", STANDARD.encode(bytes));
        return html! { img.artifact src=(data) alt=(format!("The image {path}")); };
    }
    if bytes.starts_with(PDF) {
        return html! {
            iframe.pdf src=(document) title=(format!("The document {path}")) loading="lazy" {}
            p { a href=(document) { "Open the document alone" } }
        };
    }
    if bytes.contains(&0) {
        return html! { p.quiet { "It is not text." } };
    }
    let part = &bytes[..bytes.len().min(MAX_TEXT)];
    let text = shown(part);
    let rest = bytes.len() - part.len();
    html! {
        @match extension.as_str() {
            "md" | "markdown" => div.prose { (markdown::render(&text)) },
            "csv" => (table(&text, ',')),
            "tsv" => (table(&text, '\t')),
            "json" => pre tabindex="0" role="region" aria-label="JSON" { (pretty(&text)) },
            _ => pre tabindex="0" role="region" aria-label="Text" { (text) },
        }
        @if rest > 0 { p.quiet { (rest) " more bytes are in the file." } }
    }
}

fn pretty(text: &str) -> String {
    let value: Option<serde_json::Value> = serde_json::from_str(text).ok();
    value.map_or_else(|| text.to_owned(), |value| format!("{value:#}"))
}

/// A table of separated values. A value that a spreadsheet would take for a formula is text here as any other.
fn table(text: &str, separator: char) -> Markup {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(separator as u8)
        .from_reader(text.as_bytes());
    let rows: Vec<csv::StringRecord> = reader.records().filter_map(Result::ok).take(ROWS + 1).collect();
    let Some((head, body)) = rows.split_first() else { return html! { p.quiet { "It is empty." } } };
    html! {
        div.scroll.prose tabindex="0" role="region" aria-label="Table" {
            table {
                thead { tr { @for cell in head.iter().take(COLUMNS) { th { (cell) } } } }
                tbody { @for row in body { tr { @for cell in row.iter().take(COLUMNS) { td { (cell) } } } } }
            }
        }
        @if rows.len() > ROWS { p.quiet { "The first " (ROWS) " rows." } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_shown_by_their_kind_and_run_nothing() {
        let shown = |path: &str, bytes: &[u8]| preview(path, bytes, "/d").into_string();
        assert!(shown("a.md", b"# Head\n<script>x</script>").contains("<h1>Head</h1>"));
        assert!(!shown("a.md", b"<script>x</script>").contains("<script>"));
        let table = shown("a.csv", b"name,n\n\"a, b\",\"<img src=x>\"\n");
        assert!(table.contains("<td>a, b</td>") && !table.contains("<img"), "{table}");
        assert!(shown("a.json", b"{\"a\":1}").contains("\n  &quot;a&quot;: 1"));
        assert!(shown("a.svg", b"<svg onload=x>").contains("&lt;svg"));
        assert!(shown("a.png", &[0x89, b'P', b'N', b'G', 0]).contains("data:image/png"));
        assert!(shown("a.bin", &[1, 0, 2]).contains("not text"));
        assert!(shown("a.pdf", b"%PDF-1.7 x").contains("<iframe class=\"pdf\" src=\"/d\""));
    }
}
