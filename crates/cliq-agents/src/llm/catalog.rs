//! The catalog of model agents: what each needs, and whether it is there.

use camino::Utf8PathBuf;
use cliq_settings::{AgentSettings, Environment, Secret, Settings};

use super::cli::Dialect;

/// Transport between a model agent and its model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transport {
    Cli(Dialect),
    Api(ApiKind),
}

/// Protocol of a model API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ApiKind {
    Anthropic,
    OpenAi,
    Gemini,
}

/// Model that an API agent uses if nothing else is chosen, by the vendors' documentation of November 2026. Each is the vendor's model
/// for everyday work with tools.
#[derive(Debug, Clone, Copy)]
struct DefaultModel {
    name: &'static str,
    /// Maximum number of tokens of a request and its reply.
    context_tokens: u64,
}

const CLAUDE: DefaultModel = DefaultModel { name: "claude-sonnet-5-5", context_tokens: 1_000_000 };
const GPT: DefaultModel = DefaultModel { name: "gpt-6.1-sol", context_tokens: 1_050_000 };
const GEMINI: DefaultModel = DefaultModel { name: "gemini-3.8-flash", context_tokens: 1_048_576 };

/// Context of other models at a vendor's own address, and of models at other servers.
const USUAL_CONTEXT: u64 = 200_000;
const LOCAL_CONTEXT: u64 = 32_768;

/// A built-in agent that is a language model.
#[derive(Debug)]
pub struct ModelAgent {
    /// Name in team.yml.
    pub name: &'static str,
    pub(super) transport: Transport,
    /// The vendor's program, for a command line.
    pub(super) program: &'static str,
    /// Variables that may hold its key, the likeliest first.
    pub(super) key_variables: &'static [&'static str],
    pub(super) base_variable: Option<&'static str>,
    pub(super) default_base: &'static str,
    default_model: Option<DefaultModel>,
    /// Paths below the home directory where the vendor's program keeps its state. Directories end with `/`.
    pub(super) state: &'static [&'static str],
    /// Variable that names another directory for its state.
    pub(super) state_variable: Option<&'static str>,
}

const fn cli(
    name: &'static str,
    dialect: Dialect,
    program: &'static str,
    key_variables: &'static [&'static str],
    base_variable: Option<&'static str>,
    (state, state_variable): (&'static [&'static str], Option<&'static str>),
) -> ModelAgent {
    ModelAgent {
        name,
        transport: Transport::Cli(dialect),
        program,
        key_variables,
        base_variable,
        default_base: "",
        default_model: None,
        state,
        state_variable,
    }
}

/// All of them, in the order in which a default is looked for.
pub static MODEL_AGENTS: &[ModelAgent] = &[
    cli(
        "claude-code",
        Dialect::ClaudeCode,
        "claude",
        &["ANTHROPIC_API_KEY"],
        Some("ANTHROPIC_BASE_URL"),
        (&[".claude/", ".claude.json", ".cache/claude-cli-nodejs/"], Some("CLAUDE_CONFIG_DIR")),
    ),
    cli(
        "cursor",
        Dialect::Cursor,
        "cursor-agent",
        &["CURSOR_API_KEY"],
        None,
        (&[".cursor/", ".config/cursor/"], None),
    ),
    cli(
        "gemini",
        Dialect::Gemini,
        "gemini",
        &["GEMINI_API_KEY"],
        Some("GOOGLE_GEMINI_BASE_URL"),
        (&[".gemini/"], None),
    ),
    cli("codex", Dialect::Codex, "codex", &["CODEX_API_KEY"], None, (&[".codex/"], Some("CODEX_HOME"))),
    ModelAgent {
        name: "claude-api",
        transport: Transport::Api(ApiKind::Anthropic),
        program: "",
        key_variables: &["ANTHROPIC_API_KEY"],
        base_variable: Some("ANTHROPIC_BASE_URL"),
        default_base: "https://api.anthropic.com",
        default_model: Some(CLAUDE),
        state: &[],
        state_variable: None,
    },
    ModelAgent {
        name: "openai-api",
        transport: Transport::Api(ApiKind::OpenAi),
        program: "",
        key_variables: &["OPENAI_API_KEY"],
        base_variable: Some("OPENAI_BASE_URL"),
        default_base: "https://api.openai.com/v1",
        default_model: Some(GPT),
        state: &[],
        state_variable: None,
    },
    ModelAgent {
        name: "gemini-api",
        transport: Transport::Api(ApiKind::Gemini),
        program: "",
        key_variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        base_variable: Some("GOOGLE_GEMINI_BASE_URL"),
        default_base: "https://generativelanguage.googleapis.com",
        default_model: Some(GEMINI),
        state: &[],
        state_variable: None,
    },
];

