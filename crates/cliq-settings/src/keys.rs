//! Keys: what a setting takes, and whether a value is one.

use cliq_protocol::{
    AgentTools, ExtraBody, Network, Permissions, TOOL_NAMES, Temperature, shorten, without_credentials,
};
use cliq_review::Directory;
use cliq_workflow::{nearest, parse_duration};
use serde_json::Value;

use crate::SettingsError;
use crate::groups::KEYS;
use crate::mesh::Mesh;

/// A setting.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Key {
    /// Key path of the setting. `*` matches a user-defined name.
    pub path: &'static str,
    /// Type of the value.
    pub kind: Kind,
    /// Description in a sentence, starting with a lower-case letter.
    pub about: &'static str,
    /// Default value.
    pub default: Option<&'static str>,
    /// Security class.
    pub class: Class,
}

/// Security class of a setting. Agents can write the file of a project, so not all settings are a project's to choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// A project can override it.
    Shared,
    /// Only the person's file sets it.
    Person,
    /// Setting of this machine, which containers and clusters do not receive.
    Machine,
    /// As [`Class::Machine`]. A project cannot override it if the person's settings enable containers or a cluster.
    Backend,
}

/// Type of a setting.
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
    /// A number from 0 to 2.
    Temperature,
    /// A JSON object: fields of the requests to a model.
    ExtraBody,
    /// `true` or `false`.
    Flag,
    /// A duration such as `90s`.
    Duration,
    /// A number of bytes such as `512m` or `4g`.
    Size,
    /// An address that begins with `http://` or `https://`.
    Url,
    /// An address of traces, with `{trace_id}` in it.
    TraceUrl,
    /// An address with a secret in it: never shown.
    SecretUrl,
    /// A list of texts.
    List,
    /// A list of parts of the telemetry: `traces`, `metrics`, `logs`.
    Signals,
    /// A list of notification channels, `slack:NAME`, `email:ADDRESS` or `webhook:NAME`.
    Channels,
    /// A list of meshes. They have secrets: never shown.
    Meshes,
    /// A list of people and groups who review.
    Reviewers,
    /// Tools of a model agent: `none`, `read`, `full`, or a list of names.
    Tools,
    /// Policy for requests of agents for permission: `allow`, `edits`, `ask`, `deny`, or a list of kinds.
    Permissions,
    /// Network access of a sandbox: `all`, `none`, or a list of hosts.
    Network,
}

/// Place of the id in an address of traces.
const TRACE_ID: &str = "{trace_id}";

/// Parts of the telemetry.
pub(crate) const SIGNALS: &[&str] = &["traces", "metrics", "logs"];

/// Events that `notifications.*` knows.
const EVENTS: &[&str] =
    &["on_start", "on_phase_start", "on_phase_complete", "on_complete", "on_escalate", "on_cancel"];

