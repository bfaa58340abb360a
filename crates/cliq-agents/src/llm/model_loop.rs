//! Activation of a model behind an API: the loop of turns and tool calls, recorded in a transcript.

mod limits;
mod own_tools;
mod resume;
mod servers;
mod setup;

use std::collections::VecDeque;

use camino::Utf8PathBuf;
use cliq_coder::tools::{self, ToolSpec};
use cliq_coder::{Loop, Step, ToolHost};
use cliq_fs::TranscriptFile;
use cliq_protocol::{
    FailedCall, FailedCallKind, MCP_SEPARATOR, Origin, ReplyKind, ReplyUsage, Role, ToolCall, ToolResult,
    TranscriptBody,
};
use cliq_sdk::{LimitReached, Steering, Usage};

use super::api::{Access, Api, ModelReply, ModelRequest, ReplySchema};
use super::display::Display;
use super::images::{self, Image, KeptImages};
use super::instructions::Instructions;
use super::meter::Meter;
use super::people::People;
use super::skills::Skills;
use super::structure::Structure;
use super::{Ended, prompt};
use crate::AnyError;
use servers::McpTools;
pub(crate) use setup::{Opened, Prompt, tools_of};

/// Model behind an API that works on one activation.
pub(crate) struct ModelLoop<'a> {
    api: Api,
    /// Name of the agent, for the names of settings.
    agent: String,
    is_gate: bool,
    state: Loop,
    transcript: Option<TranscriptFile>,
    tools: Vec<ToolSpec>,
    /// Structure of the answer, if it has one.
    structure: Option<Structure>,
    skills: Skills,
    instructions: Option<Instructions>,
    files_dir: Utf8PathBuf,
    /// Whether the last answer could not be used: the next one is forced to have the structure.
    asks_again: bool,
    /// Number of replies whose answer by the tool for it was refused.
    refused_answers: u32,
    /// Reason why an answer of this reply was refused.
    refusal: Option<String>,
    /// Models that go on after a permanent error or an outage, the next one first.
    fallbacks: VecDeque<Access>,
    /// Process of the built-in tools.
    host: Option<ToolHost>,
    people: People,
    /// Servers of further tools.
    servers: McpTools,
    /// Maximum size of a tool result in bytes.
    result_limit: usize,
    images: Vec<Image>,
    kept_images: KeptImages,
    workspace: Utf8PathBuf,
    display: Display<'a>,
    meter: Meter<'a>,
    steering: Steering,
}

