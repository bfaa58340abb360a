//! Content of messages and tools, in the JSON of the conventions. Only with the opt-in.

use cliq_protocol::{Role, ToolCall, ToolResult};
use serde_json::{Value, json};

use crate::conventions::key;
use crate::span::Attribute;

/// Maximum size of a text in bytes. A longer one ends with the number of bytes that were left out.
const MAX_TEXT: usize = 32 * 1024;
/// Maximum number of messages of a request: the newest ones.
const MAX_MESSAGES: usize = 100;

/// Texts that are replaced in content, such as the keys in the environment.
#[derive(Debug, Clone, Default)]
pub struct Mask(Vec<String>);

impl Mask {
    /// Makes a mask. Texts of fewer than 6 bytes are no secrets and stay.
    #[must_use]
    pub fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let mut secrets: Vec<String> = secrets.into_iter().filter(|secret| secret.len() >= 6).collect();
        // A secret that contains another one goes first.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self(secrets)
    }

    /// Makes the mask of an environment: values of variables whose name says that they are secret.
    #[must_use]
    pub fn of_environment<'a>(variables: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        const WORDS: &[&str] =
            &["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "OTLP_HEADERS"];
        let is_secret = |name: &str| {
            let name = name.to_ascii_uppercase();
            WORDS.iter().any(|word| name.contains(word))
        };
        Self::new(
            variables.into_iter().filter(|(name, _)| is_secret(name)).map(|(_, value)| value.to_owned()),
        )
    }

    /// Adds texts.
    #[must_use]
    pub fn with(self, secrets: impl IntoIterator<Item = String>) -> Self {
        Self::new(self.0.into_iter().chain(secrets))
    }

    /// Replaces the secrets in a text, and shortens it.
    #[must_use]
    pub fn apply(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in &self.0 {
            if text.contains(secret.as_str()) {
                text = text.replace(secret.as_str(), "***");
            }
        }
        if text.len() > MAX_TEXT {
            let end = (0..=MAX_TEXT).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            let rest = text.len() - end;
            text.truncate(end);
            text = format!("{text}… ({rest} more bytes)");
        }
        text
    }

    fn apply_to(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.apply(text).into(),
            Value::Array(items) => items.iter().map(|item| self.apply_to(item)).collect(),
            Value::Object(fields) => Value::Object(
                fields.iter().map(|(name, value)| (name.clone(), self.apply_to(value))).collect(),
            ),
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }
}

/// Messages of a conversation since its last reply.
#[derive(Debug, Default)]
pub(super) struct Conversation {
    system: Vec<Value>,
    input: Vec<Value>,
    output: Vec<Value>,
}

impl Conversation {
    pub(super) fn message(&mut self, role: Role, text: &str) {
        let part = json!({"type": "text", "content": text});
        match role {
            Role::System => self.system.push(part),
            Role::User => self.add(json!({"role": "user", "parts": [part]})),
            Role::Assistant => self.output.push(part),
        }
    }

    pub(super) fn call(&mut self, call: &ToolCall, mask: &Mask) {
        let arguments = mask.apply_to(&Value::Object(call.arguments.clone()));
        self.output
            .push(json!({"type": "tool_call", "id": call.id, "name": call.name, "arguments": arguments}));
    }

    pub(super) fn result(&mut self, result: &ToolResult, mask: &Mask) {
        let response = mask.apply(&result.text);
        let part = json!({"type": "tool_call_response", "id": result.id, "response": response});
        self.add(json!({"role": "tool", "parts": [part]}));
    }

    fn add(&mut self, message: Value) {
        if self.input.len() == MAX_MESSAGES {
            self.input.remove(0);
        }
        self.input.push(message);
    }

    /// Attributes of the reply that has just ended. The messages are those since the reply before it.
    pub(super) fn attributes(&self, finish: Option<&str>) -> Vec<Attribute> {
        let mut attributes = Vec::new();
        if !self.system.is_empty() {
            attributes.push((key::INSTRUCTIONS, Value::from(self.system.clone()).to_string().into()));
        }
        if !self.input.is_empty() {
            attributes.push((key::INPUT, Value::from(self.input.clone()).to_string().into()));
        }
        if !self.output.is_empty() {
            let message = json!([{"role": "assistant", "parts": self.output, "finish_reason": finish.unwrap_or("error")}]);
            attributes.push((key::OUTPUT, message.to_string().into()));
        }
        attributes
    }

    /// Begins the next reply. Instructions are those of the whole conversation, and stand on its first reply.
    pub(super) fn next(&mut self) {
        *self = Self::default();
    }
}

/// Arguments of a call as JSON.
pub(super) fn arguments(call: &ToolCall, mask: &Mask) -> String {
    match &call.invalid {
        Some(invalid) => mask.apply(invalid),
        None => mask.apply_to(&Value::Object(call.arguments.clone())).to_string(),
    }
}

/// Result of a call.
pub(super) fn result(result: &ToolResult, mask: &Mask) -> String {
    mask.apply(&result.text)
}
