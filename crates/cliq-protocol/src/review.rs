//! The `review` block of a human gate (docs/reviews.md).

use std::time::Duration;

use serde_json::{Value, json};

use crate::duration::{format_duration, parse_duration};
use crate::fields::{Fields, describe};
use crate::form::Form;
use crate::reviewers::Reviewers;
use crate::{FieldError, PhaseName, WireTime};

/// Default deadline of a review.
pub const REVIEW_TIMEOUT: Duration = Duration::from_secs(24 * 3600);
/// The most patterns of artifacts.
const MAX_PATTERNS: usize = 100;

/// The `review` block of a human gate: who reviews what, and how long the run waits.
#[derive(Debug, Clone, PartialEq)]
pub struct ReviewSpec {
    /// Reviewers who must approve.
    pub reviewers: Reviewers,
    /// Artifacts for the reviewer: files, directories and globs relative to the workspace.
    pub artifacts: Vec<String>,
    /// Time until the deadline, from the creation of the review.
    pub timeout: Duration,
    /// Interval of reminders to reviewers who have not answered.
    pub remind_every: Option<Duration>,
    /// Form for the reviewer.
    pub inputs: Form,
}

impl ReviewSpec {
    /// Reads the block.
    ///
    /// # Errors
    /// Names the field that is missing or wrong.
    pub fn from_value(value: Value) -> Result<Self, FieldError> {
        let mut fields = Fields::new(value, "review")?;
        let reviewers =
            fields.required("reviewer", "a name, a list of names, or a group {policy, members}")?;
        let reviewers = Reviewers::from_value(reviewers, "review.reviewer")?;
        let artifacts = match fields.take("artifacts") {
            None => Vec::new(),
            Some(Value::String(one)) => vec![one],
            Some(Value::Array(items)) if items.len() <= MAX_PATTERNS => {
                let text = |item: Value| match item {
                    Value::String(text) if !text.trim().is_empty() => Ok(text),
                    other => Err(fields.wrong("artifacts", "a list of files and globs", &other)),
                };
                items.into_iter().map(text).collect::<Result<_, _>>()?
            }
            Some(other) => {
                return Err(fields.wrong(
                    "artifacts",
                    format!("a list of at most {MAX_PATTERNS} files and globs"),
                    &other,
                ));
            }
        };
        let timeout = duration(&mut fields, "timeout")?.unwrap_or(REVIEW_TIMEOUT);
        let remind_every = duration(&mut fields, "remind_every")?;
        let inputs = match fields.take("inputs") {
            Some(value) => Form::from_value(value, "review.inputs")?,
            None => Form::default(),
        };
        if let Some((name, found)) = fields.rest().into_iter().find(|(_, value)| !value.is_null()) {
            let expected = "only reviewer, artifacts, timeout, remind_every, inputs".to_owned();
            return Err(FieldError { field: format!("review.{name}"), expected, found: describe(&found) });
        }
        Ok(Self { reviewers, artifacts, timeout, remind_every, inputs })
    }

    /// As team.yml writes it.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut value =
            json!({"reviewer": self.reviewers.to_value(), "timeout": format_duration(self.timeout)});
        if !self.artifacts.is_empty() {
            value["artifacts"] = json!(self.artifacts);
        }
        if let Some(every) = self.remind_every {
            value["remind_every"] = json!(format_duration(every));
        }
        if !self.inputs.is_empty() {
            value["inputs"] = self.inputs.to_value();
        }
        value
    }
}

fn duration(fields: &mut Fields, name: &str) -> Result<Option<Duration>, FieldError> {
    let Some(text) = fields.optional_text(name)? else { return Ok(None) };
    let wrong = |why: String| {
        fields.wrong(name, format!("a duration such as 90s, 45m, 8h or 2d ({why})"), &text.clone().into())
    };
    parse_duration(&text).map(Some).map_err(wrong)
}

/// A review that a run waits for, as displays show it. It has no right to decide in it.
#[derive(Debug, Clone, PartialEq)]
pub struct WaitingReview {
    /// Id of the review.
    pub id: String,
    /// Reviewers who have not answered yet. Empty once the review is over, if the phase goes on with other work.
    pub reviewers: Vec<String>,
    /// When it was made.
    pub since: WireTime,
    /// When it expires.
    pub until: WireTime,
    /// Time of the next reminder, or of the expiry. Present once the agent has nothing to do before that: the run can be parked
    /// (docs/reviews.md).
    pub due: Option<WireTime>,
    /// Ids of other reviews of a team phase. With `due`, an answer to any of them ends the wait too.
    pub others: Vec<String>,
    /// Page for people who are signed in, or `None` if the run itself serves the page.
    pub page: Option<String>,
    /// Phases that may be asked to work again.
    pub route_targets: Vec<PhaseName>,
    /// Form for the reviewer.
    pub inputs: Form,
    /// Request of an agent at work, in a sentence. Absent for the review of a human gate.
    pub asks: Option<String>,
    /// Outcome of that request, once it has one.
    pub answer: Option<String>,
}

impl WaitingReview {
    pub(crate) fn read(value: Value) -> Result<Self, FieldError> {
        let mut fields = Fields::new(value, "review")?;
        Ok(Self {
            id: fields.text("id")?,
            reviewers: fields.list("reviewers", |item, path| match item {
                Value::String(name) => Ok(name),
                other => {
                    Err(FieldError { field: path, expected: "a name".to_owned(), found: describe(&other) })
                }
            })?,
            since: WireTime::from_text(fields.text("since")?),
            until: WireTime::from_text(fields.text("until")?),
            due: fields.optional_text("due")?.map(WireTime::from_text),
            others: match fields.take("others") {
                None => Vec::new(),
                Some(value) => serde_json::from_value(value.clone())
                    .map_err(|_| fields.wrong("others", "a list of ids", &value))?,
            },
            page: fields.optional_text("page")?,
            route_targets: match fields.take("route_targets") {
                None => Vec::new(),
                Some(value) => serde_json::from_value(value.clone())
                    .map_err(|_| fields.wrong("route_targets", "a list of phases", &value))?,
            },
            inputs: match fields.take("inputs") {
                None => Form::default(),
                Some(value) => Form::from_value(value, "review.inputs")?,
            },
            asks: fields.optional_text("asks")?,
            answer: fields.optional_text("answer")?,
        })
    }

    /// As it stands on the wire.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut value =
            json!({"id": self.id, "reviewers": self.reviewers, "since": self.since, "until": self.until});
        if let Some(due) = &self.due {
            value["due"] = json!(due);
        }
        if !self.others.is_empty() {
            value["others"] = json!(self.others);
        }
        if let Some(page) = &self.page {
            value["page"] = json!(page);
        }
        if !self.route_targets.is_empty() {
            value["route_targets"] = json!(self.route_targets);
        }
        if !self.inputs.is_empty() {
            value["inputs"] = self.inputs.to_value();
        }
        if let Some(asks) = &self.asks {
            value["asks"] = json!(asks);
        }
        if let Some(answer) = &self.answer {
            value["answer"] = json!(answer);
        }
        value
    }
}

impl serde::Serialize for WaitingReview {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_value().serialize(serializer)
    }
}

impl<'de> serde::Deserialize<'de> for WaitingReview {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::read(Value::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}