impl ModelLoop<'_> {
    /// Works until there is an answer, or a limit is reached.
    pub(crate) fn answer(&mut self) -> Result<Ended, AnyError> {
        loop {
            match self.state.next() {
                Step::Ask { may_call } => {
                    // Guidance counts from the next turn on. It does not separate the parts of an answer.
                    if self.state.is_within_answer() || !self.take_guidance()? {
                        self.ask(may_call)?;
                    }
                }
                Step::Run(calls) => self.run(&calls)?,
                Step::Add(body) => self.record(&[body])?,
                Step::Answer(text) => {
                    if !self.take_guidance()? {
                        let read =
                            self.structure.as_ref().and_then(|structure| structure.answer_of_text(&text));
                        let text = read.unwrap_or(text);
                        self.asks_again = false;
                        self.record(&[TranscriptBody::End { text: text.clone() }])?;
                        return Ok(Ended::Answer(text));
                    }
                }
                Step::Limited { limit, partial } => {
                    let message = limits::message(limit, &self.agent, self.is_gate);
                    self.fail(&message, None)?;
                    let reached = LimitReached::new(message, limit.limited());
                    return Ok(Ended::Limited { partial, reached });
                }
                Step::Fail(failure) => return Err(self.fail(&failure.to_string(), None)?),
            }
        }
    }

    /// Asks about the last answer. [`ModelLoop::answer`] returns another one.
    pub(crate) fn again(&mut self, question: String) -> Result<(), AnyError> {
        self.asks_again = true;
        let fields = self.structure.as_ref().filter(|_| self.api.takes_schemas()).map(Structure::fields);
        let question = match fields {
            Some(fields) => format!(
                "{question}\n\nA JSON object will do as well, and nothing beside it, with the fields {fields}."
            ),
            None => question,
        };
        self.record(&[user(Origin::Retry, question)])
    }

    /// Usage of this activation, without what it took over from an interrupted one.
    pub(crate) fn total(&self) -> Usage {
        self.meter.total()
    }

    /// Records lines, and then applies them.
    fn record(&mut self, bodies: &[TranscriptBody]) -> Result<(), AnyError> {
        if let Some(transcript) = &mut self.transcript {
            transcript.append(bodies)?;
        }
        bodies.iter().for_each(|body| self.state.apply(body));
        Ok(())
    }

    /// Adds steering messages that have arrived. Returns `false` if there are none.
    fn take_guidance(&mut self) -> Result<bool, AnyError> {
        let mut messages = Vec::new();
        while let Some(message) = self.steering.try_next()? {
            messages.push(message);
        }
        if messages.is_empty() {
            return Ok(false);
        }
        self.display.act(&format!("{} steering messages", messages.len()));
        self.record(&[guidance(&messages)])?;
        Ok(true)
    }

    fn ask(&mut self, may_call: bool) -> Result<(), AnyError> {
        if self.servers.have_changed() {
            let of_servers = self.servers.specs()?;
            self.tools.retain(|tool| !tool.name.contains(MCP_SEPARATOR));
            self.tools.extend(of_servers);
        }
        // A summary and the last words before a limit are texts.
        // So is the rest of a reply that was cut off.
        let is_free = self.state.is_within_answer() || !self.state.is_working();
        let forces = !is_free && (self.tools.is_empty() || self.asks_again && may_call);
        let schema =
            self.structure.as_ref().filter(|_| forces && self.api.takes_schemas()).map(ReplySchema::of);
        let request = ModelRequest {
            system: self.state.system(),
            turns: self.state.turns(),
            tools: if schema.is_some() && !self.api.takes_schemas_with_tools() { &[] } else { &self.tools },
            may_call: may_call && schema.is_none(),
            schema: schema.as_ref(),
            images: &self.images,
            reply_cap: self.state.reply_cap(),
        };
        // A request without its tools is smaller than it is estimated.
        let has_all = !request.tools.is_empty() || self.tools.is_empty();
        let transcript = &mut self.transcript;
        let mut failed_attempts = Vec::new();
        let mut on_retry = |why: &str, usage: Option<Usage>| {
            let (message, kind) = (why.to_owned(), FailedCallKind::Passing);
            let body = TranscriptBody::Error(FailedCall { message, kind, usage });
            failed_attempts.push(body.clone());
            if let Some(transcript) = transcript {
                // The next line fails too, and is an error.
                let _ = transcript.append(&[body]);
            }
        };
        let outcome = self.api.request(&request, &mut self.display, &mut self.meter, &mut on_retry);
        // Their usage counts.
        failed_attempts.iter().for_each(|body| self.state.apply(body));
        match outcome {
            Ok(reply) => {
                if let Some(problem) = problem(&reply) {
                    self.display.act(&problem);
                }
                if let Some(usage) =
                    reply.usage.as_ref().filter(|usage| has_all && self.state.is_input_cut(usage))
                {
                    let warning = format!(
                        "warning: the server counted {} tokens of a request of about {}: it has left out a part of the input; set \
                         `agents.{}.context_tokens` to the context that the server was started with",
                        usage.tokens_in,
                        self.state.estimate(),
                        self.agent
                    );
                    self.display.act(&warning);
                }
                self.record(&lines_of(reply))
            }
            Err(failed) if failed.kind.is_retried() => self.record(&[TranscriptBody::Error(*failed)]),
            Err(failed) => match self.fallbacks.pop_front() {
                Some(next) => self.fall_back(next, *failed),
                None => Err(self.fail(&failed.message, failed.usage)?),
            },
        }
    }

    /// Goes on with another model.
    fn fall_back(&mut self, next: Access, failed: FailedCall) -> Result<(), AnyError> {
        let message = self.display.masked(&failed.message);
        let text = format!("goes on with {} ({}) after: {message}", next.name, next.model);
        self.display.act(&text);
        self.agent.clone_from(&next.name);
        self.api = Api::new(next);
        let kind = FailedCallKind::Passing;
        let error = TranscriptBody::Error(FailedCall { message, kind, usage: failed.usage });
        self.record(&[error, TranscriptBody::Notice { text }])
    }

    fn fail(&mut self, reason: &str, usage: Option<Usage>) -> Result<AnyError, AnyError> {
        let message = self.display.masked(reason);
        let error = FailedCall { message: message.clone(), kind: FailedCallKind::Final, usage };
        self.record(&[TranscriptBody::Error(error)])?;
        Ok(message.into())
    }

    /// Runs calls: those that change nothing at the same time, the others one after another, in the order of the model.
    fn run(&mut self, calls: &[ToolCall]) -> Result<(), AnyError> {
        let mut rest = calls;
        while let Some(first) = rest.first() {
            let together = rest.iter().take_while(|call| tools::is_reading(&call.name)).count().max(1);
            let (now, later) = rest.split_at(together);
            for call in now {
                self.display.act(&summary(call));
            }
            if now.len() == 1
                && let Some(result) = self.own_result(first)
            {
                self.record(&[TranscriptBody::ToolResult(result)])?;
                self.people.call_ended(&first.id);
            } else {
                self.run_together(now)?;
            }
            rest = later;
        }
        let Some(why) = self.refusal.take().filter(|_| !matches!(self.state.next(), Step::Answer(_))) else {
            return Ok(());
        };
        // Asked once more, as about an answer in a text.
        self.refused_answers += 1;
        match self.refused_answers {
            0 | 1 => Ok(()),
            _ => {
                Err(self.fail(&format!("the answer of the model cannot be used, asked twice: {why}"), None)?)
            }
        }
    }

    fn run_together(&mut self, calls: &[ToolCall]) -> Result<(), AnyError> {
        let (own, of_host): (Vec<_>, Vec<_>) =
            calls.iter().map(|call| (call, self.own_result(call))).partition(|(_, result)| result.is_some());
        let own = own.into_iter().filter_map(|(_, result)| result);
        self.record(&own.map(TranscriptBody::ToolResult).collect::<Vec<_>>())?;
        let of_host: Vec<ToolCall> = of_host.into_iter().map(|(call, _)| call.clone()).collect();
        let Some(mut host) = self.host.take() else {
            let none = |call: ToolCall| result(&call, Err("this agent has no tools".to_owned()));
            return self
                .record(&of_host.into_iter().map(none).map(TranscriptBody::ToolResult).collect::<Vec<_>>());
        };
        let mut recorded = Ok(());
        host.run(&of_host, self.result_limit, |mut result| {
            if let Some(more) = self.nested_instructions(&of_host, &result) {
                result.text.push_str(&more);
            }
            let outcome = self.record(&[TranscriptBody::ToolResult(result)]);
            if recorded.is_ok() {
                recorded = outcome;
            }
        });
        self.host = Some(host);
        recorded
    }

    /// Instructions of the project for the file of a call, if the model does not have them yet.
    fn nested_instructions(&mut self, calls: &[ToolCall], result: &ToolResult) -> Option<String> {
        let call = calls.iter().find(|call| call.id == result.id).filter(|_| !result.is_error)?;
        self.instructions.as_mut()?.of_file(call.arguments.get("path")?.as_str()?)
    }

    /// Notices about what the model is given beside its task.
    fn notices(&mut self) -> Vec<TranscriptBody> {
        let of_project = self.instructions.iter().flat_map(|found| &found.notices);
        let all: Vec<String> = of_project.chain(&self.skills.notices).cloned().collect();
        all.iter().for_each(|text| self.display.act(text));
        all.into_iter().map(|text| TranscriptBody::Notice { text }).collect()
    }
}

