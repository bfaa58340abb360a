//! Start of an agent: its command, in a sandbox if the phase has one, and the request for its conversation.

use std::process::Command;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_acp::client::{SessionRequest, UsageMeaning};
use cliq_acp::schema::{EnvVariable, HttpHeader, McpServer, McpServerHttp, McpServerStdio};
use cliq_protocol::{ConversationKind, ConversationPartner, PEOPLE_VARIABLE, Permissions};
use cliq_sandbox::Wrapper;
use cliq_sdk::PhaseContext;
use cliq_settings::{Environment, McpServerSettings, Secret, Settings};

use crate::AnyError;
use crate::llm::catalog::ModelAgent;
use crate::llm::open::state_paths;
use crate::llm::presets::{AfterRefusal, ResumeFitness, UsageReport};

/// Command, sandbox, policy and request for the conversation of an agent.
pub(crate) struct Launch {
    pub(super) name: String,
    program: Utf8PathBuf,
    args: Vec<String>,
    /// Variables for the program, by name.
    env: Vec<(String, Secret)>,
    /// Key that the program finds in its environment.
    known_key: Option<Secret>,
    pub(super) model: Option<String>,
    mode: Option<String>,
    /// Whether the user chose the mode. A mode of a preset is left out if the agent does not offer it.
    has_own_mode: bool,
    pub(super) permissions: Permissions,
    pub(super) workspace: Utf8PathBuf,
    wrapper: Option<Wrapper>,
    path: Option<String>,
    mcp_servers: Vec<McpServer>,
    pub(super) usage: UsageMeaning,
    pub(super) refusal: AfterRefusal,
    pub(super) resume: ResumeFitness,
}

/// Meaning of usage for the client.
fn meaning(report: UsageReport) -> UsageMeaning {
    match report {
        UsageReport::Turn | UsageReport::Unknown => UsageMeaning::Turn,
        UsageReport::LastRequest => UsageMeaning::LastRequest,
        UsageReport::Cumulative => UsageMeaning::Cumulative,
        UsageReport::Quota => UsageMeaning::Quota,
        UsageReport::Chunks => UsageMeaning::Chunks,
        UsageReport::Missing => UsageMeaning::None,
    }
}

impl Launch {
    /// Returns the launch of an agent without a phase: in a directory, without a sandbox.
    pub(super) fn plain(
        agent: &ModelAgent,
        settings: &Settings,
        environment: &Environment,
        dir: &Utf8Path,
    ) -> Self {
        let own = agent.settings(settings);
        let preset = agent.preset();
        // Arguments for a program of the user's are all that it gets.
        let of_preset = preset.filter(|_| own.command.is_none()).map_or(&[][..], |preset| preset.args);
        let base = own
            .base_url
            .clone()
            .and_then(|base| Some((agent.base_variable()?.to_owned(), Secret::new(base))));
        let key =
            own.api_key.clone().and_then(|key| Some(((*agent.key_variables().first()?).to_owned(), key)));
        Self {
            name: agent.name.clone(),
            program: agent.program(settings, environment).unwrap_or_else(|| agent.name.clone().into()),
            args: of_preset.iter().map(|arg| (*arg).to_owned()).chain(own.args).collect(),
            env: base.into_iter().chain(key).chain(own.env).collect(),
            known_key: agent.key(settings, environment),
            model: agent.model(settings, None),
            has_own_mode: own.mode.is_some(),
            mode: own.mode.or_else(|| preset?.mode.plain.map(str::to_owned)),
            permissions: own.permissions.unwrap_or(Permissions::Edits),
            workspace: dir.to_owned(),
            wrapper: None,
            path: environment.get("PATH").map(str::to_owned),
            mcp_servers: Vec::new(),
            usage: preset.map_or(UsageMeaning::Turn, |preset| meaning(preset.usage)),
            refusal: preset.map_or(AfterRefusal::Unknown, |preset| preset.refusal),
            resume: preset.map_or(ResumeFitness::Fit, |preset| preset.resume),
        }
    }

    /// Returns the launch of the agent of a phase.
    ///
    /// # Errors
    /// Returns an error if the sandbox of the phase, its permissions or an MCP server cannot be used.
    pub(crate) fn of_phase(
        agent: &ModelAgent,
        settings: &Settings,
        environment: &Environment,
        ctx: &PhaseContext,
    ) -> Result<Self, AnyError> {
        let mut this = Self::plain(agent, settings, environment, ctx.workspace());
        let own = agent.settings(settings);
        let variables: Vec<String> = agent
            .variables()
            .into_iter()
            .map(str::to_owned)
            .chain(this.env.iter().map(|(name, _)| name.clone()))
            .collect();
        this.wrapper = crate::wrapper(environment)?
            .map(|wrapper| wrapper.with(state_paths(agent, environment), variables));
        this.model = agent.model(settings, ctx.phase().model.as_deref());
        if this.wrapper.is_some() && !this.has_own_mode {
            this.mode = agent.preset().and_then(|preset| preset.mode.sandboxed).map(str::to_owned);
        }
        let by_place = || if this.wrapper.is_some() { Permissions::Allow } else { Permissions::Edits };
        let permissions = ctx.phase().permissions.clone().or(own.permissions).unwrap_or_else(by_place);
        this.permissions = permissions;
        this.mcp_servers = mcp_servers(settings, environment, ctx)?;
        Ok(this)
    }

