//! Requests that ask the servers of models whether they answer, and which models they have.

mod facts;

use std::fmt;
use std::sync::mpsc;
use std::time::Duration;

use cliq_protocol::{shorten, without_credentials};
use cliq_settings::{Environment, Secret, Settings};
use serde_json::Value;

use super::catalog::ModelAgent;
use super::cli::Dialect;
use super::kinds::{ApiKind, Transport};
pub use facts::ServerFacts;

/// Time in which a server answers.
const DEADLINE: Duration = Duration::from_secs(3);
/// Additional time for the lookup of a name, which cannot be interrupted.
const LOOKUP: Duration = Duration::from_secs(1);
/// Maximum number of models that are named.
const NAMED: usize = 5;
/// Maximum number of bytes of a reason.
const REASON: usize = 300;

/// Request for the models of a server.
#[derive(Debug)]
pub struct ServerProbe {
    agent: ModelAgent,
    kind: ApiKind,
    base: String,
    key: Option<Secret>,
    model: Option<String>,
    /// Maximum number of tokens that the agent counts with, if it is a model behind an API.
    context_tokens: Option<u64>,
    /// Whether it has tools by its settings.
    wants_tools: bool,
}

/// State of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerState {
    /// The server has the model, or the program of the vendor chooses one.
    Ready,
    /// The server has the model, and says more about itself.
    Known {
        /// Facts that it reported.
        facts: ServerFacts,
        /// Settings that contradict them, for people.
        warnings: Vec<String>,
    },
    /// The server answers and does not list its models.
    NoList,
    /// The server lists models, and the one that the agent uses is not among them.
    NoModel {
        /// Model that the agent uses.
        model: String,
        /// Models of the server.
        known: Vec<String>,
        /// Setting that chooses the model.
        setting: String,
    },
    /// The server refuses the key, or asks for one.
    NoAccess {
        /// Whether a key was sent.
        has_key: bool,
        /// Setting that holds the key.
        setting: String,
    },
    /// The server answers with an error.
    Error(String),
    /// The server does not answer.
    Silent(String),
}

impl ServerState {
    /// Whether the agent cannot work because of it.
    #[must_use]
    pub fn is_fault(&self) -> bool {
        match self {
            Self::NoAccess { .. } | Self::Error(_) | Self::Silent(_) => true,
            // Some servers have one model, whatever its name in a request is.
            Self::Ready | Self::Known { .. } | Self::NoList | Self::NoModel { .. } => false,
        }
    }

    /// Whether everything is in order.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        match self {
            Self::Ready | Self::NoList => true,
            Self::Known { warnings, .. } => warnings.is_empty(),
            Self::NoModel { .. } | Self::NoAccess { .. } | Self::Error(_) | Self::Silent(_) => false,
        }
    }
}

impl fmt::Display for ServerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready => f.write_str("the server answers"),
            Self::Known { facts, warnings } => {
                write!(f, "the server answers ({facts})")?;
                warnings.iter().try_for_each(|warning| write!(f, "; {warning}"))
            }
            Self::NoList => f.write_str("the server answers, and does not list its models"),
            Self::NoModel { model, known, setting } => {
                write!(f, "the server does not list the model `{model}`, but {}", named(known))?;
                write!(f, "; `cliq settings set {setting} MODEL` chooses one")
            }
            Self::NoAccess { has_key: true, setting } => {
                write!(f, "the server refuses the key; `cliq settings set -g {setting} -` sets another")
            }
            Self::NoAccess { has_key: false, setting } => {
                write!(f, "the server asks for a key; `cliq settings set -g {setting} -` sets one")
            }
            Self::Error(reason) => write!(f, "the server answers with an error: {reason}"),
            Self::Silent(reason) => write!(f, "the server does not answer: {reason}"),
        }
    }
}

