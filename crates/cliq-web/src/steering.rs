//! Documents of steering messages, and the check of a new one.

use cliq_model::Run;
use cliq_protocol::{NewSteering, PhaseName, SteeringMessage};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::caller::Caller;
use crate::problem::Problem;

/// Checks a message of a caller. Without an `id` the message gets one. A blank phase is none.
///
/// # Errors
/// Returns a problem if the text, the id or the name of the phase breaks a rule.
pub fn new_steering(
    caller: &Caller,
    id: Option<&str>,
    text: &str,
    phase: Option<&str>,
) -> Result<NewSteering, Problem> {
    let phase = phase.filter(|phase| !phase.is_empty()).map(PhaseName::parse).transpose();
    // No team has a phase of such a name.
    let phase = phase.map_err(|error| Problem::conflict(format!("cannot use the phase: {error}")))?;
    let id = id.map_or_else(|| Uuid::now_v7().to_string(), str::to_owned);
    let new = NewSteering::new(id, &caller.label, text, phase);
    new.map_err(|error| Problem::unprocessable("the message cannot be sent", vec![error.to_string()]))
}

/// Steering message of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SteeringDocument {
    /// Id of the message.
    pub id: String,
    /// Time at which the run received it, UTC.
    pub ts: String,
    /// Label of the caller's token, or name of the person.
    pub from: String,
    /// Text of the author.
    pub text: String,
    /// Phase that it is for, or `null` if it is for the whole run.
    #[serde(default)]
    pub phase: Option<String>,
    /// Deliveries, oldest first.
    #[serde(default)]
    pub delivered: Vec<DeliveryDocument>,
    /// Whether no activation has received it.
    #[serde(default)]
    pub pending: bool,
}

/// Delivery of a steering message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeliveryDocument {
    /// Phase that received it.
    pub phase: String,
    /// Number of the activation, 1-based.
    pub activation: u32,
    /// Time of the delivery, UTC.
    pub ts: String,
}

impl SteeringDocument {
    /// Returns the document of a message that no activation has received.
    #[must_use]
    pub fn pending(message: &SteeringMessage) -> Self {
        Self {
            id: message.id.clone(),
            ts: message.ts.to_string(),
            from: message.from.clone(),
            text: message.text.clone(),
            phase: message.phase.as_ref().map(ToString::to_string),
            delivered: Vec::new(),
            pending: true,
        }
    }

    /// Returns the messages of a run: those of its journal, then those that wait for its start.
    pub(crate) fn all(run: &Run, status: &Value) -> Vec<Self> {
        let recorded = status.get("steering").cloned().unwrap_or_default();
        let mut all: Vec<Self> = serde_json::from_value(recorded).unwrap_or_default();
        for message in &run.request.steering {
            if !all.iter().any(|known| known.id == message.id) {
                all.push(Self::pending(message));
            }
        }
        all
    }
}
