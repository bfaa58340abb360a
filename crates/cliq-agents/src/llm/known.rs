//! The model agents there are, what each needs, and whether it has it.

use std::os::unix::fs::PermissionsExt;

use camino::Utf8PathBuf;
use cliq_sdk::PhaseContext;
use cliq_settings::{Secret, Settings};

use super::Model;
use super::cli::{Cli, Dialect};
use crate::AnyError;

/// How a model agent reaches its model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Cli(Dialect),
    Api(ApiKind),
}

/// Whose API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ApiKind {
    Anthropic,
    OpenAi,
    Gemini,
}

/// A built-in agent that is a language model.
#[derive(Debug)]
pub struct ModelAgent {
    /// Its name in team.yml.
    pub name: &'static str,
    way: Way,
    /// The vendor's program, for a command line.
    program: &'static str,
    /// Variables that may hold its key, the likeliest first.
    key_variables: &'static [&'static str],
    base_variable: Option<&'static str>,
    default_base: &'static str,
    default_model: Option<&'static str>,
}

const fn cli(
    name: &'static str,
    dialect: Dialect,
    program: &'static str,
    key_variables: &'static [&'static str],
    base_variable: Option<&'static str>,
) -> ModelAgent {
    ModelAgent {
        name,
        way: Way::Cli(dialect),
        program,
        key_variables,
        base_variable,
        default_base: "",
        default_model: None,
    }
}

/// All of them, in the order in which a default is looked for.
pub static KNOWN: &[ModelAgent] = &[
    cli("claude-code", Dialect::ClaudeCode, "claude", &["ANTHROPIC_API_KEY"], Some("ANTHROPIC_BASE_URL")),
    cli("cursor", Dialect::Cursor, "cursor-agent", &["CURSOR_API_KEY"], None),
    cli("gemini", Dialect::Gemini, "gemini", &["GEMINI_API_KEY"], Some("GOOGLE_GEMINI_BASE_URL")),
    cli("codex", Dialect::Codex, "codex", &["CODEX_API_KEY"], None),
    ModelAgent {
        name: "claude-api",
        way: Way::Api(ApiKind::Anthropic),
        program: "",
        key_variables: &["ANTHROPIC_API_KEY"],
        base_variable: Some("ANTHROPIC_BASE_URL"),
        default_base: "https://api.anthropic.com",
        default_model: Some("claude-sonnet-4-20250514"),
    },
    ModelAgent {
        name: "openai-api",
        way: Way::Api(ApiKind::OpenAi),
        program: "",
        key_variables: &["OPENAI_API_KEY"],
        base_variable: Some("OPENAI_BASE_URL"),
        default_base: "https://api.openai.com/v1",
        default_model: Some("gpt-4o"),
    },
    ModelAgent {
        name: "gemini-api",
        way: Way::Api(ApiKind::Gemini),
        program: "",
        key_variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        base_variable: Some("GOOGLE_GEMINI_BASE_URL"),
        default_base: "https://generativelanguage.googleapis.com",
        default_model: Some("gemini-2.5-flash"),
    },
];

/// Whether an agent can work, and how or why not, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Usable {
    /// It can, as this says.
    Yes(String),
    /// It cannot, and this says what is missing and how to mend it.
    No(String),
}

/// Whether a built-in agent can work with these settings and this environment; `None` for names of no model agent.
#[must_use]
pub fn usable(name: &str, settings: &Settings) -> Option<Usable> {
    ModelAgent::find(name).map(|agent| agent.usable(settings))
}

