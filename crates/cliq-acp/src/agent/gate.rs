//! Gates: decisions that a person makes, as permission requests and forms. Pure.

use agent_client_protocol_schema::v1::{
    PermissionOption, PermissionOptionKind, RequestPermissionRequest, ToolCallContent, ToolCallUpdate,
    ToolCallUpdateFields,
};
use cliq_protocol::{Form, FormFieldType, Object};
use serde_json::{Map, Value, json};

/// Id of the option that approves.
const APPROVE: &str = "approve";
/// Id of the option that rejects.
const REJECT: &str = "reject";
/// Beginning of the ids of options that request changes. The phase follows.
const CHANGES: &str = "changes:";
/// Name of the form field for the requested changes.
const WORDS: &str = "changes";

/// Decision that a person is asked for.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Gate {
    /// Id, unique for each decision.
    pub id: String,
    /// Id of the tool call that shows the gate.
    pub tool_call: String,
    /// Title for people.
    pub title: String,
    /// Content of the tool call.
    pub content: Vec<ToolCallContent>,
    /// Phases that can be asked to work again.
    pub targets: Vec<String>,
    /// Form that an approval fills in.
    pub form: Form,
    /// Sentence about other ways to answer.
    pub hint: String,
    /// Names of the options that approve and reject.
    pub choices: (String, String),
}

impl Gate {
    /// Returns a gate without content, targets and form.
    #[must_use]
    pub fn new(id: impl Into<String>, tool_call: impl Into<String>, title: impl Into<String>) -> Self {
        let (id, tool_call, title) = (id.into(), tool_call.into(), title.into());
        let (content, targets, form) = (Vec::new(), Vec::new(), Form::default());
        let choices = ("Approve".to_owned(), "Reject: the run ends".to_owned());
        Self { id, tool_call, title, content, targets, form, hint: String::new(), choices }
    }

    /// Sets the names of the options that approve and reject.
    #[must_use]
    pub fn with_choices(self, approve: impl Into<String>, reject: impl Into<String>) -> Self {
        Self { choices: (approve.into(), reject.into()), ..self }
    }

    /// Sets the content of the tool call and the sentence about other ways to answer.
    #[must_use]
    pub fn with_content(self, content: Vec<ToolCallContent>, hint: impl Into<String>) -> Self {
        Self { content, hint: hint.into(), ..self }
    }

    /// Sets the phases that can be asked to work again.
    #[must_use]
    pub fn with_targets(self, targets: Vec<String>) -> Self {
        Self { targets, ..self }
    }

    /// Sets the form.
    #[must_use]
    pub fn with_form(self, form: Form) -> Self {
        Self { form, ..self }
    }

    /// Returns the parameters of `session/request_permission`.
    pub(super) fn permission(&self, session: &str) -> RequestPermissionRequest {
        let option = |id: &str, name: &str, kind| PermissionOption::new(id.to_owned(), name, kind);
        let mut options = vec![option(APPROVE, &self.choices.0, PermissionOptionKind::AllowOnce)];
        options.extend(self.targets.iter().map(|target| {
            let name = format!("Request changes by {target}");
            option(&format!("{CHANGES}{target}"), &name, PermissionOptionKind::RejectOnce)
        }));
        options.push(option(REJECT, &self.choices.1, PermissionOptionKind::RejectOnce));
        let fields = ToolCallUpdateFields::new().title(self.title.clone()).content(self.content.clone());
        let call = ToolCallUpdate::new(self.tool_call.clone(), fields);
        RequestPermissionRequest::new(session.to_owned(), call, options)
    }

    /// Reads the answer to the permission request. Only an option that was offered is a choice; everything else is none.
    pub(super) fn choice(&self, answer: &Value) -> Option<GateChoice> {
        let outcome = answer.get("outcome")?;
        if outcome.get("outcome")?.as_str()? != "selected" {
            return None;
        }
        match outcome.get("optionId")?.as_str()? {
            APPROVE => Some(GateChoice::Approve),
            REJECT => Some(GateChoice::Reject),
            other => {
                let target = other.strip_prefix(CHANGES)?;
                let is_offered = self.targets.iter().any(|offered| offered == target);
                is_offered.then(|| GateChoice::Changes(target.to_owned()))
            }
        }
    }

    /// Whether an approval requires answers that have no default.
    pub(super) fn requires_answers(&self) -> bool {
        self.form.fields().iter().any(|field| field.required && field.default.is_none())
    }

    /// Returns the parameters of `elicitation/create` for the form.
    pub(super) fn form_request(&self, session: &str) -> Value {
        let properties: Map<String, Value> = self
            .form
            .fields()
            .iter()
            .map(|field| {
                let mut schema = match &field.kind {
                    FormFieldType::Text | FormFieldType::Textarea => json!({ "type": "string" }),
                    FormFieldType::Number => json!({ "type": "number" }),
                    FormFieldType::Boolean => json!({ "type": "boolean" }),
                    FormFieldType::Select(choices) => json!({ "type": "string", "enum": choices }),
                };
                schema["title"] = field.label.as_str().into();
                if let Some(help) = &field.help {
                    schema["description"] = help.as_str().into();
                }
                if let Some(default) = &field.default {
                    schema["default"] = default.clone();
                }
                (field.name.clone(), schema)
            })
            .collect();
        let required: Vec<&str> = self
            .form
            .fields()
            .iter()
            .filter(|field| field.required)
            .map(|field| field.name.as_str())
            .collect();
        self.elicitation(session, &self.title, json!({ "properties": properties, "required": required }))
    }

    /// Returns the parameters of `elicitation/create` for the words of a request for changes.
    pub(super) fn words_request(&self, session: &str, target: &str) -> Value {
        let properties = json!({ WORDS: { "type": "string", "title": "Changes", "minLength": 1 } });
        let message = format!("Describe the changes that {target} is to make.");
        self.elicitation(session, &message, json!({ "properties": properties, "required": [WORDS] }))
    }

    fn elicitation(&self, session: &str, message: &str, mut schema: Value) -> Value {
        schema["type"] = "object".into();
        json!({
            "mode": "form", "sessionId": session, "toolCallId": self.tool_call, "message": message,
            "requestedSchema": schema,
        })
    }
}

/// Option that a person chose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum GateChoice {
    Approve,
    /// Request for changes by this phase.
    Changes(String),
    Reject,
}

/// Decision of a person.
#[derive(Debug, Clone, PartialEq)]
pub enum GateAnswer {
    /// The work goes on.
    Approve {
        /// Values of the form.
        inputs: Object,
    },
    /// A phase works again.
    Changes {
        /// The phase.
        to: String,
        /// Requested changes.
        words: String,
    },
    /// The work ends.
    Reject,
}

/// Returns the values of an accepted form, or `None` if the form was declined, or the answer is not clear.
pub(super) fn form_values(answer: &Value) -> Option<Object> {
    if answer.get("action")?.as_str()? != "accept" {
        return None;
    }
    match answer.get("content") {
        None | Some(Value::Null) => Some(Object::new()),
        Some(Value::Object(values)) => {
            Some(values.iter().map(|(name, value)| (name.clone(), value.clone())).collect())
        }
        Some(_) => None,
    }
}

/// Returns the words of a request for changes, or `None` if there are none.
pub(super) fn form_words(answer: &Value) -> Option<String> {
    let words = form_values(answer)?.get(WORDS)?.as_str()?.trim().to_owned();
    (!words.is_empty()).then_some(words)
}
