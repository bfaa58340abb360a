//! Message for an agent on standard input (docs/protocol.md).

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::fields::Fields;
use crate::{
    AgentTools, AskDispatch, Budget, CommandResult, ConversationMode, DecodeError, DispatchType,
    HistoryEntry, McpServerSpec, ModelParameters, Object, Permissions, PhaseKind, PhaseName,
    PreviousActivation, RunId, SkillSelection, SteeringMessage, VERSION,
};

/// The one JSON object that an agent reads from standard input. Unknown fields are ignored.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentMessage {
    /// The run that the dispatch belongs to.
    pub run_id: RunId,
    /// The directory that the agents work in. Absolute.
    pub workspace: Utf8PathBuf,
    /// The `.cliq` directory. Absolute.
    pub cliq_dir: Utf8PathBuf,
    /// Dispatch of the agent.
    pub dispatch: Dispatch,
}

/// Dispatch of an agent, by `type`.
#[derive(Debug, Clone, PartialEq)]
pub enum Dispatch {
    /// Work on a phase.
    Phase(Box<PhaseDispatch>),
    /// Deliver a notification.
    Notify(NotifyDispatch),
    /// Show that you speak the protocol: answer `ok`, then `complete`, and do no work.
    Test(TestDispatch),
}

/// The fields of a `phase` dispatch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PhaseDispatch {
    /// The phase itself.
    pub phase: PhaseInfo,
    /// The file of the requirement, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requirement_file: Option<Utf8PathBuf>,
    /// The shared task board, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_board_file: Option<Utf8PathBuf>,
    /// The directory of shared design documents, if it contains any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub design_dir: Option<Utf8PathBuf>,
    /// The team's inputs, by name.
    #[serde(default)]
    pub inputs: BTreeMap<String, String>,
    /// Channels to read.
    #[serde(default)]
    pub incoming: Vec<Incoming>,
    /// Channels to write.
    #[serde(default)]
    pub outgoing: Vec<Outgoing>,
    /// The signal channel to report in.
    pub signal_file: Utf8PathBuf,
    /// Directory in which the phase may leave files for others.
    pub files_dir: Utf8PathBuf,
    /// Steering messages that the run received before this activation, oldest first (docs/steering.md). A gate also receives those for
    /// other phases.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steering: Vec<SteeringMessage>,
    /// File to which later steering messages are appended during this activation, one JSON object per line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steering_file: Option<Utf8PathBuf>,
    /// File for the transcript of a model agent (docs/models.md).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transcript_file: Option<Utf8PathBuf>,
    /// MCP servers of the team by name, for agents that are models behind an API.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub mcp: BTreeMap<String, McpServerSpec>,
    /// Remaining budget of the phase for language models.
    #[serde(default, skip_serializing_if = "Budget::is_unlimited")]
    pub budget: Budget,
    /// Data for a gate. Only for gates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<GateDispatch>,
    /// Data for a sub-team. Only for `team` phases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team: Option<TeamDispatch>,
}

/// The phase that an agent is dispatched for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PhaseInfo {
    /// Name of the phase.
    pub name: PhaseName,
    /// Type of the phase.
    #[serde(rename = "type")]
    pub kind: PhaseKind,
    /// The agent's name.
    pub agent: String,
    /// Number of activations of the phase in this run, including this one.
    pub iteration: u32,
    /// The gate that sent the work back, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routed_by: Option<PhaseName>,
    /// The role, as a markdown file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role_file: Option<Utf8PathBuf>,
    /// The model, for agents that have several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Parameters of requests to the model, if the team chooses some.
    #[serde(default, skip_serializing_if = "ModelParameters::is_default")]
    pub parameters: ModelParameters,
    /// JSON Schema of the data that a model agent hands over, if the team has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outputs: Option<Value>,
    /// The action, for connectors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// Commands, as `team.yml` has them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<Value>,
    /// Sources, as `team.yml` has them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<Value>,
    /// Targets, as `team.yml` has them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<Value>,
    /// Names of environment variables that the agent declared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// Tools of a model agent, if the team chooses them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_tools: Option<AgentTools>,
    /// Skills that a model agent may read.
    #[serde(default, skip_serializing_if = "SkillSelection::is_all")]
    pub skills: SkillSelection,
    /// Policy for requests of the agent for permission, if the team chooses one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permissions: Option<Permissions>,
    /// First of the interrupted activations that this one continues. The activations from it on have the same task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<u32>,
    /// Conversation in which a model agent works again after its work was sent back.
    #[serde(default, skip_serializing_if = "ConversationMode::is_fresh")]
    pub conversation: ConversationMode,
    /// Last completed activation of the phase, if it has been activated before with success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<PreviousActivation>,
    /// Number of the attempt, 1-based, if the phase has a `retry`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// Item of the activation, if the phase has a `for_each`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<Value>,
    /// Index of the item, 0-based.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<u32>,
    /// Settings of the agent for this phase, such as the `rules` of a gate.
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    pub config: Object,
}

/// A channel to read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Incoming {
    /// Phase that writes the handoff.
    pub from: PhaseName,
    /// The channel's directory.
    pub dir: Utf8PathBuf,
    /// The handoff, whether or not it exists yet.
    pub handoff_file: Utf8PathBuf,
    /// The file of instructions for this handoff, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions_file: Option<Utf8PathBuf>,
}

