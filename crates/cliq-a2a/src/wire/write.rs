//! Writing the wire formats.

use serde_json::{Map, Value, json};

use super::names::{role_name, state_name};
use crate::model::{Artifact, Content, Message, Metadata, Part, PushConfig, Status, StreamItem, Task};
use crate::version::Version;

/// A task.
#[must_use]
pub fn write_task(version: Version, task: &Task) -> Value {
    let mut object = Map::new();
    if version == Version::V0_3 {
        object.insert("kind".into(), "task".into());
    }
    object.insert("id".into(), task.id.clone().into());
    object.insert("contextId".into(), task.context_id.clone().into());
    object.insert("status".into(), status(version, &task.status));
    if let Some(list) = &task.artifacts {
        object.insert("artifacts".into(), list.iter().map(|item| write_artifact(version, item)).collect());
    }
    if let Some(list) = &task.history {
        object.insert("history".into(), list.iter().map(|item| write_message(version, item)).collect());
    }
    insert_metadata(&mut object, task.metadata.as_ref());
    Value::Object(object)
}

/// Writes the content of a stream item or push notification, without the JSON-RPC envelope.
#[must_use]
pub fn write_stream_item(version: Version, item: &StreamItem) -> Value {
    let (name, inner) = match item {
        StreamItem::Task(task) => ("task", write_task(version, task)),
        StreamItem::Message(inner) => ("message", write_message(version, inner)),
        StreamItem::Status { task_id, context_id, status: inner, metadata } => {
            let mut object = update(version, "status-update", task_id, context_id);
            object.insert("status".into(), status(version, inner));
            if version == Version::V0_3 {
                let is_final = inner.state.is_terminal() || inner.state.is_interrupted();
                object.insert("final".into(), is_final.into());
            }
            insert_metadata(&mut object, metadata.as_ref());
            ("statusUpdate", Value::Object(object))
        }
        StreamItem::Artifact { task_id, context_id, artifact: inner, metadata } => {
            let mut object = update(version, "artifact-update", task_id, context_id);
            object.insert("artifact".into(), write_artifact(version, inner));
            object.insert("lastChunk".into(), true.into());
            insert_metadata(&mut object, metadata.as_ref());
            ("artifactUpdate", Value::Object(object))
        }
    };
    match version {
        Version::V0_3 => inner,
        Version::V1_0 => json!({ name: inner }),
    }
}

/// The result of sending a message. 0.3 returns the task itself, 1.0 an object that names it.
#[must_use]
pub fn write_send_response(version: Version, task: &Task) -> Value {
    match version {
        Version::V0_3 => write_task(version, task),
        Version::V1_0 => json!({"task": write_task(version, task)}),
    }
}

/// The configuration of push notifications for a task.
#[must_use]
pub fn write_push(version: Version, task_id: &str, config: &PushConfig) -> Value {
    let mut object = Map::new();
    let mut put = |name: &str, text: Option<&str>| {
        if let Some(text) = text {
            object.insert(name.to_owned(), text.into());
        }
    };
    put("id", config.id.as_deref());
    put("url", Some(&config.url));
    put("token", config.token.as_deref());
    if let Some(authentication) = &config.authentication {
        let mut inner = match version {
            Version::V0_3 => json!({"schemes": [authentication.scheme]}),
            Version::V1_0 => json!({"scheme": authentication.scheme}),
        };
        if let Some(credentials) = &authentication.credentials {
            inner["credentials"] = credentials.as_str().into();
        }
        object.insert("authentication".into(), inner);
    }
    match version {
        Version::V0_3 => json!({"taskId": task_id, "pushNotificationConfig": object}),
        Version::V1_0 => {
            object.insert("taskId".into(), task_id.into());
            Value::Object(object)
        }
    }
}

fn update(version: Version, kind: &str, task_id: &str, context_id: &str) -> Map<String, Value> {
    let mut object = Map::new();
    if version == Version::V0_3 {
        object.insert("kind".into(), kind.into());
    }
    object.insert("taskId".into(), task_id.into());
    object.insert("contextId".into(), context_id.into());
    object
}

fn insert_metadata(object: &mut Map<String, Value>, metadata: Option<&Metadata>) {
    if let Some(metadata) = metadata {
        object.insert("metadata".into(), Value::Object(metadata.clone()));
    }
}

