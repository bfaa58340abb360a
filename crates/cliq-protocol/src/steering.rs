//! Steering: guidance for a run that has not ended (docs/steering.md).

use serde::{Deserialize, Serialize};

use crate::{PhaseName, WireTime};

/// Maximum number of steering messages of a run.
pub const MAX_STEERING_MESSAGES: usize = 200;
/// Maximum size of the text of a steering message in bytes.
pub const MAX_STEERING_TEXT: usize = 16 * 1024;
/// Maximum size of the id of a steering message in bytes.
const MAX_ID: usize = 128;
/// Maximum number of characters of an author's name.
const MAX_AUTHOR: usize = 200;

/// A steering message, as dispatch messages and steering files contain it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SteeringMessage {
    /// Id of the message. A run has one message of each id.
    pub id: String,
    /// Time at which the run received it.
    pub ts: WireTime,
    /// Author: the name of a person or the label of a token.
    pub from: String,
    /// Text of the author.
    pub text: String,
    /// Phase that it is for, or `None` if it is for the whole run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<PhaseName>,
}

impl SteeringMessage {
    /// Whether activations of `phase` receive it.
    #[must_use]
    pub fn is_for(&self, phase: &PhaseName) -> bool {
        // What is for a phase is for each of its items.
        self.phase.as_ref().is_none_or(|only| only == phase || only.as_str() == phase.whole())
    }
}

/// A steering message that is not sent yet. Within the limits of docs/steering.md by construction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NewSteering {
    id: String,
    from: String,
    text: String,
    phase: Option<PhaseName>,
}

/// Reason why a text is not a steering message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SteeringError {
    /// The text is blank.
    #[error("the text of a steering message cannot be empty")]
    Empty,
    /// The text is too long.
    #[error(
        "the text has {size} bytes; a steering message has at most {MAX_STEERING_TEXT}: put longer text into a file of the workspace and name the file"
    )]
    TooLong {
        /// Size of the text in bytes.
        size: usize,
    },
    /// The id cannot be used.
    #[error("the id must have 1 to {MAX_ID} visible ASCII characters")]
    Id,
}

impl NewSteering {
    /// Checks a message. Line ends become `\n`; blanks around the text are removed. An author's name is cut after 200 characters.
    ///
    /// # Errors
    /// Returns an error if the text is blank or longer than [`MAX_STEERING_TEXT`], or the id is not 1 to 128 visible ASCII characters.
    pub fn new(
        id: impl Into<String>,
        from: &str,
        text: &str,
        phase: Option<PhaseName>,
    ) -> Result<Self, SteeringError> {
        let id = id.into();
        if id.is_empty() || id.len() > MAX_ID || !id.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(SteeringError::Id);
        }
        let text = text.trim().replace("\r\n", "\n");
        if text.is_empty() {
            return Err(SteeringError::Empty);
        }
        if text.len() > MAX_STEERING_TEXT {
            return Err(SteeringError::TooLong { size: text.len() });
        }
        let from: String = from.split_whitespace().collect::<Vec<_>>().join(" ");
        let from: String = from.chars().filter(|c| !c.is_control()).take(MAX_AUTHOR).collect();
        let from = if from.is_empty() { "unknown".to_owned() } else { from };
        Ok(Self { id, from, text, phase })
    }

    /// Id of the message.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Phase that it is for, or `None` if it is for the whole run.
    #[must_use]
    pub fn phase(&self) -> Option<&PhaseName> {
        self.phase.as_ref()
    }

    /// Whether a sent message has the same text for the same phase: then it is this one, sent again.
    #[must_use]
    pub fn is_same_as(&self, sent: &SteeringMessage) -> bool {
        self.id == sent.id && self.text == sent.text && self.phase == sent.phase
    }

    /// Returns the message with the time of its receipt.
    #[must_use]
    pub fn received_at(self, ts: impl Into<WireTime>) -> SteeringMessage {
        let Self { id, from, text, phase } = self;
        SteeringMessage { id, ts: ts.into(), from, text, phase }
    }
}

impl SteeringMessage {
    /// Returns the message as it was before it was sent, if it is within the limits.
    ///
    /// # Errors
    /// As for [`NewSteering::new`].
    pub fn into_new(self) -> Result<NewSteering, SteeringError> {
        NewSteering::new(self.id, &self.from, &self.text, self.phase)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Timestamp;

    #[test]
    fn texts_outside_of_the_limits_are_refused() {
        let new = |id: &str, text: &str| NewSteering::new(id, "Ana", text, None);
        assert_eq!(new("1", " \n\t "), Err(SteeringError::Empty));
        assert!(new("1", &"é".repeat(MAX_STEERING_TEXT / 2)).is_ok());
        let size = MAX_STEERING_TEXT + 2;
        assert_eq!(new("1", &"é".repeat(size / 2)), Err(SteeringError::TooLong { size }));
        for id in ["", "a b", "é", "a\n", &"a".repeat(129)] {
            assert_eq!(new(id, "x"), Err(SteeringError::Id), "{id:?}");
        }
        assert!(new(&"a".repeat(128), "x").is_ok());
    }

    #[test]
    fn authors_are_one_line_of_text() {
        let from = |from: &str| {
            let new = NewSteering::new("1", from, "x", None).expect("a message");
            new.received_at(Timestamp::from_unix_millis(0)).from
        };
        assert_eq!(from(" Ana\n  Lima\u{1b}[31m "), "Ana Lima[31m");
        assert_eq!(from("\u{7}"), "unknown");
        assert_eq!(from(&"x".repeat(300)).len(), 200);
    }

    #[test]
    fn only_the_named_phase_receives_a_message_with_a_phase() {
        let (a, b): (PhaseName, PhaseName) = ("a".parse().expect("a"), "b".parse().expect("b"));
        let message = |phase| {
            NewSteering::new("1", "Ana", " x\r\ny ", phase)
                .expect("a message")
                .received_at(Timestamp::from_unix_millis(0))
        };
        let (all, only) = (message(None), message(Some(a.clone())));
        assert!(all.is_for(&a) && all.is_for(&b) && only.is_for(&a) && !only.is_for(&b));
        assert_eq!(all.text, "x\ny");
        let again = only.clone().into_new().expect("a message");
        assert!(again.is_same_as(&only) && !again.is_same_as(&all));
        assert!(!again.is_same_as(&SteeringMessage { id: "2".into(), ..only.clone() }));
        assert!(!again.is_same_as(&SteeringMessage { text: "2".into(), ..only }));
    }
}
