//! Script of a run: replies by phase, and the record of each activation. Pure.

use std::collections::BTreeMap;

use cliq_protocol::{Object, PhaseName};
use serde::{Deserialize, Serialize};

/// Replies of all phases.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Script {
    /// Replies of each phase, in the order of its activations. A phase that is not named has default replies.
    pub phases: BTreeMap<String, Vec<ScriptedReply>>,
}

/// Reply of one activation.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ScriptedReply {
    /// Index of the item, 0-based, of a phase with `for_each`. `None` for each item.
    pub item: Option<u32>,
    /// Text that is handed over.
    pub text: Option<String>,
    /// Data that is handed over. At a human gate, values of the inputs.
    pub data: Option<Object>,
    /// Files of the workspace with their contents. `None` removes the file.
    pub files: BTreeMap<String, Option<String>>,
    /// Verdict of a gate. Default: pass.
    pub verdict: Option<ScriptedOutcome>,
    /// Reason of the verdict.
    pub reason: Option<String>,
    /// Message of a failure: the activation fails with it.
    pub error: Option<String>,
}

/// Outcome of a scripted verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScriptedOutcome {
    /// The work passes.
    Pass,
    /// The work goes back to a phase.
    Route(String),
    /// A person is needed.
    Escalate,
}

/// Record of an activation of a scripted agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActivationRecord {
    /// Phase, or item of a phase as `PHASE.INDEX`.
    pub phase: PhaseName,
    /// Number of the activation, 1-based.
    pub activation: u32,
    /// Agent that the team names for the phase.
    pub agent: String,
    /// Prompt, as a model agent without tools would get it.
    pub prompt: String,
    /// Index of the reply in the script, 0-based. `None` for a default reply, and if the script has no more replies.
    pub reply: Option<usize>,
}

impl ActivationRecord {
    pub(super) fn file_name(&self) -> String {
        format!("{}-{}.json", self.phase, self.activation)
    }
}

/// Reply for an activation.
#[derive(Debug, PartialEq)]
pub(super) enum Choice<'a> {
    /// Scripted reply with its index.
    Reply(usize, &'a ScriptedReply),
    /// The script does not name the phase.
    Default,
    /// The phase has fewer replies than activations. Contains their number, in words.
    Exhausted(String),
}

/// Splits the name of an item into the name of its phase and its index.
#[must_use]
pub fn split_item(name: &str) -> (&str, Option<u32>) {
    match name.split_once('.') {
        Some((phase, index)) => (phase, index.parse().ok()),
        None => (name, None),
    }
}

impl Script {
    /// Returns the reply of an activation. Replies for an item go before those for each item.
    pub(super) fn choose(&self, name: &str, activation: u32) -> Choice<'_> {
        let (phase, item) = split_item(name);
        let replies = self.phases.get(phase).map_or(&[][..], Vec::as_slice);
        if replies.is_empty() {
            return Choice::Default;
        }
        let of = |item: Option<u32>| -> Vec<usize> {
            (0..replies.len()).filter(|index| replies[*index].item == item).collect()
        };
        let own = item.map(|item| of(Some(item))).filter(|own| !own.is_empty());
        let indexes = own.unwrap_or_else(|| of(None));
        let place = usize::try_from(activation.saturating_sub(1)).unwrap_or(usize::MAX);
        match indexes.get(place) {
            Some(index) => Choice::Reply(*index, &replies[*index]),
            None => Choice::Exhausted(match indexes.len() {
                0 => "none for it".to_owned(),
                1 => "1 reply".to_owned(),
                count => format!("{count} replies"),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(item: Option<u32>, text: &str) -> ScriptedReply {
        ScriptedReply { item, text: Some(text.to_owned()), ..ScriptedReply::default() }
    }

    #[test]
    fn replies_are_chosen_by_activation_and_item() {
        let replies = vec![reply(None, "each 1"), reply(Some(1), "second 1"), reply(Some(1), "second 2")];
        let script = Script { phases: [("work".to_owned(), replies)].into() };
        let index = |name: &str, activation| match script.choose(name, activation) {
            Choice::Reply(index, _) => Some(index),
            Choice::Default | Choice::Exhausted(_) => None,
        };
        assert_eq!(index("work.0", 1), Some(0));
        assert_eq!(index("work.1", 1), Some(1));
        assert_eq!(index("work.1", 2), Some(2));
        assert_eq!(index("work", 1), Some(0));
        assert_eq!(script.choose("work.0", 2), Choice::Exhausted("1 reply".to_owned()));
        assert_eq!(script.choose("work.1", 3), Choice::Exhausted("2 replies".to_owned()));
        assert_eq!(script.choose("other", 7), Choice::Default);
    }

    #[test]
    fn script_keeps_its_format() {
        let full = ScriptedReply {
            item: Some(2),
            text: Some("done".to_owned()),
            data: Some([("n".to_owned(), 1.into())].into_iter().collect()),
            files: [("a.md".to_owned(), Some("x".to_owned())), ("b".to_owned(), None)].into(),
            verdict: Some(ScriptedOutcome::Route("dev".to_owned())),
            reason: Some("short".to_owned()),
            error: None,
        };
        let script = Script { phases: [("gate".to_owned(), vec![full])].into() };
        let text = serde_json::to_string(&script).unwrap();
        insta::assert_snapshot!(text, @r#"{"phases":{"gate":[{"item":2,"text":"done","data":{"n":1},"files":{"a.md":"x","b":null},"verdict":{"route":"dev"},"reason":"short","error":null}]}}"#);
        assert_eq!(serde_json::from_str::<Script>(&text).unwrap(), script);
    }
}
