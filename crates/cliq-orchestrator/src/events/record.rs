//! An event with its time, and its line in a journal.

use cliq_protocol::{SteeringMessage, WireTime};
use serde_json::Value;

use super::RunEvent;

/// An event and its time.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Record {
    /// Time at which it was seen.
    pub ts: WireTime,
    /// Event.
    pub event: RunEvent,
}

impl Record {
    /// Returns a record of an event at a time.
    #[must_use]
    pub fn new(ts: impl Into<WireTime>, event: RunEvent) -> Self {
        Self { ts: ts.into(), event }
    }

    /// The record as one line of JSON with its newline.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut value = serde_json::to_value(&self.event).unwrap_or_default();
        if let Some(map) = value.as_object_mut() {
            map.insert("ts".into(), self.ts.to_string().into());
        }
        let mut line = serde_json::to_vec(&value).unwrap_or_default();
        line.push(b'\n');
        line
    }

    /// Returns the steering message whose receipt this is.
    #[must_use]
    pub fn steering(&self) -> Option<SteeringMessage> {
        let RunEvent::SteeringReceived { id, from, text, phase } = &self.event else { return None };
        Some(SteeringMessage {
            id: id.clone(),
            ts: self.ts.clone(),
            from: from.clone(),
            text: text.clone(),
            phase: phase.clone(),
        })
    }

    /// Reads a line.
    ///
    /// # Errors
    /// Returns an error if the line is not JSON, or an event that this version does not know.
    pub fn decode(line: &[u8]) -> Result<Self, serde_json::Error> {
        use serde::de::Error;
        let mut value: Value = serde_json::from_slice(line)?;
        let ts = value.as_object_mut().and_then(|map| map.remove("ts"));
        let Some(Value::String(ts)) = ts else { return Err(serde_json::Error::custom("it has no `ts`")) };
        Ok(Self { ts: WireTime::from_text(ts), event: serde_json::from_value(value)? })
    }
}
