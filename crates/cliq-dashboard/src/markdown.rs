//! Markdown of agents as HTML: no raw HTML, no images, links to the web only.

use maud::PreEscaped;
use pulldown_cmark::{CowStr, Event, LinkType, Options, Parser, Tag, TagEnd, html};

/// Markdown as HTML.
pub(super) fn render(text: &str) -> PreEscaped<String> {
    let events = Parser::new_ext(
        text,
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS,
    );
    let events = events.map(|event| match event {
        // ArtifactView as it was written.
        Event::Html(raw) | Event::InlineHtml(raw) => Event::Text(raw),
        Event::Start(Tag::HtmlBlock) => Event::Start(Tag::Paragraph),
        Event::End(TagEnd::HtmlBlock) => Event::End(TagEnd::Paragraph),
        Event::Start(Tag::Image { title, .. }) => link("", title),
        Event::End(TagEnd::Image) => Event::End(TagEnd::Link),
        Event::Start(Tag::Link { dest_url, title, .. }) => link(&dest_url, title),
        other => other,
    });
    let mut out = String::new();
    html::push_html(&mut out, events);
    PreEscaped(out)
}

fn link<'a>(url: &str, title: CowStr<'a>) -> Event<'a> {
    let is_web = url.starts_with("https://") || url.starts_with("http://");
    let dest_url: CowStr<'a> = if is_web { url.to_owned().into() } else { "#".into() };
    Event::Start(Tag::Link { link_type: LinkType::Inline, dest_url, title, id: CowStr::Borrowed("") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_it_is_code() {
        for text in [
            "<script>alert(1)</script>",
            "a <img src=x onerror=alert(1)> b",
            "[x](javascript:alert(1))",
            "![x](javascript:alert(1))",
            "[x](data:text/html,<script>)",
            "<a href='javascript:x'>y</a>",
            "```<script>\n<script>\n```",
            "[a]: javascript:x\n\n[a]",
            "<javascript:alert(1)>",
            "| a |\n|--|\n| <b onclick=x> |",
            "\"><script>",
            "[x](https://e.example/\"onmouseover=\"alert(1))",
        ] {
            let html = render(text).0;
            for wrong in [
                "<script",
                "<img",
                "<a href='",
                "href=\"javascript",
                "href=\"data",
                " onclick=x>",
                "onmouseover=\"alert",
            ] {
                assert!(!html.contains(wrong), "{text}: {html}");
            }
        }
        assert!(
            render("**b** [x](https://e.example)")
                .0
                .contains("<strong>b</strong> <a href=\"https://e.example\">")
        );
    }
}
