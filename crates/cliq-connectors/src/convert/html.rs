//! HTML to markdown: the main content, with its links made absolute.

use std::borrow::Cow;

use dom_query::Document;
use dom_smoothie::Readability;
use encoding_rs::Encoding;
use htmd::HtmlToMarkdown;
use url::Url;

/// Elements that never contain article text: navigation, scripts, forms.
const NO_CONTENT: &str = "script, style, noscript, template, iframe, object, embed, svg, canvas, link, meta, [hidden], [aria-hidden=true]";
/// Elements around the content.
const AROUND: &str = "nav, aside, body > header, body > footer, [role=navigation], [role=banner], [role=contentinfo], [role=search], \
    [role=complementary], dialog";
/// Elements that are marked as the main content.
const MAIN: &[&str] =
    &["main", "[role=main]", "article", "#content", "#main", ".mw-parser-output", ".markdown-body"];
/// Minimum share of a page's text in the content, in percent. A smaller share means that text was lost.
const ENOUGH: usize = 50;
/// Pages that are larger or deeper are not searched for an article.
const MAX_ELEMENTS: usize = 100_000;
const MAX_DEPTH: usize = 300;

/// Elements that close themselves, or that the next of their kind closes.
const CLOSED: &[&str] = &[
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track",
    "wbr", "p", "li", "dt", "dd", "option", "optgroup", "td", "th", "tr", "tbody", "thead", "tfoot", "html",
    "head", "body",
];
/// Maximum nesting of a page. Tags of deeper elements are left out, and their text is kept: parser and converter need time by the product
/// of size and depth.
const MAX_NESTING: usize = 256;
/// Maximum nesting of lists and quotations: each indents all lines in it.
const MAX_LISTS: usize = 16;

/// Returns a page without the tags that are nested too deeply. Time is linear.
fn flattened(text: &str) -> Cow<'_, str> {
    let (mut out, mut kept, mut at) = (String::new(), 0, 0);
    let (mut depth, mut lists) = (0_usize, 0_usize);
    while let Some(next) = text[at..].find('<') {
        let start = at + next;
        let inner = &text[start + 1..];
        let is_end = inner.starts_with('/');
        let name_start = start + 1 + usize::from(is_end);
        let length = text[name_start..].bytes().take_while(u8::is_ascii_alphanumeric).take(20).count();
        let name = text[name_start..name_start + length].to_ascii_lowercase();
        if length == 0 {
            at = start + 1;
            continue;
        }
        let end = text[name_start..].find('>').map_or(text.len(), |end| name_start + end + 1);
        at = end;
        if CLOSED.contains(&name.as_str()) {
            continue;
        }
        let list = usize::from(matches!(name.as_str(), "ul" | "ol" | "dl" | "blockquote"));
        if is_end {
            (depth, lists) = (depth.saturating_sub(1), lists.saturating_sub(list));
        }
        let is_deep = depth >= MAX_NESTING || (list > 0 && lists >= MAX_LISTS);
        if !is_end {
            (depth, lists) = (depth + 1, lists + list);
        }
        if is_deep {
            out.push_str(&text[kept..start]);
            kept = end;
        }
        if !is_end && matches!(name.as_str(), "script" | "style" | "textarea" | "title") {
            // Text without tags, up to its own end.
            at += text[at..].find(&format!("</{name}")).unwrap_or(text.len() - at);
        }
    }
    if kept == 0 {
        return text.into();
    }
    out.push_str(&text[kept..]);
    out.into()
}

/// Markdown of a page. Time is linear in the size of the page: elements nested more than 256 deep, and lists nested more than 16 deep, lose their tags.
pub(super) fn to_markdown(
    bytes: &[u8],
    url: &str,
    content_type: Option<&str>,
    main: bool,
) -> Result<String, String> {
    let text = decode(bytes, content_type);
    let document = Document::from(&*flattened(&text));
    absolute_links(&document, url);
    let title = document.select("title").text().trim().to_owned();
    document.select(NO_CONTENT).remove();
    let content = if main { main_content(&document, url) } else { body(&document) };
    let converter = HtmlToMarkdown::builder()
        .skip_tags(vec!["head", "title", "button", "input", "select", "textarea"])
        .options(htmd::options::Options {
            heading_style: htmd::options::HeadingStyle::Atx,
            bullet_list_marker: htmd::options::BulletListMarker::Dash,
            ul_bullet_spacing: 1,
            ol_number_spacing: 1,
            ..Default::default()
        })
        .build();
    let markdown = converter.convert(&content).map_err(|error| error.to_string())?;
    let markdown = markdown.trim();
    let has_title = title.is_empty() || markdown.starts_with("# ") || markdown.contains("\n# ");
    let mut result = if has_title { String::new() } else { format!("# {}\n\n", one_line(&title)) };
    result.push_str(markdown);
    result.push('\n');
    Ok(result)
}