fn result(call: &ToolCall, outcome: Result<String, String>) -> ToolResult {
    ToolResult::new(call.id.clone(), outcome)
}

/// Describes a reply that cannot be used as it is, for people.
fn problem(reply: &ModelReply) -> Option<String> {
    let what = match reply.kind {
        ReplyKind::Answer | ReplyKind::Calls => return None,
        ReplyKind::CutOff => "the reply was cut off",
        ReplyKind::Refused => "the model refused",
        ReplyKind::Empty => "the reply is empty",
    };
    Some(reply.detail.as_ref().map_or_else(|| what.to_owned(), |detail| format!("{what}: {detail}")))
}

/// Lines of a reply. The usage ends it.
fn lines_of(reply: ModelReply) -> Vec<TranscriptBody> {
    let ModelReply { reply, usage, kind, detail, duration_ms } = reply;
    let thinking = reply
        .thinking
        .into_iter()
        .map(|thought| TranscriptBody::Thinking { text: thought.text, provider_data: thought.provider_data });
    let text = (!reply.text.is_empty()).then_some(TranscriptBody::Message {
        role: Role::Assistant,
        text: reply.text,
        origin: None,
        steering: Vec::new(),
        images: Vec::new(),
    });
    let end = ReplyUsage { usage, duration_ms: Some(duration_ms), kind: Some(kind), detail };
    thinking
        .chain(text)
        .chain(reply.calls.into_iter().map(TranscriptBody::ToolCall))
        .chain([TranscriptBody::Usage(end)])
        .collect()
}

fn user(origin: Origin, text: String) -> TranscriptBody {
    let (steering, images) = (Vec::new(), Vec::new());
    TranscriptBody::Message { role: Role::User, text, origin: Some(origin), steering, images }
}

fn guidance(messages: &[cliq_sdk::SteeringMessage]) -> TranscriptBody {
    TranscriptBody::Message {
        role: Role::User,
        text: prompt::guidance(messages),
        origin: Some(Origin::Steering),
        steering: messages.iter().map(|message| message.id.clone()).collect(),
        images: Vec::new(),
    }
}

/// Call for people: the tool, and its most telling argument.
fn summary(call: &ToolCall) -> String {
    let telling = ["path", "command", "pattern", "message", "url", "question"];
    let argument = telling.iter().find_map(|name| call.arguments.get(*name)?.as_str());
    let argument = argument.and_then(|text| text.lines().next()).unwrap_or_default();
    format!("{} {argument}", call.name).trim_end().to_owned()
}