fn status(version: Version, status: &Status) -> Value {
    let mut object = Map::new();
    object.insert("state".into(), state_name(version, status.state).into());
    if let Some(inner) = &status.message {
        object.insert("message".into(), write_message(version, inner));
    }
    if let Some(timestamp) = &status.timestamp {
        object.insert("timestamp".into(), timestamp.clone().into());
    }
    Value::Object(object)
}

/// An artifact.
#[must_use]
pub fn write_artifact(version: Version, artifact: &Artifact) -> Value {
    let mut object = Map::new();
    object.insert("artifactId".into(), artifact.artifact_id.clone().into());
    for (name, text) in [("name", &artifact.name), ("description", &artifact.description)] {
        if let Some(text) = text {
            object.insert(name.into(), text.clone().into());
        }
    }
    object.insert("parts".into(), artifact.parts.iter().map(|item| part(version, item)).collect());
    Value::Object(object)
}

/// A message.
#[must_use]
pub fn write_message(version: Version, message: &Message) -> Value {
    let mut object = Map::new();
    if version == Version::V0_3 {
        object.insert("kind".into(), "message".into());
    }
    object.insert("messageId".into(), message.message_id.clone().into());
    for (name, text) in [("contextId", &message.context_id), ("taskId", &message.task_id)] {
        if let Some(text) = text {
            object.insert(name.into(), text.clone().into());
        }
    }
    object.insert("role".into(), role_name(version, message.role).into());
    object.insert("parts".into(), message.parts.iter().map(|item| part(version, item)).collect());
    insert_metadata(&mut object, message.metadata.as_ref());
    for (name, list) in
        [("extensions", &message.extensions), ("referenceTaskIds", &message.reference_task_ids)]
    {
        if !list.is_empty() {
            object.insert(name.into(), list.clone().into());
        }
    }
    Value::Object(object)
}

fn part(version: Version, part: &Part) -> Value {
    let mut object = match version {
        Version::V0_3 => part_0_3(part),
        Version::V1_0 => part_1_0(part),
    };
    let mut metadata = part.metadata.clone();
    let is_file = matches!(part.content, Content::Bytes(_) | Content::Url(_));
    if version == Version::V0_3 && !is_file {
        // 0.3 has no other place for the name of a text or of data.
        for (name, text) in [("filename", &part.filename), ("mediaType", &part.media_type)] {
            if let Some(text) = text {
                metadata.get_or_insert_default().insert(name.to_owned(), text.as_str().into());
            }
        }
    }
    insert_metadata(&mut object, metadata.as_ref());
    Value::Object(object)
}

fn part_0_3(part: &Part) -> Map<String, Value> {
    let mut object = Map::new();
    let (name, content) = match &part.content {
        Content::Text(text) => {
            object.insert("kind".into(), "text".into());
            object.insert("text".into(), text.clone().into());
            return object;
        }
        Content::Data(value) => {
            // Data of 0.3 is an object.
            let value = if value.is_object() { value.clone() } else { json!({ "value": value }) };
            object.insert("kind".into(), "data".into());
            object.insert("data".into(), value);
            return object;
        }
        Content::Bytes(bytes) => ("bytes", bytes),
        Content::Url(url) => ("uri", url),
    };
    let mut file = Map::new();
    file.insert(name.into(), content.clone().into());
    for (name, text) in [("name", &part.filename), ("mimeType", &part.media_type)] {
        if let Some(text) = text {
            file.insert(name.into(), text.clone().into());
        }
    }
    object.insert("kind".into(), "file".into());
    object.insert("file".into(), Value::Object(file));
    object
}

fn part_1_0(part: &Part) -> Map<String, Value> {
    let mut object = Map::new();
    let (name, value) = match &part.content {
        Content::Text(text) => ("text", text.clone().into()),
        Content::Data(value) => ("data", value.clone()),
        Content::Bytes(bytes) => ("raw", bytes.clone().into()),
        Content::Url(url) => ("url", url.clone().into()),
    };
    object.insert(name.into(), value);
    for (name, text) in [("filename", &part.filename), ("mediaType", &part.media_type)] {
        if let Some(text) = text {
            object.insert(name.into(), text.clone().into());
        }
    }
    object
}
