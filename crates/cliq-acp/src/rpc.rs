//! JSON-RPC 2.0 messages, for both directions: a client of agents and an agent for editors. Pure.
//!
//! Reading is tolerant, writing is strict. A line of a peer is a message, noise that is not JSON, or JSON that is not a message;
//! each is a variant of [`Incoming`], and none is an error of the reader.

use std::fmt;

use cliq_protocol::lenient_json;
use serde_json::{Map, Number, Value, json};

use crate::lines::Line;

/// Maximum number of values in a line. The memory of parsed JSON depends on its values more than on its bytes: an object of 7 bytes takes
/// about 600.
pub const MAX_VALUES: usize = 500_000;

/// Id of a request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Id {
    /// JSON `null`: the peer could not read the id of the request that it answers.
    Null,
    /// A number, kept as the peer wrote it.
    Number(Number),
    /// A text.
    Text(String),
}

impl Id {
    /// Parses an id. Returns `None` for a value that JSON-RPC does not allow as one.
    #[must_use]
    pub fn parse(value: &Value) -> Option<Self> {
        match value {
            Value::Null => Some(Self::Null),
            Value::Number(number) => Some(Self::Number(number.clone())),
            Value::String(text) => Some(Self::Text(text.clone())),
            Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        }
    }

    fn to_value(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Number(number) => Value::Number(number.clone()),
            Self::Text(text) => Value::String(text.clone()),
        }
    }
}

impl From<i64> for Id {
    fn from(number: i64) -> Self {
        Self::Number(number.into())
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_value().fmt(f)
    }
}

/// Error object of a response.
#[derive(Debug, Clone, PartialEq)]
pub struct RpcError {
    /// Error code.
    pub code: i64,
    /// Message for people.
    pub message: String,
    /// Additional information.
    pub data: Option<Value>,
}

impl RpcError {
    /// Code of text that is not JSON.
    pub const PARSE_ERROR: i64 = -32700;
    /// Code of JSON that is not a request.
    pub const INVALID_REQUEST: i64 = -32600;
    /// Code of an unknown method.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// Code of invalid parameters.
    pub const INVALID_PARAMS: i64 = -32602;
    /// Code of a failure inside the peer.
    pub const INTERNAL_ERROR: i64 = -32603;
    /// Code of the Agent Client Protocol: the user has to sign in first.
    pub const AUTH_REQUIRED: i64 = -32000;
    /// Code of the Agent Client Protocol: the session or file does not exist.
    pub const RESOURCE_NOT_FOUND: i64 = -32002;
    /// Code of a request that was cancelled by its caller.
    pub const REQUEST_CANCELLED: i64 = -32800;

    /// Returns an error without additional information.
    #[must_use]
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// Returns the error for an unknown method.
    #[must_use]
    pub fn method_not_found(method: &str) -> Self {
        Self {
            code: Self::METHOD_NOT_FOUND,
            message: "Method not found".to_owned(),
            data: Some(json!({ "method": method })),
        }
    }

    /// Reads an error object. What is missing or has the wrong type gets the code [`Self::INTERNAL_ERROR`] and the JSON as its message.
    #[must_use]
    pub fn parse(value: &Value) -> Self {
        let code = value
            .get("code")
            .and_then(|code| code.as_i64().or_else(|| code.as_f64().map(|code| code as i64)));
        let message = value.get("message").and_then(Value::as_str).map(ToOwned::to_owned);
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
        Self {
            code: code.unwrap_or(Self::INTERNAL_ERROR),
            message: message.unwrap_or_else(|| text(value)),
            data: value.get("data").filter(|data| !data.is_null()).cloned(),
        }
    }

    fn to_value(&self) -> Value {
        let mut error = json!({ "code": self.code, "message": self.message });
        if let Some(data) = &self.data {
            error["data"] = data.clone();
        }
        error
    }
}

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)?;
        // Agents put the reason of "Internal error" there.
        let details = self.data.as_ref().and_then(|data| match data {
            Value::String(text) => Some(text.as_str()),
            other => ["details", "message", "error"].iter().find_map(|key| other.get(key)?.as_str()),
        });
        match details {
            Some(details) if details != self.message => write!(f, ": {details}"),
            Some(_) | None => Ok(()),
        }
    }
}

impl std::error::Error for RpcError {}

/// JSON-RPC message.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// Call that expects a response.
    Request {
        /// Id of the call.
        id: Id,
        /// Name of the method.
        method: String,
        /// Parameters, `null` if there are none.
        params: Value,
    },
    /// Call that expects no response.
    Notification {
        /// Name of the method.
        method: String,
        /// Parameters, `null` if there are none.
        params: Value,
    },
    /// Response to a request.
    Response {
        /// Id of the request.
        id: Id,
        /// Result or error.
        result: Result<Value, RpcError>,
    },
}

impl Message {
    /// Returns a request.
    #[must_use]
    pub fn request(id: Id, method: &str, params: Value) -> Self {
        Self::Request { id, method: method.to_owned(), params }
    }

    /// Returns a notification.
    #[must_use]
    pub fn notification(method: &str, params: Value) -> Self {
        Self::Notification { method: method.to_owned(), params }
    }

