//! Structure of an answer: the verdict of a gate, or the data that a phase declares. The tool by which a model gives it, the schema of
//! a reply that is forced to have it, and the check of what came. Pure.

use cliq_coder::tools::{self, ToolSpec};
use cliq_protocol::{Object, shorten};
use cliq_sdk::{Outcome, PhaseName, Verdict};
use serde_json::{Value, json};

use super::outputs::Outputs;

/// Maximum number of characters of the texts of a verdict, where a server enforces it.
const MAX_FINDINGS: usize = 1_900;
const MAX_REASON: usize = 200;

/// Structure of an answer.
pub(crate) enum Structure {
    /// A verdict.
    Verdict {
        /// Phases that it may route to.
        targets: Vec<PhaseName>,
        /// Whether its texts have a maximum length. Small models write without end if nothing stops them; vendors refuse such schemas.
        is_bounded: bool,
    },
    /// A text, with data of a schema.
    Outputs {
        /// Schema of the data.
        outputs: Outputs,
        /// As for a verdict.
        is_bounded: bool,
    },
}

impl Structure {
    /// Tool by which a model gives its answer.
    pub(crate) fn tool(&self) -> ToolSpec {
        match self {
            Self::Verdict { .. } => ToolSpec {
                name: tools::GIVE_VERDICT.to_owned(),
                description: "Gives your verdict and ends your work. Call it once, alone, when you have judged the work.".to_owned(),
                schema: self.schema(),
            },
            Self::Outputs { .. } => ToolSpec {
                name: tools::HAND_OVER.to_owned(),
                description: "Hands over your result and ends your work. Call it once, alone, when everything is done.".to_owned(),
                schema: self.schema(),
            },
        }
    }

