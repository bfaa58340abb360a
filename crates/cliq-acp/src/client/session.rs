//! Facts about an agent and its session, and the calls that configure the session. Pure.

use agent_client_protocol_schema::v1::McpServer;
use serde_json::{Value, json};

use super::anomaly::Anomaly;
use super::outcome::Failure;
use super::usage::UsageMeaning;

/// Request for a session.
#[derive(Debug, Clone, Default)]
pub struct SessionRequest {
    /// Working directory of the session, absolute.
    pub cwd: String,
    /// MCP servers that the agent starts or connects to.
    pub mcp_servers: Vec<McpServer>,
    /// Id of the conversation to continue, or `None` for a new one.
    pub resume: Option<String>,
    /// Model, by its id or name.
    pub model: Option<String>,
    /// Mode, by its id or name.
    pub mode: Option<String>,
    /// Other options of the session: id and value.
    pub options: Vec<(String, Value)>,
    /// Meaning of the usage that the agent reports.
    pub usage: UsageMeaning,
    /// Whether questions of the agent can be answered. Otherwise forms are not offered.
    pub answers_questions: bool,
    /// Version of the client, or an empty text for the version of this crate.
    pub client_version: String,
}

impl SessionRequest {
    /// Parameters of `initialize`.
    pub(crate) fn initialize(&self) -> Value {
        let mut capabilities = json!({
            "fs": { "readTextFile": false, "writeTextFile": false },
            "terminal": false,
            // Notices come as such then, and not as messages of the agent.
            "session": { "notices": {} },
        });
        if self.answers_questions {
            capabilities["elicitation"] = json!({ "form": {} });
        }
        let version = match self.client_version.as_str() {
            "" => env!("CARGO_PKG_VERSION"),
            version => version,
        };
        json!({
            "protocolVersion": 1,
            "clientCapabilities": capabilities,
            "clientInfo": { "name": "cliq", "title": "cliq", "version": version },
        })
    }

    /// Parameters of `session/new`, `session/resume` or `session/load`, and the servers that the agent cannot use.
    pub(crate) fn open(&self, agent: &AgentInfo) -> (Value, Vec<Anomaly>) {
        let (mut servers, mut refused) = (Vec::new(), Vec::new());
        for server in &self.mcp_servers {
            let (is_usable, name, transport) = match server {
                McpServer::Http(server) => (agent.mcp_http, &server.name, "http"),
                McpServer::Sse(server) => (agent.mcp_sse, &server.name, "sse"),
                McpServer::Stdio(server) => (true, &server.name, "stdio"),
                _ => continue,
            };
            match serde_json::to_value(server) {
                Ok(server) if is_usable => servers.push(server),
                Ok(_) | Err(_) => {
                    refused
                        .push(Anomaly::McpTransport { name: name.clone(), transport: transport.to_owned() });
                }
            }
        }
        let mut params = json!({ "cwd": self.cwd, "mcpServers": servers });
        if let Some(session) = &self.resume {
            params["sessionId"] = session.as_str().into();
        }
        (params, refused)
    }

    /// Settings of the session in the order in which they are applied. The model may change which modes there are.
    pub(crate) fn settings(&self) -> Vec<Setting> {
        let setting = |kind, value: &String| Setting { kind, value: value.as_str().into() };
        let model = self.model.as_ref().map(|model| setting(SettingKind::Model, model));
        let mode = self.mode.as_ref().map(|mode| setting(SettingKind::Mode, mode));
        let others = self.options.iter().map(|(id, value)| {
            let kind = SettingKind::Option(id.clone());
            Setting { kind, value: value.clone() }
        });
        model.into_iter().chain(mode).chain(others).collect()
    }
}

/// Facts from the answer to `initialize`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentInfo {
    /// Name of the agent.
    pub name: String,
    /// Version of the agent.
    pub version: String,
    /// Whether `session/resume` is offered.
    pub can_resume: bool,
    /// Whether `session/load` is offered.
    pub can_load: bool,
    /// Whether messages can be sent into a running turn.
    pub can_steer: bool,
    /// Whether MCP servers over HTTP can be used.
    pub mcp_http: bool,
    /// Whether MCP servers over server-sent events can be used.
    pub mcp_sse: bool,
    /// Whether prompts may have images.
    pub images: bool,
    /// Names of the ways to sign in.
    pub auth_methods: Vec<String>,
}

