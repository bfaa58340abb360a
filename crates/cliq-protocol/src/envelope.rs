//! The handoff envelope, version 1 (docs/protocol.md).

use std::collections::BTreeMap;
use std::io;

use serde::Serialize;
use serde_json::Value;

use crate::fields::Fields;
use crate::{
    CommandResult, DecodeError, EnvelopeType, FieldError, Limited, Object, PhaseName, VERSION, Verdict,
};

/// Handoff of one phase to another: `.cliq/channels/<from>--<to>/handoff.json`.
#[derive(Debug, Clone, PartialEq)]
pub struct Envelope {
    /// The phase that wrote it.
    pub phase: PhaseName,
    /// The agent that ran.
    pub agent: String,
    /// The payload, by `phase_type`.
    pub body: Body,
    /// A summary in natural language.
    pub text: Option<String>,
    /// Limit that ended the phase before it was done, if the handoff is partial (docs/outcomes.md).
    pub limited: Option<Limited>,
    /// Fields that this version does not know.
    pub extra: Object,
}

/// The payload of an envelope, by its `phase_type`.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// From a standard, exec, pull, push or connector phase: any JSON object.
    Standard(Option<Object>),
    /// From a gate.
    Gate(Box<GateData>),
    /// From a sub-team.
    Team(Option<Object>),
}

/// The `data` of a gate's envelope.
#[derive(Debug, Clone, PartialEq)]
pub struct GateData {
    /// Verdict of the gate.
    pub verdict: Verdict,
    /// Results of the commands.
    pub checks: Vec<CommandResult>,
    /// Number of the evaluation, 1-based.
    pub iteration: u32,
    /// Maximum number of evaluations.
    pub max_iterations: u32,
    /// Fields that this version does not know.
    pub extra: Object,
}

impl Envelope {
    /// An envelope from a phase that is not a gate.
    #[must_use]
    pub fn standard(
        phase: PhaseName,
        agent: impl Into<String>,
        data: Option<Object>,
        text: Option<String>,
    ) -> Self {
        let (agent, body) = (agent.into(), Body::Standard(data));
        Self { phase, agent, body, text, limited: None, extra: Object::new() }
    }

    /// An envelope from a gate, its text the verdict's sentence.
    #[must_use]
    pub fn gate(phase: PhaseName, agent: impl Into<String>, data: GateData) -> Self {
        let text = Some(data.verdict.sentence());
        let (agent, body) = (agent.into(), Body::Gate(Box::new(data)));
        Self { phase, agent, body, text, limited: None, extra: Object::new() }
    }

    /// The discriminator.
    #[must_use]
    pub fn phase_type(&self) -> EnvelopeType {
        match self.body {
            Body::Standard(_) => EnvelopeType::Standard,
            Body::Gate(_) => EnvelopeType::Gate,
            Body::Team(_) => EnvelopeType::Team,
        }
    }

    /// The payload as a JSON object, for any type.
    #[must_use]
    pub fn data(&self) -> Option<Object> {
        match &self.body {
            Body::Standard(data) | Body::Team(data) => data.clone(),
            Body::Gate(gate) => Some(gate.to_object()),
        }
    }