    /// Returns a response.
    #[must_use]
    pub fn response(id: Id, result: Result<Value, RpcError>) -> Self {
        Self::Response { id, result }
    }

    /// Returns the message as one line of JSON, without a line end.
    #[must_use]
    pub fn to_line(&self) -> String {
        let mut line = Map::new();
        line.insert("jsonrpc".to_owned(), "2.0".into());
        match self {
            Self::Request { id, method, params } => {
                line.insert("id".to_owned(), id.to_value());
                line.insert("method".to_owned(), method.as_str().into());
                insert_params(&mut line, params);
            }
            Self::Notification { method, params } => {
                line.insert("method".to_owned(), method.as_str().into());
                insert_params(&mut line, params);
            }
            Self::Response { id, result } => {
                line.insert("id".to_owned(), id.to_value());
                match result {
                    Ok(result) => line.insert("result".to_owned(), result.clone()),
                    Err(error) => line.insert("error".to_owned(), error.to_value()),
                };
            }
        }
        Value::Object(line).to_string()
    }
}

fn insert_params(line: &mut Map<String, Value>, params: &Value) {
    if !params.is_null() {
        line.insert("params".to_owned(), params.clone());
    }
}

/// Content of a line of a peer.
#[derive(Debug, Clone, PartialEq)]
pub enum Incoming {
    /// A message.
    Message(Message),
    /// Blank line. Ignored.
    Blank,
    /// Text that is not JSON: output of a library, a banner, a stack trace.
    Noise(String),
    /// JSON that is not a JSON-RPC message.
    Invalid {
        /// Reason.
        reason: InvalidReason,
        /// Id of the request, if it can be read: the sender is told.
        id: Option<Id>,
    },
    /// Last line without a line end. Its content counts as never sent.
    Half {
        /// Length in bytes.
        bytes: usize,
    },
    /// Line with more than [`MAX_VALUES`] values.
    TooManyValues,
    /// Line longer than [`crate::MAX_LINE`].
    TooLong {
        /// Length in bytes.
        bytes: u64,
    },
}

/// Reason why JSON is not a JSON-RPC message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidReason {
    /// JSON that is not an object.
    #[error("the line is not a JSON object")]
    NotAnObject,
    /// Array of messages. The protocol has none.
    #[error("the line is a batch of messages")]
    Batch,
    /// Id that is a boolean, an array or an object.
    #[error("the id has the wrong type")]
    IdType,
    /// Method that is not a text.
    #[error("the method is not a text")]
    MethodType,
    /// Object without a method, a result or an error.
    #[error("the object is not a request, a notification or a response")]
    NoKind,
    /// Response without an id.
    #[error("the response has no id")]
    NoId,
}

impl Incoming {
    /// Parses a line. Invalid UTF-8 and lone surrogates are read as U+FFFD.
    #[must_use]
    pub fn parse(line: &Line) -> Self {
        match line {
            Line::Whole(bytes) => Self::parse_bytes(bytes),
            // A complete message without a line end is one. Its sender closed its output after it.
            Line::Half(bytes) => match Self::parse_bytes(bytes) {
                message @ Self::Message(_) => message,
                Self::Blank => Self::Blank,
                Self::Noise(_)
                | Self::Invalid { .. }
                | Self::Half { .. }
                | Self::TooManyValues
                | Self::TooLong { .. } => Self::Half { bytes: bytes.len() },
            },
            Line::TooLong { bytes } => Self::TooLong { bytes: *bytes },
        }
    }

    fn parse_bytes(bytes: &[u8]) -> Self {
        if bytes.trim_ascii().is_empty() {
            return Self::Blank;
        }
        // A value has at least two bytes, with its separator.
        if bytes.len() > 2 * MAX_VALUES && has_too_many_values(bytes) {
            return Self::TooManyValues;
        }
        match lenient_json(bytes) {
            Ok(Value::Object(object)) => Self::parse_object(object),
            Ok(Value::Array(_)) => Self::Invalid { reason: InvalidReason::Batch, id: None },
            Ok(_) => Self::Invalid { reason: InvalidReason::NotAnObject, id: None },
            Err(_) => Self::Noise(String::from_utf8_lossy(bytes).into_owned()),
        }
    }

    fn parse_object(mut object: Map<String, Value>) -> Self {
        let raw_id = object.get("id");
        let id = raw_id.and_then(Id::parse);
        let invalid = |reason, id| Self::Invalid { reason, id };
        if raw_id.is_some() && id.is_none() {
            return invalid(InvalidReason::IdType, None);
        }
        let mut take = |key: &str| object.shift_remove(key);
        match take("method") {
            Some(Value::String(method)) => {
                let params = take("params").unwrap_or(Value::Null);
                return Self::Message(match id {
                    Some(id) => Message::Request { id, method, params },
                    None => Message::Notification { method, params },
                });
            }
            Some(Value::Null) | None => {}
            Some(_) => return invalid(InvalidReason::MethodType, id),
        }
        // A response with an error is not a success, whatever else it contains.
        let result = match (take("error").filter(|error| !error.is_null()), take("result")) {
            (Some(error), _) => Err(RpcError::parse(&error)),
            (None, Some(result)) => Ok(result),
            (None, None) => return invalid(InvalidReason::NoKind, id),
        };
        match id {
            Some(id) => Self::Message(Message::Response { id, result }),
            None => invalid(InvalidReason::NoId, None),
        }
    }
}

