//! Agents that are language models: over a vendor's HTTP API ([`api`]) or by a vendor's command line ([`cli`]).
//!
//! Common parts: the prompt ([`prompt`]) and the parser of replies ([`reply`]). A gate's reply without a usable verdict is requested
//! once more.

mod acp;
#[cfg(feature = "http")]
mod api;
#[cfg(feature = "http")]
mod builder;
mod catalog;
mod cli;
mod code;
mod conversation;
mod display;
#[cfg(feature = "http")]
mod images;
#[cfg(feature = "http")]
mod instructions;
mod kinds;
mod meter;
#[cfg(feature = "http")]
mod model_loop;
mod open;
mod outputs;
mod people;
mod presets;
mod probe;
mod program;
mod prompt;
mod reply;
#[cfg(feature = "http")]
mod skills;
#[cfg(feature = "http")]
mod structure;
mod thoughts;

use std::time::{Duration, Instant};

#[cfg(feature = "http")]
use camino::Utf8Path;
use cliq_sdk::{
    Completion, GateContext, Handoff, LimitReached, PhaseContext, StandardContext, SteeringMessage, Usage,
};
use cliq_settings::Environment;
#[cfg(feature = "http")]
use cliq_settings::{Settings, TrustSettings};
use serde_json::{Value, json};

use crate::AnyError;
pub use acp::{Abilities, AcpCheck};
use acp::{AcpWorker, Launch};
#[cfg(feature = "http")]
pub(crate) use builder::Builder;
pub use catalog::{ModelAgent, Usable};
pub(crate) use catalog::{usable, variables};
#[cfg(feature = "http")]
use instructions::Instructions;
#[cfg(feature = "http")]
use model_loop::ModelLoop;
pub(crate) use outputs::Outputs;
use people::People;
pub use presets::{AfterRefusal, PRESETS, Preset, PresetMode, ResumeFitness, UsageReport};
pub use probe::{ServerFacts, ServerProbe, ServerState, probes};
use program::Program;
#[cfg(feature = "http")]
pub(crate) use prompt::opening;
pub(crate) use prompt::plain as plain_prompt;
pub(crate) use reply::Reply;
#[cfg(feature = "http")]
use skills::{Owner, Skills, Source};
#[cfg(feature = "http")]
use structure::Structure;

/// The minimum time between two progress messages about the output.
const PROGRESS_EVERY: Duration = Duration::from_millis(700);

