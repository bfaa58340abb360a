//! One line of a signal channel (docs/protocol.md).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::fields::Fields;
use crate::review::WaitingReview;
use crate::{DecodeError, FieldError, Limited, Object, Usage, VERSION, WireTime};

/// Type of a dispatch. Channel messages repeat it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DispatchType {
    /// To work on a phase.
    Phase,
    /// To deliver a notification.
    Notify,
    /// To show that it speaks the protocol.
    Test,
}

impl DispatchType {
    /// The name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Phase => "phase",
            Self::Notify => "notify",
            Self::Test => "test",
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        [Self::Phase, Self::Notify, Self::Test].into_iter().find(|kind| kind.as_str() == text)
    }
}

/// One message of a signal channel.
#[derive(Debug, Clone, PartialEq)]
pub struct ChannelMessage {
    /// Time of writing.
    pub ts: WireTime,
    /// Type of the agent's dispatch.
    pub dispatch: DispatchType,
    /// The message proper.
    pub body: ChannelBody,
    /// Fields that this version does not know, or that do not belong to this status.
    pub extra: Object,
}

/// The message proper, by its `status`.
#[derive(Debug, Clone, PartialEq)]
pub enum ChannelBody {
    /// The agent has the message and knows what to do.
    Ok,
    /// Still at work.
    Progress {
        /// A note for people.
        message: Option<String>,
        /// The usage of this activation so far (docs/protocol.md).
        usage: Option<Box<Usage>>,
        /// The review that the agent waits for (docs/reviews.md).
        review: Option<Box<WaitingReview>>,
    },
    /// A request to deliver a notification.
    Notify(NotifyRequest),
    /// Finished. Terminal.
    Complete {
        /// Result of the handler.
        result: Option<Value>,
    },
    /// Failed. Terminal.
    Error {
        /// Error message.
        error: String,
        /// The usage of the activation (`result.usage` on the wire).
        usage: Option<Box<Usage>>,
        /// Limit that ended the work, if one did (docs/outcomes.md).
        limited: Option<Limited>,
    },
}

/// The `result` of a notify message: who is to deliver what.
#[derive(Debug, Clone, PartialEq)]
pub struct NotifyRequest {
    /// The id of the notification, where the agent gives it one: it is delivered at most once in a run. Letters, digits and `-`.
    pub id: Option<String>,
    /// The agent that delivers, such as `slack`.
    pub agent: String,
    /// Destination in the terms of the agent.
    pub channel: Option<String>,
    /// Kind of the notification, such as `hug_review`.
    pub event: String,
    /// Details for the agent.
    pub payload: Option<Value>,
    /// Fields that this version does not know.
    pub extra: Object,
}

impl ChannelBody {
    /// The status on the wire.
    #[must_use]
    pub fn status(&self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Progress { .. } => "progress",
            Self::Notify(_) => "notify",
            Self::Complete { .. } => "complete",
            Self::Error { .. } => "error",
        }
    }

    /// Whether nothing may follow.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        matches!(self, Self::Complete { .. } | Self::Error { .. })
    }
}

/// Fast path for an ordinary `progress` line, which is nearly every line. A property test compares it with
/// [`ChannelMessage::from_value`].
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MessageFields {
    ts: String,
    version: u64,
    #[serde(rename = "type")]
    dispatch: DispatchType,
    status: StatusField,
    #[serde(default, deserialize_with = "present")]
    message: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum StatusField {
    Progress,
}

/// A null is kept on a rewrite, which makes it unusual.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    String::deserialize(deserializer).map(Some)
}

impl From<MessageFields> for ChannelMessage {
    fn from(usual: MessageFields) -> Self {
        let StatusField::Progress = usual.status;
        let body = ChannelBody::Progress { message: usual.message, usage: None, review: None };
        Self { ts: WireTime::from_text(usual.ts), dispatch: usual.dispatch, body, extra: Object::new() }
    }
}

impl ChannelMessage {
    /// A message with no unknown fields.
    #[must_use]
    pub fn new(ts: impl Into<WireTime>, dispatch: DispatchType, body: ChannelBody) -> Self {
        Self { ts: ts.into(), dispatch, body, extra: Object::new() }
    }

    /// Decodes one line, with or without its line end.
    ///
    /// Time and memory are linear in the size of the input; an error has at most 1,000 bytes.
    ///
    /// # Errors
    /// Not JSON, another version, an unknown type or status, a missing or mistyped field, a key of a terminal message that is there twice: the
    /// error names it.
    pub fn decode(line: &[u8]) -> Result<Self, DecodeError> {
        match serde_json::from_slice::<MessageFields>(line) {
            Ok(usual) if usual.version == VERSION => Ok(usual.into()),
            // Everything that is not usual, and everything that is wrong.
            _ => {
                let message = Self::from_value(crate::lenient_json(line)?)?;
                if message.body.is_terminal() {
                    // Nothing that can be read in two ways ends a phase.
                    crate::check_unique_keys(line)?;
                }
                Ok(message)
            }
        }
    }

