//! Errors of model servers: in a response of any status, as a body or as an event. Pure.
#![deny(clippy::wildcard_enum_match_arm)]

use serde_json::Value;

use super::text;

/// Maximum number of characters that are quoted of a message.
const QUOTED: usize = 400;

/// Meaning of an error for the next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// The same request may succeed later.
    Passing,
    /// The same request fails again.
    Permanent,
    /// The conversation is too long for the model.
    TooLong,
    /// The provider refused earlier thoughts.
    StaleThinking,
}

/// Error in a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServerError {
    /// Message, for people.
    pub(super) message: String,
    pub(super) class: Class,
}

/// Returns the error that a body or an event contains.
pub(super) fn error_in(value: &Value) -> Option<ServerError> {
    if let Some(items) = value.as_array() {
        return items.first().and_then(error_in);
    }
    let choice = value.pointer("/choices/0/error");
    // The events of the Responses API contain the response with its error.
    let response = value.pointer("/response/error");
    let error = value.get("error").or(choice).or(response).filter(|error| match error {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Bool(true) | Value::Number(_) | Value::Array(_) => true,
    });
    let is_error =
        matches!(value["object"].as_str(), Some("error")) || matches!(value["type"].as_str(), Some("error"));
    let has_reply = ["choices", "candidates", "content", "usageMetadata", "output", "response"]
        .iter()
        .any(|key| value.get(key).is_some());
    let error = match error {
        Some(error) => error,
        None if is_error => value,
        // The form of gateways: a status and a message.
        None if !has_reply && numeric(value).is_some_and(|code| code >= 400) => value,
        None if !has_reply && value.get("detail").is_some() => value,
        None => return None,
    };
    let names = names_of(error);
    let message = ["/message", "/detail", "/error", "/metadata/raw"]
        .iter()
        .find_map(|path| text(error, path).filter(|message| !message.is_empty()))
        .or_else(|| error.as_str().map(str::to_owned))
        .or_else(|| text(value, "/message"))
        .unwrap_or_else(|| names.first().cloned().unwrap_or_else(|| error.to_string()));
    let class = class(numeric(error).or_else(|| numeric(value)), &names, &message);
    let name = names.iter().find(|name| !message.contains(name.as_str()));
    let message: String = message.chars().take(QUOTED).collect();
    let message = name.map_or(message.clone(), |name| format!("{message} ({name})"));
    Some(ServerError { message, class })
}

/// Returns the status code that an error contains, as a number or as text.
fn numeric(error: &Value) -> Option<u64> {
    let fields = ["code", "status", "status_code", "http_code", "statusCode"];
    fields.iter().find_map(|field| {
        let value = error.get(field)?;
        let code = value.as_u64().or_else(|| value.as_str()?.parse().ok())?;
        (100..1000).contains(&code).then_some(code)
    })
}

/// Returns types and codes of an error as the server wrote them.
fn names_of(error: &Value) -> Vec<String> {
    let names = ["code", "type", "status", "reason"].iter().filter_map(|field| error.get(field)?.as_str());
    let names = names.filter(|name| !name.is_empty() && *name != "error" && name.parse::<u64>().is_err());
    names.map(|name| name.chars().take(80).collect()).collect()
}

/// Parts of names of errors of the account or the model, which are permanent with any status.
const ACCOUNT: [&str; 19] = [
    "insufficient_quota",
    "quota_exceeded",
    "invalid_api_key",
    "invalid_authentication",
    "authentication",
    "unauthenticated",
    "unauthorized",
    "permission",
    "forbidden",
    "billing",
    "insufficient_balance",
    "insufficient_credit",
    "payment",
    "access_terminated",
    "account_deactivated",
    "model_not_found",
    "unknown_model",
    "invalid_model",
    "not_found",
];

/// Parts of names of other permanent errors.
const REQUEST: [&str; 5] =
    ["notfound", "invalid_request", "invalid_argument", "badrequest", "failed_precondition"];

/// Parts of names of errors that pass.
const PASSING: [&str; 16] = [
    "rate_limit",
    "rate-limit",
    "ratelimit",
    "too_many_requests",
    "overloaded",
    "server_error",
    "api_error",
    "timeout",
    "internal",
    "unavailable",
    "capacity",
    "resource_exhausted",
    "deadline_exceeded",
    "server_busy",
    "try_again",
    "aborted",
];

