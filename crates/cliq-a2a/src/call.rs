//! Call of a caller: a method with its parameters, parsed once.

use cliq_protocol::Timestamp;
use serde_json::Value;

use crate::error::{A2aError, ErrorKind};
use crate::model::{Content, Message, PushConfig, Role, TaskState};
use crate::version::Version;
use crate::wire::{Fields, message, parse_state, push_config, push_of, state_name};

/// The most tasks of a page (section 3.1.4 of A2A 1.0).
const MAX_PAGE: i64 = 100;
/// The tasks of a page where the caller does not say.
const DEFAULT_PAGE: u32 = 50;

/// A message with the wishes of its sender.
#[derive(Debug, Clone, PartialEq)]
pub struct SendRequest {
    /// The message.
    pub message: Message,
    /// Whether the response waits until the task is over or needs its caller.
    pub blocking: bool,
    /// The most messages of the history in the response; `None` for all.
    pub history_length: Option<usize>,
    /// Receiver of push notifications of the new task.
    pub push: Option<PushConfig>,
    /// Media types that the caller takes; empty for any.
    pub accepted_output_modes: Vec<String>,
}

/// Filter for the tasks of a caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// Of this conversation.
    pub context_id: Option<String>,
    /// In this state.
    pub state: Option<TaskState>,
    /// Changed after this time, UTC.
    pub after: Option<Timestamp>,
    /// The most tasks of the page.
    pub page_size: u32,
    /// The cursor: `nextPageToken` of the page before.
    pub page_token: Option<String>,
    /// The most messages of each history; `None` for all.
    pub history_length: Option<usize>,
    /// Whether artifacts are wanted.
    pub include_artifacts: bool,
}

/// Call of a caller.
#[derive(Debug, Clone, PartialEq)]
pub enum Call {
    /// Start a task, or go on with one.
    Send(SendRequest),
    /// The same, with a stream of its events.
    Stream(SendRequest),
    /// A task as it is now.
    Get {
        /// The task.
        id: String,
        /// The most messages of its history; `None` for all.
        history_length: Option<usize>,
    },
    /// The caller's tasks.
    List(Listing),
    /// End a task.
    Cancel {
        /// The task.
        id: String,
        /// Reason of the caller (`metadata.reason`), for people.
        reason: Option<String>,
    },
    /// A stream of a task's events from now on, or from where the caller was.
    Subscribe {
        /// The task.
        id: String,
    },
    /// Ask for push notifications.
    SetPush {
        /// The task.
        task_id: String,
        /// Receiver of the notifications.
        config: PushConfig,
    },
    /// A configuration of push notifications. Without `id` the only one, or the first.
    GetPush {
        /// The task.
        task_id: String,
        /// The configuration.
        id: Option<String>,
    },
    /// All configurations of a task.
    ListPush {
        /// The task.
        task_id: String,
    },
    /// No more push notifications.
    DeletePush {
        /// The task.
        task_id: String,
        /// The configuration.
        id: String,
    },
    /// The agent card for callers with a token.
    ExtendedCard,
}

