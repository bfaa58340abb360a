//! Errors of the protocol, for both bindings.

use std::collections::BTreeMap;

use cliq_protocol::{Violations, shorten};
use serde_json::{Map, Value, json};

use crate::version::{UnsupportedVersion, Version};

/// The kinds of errors (section 5.4 of A2A 1.0, section 8 of 0.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The body is not JSON.
    ParseError,
    /// The body is not a request.
    InvalidRequest,
    /// The method does not exist.
    MethodNotFound,
    /// The parameters are wrong.
    InvalidParams,
    /// The agent cannot do it at the moment.
    Internal,
    /// The task does not exist, or it is another caller's.
    TaskNotFound,
    /// The task is over.
    TaskNotCancelable,
    /// The agent sends no push notifications.
    PushNotSupported,
    /// The agent does not do this, or not in this state.
    UnsupportedOperation,
    /// A media type that the agent does not take or give.
    ContentTypeNotSupported,
    /// Another agent returned nonsense.
    InvalidAgentResponse,
    /// There is no extended card.
    ExtendedCardNotConfigured,
    /// An extension is needed.
    ExtensionRequired,
    /// A version that the agent does not speak.
    VersionNotSupported,
}

impl ErrorKind {
    /// All kinds.
    pub const ALL: [Self; 14] = [
        Self::ParseError,
        Self::InvalidRequest,
        Self::MethodNotFound,
        Self::InvalidParams,
        Self::Internal,
        Self::TaskNotFound,
        Self::TaskNotCancelable,
        Self::PushNotSupported,
        Self::UnsupportedOperation,
        Self::ContentTypeNotSupported,
        Self::InvalidAgentResponse,
        Self::ExtendedCardNotConfigured,
        Self::ExtensionRequired,
        Self::VersionNotSupported,
    ];

    /// The JSON-RPC code.
    #[must_use]
    pub fn code(self) -> i32 {
        match self {
            Self::ParseError => -32700,
            Self::InvalidRequest => -32600,
            Self::MethodNotFound => -32601,
            Self::InvalidParams => -32602,
            Self::Internal => -32603,
            Self::TaskNotFound => -32001,
            Self::TaskNotCancelable => -32002,
            Self::PushNotSupported => -32003,
            Self::UnsupportedOperation => -32004,
            Self::ContentTypeNotSupported => -32005,
            Self::InvalidAgentResponse => -32006,
            Self::ExtendedCardNotConfigured => -32007,
            Self::ExtensionRequired => -32008,
            Self::VersionNotSupported => -32009,
        }
    }

    /// The HTTP status, for the binding HTTP+JSON.
    #[must_use]
    pub fn http_status(self) -> u16 {
        match self {
            Self::MethodNotFound | Self::TaskNotFound => 404,
            Self::Internal => 503,
            Self::InvalidAgentResponse => 500,
            _ => 400,
        }
    }

    /// The status of `google.rpc`.
    fn status(self) -> &'static str {
        match self {
            Self::MethodNotFound | Self::TaskNotFound => "NOT_FOUND",
            Self::Internal => "UNAVAILABLE",
            Self::InvalidAgentResponse => "INTERNAL",
            Self::ParseError | Self::InvalidRequest | Self::InvalidParams | Self::ContentTypeNotSupported => {
                "INVALID_ARGUMENT"
            }
            _ => "FAILED_PRECONDITION",
        }
    }

    /// The name of the error in `google.rpc.ErrorInfo`; `None` for those of JSON-RPC itself.
    fn reason(self) -> Option<&'static str> {
        Some(match self {
            Self::TaskNotFound => "TASK_NOT_FOUND",
            Self::TaskNotCancelable => "TASK_NOT_CANCELABLE",
            Self::PushNotSupported => "PUSH_NOTIFICATION_NOT_SUPPORTED",
            Self::UnsupportedOperation => "UNSUPPORTED_OPERATION",
            Self::ContentTypeNotSupported => "CONTENT_TYPE_NOT_SUPPORTED",
            Self::InvalidAgentResponse => "INVALID_AGENT_RESPONSE",
            Self::ExtendedCardNotConfigured => "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
            Self::ExtensionRequired => "EXTENSION_SUPPORT_REQUIRED",
            Self::VersionNotSupported => "VERSION_NOT_SUPPORTED",
            _ => return None,
        })
    }
}

