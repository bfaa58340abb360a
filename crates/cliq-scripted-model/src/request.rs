//! Requests of the four APIs: the parts that a script reads.

use serde_json::{Value, json};

/// API of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Api {
    Anthropic,
    OpenAi,
    Responses,
    Gemini,
}

/// Parts of a request.
#[derive(Debug, PartialEq)]
pub(crate) struct Parsed {
    /// Instructions of the system, and text of the first message.
    pub(crate) first: String,
    /// Number of replies in the conversation.
    pub(crate) replies: usize,
    /// Whether a stream is requested.
    pub(crate) is_streaming: bool,
    /// Blocks in the order in which the provider reads them, each with whether a cache entry ends after it.
    pub(crate) blocks: Vec<(Value, bool)>,
}

impl Api {
    /// Takes a request apart. `path` tells whether Gemini is to stream.
    pub(crate) fn parse(self, body: &Value, path: &str) -> Parsed {
        let messages = match self {
            Self::Gemini => &body["contents"],
            Self::Responses => &body["input"],
            Self::Anthropic | Self::OpenAi => &body["messages"],
        };
        let messages = messages.as_array().map(Vec::as_slice).unwrap_or_default();
        let replies = match self {
            Self::Responses => replies_of_items(messages),
            Self::Anthropic | Self::OpenAi | Self::Gemini => {
                let of_model =
                    |message: &&Value| matches!(message["role"].as_str(), Some("assistant" | "model"));
                messages.iter().filter(of_model).count()
            }
        };
        let first = messages.iter().find(|message| message["role"] == "user").map(texts).unwrap_or_default();
        let first = format!("{}{first}", self.system(body, messages));
        let is_streaming = match self {
            Self::Gemini => path.contains("stream"),
            Self::Anthropic | Self::OpenAi | Self::Responses => body["stream"] == true,
        };
        let system = [&body["system"], &body["instructions"], &body["systemInstruction"]];
        let mut blocks = vec![(json!([body["model"], system, body["tools"]]), false)];
        for message in messages {
            match message["content"].as_array().or_else(|| message["parts"].as_array()) {
                Some(parts) => blocks.extend(parts.iter().map(|part| block(&message["role"], part))),
                None => blocks.push((message.clone(), false)),
            }
        }
        // Three of the APIs cache beginnings by themselves.
        if self != Self::Anthropic {
            blocks.iter_mut().for_each(|(_, ends)| *ends = true);
        }
        Parsed { first, replies, is_streaming, blocks }
    }

    /// Instructions before the conversation. Empty if there are none.
    fn system(self, body: &Value, messages: &[Value]) -> String {
        let text = match self {
            Self::Anthropic => body["system"]
                .as_str()
                .map_or_else(|| texts(&json!({"content": body["system"]})), str::to_owned),
            Self::Responses => body["instructions"].as_str().unwrap_or_default().to_owned(),
            Self::Gemini => texts(&body["systemInstruction"]),
            Self::OpenAi => {
                messages.first().filter(|message| message["role"] == "system").map(texts).unwrap_or_default()
            }
        };
        if text.is_empty() { text } else { text + "\n" }
    }
}

/// Number of replies in a list of items: several items of the model in a row are one.
fn replies_of_items(items: &[Value]) -> usize {
    let of_model = |item: &Value| {
        item["role"] == "assistant" || matches!(item["type"].as_str(), Some("reasoning" | "function_call"))
    };
    let mut before = false;
    let is_start = |item: &&Value| {
        let now = of_model(item);
        let is_start = now && !before;
        before = now;
        is_start
    };
    items.iter().filter(is_start).count()
}

fn block(role: &Value, part: &Value) -> (Value, bool) {
    let mut part = part.clone();
    let ends = part.as_object_mut().is_some_and(|part| part.remove("cache_control").is_some());
    (json!([role, part]), ends)
}

/// All texts of a message.
fn texts(message: &Value) -> String {
    if let Some(text) = message["content"].as_str() {
        return text.to_owned();
    }
    let parts = message["content"].as_array().or_else(|| message["parts"].as_array());
    let texts = parts.into_iter().flatten().filter_map(|part| part["text"].as_str());
    texts.collect::<Vec<_>>().join("\n")
}