/// Whether JSON has more than [`MAX_VALUES`] values. Linear time, no memory. The answer for text that is not JSON has no meaning.
fn has_too_many_values(bytes: &[u8]) -> bool {
    let (mut values, mut in_text, mut is_escaped) = (1_usize, false, false);
    for byte in bytes {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_text => is_escaped = true,
            b'"' => in_text = !in_text,
            b',' | b'[' | b'{' if !in_text => values += 1,
            _ => {}
        }
    }
    values > MAX_VALUES
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Incoming {
        Incoming::parse(&Line::Whole(text.into()))
    }

    fn reason(text: &str) -> (InvalidReason, Option<Id>) {
        match parse(text) {
            Incoming::Invalid { reason, id } => (reason, id),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn messages_are_written_and_read() {
        let error =
            RpcError { data: Some(json!({ "details": "no key" })), ..RpcError::new(-32000, "sign in") };
        let messages = [
            Message::request(1.into(), "session/new", json!({ "cwd": "/w" })),
            Message::request(Id::Text("a".into()), "list", Value::Null),
            Message::notification("session/cancel", json!({ "sessionId": "s" })),
            Message::response(7.into(), Ok(Value::Null)),
            Message::response(Id::Null, Err(error.clone())),
        ];
        for message in &messages {
            assert_eq!(parse(&message.to_line()), Incoming::Message(message.clone()));
        }
        let lines: Vec<String> = messages.iter().map(Message::to_line).collect();
        insta::assert_snapshot!("messages", lines.join("\n"));
        assert_eq!(error.to_string(), "sign in (-32000): no key");
    }

    #[test]
    fn an_error_beside_a_result_counts() {
        let Incoming::Message(Message::Response { result, .. }) =
            parse(r#"{"id":1,"result":{"stopReason":"end_turn"},"error":{"code":-32603,"message":"no"}}"#)
        else {
            panic!("a response");
        };
        assert_eq!(result.unwrap_err().to_string(), "no (-32603)");
        let fine = parse(r#"{"id":1,"result":{},"error":null}"#);
        assert_eq!(fine, Incoming::Message(Message::response(1.into(), Ok(json!({})))));
    }

    #[test]
    fn errors_of_any_shape_have_a_message() {
        for (error, shown) in [
            (json!("boom"), "boom (-32603)"),
            (json!({ "code": "E1", "message": "m" }), "m (-32603)"),
            (json!({ "code": -1.0 }), "{\"code\":-1.0} (-1)"),
            (json!([1]), "[1] (-32603)"),
        ] {
            assert_eq!(RpcError::parse(&error).to_string(), shown);
        }
    }

    #[test]
    fn what_is_no_message_is_named() {
        assert_eq!(parse("  \t"), Incoming::Blank);
        assert_eq!(parse("Loaded 3 plugins"), Incoming::Noise("Loaded 3 plugins".into()));
        assert_eq!(reason("3").0, InvalidReason::NotAnObject);
        assert_eq!(reason("[]").0, InvalidReason::Batch);
        assert_eq!(reason(r#"{"id":[],"method":"x"}"#).0, InvalidReason::IdType);
        assert_eq!(reason(r#"{"id":4,"method":5}"#), (InvalidReason::MethodType, Some(4.into())));
        assert_eq!(reason(r#"{"id":4}"#), (InvalidReason::NoKind, Some(4.into())));
        assert_eq!(reason(r#"{"result":4}"#), (InvalidReason::NoId, None));
        assert_eq!(Incoming::parse(&Line::Half(b"{\"id\":1,".to_vec())), Incoming::Half { bytes: 8 });
    }

    #[test]
    fn values_are_bounded() {
        let line = |item: &str, n: usize| format!("{{\"method\":\"m\",\"params\":[{}1]}}", item.repeat(n));
        assert_eq!(parse(&line("1,", MAX_VALUES)), Incoming::TooManyValues);
        assert!(matches!(parse(&line("1,", MAX_VALUES - 4)), Incoming::Message(_)));
        // Separators in texts are none.
        assert!(matches!(parse(&line("\",,,[[[{{{\\\"\",", 100_000)), Incoming::Message(_)));
    }

    #[test]
    fn invalid_unicode_is_replaced() {
        let Incoming::Message(Message::Notification { method, .. }) =
            Incoming::parse(&Line::Whole(b"{\"method\":\"a\xff\\ud800\"}".to_vec()))
        else {
            panic!("a notification");
        };
        assert_eq!(method, "a\u{fffd}\u{fffd}");
    }

    proptest! {
        #[test]
        fn no_line_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Incoming::parse(&Line::Whole(bytes.clone()));
            let _ = Incoming::parse(&Line::Half(bytes));
        }
    }
}