/// A part of the request that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Path of the field, such as `message.parts`.
    pub field: String,
    /// Problem and expected value.
    pub description: String,
}

/// An error that a caller gets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct A2aError {
    /// Kind of the error.
    pub kind: ErrorKind,
    /// Cause and remedy.
    pub message: String,
    /// Violations of the request, if the request is invalid.
    pub violations: Vec<Violation>,
    /// Details for programs.
    pub details: BTreeMap<String, String>,
}

impl From<UnsupportedVersion> for A2aError {
    fn from(error: UnsupportedVersion) -> Self {
        let message = format!("{error}: this agent supports 1.0 and 0.3");
        Self::new(ErrorKind::VersionNotSupported, message).with("supportedVersions", "1.0, 0.3")
    }
}

impl A2aError {
    /// An error.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), violations: Vec::new(), details: BTreeMap::new() }
    }

    /// Wrong parameters. Message and details have the first 20, each cut at 300 bytes, and the number of the others.
    #[must_use]
    pub fn invalid(violations: impl IntoIterator<Item = Violation>) -> Self {
        let mut bounded = Violations::new();
        violations.into_iter().for_each(|violation| bounded.add(violation));
        Self::of_violations(bounded)
    }

    /// Wrong parameters, as [`Self::invalid`].
    pub(crate) fn of_violations(violations: Violations<Violation>) -> Self {
        let rest = violations.rest();
        let (mut violations, _) = violations.into_parts();
        for violation in &mut violations {
            for text in [&mut violation.field, &mut violation.description] {
                *text = shorten(text, Violations::<Violation>::MAX_TEXT).into_owned();
            }
        }
        if let Some(rest) = rest {
            violations.push(Violation { field: "params".to_owned(), description: rest });
        }
        let list: Vec<String> =
            violations.iter().map(|v| format!("{}: {}", v.field, v.description)).collect();
        let message = format!("invalid parameters: {}", list.join("; "));
        Self { violations, ..Self::new(ErrorKind::InvalidParams, message) }
    }

    /// One wrong parameter.
    pub fn wrong(field: impl Into<String>, description: impl Into<String>) -> Self {
        Self::invalid(vec![Violation { field: field.into(), description: description.into() }])
    }

    /// The task does not exist.
    #[must_use]
    pub fn task_not_found(id: &str) -> Self {
        let shown: String = id.chars().take(100).collect();
        Self::new(ErrorKind::TaskNotFound, "there is no such task").with("taskId", shown)
    }

    /// Adds a detail for programs.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<String>) -> Self {
        self.details.insert(key.to_owned(), value.into());
        self
    }

    /// The details as objects with `@type`.
    fn data(&self) -> Vec<Value> {
        let mut data = Vec::new();
        if let Some(reason) = self.kind.reason() {
            data.push(json!({"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason,
                "domain": "a2a-protocol.org", "metadata": self.details}));
        }
        if !self.violations.is_empty() {
            let list: Vec<Value> = self
                .violations
                .iter()
                .map(|v| json!({"field": v.field, "description": v.description}))
                .collect();
            data.push(json!({"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": list}));
        }
        data
    }

    /// The error object of JSON-RPC. Its `data` is a list in 1.0; clients of 0.3 read an object: its parts in one.
    #[must_use]
    pub fn to_json_rpc(&self, version: Version) -> Value {
        let mut error = json!({"code": self.kind.code(), "message": self.message});
        let data = self.data();
        if data.is_empty() {
            return error;
        }
        error["data"] = match version {
            Version::V1_0 => Value::Array(data),
            Version::V0_3 => {
                let parts = data.into_iter().filter_map(|part| part.as_object().cloned());
                let mut object: Map<String, Value> = parts.flatten().collect();
                object.remove("@type");
                Value::Object(object)
            }
        };
        error
    }

    /// The body of an HTTP+JSON response: `google.rpc.Status`.
    #[must_use]
    pub fn to_http_json(&self) -> Value {
        json!({"error": {"code": self.kind.http_status(), "status": self.kind.status(), "message": self.message,
            "details": self.data()}})
    }
}
