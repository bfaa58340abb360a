//! Requests of the three APIs: the parts that a script reads.

use serde_json::{Value, json};

/// API of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Api {
    Anthropic,
    OpenAi,
    Gemini,
}

/// Parts of a request.
#[derive(Debug, PartialEq)]
pub(crate) struct Parsed {
    /// Text of the first message.
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
            Self::Anthropic | Self::OpenAi => &body["messages"],
        };
        let messages = messages.as_array().map(Vec::as_slice).unwrap_or_default();
        let of_model = |message: &&Value| matches!(message["role"].as_str(), Some("assistant" | "model"));
        let replies = messages.iter().filter(of_model).count();
        let first = messages.iter().find(|message| message["role"] == "user").map(texts).unwrap_or_default();
        let is_streaming = match self {
            Self::Gemini => path.contains("stream"),
            Self::Anthropic | Self::OpenAi => body["stream"] == true,
        };
        let mut blocks = vec![(json!([body["model"], body["system"], body["tools"]]), false)];
        for message in messages {
            match message["content"].as_array().or_else(|| message["parts"].as_array()) {
                Some(parts) => blocks.extend(parts.iter().map(|part| block(&message["role"], part))),
                None => blocks.push((message.clone(), false)),
            }
        }
        // Two of the APIs cache beginnings by themselves.
        if self != Self::Anthropic {
            blocks.iter_mut().for_each(|(_, ends)| *ends = true);
        }
        Parsed { first, replies, is_streaming, blocks }
    }
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
