//! Answer to `initialize`: the offer of the agent, and the offer of the client.

use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v1::{
    AgentCapabilities, AuthMethod, Implementation, InitializeRequest, InitializeResponse, PromptCapabilities,
    SessionCapabilities, SessionListCapabilities, SessionResumeCapabilities,
};

/// Name, version and ways to sign in of an agent.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AgentProfile {
    /// Name of the program.
    pub name: String,
    /// Version of the program.
    pub version: String,
    /// Name for people.
    pub title: Option<String>,
    /// Ways to sign in. Those in a terminal are offered to clients that can open one.
    pub auth_methods: Vec<AuthMethod>,
}

impl AgentProfile {
    /// Returns a profile without ways to sign in.
    #[must_use]
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self { name: name.into(), version: version.into(), title: None, auth_methods: Vec::new() }
    }

    /// Sets the name for people.
    #[must_use]
    pub fn with_title(self, title: impl Into<String>) -> Self {
        Self { title: Some(title.into()), ..self }
    }

    /// Sets the ways to sign in.
    #[must_use]
    pub fn with_auth_methods(self, auth_methods: Vec<AuthMethod>) -> Self {
        Self { auth_methods, ..self }
    }

    /// Returns the answer to `initialize`: version 1 of the protocol, and only what the machine implements.
    pub(super) fn answer(&self, request: &InitializeRequest) -> InitializeResponse {
        let sessions = SessionCapabilities::new()
            .list(SessionListCapabilities::new())
            .resume(SessionResumeCapabilities::new());
        let capabilities = AgentCapabilities::new()
            .load_session(true)
            .prompt_capabilities(PromptCapabilities::new().embedded_context(true))
            .session_capabilities(sessions);
        let has_terminal = has_terminal(request);
        let offered = |method: &&AuthMethod| has_terminal || !matches!(method, AuthMethod::Terminal(_));
        InitializeResponse::new(ProtocolVersion::V1)
            .agent_capabilities(capabilities)
            .auth_methods(self.auth_methods.iter().filter(offered).cloned().collect())
            .agent_info(Implementation::new(&self.name, &self.version).title(self.title.clone()))
    }
}

/// Whether a client can sign in by a terminal: by the capability of the protocol, or by the mark that came before it.
fn has_terminal(request: &InitializeRequest) -> bool {
    let client = &request.client_capabilities;
    let mark = client.meta.as_ref().and_then(|meta| meta.get("terminal-auth"));
    client.auth.terminal || mark.is_some_and(|mark| *mark == true)
}

/// Whether a client shows forms.
pub(super) fn has_forms(request: &InitializeRequest) -> bool {
    request.client_capabilities.elicitation.as_ref().is_some_and(|offer| offer.form.is_some())
}