/// A channel to write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outgoing {
    /// Phase that receives the handoff.
    pub to: PhaseName,
    /// The channel's directory.
    pub dir: Utf8PathBuf,
    /// The file of instructions for this handoff, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions_file: Option<Utf8PathBuf>,
}

/// Data for a gate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GateDispatch {
    /// Number of the evaluation, 1-based.
    pub iteration: u32,
    /// Maximum number of evaluations.
    pub max_iterations: u32,
    /// Results of the commands in this evaluation.
    pub checks: Vec<CommandResult>,
    /// Phases that the gate may route to.
    pub route_targets: Vec<PhaseName>,
    /// Earlier evaluations, oldest first.
    pub history: Vec<HistoryEntry>,
    /// The same for people: `.cliq/gate_context.md`.
    pub context_file: Utf8PathBuf,
    /// Reason why the last answer to this very evaluation was no valid verdict, where that happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejected: Option<String>,
    /// Number of the phase's evaluation in the whole run, 1-based. Unlike `iteration`, the count does not restart with the phase.
    /// Only for human gates: a review belongs to one evaluation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluation: Option<u32>,
    /// The `review` block of a human gate, with its templates replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<Value>,
    /// Request of an agent at work that a person answers. Only in messages of such an agent to the agent of human gates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<AskDispatch>,
}

/// Data for a sub-team.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TeamDispatch {
    /// Reference of the team.
    #[serde(rename = "ref")]
    pub reference: String,
    /// Inputs of the team.
    pub inputs: BTreeMap<String, String>,
    /// Budget of the team for language models.
    #[serde(default, skip_serializing_if = "Budget::is_unlimited")]
    pub budget: Budget,
}

/// The fields of a `notify` dispatch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NotifyDispatch {
    /// Notification to deliver.
    pub notify: NotifyDetails,
    /// The signal channel to report in.
    pub signal_file: Utf8PathBuf,
}

/// Content of a notification.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NotifyDetails {
    /// The agent that delivers.
    pub agent: String,
    /// Destination in the terms of the agent.
    #[serde(default)]
    pub channel: Option<String>,
    /// Kind of the notification.
    pub event: String,
    /// Details for the agent.
    #[serde(default)]
    pub payload: Value,
}

/// The fields of a `test` dispatch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestDispatch {
    /// The signal channel to answer in.
    pub signal_file: Utf8PathBuf,
}

impl Dispatch {
    /// The `type` on the wire.
    #[must_use]
    pub fn dispatch_type(&self) -> DispatchType {
        match self {
            Self::Phase(_) => DispatchType::Phase,
            Self::Notify(_) => DispatchType::Notify,
            Self::Test(_) => DispatchType::Test,
        }
    }

    /// The signal channel to report in.
    #[must_use]
    pub fn signal_file(&self) -> &Utf8PathBuf {
        match self {
            Self::Phase(phase) => &phase.signal_file,
            Self::Notify(notify) => &notify.signal_file,
            Self::Test(test) => &test.signal_file,
        }
    }
}

impl AgentMessage {
    /// Decodes a message.
    ///
    /// Time and memory are linear in the size of the input; an error has at most 1,000 bytes.
    ///
    /// # Errors
    /// Not JSON, another version, an unknown type, a missing or mistyped field.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        const TYPES: &str = "\"phase\", \"notify\" or \"test\"";
        let value = crate::lenient_json(bytes)?;
        let mut fields = Fields::new(value, "")?;
        fields.version()?;
        let run_id = fields.text("run_id")?;
        let run_id = RunId::parse(&run_id).map_err(|why| {
            fields.wrong("run_id", format!("the id of a run ({why})"), &run_id.clone().into())
        })?;
        let workspace = fields.text("workspace")?.into();
        let cliq_dir = fields.text("cliq_dir")?.into();
        let kind = fields.required("type", TYPES)?;
        let kind =
            kind.as_str().and_then(DispatchType::parse).ok_or_else(|| fields.wrong("type", TYPES, &kind))?;
        let rest = Value::Object(fields.rest());
        let dispatch = match kind {
            DispatchType::Phase => serde_json::from_value(rest).map(|phase| Dispatch::Phase(Box::new(phase))),
            DispatchType::Notify => serde_json::from_value(rest).map(Dispatch::Notify),
            DispatchType::Test => serde_json::from_value(rest).map(Dispatch::Test),
        };
        let dispatch = dispatch.map_err(|error| crate::FieldError {
            field: String::new(),
            expected: format!("the fields of a {:?} message", kind.as_str()),
            found: error.to_string(),
        })?;
        Ok(Self { run_id, workspace, cliq_dir, dispatch })
    }

    /// The message as bytes for an agent's standard input: indented JSON and a newline.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let fields = match &self.dispatch {
            Dispatch::Phase(phase) => serde_json::to_value(phase),
            Dispatch::Notify(notify) => serde_json::to_value(notify),
            Dispatch::Test(test) => serde_json::to_value(test),
        };
        // Structs with text keys always become objects.
        let mut map = match fields {
            Ok(Value::Object(map)) => map,
            _ => Object::new(),
        };
        map.insert("version".into(), VERSION.into());
        map.insert("type".into(), self.dispatch.dispatch_type().as_str().into());
        map.insert("run_id".into(), self.run_id.as_str().into());
        map.insert("workspace".into(), self.workspace.as_str().into());
        map.insert("cliq_dir".into(), self.cliq_dir.as_str().into());
        let mut bytes = format!("{:#}", Value::Object(map)).into_bytes();
        bytes.push(b'\n');
        bytes
    }
}