/// Whether an agent can work, and how or why not, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Usable {
    /// The agent can be used. The text describes how.
    Yes(String),
    /// The agent cannot be used. The text names the missing part and the remedy.
    No(String),
}

/// Whether a built-in agent can work with these settings and this environment; `None` for names of no model agent.
#[must_use]
pub(crate) fn usable(name: &str, settings: &Settings, environment: &Environment) -> Option<Usable> {
    ModelAgent::find(name).map(|agent| agent.usable(settings, environment))
}

impl ModelAgent {
    /// The agent of this name.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        MODEL_AGENTS.iter().find(|agent| agent.name == name)
    }

    /// The variables that it looks at.
    pub(crate) fn variables(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.key_variables.iter().copied().chain(self.base_variable)
    }

    /// Returns the settings of the agent.
    pub(super) fn settings(&self, settings: &Settings) -> AgentSettings {
        AgentSettings::read(settings, self.name)
    }

    /// Returns the key of a setting of the agent, for messages.
    pub(super) fn setting(&self, key: &str) -> String {
        format!("agents.{}.{key}", self.name)
    }

    pub(super) fn key(&self, settings: &Settings, environment: &Environment) -> Option<Secret> {
        let from_env = self.key_variables.iter().find_map(|variable| environment.get(variable));
        from_env.map(Secret::new).or_else(|| self.settings(settings).api_key)
    }

    /// Returns the base URL. Unlike for keys, the setting takes precedence over the environment: it is the more specific choice.
    pub(super) fn base(&self, settings: &Settings, environment: &Environment) -> Option<String> {
        let from_env = || Some(environment.get(self.base_variable?)?.to_owned());
        self.settings(settings).base_url.or_else(from_env)
    }

    pub(super) fn program(&self, settings: &Settings, environment: &Environment) -> Option<Utf8PathBuf> {
        let configured = self.settings(settings).command;
        let names: Vec<&str> = match (&configured, self.transport) {
            (Some(command), _) => vec![command],
            // Its installer has changed the name.
            (None, Transport::Cli(Dialect::Cursor)) => vec![self.program, "agent"],
            (None, _) => vec![self.program],
        };
        names.into_iter().find_map(|name| environment.find_program(name))
    }

    /// Whether it can work with these settings and this environment.
    #[must_use]
    pub fn usable(&self, settings: &Settings, environment: &Environment) -> Usable {
        match self.transport {
            Transport::Cli(_) => match self.program(settings, environment) {
                Some(program) => Usable::Yes(program.to_string()),
                None => {
                    let program = self.settings(settings).command.unwrap_or_else(|| self.program.to_owned());
                    Usable::No(format!(
                        "`{program}` is not on the PATH: install it, or set `{}` to its path",
                        self.setting("command")
                    ))
                }
            },
            Transport::Api(_) if !cfg!(feature = "http") => {
                Usable::No("this cliq was built without HTTP".to_owned())
            }
            Transport::Api(_) => {
                let base = self.base(settings, environment);
                // A server of one's own may want none.
                if self.key(settings, environment).is_none() && base.is_none() {
                    return Usable::No(format!(
                        "there is no key: set the environment variable {} or `cliq settings set -g {} -`",
                        self.key_variables.join(" or "),
                        self.setting("api_key")
                    ));
                }
                let model = self.model(settings, None).unwrap_or_default();
                let address =
                    cliq_protocol::without_credentials(base.as_deref().unwrap_or(self.default_base));
                Usable::Yes(format!("{model} at {address}"))
            }
        }
    }

    /// Whether the agent is a model behind an API, which calls tools through cliq.
    #[must_use]
    pub fn is_api(&self) -> bool {
        matches!(self.transport, Transport::Api(_))
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
        let base = base.unwrap_or_else(|| self.default_base.to_owned());
        let own = self.settings(settings);
        let timeout = own.reply_timeout.filter(|timeout| !timeout.is_zero());
        let mut access = super::api::Access {
            kind,
            name: self.name,
            is_at_vendor: base.trim_end_matches('/') == self.default_base,
            base,
            key,
            model,
            max_tokens: own.max_tokens,
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
        let of_default =
            self.default_model.filter(|model| model.name == access.model).map(|model| model.context_tokens);
        let usual = if self.is_at_its_vendor(access) { USUAL_CONTEXT } else { LOCAL_CONTEXT };
        set.or(of_default.filter(|_| self.is_at_its_vendor(access))).unwrap_or(usual)
    }

    pub(super) fn model(&self, settings: &Settings, phase: Option<&str>) -> Option<String> {
        let named = phase.map(str::to_owned).or_else(|| self.settings(settings).model);
        named.or_else(|| self.default_model.map(|model| model.name.to_owned()))
    }
}
