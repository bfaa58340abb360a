//! Settings `agents.*` of model agents, and `builder.*`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cliq_protocol::{AgentTools, Effort, ExtraBody, ModelParameters, Permissions, Temperature};

use super::{choice, group};
use crate::layers::{Settings, Source};
use crate::secret::Secret;
use crate::value::{SettingValue, names};

group! {
    /// Settings of an agent that is a language model, or a program with one.
    Shared struct AgentSettings of agent {
        "agents.*.kind", kind: Option<AgentKind>,
            "what the agent is: `acp` for a program that speaks the Agent Client Protocol, an API, or the program of a vendor; any name that has a kind is an agent";
        "agents.*.preset", preset: Option<String>,
            "the known agent that an agent of the kind `acp` is, such as `opencode`; without it, that of its name";
        "agents.*.model", model: Option<String>, "the model that a built-in agent uses";
        "agents.*.api_key", api_key: Option<Secret>, "its key, where the environment has none";
        "agents.*.base_url", base_url: Option<String> as Url,
            "where its API is; any server that speaks that API will do";
        "agents.*.command", command: Option<String>,
            "the program of an agent that is a command line; without it, looked up on the PATH";
        "agents.*.args", args: Vec<String>,
            "more arguments for that program; for the kind `acp` with a `command`, all its arguments";
        "agents.*.env.*", env: BTreeMap<String, Secret>,
            "an environment variable that the agent's program gets in addition";
        "agents.*.mode", mode: Option<String>,
            "the mode of an agent of the kind `acp`; without it, by its preset";
        @Person "agents.*.permissions", permissions: Option<Permissions>,
            "answers to an agent of the kind `acp` that asks for permission, for phases that choose none; without it, `allow` in a sandbox and `edits` otherwise; only in the settings of a person";
        "agents.*.effort", effort: Option<Effort>,
            "how much a model behind an API thinks before it answers, for phases that choose nothing; without it, as its server does";
        "agents.*.temperature", temperature: Option<Temperature>,
            "the temperature of a model behind an API, for phases that choose none; without it, that of its server";
        "agents.*.max_tokens", max_tokens: Option<usize>, "the most tokens that one reply may have";
        "agents.*.extra_body", extra_body: ExtraBody,
            "further fields of requests to a model behind an API, as a JSON object such as {\"top_k\": 20}";
        "agents.*.cache_lifetime", cache_lifetime: Option<CacheLifetime>,
            "how long the vendor of a model keeps the beginning of a request in its cache: `5m`, `1h` (Anthropic; costs more) or `24h` (OpenAI); without it, by the vendor";
        "agents.*.tools", tools: Option<AgentTools>,
            "tools of an agent that is a model behind an API, for phases that choose none; without it, `full`, and `read` at gates";
        "agents.*.max_turns", max_turns: Option<usize>,
            "the most replies of a model behind an API in one activation; without it, 200";
        "agents.*.context_tokens", context_tokens: Option<usize>,
            "the most tokens that a request to a model behind an API and its reply may have together; without it, by the model";
        "agents.*.max_concurrent", max_concurrent: Option<usize>,
            "the most requests to a model behind an API at the same time, of all runs and processes of this machine";
        "agents.*.requests_per_minute", requests_per_minute: Option<usize>,
            "the most requests to a model behind an API in a minute, of all runs and processes of this machine";
        "agents.*.fallback", fallback: Vec<String>,
            "other models behind an API that go on with the conversation, in this order, after a permanent error or an outage";
        "agents.*.reply_timeout", reply_timeout: Option<Duration>,
            "the longest time without data while a model behind an API replies; without it, 5m";
        "agents.*.structured", structured: Option<bool>,
            "whether a model behind an API gives verdicts, and data with a schema, by a tool or as an object that its server enforces; without it, yes, with text as the fallback";
        "agents.*.project_instructions", project_instructions: Option<bool>,
            "whether a model behind an API is given the instructions of the project: `AGENTS.md`, else `CLAUDE.md` or `GEMINI.md`; without it, yes";
        "agents.*.images", images: Option<bool>,
            "whether a model behind an API sees the images that a task names; without it, at the vendor's own address only";
    }
}