impl Call {
    /// Reads a method and its parameters.
    ///
    /// # Errors
    /// The version has no such method, or a parameter is missing or wrong.
    pub fn parse(version: Version, method: &str, params: &Value) -> Result<Self, A2aError> {
        let fields = Fields::new(version, params);
        let call = match (version, method) {
            (Version::V0_3, "message/send") | (Version::V1_0, "SendMessage") => send(&fields).map(Self::Send),
            (Version::V0_3, "message/stream" | "message/sendSubscribe")
            | (Version::V1_0, "SendStreamingMessage") => send(&fields).map(Self::Stream),
            (Version::V0_3, "tasks/get") | (Version::V1_0, "GetTask") => {
                let history_length = history_length(&fields);
                fields.required_id("id").map(|id| Self::Get { id, history_length })
            }
            // 0.3 has no such method in JSON-RPC; the parameters are those of 1.0.
            (Version::V0_3, "tasks/list") | (Version::V1_0, "ListTasks") => {
                Some(Self::List(listing(&fields)))
            }
            (Version::V0_3, "tasks/cancel") | (Version::V1_0, "CancelTask") => {
                fields.required_id("id").map(|id| Self::Cancel { id, reason: cancel_reason(&fields) })
            }
            (Version::V0_3, "tasks/resubscribe") | (Version::V1_0, "SubscribeToTask") => {
                fields.required_id("id").map(|id| Self::Subscribe { id })
            }
            (Version::V0_3, "tasks/pushNotificationConfig/set")
            | (Version::V1_0, "CreateTaskPushNotificationConfig") => {
                push_of(&fields).map(|(task_id, config)| Self::SetPush { task_id, config })
            }
            (Version::V0_3, "tasks/pushNotificationConfig/get") => fields
                .required_id("id")
                .map(|task_id| Self::GetPush { task_id, id: fields.id("pushNotificationConfigId") }),
            (Version::V1_0, "GetTaskPushNotificationConfig") => {
                let (task_id, id) = (fields.required_id("taskId"), fields.required_id("id"));
                task_id.zip(id).map(|(task_id, id)| Self::GetPush { task_id, id: Some(id) })
            }
            (Version::V0_3, "tasks/pushNotificationConfig/list") => {
                fields.required_id("id").map(|task_id| Self::ListPush { task_id })
            }
            (Version::V1_0, "ListTaskPushNotificationConfigs") => {
                fields.required_id("taskId").map(|task_id| Self::ListPush { task_id })
            }
            (Version::V0_3, "tasks/pushNotificationConfig/delete") => {
                let (task_id, id) =
                    (fields.required_id("id"), fields.required_id("pushNotificationConfigId"));
                task_id.zip(id).map(|(task_id, id)| Self::DeletePush { task_id, id })
            }
            (Version::V1_0, "DeleteTaskPushNotificationConfig") => {
                let (task_id, id) = (fields.required_id("taskId"), fields.required_id("id"));
                task_id.zip(id).map(|(task_id, id)| Self::DeletePush { task_id, id })
            }
            (Version::V0_3, "agent/getAuthenticatedExtendedCard")
            | (Version::V1_0, "GetExtendedAgentCard") => Some(Self::ExtendedCard),
            _ => {
                let shown: String = method.chars().take(100).collect();
                let message = format!("A2A {} has no method {shown:?}", version.as_str());
                return Err(A2aError::new(ErrorKind::MethodNotFound, message));
            }
        };
        fields.finish(call)
    }

    /// Whether it changes something: a caller that may only read must not make it.
    #[must_use]
    pub fn changes(&self) -> bool {
        matches!(
            self,
            Self::Send(_)
                | Self::Stream(_)
                | Self::Cancel { .. }
                | Self::SetPush { .. }
                | Self::DeletePush { .. }
        )
    }

    /// Whether its response is a stream.
    #[must_use]
    pub fn streams(&self) -> bool {
        matches!(self, Self::Stream(_) | Self::Subscribe { .. })
    }
}

fn history_length(fields: &Fields<'_>) -> Option<usize> {
    fields.number("historyLength", 0, i64::from(i32::MAX)).and_then(|n| usize::try_from(n).ok())
}

fn send(fields: &Fields<'_>) -> Option<SendRequest> {
    let inner = fields.object("message");
    if inner.is_none() && fields.get("message").is_none() {
        fields.wrong("message", "is missing");
    }
    let inner = inner?;
    let message = message(&inner);
    if message.as_ref().is_some_and(|message| message.role == Role::Agent) {
        inner.wrong("role", "must be that of the user: the agent sends its own messages");
    }
    let configuration = fields.object("configuration");
    let config = configuration.as_ref();
    let flag = |name: &str| config.and_then(|config| config.flag(name)).unwrap_or(false);
    let (blocking, push_name) = match fields.version {
        Version::V0_3 => (flag("blocking"), "pushNotificationConfig"),
        Version::V1_0 => (!flag("returnImmediately"), "taskPushNotificationConfig"),
    };
    let push = config.and_then(|config| config.object(push_name));
    let message = message?;
    Some(SendRequest {
        message,
        blocking,
        history_length: config.and_then(history_length),
        push: push.as_ref().and_then(push_config),
        accepted_output_modes: config.map(|config| config.texts("acceptedOutputModes")).unwrap_or_default(),
    })
}

