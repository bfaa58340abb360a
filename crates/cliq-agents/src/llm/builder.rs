//! The model that builds and improves teams: settings `builder.*`.

use cliq_sdk::{StandardContext, Steering};
use cliq_settings::{Environment, Settings};

use super::api::{Access, Api};
use super::catalog::{ModelAgent, Transport};
use super::display::Display;
use super::meter::Meter;
use super::{Conversation, Model, Reply};
use crate::AnyError;

/// The agents whose API may be used, and the names of their providers.
const PROVIDERS: [(&str, &str); 3] =
    [("anthropic", "claude-api"), ("openai", "openai-api"), ("google", "gemini-api")];

/// A conversation with the model that builds teams.
pub(crate) struct Builder<'a> {
    model: Api,
    display: Display<'a>,
    meter: Meter<'a>,
    steering: Steering,
    conversation: Option<(Conversation, String)>,
}

impl<'a> Builder<'a> {
    /// The model that the settings name, else the first whose key is set.
    pub(crate) fn open(ctx: &'a StandardContext, environment: &Environment) -> Result<Self, AnyError> {
        let settings = crate::settings_of(ctx.cliq_dir(), environment)?;
        let model = Api::new(access(&settings, environment)?);
        let (display, meter) = (Display::new(ctx.reporter()), Meter::new(ctx.reporter()));
        Ok(Self { model, display, meter, steering: ctx.steering().live_only(), conversation: None })
    }

    /// Asks a question.
    pub(crate) fn first(&mut self, question: String) -> Result<Reply, AnyError> {
        self.converse(Conversation::new(question))
    }

    /// Asks about the last answer.
    pub(crate) fn again(&mut self, question: String) -> Result<Reply, AnyError> {
        let (mut conversation, answer) = self.conversation.take().ok_or("nothing was asked before")?;
        conversation.again(answer, question);
        self.converse(conversation)
    }

    fn converse(&mut self, conversation: Conversation) -> Result<Reply, AnyError> {
        let answer = self.model.ask(&conversation, &mut self.display, &mut self.meter, &mut self.steering)?;
        self.display.finish();
        let reply = Reply::parse(&answer);
        self.conversation = Some((conversation, answer));
        Ok(reply)
    }
}

fn access(settings: &Settings, environment: &Environment) -> Result<Access, AnyError> {
    let wanted = settings.text("builder.provider");
    let own_key = || settings.secret("builder.api_key");
    let agents =
        PROVIDERS.iter().filter(|(provider, _)| wanted.as_deref().is_none_or(|name| name == *provider));
    let agents: Vec<&ModelAgent> = agents.filter_map(|(_, agent)| ModelAgent::find(agent)).collect();
    let with_key = agents.iter().find(|agent| agent.key(settings, environment).is_some());
    let agent = with_key.or(agents.first().filter(|_| wanted.is_some())).ok_or(
        "there is no model to build teams with: set `builder.provider` and `builder.api_key`, or a key such as ANTHROPIC_API_KEY",
    )?;
    let Transport::Api(kind) = agent.transport else { return Err("the provider has no API".into()) };
    let base = settings.text("builder.base_url").or_else(|| agent.base(settings, environment));
    let model = settings.text("builder.model").or_else(|| agent.model(settings, None));
    Ok(Access {
        kind,
        name: agent.name,
        base: base.unwrap_or_else(|| agent.default_base.to_owned()),
        key: agent.key(settings, environment).or_else(own_key),
        model: model.unwrap_or_default(),
        max_tokens: settings.count(&agent.setting("max_tokens")),
    })
}
