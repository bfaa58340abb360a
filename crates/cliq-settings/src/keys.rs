//! Every key there is.

use cliq_review::Directory;
use cliq_workflow::{nearest, parse_duration};
use serde_json::Value;

use crate::SettingsError;
use crate::mesh::Mesh;

/// A setting.
#[derive(Debug)]
#[non_exhaustive]
pub struct Key {
    /// Its path; `*` stands for a name of the user's choice.
    pub path: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// What it does, in a sentence without a capital letter.
    pub about: &'static str,
    /// What holds where nothing is set.
    pub default: Option<&'static str>,
}

/// What a setting takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// Any text.
    Text,
    /// A text that is never shown.
    Secret,
    /// One of some words.
    Choice(&'static [&'static str]),
    /// A whole number, at least 1.
    Count,
    /// A number, 0 or more.
    Amount,
    /// `true` or `false`.
    Flag,
    /// A duration such as `90s`.
    Duration,
    /// An address that begins with `http://` or `https://`.
    Url,
    /// An address with a secret in it: never shown.
    SecretUrl,
    /// A list of texts.
    List,
    /// A list of notification channels, `slack:NAME`, `email:ADDRESS` or `webhook:NAME`.
    Channels,
    /// A list of meshes. They have secrets: never shown.
    Meshes,
    /// A list of people and groups who review.
    Reviewers,
}

const fn key(path: &'static str, kind: Kind, default: Option<&'static str>, about: &'static str) -> Key {
    Key { path, kind, about, default }
}

