//! team.yml as it was written: checked field by field, both dialects lowered to one shape, nothing yet checked across
//! phases.

use std::time::Duration;

use cliq_protocol::{
    AgentTools, Budget, ConversationMode, Effort, ExtraBody, McpServerSpec, ModelParameters, Permissions,
    PhaseKind, ReviewSpec, Sandbox, SkillSelection, TOOL_NAMES, Temperature, ToolKind, is_mcp_server_name,
};
use serde_json::Value;

use crate::agents::is_connector;
use crate::conditions::RawConditions;
use crate::fields;
use crate::model::Scope;
use cliq_document::{Diagnostic, Span, did_you_mean};
use cliq_document::{Entry, Kind, Node};
use cliq_document::{Located, Record};

pub(crate) struct RawTeam<'a> {
    pub(crate) top: Record<'a>,
    pub(crate) inputs: Vec<RawInput>,
    pub(crate) outputs: Vec<(Located<String>, Option<String>)>,
    pub(crate) agents: Vec<RawAgent>,
    pub(crate) mcp: Vec<(Located<String>, McpServerSpec)>,
    pub(crate) budget: Budget,
    pub(crate) phases: Vec<RawPhase<'a>>,
}

pub(crate) struct RawInput {
    pub(crate) name: Located<String>,
    pub(crate) description: Option<String>,
    pub(crate) required: bool,
    pub(crate) default: Option<String>,
}

pub(crate) struct RawAgent {
    pub(crate) name: Located<String>,
    pub(crate) entry: Located<String>,
    pub(crate) env: Vec<String>,
    pub(crate) sandbox: Sandbox,
}

pub(crate) struct RawPhase<'a> {
    pub(crate) record: Record<'a>,
    pub(crate) node: &'a Node,
    pub(crate) support: bool,
    pub(crate) name: Located<String>,
    pub(crate) kind: Option<PhaseKind>,
    pub(crate) agent: Option<Located<String>>,
    pub(crate) commands: Vec<RawCommand<'a>>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) budget: Budget,
    pub(crate) sandbox: Sandbox,
    pub(crate) parameters: ModelParameters,
    pub(crate) outputs: Option<Value>,
    pub(crate) agent_tools: Option<AgentTools>,
    pub(crate) skills: SkillSelection,
    pub(crate) permissions: Option<Permissions>,
    pub(crate) conversation: ConversationMode,
    pub(crate) conditions: RawConditions,
}

pub(crate) struct RawCommand<'a> {
    pub(crate) record: Record<'a>,
    pub(crate) name: Located<String>,
    pub(crate) run: Located<String>,
    pub(crate) condition: Option<Located<String>>,
    pub(crate) scope: Scope,
    pub(crate) escalate_on_fail: Option<bool>,
    pub(crate) required: bool,
    pub(crate) timeout: Option<Duration>,
}

impl<'a> RawPhase<'a> {
    /// Whether its agent is a connector.
    pub(crate) fn is_connector(&self) -> bool {
        self.kind == Some(PhaseKind::Standard)
            && self.agent.as_ref().is_some_and(|agent| is_connector(&agent.value))
    }

    /// Returns the name of the phase in messages.
    pub(crate) fn title(&self) -> String {
        if self.name.value.is_empty() {
            "the phase".to_owned()
        } else {
            format!("phase `{}`", self.name.value)
        }
    }

    pub(crate) fn json(&self, name: &str) -> Option<Value> {
        self.record.node(name).map(Node::to_json)
    }
}

pub(crate) fn read<'a>(node: &'a Node, problems: &mut Vec<Diagnostic>) -> Option<RawTeam<'a>> {
    let top = Record::read(node, fields::TEAM, "a team", problems)?;
    let inputs = top.list("inputs").iter().filter_map(|node| read_input(node, problems)).collect();
    let outputs = top
        .list("outputs")
        .iter()
        .filter_map(|node| {
            let record = Record::read(node, fields::OUTPUT, "an output", problems)?;
            Some((record.text("name")?, record.text("description").map(|d| d.value)))
        })
        .collect();
    let agents = top
        .map("agents")
        .iter()
        .filter_map(|entry| {
            let record = Record::read(&entry.value, fields::AGENT, "an agent", problems)?;
            let name = Located { value: entry.key.clone(), span: entry.span };
            let env = record.texts("env").into_iter().map(|name| name.value).collect();
            let sandbox = read_sandbox(&record, problems);
            Some(RawAgent { name, entry: record.text("entry")?, env, sandbox })
        })
        .collect();
    let mcp = top.map("mcp").iter().filter_map(|entry| read_mcp(entry, problems)).collect();
    let budget = read_budget(&top, problems);
    let phases = read_phases(&top, problems);
    Some(RawTeam { inputs, outputs, agents, mcp, budget, phases, top })
}

