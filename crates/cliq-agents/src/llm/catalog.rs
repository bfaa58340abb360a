//! The catalog of model agents: what each needs, and whether it is there.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use cliq_settings::{AgentKind, AgentSettings, Environment, Secret, Settings, Source};

use super::kinds::{ACP, ApiKind, BUILT_IN, Facts, KINDS, Transport};
use super::presets::{PRESETS, Preset};

/// Context of other models at a vendor's own address, and of models at other servers.
const USUAL_CONTEXT: u64 = 200_000;
const LOCAL_CONTEXT: u64 = 32_768;

/// An agent that is a language model or a program with one: built in, or defined by the settings.
#[derive(Debug, Clone)]
pub struct ModelAgent {
    /// Name in team.yml.
    pub name: String,
    pub(super) kind: AgentKind,
    pub(super) facts: &'static Facts,
    /// Known agent behind the kind `acp`.
    pub(super) preset: Option<&'static Preset>,
    /// Whether the settings define it: its name alone has no kind, or another one.
    is_named: bool,
}

/// Whether an agent can work, and how or why not, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Usable {
    /// The agent can be used. The text describes how.
    Yes(String),
    /// The agent cannot be used. The text names the missing part and the remedy.
    No(String),
}

/// Whether a model agent can work with these settings and this environment; `None` for names of no model agent.
#[must_use]
pub(crate) fn usable(name: &str, settings: &Settings, environment: &Environment) -> Option<Usable> {
    ModelAgent::find(name, settings).map(|agent| agent.usable(settings, environment))
}

/// Returns the variables that model agents of all kinds look at.
pub(crate) fn variables() -> impl Iterator<Item = &'static str> {
    let of_kinds =
        KINDS.iter().flat_map(|facts| facts.key_variables.iter().copied().chain(facts.base_variable));
    of_kinds.chain(PRESETS.iter().flat_map(Preset::all_variables))
}

/// Name that settings cannot give a kind, with the reason.
fn is_reserved(name: &str) -> bool {
    cliq_workflow::BUILT_IN.contains(&name) && BUILT_IN.iter().all(|(known, _)| *known != name)
}