/// All settings, in the order in which they are listed.
pub static KEYS: &[Key] = &[
    key(
        "default_agent",
        Kind::Text,
        None,
        "the agent for phases that name none; without it, the first model agent that can be used",
    ),
    key(
        "launcher",
        Kind::Choice(&["auto", "process", "tmux"]),
        Some("auto"),
        "where phases run: panes of tmux, plain child processes, or tmux where it is installed and a person looks on",
    ),
    key(
        "tmux.keep_session",
        Kind::Flag,
        Some("false"),
        "whether panes stay after a run, for people to read; `cliq clean` and the next run close them",
    ),
    key(
        "max_parallel",
        Kind::Count,
        None,
        "how many phases may work at the same time; without it, as many as can",
    ),
    key(
        "durability",
        Kind::Choice(&["process", "power"]),
        Some("process"),
        "what the record of a run is safe against: the death of the orchestrator, or a power failure too, which costs some milliseconds per phase",
    ),
    key(
        "max_file_bytes",
        Kind::Count,
        Some("1073741824"),
        "the most bytes of a file that an agent wrote, such as a handoff; larger files are refused",
    ),
    key("phase_timeout", Kind::Duration, Some("20m"), "how long a phase may take"),
    key("gate_agent_timeout", Kind::Duration, Some("15m"), "how long the agent of a gate may take"),
    key(
        "poll_interval",
        Kind::Duration,
        Some("3s"),
        "how often signal files are looked at where nothing tells of changes",
    ),
    key(
        "task_loop",
        Kind::Choice(&["signals", "markers"]),
        Some("signals"),
        "how tasks of a plan are done: by a coder that emits a signal, or by developer, critic and auditor that print markers",
    ),
    key(
        "auto_readiness_review",
        Kind::Flag,
        Some("true"),
        "whether a master agent verifies a plan after its review",
    ),
    key(
        "readiness_max_verify_cycles",
        Kind::Count,
        Some("3"),
        "after how many failed verifications a plan is done all the same, and reported as such",
    ),
    key(
        "auto_implement",
        Kind::Flag,
        Some("true"),
        "whether the first wave begins by itself once a plan is planned",
    ),
    key(
        "planners",
        Kind::Count,
        Some("1"),
        "how many planners draft a plan that has no waves; with several, another one merges their drafts",
    ),
    key(
        "use_architect",
        Kind::Flag,
        Some("false"),
        "whether an architect spells a plan out before its first wave",
    ),
    key(
        "use_business_analyst",
        Kind::Flag,
        Some("false"),
        "whether a business analyst spells out tasks that have no text, where tasks are done by markers",
    ),
    key(
        "slots.developers",
        Kind::Count,
        Some("3"),
        "how many developers or coders of a plan may work at the same time",
    ),
    key("slots.critics", Kind::Count, Some("2"), "how many critics of a plan may work at the same time"),
    key("slots.auditors", Kind::Count, Some("2"), "how many auditors of a plan may work at the same time"),
    key(
        "roles.*.agent",
        Kind::Text,
        None,
        "the agent that works on plans in a role; without it, the default agent",
    ),
    key("roles.*.command", Kind::Text, None, "a shell command that works in a role, instead of an agent"),
    key(
        "roles.*.file",
        Kind::Text,
        None,
        "the role file, from the project's directory; without it, the bundled one",
    ),
    key("agents.*.model", Kind::Text, None, "the model that a built-in agent uses"),
    key("agents.*.api_key", Kind::Secret, None, "its key, where the environment has none"),
    key("agents.*.base_url", Kind::Url, None, "where its API is; any server that speaks that API will do"),
    key(
        "agents.*.command",
        Kind::Text,
        None,
        "the program of an agent that is a vendor's command line; without it, looked up on the PATH",
    ),
    key("agents.*.args", Kind::List, None, "more arguments for that program"),
    key("agents.*.max_tokens", Kind::Count, None, "the most tokens that one reply may have"),
    key(
        "prices.*.in",
        Kind::Amount,
        None,
        "what a model costs for input, in US dollars per million tokens; for agents that report no cost",
    ),
    key(
        "prices.*.out",
        Kind::Amount,
        None,
        "what a model costs for output, in US dollars per million tokens",
    ),
    key(
        "prices.*.cached",
        Kind::Amount,
        None,
        "what a model costs for input from a cache, in US dollars per million tokens; without it, as other input",
    ),
    key(
        "notifications.*",
        Kind::Channels,
        None,
        "whom to tell of an event of a run: on_start, on_phase_start, on_phase_complete, on_complete, on_escalate, on_cancel",
    ),
    key(
        "agents.slack.channels.*.webhook_url",
        Kind::SecretUrl,
        None,
        "the incoming webhook of a Slack channel; `slack` alone means the channel `default`",
    ),
    key(
        "agents.webhook.channels.*.url",
        Kind::SecretUrl,
        None,
        "where a webhook posts to; `webhook` alone means the channel `default`",
    ),
    key(
        "agents.webhook.channels.*.secret",
        Kind::Secret,
        None,
        "what a webhook's posts are signed with (HMAC-SHA256)",
    ),
    key(
        "database.url",
        Kind::Secret,
        None,
        "the PostgreSQL database of signals, plans and runs, postgresql://USER:PASSWORD@HOST:PORT/DATABASE; without it, the file cliq.db in the cliq home. Set it for all projects (-g)",
    ),
    key("server.port", Kind::Count, Some("4100"), "the port that `cliq server` listens on"),
    key("server.host", Kind::Text, Some("127.0.0.1"), "the address that `cliq server` listens on"),
    key(
        "server.max_runs",
        Kind::Count,
        Some("4"),
        "how many runs of the server may work at the same time; more wait in a queue, first in, first out",
    ),
    key(
        "server.recovery",
        Kind::Choice(&["fail", "resume"]),
        Some("fail"),
        "what the server does with a run whose orchestrator died",
    ),
    key(
        "server.retention",
        Kind::Duration,
        Some("7d"),
        "how long the server keeps runs that ended, with their workspaces and logs",
    ),
    key(
        "server.workspace_root",
        Kind::Text,
        None,
        "the directory of workspaces that the server makes for runs; without it, `workspaces` in the cliq home",
    ),
    key(
        "server.allowed_hosts",
        Kind::List,
        None,
        "names by which clients may call the server, beside localhost and addresses: that of a reverse proxy, say",
    ),
    key(
        "server.rate_limit",
        Kind::Count,
        Some("500"),
        "how many requests per second the server takes from one address, after a burst of twice as many",
    ),
    key(
        "server.max_connections",
        Kind::Count,
        Some("2000"),
        "how many connections the server has open at the same time",
    ),
    key(
        "server.workflow_streaming",
        Kind::Flag,
        Some("false"),
        "whether callers of A2A get what agents print while they work",
    ),
    key(
        "server.a2a.agent_type",
        Kind::Text,
        Some("cliq_pipeline"),
        "the kind of agent that a mesh routes to: the same for all your cliqs",
    ),
    key(
        "server.a2a.instance_id",
        Kind::Text,
        None,
        "the name of this cliq, unique among all; without it, one is made and kept in the cliq home",
    ),
    key(
        "server.a2a.workspace_root",
        Kind::Text,
        None,
        "the directory of workspaces of tasks; without it, that of `server.workspace_root`",
    ),
    key(
        "server.a2a.advertise",
        Kind::List,
        Some("@cliq"),
        "which teams callers of A2A may use: `@` (all), `@scope`, `@scope/name`, with `!` before it to leave out",
    ),
    key(
        "server.a2a.enable_builder",
        Kind::Flag,
        Some("false"),
        "whether callers of A2A may build and improve teams",
    ),
    key("server.a2a.meshes", Kind::Meshes, None, "meshes that the server can join"),
    key(
        "server.a2a.public_url",
        Kind::Url,
        None,
        "the address by which callers reach the server, such as that of a reverse proxy; without it, the one it listens on",
    ),
    key(
        "server.a2a.allow_private_push",
        Kind::Flag,
        Some("false"),
        "whether push notifications may go to private addresses",
    ),
    key(
        "server.a2a.push_hosts",
        Kind::List,
        None,
        "hosts that push notifications may go to although their addresses are private; `*.example.com` for all below",
    ),
    key(
        "server.a2a.repo_hosts",
        Kind::List,
        None,
        "hosts that repositories of tasks may come from, private ones among them; without it, any public host",
    ),
    key(
        "hug.reviewers",
        Kind::Reviewers,
        None,
        "people who review, and how each is reached: a list of {name, channels}, and of groups {name, members, policy}",
    ),
    key(
        "hug.server_url",
        Kind::Url,
        None,
        "the cliq server that has the reviews of human gates; without it, the local server or the run itself",
    ),
    key("hug.token", Kind::Secret, None, "a token of that server, with the scope `run`"),
    key(
        "hug.public_url",
        Kind::Url,
        None,
        "the address by which reviewers reach the local server, such as that of a reverse proxy; without it, the one it listens on",
    ),
    key("agents.email.host", Kind::Text, None, "the server that mail is given to (SMTP)"),
    key("agents.email.port", Kind::Count, None, "its port; without it, 587 with STARTTLS and 465 with TLS"),
    key(
        "agents.email.security",
        Kind::Choice(&["starttls", "tls", "none"]),
        Some("starttls"),
        "how the connection to it is protected; `none` only for a server on this machine",
    ),
    key("agents.email.username", Kind::Text, None, "the user name at that server, if it asks for one"),
    key("agents.email.password", Kind::Secret, None, "the password of that user"),
    key("agents.email.from", Kind::Text, None, "the sender of mails, such as `cliq <cliq@example.com>`"),
    key(
        "agents.email.ca_file",
        Kind::Text,
        None,
        "a file with certificates (PEM) that are trusted for that server, beside the usual ones",
    ),
    key(
        "server.a2a.signing_key",
        Kind::Text,
        None,
        "the file of the private key that signs the agent card: elliptic curve P-256, PKCS#8 in PEM",
    ),
    key(
        "strict_input_validation",
        Kind::Flag,
        Some("false"),
        "whether a task with an input that its team does not have is refused",
    ),
    key(
        "builder.provider",
        Kind::Choice(&["anthropic", "openai", "google"]),
        None,
        "whose model builds and improves teams; without it, the first whose key is set",
    ),
    key("builder.model", Kind::Text, None, "the model that builds and improves teams"),
    key("builder.api_key", Kind::Secret, None, "its key, where the environment and `agents.*` have none"),
    key("builder.base_url", Kind::Url, None, "where its API is; any server that speaks that API will do"),
];

