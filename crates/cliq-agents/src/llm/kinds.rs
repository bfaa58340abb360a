//! Kinds of model agents: the transport to the model, and what a program or an API of the kind needs.

use cliq_settings::AgentKind;

use super::cli::Dialect;

/// Transport between a model agent and its model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transport {
    Cli(Dialect),
    Api(ApiKind),
    /// Agent Client Protocol.
    Acp,
}

/// Protocol of a model API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ApiKind {
    Anthropic,
    OpenAi,
    Responses,
    Gemini,
}

/// Model that an API agent uses if nothing else is chosen, by the vendors' documentation of November 2026. Each is the vendor's model
/// for everyday work with tools.
#[derive(Debug, Clone, Copy)]
pub(super) struct DefaultModel {
    pub(super) name: &'static str,
    /// Maximum number of tokens of a request and its reply.
    pub(super) context_tokens: u64,
}

const CLAUDE: DefaultModel = DefaultModel { name: "claude-sonnet-5-5", context_tokens: 1_000_000 };
const GPT: DefaultModel = DefaultModel { name: "gpt-6.1-sol", context_tokens: 1_050_000 };
const GEMINI: DefaultModel = DefaultModel { name: "gemini-3.8-flash", context_tokens: 1_048_576 };

/// Facts of a kind of agent.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) kind: AgentKind,
    pub(super) transport: Transport,
    /// Names of the program of a command line, the likeliest first.
    pub(super) programs: &'static [&'static str],
    /// Variables that may hold its key, the likeliest first.
    pub(super) key_variables: &'static [&'static str],
    pub(super) base_variable: Option<&'static str>,
    pub(super) default_base: &'static str,
    pub(super) default_model: Option<DefaultModel>,
    /// Paths below the home directory where the vendor's program keeps its state. Directories end with `/`.
    pub(super) state: &'static [&'static str],
    /// Variable that names another directory for its state.
    pub(super) state_variable: Option<&'static str>,
}

const NOTHING: Facts = Facts {
    kind: AgentKind::Acp,
    transport: Transport::Acp,
    programs: &[],
    key_variables: &[],
    base_variable: None,
    default_base: "",
    default_model: None,
    state: &[],
    state_variable: None,
};

/// Facts of all kinds other than `acp`.
pub(super) static KINDS: &[Facts] = &[
    Facts {
        kind: AgentKind::ClaudeCode,
        transport: Transport::Cli(Dialect::ClaudeCode),
        programs: &["claude"],
        key_variables: &["ANTHROPIC_API_KEY"],
        base_variable: Some("ANTHROPIC_BASE_URL"),
        state: &[".claude/", ".claude.json", ".cache/claude-cli-nodejs/"],
        state_variable: Some("CLAUDE_CONFIG_DIR"),
        ..NOTHING
    },
    Facts {
        kind: AgentKind::Cursor,
        transport: Transport::Cli(Dialect::Cursor),
        // Its installer has changed the name.
        programs: &["cursor-agent", "agent"],
        key_variables: &["CURSOR_API_KEY"],
        state: &[".cursor/", ".config/cursor/"],
        ..NOTHING
    },
    Facts {
        kind: AgentKind::GeminiCli,
        transport: Transport::Cli(Dialect::Gemini),
        programs: &["gemini"],
        key_variables: &["GEMINI_API_KEY"],
        base_variable: Some("GOOGLE_GEMINI_BASE_URL"),
        state: &[".gemini/"],
        ..NOTHING
    },
    Facts {
        kind: AgentKind::Codex,
        transport: Transport::Cli(Dialect::Codex),
        programs: &["codex"],
        key_variables: &["CODEX_API_KEY"],
        state: &[".codex/"],
        state_variable: Some("CODEX_HOME"),
        ..NOTHING
    },
    Facts {
        kind: AgentKind::Anthropic,
        transport: Transport::Api(ApiKind::Anthropic),
        key_variables: &["ANTHROPIC_API_KEY"],
        base_variable: Some("ANTHROPIC_BASE_URL"),
        default_base: "https://api.anthropic.com",
        default_model: Some(CLAUDE),
        ..NOTHING
    },
    Facts {
        kind: AgentKind::OpenAi,
        transport: Transport::Api(ApiKind::OpenAi),
        key_variables: &["OPENAI_API_KEY"],
        base_variable: Some("OPENAI_BASE_URL"),
        default_base: "https://api.openai.com/v1",
        default_model: Some(GPT),
        ..NOTHING
    },
    Facts {
        kind: AgentKind::OpenAiResponses,
        transport: Transport::Api(ApiKind::Responses),
        key_variables: &["OPENAI_API_KEY"],
        base_variable: Some("OPENAI_BASE_URL"),
        default_base: "https://api.openai.com/v1",
        default_model: Some(GPT),
        ..NOTHING
    },
    Facts {
        kind: AgentKind::Gemini,
        transport: Transport::Api(ApiKind::Gemini),
        key_variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        base_variable: Some("GOOGLE_GEMINI_BASE_URL"),
        default_base: "https://generativelanguage.googleapis.com",
        default_model: Some(GEMINI),
        ..NOTHING
    },
];

/// Facts of the kind `acp`: those of each agent are in its preset.
pub(super) static ACP: Facts = NOTHING;

/// Model agents that need no settings, with their kinds, in the order in which a default is looked for.
pub(super) const BUILT_IN: [(&str, AgentKind); 7] = [
    ("claude-code", AgentKind::ClaudeCode),
    ("cursor", AgentKind::Cursor),
    ("gemini", AgentKind::GeminiCli),
    ("codex", AgentKind::Codex),
    ("claude-api", AgentKind::Anthropic),
    ("openai-api", AgentKind::OpenAi),
    ("gemini-api", AgentKind::Gemini),
];
