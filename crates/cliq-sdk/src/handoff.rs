//! Handoffs between agents.

use cliq_protocol::{Envelope, Limited, Object, PhaseName};
use serde_json::Value;

/// Something to hand over: a text for people and models, data for programs, or both.
///
/// ```
/// use cliq_sdk::Handoff;
/// use serde_json::json;
///
/// let handoff = Handoff::text("Two files have no tests.").with_data(json!({ "files": ["a.rs", "b.rs"] }));
/// assert_ne!(handoff, Handoff::text("Two files have no tests."));
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Handoff {
    pub(crate) text: Option<String>,
    pub(crate) data: Option<Object>,
    pub(crate) limited: Option<Limited>,
}

impl Handoff {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: Some(text.into()), ..Self::default() }
    }

    /// Data. A value that is not an object is wrapped as `{"value": …}`, because `data` is an object on the wire.
    #[must_use]
    pub fn data(value: Value) -> Self {
        Self::default().with_data(value)
    }

    /// The same with data.
    #[must_use]
    pub fn with_data(mut self, value: Value) -> Self {
        self.data = Some(match value {
            Value::Object(map) => map,
            other => Object::from_iter([("value".to_owned(), other)]),
        });
        self
    }

    /// The same with a text.
    #[must_use]
    pub fn with_text(mut self, text: impl Into<String>) -> Self {
        self.text = Some(text.into());
        self
    }

    /// Returns the handoff, marked as partial: a limit ended the work. Send it before the handler returns [`crate::LimitReached`].
    #[must_use]
    pub fn with_limited(mut self, limited: Limited) -> Self {
        self.limited = Some(limited);
        self
    }
}

/// A channel to this phase, and what was in it when the agent started.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ReceivedHandoff {
    /// Phase that writes the handoff.
    pub from: PhaseName,
    /// The handoff; `None` if there is none yet.
    pub envelope: Option<Envelope>,
    /// Guidance for this handoff.
    pub instructions: Option<String>,
}