/// Events that `notifications.*` knows.
const EVENTS: &[&str] =
    &["on_start", "on_phase_start", "on_phase_complete", "on_complete", "on_escalate", "on_cancel"];

/// Roles that `roles.*` knows (SPEC section 13).
pub(crate) const ROLES: &[&str] = &[
    "planner",
    "architect",
    "coder",
    "reviewer",
    "master",
    "fixer",
    "developer",
    "critic",
    "auditor",
    "business-analyst",
    "remediation",
    "health-auditor",
    "expert",
];

impl Key {
    /// The key that a path such as `agents.codex.model` is one of.
    ///
    /// # Errors
    /// There is none.
    pub fn find(path: &str) -> Result<&'static Self, SettingsError> {
        // Most paths are those of a key without a name of the user's choice.
        let same = KEYS.iter().find(|key| key.path == path);
        let matching = |key: &&Self| key.path.contains('*') && matches(key.path, path);
        match same.or_else(|| KEYS.iter().find(matching)) {
            Some(key) => {
                // Of these, not every name will do.
                for (group, names) in [("notifications.", EVENTS), ("roles.", ROLES)] {
                    let Some(rest) = path.strip_prefix(group) else { continue };
                    let (name, below) = rest.split_at(rest.find('.').unwrap_or(rest.len()));
                    if !names.contains(&name) {
                        let near = nearest(name, names.iter().copied());
                        return Err(unknown(path, near.map(|near| format!("{group}{near}{below}"))));
                    }
                }
                Ok(key)
            }
            None => Err(unknown(path, nearest_path(path))),
        }
    }

    /// Whether paths below `path` can be settings.
    pub(crate) fn is_group(path: &str) -> bool {
        // Names of models may contain dots.
        if path.starts_with(PRICES) {
            return true;
        }
        KEYS.iter().any(|key| {
            let depth = path.split('.').count();
            let mut parts = key.path.split('.');
            let head: Vec<&str> = parts.by_ref().take(depth).collect();
            parts.next().is_some() && matches(&head.join("."), path)
        })
    }

    /// Whether its value is never shown.
    #[must_use]
    pub fn is_secret(&self) -> bool {
        matches!(self.kind, Kind::Secret | Kind::SecretUrl | Kind::Meshes)
    }

    /// Reads a value as people write it on a command line.
    ///
    /// # Errors
    /// It has the wrong type.
    pub fn parse(&self, path: &str, text: &str) -> Result<Value, SettingsError> {
        let list =
            || text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(Value::from).collect();
        let value = match self.kind {
            Kind::Count => text.parse::<u64>().map_or_else(|_| text.into(), Value::from),
            Kind::Amount => text.parse::<f64>().map_or_else(|_| text.into(), Value::from),
            Kind::Flag => text.parse::<bool>().map_or_else(|_| text.into(), Value::from),
            Kind::List if text.trim_start().starts_with('[') => {
                serde_json::from_str(text).unwrap_or_else(|_| text.into())
            }
            Kind::Meshes | Kind::Reviewers => serde_json::from_str(text).unwrap_or_else(|_| text.into()),
            Kind::List | Kind::Channels => Value::Array(list()),
            _ => text.into(),
        };
        self.check(path, &value)?;
        Ok(value)
    }

    /// Whether a value is one for this key.
    ///
    /// # Errors
    /// It has the wrong type. A secret is not quoted.
    pub fn check(&self, path: &str, value: &Value) -> Result<(), SettingsError> {
        let text = value.as_str();
        let texts = || value.as_array().is_some_and(|items| items.iter().all(Value::is_string));
        let is_url = || text.is_some_and(|text| text.starts_with("https://") || text.starts_with("http://"));
        let right = match self.kind {
            Kind::Text | Kind::Secret => text.is_some_and(|text| !text.is_empty()),
            Kind::Choice(words) => text.is_some_and(|text| words.contains(&text)),
            Kind::Count => value.as_u64().is_some_and(|n| n > 0),
            Kind::Amount => value.as_f64().is_some_and(|n| n.is_finite() && n >= 0.0),
            Kind::Flag => value.is_boolean(),
            Kind::Duration => text.is_some_and(|text| parse_duration(text).is_ok()),
            Kind::Url | Kind::SecretUrl => is_url(),
            Kind::List => texts(),
            Kind::Meshes => Mesh::read(value).is_some(),
            Kind::Reviewers => Directory::from_value(value).is_ok(),
            Kind::Channels => {
                let channel = |item: &Value| {
                    let text = item.as_str().unwrap_or_default();
                    let (kind, name) = text.split_once(':').unwrap_or((text, "default"));
                    matches!(kind, "slack" | "webhook" | "email") && !name.is_empty()
                };
                value.as_array().is_some_and(|items| items.iter().all(channel))
            }
        };
        if right {
            return Ok(());
        }
        let found = if self.is_secret() { "something else".to_owned() } else { value.to_string() };
        Err(SettingsError::Type { key: path.to_owned(), expected: self.kind.expected(), found })
    }
}