    /// Decodes an envelope.
    ///
    /// Time and memory are linear in the size of the input; an error has at most 1,000 bytes.
    ///
    /// # Errors
    /// Not JSON, another version, a missing required field, a wrong type: the error names the field.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        Ok(Self::from_value(crate::lenient_json(bytes)?)?)
    }

    /// Reads an envelope from a JSON value.
    ///
    /// # Errors
    /// Names the field that is missing or wrong.
    pub fn from_value(value: Value) -> Result<Self, FieldError> {
        const TYPES: &str = "\"standard\", \"gate\" or \"team\"";
        let mut fields = Fields::new(value, "")?;
        fields.version()?;
        let kind = fields.required("phase_type", TYPES)?;
        let kind = kind
            .as_str()
            .and_then(EnvelopeType::parse)
            .ok_or_else(|| fields.wrong("phase_type", TYPES, &kind))?;
        let phase = fields.phase_name("phase")?;
        let agent = fields.text("agent")?;
        let body = match kind {
            EnvelopeType::Standard => Body::Standard(fields.optional_object("data")?),
            EnvelopeType::Team => Body::Team(fields.optional_object("data")?),
            EnvelopeType::Gate => {
                Body::Gate(Box::new(GateData::read(fields.required("data", "an object with the verdict")?)?))
            }
        };
        let text = fields.optional_text("text")?;
        let limited = fields.take("limited").map(|value| Limited::read(value, "limited")).transpose()?;
        Ok(Self { phase, agent, body, text, limited, extra: fields.rest() })
    }

    /// The envelope as a JSON value.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut map = self.extra.clone();
        map.insert("version".into(), VERSION.into());
        map.insert("phase_type".into(), self.phase_type().as_str().into());
        map.insert("phase".into(), self.phase.as_str().into());
        map.insert("agent".into(), self.agent.as_str().into());
        if let Some(data) = self.data() {
            map.insert("data".into(), Value::Object(data));
        }
        if let Some(text) = &self.text {
            map.insert("text".into(), text.as_str().into());
        }
        if let Some(limited) = &self.limited {
            map.insert("limited".into(), limited.to_value());
        }
        Value::Object(map)
    }

    /// The envelope as the bytes of a file: indented JSON and a newline.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        // Writing to memory does not fail.
        let _ = self.write_to(&mut bytes);
        bytes
    }

    /// Writes the bytes of [`Envelope::encode`], without a copy of the envelope in memory.
    ///
    /// # Errors
    /// The writer fails.
    pub fn write_to(&self, mut writer: impl io::Write) -> io::Result<()> {
        let (gate, limited);
        let mut fields: BTreeMap<&str, Field<'_>> =
            self.extra.iter().map(|(name, value)| (name.as_str(), Field::Value(value))).collect();
        fields.insert("version", Field::Number(VERSION));
        fields.insert("phase_type", Field::Text(self.phase_type().as_str()));
        fields.insert("phase", Field::Text(self.phase.as_str()));
        fields.insert("agent", Field::Text(&self.agent));
        match &self.body {
            Body::Standard(data) | Body::Team(data) => {
                fields.extend(data.as_ref().map(|data| ("data", Field::Object(data))));
            }
            Body::Gate(data) => {
                gate = data.to_object();
                fields.insert("data", Field::Object(&gate));
            }
        }
        fields.extend(self.text.as_ref().map(|text| ("text", Field::Text(text))));
        limited = self.limited.as_ref().map(Limited::to_value);
        fields.extend(limited.as_ref().map(|limited| ("limited", Field::Value(limited))));
        serde_json::to_writer_pretty(&mut writer, &fields)?;
        writer.write_all(b"\n")
    }
}

/// A field of an envelope that is written.
#[derive(Serialize)]
#[serde(untagged)]
enum Field<'a> {
    Text(&'a str),
    Number(u64),
    Object(&'a Object),
    Value(&'a Value),
}

impl GateData {
    fn read(value: Value) -> Result<Self, FieldError> {
        let mut fields = Fields::new(value, "data")?;
        Ok(Self {
            verdict: Verdict::read(fields.required("verdict", "a verdict")?, fields.path_of("verdict"))?,
            checks: fields.list("checks", CommandResult::read)?,
            iteration: fields.iteration("iteration")?,
            max_iterations: fields.iteration("max_iterations")?,
            extra: fields.rest(),
        })
    }

    fn to_object(&self) -> Object {
        let mut map = self.extra.clone();
        map.insert("verdict".into(), self.verdict.to_value());
        map.insert("checks".into(), self.checks.iter().map(CommandResult::to_value).collect());
        map.insert("iteration".into(), self.iteration.into());
        map.insert("max_iterations".into(), self.max_iterations.into());
        map
    }
}