/// The text of a page, by what its header, its first bytes or itself say of its encoding (the order of the HTML standard).
fn decode(bytes: &[u8], content_type: Option<&str>) -> String {
    let said = content_type.and_then(|value| charset(value.as_bytes()));
    let head = &bytes[..bytes.len().min(1024)];
    let encoding = said.or_else(|| charset(head)).unwrap_or(encoding_rs::UTF_8);
    // A page that says nothing and is not UTF-8 is what browsers take it for.
    let encoding = if encoding == encoding_rs::UTF_8 && said.is_none() && std::str::from_utf8(bytes).is_err()
    {
        charset(head).unwrap_or(encoding_rs::WINDOWS_1252)
    } else {
        encoding
    };
    encoding.decode(bytes).0.into_owned()
}

/// The encoding that `charset=` names.
fn charset(bytes: &[u8]) -> Option<&'static Encoding> {
    let text = String::from_utf8_lossy(bytes).to_ascii_lowercase();
    let (_, rest) = text.split_once("charset")?;
    let rest = rest.trim_start().strip_prefix('=')?.trim_start().trim_start_matches(['"', '\'']);
    let label: String =
        rest.chars().take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':')).collect();
    Encoding::for_label(label.as_bytes())
}

fn absolute_links(document: &Document, url: &str) {
    let Ok(mut base) = Url::parse(url) else { return };
    if let Some(said) = document.select("base[href]").attr("href")
        && let Ok(joined) = base.join(said.trim())
    {
        base = joined;
    }
    for (selector, attribute) in [
        ("a[href]", "href"),
        ("img[src]", "src"),
        ("area[href]", "href"),
        ("video[src]", "src"),
        ("audio[src]", "src"),
    ] {
        for element in document.select(selector).iter() {
            let Some(value) = element.attr(attribute) else { continue };
            let value = value.trim();
            // Places within the page stay short.
            if value.starts_with('#') {
                continue;
            }
            match base.join(value) {
                Ok(joined) if matches!(joined.scheme(), "http" | "https" | "mailto" | "tel" | "ftp") => {
                    element.set_attr(attribute, joined.as_str());
                }
                // `javascript:`, `data:` and the like lead nowhere.
                _ => element.remove_attr(attribute),
            }
        }
    }
}

fn body(document: &Document) -> String {
    let body = document.select("body");
    if body.exists() { body.inner_html().to_string() } else { document.html().to_string() }
}

/// The part of a page that is its content: what says so itself; else what reads like an article; else all but what stands around.
fn main_content(document: &Document, url: &str) -> String {
    let whole = words(&document.select("body").text());
    let navigation: usize = document.select(AROUND).iter().map(|part| words(&part.text())).sum();
    let wanted = whole.saturating_sub(navigation) * ENOUGH / 100;
    for selector in MAIN {
        let found = document.select(selector);
        // Several articles are a list of them: the page is the content.
        if found.length() == 1 && words(&found.text()) >= wanted.max(1) {
            found.select(AROUND).remove();
            return found.html().to_string();
        }
    }
    let html = document.html();
    // It takes time by the square of the depth.
    let config =
        dom_smoothie::Config { max_elements_to_parse: MAX_ELEMENTS, ..dom_smoothie::Config::default() };
    if !is_deep(document)
        && let Ok(mut readability) = Readability::new(html.as_ref(), Some(url), Some(config))
        && let Ok(article) = readability.parse()
        && words(&article.text_content) >= wanted.max(20)
        && keeps_structure(document, &article.content)
    {
        return article.content.to_string();
    }
    document.select(AROUND).remove();
    body(document)
}

/// Whether an article still has all tables, code and headings of its document: it may take one of these for the content.
fn keeps_structure(document: &Document, article: &str) -> bool {
    let article = Document::from(article);
    let outside = |selector: &str| {
        let inside =
            AROUND.split(", ").map(|around| document.select(&format!("{around} {selector}")).length()).sum();
        document.select(selector).length().saturating_sub(inside)
    };
    ["tr", "pre", "h2", "h3"].iter().all(|part| article.select(part).length() >= outside(part))
}

