//! Reading the wire formats.

use serde_json::Value;

use super::fields::Fields;
use super::names::{parse_role, parse_state};
use crate::error::A2aError;
use crate::model::{
    Artifact, Authentication, Content, Message, Part, PushConfig, Role, Status, StreamItem, Task, TaskState,
};
use crate::version::Version;

/// Reads a task.
///
/// # Errors
/// Names what is missing or wrong.
pub fn read_task(version: Version, value: &Value) -> Result<Task, A2aError> {
    let fields = Fields::new(version, value);
    let task = task(&fields);
    fields.finish(task)
}

/// Reads an artifact.
///
/// # Errors
/// Names what is missing or wrong.
pub fn read_artifact(version: Version, value: &Value) -> Result<Artifact, A2aError> {
    let fields = Fields::new(version, value);
    let artifact = artifact(&fields);
    fields.finish(artifact)
}

/// Reads a list of messages. What is not a message is left out.
#[must_use]
pub fn read_messages(version: Version, list: &Value) -> Vec<Message> {
    let values = list.as_array().into_iter().flatten();
    values
        .filter_map(|value| {
            let fields = Fields::new(version, value);
            let message = message(&fields);
            fields.finish(message).ok()
        })
        .collect()
}

/// Reads what a stream carries: an event, not its JSON-RPC envelope.
///
/// # Errors
/// Names what is missing or wrong.
pub fn read_stream_item(version: Version, value: &Value) -> Result<StreamItem, A2aError> {
    let fields = Fields::new(version, value);
    let item = stream_item(&fields);
    fields.finish(item)
}

/// Reads the result of sending a message: a task or a message.
///
/// # Errors
/// Names what is missing or wrong.
pub fn read_send_response(version: Version, value: &Value) -> Result<StreamItem, A2aError> {
    read_stream_item(version, value)
}

/// Reads the configuration of push notifications for a task. Gives the task's id with it.
///
/// # Errors
/// Names what is missing or wrong.
pub fn read_push(version: Version, value: &Value) -> Result<(String, PushConfig), A2aError> {
    let fields = Fields::new(version, value);
    let config = push_of(&fields);
    fields.finish(config)
}

/// A configuration with the id of its task.
pub(crate) fn push_of(fields: &Fields<'_>) -> Option<(String, PushConfig)> {
    let task = fields.required_id("taskId");
    let config = match fields.version {
        Version::V0_3 => {
            let inner = fields.object("pushNotificationConfig");
            if inner.is_none() {
                fields.wrong("pushNotificationConfig", "is missing");
            }
            push(&inner?)
        }
        Version::V1_0 => push(fields),
    };
    Some((task?, config?))
}

/// The configuration itself.
pub(crate) fn push(fields: &Fields<'_>) -> Option<PushConfig> {
    let url = fields.text("url");
    if url.is_none() {
        fields.wrong("url", "is missing: the address that notifications are posted to");
    }
    let authentication = fields.object("authentication").and_then(|inner| {
        let scheme = match fields.version {
            Version::V1_0 => inner.text("scheme").map(str::to_owned),
            Version::V0_3 => inner.texts("schemes").into_iter().next(),
        };
        let is_token = |text: &&String| {
            !text.is_empty()
                && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
        };
        let scheme = scheme.filter(|text| is_token(&text));
        if scheme.is_none() {
            inner.wrong("scheme", "must be the name of an HTTP authentication scheme, such as Bearer");
        }
        let credentials = inner.text("credentials").map(str::to_owned);
        check_header(&inner, "credentials", credentials.as_deref());
        Some(Authentication { scheme: scheme?, credentials })
    });
    let token = fields.text("token").map(str::to_owned);
    check_header(fields, "token", token.as_deref());
    Some(PushConfig { id: fields.id("id"), url: url?.to_owned(), token, authentication })
}

