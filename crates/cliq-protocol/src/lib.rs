//! The wire of cliq: what agents and the orchestrator say to one another, as types.
//!
//! Agents share no memory. They hand over through [`Envelope`]s in channel directories, report through
//! [`ChannelMessage`] lines in an append-only file, and are dispatched with an [`AgentMessage`] on standard input.
//! This crate decodes and encodes those three formats and holds the one order in which channel messages may
//! come ([`ChannelOrder`]). It is pure: no files, no clock, no async. `cliq-fs` puts the formats on disk.
//!
//! * Every decoder takes any bytes and gives a value or an error that names the field; none panics.
//! * Unknown fields of envelopes, verdicts, checks and channel messages survive a rewrite.
//! * Numbers, texts and nesting come back as they went in.
//!
//! Start with [`Envelope::decode`], [`ChannelMessage::decode`], [`StreamDecoder`] and [`AgentMessage::decode`].

mod address;
mod changed;
mod channel;
mod check;
mod conversation;
mod duration;
mod envelope;
mod error;
mod fields;
mod form;
mod ids;
mod kind;
mod lenient;
mod limited;
mod mcp;
mod message;
mod name;
mod order;
mod parameters;
mod permissions;
mod prices;
mod reply;
mod review;
mod reviewers;
mod sandbox;
mod skills;
mod steering;
mod stream;
mod subject;
mod time;
mod tools;
mod trace;
mod transcript;
mod usage;
mod verdict;
mod violations;

pub use address::without_credentials;
pub use changed::ChangedLines;
pub use channel::{ChannelBody, ChannelMessage, DispatchType, NotifyRequest};
pub use check::{CommandEnd, CommandResult, HistoryEntry};
pub use conversation::{
    ConversationKind, ConversationMode, ConversationPartner, ConversationRecord, CountedTokens,
    PreviousActivation, PromptState, SentParts,
};
pub use duration::{format_duration, parse_duration};
pub use envelope::{Body, Envelope, GateData};
pub use error::{DecodeError, FieldError};
pub use form::{Form, FormField, FormFieldType};
pub use ids::{MAX_RUN_ID_LEN, RunId, RunIdError, TeamName, TeamNameError};
pub use kind::{EnvelopeType, PhaseKind};
pub use lenient::{
    MAX_JSON_VALUES, check_unique_keys, has_too_many_values, lenient_bytes, lenient_json, read_json,
};
pub use limited::Limited;
pub use mcp::{McpServerSpec, is_mcp_server_name};
pub use message::{
    AgentMessage, Dispatch, GateDispatch, Incoming, NotifyDetails, NotifyDispatch, Outgoing, PhaseDispatch,
    PhaseInfo, TeamDispatch, TestDispatch,
};
pub use name::{MAX_PHASE_NAME_LEN, NameError, PhaseName};
pub use order::{ChannelOrder, OrderState, OrderViolation};
pub use parameters::{Effort, ExtraBody, ModelParameters, Temperature};
pub use permissions::{PermissionDecision, PermissionRecord, PermissionRule, Permissions, ToolKind};
pub use prices::{Price, Prices};
pub use reply::ReplyKind;
pub use review::{REVIEW_TIMEOUT, ReviewSpec, WaitingReview};
pub use reviewers::{MAX_REVIEWER_LEN, Policy, Reviewers};
pub use sandbox::{HostPattern, Network, Profile, Sandbox};
pub use skills::SkillSelection;
pub use steering::{MAX_STEERING_MESSAGES, MAX_STEERING_TEXT, NewSteering, SteeringError, SteeringMessage};
pub use stream::{Line, LineFault, MAX_LINE_BYTES, StreamDecoder};
pub use subject::{AskAnswer, AskDispatch, AskFile, AskRecord, AskState, PEOPLE_VARIABLE, ReviewSubject};
pub use time::{Timestamp, TimestampError, WireTime};
pub use tools::{AgentTools, MCP_SEPARATOR, TOOL_NAMES};
pub use trace::{SpanId, TRACE_VARIABLE, TraceContext, TraceContextError, TraceId, tool_span};
pub use transcript::{
    FailedCall, FailedCallKind, Origin, ReplyUsage, Role, ToolCall, ToolResult, TranscriptBody,
    TranscriptEntry, TranscriptStart,
};
pub use usage::{Budget, Usage};
pub use verdict::{Outcome, Verdict, VerdictError};
pub use violations::{Violations, shorten};

/// The one version of every format in this crate.
pub const VERSION: u64 = 1;

/// A JSON object, as `serde_json` keeps it.
pub type Object = serde_json::Map<String, serde_json::Value>;

/// Runs the example of the README as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