    /// Agent of its conversations. The program's file stands for its version.
    pub(super) fn partner(&self) -> ConversationPartner {
        let path = self.program.canonicalize_utf8().unwrap_or_else(|_| self.program.clone());
        let version = std::fs::metadata(&path).ok().map(|file| format!("{path} {}", file.len()));
        ConversationPartner {
            kind: ConversationKind::Acp,
            agent: self.name.clone(),
            version,
            cwd: self.workspace.clone(),
        }
    }

    /// Values that are never shown.
    pub(in crate::llm) fn secrets(&self) -> Vec<String> {
        let values = self.env.iter().map(|(_, value)| value).chain(&self.known_key);
        values.map(|value| value.reveal().to_owned()).collect()
    }

    /// Whether a start without the mode may work where one with it did not.
    pub(super) fn drop_mode_of_preset(&mut self) -> bool {
        !self.has_own_mode && self.mode.take().is_some()
    }

    /// Returns the command of the agent.
    pub(super) fn command(&self) -> Result<Command, AnyError> {
        let mut command = match &self.wrapper {
            Some(wrapper) => {
                let (wrapper, before) = wrapper.command(&self.workspace, self.path.as_deref())?;
                let mut command = Command::new(wrapper);
                command.args(before).arg(&self.program);
                command
            }
            None => Command::new(&self.program),
        };
        command.args(&self.args).current_dir(&self.workspace).env_remove(PEOPLE_VARIABLE);
        command.envs(self.env.iter().map(|(name, value)| (name, value.reveal())));
        Ok(command)
    }

    /// Returns the request for a new conversation, or for the one with this id.
    pub(super) fn request(&self, resume: Option<String>) -> SessionRequest {
        SessionRequest {
            cwd: self.workspace.to_string(),
            mcp_servers: self.mcp_servers.clone(),
            resume,
            model: self.model.clone(),
            mode: self.mode.clone(),
            options: Vec::new(),
            usage: self.usage,
            answers_questions: self.permissions.may_ask(),
            client_version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

/// MCP servers of settings and team. The agent starts them, in its own sandbox.
fn mcp_servers(
    settings: &Settings,
    environment: &Environment,
    ctx: &PhaseContext,
) -> Result<Vec<McpServer>, AnyError> {
    let stdio = |name: &str, program: String, args: Vec<String>, env: Vec<String>| {
        // The agent may ask for an absolute path.
        let found = environment.find_program(&program).map_or(program, Utf8PathBuf::into_string);
        let value = |variable: String| Some(EnvVariable::new(variable.clone(), environment.get(&variable)?));
        let env = env.into_iter().filter_map(value).collect();
        McpServer::Stdio(McpServerStdio::new(name, found).args(args).env(env))
    };
    let mut servers = Vec::new();
    let names = McpServerSettings::names(settings);
    for name in &names {
        // All fields are named, so a new setting does not compile until it has a use here. The agent has its own deadlines, and a server that
        // is trusted would be outside of the agent's sandbox.
        let McpServerSettings { command, args, env, trusted: _, url, token, timeout: _ } =
            McpServerSettings::read(settings, name);
        servers.push(match (command, url) {
            (Some(program), None) => stdio(name, program, args, env),
            (None, Some(url)) => {
                let header =
                    |token: Secret| HttpHeader::new("Authorization", format!("Bearer {}", token.reveal()));
                McpServer::Http(
                    McpServerHttp::new(name, url).headers(token.map(header).into_iter().collect()),
                )
            }
            _ => {
                let why =
                    format!("the MCP server `{name}` needs one of `mcp.{name}.command` and `mcp.{name}.url`");
                return Err(why.into());
            }
        });
    }
    // A person's own server of the name goes first.
    for (name, spec) in ctx.dispatch().mcp.iter().filter(|(name, _)| !names.contains(*name)) {
        servers.push(match (&spec.command, &spec.url) {
            (Some(command), _) => {
                let program = match spec.program_of_team() {
                    Some(path) => ctx.cliq_dir().join("team").join(path).into_string(),
                    None => command.clone(),
                };
                stdio(name, program, spec.args.clone(), spec.env.clone())
            }
            (None, Some(url)) => McpServer::Http(McpServerHttp::new(name, url)),
            (None, None) => {
                return Err(format!("the MCP server `{name}` has neither a program nor a URL").into());
            }
        });
    }
    Ok(servers)
}