impl Kind {
    /// What a value looks like, for people.
    #[must_use]
    pub fn expected(self) -> String {
        match self {
            Self::Text | Self::Secret => "a text".to_owned(),
            Self::Choice(words) => format!("one of {}", words.join(", ")),
            Self::Count => "a whole number, at least 1".to_owned(),
            Self::Amount => "a number, 0 or more".to_owned(),
            Self::Flag => "true or false".to_owned(),
            Self::Duration => "a duration such as \"90s\", \"45m\", \"8h\"".to_owned(),
            Self::Url | Self::SecretUrl => "an address that begins with https:// or http://".to_owned(),
            Self::List => "a list of texts".to_owned(),
            Self::Meshes => {
                "a list of objects with name, type (\"savant\"), url, client_id, client_secret and active"
                    .to_owned()
            }
            Self::Reviewers => {
                "a list of {\"name\", \"channels\": [\"slack:NAME\", \"email:ADDRESS\"]} and of groups {\"name\", \"members\", \"policy\": \"any\" or \"all\"}, each name once, no group within itself".to_owned()
            }
            Self::Channels => "a list of channels such as \"slack:NAME\", \"email:ADDRESS\" or \"webhook:NAME\"".to_owned(),
        }
    }
}

/// What paths of prices begin with: their second part is the name of a model, which may contain dots.
pub(crate) const PRICES: &str = "prices.";