    /// Reads a message from a JSON value.
    ///
    /// # Errors
    /// Names the field that is missing or wrong.
    pub fn from_value(value: Value) -> Result<Self, FieldError> {
        const TYPES: &str = "\"phase\", \"notify\" or \"test\"";
        const STATUSES: &str = "\"ok\", \"progress\", \"notify\", \"complete\" or \"error\"";
        let mut fields = Fields::new(value, "")?;
        fields.version()?;
        let ts = WireTime::from_text(fields.text("ts")?);
        let kind = fields.required("type", TYPES)?;
        let dispatch =
            kind.as_str().and_then(DispatchType::parse).ok_or_else(|| fields.wrong("type", TYPES, &kind))?;
        let status = fields.required("status", STATUSES)?;
        let (mut rest_of_result, mut wrong_limited) = (None, None);
        let body = match status.as_str() {
            Some("ok") => ChannelBody::Ok,
            Some("progress") => {
                let usage = fields.take("usage").map(|usage| Usage::read(usage, "usage")).transpose()?;
                let review = fields.take("review").map(WaitingReview::read).transpose()?;
                ChannelBody::Progress {
                    message: fields.optional_text("message")?,
                    usage: usage.map(Box::new),
                    review: review.map(Box::new),
                }
            }
            Some("notify") => {
                ChannelBody::Notify(NotifyRequest::read(fields.required("result", "an object")?)?)
            }
            Some("complete") => ChannelBody::Complete { result: fields.take_raw("result") },
            Some("error") => {
                let usage;
                (usage, rest_of_result) = split_usage(fields.take_raw("result"));
                let limited = fields.take_raw("limited");
                let read = limited.as_ref().and_then(|value| Limited::read(value.clone(), "limited").ok());
                // One that is wrong must not hide the error. It stays among the unknown fields.
                wrong_limited = limited.filter(|_| read.is_none());
                ChannelBody::Error { error: fields.text("error")?, usage: usage.map(Box::new), limited: read }
            }
            _ => return Err(fields.wrong("status", STATUSES, &status)),
        };
        let mut extra = fields.rest();
        extra.extend(rest_of_result.map(|rest| ("result".to_owned(), rest)));
        extra.extend(wrong_limited.map(|wrong| ("limited".to_owned(), wrong)));
        Ok(Self { ts, dispatch, body, extra })
    }

    /// The message as a JSON value.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut map = self.extra.clone();
        map.insert("ts".into(), self.ts.to_string().into());
        map.insert("version".into(), VERSION.into());
        map.insert("type".into(), self.dispatch.as_str().into());
        map.insert("status".into(), self.body.status().into());
        match &self.body {
            ChannelBody::Ok => {}
            ChannelBody::Progress { message, usage, review } => {
                if let Some(message) = message {
                    map.insert("message".into(), message.as_str().into());
                }
                if let Some(usage) = usage {
                    map.insert("usage".into(), usage.to_value());
                }
                if let Some(review) = review {
                    map.insert("review".into(), review.to_value());
                }
            }
            ChannelBody::Notify(request) => {
                map.insert("result".into(), request.to_value());
            }
            ChannelBody::Complete { result } => {
                if let Some(result) = result {
                    map.insert("result".into(), result.clone());
                }
            }
            ChannelBody::Error { error, usage, limited } => {
                map.insert("error".into(), error.as_str().into());
                if let Some(limited) = limited {
                    map.insert("limited".into(), limited.to_value());
                }
                if let Some(usage) = usage {
                    let result = map.entry("result").or_insert_with(|| Value::Object(Object::new()));
                    if let Value::Object(result) = result {
                        result.insert("usage".into(), usage.to_value());
                    }
                }
            }
        }
        Value::Object(map)
    }

    /// The message as a line: compact JSON and a newline. JSON escapes every newline within, so it is one line.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        // A value of strings, numbers and maps of them always has a text.
        let mut line = serde_json::to_vec(&self.to_value()).unwrap_or_default();
        line.push(b'\n');
        line
    }
}

/// The usage in the `result` of an `error` message, and the rest of that `result`. A usage that is wrong stays in the rest:
/// it must not hide the error.
fn split_usage(result: Option<Value>) -> (Option<Usage>, Option<Value>) {
    let usage = result.as_ref().and_then(|result| Usage::of_result(result).ok().flatten());
    match result {
        Some(Value::Object(mut map)) if usage.is_some() => {
            map.remove("usage");
            (
                usage,
                Some(Value::Object(map)).filter(|rest| rest.as_object().is_some_and(|map| !map.is_empty())),
            )
        }
        other => (usage, other),
    }
}

impl NotifyRequest {
    fn read(value: Value) -> Result<Self, FieldError> {
        let mut fields = Fields::new(value, "result")?;
        Ok(Self {
            id: fields.optional_text("id")?,
            agent: fields.text("agent")?,
            channel: fields.optional_text("channel")?,
            event: fields.text("event")?,
            payload: fields.take_raw("payload"),
            extra: fields.rest(),
        })
    }

    fn to_value(&self) -> Value {
        let mut map = self.extra.clone();
        if let Some(id) = &self.id {
            map.insert("id".into(), id.as_str().into());
        }
        map.insert("agent".into(), self.agent.as_str().into());
        if let Some(channel) = &self.channel {
            map.insert("channel".into(), channel.as_str().into());
        }
        map.insert("event".into(), self.event.as_str().into());
        if let Some(payload) = &self.payload {
            map.insert("payload".into(), payload.clone());
        }
        Value::Object(map)
    }
}