/// Parts of messages that mean an error of the account, whatever its status is.
const PERMANENT_WORDS: [&str; 8] = [
    "insufficient_quota",
    "exceeded your current quota",
    "credit balance is too low",
    "insufficient balance",
    "insufficient credits",
    "billing hard limit",
    "invalid api key",
    "incorrect api key",
];

/// Parts of messages that mean an error that passes, if nothing else is known.
const PASSING_WORDS: [&str; 8] = [
    "overloaded",
    "rate limit",
    "too many requests",
    "try again",
    "temporarily",
    "timed out",
    "timeout",
    "is loading",
];

/// Returns the meaning of an error: by status or code, by the names that the server uses, by its message.
pub(super) fn class(code: Option<u64>, names: &[String], message: &str) -> Class {
    let said = message.to_lowercase();
    let names: Vec<String> = names.iter().map(|name| name.to_lowercase()).collect();
    let has = |parts: &[&str]| names.iter().any(|name| parts.iter().any(|part| name.contains(part)));
    let says = |parts: &[&str]| parts.iter().any(|part| said.contains(part));
    if says_stale_thinking(code, message) {
        return Class::StaleThinking;
    }
    if has(&["exceed_context_size", "context_length_exceeded", "context_window"])
        || says_too_long(code, &said)
    {
        return Class::TooLong;
    }
    if has(&ACCOUNT) || says(&PERMANENT_WORDS) {
        return Class::Permanent;
    }
    match code {
        Some(408 | 409 | 425 | 429 | 498 | 499 | 500..) => return Class::Passing,
        Some(400..) => return Class::Permanent,
        Some(_) | None => {}
    }
    if has(&PASSING) {
        return Class::Passing;
    }
    if has(&REQUEST) {
        return Class::Permanent;
    }
    if says(&PASSING_WORDS) { Class::Passing } else { Class::Permanent }
}

/// Parts of messages that mean that the template of a model has no role of the system.
const NO_SYSTEM: [&str; 8] = [
    "system role not supported",
    "system role is not supported",
    "system message not supported",
    "system messages are not supported",
    "role 'system' is not supported",
    "roles must alternate user/assistant",
    "only user and assistant roles are supported",
    "developer instruction is not enabled",
];

/// Parts of messages that mean that the server cannot force a reply to match a schema.
const NO_SCHEMA: [&str; 11] = [
    "response_format",
    "json_schema",
    "json schema",
    "output_config",
    "structured output",
    "text.format",
    "responsejsonschema",
    "response_json_schema",
    "responsemimetype",
    "response mime type",
    "grammar",
];

/// Whether a message means that the template of a model has no role of the system.
pub(super) fn says_no_system(message: &str) -> bool {
    contains_any(message, &NO_SYSTEM)
}

/// Whether a message means that the server cannot force a reply to match a schema.
pub(super) fn says_no_schema(message: &str) -> bool {
    contains_any(message, &NO_SCHEMA)
}

fn contains_any(message: &str, parts: &[&str]) -> bool {
    let said = message.to_lowercase();
    parts.iter().any(|part| said.contains(part))
}

/// Whether an error means that the conversation is too long for the model. Each server has words of its own.
fn says_too_long(code: Option<u64>, said: &str) -> bool {
    let words = [
        "prompt is too long",
        "context length",
        "context window",
        "context size",
        "context_length",
        "too many tokens",
        "maximum number of tokens",
        "input token count",
        "input is too long",
        "maximum context",
    ];
    if !words.iter().any(|words| said.contains(words)) {
        return false;
    }
    // Other errors mention the context too.
    let exceeds = [
        "exceed",
        "more than",
        "too long",
        "larger than",
        "greater than",
        "over the",
        "do not fit",
        "does not fit",
    ];
    match code {
        Some(400 | 413 | 422) => true,
        None | Some(500) => exceeds.iter().any(|words| said.contains(words)),
        Some(_) => false,
    }
}

