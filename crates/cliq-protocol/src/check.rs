//! Results of commands, and the history of verdicts that a gate's agent is shown.

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