impl AgentInfo {
    /// Reads the answer to `initialize`. What is missing or has the wrong type is not offered.
    ///
    /// # Errors
    /// Returns an error if the version is missing or is not 1.
    pub(crate) fn parse(result: &Value) -> Result<Self, Failure> {
        let version =
            result.get("protocolVersion").and_then(Value::as_i64).ok_or_else(|| Failure::InvalidAnswer {
                step: super::outcome::Step::Initialize,
                reason: "`protocolVersion` is not a number".to_owned(),
            })?;
        if version != 1 {
            return Err(Failure::UnsupportedVersion { version });
        }
        let is_true = |path: &str| result.pointer(path).and_then(Value::as_bool).unwrap_or(false);
        let text = |path: &str| result.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        let methods = result.get("authMethods").and_then(Value::as_array).into_iter().flatten();
        let name_of = |method: &Value| {
            let name = method.get("name").or_else(|| method.get("id")).and_then(Value::as_str)?;
            Some(name.to_owned())
        };
        Ok(Self {
            name: text("/agentInfo/name"),
            version: text("/agentInfo/version"),
            can_resume: result
                .pointer("/agentCapabilities/sessionCapabilities/resume")
                .is_some_and(Value::is_object),
            can_load: is_true("/agentCapabilities/loadSession"),
            can_steer: is_true("/_meta/steering/supported"),
            mcp_http: is_true("/agentCapabilities/mcpCapabilities/http"),
            mcp_sse: is_true("/agentCapabilities/mcpCapabilities/sse"),
            images: is_true("/agentCapabilities/promptCapabilities/image"),
            auth_methods: methods.filter_map(name_of).collect(),
        })
    }
}

/// Value that can be chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// Id.
    pub id: String,
    /// Name for people.
    pub name: String,
}

/// Session that is open, with what can be chosen in it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SessionInfo {
    /// Id of the conversation.
    pub id: String,
    /// Modes.
    pub modes: Vec<Choice>,
    /// Id of the current mode.
    pub mode: Option<String>,
    /// Models.
    pub models: Vec<Choice>,
    /// Id of the current model.
    pub model: Option<String>,
    /// Options of the session as the agent describes them.
    pub options: Vec<Value>,
}

impl SessionInfo {
    /// Reads the answer to `session/new`, `session/resume` or `session/load`.
    pub(crate) fn parse(id: String, result: &Value) -> Self {
        let mut info = Self { id, ..Self::default() };
        info.modes = choices(result.pointer("/modes/availableModes"), "id");
        info.mode = text_at(result, "/modes/currentModeId");
        info.models = choices(result.pointer("/models/availableModels"), "modelId");
        info.model = text_at(result, "/models/currentModelId");
        info.update_options(result);
        info
    }

    /// Takes over `configOptions`, if they are there.
    pub(crate) fn update_options(&mut self, value: &Value) {
        if let Some(options) = value.get("configOptions").and_then(Value::as_array) {
            self.options.clone_from(options);
            for (category, current, offered) in
                [("mode", &mut self.mode, &mut self.modes), ("model", &mut self.model, &mut self.models)]
            {
                if let Some(option) = find_option(&self.options, category) {
                    *current = text_at(option, "/currentValue");
                    *offered = choices(option.get("options"), "value");
                }
            }
        }
    }