/// The `budget` of a team or a phase. Without one, nothing is limited.
fn read_budget(record: &Record<'_>, problems: &mut Vec<Diagnostic>) -> Budget {
    let Some(node) = record.node("budget") else { return Budget::default() };
    let Some(budget) = Record::read(node, fields::BUDGET, "a budget", problems) else {
        return Budget::default();
    };
    if budget.names().next().is_none() {
        let help = "write `tokens:`, `usd:` or both under it";
        problems.push(Diagnostic::error("missing-field", node.span, "a budget needs a limit", help));
    }
    let tokens = budget.integer("tokens").and_then(|tokens| u64::try_from(tokens).ok());
    Budget { tokens, usd: budget.amount("usd") }
}

/// The `sandbox` of a phase or an agent.
fn read_sandbox(record: &Record<'_>, problems: &mut Vec<Diagnostic>) -> Sandbox {
    let Some(node) = record.node("sandbox") else { return Sandbox::default() };
    let before = problems.len();
    let fields = match &node.kind {
        Kind::Map(_) => Record::read(node, fields::SANDBOX, "`sandbox`", problems),
        Kind::Bool(_) => return Sandbox::default(),
        _ => None,
    };
    if problems.len() > before {
        return Sandbox::default();
    }
    Sandbox::from_value(node.to_json(), "sandbox").unwrap_or_else(|error| {
        let name = error.field.split(['.', '[']).nth(1).unwrap_or_default();
        let of_field = fields.as_ref().and_then(|record| record.node(name));
        let span = of_field.map_or(node.span, |node| node.span);
        let message = format!("`{}`: expected {}, found {}", error.field, error.expected, error.found);
        problems.push(Diagnostic::error(
            "invalid-sandbox",
            span,
            message,
            "docs/sandbox.md in the repository of cliq describes sandboxes",
        ));
        Sandbox::default()
    })
}

/// The parameters of requests to the model of a phase. Values out of range are problems of their fields already.
fn read_parameters(record: &Record<'_>, problems: &mut Vec<Diagnostic>) -> ModelParameters {
    ModelParameters {
        effort: record.text("effort").and_then(|word| Effort::parse(&word.value)),
        temperature: record.amount("temperature").and_then(Temperature::new),
        max_tokens: record.integer("max_tokens").and_then(|tokens| u64::try_from(tokens).ok()),
        extra_body: record
            .node("extra_body")
            .map_or_else(ExtraBody::default, |node| read_extra_body(node, problems)),
    }
}

/// The schema of `outputs`. Whether it is a valid JSON Schema is a rule of its own.
fn read_outputs(record: &Record<'_>, problems: &mut Vec<Diagnostic>) -> Option<Value> {
    let node = record.node("outputs")?;
    let outputs = Record::read(node, fields::PHASE_OUTPUTS, "`outputs`", problems)?;
    let schema = outputs.node("schema")?;
    let value = schema.to_json();
    if value["type"] != "object" {
        let message = "the schema of `outputs` is not one of an object: data are named values".to_owned();
        let help = "write `type: object`, and `properties:` with the values".to_owned();
        problems.push(Diagnostic::error("invalid-value", schema.span, message, help));
        return None;
    }
    Some(value)
}

fn read_extra_body(node: &Node, problems: &mut Vec<Diagnostic>) -> ExtraBody {
    let mut wrong = |span, message: String, help: String| {
        problems.push(Diagnostic::error("invalid-value", span, message, help));
        ExtraBody::default()
    };
    let Value::Object(fields) = node.to_json() else {
        let message = format!("`extra_body` is a mapping, here is {}", node.describe());
        return wrong(node.span, message, "write fields under it, such as `top_k: 20`".to_owned());
    };
    ExtraBody::new(fields).unwrap_or_else(|name| {
        let span = match &node.kind {
            Kind::Map(entries) => entries.iter().find(|entry| entry.key == name).map(|entry| entry.span),
            _ => None,
        };
        let message = format!("`extra_body` cannot have `{name}`: cliq sets this field itself");
        wrong(span.unwrap_or(node.span), message, "remove it".to_owned())
    })
}