impl AgentSettings {
    /// Returns the names of all agents that have a kind, sorted.
    #[must_use]
    pub fn named(settings: &Settings) -> BTreeSet<String> {
        let mut names = names(settings, Self::KEYS);
        names.retain(|name| Self::kind_of(settings, name).is_some());
        names
    }

    /// Returns the kind that the settings give an agent, or `None` if they give none. Each start of a run asks for all names: the other
    /// settings are not read.
    #[must_use]
    pub fn kind_of(settings: &Settings, agent: &str) -> Option<AgentKind> {
        settings.value_at(|| ["agents", agent, "kind"].into_iter()).and_then(AgentKind::from_json)
    }

    /// Parameters of requests to the model, for phases that choose none.
    #[must_use]
    pub fn parameters(&self) -> ModelParameters {
        ModelParameters {
            effort: self.effort,
            temperature: self.temperature,
            max_tokens: self.max_tokens.map(|tokens| tokens as u64),
            extra_body: self.extra_body.clone(),
        }
    }

    /// Whether the project's file sets a part of the command of an agent: its kind, preset, program, arguments, variables or addresses.
    #[must_use]
    pub fn is_command_of_project(settings: &Settings, agent: &str) -> bool {
        let parts = ["kind", "preset", "command", "args", "env", "base_url"];
        parts.iter().any(|part| settings.is_set_by_project(&["agents", agent, part]))
    }

    /// Returns the file that defines the kind of an agent, or `None` if none does.
    #[must_use]
    pub fn defined_in(settings: &Settings, agent: &str) -> Option<Source> {
        let entry = settings.entry(&format!("agents.{agent}.kind")).ok()?;
        entry.value.map(|_| entry.source)
    }
}

choice! {
    /// Kind of an agent: the program or the API behind it.
    enum AgentKind {
        /// Program that speaks the Agent Client Protocol.
        Acp = "acp",
        /// API of Anthropic, or a server that speaks it.
        Anthropic = "anthropic",
        /// API of OpenAI (chat completions), or a server that speaks it.
        OpenAi = "openai",
        /// API of OpenAI (responses), or a server that speaks it.
        OpenAiResponses = "openai-responses",
        /// API of Google, or a server that speaks it.
        Gemini = "gemini",
        /// Claude Code in its non-interactive mode.
        ClaudeCode = "claude-code",
        /// Cursor's program in its non-interactive mode.
        Cursor = "cursor",
        /// Gemini CLI in its non-interactive mode.
        GeminiCli = "gemini-cli",
        /// Codex in its non-interactive mode.
        Codex = "codex",
    }
}

choice! {
    /// Lifetime of the beginning of a request in the cache of a vendor.
    enum CacheLifetime {
        /// Five minutes, or as the vendor does.
        Minutes = "5m",
        /// An hour.
        Hour = "1h",
        /// A day.
        Day = "24h",
    }
}

group! {
    /// Settings of the model that builds and improves teams.
    Shared struct BuilderSettings {
        "builder.provider", provider: Option<ModelProvider>,
            "whose model builds and improves teams; without it, the first whose key is set";
        "builder.model", model: Option<String>, "the model that builds and improves teams";
        "builder.api_key", api_key: Option<Secret>, "its key, where the environment and `agents.*` have none";
        "builder.base_url", base_url: Option<String> as Url,
            "where its API is; any server that speaks that API will do";
    }
}

choice! {
    /// Provider of the model that builds teams.
    enum ModelProvider {
        /// Anthropic.
        Anthropic = "anthropic",
        /// OpenAI.
        OpenAi = "openai",
        /// Google.
        Google = "google",
    }
}