/// Renders the prompt of an activation in a form.
type Render<'r> = &'r dyn Fn(&prompt::Form<'_>) -> Result<prompt::Prompt, AnyError>;

/// End of the work on an answer.
enum Ended {
    /// The answer.
    Answer(String),
    /// A limit came first.
    Limited {
        /// Last text of the model: a partial answer, or empty.
        partial: String,
        reached: LimitReached,
    },
}

/// A model that works on one activation, with the steering messages that arrive meanwhile.
enum Worker<'a> {
    #[cfg(feature = "http")]
    Api(Box<ModelLoop<'a>>),
    Program(Box<Program<'a>>),
    Acp(Box<AcpWorker<'a>>),
}

impl Worker<'_> {
    /// Works until there is an answer, or a limit is reached.
    fn answer(&mut self) -> Result<Ended, AnyError> {
        match self {
            #[cfg(feature = "http")]
            Self::Api(model) => model.answer(),
            Self::Program(program) => program.answer(),
            Self::Acp(agent) => agent.answer(),
        }
    }

    /// Asks about the last answer.
    fn again(&mut self, answer: String, question: String) -> Result<(), AnyError> {
        match self {
            #[cfg(feature = "http")]
            Self::Api(model) => model.again(question),
            Self::Program(program) => program.again(answer, question),
            Self::Acp(agent) => agent.again(question),
        }
    }

    /// Usage of the activation.
    fn total(&self) -> Usage {
        match self {
            #[cfg(feature = "http")]
            Self::Api(model) => model.total(),
            Self::Program(program) => program.total(),
            Self::Acp(agent) => agent.total(),
        }
    }
}

/// Opens the model of a phase. `render` makes the prompt for steering messages, `rejected` asks about an answer that was rejected.
fn open<'a>(
    ctx: &'a PhaseContext,
    environment: &Environment,
    render: Render<'_>,
    rejected: Option<String>,
) -> Result<Worker<'a>, AnyError> {
    let name = ctx.phase().agent.as_str();
    let settings = crate::settings_of(ctx.cliq_dir(), environment)?;
    let agent = ModelAgent::find(name, &settings).ok_or_else(|| crate::unknown(ctx))?;
    match open::open(&agent, &settings, environment, ctx)? {
        open::Opened::Program(program) => {
            let program = Program::open(*program, ctx, render, rejected.as_ref())?;
            Ok(Worker::Program(Box::new(program)))
        }
        open::Opened::Acp(launch) => {
            let people = People::open(ctx, &settings, environment, launch.secrets())?;
            let agent = AcpWorker::open(*launch, people, ctx, render, rejected.as_ref())?;
            Ok(Worker::Acp(Box::new(agent)))
        }
        #[cfg(feature = "http")]
        open::Opened::Api(access) => {
            let own = cliq_settings::AgentSettings::read(&settings, name);
            let selection = model_loop::tools_of(&agent, &settings, ctx);
            let has_tools = selection.built_in().next().is_some();
            let structure = structure_of(ctx, own.structured, !access.is_at_vendor)?;
            let answer = match (&structure, has_tools, selection.allows_mcp()) {
                (None, _, _) | (Some(_), false, true) => prompt::AnswerForm::Text,
                (Some(_), true, _) => prompt::AnswerForm::Tool,
                (Some(_), false, false) => prompt::AnswerForm::Object,
            };
            let instructions =
                own.project_instructions.unwrap_or(true).then(|| Instructions::read(ctx.workspace()));
            let skills = match has_tools {
                true => Skills::find(&skill_sources(ctx, &settings, environment), &ctx.phase().skills)?,
                false => Skills::default(),
            };
            let catalogue = skills.catalogue();
            let project = instructions.as_ref().map_or("", |found| found.text.as_str()).to_owned();
            let render = |steering: &[SteeringMessage], scope: prompt::Scope<'_>| {
                // A loop asks about a rejected answer in its conversation.
                let (skills, project) = (&catalogue, &project);
                let (rejected, has_system) = (false, true);
                render(&prompt::Form {
                    steering,
                    rejected,
                    has_tools,
                    has_system,
                    answer,
                    skills,
                    project,
                    scope,
                })
            };
            let prompt = model_loop::Prompt { render: &render, again: rejected };
            let fallbacks = open::fallbacks(&agent, &settings, environment, ctx)?;
            let opened = model_loop::Opened {
                agent: &agent,
                access: *access,
                selection,
                structure,
                skills,
                instructions,
                fallbacks,
            };
            let model = ModelLoop::open(opened, &settings, environment, ctx, &prompt)?;
            Ok(Worker::Api(Box::new(model)))
        }
    }
}

/// Directories with skills, in the order in which names count.
#[cfg(feature = "http")]
fn skill_sources(ctx: &PhaseContext, settings: &Settings, environment: &Environment) -> Vec<Source> {
    let mut sources = vec![Source { owner: Owner::Team, dir: ctx.cliq_dir().join("team/skills") }];
    let project =
        ctx.cliq_dir().ancestors().find(|dir| dir.file_name() == Some(".cliq")).and_then(Utf8Path::parent);
    if project.is_some_and(|project| TrustSettings::trusts(settings, project)) {
        for name in [".agents/skills", ".claude/skills"] {
            sources.push(Source { owner: Owner::Project, dir: ctx.workspace().join(name) });
        }
    }
    if let Some(home) = environment.get("HOME") {
        sources.push(Source { owner: Owner::Person, dir: Utf8Path::new(home).join(".agents/skills") });
    }
    sources
}

/// Structure of the answer of a model behind an API: of a gate, or of a phase with a schema.
#[cfg(feature = "http")]
fn structure_of(
    ctx: &PhaseContext,
    is_structured: Option<bool>,
    is_bounded: bool,
) -> Result<Option<Structure>, AnyError> {
    if is_structured == Some(false) {
        return Ok(None);
    }
    match ctx.dispatch().gate.as_ref().filter(|_| ctx.phase().kind.is_gate()) {
        Some(gate) => Ok(Some(Structure::Verdict { targets: gate.route_targets.clone(), is_bounded })),
        None => Ok(outputs_of(ctx)?.map(|outputs| Structure::Outputs { outputs, is_bounded })),
    }
}

