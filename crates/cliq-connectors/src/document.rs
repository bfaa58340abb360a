//! Atlassian documents: what comments in Jira are made of. Markdown becomes one.

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use serde_json::{Map, Value, json};

/// The document of a text: of markdown, or of JSON that is a document already.
pub(crate) fn to_document(text: &str) -> Value {
    if let Ok(value) = cliq_protocol::lenient_json(text.as_bytes())
        && value["type"] == "doc"
        && value["content"].is_array()
    {
        return value;
    }
    let mut builder = Builder { stack: vec![Node::new("doc")], marks: Vec::new() };
    for event in Parser::new_ext(text, Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TABLES) {
        builder.event(event);
    }
    while builder.stack.len() > 1 {
        builder.close();
    }
    let mut document = builder.stack.pop().unwrap_or_else(|| Node::new("doc")).into_value();
    document["version"] = 1.into();
    if document["content"].is_null() {
        document["content"] = json!([]);
    }
    document
}

/// The words of a document, without its marks.
pub(crate) fn plain_text(document: &Value) -> String {
    let mut text = String::new();
    collect(document, &mut text);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn collect(node: &Value, text: &mut String) {
    if let Some(own) = node["text"].as_str() {
        text.push_str(own);
    }
    for child in node["content"].as_array().into_iter().flatten() {
        collect(child, text);
    }
    if node["type"] != "text" {
        text.push(' ');
    }
}

struct Node {
    kind: &'static str,
    attributes: Map<String, Value>,
    content: Vec<Value>,
}

impl Node {
    fn new(kind: &'static str) -> Self {
        Self { kind, attributes: Map::new(), content: Vec::new() }
    }

    fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.attributes.insert(key.to_owned(), value.into());
        self
    }

    fn into_value(self) -> Value {
        let mut value = json!({"type": self.kind});
        if !self.attributes.is_empty() {
            value["attrs"] = Value::Object(self.attributes);
        }
        if !self.content.is_empty() {
            value["content"] = Value::Array(self.content);
        }
        value
    }
}

struct Builder {
    stack: Vec<Node>,
    marks: Vec<Value>,
}

impl Builder {
    fn open(&mut self, node: Node) {
        self.stack.push(node);
    }

    fn close(&mut self) {
        if self.stack.len() > 1
            && let Some(node) = self.stack.pop()
        {
            self.push(node.into_value());
        }
    }

    fn push(&mut self, value: Value) {
        if let Some(parent) = self.stack.last_mut() {
            parent.content.push(value);
        }
    }

    fn text(&mut self, text: &str, extra: Option<Value>) {
        if text.is_empty() {
            return;
        }
        // Items of tight lists have no paragraph in markdown, and must have one here.
        if matches!(
            self.stack.last().map(|node| node.kind),
            Some("listItem" | "doc" | "blockquote" | "tableCell" | "tableHeader")
        ) {
            self.open(Node::new("paragraph"));
        }
        let mut node = json!({"type": "text", "text": text});
        let marks: Vec<Value> = self.marks.iter().cloned().chain(extra).collect();
        let in_code = self.stack.last().is_some_and(|node| node.kind == "codeBlock");
        if !marks.is_empty() && !in_code {
            node["marks"] = Value::Array(marks);
        }
        self.push(node);
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => self.text(&text, None),
            Event::Code(text) => self.text(&text, Some(json!({"type": "code"}))),
            Event::SoftBreak => self.text(" ", None),
            Event::HardBreak => self.push(json!({"type": "hardBreak"})),
            Event::Rule => {
                self.end_paragraph();
                self.push(json!({"type": "rule"}));
            }
            _ => {}
        }
    }

    /// Ends a paragraph that markdown did not have.
    fn end_paragraph(&mut self) {
        if self.stack.last().is_some_and(|node| node.kind == "paragraph") {
            self.close();
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Emphasis => return self.marks.push(json!({"type": "em"})),
            Tag::Strong => return self.marks.push(json!({"type": "strong"})),
            Tag::Strikethrough => return self.marks.push(json!({"type": "strike"})),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                return self.marks.push(json!({"type": "link", "attrs": {"href": dest_url.as_ref()}}));
            }
            _ => {}
        }
        self.end_paragraph();
        let node = match tag {
            Tag::Paragraph => Node::new("paragraph"),
            Tag::Heading { level, .. } => Node::new("heading").with("level", level_of(level)),
            Tag::BlockQuote(_) => Node::new("blockquote"),
            Tag::CodeBlock(kind) => match kind {
                CodeBlockKind::Fenced(language) if !language.is_empty() => Node::new("codeBlock")
                    .with("language", language.split_whitespace().next().unwrap_or_default()),
                _ => Node::new("codeBlock"),
            },
            Tag::List(Some(first)) => Node::new("orderedList").with("order", first),
            Tag::List(None) => Node::new("bulletList"),
            Tag::Item => Node::new("listItem"),
            Tag::Table(_) => Node::new("table"),
            Tag::TableHead | Tag::TableRow => Node::new("tableRow"),
            Tag::TableCell => Node::new("tableCell"),
            _ => Node::new("paragraph"),
        };
        self.open(node);
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough | TagEnd::Link | TagEnd::Image => {
                self.marks.pop();
            }
            TagEnd::Paragraph | TagEnd::Heading(_) | TagEnd::CodeBlock => self.close(),
            TagEnd::Item | TagEnd::BlockQuote(_) | TagEnd::TableCell => {
                self.end_paragraph();
                // A cell and an item have at least a paragraph.
                if let Some(node) = self.stack.last_mut().filter(|node| node.content.is_empty()) {
                    node.content.push(json!({"type": "paragraph"}));
                }
                self.close();
            }
            _ => self.close(),
        }
    }
}

fn level_of(level: HeadingLevel) -> u64 {
    level as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_becomes_a_document() {
        let document = to_document(
            "# Head\n\nSome **bold** [link](https://h/) and `code`.\n\n- one\n- two\n\n```rust\nfn a() {}\n```\n",
        );
        insta::assert_json_snapshot!(document);
        assert_eq!(plain_text(&document), "Head Some bold link and code. one two fn a() {}");
    }

    #[test]
    fn a_document_stays_what_it_is() {
        let text = r#"{"type":"doc","version":1,"content":[{"type":"paragraph"}]}"#;
        assert_eq!(
            to_document(text).to_string(),
            serde_json::from_str::<Value>(text).expect("JSON").to_string()
        );
        assert_eq!(to_document("")["content"], json!([]));
    }

    proptest::proptest! {
        #[test]
        fn any_text_becomes_a_document(text in "[ -~\n]{0,200}") {
            let document = to_document(&text);
            proptest::prop_assert_eq!(&document["type"], "doc");
            proptest::prop_assert_eq!(&document["version"], 1);
        }
    }
}