/// The `agent_tools` of a phase.
fn read_tools(record: &Record<'_>, problems: &mut Vec<Diagnostic>) -> Option<AgentTools> {
    let node = record.node("agent_tools")?;
    let names = record.texts("agent_tools");
    if node.scalar().is_some() {
        return AgentTools::parse(&names.first()?.value).ok();
    }
    let unknown = |name: &&Located<String>| AgentTools::of_names(vec![name.value.clone()]).is_err();
    for name in names.iter().filter(unknown) {
        let message = format!("there is no tool `{}`", name.value);
        let help = did_you_mean(&name.value, &TOOL_NAMES);
        let help = format!("{help}; a tool of an MCP server is `SERVER__TOOL`");
        problems.push(Diagnostic::error("unknown-tool", name.span, message, help));
    }
    AgentTools::of_names(names.into_iter().map(|name| name.value).collect()).ok()
}

/// The `skills` of a phase. Whether they exist depends on the project and the person.
fn read_skills(record: &Record<'_>) -> SkillSelection {
    let Some(node) = record.node("skills") else { return SkillSelection::All };
    let names = record.texts("skills").into_iter().map(|name| name.value);
    match node.scalar() {
        Some(word) => SkillSelection::parse(&word).unwrap_or_default(),
        None => SkillSelection::Only(names.collect()),
    }
}

/// The `permissions` of a phase.
fn read_permissions(record: &Record<'_>, problems: &mut Vec<Diagnostic>) -> Option<Permissions> {
    let node = record.node("permissions")?;
    let entries = record.texts("permissions");
    if node.scalar().is_some() {
        return Permissions::parse(&entries.first()?.value).ok();
    }
    let unknown = |entry: &&Located<String>| Permissions::of_entries([entry.value.as_str()]).is_err();
    for entry in entries.iter().filter(unknown) {
        let kind = entry.value.split('=').next().unwrap_or_default();
        let message = format!("`{}` is not a kind of tool call with a rule", entry.value);
        let help = did_you_mean(kind, &ToolKind::WORDS);
        let help = format!(
            "{help}; `KIND=ask` and `KIND=deny` change the rule, kinds that are not named are refused"
        );
        problems.push(Diagnostic::error("unknown-tool-kind", entry.span, message, help));
    }
    Permissions::of_entries(entries.iter().map(|entry| entry.value.as_str())).ok()
}

/// An MCP server: a program or a URL.
fn read_mcp(entry: &Entry, problems: &mut Vec<Diagnostic>) -> Option<(Located<String>, McpServerSpec)> {
    let record = Record::read(&entry.value, fields::MCP, "an MCP server", problems)?;
    let text = |name: &str| record.text(name).map(|text| text.value);
    let texts = |name: &str| record.texts(name).into_iter().map(|text| text.value).collect();
    let spec = McpServerSpec {
        command: text("command"),
        args: texts("args"),
        env: texts("env"),
        url: text("url"),
        timeout_seconds: record.duration("timeout").map(|timeout| timeout.as_secs().max(1)),
    };
    let mut wrong = |message: String, help: &str| {
        problems.push(Diagnostic::error("invalid-mcp-server", entry.span, message, help));
    };
    let name = &entry.key;
    if !is_mcp_server_name(name) {
        let help = "use lower-case letters, digits and hyphens, at most 32 characters";
        wrong(format!("`{name}` cannot be the name of an MCP server"), help);
    }
    if spec.command.is_some() == spec.url.is_some() {
        wrong(format!("MCP server `{name}` needs a `command` or a `url`"), "write one of them");
    }
    let leads_out = |path: &camino::Utf8Path| path.components().any(|part| part.as_str() == "..");
    if spec.program_of_team().is_some_and(leads_out) {
        wrong(
            format!("the `command` of MCP server `{name}` leads out of the team folder"),
            "write a path within the team folder",
        );
    }
    if spec.url.as_ref().is_some_and(|url| !url.starts_with("http://") && !url.starts_with("https://")) {
        wrong(
            format!("the `url` of MCP server `{name}` is not an address"),
            "write an address with http:// or https://",
        );
    }
    Some((Located { value: name.clone(), span: entry.span }, spec))
}

