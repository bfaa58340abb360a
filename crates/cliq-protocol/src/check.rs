//! Results of commands, and the history of verdicts that a gate's agent is shown.
// A new outcome has to be handled by name.
#![deny(clippy::wildcard_enum_match_arm)]

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::fields::Fields;
use crate::{FieldError, Object, Verdict};

/// Result of one command of a gate, human gate or exec phase.
///
/// `name` and `pass` are always there; the rest stands in `<phase>_command_results.json` and may be missing in the
/// `checks` of an envelope (docs/protocol.md).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CommandResult {
    /// The command's name in `team.yml`.
    pub name: String,
    /// Exit status 0, or skipped.
    pub pass: bool,
    /// The script that ran.
    pub run: Option<String>,
    /// Exit code, or `None` if the command was skipped, killed by a signal or timed out.
    pub exit_code: Option<i64>,
    /// Duration in milliseconds.
    pub duration_ms: Option<u64>,
    /// Whether its `if` said no.
    pub skipped: Option<bool>,
    /// The last 4 KiB of what it printed.
    pub output_tail: Option<String>,
    /// The file that holds all it printed, relative to `.cliq/`. Absent where it printed nothing.
    pub log_file: Option<String>,
    /// Fields that this version does not know.
    pub extra: Object,
}

/// End of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandEnd<'a> {
    /// Exit status 0.
    Passed,
    /// Not run, as its condition did not hold.
    Skipped,
    /// Exit status other than 0.
    Failed(i64),
    /// Number of the signal that ended the command.
    Killed(i64),
    /// End by the timeout of the command itself, with the sentence that has the limit.
    TimedOut(&'a str),
    /// Reason why the command could not be started.
    NotStarted(&'a str),
    /// Failure without a reason in the record.
    Unclear,
}

impl CommandEnd<'_> {
    /// Describes the end of the command with this label in a sentence without a full stop.
    #[must_use]
    pub fn sentence(self, label: &str) -> String {
        match self {
            Self::Passed => format!("command `{label}` passed"),
            Self::Skipped => format!("command `{label}` was skipped"),
            Self::Failed(code) => format!("command `{label}` failed with exit status {code}"),
            Self::Killed(signal) => format!("command `{label}` was ended by signal {signal}"),
            Self::TimedOut("") => format!("command `{label}` did not end in time"),
            Self::TimedOut(sentence) => sentence.to_owned(),
            Self::NotStarted("") => format!("command `{label}` could not be started"),
            Self::NotStarted(why) => format!("command `{label}` could not be started: {why}"),
            Self::Unclear => format!("command `{label}` failed"),
        }
    }
}

impl CommandResult {
    /// A result with no more than a name and an outcome.
    #[must_use]
    pub fn new(name: impl Into<String>, pass: bool) -> Self {
        Self { name: name.into(), pass, ..Self::default() }
    }

    /// Returns the label for people: the name, and the repository if the command runs in several.
    #[must_use]
    pub fn label(&self) -> String {
        match self.extra.get("repo").and_then(Value::as_str) {
            Some(repo) => format!("{} in {repo}", self.name),
            None => self.name.clone(),
        }
    }

    /// Reads a result from a JSON value.
    ///
    /// # Errors
    /// Names the field that is missing or wrong.
    pub fn from_value(value: Value) -> Result<Self, FieldError> {
        Self::read(value, String::new())
    }

    pub(crate) fn read(value: Value, path: String) -> Result<Self, FieldError> {
        let mut fields = Fields::new(value, path)?;
        Ok(Self {
            name: fields.text("name")?,
            pass: fields.flag("pass")?,
            run: fields.optional_text("run")?,
            exit_code: fields.optional_integer("exit_code")?,
            duration_ms: fields.optional_count("duration_ms")?,
            skipped: fields.optional_bool("skipped")?,
            output_tail: fields.optional_text("output_tail")?,
            log_file: fields.optional_text("log_file")?,
            extra: fields.rest(),
        })
    }

