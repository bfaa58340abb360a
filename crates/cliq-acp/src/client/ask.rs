//! Requests of an agent to the user: permissions and questions. Pure.

use agent_client_protocol_schema::v1::{ToolCall, ToolCallUpdate};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::update::ToolCalls;

/// Number of a permission or question, unique in its process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AskId(pub u64);

/// Kind of an option of a permission request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OptionKind {
    /// Allows this call.
    AllowOnce,
    /// Allows this call and later ones. Never chosen.
    AllowAlways,
    /// Refuses this call.
    RejectOnce,
    /// Refuses this call and later ones. Never chosen.
    RejectAlways,
    /// Kind that the protocol does not define. Never chosen.
    Unknown,
}

impl OptionKind {
    fn parse(kind: &str) -> Self {
        match kind {
            "allow_once" => Self::AllowOnce,
            "allow_always" => Self::AllowAlways,
            "reject_once" => Self::RejectOnce,
            "reject_always" => Self::RejectAlways,
            _ => Self::Unknown,
        }
    }
}

/// Option of a permission request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermissionOption {
    /// Id for the answer.
    pub id: String,
    /// Name for people.
    pub name: String,
    /// Kind.
    pub kind: OptionKind,
}

/// Request for permission to make a tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct PermissionRequest {
    /// Number of the request.
    pub id: AskId,
    /// Tool call, with what was announced about it before. Its kind decides by the policy.
    pub call: Box<ToolCall>,
    /// Offered options.
    pub options: Vec<PermissionOption>,
}

/// Decision about a permission request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PermissionDecision {
    /// Allows this call, and no other.
    Allow,
    /// Refuses this call.
    Reject,
    /// Gives no answer: the request is withdrawn because the turn ends, or because the answer comes in a later process.
    Cancel,
}

impl PermissionRequest {
    /// Parses the parameters of `session/request_permission`. Returns also whether the tool call was never announced.
    ///
    /// # Errors
    /// Returns the violation if the tool call or the options cannot be read.
    pub(crate) fn parse(id: AskId, params: &Value, calls: &mut ToolCalls) -> Result<(Self, bool), String> {
        let call = params.get("toolCall").ok_or("`toolCall` is missing")?;
        let call = ToolCallUpdate::deserialize(call).map_err(|error| format!("`toolCall`: {error}"))?;
        let options = params.get("options").and_then(Value::as_array).ok_or("`options` is not a list")?;
        let text = |option: &Value, key: &str| {
            option.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let options: Vec<PermissionOption> = options
            .iter()
            .filter_map(|option| {
                let id = option.get("optionId").and_then(Value::as_str)?.to_owned();
                let kind = OptionKind::parse(&text(option, "kind"));
                Some(PermissionOption { id, name: text(option, "name"), kind })
            })
            .collect();
        if options.is_empty() {
            return Err("`options` has no option with an `optionId`".to_owned());
        }
        let (call, is_new) = calls.change(call);
        Ok((Self { id, call: Box::new(call), options }, is_new))
    }

    /// Returns the answer for a decision, or the kind of option that is missing. Only options for this one call are ever chosen.
    pub(crate) fn answer(
        options: &[PermissionOption],
        decision: PermissionDecision,
    ) -> Result<Value, &'static str> {
        let (kind, name) = match decision {
            PermissionDecision::Allow => (OptionKind::AllowOnce, "allow_once"),
            PermissionDecision::Reject => (OptionKind::RejectOnce, "reject_once"),
            PermissionDecision::Cancel => return Ok(cancelled_permission()),
        };
        match options.iter().find(|option| option.kind == kind) {
            Some(option) => Ok(json!({ "outcome": { "outcome": "selected", "optionId": option.id } })),
            None => Err(name),
        }
    }
}

/// Returns the answer to a permission request without a decision: `cancelled`.
pub(crate) fn cancelled_permission() -> Value {
    json!({ "outcome": { "outcome": "cancelled" } })
}

/// Question with a form.
#[derive(Debug, Clone, PartialEq)]
pub struct QuestionRequest {
    /// Number of the question.
    pub id: AskId,
    /// Text of the question.
    pub message: String,
    /// Form: a JSON schema of an object whose properties are primitive.
    pub schema: Value,
}

/// Answer to a question.
#[derive(Debug, Clone, PartialEq)]
pub enum QuestionDecision {
    /// Values of the form.
    Accept(Map<String, Value>),
    /// Refusal to answer.
    Decline,
    /// No answer.
    Cancel,
}

impl QuestionRequest {
    /// Parses the parameters of `elicitation/create`. Returns `None` if it is not a question with a form.
    pub(crate) fn parse(id: AskId, params: &Value) -> Option<Self> {
        if params.get("mode").is_some_and(|mode| mode != "form") {
            return None;
        }
        let message = params.get("message").and_then(Value::as_str)?.to_owned();
        let schema = params.get("requestedSchema").filter(|schema| schema.is_object())?.clone();
        Some(Self { id, message, schema })
    }
}

impl QuestionDecision {
    pub(crate) fn to_value(&self) -> Value {
        match self {
            Self::Accept(content) => json!({ "action": "accept", "content": content }),
            Self::Decline => json!({ "action": "decline" }),
            Self::Cancel => json!({ "action": "cancel" }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(options: &Value) -> Result<PermissionRequest, String> {
        let params = json!({ "toolCall": { "toolCallId": "c", "kind": "edit" }, "options": options });
        let parsed = PermissionRequest::parse(AskId(1), &params, &mut ToolCalls::default());
        parsed.map(|(request, is_new)| {
            assert!(is_new);
            request
        })
    }

    #[test]
    fn only_options_for_this_call_are_chosen() {
        let options = json!([
            { "optionId": "a", "name": "Always", "kind": "allow_always" },
            { "optionId": "b", "kind": "allow_once" },
            { "optionId": "c", "kind": "reject_always" },
            { "optionId": "d", "kind": "maybe" },
        ]);
        let request = request(&options).unwrap();
        let answer = |decision| PermissionRequest::answer(&request.options, decision);
        assert_eq!(answer(PermissionDecision::Allow).unwrap()["outcome"]["optionId"], "b");
        assert_eq!(answer(PermissionDecision::Reject), Err("reject_once"));
        assert_eq!(answer(PermissionDecision::Cancel).unwrap()["outcome"]["outcome"], "cancelled");
    }

    #[test]
    fn requests_that_cannot_be_answered_are_refused() {
        for (options, why) in
            [(json!({}), "not a list"), (json!([]), "no option"), (json!([{ "name": 3 }]), "no option")]
        {
            assert!(request(&options).unwrap_err().contains(why));
        }
        let params = json!({ "toolCall": { "toolCallId": 5 }, "options": [] });
        assert!(PermissionRequest::parse(AskId(1), &params, &mut ToolCalls::default()).is_err());
    }

    #[test]
    fn questions_have_a_form() {
        let form = json!({ "mode": "form", "message": "Which?", "requestedSchema": { "type": "object" } });
        assert_eq!(QuestionRequest::parse(AskId(1), &form).unwrap().message, "Which?");
        assert_eq!(
            QuestionRequest::parse(AskId(1), &json!({ "mode": "url", "message": "m", "url": "u" })),
            None
        );
        assert_eq!(QuestionRequest::parse(AskId(1), &json!({ "message": "m" })), None);
    }
}