impl ModelAgent {
    /// The agent of this name: of the settings, or built in.
    #[must_use]
    pub fn find(name: &str, settings: &Settings) -> Option<Self> {
        let own = AgentSettings::kind_of(settings, name);
        let built_in = BUILT_IN.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind);
        let kind = own.filter(|_| !is_reserved(name)).or(built_in)?;
        let preset = (kind == AgentKind::Acp)
            .then(|| Preset::find(AgentSettings::read(settings, name).preset.as_deref().unwrap_or(name)));
        Some(Self {
            name: name.to_owned(),
            kind,
            facts: KINDS.iter().find(|facts| facts.kind == kind).unwrap_or(&ACP),
            preset: preset.flatten(),
            is_named: built_in != Some(kind),
        })
    }

    /// All of them, in the order in which a default is looked for: built-in ones, then those that the settings define.
    #[must_use]
    pub fn all(settings: &Settings) -> Vec<Self> {
        let built_in = BUILT_IN.iter().map(|(name, _)| (*name).to_owned());
        let named = Self::names(settings).into_iter();
        built_in.chain(named).filter_map(|name| Self::find(&name, settings)).collect()
    }

    /// Names of the agents that the settings define beside the built-in ones, sorted.
    #[must_use]
    pub fn names(settings: &Settings) -> Vec<String> {
        let names = AgentSettings::named(settings).into_iter();
        names.filter(|name| !cliq_workflow::BUILT_IN.contains(&name.as_str())).collect()
    }

    /// Returns kinds in the settings that have no effect, as the name is that of another built-in agent. Each has the reason.
    #[must_use]
    pub fn refused(settings: &Settings) -> BTreeMap<String, String> {
        let names = AgentSettings::named(settings).into_iter().filter(|name| is_reserved(name));
        names
            .map(|name| {
                let why = format!(
                    "`agents.{name}.kind` has no effect: `{name}` is a built-in agent that is no model; choose another name"
                );
                (name, why)
            })
            .collect()
    }

    /// Kind of the agent.
    #[must_use]
    pub fn kind(&self) -> AgentKind {
        self.kind
    }

    /// Known agent behind the kind `acp`, or `None` if it is another kind or not a known one.
    #[must_use]
    pub fn preset(&self) -> Option<&'static Preset> {
        self.preset
    }

    /// File that defines the kind of the agent, or `None` if it is built in.
    #[must_use]
    pub fn defined_in(&self, settings: &Settings) -> Option<Source> {
        AgentSettings::defined_in(settings, &self.name)
    }

    /// Whether a person, and not a project, chose everything that decides which program is started.
    #[must_use]
    pub fn is_chosen_by_person(&self, settings: &Settings) -> bool {
        !AgentSettings::is_command_of_project(settings, &self.name)
    }

    pub(super) fn transport(&self) -> Transport {
        self.facts.transport
    }

    /// Variables that may hold its key, the likeliest first.
    pub(super) fn key_variables(&self) -> &'static [&'static str] {
        self.preset.map_or(self.facts.key_variables, |preset| preset.key_variables)
    }

    pub(super) fn base_variable(&self) -> Option<&'static str> {
        self.preset.map_or(self.facts.base_variable, |preset| preset.base_variable)
    }

    /// Paths below the home directory where its program keeps its state.
    pub(super) fn state(&self) -> &'static [&'static str] {
        self.preset.map_or(self.facts.state, |preset| preset.state)
    }

    /// Variable that names another directory for its state.
    pub(super) fn state_variable(&self) -> Option<&'static str> {
        self.preset.map_or(self.facts.state_variable, |preset| preset.state_variable)
    }

    /// The variables that its program looks at.
    pub(super) fn variables(&self) -> Vec<&'static str> {
        let of_kind =
            self.key_variables().iter().copied().chain(self.base_variable()).chain(self.state_variable());
        let others = self.preset.map_or(&[][..], |preset| preset.variables);
        of_kind.chain(others.iter().copied()).collect()
    }

    /// Returns the settings of the agent.
    pub(super) fn settings(&self, settings: &Settings) -> AgentSettings {
        AgentSettings::read(settings, &self.name)
    }

    /// Returns the key of a setting of the agent, for messages.
    pub(super) fn setting(&self, key: &str) -> String {
        format!("agents.{}.{key}", self.name)
    }

    /// Returns the key of the API. A key of the environment is not for the address that settings give to an agent of their own.
    pub(super) fn key(&self, settings: &Settings, environment: &Environment) -> Option<Secret> {
        let own = self.settings(settings);
        let from_env =
            || self.key_variables().iter().find_map(|variable| environment.get(variable)).map(Secret::new);
        match (self.is_named, own.base_url) {
            (true, Some(_)) => own.api_key,
            (true, None) => own.api_key.or_else(from_env),
            (false, _) => from_env().or(own.api_key),
        }
    }

    /// Returns the base URL. Unlike for keys, the setting takes precedence over the environment: it is the more specific choice.
    pub(super) fn base(&self, settings: &Settings, environment: &Environment) -> Option<String> {
        let from_env = || Some(environment.get(self.base_variable()?)?.to_owned());
        self.settings(settings).base_url.or_else(from_env)
    }

    pub(super) fn program(&self, settings: &Settings, environment: &Environment) -> Option<Utf8PathBuf> {
        let configured = self.settings(settings).command;
        let names: Vec<&str> = match &configured {
            Some(command) => vec![command],
            None => self.programs().to_vec(),
        };
        names.into_iter().find_map(|name| environment.find_program(name))
    }

    pub(super) fn programs(&self) -> &'static [&'static str] {
        self.preset.map_or(self.facts.programs, |preset| preset.programs)
    }

    /// Whether it can work with these settings and this environment.
    #[must_use]
    pub fn usable(&self, settings: &Settings, environment: &Environment) -> Usable {
        match self.transport() {
            Transport::Cli(_) | Transport::Acp => self.usable_program(settings, environment),
            Transport::Api(_) if !cfg!(feature = "http") => {
                Usable::No("this cliq was built without HTTP".to_owned())
            }
            Transport::Api(_) => {
                let base = self.base(settings, environment);
                // A server of one's own may want none.
                if self.key(settings, environment).is_none() && base.is_none() {
                    return Usable::No(format!(
                        "there is no key: set the environment variable {} or `cliq settings set -g {} -`",
                        self.key_variables().join(" or "),
                        self.setting("api_key")
                    ));
                }
                let model = self.model(settings, None).unwrap_or_default();
                let address =
                    cliq_protocol::without_credentials(base.as_deref().unwrap_or(self.facts.default_base));
                Usable::Yes(format!("{model} at {address}"))
            }
        }
    }

    fn usable_program(&self, settings: &Settings, environment: &Environment) -> Usable {
        let own = self.settings(settings);
        if self.transport() == Transport::Acp {
            if let Some(unknown) = own.preset.as_deref().filter(|name| Preset::find(name).is_none()) {
                let known: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
                return Usable::No(format!(
                    "`{}`: there is no preset `{unknown}`; there are {}",
                    self.setting("preset"),
                    known.join(", ")
                ));
            }
            if self.preset.is_none() && own.command.is_none() {
                return Usable::No(format!(
                    "no program is known for it: set `{}` to its program and `{}` to its arguments, or `{}` to a known agent",
                    self.setting("command"),
                    self.setting("args"),
                    self.setting("preset")
                ));
            }
        }
        match self.program(settings, environment) {
            Some(program) => Usable::Yes(program.to_string()),
            None => {
                let program = own.command.as_deref().or(self.programs().first().copied()).unwrap_or_default();
                let package = self.preset.filter(|_| own.command.is_none());
                let package = package.map(|preset| format!(" ({})", preset.package)).unwrap_or_default();
                Usable::No(format!(
                    "`{program}` is not on the PATH: install it{package}, or set `{}` to its path",
                    self.setting("command")
                ))
            }
        }
    }

    /// Whether the agent is a model behind an API, which calls tools through cliq.
    #[must_use]
    pub fn is_api(&self) -> bool {
        matches!(self.transport(), Transport::Api(_))
    }

    /// Model that the agent uses in phases that name none; `None` if its program decides.
    #[must_use]
    pub fn default_model(&self, settings: &Settings) -> Option<String> {
        self.model(settings, None)
    }

    /// Returns how to reach the model.
    #[cfg(feature = "http")]
    pub(super) fn access(
        &self,
        settings: &Settings,
        kind: ApiKind,
        key: Option<Secret>,
        base: Option<String>,
        model: String,
    ) -> super::api::Access {
        let base = base.unwrap_or_else(|| self.facts.default_base.to_owned());
        let own = self.settings(settings);
        let timeout = own.reply_timeout.filter(|timeout| !timeout.is_zero());
        let mut access = super::api::Access {
            kind,
            name: self.name.clone(),
            is_at_vendor: base.trim_end_matches('/') == self.facts.default_base,
            base,
            key,
            model,
            parameters: own.parameters(),
            places: None,
            cache_key: None,
            cache_lifetime: own.cache_lifetime,
            context_tokens: 0,
            reply_timeout: timeout.unwrap_or(super::api::REPLY_TIMEOUT),
        };
        access.context_tokens = self.context_tokens(settings, &access);
        access
    }

    /// Whether requests go to the vendor's own address.
    #[cfg(feature = "http")]
    pub(super) fn is_at_its_vendor(&self, access: &super::api::Access) -> bool {
        access.is_at_vendor
    }

    /// Maximum number of tokens of a request and its reply.
    #[cfg(feature = "http")]
    pub(super) fn context_tokens(&self, settings: &Settings, access: &super::api::Access) -> u64 {
        let set = self.settings(settings).context_tokens.map(|tokens| tokens as u64);
        let of_default = self
            .facts
            .default_model
            .filter(|model| model.name == access.model)
            .map(|model| model.context_tokens);
        let usual = if self.is_at_its_vendor(access) { USUAL_CONTEXT } else { LOCAL_CONTEXT };
        set.or(of_default.filter(|_| self.is_at_its_vendor(access))).unwrap_or(usual)
    }

    pub(super) fn model(&self, settings: &Settings, phase: Option<&str>) -> Option<String> {
        let named = phase.map(str::to_owned).or_else(|| self.settings(settings).model);
        named.or_else(|| self.facts.default_model.map(|model| model.name.to_owned()))
    }
}
