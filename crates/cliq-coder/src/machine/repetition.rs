//! Detection of replies that repeat themselves. Pure.

use cliq_protocol::{Object, ToolCall, ToolResult};

use crate::outcome::Repeated;

/// Number of equal replies in a row that ends a loop.
pub const REPETITIONS: u32 = 5;

/// Content of a reply that is compared with the next one.
#[derive(Debug, Clone, PartialEq)]
enum Round {
    Text(String),
    /// Calls with their results. Texts beside them may differ: models comment on what they do.
    Calls(Vec<Call>),
}

/// Call with its result.
#[derive(Debug, Clone, PartialEq)]
struct Call {
    id: String,
    name: String,
    arguments: Object,
    invalid: Option<String>,
    result: Option<CallResult>,
}

/// Result of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CallResult {
    is_error: bool,
    text: String,
}

impl Call {
    fn is_like(&self, other: &Self) -> bool {
        // Each call has an id of its own.
        self.name == other.name
            && self.arguments == other.arguments
            && self.invalid == other.invalid
            && self.result == other.result
    }
}

impl Round {
    fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Text(own), Self::Text(other)) => own == other,
            (Self::Calls(own), Self::Calls(other)) => {
                own.len() == other.len() && own.iter().zip(other).all(|(own, other)| own.is_like(other))
            }
            (Self::Text(_), Self::Calls(_)) | (Self::Calls(_), Self::Text(_)) => false,
        }
    }

    /// Number of equal calls, if all of them are equal. Several such calls in one reply count as several replies.
    fn weight(&self) -> u32 {
        match self {
            Self::Calls(calls) if calls.windows(2).all(|pair| pair[0].is_like(&pair[1])) => {
                u32::try_from(calls.len()).unwrap_or(u32::MAX)
            }
            Self::Text(_) | Self::Calls(_) => 1,
        }
    }

    fn repeated(&self) -> Repeated {
        match self {
            Self::Text(_) => Repeated::Text,
            Self::Calls(calls) => {
                let mut tools: Vec<String> = calls.iter().map(|call| call.name.clone()).collect();
                tools.dedup();
                Repeated::Calls { tools }
            }
        }
    }
}

/// The last replies, as far as they are equal.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Repetition {
    last: Option<Round>,
    times: u32,
    /// Calls whose results are not complete.
    open: Vec<Call>,
}

impl Repetition {
    /// Takes a reply without calls.
    pub(super) fn text(&mut self, text: &str) -> Option<Repeated> {
        self.round(Round::Text(text.trim().to_owned()))
    }

    /// Takes the calls of a reply. Their results follow.
    pub(super) fn calls(&mut self, calls: &[ToolCall]) {
        let open = |call: &ToolCall| Call {
            id: call.id.clone(),
            name: call.name.clone(),
            arguments: call.arguments.clone(),
            invalid: call.invalid.clone(),
            result: None,
        };
        self.open = calls.iter().map(open).collect();
    }

    /// Takes the result of a call.
    pub(super) fn result(&mut self, result: &ToolResult) -> Option<Repeated> {
        let call = self.open.iter_mut().find(|call| call.id == result.id && call.result.is_none())?;
        call.result = Some(CallResult { is_error: result.is_error, text: result.text.clone() });
        if self.open.iter().any(|call| call.result.is_none()) {
            return None;
        }
        let calls = std::mem::take(&mut self.open);
        self.round(Round::Calls(calls))
    }

    fn round(&mut self, round: Round) -> Option<Repeated> {
        let weight = round.weight();
        if self.last.as_ref().is_some_and(|last| last.is_like(&round)) {
            self.times = self.times.saturating_add(weight);
        } else {
            self.times = weight;
            self.last = Some(round);
        }
        (self.times >= REPETITIONS).then(|| self.last.as_ref().map(Round::repeated))?
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(id: u32, name: &str, path: &str) -> ToolCall {
        let arguments = json!({ "path": path }).as_object().cloned().unwrap_or_default();
        ToolCall { id: id.to_string(), name: name.into(), arguments, invalid: None, provider_data: None }
    }

    fn result(id: u32, text: &str) -> ToolResult {
        ToolResult::new(id.to_string(), Err(text.into()))
    }

    /// Number of the reply that is noticed.
    fn noticed(rounds: &[(&str, &str, &str)]) -> Option<usize> {
        let mut repetition = Repetition::default();
        rounds.iter().zip(0..).position(|((name, path, text), id)| {
            repetition.calls(&[call(id, name, path)]);
            repetition.result(&result(id, text)).is_some()
        })
    }

    #[test]
    fn equal_calls_with_equal_results_are_noticed_at_the_fifth() {
        let same = ("edit_file", "a", "`old` does not occur");
        assert_eq!(noticed(&[same; 11]), Some(4));
        assert_eq!(noticed(&[same; 4]), None);
        for other in [("edit_file", "b", same.2), ("read_file", "a", same.2), ("edit_file", "a", "done")] {
            let rounds = [same, same, same, same, other, same, same, same, same];
            assert_eq!(noticed(&rounds), None, "{other:?}");
            let again = [&rounds[..], &[same]].concat();
            assert_eq!(noticed(&again), Some(9), "{other:?}");
        }
    }

    #[test]
    fn equal_calls_of_one_reply_count_each() {
        let mut repetition = Repetition::default();
        repetition.calls(&[0, 1, 2, 3, 4].map(|id| call(id, "search", "a")));
        // Results come in any order.
        let noticed = [4, 2, 0, 1, 3].map(|id| repetition.result(&result(id, "nothing")));
        let tools = vec!["search".to_owned()];
        assert_eq!(noticed, [None, None, None, None, Some(Repeated::Calls { tools })]);
        let mut others = Repetition::default();
        others.calls(&[call(0, "search", "a"), call(1, "search", "b")]);
        assert_eq!([0, 1].map(|id| others.result(&result(id, "nothing"))), [None, None]);
        assert_eq!(others.times, 1);
    }

    #[test]
    fn equal_texts_are_noticed_and_others_are_not() {
        let mut repetition = Repetition::default();
        let noticed = ["a", "a ", "b", "b", "b", "b", "b"].map(|text| repetition.text(text).is_some());
        assert_eq!(noticed, [false, false, false, false, false, false, true]);
    }
}