impl ModelAgent {
    /// The agent of this name.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        KNOWN.iter().find(|agent| agent.name == name)
    }

    fn setting(&self, key: &str) -> String {
        format!("agents.{}.{key}", self.name)
    }

    fn key(&self, settings: &Settings) -> Option<Secret> {
        let from_env = self.key_variables.iter().find_map(|variable| variable_of(variable));
        from_env.map(Secret::new).or_else(|| settings.secret(&self.setting("api_key")))
    }

    /// The setting goes first here: a base URL is chosen, a key is had.
    fn base(&self, settings: &Settings) -> Option<String> {
        settings.text(&self.setting("base_url")).or_else(|| self.base_variable.and_then(variable_of))
    }

    fn program(&self, settings: &Settings) -> Option<Utf8PathBuf> {
        let configured = settings.text(&self.setting("command"));
        let names: Vec<&str> = match (&configured, self.way) {
            (Some(command), _) => vec![command],
            // Its installer has changed the name.
            (None, Way::Cli(Dialect::Cursor)) => vec![self.program, "agent"],
            (None, _) => vec![self.program],
        };
        names.into_iter().find_map(find_program)
    }

    /// Whether it can work with these settings and this environment.
    #[must_use]
    pub fn usable(&self, settings: &Settings) -> Usable {
        match self.way {
            Way::Cli(_) => match self.program(settings) {
                Some(program) => Usable::Yes(program.to_string()),
                None => {
                    let program =
                        settings.text(&self.setting("command")).unwrap_or_else(|| self.program.to_owned());
                    Usable::No(format!(
                        "`{program}` is not on the PATH: install it, or set `{}` to its path",
                        self.setting("command")
                    ))
                }
            },
            Way::Api(_) if !cfg!(feature = "http") => {
                Usable::No("this cliq was built without HTTP".to_owned())
            }
            Way::Api(_) => {
                let base = self.base(settings);
                // A server of one's own may want none.
                if self.key(settings).is_none() && base.is_none() {
                    return Usable::No(format!(
                        "there is no key: set the environment variable {} or `cliq settings set -g {} -`",
                        self.key_variables.join(" or "),
                        self.setting("api_key")
                    ));
                }
                let model = self.model(settings, None).unwrap_or_default();
                Usable::Yes(format!("{model} at {}", base.as_deref().unwrap_or(self.default_base)))
            }
        }
    }

    fn model(&self, settings: &Settings, phase: Option<&str>) -> Option<String> {
        let named = phase.map(str::to_owned).or_else(|| settings.text(&self.setting("model")));
        named.or_else(|| self.default_model.map(str::to_owned))
    }

    /// Makes it ready to be asked.
    pub(crate) fn open(&self, settings: &Settings, ctx: &PhaseContext) -> Result<Box<dyn Model>, AnyError> {
        if let Usable::No(why) = self.usable(settings) {
            return Err(why.into());
        }
        let model = self.model(settings, ctx.phase().model.as_deref());
        let (key, base) = (self.key(settings), self.base(settings));
        match self.way {
            Way::Cli(dialect) => Ok(Box::new(Cli {
                dialect,
                name: self.name,
                program: self.program(settings).unwrap_or_else(|| self.program.into()),
                args: settings.list(&self.setting("args")),
                model,
                // What the environment has, the program has too.
                key: settings.secret(&self.setting("api_key")).map(|key| (self.key_variables[0], key)),
                known_key: key,
                base,
                base_variable: self.base_variable,
                workspace: ctx.workspace().to_owned(),
                prompt_file: ctx.files_dir().join(".prompt.md"),
            })),
            #[cfg(feature = "http")]
            Way::Api(kind) => Ok(Box::new(super::api::Api::new(super::api::Access {
                kind,
                name: self.name,
                base: base.unwrap_or_else(|| self.default_base.to_owned()),
                key,
                model: model.unwrap_or_default(),
                max_tokens: settings.count(&self.setting("max_tokens")),
            }))),
            #[cfg(not(feature = "http"))]
            Way::Api(_) => Err("this cliq was built without HTTP".into()),
        }
    }
}

fn variable_of(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn find_program(name: &str) -> Option<Utf8PathBuf> {
    let executable = |path: &Utf8PathBuf| {
        path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    if name.contains('/') {
        return Some(Utf8PathBuf::from(name)).filter(executable);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .filter_map(|dir| Utf8PathBuf::from_path_buf(dir).ok())
        .map(|dir| dir.join(name))
        .find(executable)
}