fn read_input(node: &Node, problems: &mut Vec<Diagnostic>) -> Option<RawInput> {
    let record = Record::read(node, fields::INPUT, "an input", problems)?;
    let default = record.text("default").map(|d| d.value);
    Some(RawInput {
        name: record.text("name")?,
        description: record.text("description").map(|d| d.value),
        required: record.bool("required").unwrap_or(default.is_none()),
        default,
    })
}

/// Phases stand under `workflow:` or, in the newer spelling, at the top; not in both (docs/team-yml.md).
fn read_phases<'a>(top: &Record<'a>, problems: &mut Vec<Diagnostic>) -> Vec<RawPhase<'a>> {
    let (main, support) = match (top.key("workflow"), top.key("phases").or(top.key("support"))) {
        (Some(_), Some(second)) => {
            let message = "phases stand both under `workflow:` and at the top";
            problems.push(Diagnostic::error(
                "both-layouts",
                second,
                message,
                "move them under `workflow:`, or take `workflow:` away",
            ));
            return Vec::new();
        }
        (None, None) => {
            let help = "add `workflow:` with `phases:` under it";
            problems.push(Diagnostic::error("missing-field", top.span, "a team needs `workflow`", help));
            return Vec::new();
        }
        (None, Some(_)) => (top.list("phases"), top.list("support")),
        (Some(_), None) => {
            let record = top
                .node("workflow")
                .and_then(|node| Record::read(node, fields::WORKFLOW, "`workflow`", problems));
            match record {
                Some(record) => (record.list("phases"), record.list("support")),
                None => return Vec::new(),
            }
        }
    };
    let main = main.iter().map(|node| (node, false));
    let support = support.iter().map(|node| (node, true));
    let phases = main.chain(support).filter_map(|(node, support)| read_phase(node, support, problems));
    let mut phases: Vec<_> = phases.collect();
    // A phase takes a kilobyte, and the vector has room for half as many again.
    phases.shrink_to_fit();
    phases
}

fn read_phase<'a>(node: &'a Node, support: bool, problems: &mut Vec<Diagnostic>) -> Option<RawPhase<'a>> {
    let record = Record::read(node, fields::PHASE, "a phase", problems)?;
    let agent = record.text("agent");
    let written = record.text("type").and_then(|t| kind_of(&t.value));
    let kind = lower(written, agent.as_ref(), record.key("type"), problems);
    let commands = record.list("commands").iter().filter_map(|node| read_command(node, problems));
    let mut commands: Vec<_> = commands.collect();
    // Most phases have one command, and the vector has room for four.
    commands.shrink_to_fit();
    if let Some(review) = record.node("review") {
        check_review(review, problems);
    }
    for node in record.list("sources") {
        Record::read(node, fields::SOURCE, "a source", problems);
    }
    for node in ["targets", "target_entries"].into_iter().flat_map(|name| record.list(name)) {
        Record::read(node, fields::TARGET, "a target", problems);
    }
    Some(RawPhase {
        name: record.text("name").unwrap_or(Located { value: String::new(), span: record.span }),
        timeout: record.duration("timeout"),
        budget: read_budget(&record, problems),
        sandbox: read_sandbox(&record, problems),
        parameters: read_parameters(&record, problems),
        outputs: read_outputs(&record, problems),
        agent_tools: read_tools(&record, problems),
        skills: read_skills(&record),
        permissions: read_permissions(&record, problems),
        conversation: record
            .text("conversation")
            .and_then(|word| ConversationMode::parse(&word.value))
            .unwrap_or_default(),
        conditions: RawConditions::read(&record, problems),
        record,
        node,
        support,
        kind,
        agent,
        commands,
    })
}