    /// Name of the schema of a reply.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Verdict { .. } => "verdict",
            Self::Outputs { .. } => "handoff",
        }
    }

    /// Names of the fields of the answer, for the model.
    pub(crate) fn fields(&self) -> &'static str {
        match self {
            Self::Verdict { targets, .. } if targets.is_empty() => "`findings`, `reason` and `outcome`",
            Self::Verdict { .. } => "`findings`, `reason`, `target` and `outcome`",
            Self::Outputs { .. } => "`data` and `text`",
        }
    }

    /// Whether the schema has the form that providers can enforce to the letter.
    pub(crate) fn is_strict(&self) -> bool {
        match self {
            Self::Verdict { targets, is_bounded } => !is_bounded || targets.is_empty(),
            Self::Outputs { .. } => false,
        }
    }

    /// Schema of the answer: an object. Providers write its fields in this order.
    pub(crate) fn schema(&self) -> Value {
        match self {
            Self::Verdict { targets, is_bounded } => {
                let mut outcomes = vec!["PASS", "ESCALATE"];
                let mut properties = json!({
                    "findings": {"type": "string", "description": "What you found. The phase that mends it reads this: name files and lines."},
                    "reason": {"type": "string", "description": "The reason of the verdict, in a sentence."},
                });
                if *is_bounded {
                    properties["findings"]["maxLength"] = MAX_FINDINGS.into();
                    properties["reason"]["maxLength"] = MAX_REASON.into();
                }
                let mut required = vec!["findings", "outcome", "reason"];
                if !targets.is_empty() {
                    outcomes.insert(1, "ROUTE");
                    let mut names: Vec<Value> = targets.iter().map(|name| name.as_str().into()).collect();
                    names.push(Value::Null);
                    properties["target"] = json!({
                        "type": ["string", "null"], "enum": names, "description": "The phase to route to. Null unless the outcome is ROUTE.",
                    });
                    required.push("target");
                }
                properties["outcome"] = json!({
                    "type": "string", "enum": outcomes,
                    "description": "PASS: the work is good. ROUTE: it has to be mended by the target. ESCALATE: a person has to decide.",
                });
                json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
            }
            Self::Outputs { outputs, is_bounded } => {
                let about = "What you did or found, in Markdown, for those who work after you.";
                let mut text = json!({"type": "string", "description": about});
                if *is_bounded {
                    text["maxLength"] = MAX_FINDINGS.into();
                }
                json!({
                    "type": "object",
                    "properties": {"data": outputs.schema(), "text": text},
                    "required": ["data", "text"],
                    "additionalProperties": false,
                })
            }
        }
    }

    /// Schema of a reply. Small models name a target beside a PASS if they can: for them each outcome has a schema of its own, which vendors refuse.
    pub(crate) fn reply_schema(&self) -> Value {
        let schema = self.schema();
        let Self::Verdict { is_bounded: true, targets } = self else { return schema };
        if targets.is_empty() {
            return schema;
        }
        let of_outcome = |outcome: &str| {
            let mut own = schema.clone();
            own["properties"]["outcome"]["enum"] = json!([outcome]);
            if outcome == "ROUTE" {
                let names: Vec<&str> = targets.iter().map(PhaseName::as_str).collect();
                own["properties"]["target"] = json!({"type": "string", "enum": names});
            } else {
                own["properties"].as_object_mut().map(|properties| properties.remove("target"));
                if let Some(required) = own["required"].as_array_mut() {
                    required.retain(|name| name != "target");
                }
            }
            own
        };
        let outcomes: Vec<Value> = ["PASS", "ROUTE", "ESCALATE"].map(of_outcome).into();
        json!({ "anyOf": outcomes })
    }

    /// Returns the answer that an object of the schema is, in the form that is read from texts.
    ///
    /// # Errors
    /// Returns the reason why the object is not an answer, for the model.
    pub(crate) fn answer(&self, object: &Object) -> Result<String, String> {
        match self {
            Self::Verdict { targets, .. } => {
                let verdict = verdict(object, targets)?;
                Ok(format!("```json\n{:#}\n```\n", verdict.to_value()))
            }
            Self::Outputs { outputs, .. } => {
                // Models leave out the object around the data.
                let data = match object.get("data") {
                    Some(Value::Object(data)) => data.clone(),
                    _ => object
                        .iter()
                        .filter(|(name, _)| *name != "text")
                        .map(|(k, v)| (k.clone(), v.clone()))
                        .collect(),
                };
                outputs.check(Some(&data))?;
                let text = object.get("text").and_then(Value::as_str).unwrap_or_default();
                Ok(format!("{}\n\n```json\n{:#}\n```\n", text.trim_end(), Value::Object(data)))
            }
        }
    }

    /// Returns the answer that a whole text is, if the text is an object of the schema.
    pub(crate) fn answer_of_text(&self, text: &str) -> Option<String> {
        let text = super::thoughts::split(text).text;
        let Ok(Value::Object(object)) = serde_json::from_str(text.trim()) else { return None };
        self.answer(&object).ok()
    }
}