/// Roles that `roles.*` knows (docs/signals.md).
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

    /// Whether the settings of a top-level group such as `docker` are those of this machine, which containers and clusters do not receive.
    #[must_use]
    pub fn is_group_of_machine(group: &str) -> bool {
        KEYS.iter().any(|key| {
            let is_of_machine = match key.class {
                Class::Machine | Class::Backend => true,
                Class::Shared | Class::Person => false,
            };
            is_of_machine && key.path.split('.').next() == Some(group)
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
    /// Returns an error if the value has the wrong type.
    pub fn parse(&self, path: &str, text: &str) -> Result<Value, SettingsError> {
        let list =
            || text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(Value::from).collect();
        let value = match self.kind {
            Kind::Count => text.parse::<u64>().map_or_else(|_| text.into(), Value::from),
            Kind::Amount | Kind::Temperature => text.parse::<f64>().map_or_else(|_| text.into(), Value::from),
            Kind::Flag => text.parse::<bool>().map_or_else(|_| text.into(), Value::from),
            Kind::List | Kind::Signals if text.trim_start().starts_with('[') => {
                serde_json::from_str(text).unwrap_or_else(|_| text.into())
            }
            Kind::Network if matches!(text, "all" | "none") => text.into(),
            Kind::Tools if AgentTools::WORDS.contains(&text) => text.into(),
            Kind::Permissions if Permissions::WORDS.contains(&text) => text.into(),
            Kind::Network => Value::Array(list()),
            Kind::Meshes | Kind::Reviewers | Kind::ExtraBody => {
                serde_json::from_str(text).unwrap_or_else(|_| text.into())
            }
            Kind::List | Kind::Signals | Kind::Channels | Kind::Tools | Kind::Permissions => {
                Value::Array(list())
            }
            _ => text.into(),
        };
        self.check(path, &value)?;
        Ok(value)
    }

    /// Whether a value is one for this key.
    ///
    /// # Errors
    /// Returns an error if the value has the wrong type. The message never contains the value of a secret.
    pub fn check(&self, path: &str, value: &Value) -> Result<(), SettingsError> {
        let text = value.as_str();
        let texts = || value.as_array().is_some_and(|items| items.iter().all(Value::is_string));
        let is_url = || text.is_some_and(is_address);
        let right = match self.kind {
            Kind::Text | Kind::Secret => text.is_some_and(|text| !text.is_empty()),
            Kind::Choice(words) => text.is_some_and(|text| words.contains(&text)),
            Kind::Count => value.as_u64().is_some_and(|n| n > 0),
            Kind::Amount => amount_of(value).is_some_and(|n| n.is_finite() && n >= 0.0),
            Kind::Temperature => amount_of(value).and_then(Temperature::new).is_some(),
            Kind::ExtraBody => serde_json::from_value::<ExtraBody>(value.clone()).is_ok(),
            Kind::Flag => value.is_boolean(),
            Kind::Duration => text.is_some_and(|text| parse_duration(text).is_ok()),
            Kind::Size => size_of(value).is_some(),
            Kind::Url | Kind::SecretUrl => is_url(),
            Kind::TraceUrl => is_url() && text.is_some_and(|text| text.contains(TRACE_ID)),
            Kind::List => texts(),
            Kind::Signals => {
                texts()
                    && value
                        .as_array()
                        .is_some_and(|all| all.iter().all(|one| SIGNALS.iter().any(|signal| one == signal)))
            }
            Kind::Meshes => Mesh::read(value).is_some(),
            Kind::Reviewers => Directory::from_value(value).is_ok(),
            Kind::Tools => serde_json::from_value::<AgentTools>(value.clone()).is_ok(),
            Kind::Permissions => serde_json::from_value::<Permissions>(value.clone()).is_ok(),
            Kind::Network => Network::from_value(value.clone(), path).is_ok(),
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
        let found = if self.is_secret() {
            "something else".to_owned()
        } else {
            shorten(&without_credentials(&value.to_string()), 200).into_owned()
        };
        Err(SettingsError::Type { key: path.to_owned(), expected: self.kind.expected(), found })
    }
}

impl Kind {
    /// Returns the expected form of a value, for people.
    #[must_use]
    pub fn expected(self) -> String {
        match self {
            Self::Text | Self::Secret => "a text".to_owned(),
            Self::Choice(words) => format!("one of {}", words.join(", ")),
            Self::Count => "a whole number, at least 1".to_owned(),
            Self::Amount => "a number, 0 or more".to_owned(),
            Self::Temperature => "a number from 0 to 2".to_owned(),
            Self::ExtraBody => format!(
                "a JSON object such as {{\"top_k\": 20}}, without the fields that cliq sets itself ({})",
                ExtraBody::RESERVED.join(", ")
            ),
            Self::Flag => "true or false".to_owned(),
            Self::Duration => "a duration such as \"90s\", \"45m\", \"8h\"".to_owned(),
            Self::Size => "a number of bytes, such as \"512m\" or \"4g\"".to_owned(),
            Self::Url | Self::SecretUrl => "an address with a host that begins with https:// or http://".to_owned(),
            Self::TraceUrl => {
                "an address with {trace_id}, such as \"http://localhost:16686/trace/{trace_id}\"".to_owned()
            }
            Self::Network => "`all`, `none`, or a list of hosts".to_owned(),
            Self::List => "a list of texts".to_owned(),
            Self::Signals => "a list of traces, metrics and logs".to_owned(),
            Self::Permissions => Permissions::expected(),
            Self::Tools => {
                format!("`none`, `read`, `full`, or a list of {} and SERVER__TOOL", TOOL_NAMES.join(", "))
            }
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

/// Whether a text is an HTTP address with a host. A user and a password alone are none.
pub(crate) fn is_address(text: &str) -> bool {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let Some(rest) = rest else { return false };
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    !host.is_empty() && !host.starts_with(':')
}

/// A number, or a text that is one.
pub(crate) fn amount_of(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())
}

/// A number of bytes: a number, or a text with a unit (`k`, `m`, `g`, `t`, each 1024 of the one before).
pub(crate) fn size_of(value: &Value) -> Option<u64> {
    let Some(text) = value.as_str() else { return value.as_u64().filter(|bytes| *bytes > 0) };
    let text = text.trim().to_ascii_lowercase();
    let text = text.strip_suffix("ib").or_else(|| text.strip_suffix('b')).unwrap_or(&text);
    let at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    let shift = match unit.trim() {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift).filter(|bytes| *bytes > 0)
}

/// Prefix of the keys of prices. Their second part is the name of a model, which may contain dots.
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
    SettingsError::Unknown { key: shorten(key, 200).into_owned(), hint: shorten(&hint, 300).into_owned() }
}

/// Returns the nearest key, with user-defined names left unchanged. A key qualifies if each of its parts is near, or if only its groups
/// differ: the last part of a long path must not carry a group that was never meant.
fn nearest_path(path: &str) -> Option<String> {
    let parts = parts(path);
    let last = parts.last().copied().unwrap_or_default();
    let candidates: Vec<String> = KEYS
        .iter()
        .filter(|key| {
            let own: Vec<&str> = key.path.split('.').collect();
            let is_near = |(own, part): (&&str, &&str)| *own == "*" || nearest(part, [*own]).is_some();
            let same_shape = own.len() == parts.len() && own.iter().zip(&parts).all(is_near);
            same_shape || (own.last() == Some(&last) && !key.path.contains('*'))
        })
        .map(|key| {
            let own = key.path.split('.').enumerate();
            own.map(|(n, part)| if part == "*" { parts.get(n).copied().unwrap_or("NAME") } else { part })
                .collect::<Vec<_>>()
                .join(".")
        })
        .collect();
    let nearest_of_all = || candidates.iter().min_by_key(|key| key.len()).filter(|_| candidates.len() == 1);
    let near = nearest(path, candidates.iter().map(String::as_str)).map(str::to_owned);
    near.or_else(|| nearest_of_all().cloned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_host_and_its_error_no_password() {
        let check =
            |text: &str| Key::find("agents.x.base_url").and_then(|key| key.parse("agents.x.base_url", text));
        for right in ["http://h", "https://u:p@h:1/v1", "http://[::1]:8/", "http://127.0.0.1"] {
            assert!(check(right).is_ok(), "{right}");
        }
        for wrong in [
            "http://",
            "http://u:hush@",
            "https://u:hush@/v1",
            "http://:80",
            "http://u:hush@:80/",
            "ftp://u:hush@h",
        ] {
            let error = check(wrong).expect_err(wrong).to_string();
            assert!(error.contains("agents.x.base_url") && !error.contains("hush"), "{error}");
        }
    }

    #[test]
    fn sizes() {
        for (text, bytes) in [
            ("4g", Some(4 << 30)),
            ("512M", Some(512 << 20)),
            ("64 MiB", Some(64 << 20)),
            ("100kb", Some(100 << 10)),
            ("1024", Some(1024)),
            ("0", None),
            ("", None),
            ("g", None),
            ("-1g", None),
            ("1.5g", None),
            ("4x", None),
            ("99999999999t", None),
        ] {
            assert_eq!(size_of(&text.into()), bytes, "{text}");
        }
    }
}