/// Maximum number of characters of the reason of a cancellation.
const MAX_REASON: usize = 500;

/// Reads the reason of a cancellation from the metadata. Control characters become spaces.
fn cancel_reason(fields: &Fields<'_>) -> Option<String> {
    let metadata = fields.metadata("metadata")?;
    let reason = metadata.get("reason")?.as_str()?.trim();
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let reason: String = reason.chars().map(plain).take(MAX_REASON).collect();
    (!reason.is_empty()).then_some(reason)
}

fn listing(fields: &Fields<'_>) -> Listing {
    let state = fields.text("status").and_then(|text| {
        let state = parse_state(fields.version, text);
        // Not set.
        if state.is_none() && text != "TASK_STATE_UNSPECIFIED" {
            let known = TaskState::ALL.map(|state| state_name(fields.version, state)).join(", ");
            fields.wrong("status", format!("must be one of: {known}"));
        }
        state
    });
    let page_size = fields.number("pageSize", 1, MAX_PAGE).and_then(|n| u32::try_from(n).ok());
    let after = fields.text("statusTimestampAfter").and_then(|text| {
        let time = Timestamp::parse(text).ok().filter(|_| is_utc_time(text));
        if time.is_none() {
            fields.wrong("statusTimestampAfter", "must be a time in UTC such as 2026-01-31T10:30:00.000Z");
        }
        time
    });
    Listing {
        context_id: fields.id("contextId"),
        state,
        after,
        page_size: page_size.unwrap_or(DEFAULT_PAGE),
        page_token: fields.id("pageToken"),
        history_length: history_length(fields),
        include_artifacts: fields.flag("includeArtifacts").unwrap_or(false),
    }
}

/// Whether a text has the form of a time: `YYYY-MM-DDTHH:MM:SS`, a fraction, `Z`.
fn is_utc_time(text: &str) -> bool {
    let Some(rest) = text.strip_suffix('Z') else { return false };
    let (whole, fraction) = rest.split_once('.').unwrap_or((rest, "0"));
    let pattern = "dddd-dd-ddTdd:dd:dd";
    let same = |(c, p): (char, char)| if p == 'd' { c.is_ascii_digit() } else { c == p };
    whole.len() == pattern.len()
        && whole.chars().zip(pattern.chars()).all(same)
        && (1..=9).contains(&fraction.len())
        && fraction.bytes().all(|b| b.is_ascii_digit())
}

impl SendRequest {
    /// Checks the media types of the message and of what the caller takes.
    ///
    /// # Errors
    /// The message has a file, or the caller takes neither text nor JSON.
    pub fn check_content(&self) -> Result<(), A2aError> {
        let file = self
            .message
            .parts
            .iter()
            .find(|part| matches!(part.content, Content::Bytes(_) | Content::Url(_)));
        if let Some(part) = file {
            let media_type = part.media_type.as_deref().unwrap_or("application/octet-stream");
            let message = format!(
                "the message has a file ({media_type}): send the task as text, and its parameters as a data part"
            );
            return Err(A2aError::new(ErrorKind::ContentTypeNotSupported, message));
        }
        let takes = |mode: &String| {
            let mode = mode.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
            matches!(
                mode.as_str(),
                "*/*"
                    | "*"
                    | "text"
                    | "text/*"
                    | "text/plain"
                    | "application/*"
                    | "application/json"
                    | "data"
            )
        };
        if !self.accepted_output_modes.is_empty() && !self.accepted_output_modes.iter().any(takes) {
            let message =
                "the agent answers with text/plain and application/json, and the caller takes neither";
            return Err(A2aError::new(ErrorKind::ContentTypeNotSupported, message));
        }
        Ok(())
    }
}