/// Rejects text that would end a header.
fn check_header(fields: &Fields<'_>, name: &str, text: Option<&str>) {
    let right = |text: &str| text.len() <= 8192 && text.bytes().all(|b| (b' '..0x7f).contains(&b));
    if text.is_some_and(|text| !right(text)) {
        fields.wrong(name, "must be printable ASCII of at most 8192 characters: it is sent as a header");
    }
}

fn stream_item(fields: &Fields<'_>) -> Option<StreamItem> {
    match fields.version {
        Version::V0_3 => match fields.text("kind") {
            Some("task") => task(fields).map(StreamItem::Task),
            Some("message") => message(fields).map(StreamItem::Message),
            Some("status-update") => status_update(fields),
            Some("artifact-update") => artifact_update(fields),
            _ => {
                fields.wrong("kind", "must be task, message, status-update or artifact-update");
                None
            }
        },
        Version::V1_0 => {
            if let Some(inner) = fields.object("task") {
                task(&inner).map(StreamItem::Task)
            } else if let Some(inner) = fields.object("message") {
                message(&inner).map(StreamItem::Message)
            } else if let Some(inner) = fields.object("statusUpdate") {
                status_update(&inner)
            } else if let Some(inner) = fields.object("artifactUpdate") {
                artifact_update(&inner)
            } else {
                fields.wrong("", "must have task, message, statusUpdate or artifactUpdate");
                None
            }
        }
    }
}

fn status_update(fields: &Fields<'_>) -> Option<StreamItem> {
    Some(StreamItem::Status {
        task_id: fields.required_id("taskId")?,
        context_id: fields.id("contextId").unwrap_or_default(),
        status: status(fields)?,
        metadata: fields.metadata("metadata"),
    })
}

fn artifact_update(fields: &Fields<'_>) -> Option<StreamItem> {
    Some(StreamItem::Artifact {
        task_id: fields.required_id("taskId")?,
        context_id: fields.id("contextId").unwrap_or_default(),
        artifact: artifact(&fields.object("artifact")?)?,
        metadata: fields.metadata("metadata"),
    })
}

fn task(fields: &Fields<'_>) -> Option<Task> {
    Some(Task {
        id: fields.required_id("id")?,
        context_id: fields.id("contextId").unwrap_or_default(),
        status: status(fields)?,
        artifacts: fields
            .get("artifacts")
            .map(|_| fields.objects("artifacts").filter_map(|item| artifact(&item)).collect()),
        history: fields
            .get("history")
            .map(|_| fields.objects("history").filter_map(|item| message(&item)).collect()),
        metadata: fields.metadata("metadata"),
    })
}

fn status(fields: &Fields<'_>) -> Option<Status> {
    let inner = fields.object("status");
    if inner.is_none() {
        fields.wrong("status", "is missing");
    }
    let inner = inner?;
    Some(Status {
        state: state(&inner, "state")?,
        message: inner.object("message").and_then(|fields| message(&fields)),
        timestamp: inner.text("timestamp").map(str::to_owned),
    })
}

/// A state; `None` if it is absent or wrong.
pub(crate) fn state(fields: &Fields<'_>, name: &str) -> Option<TaskState> {
    let found = fields.text(name).and_then(|text| parse_state(fields.version, text));
    if found.is_none() {
        let known = TaskState::ALL.map(|state| super::names::state_name(fields.version, state)).join(", ");
        fields.wrong(name, format!("must be one of: {known}"));
    }
    found
}

fn artifact(fields: &Fields<'_>) -> Option<Artifact> {
    Some(Artifact {
        artifact_id: fields.required_id("artifactId")?,
        name: fields.text("name").map(str::to_owned),
        description: fields.text("description").map(str::to_owned),
        parts: parts(fields),
    })
}

