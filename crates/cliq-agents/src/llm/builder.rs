//! The model that builds and improves teams: settings `builder.*`.
// A new outcome has to be handled by name.
#![deny(clippy::wildcard_enum_match_arm)]

use cliq_coder::Turn;
use cliq_protocol::ReplyKind;
use cliq_sdk::StandardContext;
use cliq_settings::{BuilderSettings, Environment, ModelProvider, Settings};

use super::Reply;
use super::api::{Access, Api, ModelRequest};
use super::catalog::ModelAgent;
use super::display::Display;
use super::kinds::Transport;
use super::meter::Meter;
use crate::AnyError;

/// Providers, and the agents whose API may be used.
const PROVIDERS: [(ModelProvider, &str); 3] = [
    (ModelProvider::Anthropic, "claude-api"),
    (ModelProvider::OpenAi, "openai-api"),
    (ModelProvider::Google, "gemini-api"),
];

/// A conversation with the model that builds teams.
pub(crate) struct Builder<'a> {
    model: Api,
    display: Display<'a>,
    meter: Meter<'a>,
    turns: Vec<Turn>,
}

impl<'a> Builder<'a> {
    /// The model that the settings name, else the first whose key is set.
    pub(crate) fn open(ctx: &'a StandardContext, environment: &Environment) -> Result<Self, AnyError> {
        let settings = crate::settings_of(ctx.cliq_dir(), environment)?;
        let model = Api::new(access(&settings, environment)?);
        let (display, meter) = (Display::new(ctx.reporter()), Meter::new(ctx.reporter()));
        Ok(Self { model, display, meter, turns: Vec::new() })
    }

    /// Asks a question, or about the last answer.
    pub(crate) fn request(&mut self, question: String) -> Result<Reply, AnyError> {
        self.turns.push(Turn::User { text: question, images: Vec::new() });
        let request = ModelRequest {
            system: None,
            turns: &self.turns,
            tools: &[],
            may_call: false,
            schema: None,
            images: &[],
            reply_cap: None,
        };
        let answer = self.model.request(&request, &mut self.display, &mut self.meter, &mut |_, _| {});
        let answer = answer.map_err(|failed| failed.message)?;
        match answer.kind {
            ReplyKind::Answer => {}
            ReplyKind::CutOff | ReplyKind::Refused | ReplyKind::Empty | ReplyKind::Calls => {
                let why = answer
                    .detail
                    .unwrap_or_else(|| format!("the reply of {} is {}", self.model.model(), answer.kind));
                return Err(why.into());
            }
        }
        let reply = Reply::parse(&answer.reply.text);
        self.turns.push(Turn::Assistant(answer.reply));
        Ok(reply)
    }
}

fn access(settings: &Settings, environment: &Environment) -> Result<Access, AnyError> {
    let BuilderSettings { provider: wanted, model: own_model, api_key: own_key, base_url: own_base } =
        BuilderSettings::read(settings);
    let agents = PROVIDERS.iter().filter(|(provider, _)| wanted.is_none_or(|wanted| wanted == *provider));
    let agents: Vec<ModelAgent> = agents.filter_map(|(_, agent)| ModelAgent::find(agent, settings)).collect();
    let with_key = agents.iter().find(|agent| agent.key(settings, environment).is_some());
    let agent = with_key.or(agents.first().filter(|_| wanted.is_some())).ok_or(
        "there is no model to build teams with: set `builder.provider` and `builder.api_key`, or a key such as ANTHROPIC_API_KEY",
    )?;
    let Transport::Api(kind) = agent.transport() else { return Err("the provider has no API".into()) };
    let base = own_base.or_else(|| agent.base(settings, environment));
    let model = own_model.or_else(|| agent.model(settings, None));
    let key = agent.key(settings, environment).or(own_key);
    Ok(agent.access(settings, kind, key, base, model.unwrap_or_default()))
}
