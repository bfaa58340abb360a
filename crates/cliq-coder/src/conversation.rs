//! Conversation with a model, free of any API.

use cliq_protocol::{ToolCall, ToolResult};
use serde_json::Value;

/// Turn of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub enum Turn {
    /// Text for the model.
    User {
        /// Text.
        text: String,
        /// Images, as paths relative to the workspace.
        images: Vec<String>,
    },
    /// Reply of the model.
    Assistant(Reply),
    /// Results of the tool calls of the reply before, in their order.
    Results(Vec<ToolResult>),
}

/// Reply of a model.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reply {
    /// Text.
    pub text: String,
    /// Summaries of thoughts.
    pub thinking: Vec<Thinking>,
    /// Tool calls.
    pub calls: Vec<ToolCall>,
}

/// Summary of a thought.
#[derive(Debug, Clone, PartialEq)]
pub struct Thinking {
    /// Text.
    pub text: String,
    /// Data of the provider that has to be returned to it.
    pub provider_data: Option<Value>,
}

/// Size of an image in bytes of text, for estimates: about 1,500 tokens.
pub(crate) const IMAGE: usize = 5_000;

impl Turn {
    /// Number of bytes of the turn in a request, roughly.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::User { text, images } => text.len() + images.len() * IMAGE,
            Self::Assistant(reply) => reply.size(),
            Self::Results(results) => {
                results.iter().map(|result| result.text.len() + result.images.len() * IMAGE + 32).sum()
            }
        }
    }
}

impl Reply {
    pub(crate) fn size(&self) -> usize {
        let of_value = |value: &Option<Value>| value.as_ref().map_or(0, |value| value.to_string().len());
        let calls = self.calls.iter().map(|call| {
            let arguments = match &call.invalid {
                Some(text) => text.len(),
                None => serde_json::to_string(&call.arguments).map_or(0, |text| text.len()),
            };
            call.name.len() + arguments + 32 + of_value(&call.provider_data)
        });
        let thinking =
            self.thinking.iter().map(|thought| thought.text.len() + of_value(&thought.provider_data));
        self.text.len() + calls.sum::<usize>() + thinking.sum::<usize>()
    }
}
