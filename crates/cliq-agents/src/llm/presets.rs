//! Table of known agents that speak the Agent Client Protocol (docs/agents.md): command, mode, state, and facts that were measured.

/// Known agent that speaks the Agent Client Protocol.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Preset {
    /// Name of the preset, and of an agent that needs no `preset` setting.
    pub name: &'static str,
    /// Package that contains the program.
    pub package: &'static str,
    /// Names of the program, the likeliest first.
    pub programs: &'static [&'static str],
    /// Arguments of the program.
    pub args: &'static [&'static str],
    /// Mode of the conversation.
    pub mode: PresetMode,
    /// Variables that may hold its key.
    pub key_variables: &'static [&'static str],
    /// Variable that holds the address of its model.
    pub base_variable: Option<&'static str>,
    /// Other variables that it reads.
    pub variables: &'static [&'static str],
    /// Paths below the home directory where it keeps its state. Directories end with `/`.
    pub state: &'static [&'static str],
    /// Variable that names another directory for its state.
    pub state_variable: Option<&'static str>,
    /// Meaning of the usage that it reports.
    pub usage: UsageReport,
    /// Behaviour after a permission is refused.
    pub refusal: AfterRefusal,
    /// Fitness to continue a conversation in a new process.
    pub resume: ResumeFitness,
    /// Way to sign in, for people.
    pub sign_in: &'static str,
}

/// Mode of a conversation, by the place where the agent runs. `None` keeps the agent's own default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PresetMode {
    /// Mode without a sandbox of cliq.
    pub plain: Option<&'static str>,
    /// Mode within a sandbox of cliq.
    pub sandboxed: Option<&'static str>,
}

/// Meaning of the usage that an agent reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsageReport {
    /// Tokens of each turn.
    Turn,
    /// Tokens of the last request of a turn: what came before is unknown.
    LastRequest,
    /// Tokens of the whole conversation.
    Cumulative,
    /// Tokens of a turn in the metadata of its end.
    Quota,
    /// Tokens of each request in the metadata of updates.
    Chunks,
    /// None: usage is estimated from the texts.
    Missing,
    /// Unknown: what the agent reports is read as the tokens of each turn.
    Unknown,
}

impl UsageReport {
    /// Describes what a budget can hold, for people.
    #[must_use]
    pub fn budget(self) -> &'static str {
        match self {
            Self::Turn => {
                "tokens are reported at the end of each turn: a budget ends the work before the next turn"
            }
            Self::LastRequest => {
                "tokens of the last request of a turn only: a budget counts too little in turns with several requests"
            }
            Self::Cumulative => {
                "tokens of the whole conversation at the end of each turn: a budget ends the work before the next turn"
            }
            Self::Quota => {
                "tokens are reported at the end of each turn: a budget ends the work before the next turn"
            }
            Self::Chunks => {
                "tokens of each request are counted at the end of the turn: a budget ends the work before the next turn"
            }
            Self::Missing => "no tokens are reported: a budget works with estimates from the texts",
            Self::Unknown => "unknown: estimates from the texts are used if the agent reports no tokens",
        }
    }
}

/// Behaviour of an agent after a permission is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterRefusal {
    /// The turn continues, and the model learns of the refusal.
    Continues,
    /// The turn ends.
    EndsTurn,
    /// The agent asks for no permissions.
    NeverAsks,
    /// Not known.
    Unknown,
}

impl AfterRefusal {
    /// Describes the behaviour, for people.
    #[must_use]
    pub fn about(self) -> &'static str {
        match self {
            Self::Continues => "goes on after a refusal",
            Self::EndsTurn => "ends its turn after a refusal",
            Self::NeverAsks => "asks for no permissions: only a sandbox restricts it",
            Self::Unknown => "behaviour after a refusal is not known",
        }
    }
}

/// Fitness of an agent to continue a conversation in a new process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResumeFitness {
    /// Fit, if it offers `session/resume` or `session/load`.
    Fit,
    /// Fit from the clock minute after the conversation was opened: loading it earlier destroys it.
    NextMinute,
    /// Finished turns are kept. A prompt that was under way when the process was killed is forgotten.
    ForgetsUnfinished,
}

const NO_MODE: PresetMode = PresetMode { plain: None, sandboxed: None };

const fn mode(name: &'static str) -> PresetMode {
    PresetMode { plain: Some(name), sandboxed: Some(name) }
}