/// A message.
pub(crate) fn message(fields: &Fields<'_>) -> Option<Message> {
    // Callers of 0.3 may leave it out; the receiver makes one then.
    let message_id = match fields.version {
        Version::V0_3 => Some(fields.id("messageId").unwrap_or_default()),
        Version::V1_0 => fields.required_id("messageId"),
    };
    let role: Option<Role> = fields.text("role").and_then(|text| parse_role(fields.version, text));
    if role.is_none() {
        let (user, agent) = (
            super::names::role_name(fields.version, Role::User),
            super::names::role_name(fields.version, Role::Agent),
        );
        fields.wrong("role", format!("must be {user} or {agent}"));
    }
    let parts = parts(fields);
    if parts.is_empty() && fields.get("parts").is_none_or(|list| list.as_array().is_some_and(Vec::is_empty)) {
        fields.wrong("parts", "must have at least one part");
    }
    Some(Message {
        message_id: message_id?,
        context_id: fields.id("contextId"),
        task_id: fields.id("taskId"),
        role: role?,
        parts,
        metadata: fields.metadata("metadata"),
        extensions: fields.texts("extensions"),
        reference_task_ids: fields.texts("referenceTaskIds"),
    })
}

fn parts(fields: &Fields<'_>) -> Vec<Part> {
    let read = match fields.version {
        Version::V0_3 => part_0_3,
        Version::V1_0 => part_1_0,
    };
    fields.objects("parts").filter_map(|part| read(&part)).collect()
}

fn part_0_3(fields: &Fields<'_>) -> Option<Part> {
    let metadata = fields.metadata("metadata");
    let missing = |name: &str| fields.wrong(name, "is missing");
    match fields.text("kind") {
        Some("text") => {
            // An empty text is one.
            let Some(Value::String(text)) = fields.get("text") else {
                missing("text");
                return None;
            };
            Some(named(Part { metadata, ..Part::text(text.as_str()) }))
        }
        Some("data") => {
            let Some(data) = fields.metadata("data") else {
                missing("data");
                return None;
            };
            Some(named(Part { metadata, ..Part::data(Value::Object(data)) }))
        }
        Some("file") => {
            let Some(file) = fields.object("file") else {
                missing("file");
                return None;
            };
            let content = match (file.text("bytes"), file.text("uri")) {
                (Some(bytes), None) => Content::Bytes(bytes.to_owned()),
                (None, Some(uri)) => Content::Url(uri.to_owned()),
                _ => {
                    file.wrong("", "must have either bytes or uri");
                    return None;
                }
            };
            let (filename, media_type) =
                (file.text("name").map(str::to_owned), file.text("mimeType").map(str::to_owned));
            Some(Part { content, metadata, filename, media_type })
        }
        _ => {
            fields.wrong("kind", "must be text, data or file");
            None
        }
    }
}

/// Takes the name and the media type of a text or data part of 0.3 out of its metadata.
fn named(mut part: Part) -> Part {
    let Some(metadata) = &mut part.metadata else { return part };
    let mut take = |name: &str| match metadata.get(name) {
        Some(Value::String(_)) => metadata.remove(name).and_then(|value| value.as_str().map(str::to_owned)),
        _ => None,
    };
    (part.filename, part.media_type) = (take("filename"), take("mediaType"));
    if metadata.is_empty() && (part.filename.is_some() || part.media_type.is_some()) {
        part.metadata = None;
    }
    part
}

fn part_1_0(fields: &Fields<'_>) -> Option<Part> {
    let found: Vec<&str> =
        ["text", "data", "raw", "url"].into_iter().filter(|name| fields.get(name).is_some()).collect();
    let content = match (found.as_slice(), found.first().and_then(|name| fields.get(name))) {
        (["text"], Some(Value::String(text))) => Content::Text(text.clone()),
        (["data"], Some(value)) => Content::Data(value.clone()),
        (["raw"], Some(Value::String(bytes))) => Content::Bytes(bytes.clone()),
        (["url"], Some(Value::String(url))) => Content::Url(url.clone()),
        ([_], _) => {
            fields.wrong(found[0], "must be a text");
            return None;
        }
        _ => {
            fields.wrong("", "must have exactly one of text, data, raw and url");
            return None;
        }
    };
    Some(Part {
        content,
        metadata: fields.metadata("metadata"),
        filename: fields.text("filename").map(str::to_owned),
        media_type: fields.text("mediaType").map(str::to_owned),
    })
}