/// Checks a review block: each field by the table, and then what the table cannot say.
fn check_review(node: &Node, problems: &mut Vec<Diagnostic>) {
    let before = problems.len();
    let Some(record) = Record::read(node, fields::REVIEW, "`review`", problems) else { return };
    if problems.len() > before {
        return;
    }
    let Err(error) = ReviewSpec::from_value(node.to_json()) else { return };
    // `review.inputs[0].type` is in the field `inputs`.
    let name = error.field.split(['.', '[']).nth(1).unwrap_or_default();
    let span = record.node(name).map_or(record.span, |node| node.span);
    let message = format!("`{}` is wrong: expected {}, found {}", error.field, error.expected, error.found);
    let help = "docs/reviews.md in the repository of cliq describes the review block";
    problems.push(Diagnostic::error("invalid-review", span, message, help));
}

fn kind_of(text: &str) -> Option<PhaseKind> {
    PhaseKind::ALL.into_iter().find(|kind| kind.as_str() == text)
}

/// Lowers the newer spelling, in which shell phases, human gates and sub-teams are agents (docs/team-yml.md).
fn lower(
    written: Option<PhaseKind>,
    agent: Option<&Located<String>>,
    type_key: Option<Span>,
    problems: &mut Vec<Diagnostic>,
) -> Option<PhaseKind> {
    let (Some(kind), Some(agent)) = (written, agent) else { return written };
    let name = agent.value.as_str();
    Some(match (kind, name) {
        (PhaseKind::Standard, "exec") => PhaseKind::Exec,
        (PhaseKind::Gate, "hug") => PhaseKind::HumanGate,
        (PhaseKind::Standard, "team") => PhaseKind::Team,
        (PhaseKind::Exec, "exec") | (PhaseKind::HumanGate, "hug") | (PhaseKind::Team, "team") => kind,
        (PhaseKind::Standard | PhaseKind::Gate, "exec" | "hug" | "team" | "rules")
            if !(kind == PhaseKind::Gate && name == "rules") =>
        {
            let right = if matches!(name, "hug" | "rules") { "gate" } else { "standard" };
            let message = format!("agent `{name}` cannot work in a phase of type `{kind}`");
            let span = type_key.unwrap_or(agent.span);
            problems.push(Diagnostic::error(
                "agent-type-mismatch",
                span,
                message,
                format!("write `type: {right}`"),
            ));
            return None;
        }
        (PhaseKind::Exec | PhaseKind::HumanGate | PhaseKind::Pull | PhaseKind::Push | PhaseKind::Team, _) => {
            let message = format!("a phase of type `{kind}` has no agent to choose");
            problems.push(Diagnostic::error(
                "field-not-allowed",
                agent.span,
                message,
                "remove `agent:`, or use `type: standard`",
            ));
            kind
        }
        _ => kind,
    })
}

fn read_command<'a>(node: &'a Node, problems: &mut Vec<Diagnostic>) -> Option<RawCommand<'a>> {
    if let Kind::Text(text) = &node.kind {
        let help = format!("write `- name: check` and under it `run: {text}`");
        problems.push(Diagnostic::error(
            "wrong-type",
            node.span,
            "a command is a mapping, here is a text",
            help,
        ));
        return None;
    }
    let record = Record::read(node, fields::COMMAND, "a command", problems)?;
    let scope = match record.text("scope") {
        Some(scope) if scope.value == "repo" => Scope::Repo,
        _ => Scope::Workspace,
    };
    Some(RawCommand {
        name: record.text("name")?,
        run: record.text("run")?,
        condition: record.text("if"),
        scope,
        escalate_on_fail: record.bool("escalate_on_fail"),
        required: record.bool("required").unwrap_or(false),
        timeout: record.duration("timeout"),
        record,
    })
}

/// A reference to a name that is not there.
/// Adds the problem that a name is unknown. Similar names are looked for only for the first problems: the others are not shown.
pub(crate) fn unknown<'a>(
    code: &'static str,
    at: &Located<String>,
    what: &str,
    known: impl FnOnce() -> Vec<&'a str>,
    problems: &mut Vec<Diagnostic>,
) {
    let message = format!("there is no {what} `{}`", at.value);
    problems.push(Diagnostic::error(code, at.span, message, similar(&at.value, known, problems.len())));
}

/// Returns a remedy for an unknown name. `count` is the number of problems before it: of many, only the first are shown.
pub(crate) fn similar<'a>(name: &str, known: impl FnOnce() -> Vec<&'a str>, count: usize) -> String {
    const MAX_SIMILAR: usize = 50;
    if count < MAX_SIMILAR { did_you_mean(name, &known()) } else { "correct the others first".to_owned() }
}
