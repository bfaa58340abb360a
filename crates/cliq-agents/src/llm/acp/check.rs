//! Check of an agent that speaks the Agent Client Protocol: it is started, and a conversation is opened. No model is asked.

use std::time::{Duration, Instant};

use camino::Utf8Path;
use cliq_acp::client::{
    AgentInfo, Client, Failure, Host, Limits, Origin, PermissionReply, PermissionRequest, SessionInfo, Update,
};
use cliq_settings::{AgentKind, Environment, Settings};

use super::launch::Launch;
use crate::AnyError;
use crate::llm::{ModelAgent, ServerState, Usable};

/// Result of a check.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AcpCheck {
    /// Reason why no conversation could be opened, or `None` if it could.
    pub problem: Option<String>,
    /// Path of the program, or the model and the address of an API.
    pub program: Option<String>,
    /// Names of the ways to sign in that the agent offers.
    pub sign_in: Vec<String>,
    /// Name and version that the agent reports.
    pub agent: Option<(String, String)>,
    /// Capabilities, or `None` if it did not report any.
    pub can: Option<Abilities>,
    /// Names that the setting `mode` can have.
    pub modes: Vec<String>,
    /// Names that the setting `model` can have.
    pub models: Vec<String>,
    /// Facts that the server of an API reported, for people.
    pub server: Option<String>,
    /// Settings that contradict them, for people.
    pub warnings: Vec<String>,
    /// Time until the conversation was open, or until the problem.
    pub took: Duration,
}

/// Capabilities of an agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Abilities {
    /// Whether it loads conversations.
    pub load: bool,
    /// Whether it resumes conversations without replaying them.
    pub resume: bool,
    /// Whether prompts can have images.
    pub images: bool,
    /// Whether it connects to MCP servers over HTTP.
    pub mcp_http: bool,
    /// Whether it takes guidance in the middle of a turn.
    pub steering: bool,
}

impl Abilities {
    /// Names of the capabilities that the agent has, for people.
    #[must_use]
    pub fn names(self) -> Vec<&'static str> {
        let all = [
            (self.resume, "resume"),
            (self.load, "load"),
            (self.images, "images"),
            (self.mcp_http, "MCP over HTTP"),
            (self.steering, "steering"),
        ];
        all.into_iter().filter_map(|(can, name)| can.then_some(name)).collect()
    }
}

/// Host of a conversation without a prompt.
struct Silent;

impl Host for Silent {
    fn update(&mut self, _: Origin, _: &Update) {}

    fn permission(&mut self, _: &PermissionRequest, reply: PermissionReply) {
        drop(reply);
    }
}

impl AcpCheck {
    /// Describes the agent in a line, for people.
    #[must_use]
    pub fn summary(&self) -> String {
        let agent =
            self.agent.as_ref().map(|(name, version)| format!("{name} {version}")).unwrap_or_default();
        let can = self.can.map(Abilities::names).unwrap_or_default().join(", ");
        let parts = [agent, self.program.clone().unwrap_or_default(), can];
        let parts: Vec<&str> = parts.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
        parts.join(", ")
    }

    fn tell(&mut self, agent: &AgentInfo) {
        if agent.name.is_empty() && agent.auth_methods.is_empty() {
            return;
        }
        self.agent = Some((agent.name.clone(), agent.version.clone()));
        self.sign_in.clone_from(&agent.auth_methods);
        self.can = Some(Abilities {
            load: agent.can_load,
            resume: agent.can_resume,
            images: agent.images,
            mcp_http: agent.mcp_http,
            steering: agent.can_steer,
        });
    }
}

impl ModelAgent {
    /// Checks whether the agent can work here. An agent of the kind `acp` is started, in an empty directory and without a sandbox; each of its
    /// answers may take `limit`.
    #[must_use]
    pub fn check(&self, settings: &Settings, environment: &Environment, limit: Duration) -> AcpCheck {
        let started = Instant::now();
        let mut check = AcpCheck::default();
        match self.usable(settings, environment) {
            Usable::No(why) => check.problem = Some(why),
            Usable::Yes(how) => {
                check.program = Some(how);
                if self.kind() == AgentKind::Acp
                    && let Err(error) = self.open_and_end(settings, environment, limit, &mut check)
                {
                    check.problem = Some(error.to_string());
                }
                let probe = crate::llm::probes(settings, environment)
                    .into_iter()
                    .find(|probe| probe.agent() == self.name);
                match probe.filter(|_| self.is_api()).map(|probe| probe.start()()) {
                    Some(state) if state.is_fault() => check.problem = Some(state.to_string()),
                    Some(ServerState::Known { facts, warnings }) => {
                        check.server = Some(facts.to_string());
                        check.warnings = warnings;
                    }
                    Some(state) if !state.is_ready() => check.warnings.push(state.to_string()),
                    Some(_) | None => {}
                }
            }
        }
        if check.took.is_zero() {
            check.took = started.elapsed();
        }
        check
    }

    fn open_and_end(
        &self,
        settings: &Settings,
        environment: &Environment,
        limit: Duration,
        check: &mut AcpCheck,
    ) -> Result<(), AnyError> {
        let started = Instant::now();
        let place = tempfile::tempdir()?;
        let dir = Utf8Path::from_path(place.path()).ok_or("the temporary directory is not UTF-8")?;
        let mut launch = Launch::plain(self, settings, environment, dir);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        loop {
            let limits = Limits { start: limit, ..Limits::default() };
            let client = Client::new(launch.command()?, launch.request(None))
                .with_limits(limits)
                .with_secrets(launch.secrets());
            let error = match runtime.block_on(client.start(&mut Silent)) {
                Ok(session) => {
                    check.took = started.elapsed();
                    check.tell(session.agent());
                    let SessionInfo { modes, models, .. } = session.info();
                    check.modes = modes.iter().map(|mode| mode.id.clone()).collect();
                    check.models = models.iter().map(|model| model.id.clone()).collect();
                    runtime.block_on(session.end(&mut Silent));
                    return Ok(());
                }
                Err(error) => error,
            };
            if let Failure::NotOffered { option, .. } = &*error.failure
                && option == "mode"
                && launch.drop_mode_of_preset()
            {
                continue;
            }
            check.took = started.elapsed();
            check.tell(&error.agent);
            let advice = self.preset().map(|preset| format!("; {}", preset.sign_in)).unwrap_or_default();
            let advice = if matches!(&*error.failure, Failure::SignInRequired { .. }) {
                advice
            } else {
                String::new()
            };
            let errors = error.errors.trim().lines().last().unwrap_or_default().to_owned();
            let errors = if errors.is_empty() { String::new() } else { format!(" ({errors})") };
            return Err(format!("{}{errors}{advice}", error.failure).into());
        }
    }
}