    /// The result as a JSON object; absent fields are left out.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut map = self.extra.clone();
        let mut put = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                map.insert(key.to_owned(), value);
            }
        };
        put("name", Some(self.name.as_str().into()));
        put("pass", Some(self.pass.into()));
        put("run", self.run.as_deref().map(Into::into));
        put("exit_code", self.exit_code.map(Into::into));
        put("duration_ms", self.duration_ms.map(Into::into));
        put("skipped", self.skipped.map(Into::into));
        put("output_tail", self.output_tail.as_deref().map(Into::into));
        put("log_file", self.log_file.as_deref().map(Into::into));
        Value::Object(map)
    }

    /// Returns the end of the command.
    #[must_use]
    pub fn end(&self) -> CommandEnd<'_> {
        let is_set = |key: &str| self.extra.get(key).is_some_and(|value| *value == Value::Bool(true));
        let reason = self.output_tail.as_deref().unwrap_or_default();
        let signal = self.extra.get("signal").and_then(Value::as_i64);
        match (self.pass, self.exit_code, signal) {
            _ if self.was_skipped() => CommandEnd::Skipped,
            (true, ..) => CommandEnd::Passed,
            _ if is_set("not_started") => CommandEnd::NotStarted(reason),
            _ if is_set("timed_out") => CommandEnd::TimedOut(reason),
            (false, Some(code), _) => CommandEnd::Failed(code),
            (false, None, Some(signal)) => CommandEnd::Killed(signal),
            (false, None, None) => CommandEnd::Unclear,
        }
    }

    /// Whether the command was skipped.
    #[must_use]
    pub fn was_skipped(&self) -> bool {
        self.skipped == Some(true)
    }
}

/// One evaluation of a gate: what its commands said and what it decided (docs/protocol.md).
#[derive(Debug, Clone, PartialEq)]
pub struct HistoryEntry {
    /// Number of the evaluation, 1-based.
    pub iteration: u32,
    /// Verdict of the gate.
    pub verdict: Verdict,
    /// Results of the commands.
    pub checks: Vec<CommandResult>,
}

impl HistoryEntry {
    fn read(value: Value) -> Result<Self, FieldError> {
        let mut fields = Fields::new(value, "history")?;
        Ok(Self {
            iteration: fields.iteration("iteration")?,
            verdict: Verdict::read(fields.required("verdict", "a verdict")?, fields.path_of("verdict"))?,
            checks: fields.list("checks", CommandResult::read)?,
        })
    }

    fn to_value(&self) -> Value {
        serde_json::json!({
            "iteration": self.iteration,
            "verdict": self.verdict.to_value(),
            "checks": self.checks.iter().map(CommandResult::to_value).collect::<Vec<_>>(),
        })
    }
}

macro_rules! serde_by_value {
    ($($type:ty => $read:path),*) => {$(
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                self.to_value().serialize(serializer)
            }
        }
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $read(Value::deserialize(deserializer)?).map_err(serde::de::Error::custom)
            }
        }
    )*};
}
serde_by_value!(CommandResult => CommandResult::from_value, HistoryEntry => HistoryEntry::read);

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_end_of_a_command_has_a_sentence_of_its_own() {
        for (fields, end, sentence) in [
            (json!({"pass": true, "exit_code": 0}), CommandEnd::Passed, "command `x` passed"),
            (json!({"pass": true, "skipped": true}), CommandEnd::Skipped, "command `x` was skipped"),
            (
                json!({"pass": false, "exit_code": 7}),
                CommandEnd::Failed(7),
                "command `x` failed with exit status 7",
            ),
            (json!({"pass": false, "signal": 9}), CommandEnd::Killed(9), "command `x` was ended by signal 9"),
            (
                json!({"pass": false, "timed_out": true, "output_tail": "command `x` did not end within 1 s"}),
                CommandEnd::TimedOut("command `x` did not end within 1 s"),
                "command `x` did not end within 1 s",
            ),
            (
                json!({"pass": false, "not_started": true, "output_tail": "no directory"}),
                CommandEnd::NotStarted("no directory"),
                "command `x` could not be started: no directory",
            ),
            (json!({"pass": false}), CommandEnd::Unclear, "command `x` failed"),
        ] {
            let mut value = fields.clone();
            value["name"] = "x".into();
            let result = CommandResult::from_value(value).expect("a result");
            assert_eq!((result.end(), result.end().sentence("x").as_str()), (end, sentence), "{fields}");
        }
    }
}
