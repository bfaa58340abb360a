//! Agents that are language models: over a vendor's HTTP API ([`api`]) or by a vendor's command line ([`cli`]).
//!
//! Common parts: the prompt ([`prompt`]) and the parser of replies ([`reply`]). A gate's reply without a usable verdict is requested
//! once more (issue of SPEC section 9).

#[cfg(feature = "http")]
mod api;
#[cfg(feature = "http")]
mod builder;
mod catalog;
mod cli;
mod display;
mod meter;
mod open;
mod prompt;
mod reply;

use std::time::{Duration, Instant};

use cliq_sdk::{Completion, GateContext, Handoff, PhaseContext, StandardContext, Steering};
use cliq_settings::Environment;
use serde_json::{Value, json};

use crate::AnyError;
#[cfg(feature = "http")]
pub(crate) use builder::Builder;
pub(crate) use catalog::usable;
pub use catalog::{MODEL_AGENTS, ModelAgent, Usable};
use display::Display;
use meter::Meter;
#[cfg(feature = "http")]
pub(crate) use prompt::opening;
pub(crate) use reply::Reply;

/// The minimum time between two progress messages about the output.
const PROGRESS_EVERY: Duration = Duration::from_millis(700);

/// A conversation: what was asked and answered, beginning and ending with a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Conversation {
    /// The first question, and then answers and questions in turn.
    pub(crate) turns: Vec<String>,
}

impl Conversation {
    fn new(question: String) -> Self {
        Self { turns: vec![question] }
    }

    fn again(&mut self, answer: String, question: String) {
        self.turns.extend([answer, question]);
    }

    /// The whole conversation as one question, for programs that keep no history.
    pub(crate) fn as_one(&self) -> String {
        let mut text = String::new();
        for (n, turn) in self.turns.iter().enumerate() {
            if n > 0 {
                text.push_str(if n % 2 == 1 {
                    "\n\n## Your Last Answer\n\n"
                } else {
                    "\n\n## About Your Last Answer\n\n"
                });
            }
            text.push_str(turn);
        }
        text
    }
}

/// Something that answers.
pub(crate) trait Model {
    /// Asks and gives the answer. Shows what comes while it comes, and meters its usage.
    fn ask(
        &self,
        conversation: &Conversation,
        display: &mut Display<'_>,
        meter: &mut Meter<'_>,
        steering: &mut Steering,
    ) -> Result<String, AnyError>;
}

/// A model that is asked about one activation, with the steering messages that arrive meanwhile.
struct Asked<'a> {
    model: Box<dyn Model>,
    conversation: Conversation,
    display: Display<'a>,
    meter: Meter<'a>,
    steering: Steering,
}

impl<'a> Asked<'a> {
    fn new(ctx: &'a PhaseContext, environment: &Environment, question: String) -> Result<Self, AnyError> {
        Ok(Self {
            model: model(ctx, environment)?,
            conversation: Conversation::new(question),
            display: Display::new(ctx.reporter()),
            meter: Meter::new(ctx.reporter()),
            // The prompt contains those of the dispatch message.
            steering: ctx.steering().live_only(),
        })
    }

    /// Returns the answer. Asks again as long as steering messages arrived while the model worked.
    fn answer(&mut self) -> Result<String, AnyError> {
        loop {
            let Self { model, conversation, display, meter, steering } = self;
            let answer = model.ask(conversation, display, meter, steering)?;
            display.finish();
            let mut messages = Vec::new();
            while let Some(message) = steering.try_next()? {
                messages.push(message);
            }
            if messages.is_empty() {
                return Ok(answer);
            }
            self.conversation.again(answer, prompt::guidance(&messages));
        }
    }
}

fn model(ctx: &PhaseContext, environment: &Environment) -> Result<Box<dyn Model>, AnyError> {
    let name = ctx.phase().agent.as_str();
    let agent = ModelAgent::find(name).ok_or_else(|| format!("`{name}` is not a model agent"))?;
    let settings = crate::settings_of(ctx.cliq_dir(), environment)?;
    open::open(agent, &settings, environment, ctx)
}

pub(crate) fn standard(ctx: &StandardContext, environment: &Environment) -> Result<Completion, AnyError> {
    let mut asked = Asked::new(ctx, environment, prompt::standard(ctx)?)?;
    let answer = asked.answer()?;
    let markers = markers(&answer);
    let reply = Reply::parse(&answer);
    if reply.is_empty() {
        return Err("the model answered with nothing".into());
    }
    let mut handoff = Handoff::text(reply.text);
    if let Some(data) = reply.data {
        handoff = handoff.with_data(Value::Object(data));
    }
    ctx.send(&handoff)?;
    let mut result = json!({"usage": asked.meter.total()});
    if !markers.is_empty() {
        result["markers"] = markers.into();
    }
    Ok(ctx.complete(result))
}

pub(crate) fn gate(ctx: &GateContext, environment: &Environment) -> Result<Completion, AnyError> {
    let mut asked = Asked::new(ctx, environment, prompt::gate(ctx)?)?;
    let mut again = false;
    loop {
        let answer = asked.answer()?;
        match Reply::parse(&answer).verdict(ctx.route_targets()) {
            Ok(verdict) => return Ok(ctx.decide(&verdict)?),
            Err(why) if !std::mem::replace(&mut again, true) => {
                ctx.progress(format!("no usable verdict ({why}); asking once more"))?;
                asked.conversation.again(answer, prompt::again(&why, ctx.route_targets()));
            }
            Err(why) => return Err(format!("the model gave no usable verdict, asked twice: {why}").into()),
        }
    }
}

/// The markers in a reply, for the record (SPEC section 9).
fn markers(text: &str) -> Vec<Value> {
    let found = cliq_markers::scan(text).markers;
    let record = |marker: &cliq_markers::Marker<'_>| json!({"signal": marker.kind.key(), "subject": marker.subject, "handler": marker.handler().as_str(), "fields": marker.body()});
    found.iter().map(record).collect()
}

/// Lets something happen no oftener than every so often.
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