    /// Returns the call that applies a setting, or `None` if it has the value already.
    ///
    /// # Errors
    /// Returns an error if the agent does not offer the option or the value.
    pub(crate) fn call_for(&self, setting: &Setting) -> Result<Option<SettingCall>, Failure> {
        let name = setting.kind.name();
        let option = find_option(&self.options, name);
        if let (SettingKind::Option(_), None) = (&setting.kind, option) {
            let offered = self.options.iter().filter_map(|option| text_at(option, "/id")).collect();
            let option = "session option".to_owned();
            return Err(Failure::NotOffered { option, value: name.to_owned(), offered });
        }
        let (offered, current) = match (option, &setting.kind) {
            (Some(option), _) => {
                (choices(option.get("options"), "value"), option.get("currentValue").cloned())
            }
            (None, SettingKind::Mode) => (self.modes.clone(), self.mode.as_deref().map(Value::from)),
            (None, SettingKind::Model | SettingKind::Option(_)) => {
                (self.models.clone(), self.model.as_deref().map(Value::from))
            }
        };
        if current.as_ref() == Some(&setting.value) {
            return Ok(None);
        }
        let value = match &setting.value {
            Value::String(wanted) if !offered.is_empty() || option.is_none() => {
                match find_choice(&offered, wanted) {
                    Some(choice) => Value::String(choice.id.clone()),
                    None => {
                        let offered = offered.iter().map(|choice| choice.id.clone()).collect();
                        return Err(Failure::NotOffered {
                            option: name.to_owned(),
                            value: wanted.clone(),
                            offered,
                        });
                    }
                }
            }
            other => other.clone(),
        };
        if current.as_ref() == Some(&value) {
            return Ok(None);
        }
        let (method, params) = match (option, &setting.kind) {
            (Some(option), _) => {
                let mut params =
                    json!({ "sessionId": self.id, "configId": option.get("id"), "value": value });
                if value.is_boolean() {
                    params["type"] = "boolean".into();
                }
                ("session/set_config_option", params)
            }
            (None, SettingKind::Mode) => {
                ("session/set_mode", json!({ "sessionId": self.id, "modeId": value }))
            }
            (None, SettingKind::Model | SettingKind::Option(_)) => {
                ("session/set_model", json!({ "sessionId": self.id, "modelId": value }))
            }
        };
        Ok(Some(SettingCall { method, params, value }))
    }

    /// Checks that the options show the value that was set. Returns the value that they show otherwise.
    pub(crate) fn differs(&self, kind: &SettingKind, value: &Value) -> Option<String> {
        let current = find_option(&self.options, kind.name())?.get("currentValue")?;
        (current != value).then(|| current.as_str().map_or_else(|| current.to_string(), ToOwned::to_owned))
    }
}

/// Option of a session that is to be set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SettingKind {
    Model,
    Mode,
    Option(String),
}

impl SettingKind {
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Model => "model",
            Self::Mode => "mode",
            Self::Option(id) => id,
        }
    }
}

/// Option and the value of the settings.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Setting {
    pub(crate) kind: SettingKind,
    pub(crate) value: Value,
}

impl Setting {
    pub(crate) fn shown_value(&self) -> String {
        self.value.as_str().map_or_else(|| self.value.to_string(), ToOwned::to_owned)
    }
}

/// Call that applies a setting.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SettingCall {
    pub(crate) method: &'static str,
    pub(crate) params: Value,
    /// Value as the agent names it.
    pub(crate) value: Value,
}

fn text_at(value: &Value, path: &str) -> Option<String> {
    value.pointer(path).and_then(Value::as_str).map(ToOwned::to_owned)
}

/// Finds an option by its id, else by its category.
fn find_option<'a>(options: &'a [Value], name: &str) -> Option<&'a Value> {
    let by = |key: &str| options.iter().find(|option| option.get(key).and_then(Value::as_str) == Some(name));
    by("id").or_else(|| by("category"))
}

/// Reads a list of choices. Groups are flattened.
fn choices(list: Option<&Value>, id: &str) -> Vec<Choice> {
    let entries = list.and_then(Value::as_array).into_iter().flatten();
    let flat = entries.flat_map(|entry| match entry.get("options").and_then(Value::as_array) {
        Some(group) => group.iter().collect(),
        None => vec![entry],
    });
    flat.filter_map(|entry| {
        let id = entry.get(id).and_then(Value::as_str)?.to_owned();
        let name = entry.get("name").and_then(Value::as_str).unwrap_or(&id).to_owned();
        Some(Choice { id, name })
    })
    .collect()
}

/// Finds a choice by its id, else by its name, else by the part of its id after `#`.
fn find_choice<'a>(offered: &'a [Choice], wanted: &str) -> Option<&'a Choice> {
    let is_named = |choice: &&Choice| choice.name.eq_ignore_ascii_case(wanted);
    let by_id = offered.iter().find(|choice| choice.id == wanted);
    by_id.or_else(|| offered.iter().find(is_named)).or_else(|| {
        let is_fragment = |choice: &&Choice| choice.id.rsplit_once('#').is_some_and(|(_, id)| id == wanted);
        offered.iter().find(is_fragment)
    })
}

