//! Settings `agents.*` of model agents, and `builder.*`.

use std::time::Duration;

use cliq_protocol::AgentTools;

use super::{choice, group};
use crate::secret::Secret;

group! {
    /// Settings of an agent that is a language model.
    Shared struct AgentSettings of agent {
        "agents.*.model", model: Option<String>, "the model that a built-in agent uses";
        "agents.*.api_key", api_key: Option<Secret>, "its key, where the environment has none";
        "agents.*.base_url", base_url: Option<String> as Url,
            "where its API is; any server that speaks that API will do";
        "agents.*.command", command: Option<String>,
            "the program of an agent that is a vendor's command line; without it, looked up on the PATH";
        "agents.*.args", args: Vec<String>, "more arguments for that program";
        "agents.*.max_tokens", max_tokens: Option<usize>, "the most tokens that one reply may have";
        "agents.*.tools", tools: Option<AgentTools>,
            "tools of an agent that is a model behind an API, for phases that choose none; without it, `full`, and `read` at gates";
        "agents.*.max_turns", max_turns: Option<usize>,
            "the most replies of a model behind an API in one activation; without it, 200";
        "agents.*.context_tokens", context_tokens: Option<usize>,
            "the most tokens that a request to a model behind an API and its reply may have together; without it, by the model";
        "agents.*.reply_timeout", reply_timeout: Option<Duration>,
            "the longest time without data while a model behind an API replies; without it, 5m";
        "agents.*.images", images: Option<bool>,
            "whether a model behind an API sees the images that a task names; without it, at the vendor's own address only";
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