/// Whether elements are nested deeper than people nest them.
fn is_deep(document: &Document) -> bool {
    let (mut node, mut depth) = (Some(document.root()), 0);
    while let Some(current) = node {
        if depth > MAX_DEPTH {
            return true;
        }
        if let Some(child) = current.first_child() {
            (node, depth) = (Some(child), depth + 1);
            continue;
        }
        let mut at = Some(current);
        node = loop {
            let Some(this) = at else { break None };
            if let Some(next) = this.next_sibling() {
                break Some(next);
            }
            at = this.parent();
            depth = depth.saturating_sub(1);
        };
    }
    false
}

fn words(text: &str) -> usize {
    text.split_whitespace().count()
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn convert(html: &str) -> String {
        to_markdown(html.as_bytes(), "https://example.com/docs/page", None, true).expect("converted")
    }

    #[test]
    fn links_are_absolute_and_scripts_are_gone() {
        let text = convert(
            "<title>T</title><body><nav><a href='/x'>menu</a></nav><main><h1>Head</h1><p>See <a href='../up?a=1'>it</a>, \
             <a href='#here'>here</a>, <a href='javascript:alert(1)'>run</a> <img src='i.png' alt='pic'></p><script>bad()</script></main>",
        );
        assert_eq!(
            text,
            "# Head\n\nSee [it](https://example.com/up?a=1), [here](#here), run ![pic](https://example.com/docs/i.png)\n"
        );
    }

    #[test]
    fn tables_are_tables() {
        let text = convert(
            "<main><table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td>1</td><td>x | y</td></tr></tbody></table></main>",
        );
        assert!(text.contains("| a") && text.contains("---"), "{text}");
        assert!(text.contains("x &#124; y"), "{text}");
    }

    #[test]
    fn a_table_is_not_taken_for_the_content() {
        let cell = "A long text about what is the case, with commas, and more words, so that it reads like an article. ".repeat(8);
        let text = convert(&format!(
            "<body><h2>Codes</h2><table><tr><th>code</th><th>meaning</th></tr><tr><td>1</td><td>{cell}</td></tr></table><p>After.</p>"
        ));
        assert!(text.contains("## Codes") && text.contains("| 1 ") && text.contains("After."), "{text}");
    }

    #[test]
    fn other_encodings_are_read() {
        let latin = b"<meta charset=iso-8859-1><main>caf\xe9</main>";
        assert_eq!(to_markdown(latin, "http://h/", None, true).expect("read"), "caf\u{e9}\n");
        let said = to_markdown(
            b"<main>\x93x\x94</main>",
            "http://h/",
            Some("text/html; charset=windows-1252"),
            true,
        );
        assert_eq!(said.expect("read"), "\u{201c}x\u{201d}\n");
        assert_eq!(
            to_markdown("<main>é</main>".as_bytes(), "http://h/", Some("text/html"), true).expect("read"),
            "é\n"
        );
    }

    #[test]
    fn the_title_is_the_heading_where_there_is_none() {
        assert_eq!(convert("<title> A \n page </title><p>text</p>"), "# A page\n\ntext\n");
    }

    #[test]
    fn nested_lists_take_linear_time() {
        let field = std::str::from_utf8(include_bytes!("../../../../fixtures/fuzz/html-nested-lists.bin"))
            .expect("text");
        for html in [
            field.to_owned(),
            "<ul><li>".repeat(5_000),
            format!("{}deep{}", "<ol><li>".repeat(3_000), "</li></ol>".repeat(3_000)),
            "<blockquote>".repeat(5_000),
            "<div><b><i>".repeat(3_000),
            "<table><tr><td>".repeat(3_000),
            "<".repeat(200_000),
            "<script>".repeat(5_000),
        ] {
            let has_deep = html.contains("deep");
            let run =
                std::thread::Builder::new().stack_size(super::super::STACK).spawn(move || convert(&html));
            let text = run.expect("started").join().expect("read");
            assert!(text.len() < 5_000_000 && (!has_deep || text.contains("deep")), "{} bytes", text.len());
        }
        let shallow = "<main><ul><li>a<ul><li>b</li></ul></li></ul></main>";
        assert!(matches!(flattened(shallow), Cow::Borrowed(_)));
    }

    #[test]
    fn a_deep_page_is_read() {
        let html = format!("{}deep{}", "<div>".repeat(3000), "</div>".repeat(3000));
        let run = std::thread::Builder::new().stack_size(super::super::STACK).spawn(move || convert(&html));
        assert_eq!(run.expect("started").join().expect("read"), "deep\n");
    }
}