/// The parts of a path.
pub(crate) fn parts(path: &str) -> Vec<&str> {
    match path.strip_prefix(PRICES).and_then(|rest| rest.rsplit_once('.')) {
        Some((model, part)) => vec!["prices", model, part],
        None => path.split('.').collect(),
    }
}

fn matches(pattern: &str, path: &str) -> bool {
    let (parts, path) = (parts(pattern), parts(path));
    parts.len() == path.len()
        && parts.iter().zip(&path).all(|(p, part)| p == part || (*p == "*" && !part.is_empty()))
}

fn unknown(key: &str, near: Option<String>) -> SettingsError {
    let hint = match near {
        Some(near) => format!(": did you mean `{near}`?"),
        None => ": `cliq settings list` shows those there are".to_owned(),
    };
    SettingsError::Unknown { key: key.to_owned(), hint }
}

/// The nearest key, with the names that the user chose left as they are.
fn nearest_path(path: &str) -> Option<String> {
    let parts = parts(path);
    let candidates: Vec<String> = KEYS
        .iter()
        .map(|key| {
            let own = key.path.split('.').enumerate();
            own.map(|(n, part)| if part == "*" { parts.get(n).copied().unwrap_or("NAME") } else { part })
                .collect::<Vec<_>>()
                .join(".")
        })
        .collect();
    nearest(path, candidates.iter().map(String::as_str)).map(str::to_owned)
}