fn named(known: &[String]) -> String {
    let shown: Vec<&str> = known.iter().take(NAMED).map(String::as_str).collect();
    match known.len() - shown.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Returns the requests for all servers whose address is set in settings or environment.
#[must_use]
pub fn probes(settings: &Settings, environment: &Environment) -> Vec<ServerProbe> {
    let probe = |agent: ModelAgent| {
        let kind = match agent.transport() {
            Transport::Api(kind) => kind,
            Transport::Cli(Dialect::ClaudeCode) => ApiKind::Anthropic,
            Transport::Cli(Dialect::Codex) => ApiKind::OpenAi,
            Transport::Cli(Dialect::Gemini) => ApiKind::Gemini,
            // Its address cannot be set.
            Transport::Cli(Dialect::Cursor) | Transport::Acp => return None,
        };
        if matches!(agent.usable(settings, environment), super::Usable::No(_)) {
            return None;
        }
        let base = agent.base(settings, environment)?;
        let (key, model) = (agent.key(settings, environment), agent.model(settings, None));
        Some(probe_of(agent, settings, kind, base, key, model))
    };
    ModelAgent::all(settings).into_iter().filter_map(probe).collect()
}

fn probe_of(
    agent: ModelAgent,
    settings: &Settings,
    kind: ApiKind,
    base: String,
    key: Option<Secret>,
    model: Option<String>,
) -> ServerProbe {
    let own = agent.settings(settings);
    let wants_tools = own.tools.as_ref().is_none_or(|tools| tools.built_in().next().is_some());
    #[cfg(feature = "http")]
    let context_tokens = agent.is_api().then(|| {
        let access =
            agent.access(settings, kind, None, Some(base.clone()), model.clone().unwrap_or_default());
        access.context_tokens
    });
    #[cfg(not(feature = "http"))]
    let context_tokens = None;
    ServerProbe { agent, kind, base, key, model, context_tokens, wants_tools }
}

impl ServerProbe {
    /// Name of the agent.
    #[must_use]
    pub fn agent(&self) -> &str {
        &self.agent.name
    }

    /// Address of the server, without a password.
    #[must_use]
    pub fn address(&self) -> String {
        without_credentials(&self.base).into_owned()
    }

    /// Sends the request in a thread of its own. Returns a function that waits for the answer, a few seconds at most.
    pub fn start(self) -> impl FnOnce() -> ServerState {
        let (sender, receiver) = mpsc::channel();
        let started = std::thread::Builder::new().name("probe".to_owned()).spawn(move || {
            // The receiver may have given up.
            let _ = sender.send(self.ask());
        });
        move || match started {
            Ok(_) => receiver
                .recv_timeout(DEADLINE + LOOKUP)
                .unwrap_or_else(|_| ServerState::Silent(format!("not within {} s", DEADLINE.as_secs()))),
            Err(error) => ServerState::Silent(error.to_string()),
        }
    }

    #[cfg(not(feature = "http"))]
    fn ask(&self) -> ServerState {
        ServerState::NoList
    }

    #[cfg(feature = "http")]
    fn ask(&self) -> ServerState {
        use cliq_http::{Client, Limits, Request};
        let limits = Limits {
            connect: DEADLINE,
            first_byte: DEADLINE,
            idle: DEADLINE,
            whole: DEADLINE,
            tries: 1,
            answer: 4 << 20,
            ..Limits::default()
        };
        let base = self.base.trim_end_matches('/');
        let (path, headers) = match self.kind {
            ApiKind::Anthropic => ("v1/models", vec![("anthropic-version", "2023-06-01".to_owned())]),
            ApiKind::OpenAi | ApiKind::Responses => ("models", Vec::new()),
            ApiKind::Gemini => ("v1beta/models", Vec::new()),
        };
        let mut request = Request::get(format!("{base}/{path}")).called(self.address());
        for (name, value) in headers {
            request = request.header(name, value);
        }
        if let Some(key) = &self.key {
            let key = key.reveal();
            request = match self.kind {
                ApiKind::Anthropic => request.secret_header("x-api-key", key),
                ApiKind::OpenAi | ApiKind::Responses => {
                    request.secret_header("authorization", format!("Bearer {key}")).secret(key)
                }
                ApiKind::Gemini => request.secret_header("x-goog-api-key", key),
            };
        }
        let client = Client::new(limits);
        match client.send(&request) {
            Ok(answer) => {
                let state = self.state(answer.status, &answer.body, "");
                match (&state, self.context_tokens) {
                    (
                        ServerState::Ready | ServerState::NoList | ServerState::NoModel { .. },
                        Some(context_tokens),
                    ) => {
                        let facts = self.facts(&client, &answer.body);
                        match facts {
                            None => state,
                            Some(facts) => {
                                let mut warnings =
                                    facts.warnings(&self.agent.name, context_tokens, self.wants_tools);
                                if let ServerState::NoModel { .. } = &state {
                                    warnings.insert(0, state.to_string());
                                }
                                ServerState::Known { facts, warnings }
                            }
                        }
                    }
                    _ => state,
                }
            }
            Err(error) => match error.status {
                Some(status) => self.state(status, &[], &without_credentials(&error.message)),
                None => {
                    ServerState::Silent(shorten(&without_credentials(&error.message), REASON).into_owned())
                }
            },
        }
    }

    /// Asks a server with the API of OpenAI about itself. Returns `None` if it is none of those that have an answer.
    #[cfg(feature = "http")]
    fn facts(&self, client: &cliq_http::Client, list: &[u8]) -> Option<ServerFacts> {
        use cliq_http::Request;
        if !matches!(self.kind, ApiKind::OpenAi | ApiKind::Responses)
            || self.agent.facts.default_base == self.base.trim_end_matches('/')
        {
            return None;
        }
        let model = self.model.as_deref().unwrap_or_default();
        let list = cliq_protocol::lenient_json(list).ok();
        let entry = list.as_ref().and_then(|list| {
            let entries = list.get("data")?.as_array()?;
            entries.iter().find(|entry| entry["id"].as_str().is_some_and(|name| is_same(name, model)))
        });
        if let Some(facts) = entry.and_then(ServerFacts::of_entry) {
            return Some(facts);
        }
        let root = self.base.trim_end_matches('/').trim_end_matches("/v1");
        let send = |request: Request| {
            let request = match &self.key {
                Some(key) => request
                    .secret_header("authorization", format!("Bearer {}", key.reveal()))
                    .secret(key.reveal()),
                None => request,
            };
            let answer =
                client.send(&request.called(self.address())).ok().filter(|answer| answer.status == 200)?;
            cliq_protocol::lenient_json(&answer.body).ok()
        };
        let props = send(Request::get(format!("{root}/props")));
        props.as_ref().and_then(ServerFacts::of_props).or_else(|| {
            let body = serde_json::json!({ "model": model });
            ServerFacts::of_show(&send(Request::post(format!("{root}/api/show")).json(&body))?)
        })
    }

    /// Decides from an answer.
    fn state(&self, status: u16, body: &[u8], reason: &str) -> ServerState {
        match status {
            200..=299 => match (models(body), &self.model) {
                (None, _) => ServerState::NoList,
                (Some(_), None) => ServerState::Ready,
                (Some(known), Some(model)) if known.iter().any(|name| is_same(name, model)) => {
                    ServerState::Ready
                }
                (Some(known), Some(model)) => {
                    ServerState::NoModel { model: model.clone(), known, setting: self.agent.setting("model") }
                }
            },
            // The address is that of another server, or the server has no list.
            404 | 405 | 501 => ServerState::NoList,
            401 | 403 => {
                ServerState::NoAccess { has_key: self.key.is_some(), setting: self.agent.setting("api_key") }
            }
            _ => ServerState::Error(shorten(reason, REASON).into_owned()),
        }
    }
}

/// Returns the names in a list of models, or `None` if there is no list, or an empty one.
fn models(body: &[u8]) -> Option<Vec<String>> {
    let value = cliq_protocol::lenient_json(body).ok()?;
    let list = value.get("data").or_else(|| value.get("models")).unwrap_or(&value).as_array()?;
    let name = |model: &Value| {
        let name = ["id", "name", "model"].into_iter().find_map(|key| model[key].as_str());
        name.or_else(|| model.as_str()).map(str::to_owned)
    };
    let names: Vec<String> = list.iter().filter_map(name).collect();
    (!names.is_empty()).then_some(names)
}

/// Whether two names are those of one model: `models/NAME` is `NAME`, and `NAME:latest` too.
fn is_same(known: &str, model: &str) -> bool {
    let plain = |name: &str| {
        let name = name.strip_prefix("models/").unwrap_or(name);
        name.strip_suffix(":latest").unwrap_or(name).to_owned()
    };
    plain(known) == plain(model)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probe(model: Option<&str>, key: Option<&str>) -> ServerProbe {
        ServerProbe {
            agent: ModelAgent::find("openai-api", &Settings::default()).expect("an agent"),
            kind: ApiKind::OpenAi,
            base: "http://u:p@localhost:1/v1".to_owned(),
            key: key.map(Secret::new),
            model: model.map(str::to_owned),
            context_tokens: None,
            wants_tools: true,
        }
    }

    #[test]
    fn answers_become_states() {
        let list = br#"{"object": "list", "data": [{"id": "qwen3:latest"}, {"id": "gemma"}]}"#;
        for (model, status, body, expected, is_ready) in [
            (Some("qwen3"), 200, &list[..], "the server answers", true),
            (Some("gemma"), 200, list, "the server answers", true),
            (None, 200, list, "the server answers", true),
            (
                Some("gemini-x"),
                200,
                br#"{"models": [{"name": "models/gemini-x"}]}"#,
                "the server answers",
                true,
            ),
            (Some("m"), 200, b"[\"m\"]", "the server answers", true),
            (
                Some("gpt"),
                200,
                list,
                "the server does not list the model `gpt`, but qwen3:latest, gemma; `cliq settings set agents.openai-api.model MODEL` chooses one",
                false,
            ),
            (
                Some("m"),
                200,
                br#"["a", "b", "c", "d", "e", "f", "g"]"#,
                "the server does not list the model `m`, but a, b, c, d, e and 2 more; `cliq settings set agents.openai-api.model MODEL` chooses one",
                false,
            ),
            (Some("m"), 200, b"<html>", "the server answers, and does not list its models", true),
            (Some("m"), 200, br#"{"data": []}"#, "the server answers, and does not list its models", true),
            (Some("m"), 404, b"", "the server answers, and does not list its models", true),
            (Some("m"), 500, b"", "the server answers with an error: 500: broken", false),
            (Some("m"), 503, b"", "the server answers with an error: 500: broken", false),
            (
                Some("m"),
                401,
                b"",
                "the server asks for a key; `cliq settings set -g agents.openai-api.api_key -` sets one",
                false,
            ),
        ] {
            let state = probe(model, None).state(status, body, "500: broken");
            assert_eq!((state.to_string().as_str(), state.is_ready()), (expected, is_ready), "{status}");
        }
        let refused = probe(None, Some("sk-1")).state(403, b"", "");
        assert!(refused.is_fault() && refused.to_string().contains("refuses the key"), "{refused}");
        assert_eq!(probe(None, None).address(), "http://***@localhost:1/v1");
    }

    #[cfg(feature = "http")]
    #[test]
    fn server_that_does_not_listen_is_silent() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        drop(listener);
        let base = format!("http://u:secret@{address}/v1");
        let state = ServerProbe { base, ..probe(Some("m"), Some("sk-secret")) }.start()();
        let text = state.to_string();
        assert!(matches!(state, ServerState::Silent(_)) && state.is_fault(), "{text}");
        assert!(text.starts_with("the server does not answer") && !text.contains("secret"), "{text}");
    }
}