/// Reads a verdict. Findings are a part of its reason.
fn verdict(object: &Object, targets: &[PhaseName]) -> Result<Verdict, String> {
    let text = |name: &str| object.get(name).and_then(Value::as_str).map(str::trim).unwrap_or_default();
    let (findings, reason) = (text("findings"), text("reason"));
    let reason = match (findings, reason) {
        (text, "") | ("", text) => text.to_owned(),
        (findings, reason) if findings == reason => reason.to_owned(),
        (findings, reason) => format!("{reason}\n\n{findings}"),
    };
    match text("outcome") {
        // Which of the two was meant is not clear.
        "PASS" if !text("target").is_empty() => Err(format!(
            "its `outcome` is PASS, and its `target` is `{}`: a PASS has no target, and work is sent back by ROUTE",
            shorten(text("target"), 80)
        )),
        "PASS" => Ok(Verdict::pass(reason)),
        "ESCALATE" => Ok(Verdict::escalate(reason)),
        "ROUTE" => {
            let known: Vec<&str> = targets.iter().map(PhaseName::as_str).collect();
            let known = if known.is_empty() { "nowhere".to_owned() } else { known.join(", ") };
            let target = targets.iter().find(|name| name.as_str() == text("target"));
            let target = target.ok_or_else(|| {
                format!("it routes to `{}`, and may route to: {known}", shorten(text("target"), 80))
            })?;
            Ok(Verdict { outcome: Outcome::Route(target.clone()), ..Verdict::pass(reason) })
        }
        other => {
            Err(format!("its `outcome` is `{}`: PASS, ROUTE or ESCALATE is required", shorten(other, 80)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::reply::Reply;
    use super::*;

    fn object(value: Value) -> Object {
        serde_json::from_value(value).unwrap()
    }

    fn targets() -> Vec<PhaseName> {
        vec!["dev".parse().unwrap()]
    }

    #[test]
    fn verdicts_are_read_and_unclear_ones_are_not() {
        let structure = Structure::Verdict { targets: targets(), is_bounded: false };
        let read = |value: Value| {
            let text = structure.answer(&object(value))?;
            Reply::parse(&text).verdict(&targets()).map(|verdict| verdict.sentence())
        };
        assert_eq!(
            read(
                json!({"findings": "a.rs:3 panics", "outcome": "ROUTE", "reason": "It panics.", "target": "dev"})
            ),
            Ok("ROUTE to dev: It panics.\n\na.rs:3 panics".to_owned())
        );
        assert_eq!(
            read(json!({"outcome": "PASS", "reason": "Good.", "target": null})),
            Ok("PASS: Good.".to_owned())
        );
        for wrong in [
            json!({}),
            json!({"outcome": "pass"}),
            json!({"outcome": ["PASS"]}),
            json!({"outcome": "ROUTE", "target": "other"}),
            json!({"outcome": "ROUTE"}),
            json!({"outcome": "PASS", "target": "dev"}),
        ] {
            assert!(read(wrong.clone()).is_err(), "{wrong}");
        }
        assert!(structure.answer_of_text("PASS").is_none() && structure.answer_of_text("{}").is_none());
        assert!(
            structure.answer_of_text("<think>{\"outcome\":\"PASS\"}</think>").is_none(),
            "a thought is no verdict"
        );
    }

    #[test]
    fn schema_of_a_reply_allows_a_target_beside_route_alone() {
        let structure = Structure::Verdict { targets: targets(), is_bounded: true };
        let validator = jsonschema::options().build(&structure.reply_schema()).unwrap();
        let verdict = |outcome: &str, target: Option<&str>| {
            let mut verdict = json!({"findings": "f", "outcome": outcome, "reason": "r"});
            if let Some(target) = target {
                verdict["target"] = target.into();
            }
            validator.is_valid(&verdict)
        };
        assert!(verdict("PASS", None) && verdict("ESCALATE", None) && verdict("ROUTE", Some("dev")));
        assert!(!verdict("PASS", Some("dev")) && !verdict("ROUTE", None) && !verdict("ROUTE", Some("other")));
        let strict = Structure::Verdict { targets: targets(), is_bounded: false };
        assert_eq!(strict.reply_schema(), strict.schema());
    }

    #[test]
    fn data_is_checked_by_its_schema() {
        let schema = json!({"type": "object", "required": ["files"], "properties": {"files": {"type": "array", "items": {"type": "string"}}}});
        let structure = Structure::Outputs { outputs: Outputs::new(&schema).unwrap(), is_bounded: false };
        let text = structure.answer(&object(json!({"text": "Done.", "data": {"files": ["a"]}}))).unwrap();
        let reply = Reply::parse(&text);
        assert_eq!((reply.text.as_str(), reply.data), ("Done.", Some(object(json!({"files": ["a"]})))));
        let why = structure.answer(&object(json!({"text": "x", "data": {"files": [1]}}))).unwrap_err();
        assert!(why.contains("`/files/0`") && why.contains("string"), "{why}");
        assert!(Outputs::new(&schema).unwrap().check(None).unwrap_err().contains("no data"));
        assert!(Outputs::new(&json!({"type": "thing"})).is_err());
    }
}