pub(crate) fn standard(ctx: &StandardContext, environment: &Environment) -> Result<Completion, AnyError> {
    let outputs = outputs_of(ctx)?;
    let mut worker = open(ctx, environment, &|form| prompt::standard(ctx, form), None)?;
    let mut again = false;
    let answer = loop {
        let answer = match worker.answer()? {
            Ended::Answer(answer) => answer,
            Ended::Limited { partial, reached } => {
                ctx.send(&handoff(Reply::parse(&partial)).with_limited(reached.limited.clone()))?;
                return Err(reached.into());
            }
        };
        let reply = Reply::parse(&answer);
        match outputs.as_ref().map_or(Ok(()), |outputs| outputs.check(reply.data.as_ref())) {
            Ok(()) => break answer,
            Err(why) if !std::mem::replace(&mut again, true) => {
                ctx.progress(format!("the answer cannot be handed over ({why}); asking once more"))?;
                worker.again(answer, prompt::again_with_data(&why, ctx.phase().outputs.as_ref()))?;
            }
            Err(why) => {
                return Err(
                    format!("the answer of the model cannot be handed over, asked twice: {why}").into()
                );
            }
        }
    };
    let markers = markers(&thoughts::split(&answer).text);
    let reply = Reply::parse(&answer);
    if reply.is_empty() {
        return Err("the model answered with nothing".into());
    }
    ctx.send(&handoff(reply))?;
    let total = worker.total();
    let mut result = if total.tokens() > 0 { json!({ "usage": total }) } else { json!({}) };
    if !markers.is_empty() {
        result["markers"] = markers.into();
    }
    Ok(ctx.complete(result))
}

/// Returns the schema of the data that a phase hands over, if it has one.
fn outputs_of(ctx: &PhaseContext) -> Result<Option<Outputs>, AnyError> {
    let schema = ctx.phase().outputs.as_ref();
    let outputs = schema.map(Outputs::new).transpose();
    outputs.map_err(|why| format!("the schema of `outputs` is not valid: {why}").into())
}

/// Returns the reason why a value is not a valid JSON Schema.
pub(crate) fn schema_problem(schema: &Value) -> Option<String> {
    Outputs::new(schema).err()
}

fn handoff(reply: Reply) -> Handoff {
    let handoff = Handoff::text(reply.text);
    match reply.data {
        Some(data) => handoff.with_data(Value::Object(data)),
        None => handoff,
    }
}

pub(crate) fn gate(ctx: &GateContext, environment: &Environment) -> Result<Completion, AnyError> {
    let rejected = ctx.rejected().map(|why| prompt::again(why, ctx.route_targets()));
    let mut worker = open(ctx, environment, &|form| prompt::gate(ctx, form), rejected)?;
    let mut again = false;
    loop {
        let answer = match worker.answer()? {
            Ended::Answer(answer) => answer,
            // What a limit cut short is no verdict.
            Ended::Limited { reached, .. } => return Err(reached.into()),
        };
        match Reply::parse(&answer).verdict(ctx.route_targets()) {
            Ok(verdict) => return Ok(ctx.decide(&verdict)?),
            Err(why) if !std::mem::replace(&mut again, true) => {
                ctx.progress(format!("no usable verdict ({why}); asking once more"))?;
                worker.again(answer, prompt::again(&why, ctx.route_targets()))?;
            }
            Err(why) => return Err(format!("the model gave no usable verdict, asked twice: {why}").into()),
        }
    }
}

/// The markers in a reply, for the record (docs/protocol.md).
fn markers(text: &str) -> Vec<Value> {
    let found = cliq_markers::scan(text).markers;
    let record = |marker: &cliq_markers::Marker<'_>| json!({"signal": marker.kind.key(), "subject": marker.subject, "handler": marker.handler().as_str(), "fields": marker.body()});
    found.iter().map(record).collect()
}

/// Rate limit of progress messages: at most one per [`PROGRESS_EVERY`].
#[derive(Debug)]
struct Throttle {
    last: Option<Instant>,
}

impl Throttle {
    fn new() -> Self {
        Self { last: None }
    }

    fn may(&mut self) -> bool {
        let now = Instant::now();
        let may = self.last.is_none_or(|last| now.duration_since(last) >= PROGRESS_EVERY);
        if may {
            self.last = Some(now);
        }
        may
    }
}
