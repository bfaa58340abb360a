//! Signals: what comes in, checked once, and what the queue knows of it.

use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::kind::SignalType;

/// The longest payload, in bytes.
pub const MAX_PAYLOAD: usize = 1024 * 1024;
/// The longest name of a plan, in bytes.
const MAX_PLAN: usize = 128;

/// The name of a plan: letters, digits, `.`, `_` and `-`, beginning with a letter or a digit, without the ending `.md`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct PlanName(String);

impl PlanName {
    /// Reads a name; one that ends in `.md` is a file's, and the plan is named without it.
    ///
    /// # Errors
    /// Returns the reason if the text is not the name of a plan.
    pub fn parse(text: &str) -> Result<Self, String> {
        let name = text.strip_suffix(".md").unwrap_or(text);
        let fine = name.len() <= MAX_PLAN
            && name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
            && !name.contains("..");
        if fine {
            return Ok(Self(name.to_owned()));
        }
        Err(format!(
            "{text:?} is not a valid plan name: a letter or digit, then letters, digits, `.`, `_`, `-`, at most {MAX_PLAN} in all"
        ))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PlanName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// A signal that may go into the queue: right by construction, whichever way it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSignal {
    kind: SignalType,
    plan: PlanName,
    payload: Map<String, Value>,
}

impl NewSignal {
    /// Checks a signal as people and programs write it (docs/signals.md). The payload is a JSON object, or free text,
    /// which becomes `{"body": text}`; empty is none.
    ///
    /// # Errors
    /// Everything that is wrong with it, each with its remedy.
    pub fn parse(kind: &str, plan: &str, payload: &str) -> Result<Self, RejectedSignal> {
        let (kind, plan) = (SignalType::parse(kind), PlanName::parse(plan));
        match (kind, plan) {
            (Ok(kind), Ok(plan)) => Self::new(kind, plan, payload),
            (kind, plan) => {
                Err(RejectedSignal { problems: [kind.err(), plan.err()].into_iter().flatten().collect() })
            }
        }
    }

    /// As [`Self::parse`], for a type and a plan that are known to be right.
    ///
    /// # Errors
    /// The payload is not what the type takes.
    pub fn new(kind: SignalType, plan: PlanName, payload: &str) -> Result<Self, RejectedSignal> {
        let refused = |problem: String| RejectedSignal { problems: vec![problem] };
        if payload.len() > MAX_PAYLOAD {
            return Err(refused(format!("the payload has {} bytes, more than {MAX_PAYLOAD}", payload.len())));
        }
        if payload.contains('\0') {
            return Err(refused("the payload holds a zero byte".to_owned()));
        }
        let payload = fields(payload);
        let whole = |key: &str| {
            let number =
                payload.get(key).and_then(Value::as_u64).filter(|n| (1..=u64::from(u32::MAX)).contains(n));
            number
                .is_none()
                .then(|| format!("{kind} needs `{key}`, a whole number from 1 on, in its payload"))
        };
        let problems: Vec<String> = match kind {
            SignalType::ImplementWave => whole("wave_number").into_iter().collect(),
            SignalType::ImplementTaskFinished => {
                [whole("wave_number"), whole("task_number")].into_iter().flatten().collect()
            }
            SignalType::ElaboratorFinished if !payload.is_empty() => vec![format!("{kind} takes no payload")],
            SignalType::PlannerDraftFinished => {
                let id = payload.get("planner_id").is_some_and(|id| match id {
                    Value::String(id) => !id.is_empty(),
                    id => id.is_u64(),
                });
                (!id).then(|| format!("{kind} needs `planner_id` in its payload")).into_iter().collect()
            }
            _ => Vec::new(),
        };
        if problems.is_empty() { Ok(Self { kind, plan, payload }) } else { Err(RejectedSignal { problems }) }
    }

    /// Type of the signal.
    #[must_use]
    pub fn kind(&self) -> SignalType {
        self.kind
    }

    /// The plan that it is about.
    #[must_use]
    pub fn plan(&self) -> &PlanName {
        &self.plan
    }

    /// Payload of the signal.
    #[must_use]
    pub fn payload(&self) -> &Map<String, Value> {
        &self.payload
    }

    /// The payload as it is stored: empty if there is none.
    #[must_use]
    pub fn payload_text(&self) -> String {
        if self.payload.is_empty() { String::new() } else { json!(self.payload).to_string() }
    }
}

/// A payload as it is written: a JSON object, or free text, which becomes `{"body": text}`; empty is none.
pub(crate) fn fields(payload: &str) -> Map<String, Value> {
    match cliq_protocol::lenient_json(payload.as_bytes()) {
        Ok(Value::Object(object)) => object,
        _ if payload.trim().is_empty() => Map::new(),
        _ => Map::from_iter([("body".to_owned(), Value::from(payload.trim_end()))]),
    }
}

/// Reason why a signal may not go into the queue. One line per problem.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", problems.join("\n"))]
#[non_exhaustive]
pub struct RejectedSignal {
    /// The problems, each with its remedy.
    pub problems: Vec<String>,
}

/// Status of a signal (docs/signals.md).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SignalStatus {
    /// Waits to be claimed.
    Pending,
    /// A worker has it.
    Processing,
    /// The signal was processed.
    Done,
    /// The signal was rejected, or its processing failed. The result contains the reason.
    Failed,
}

impl SignalStatus {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Pending, Self::Processing, Self::Done, Self::Failed];

    /// The word in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Processing => "processing",
            Self::Done => "done",
            Self::Failed => "failed",
        }
    }

    /// Reads the word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }
}

impl fmt::Display for SignalStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A row of the queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Signal {
    /// Number in the order of emission.
    pub id: i64,
    /// The project that it belongs to.
    pub project: String,
    /// The plan that it is about.
    #[serde(rename = "plan")]
    pub plan: String,
    /// Name of the type in the queue.
    #[serde(rename = "type")]
    pub kind: String,
    /// Payload: a JSON object, or empty.
    #[serde(serialize_with = "as_json")]
    pub payload: String,
    /// Status of the signal.
    pub status: SignalStatus,
    /// Time of emission, UTC.
    pub created_at: String,
    /// The worker that claimed it; empty where none has.
    pub claimed_by: String,
    /// Since when.
    pub claimed_at: String,
    /// Time at which it was done or failed.
    pub processed_at: String,
    /// Result of the processing.
    pub result: String,
}

fn as_json<S: serde::Serializer>(payload: &str, serializer: S) -> Result<S::Ok, S::Error> {
    match serde_json::from_str::<Value>(payload) {
        Ok(value) => value.serialize(serializer),
        Err(_) if payload.is_empty() => serializer.serialize_none(),
        Err(_) => payload.serialize(serializer),
    }
}

impl Signal {
    /// The payload as an object; empty if there is none.
    #[must_use]
    pub fn payload(&self) -> Map<String, Value> {
        serde_json::from_str(&self.payload).unwrap_or_default()
    }
}

/// A claim on a signal: a lease. Its holder may finish the signal once, as long as no other worker has claimed it since.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    id: i64,
    /// Holder of the claim, with a part that makes the claim unique.
    holder: String,
}

impl Claim {
    /// A claim as a store makes it. `holder` is unlike that of any other claim.
    #[must_use]
    pub fn new(signal: i64, holder: String) -> Self {
        Self { id: signal, holder }
    }

    /// The signal.
    #[must_use]
    pub fn signal(&self) -> i64 {
        self.id
    }

    /// Returns the holder of the claim, with a part that makes the claim unique.
    #[must_use]
    pub fn holder(&self) -> &str {
        &self.holder
    }
}