/// Whether an error means that a thought does not belong to the conversation: its beginning has changed.
fn says_stale_thinking(code: Option<u64>, message: &str) -> bool {
    matches!(code, Some(400) | None)
        && message.contains("thinking")
        && (message.contains("bound to") || message.contains("signature"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn errors_in_bodies_and_events_are_classified() {
        use Class::{Passing, Permanent, TooLong};
        for (value, class) in [
            (json!({"error": {"code": 429, "message": "Rate limit exceeded"}}), Passing),
            (json!({"error": {"code": 502, "message": "Provider returned error"}}), Passing),
            (json!({"error": {"code": "503", "message": "x"}}), Passing),
            (json!({"error": {"code": "server_error", "message": "x"}}), Passing),
            (json!({"error": {"type": "overloaded_error", "message": "x"}}), Passing),
            (json!({"error": {"type": "rate_limit_exceeded", "message": "x"}}), Passing),
            (json!({"error": {"type": "request_timeout", "message": "x"}}), Passing),
            (json!({"type": "error", "error": {"type": "api_error", "message": "x"}}), Passing),
            (json!({"error": {"code": 503, "status": "UNAVAILABLE", "message": "x"}}), Passing),
            (json!([{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "x"}}]), Passing),
            (json!({"choices": [{"delta": {}, "error": {"code": 524, "message": "x"}}]}), Passing),
            (json!({"error": "the model is overloaded, try again"}), Passing),
            (json!({"object": "error", "message": "x", "code": 500}), Passing),
            (json!({"status": 503, "message": "x"}), Passing),
            (json!({"error": {"code": 429, "type": "insufficient_quota", "message": "x"}}), Permanent),
            (json!({"error": {"code": "insufficient_quota", "message": "x"}}), Permanent),
            (json!({"error": {"code": 429, "message": "You exceeded your current quota"}}), Permanent),
            (json!({"error": {"type": "authentication_error", "message": "x"}}), Permanent),
            (json!({"error": {"code": "invalid_api_key", "message": "x"}}), Permanent),
            (json!({"error": {"code": "model_not_found", "message": "x"}}), Permanent),
            (json!({"error": {"type": "billing_error", "message": "x"}}), Permanent),
            (json!({"error": {"code": 402, "message": "x"}}), Permanent),
            (json!({"object": "error", "message": "there is no model m", "code": 404}), Permanent),
            (json!({"error": {"type": "invalid_request_error", "message": "x"}}), Permanent),
            (json!({"detail": "Not Found"}), Permanent),
            (json!({"error": "boom"}), Permanent),
            (
                json!({"error": {"type": "server_error", "code": 500, "message": "the context size is exceeded"}}),
                TooLong,
            ),
            (json!({"error": {"type": "exceed_context_size_error", "code": 400, "message": "x"}}), TooLong),
        ] {
            let found = error_in(&value).unwrap_or_else(|| panic!("{value}"));
            assert_eq!(found.class, class, "{value}");
            assert!(!found.message.is_empty(), "{value}");
        }
    }

    #[test]
    fn replies_are_not_errors() {
        for value in [
            json!({"choices": [{"message": {"content": "x"}}], "error": null}),
            json!({"choices": [], "error": {}}),
            json!({"type": "message", "content": [], "error": ""}),
            json!({"candidates": [], "code": 500}),
            json!({"status": "ok"}),
            json!([]),
            json!(3),
        ] {
            assert_eq!(error_in(&value), None, "{value}");
        }
    }

    #[test]
    fn errors_that_another_request_mends_are_told_apart() {
        for said in [
            "prompt is too long: 210000 tokens > 200000 maximum",
            "This model's maximum context length is 8192 tokens",
            "the request exceeds the available context size",
            "The input token count (1200000) exceeds the maximum number of tokens allowed",
            "9000 tokens do not fit into a context length of 4096",
        ] {
            assert_eq!(class(Some(400), &[], said), Class::TooLong, "{said}");
        }
        assert_eq!(
            class(Some(500), &[], "9000 tokens are more than the available context size"),
            Class::TooLong
        );
        assert_eq!(class(Some(500), &[], "context length"), Class::Passing);
        assert_eq!(class(Some(429), &[], "too many tokens per minute"), Class::Passing);
        assert_eq!(class(Some(400), &[], "bad key"), Class::Permanent);
        let stale =
            "Invalid `signature` in `thinking` block. The block is bound to a different conversation.";
        assert_eq!(class(Some(400), &[], stale), Class::StaleThinking);
    }
}