const BASE: Preset = Preset {
    name: "",
    package: "",
    programs: &[],
    args: &[],
    mode: NO_MODE,
    key_variables: &[],
    base_variable: None,
    variables: &[],
    state: &[],
    state_variable: None,
    usage: UsageReport::Unknown,
    refusal: AfterRefusal::Unknown,
    resume: ResumeFitness::Fit,
    sign_in: "",
};

/// All presets, those that were measured first.
pub static PRESETS: &[Preset] = &[
    Preset {
        name: "gemini",
        package: "@google/gemini-cli (npm)",
        programs: &["gemini"],
        args: &["--acp", "--skip-trust"],
        mode: mode("default"),
        key_variables: &["GEMINI_API_KEY"],
        base_variable: Some("GOOGLE_GEMINI_BASE_URL"),
        variables: &["GOOGLE_API_KEY", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION"],
        state: &[".gemini/"],
        usage: UsageReport::Quota,
        refusal: AfterRefusal::Continues,
        resume: ResumeFitness::NextMinute,
        sign_in: "start `gemini` once, or set GEMINI_API_KEY and choose the key in ~/.gemini/settings.json",
        ..BASE
    },
    Preset {
        name: "claude-agent",
        package: "@agentclientprotocol/claude-agent-acp (npm)",
        programs: &["claude-agent-acp"],
        mode: mode("default"),
        key_variables: &["ANTHROPIC_API_KEY"],
        base_variable: Some("ANTHROPIC_BASE_URL"),
        state: &[".claude/", ".claude.json", ".cache/claude-cli-nodejs/"],
        state_variable: Some("CLAUDE_CONFIG_DIR"),
        usage: UsageReport::Turn,
        refusal: AfterRefusal::Continues,
        sign_in: "start `claude` and sign in there, or set ANTHROPIC_API_KEY",
        ..BASE
    },
    Preset {
        name: "codex",
        package: "@agentclientprotocol/codex-acp (npm)",
        programs: &["codex-acp"],
        // Its own sandbox does not work within another one.
        mode: PresetMode { plain: Some("agent"), sandboxed: Some("agent-full-access") },
        key_variables: &["CODEX_API_KEY", "OPENAI_API_KEY"],
        state: &[".codex/"],
        state_variable: Some("CODEX_HOME"),
        usage: UsageReport::Turn,
        refusal: AfterRefusal::EndsTurn,
        sign_in: "start `codex login`, or set CODEX_API_KEY",
        ..BASE
    },
    Preset {
        name: "opencode",
        package: "opencode-ai (npm)",
        programs: &["opencode"],
        args: &["acp"],
        mode: mode("build"),
        state: &[".config/opencode/", ".local/share/opencode/", ".local/state/opencode/", ".cache/opencode/"],
        usage: UsageReport::LastRequest,
        refusal: AfterRefusal::EndsTurn,
        sign_in: "start `opencode auth login`",
        ..BASE
    },
    Preset {
        name: "qwen",
        package: "@qwen-code/qwen-code (npm)",
        programs: &["qwen"],
        args: &["--acp"],
        mode: mode("default"),
        key_variables: &["OPENAI_API_KEY"],
        base_variable: Some("OPENAI_BASE_URL"),
        variables: &["OPENAI_MODEL"],
        state: &[".qwen/"],
        usage: UsageReport::Chunks,
        refusal: AfterRefusal::EndsTurn,
        sign_in: "start `qwen` once, or set OPENAI_API_KEY, OPENAI_BASE_URL and OPENAI_MODEL",
        ..BASE
    },
    Preset {
        name: "copilot",
        package: "@github/copilot (npm)",
        programs: &["copilot"],
        args: &["--acp"],
        mode: mode("https://agentclientprotocol.com/protocol/session-modes#agent"),
        key_variables: &["COPILOT_GITHUB_TOKEN", "COPILOT_PROVIDER_API_KEY"],
        base_variable: Some("COPILOT_PROVIDER_BASE_URL"),
        variables: &["COPILOT_PROVIDER_TYPE", "COPILOT_MODEL", "COPILOT_OFFLINE"],
        state: &[".copilot/", ".cache/copilot/"],
        usage: UsageReport::Cumulative,
        refusal: AfterRefusal::EndsTurn,
        sign_in: "start `copilot login`",
        ..BASE
    },
    Preset {
        name: "vibe",
        package: "mistral-vibe (PyPI)",
        programs: &["vibe-acp"],
        mode: mode("default"),
        key_variables: &["MISTRAL_API_KEY"],
        state: &[".vibe/"],
        usage: UsageReport::Cumulative,
        refusal: AfterRefusal::Continues,
        sign_in: "start `vibe` once, or set MISTRAL_API_KEY",
        ..BASE
    },
    Preset {
        name: "hermes",
        package: "hermes-agent (PyPI)",
        programs: &["hermes-acp"],
        state: &[".hermes/"],
        state_variable: Some("HERMES_HOME"),
        usage: UsageReport::Cumulative,
        sign_in: "start `hermes-acp --setup`",
        ..BASE
    },
    Preset {
        name: "fast-agent",
        package: "fast-agent-mcp (PyPI)",
        programs: &["fast-agent-acp"],
        state: &[".fast-agent/"],
        usage: UsageReport::Missing,
        refusal: AfterRefusal::NeverAsks,
        resume: ResumeFitness::ForgetsUnfinished,
        sign_in: "set the keys in fast-agent.secrets.yaml, or in the variables of the providers",
        ..BASE
    },
    Preset {
        name: "kilo",
        package: "@kilocode/cli (npm)",
        programs: &["kilo"],
        args: &["acp"],
        state: &[".config/kilo/", ".local/share/kilo/", ".local/state/kilo/", ".cache/kilo/"],
        usage: UsageReport::LastRequest,
        refusal: AfterRefusal::EndsTurn,
        sign_in: "start `kilo auth login`",
        ..BASE
    },
    Preset {
        name: "pi",
        package: "pi-acp (npm)",
        programs: &["pi-acp"],
        state: &[".pi/"],
        usage: UsageReport::Missing,
        refusal: AfterRefusal::NeverAsks,
        sign_in: "start `pi-acp --terminal-login`",
        ..BASE
    },
    Preset {
        name: "goose",
        package: "goose",
        programs: &["goose"],
        args: &["acp"],
        variables: &["GOOSE_PROVIDER", "GOOSE_MODEL", "GOOSE_MODE"],
        state: &[".config/goose/", ".local/share/goose/", ".local/state/goose/"],
        sign_in: "start `goose configure`",
        ..BASE
    },
    Preset {
        name: "cursor",
        package: "cursor-agent",
        programs: &["cursor-agent", "agent"],
        args: &["acp"],
        key_variables: &["CURSOR_API_KEY"],
        state: &[".cursor/", ".config/cursor/"],
        sign_in: "start `cursor-agent login`, or set CURSOR_API_KEY",
        ..BASE
    },
    Preset {
        name: "auggie",
        package: "@augmentcode/auggie (npm)",
        programs: &["auggie"],
        args: &["--acp"],
        state: &[".augment/"],
        sign_in: "start `auggie login`",
        ..BASE
    },
    Preset {
        name: "cline",
        package: "cline (npm)",
        programs: &["cline"],
        args: &["--acp"],
        state: &[".cline/"],
        sign_in: "start `cline auth`",
        ..BASE
    },
];

impl Preset {
    /// Returns the preset of this name, or `None` if there is none.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        PRESETS.iter().find(|preset| preset.name == name)
    }

    /// Returns the variables that the agent reads.
    pub fn all_variables(&self) -> impl Iterator<Item = &'static str> + use<> {
        let (keys, others) = (self.key_variables, self.variables);
        keys.iter()
            .copied()
            .chain(self.base_variable)
            .chain(others.iter().copied())
            .chain(self.state_variable)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn presets_are_complete() {
        let names: BTreeSet<&str> = PRESETS.iter().map(|preset| preset.name).collect();
        assert_eq!(names.len(), PRESETS.len(), "names are unique");
        for preset in PRESETS {
            let has_all =
                !preset.programs.is_empty() && !preset.package.is_empty() && !preset.sign_in.is_empty();
            assert!(has_all, "{}", preset.name);
            assert!(preset.state.iter().all(|path| !path.starts_with('/')), "{}", preset.name);
        }
    }

    #[test]
    fn documentation_lists_every_preset() {
        let page = include_str!("../../../../docs/agents.md");
        for preset in PRESETS {
            assert!(
                page.contains(&format!("| `{}`", preset.name)),
                "docs/agents.md has no row for {}",
                preset.name
            );
        }
    }
}