#[cfg(test)]
mod tests {
    use agent_client_protocol_schema::v1::{
        InitializeRequest, McpServerHttp, McpServerStdio, NewSessionRequest,
    };

    use super::*;

    fn setting(kind: SettingKind, value: impl Into<Value>) -> Setting {
        Setting { kind, value: value.into() }
    }

    #[test]
    fn requests_follow_the_schema() {
        let request = SessionRequest {
            cwd: "/w".into(),
            mcp_servers: vec![
                McpServer::Stdio(McpServerStdio::new("tools", "/bin/tools")),
                McpServer::Http(McpServerHttp::new("web", "https://example.com")),
            ],
            answers_questions: true,
            ..SessionRequest::default()
        };
        let initialize: InitializeRequest = serde_json::from_value(request.initialize()).unwrap();
        let capabilities = initialize.client_capabilities;
        assert!(capabilities.session.is_some_and(|session| session.notices.is_some()));
        assert!(capabilities.elicitation.is_some_and(|elicitation| elicitation.form.is_some()));
        let (params, refused) = request.open(&AgentInfo::default());
        let new: NewSessionRequest = serde_json::from_value(params).unwrap();
        assert_eq!((new.mcp_servers.len(), refused.len()), (1, 1));
        let (params, refused) = request.open(&AgentInfo { mcp_http: true, ..AgentInfo::default() });
        assert_eq!((params["mcpServers"].as_array().unwrap().len(), refused), (2, vec![]));
    }

    #[test]
    fn versions_other_than_one_are_refused() {
        assert_eq!(
            AgentInfo::parse(&json!({ "protocolVersion": 2 })),
            Err(Failure::UnsupportedVersion { version: 2 })
        );
        assert!(AgentInfo::parse(&json!({ "protocolVersion": "1" })).is_err());
        let odd = json!({ "protocolVersion": 1, "agentCapabilities": [], "agentInfo": 3, "authMethods": { "a": 1 }, "_meta": { "steering": "yes" } });
        assert_eq!(AgentInfo::parse(&odd), Ok(AgentInfo::default()));
    }

    #[test]
    fn settings_use_options_first_and_modes_otherwise() {
        let modes = json!({ "modes": { "availableModes": [{ "id": "ask", "name": "Ask" }, { "id": "x#agent", "name": "Agent mode" }], "currentModeId": "ask" } });
        let info = SessionInfo::parse("s".into(), &modes);
        assert_eq!(info.call_for(&setting(SettingKind::Mode, "ask")), Ok(None));
        let call = info.call_for(&setting(SettingKind::Mode, "agent")).unwrap().unwrap();
        assert_eq!((call.method, &call.params["modeId"]), ("session/set_mode", &json!("x#agent")));

        let options = json!({ "configOptions": [
            { "id": "mode", "category": "mode", "currentValue": "a", "options": [{ "group": "g", "options": [{ "value": "a", "name": "A" }, { "value": "b", "name": "Bee" }] }] },
            { "id": "llm", "category": "model", "currentValue": "m1", "options": [{ "value": "m1", "name": "M1" }] },
            { "id": "fast", "type": "boolean", "currentValue": false },
        ] });
        let mut info = SessionInfo::parse("s".into(), &options);
        let call = info.call_for(&setting(SettingKind::Mode, "bee")).unwrap().unwrap();
        assert_eq!(call.params, json!({ "sessionId": "s", "configId": "mode", "value": "b" }));
        assert_eq!(info.differs(&SettingKind::Mode, &json!("b")).as_deref(), Some("a"));
        assert!(matches!(info.call_for(&setting(SettingKind::Model, "m2")), Err(Failure::NotOffered { .. })));
        let call = info.call_for(&setting(SettingKind::Option("fast".into()), true)).unwrap().unwrap();
        assert_eq!(call.params["type"], "boolean");
        assert!(info.call_for(&setting(SettingKind::Option("slow".into()), true)).is_err());
        info.update_options(&json!({ "configOptions": "none" }));
        assert_eq!(info.options.len(), 3);
        assert!(SessionInfo::default().call_for(&setting(SettingKind::Mode, "a")).is_err());
    }
}
