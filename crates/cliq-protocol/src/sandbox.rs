//! Restrictions of processes, as teams and settings write them (docs/sandbox.md).

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::FieldError;
use crate::fields::{Fields, describe};

/// Strictness of a sandbox, in ascending order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// No sandbox.
    #[default]
    Off,
    /// Write access to the workspace; read access to all but secrets.
    Workspace,
    /// Read access to the workspace and to system programs only.
    Strict,
}

impl Profile {
    /// All profiles, in ascending order of strictness.
    pub const ALL: [Self; 3] = [Self::Off, Self::Workspace, Self::Strict];

    /// Name of the profile.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Workspace => "workspace",
            Self::Strict => "strict",
        }
    }

    /// Returns the profile of a name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|profile| profile.as_str() == name)
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Pattern of hosts: a name, an address, or `*.` and a name for all names below it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostPattern(String);

impl HostPattern {
    /// Parses a pattern. Letters become lower case.
    ///
    /// # Errors
    /// Returns a description of what is expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim_end_matches('.').to_ascii_lowercase();
        let name = text.strip_prefix("*.").unwrap_or(&text);
        let is_address = text.parse::<std::net::IpAddr>().is_ok();
        if is_address || name.len() <= 253 && name.split('.').all(is_label) {
            return Ok(Self(text));
        }
        Err("the name of a host such as `example.com`, `*.example.com`, or an address".to_owned())
    }

    /// Text of the pattern.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a host is one of the pattern. `host` may have capital letters and a final dot.
    #[must_use]
    pub fn matches(&self, host: &str) -> bool {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        match self.0.strip_prefix("*.") {
            // What stands for `*` are labels of a name: `:.example.com` is not a host.
            Some(name) => host
                .strip_suffix(name)
                .and_then(|rest| rest.strip_suffix('.'))
                .is_some_and(|rest| rest.split('.').all(is_label)),
            None => host == self.0,
        }
    }

    /// Whether all hosts of `other` are hosts of this pattern.
    #[must_use]
    pub fn contains(&self, other: &Self) -> bool {
        match (self.0.strip_prefix("*."), other.0.strip_prefix("*.")) {
            (Some(own), Some(name)) => name == own || self.matches(name),
            (_, None) => self.matches(&other.0),
            (None, Some(_)) => false,
        }
    }
}

impl TryFrom<String> for HostPattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text)
    }
}

impl From<HostPattern> for String {
    fn from(pattern: HostPattern) -> Self {
        pattern.0
    }
}

/// Whether a text can be a part of a host's name.
fn is_label(label: &str) -> bool {
    let inner = label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    !label.is_empty() && label.len() <= 63 && inner && !label.starts_with('-') && !label.ends_with('-')
}

/// Network access.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Network {
    /// All hosts.
    #[default]
    All,
    /// These hosts only, through a proxy.
    Hosts(Vec<HostPattern>),
    /// No sockets.
    None,
}

impl Network {
    /// Returns the access that both allow.
    #[must_use]
    pub fn within(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::All, access) | (access, Self::All) => access.clone(),
            (Self::None, _) | (_, Self::None) => Self::None,
            (Self::Hosts(a), Self::Hosts(b)) => {
                let in_b = a.iter().filter(|host| b.iter().any(|other| other.contains(host)));
                let in_a = b.iter().filter(|host| a.iter().any(|other| other.contains(host)));
                let mut hosts: Vec<HostPattern> = in_b.chain(in_a).cloned().collect();
                hosts.sort();
                hosts.dedup();
                if hosts.is_empty() { Self::None } else { Self::Hosts(hosts) }
            }
        }
    }

    /// Whether a host may be reached.
    #[must_use]
    pub fn allows(&self, host: &str) -> bool {
        match self {
            Self::All => true,
            Self::Hosts(patterns) => patterns.iter().any(|pattern| pattern.matches(host)),
            Self::None => false,
        }
    }

    /// Parses `all`, `none`, or a list of hosts.
    ///
    /// # Errors
    /// Returns an error that names the field of `path`.
    pub fn from_value(value: Value, path: &str) -> Result<Self, FieldError> {
        let expected = "`all`, `none`, or a list of hosts such as `[example.com, \"*.example.org\"]`";
        let wrong = |field: String, expected: String, found: &Value| FieldError {
            field,
            expected,
            found: describe(found),
        };
        match value {
            Value::String(text) if text == "all" => Ok(Self::All),
            Value::String(text) if text == "none" => Ok(Self::None),
            Value::Array(items) if !items.is_empty() => {
                let hosts = items.into_iter().enumerate().map(|(n, item)| {
                    let field = format!("{path}[{n}]");
                    match &item {
                        Value::String(text) => {
                            HostPattern::parse(text).map_err(|why| wrong(field, why, &item))
                        }
                        _ => Err(wrong(field, "the name of a host".to_owned(), &item)),
                    }
                });
                hosts.collect::<Result<_, _>>().map(Self::Hosts)
            }
            other => Err(wrong(path.to_owned(), expected.to_owned(), &other)),
        }
    }

    /// As written in files.
    #[must_use]
    pub fn to_value(&self) -> Value {
        match self {
            Self::All => json!("all"),
            Self::Hosts(hosts) => json!(hosts),
            Self::None => json!("none"),
        }
    }
}

impl Serialize for Network {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_value().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Network {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_value(Value::deserialize(deserializer)?, "network").map_err(serde::de::Error::custom)
    }
}

/// Value of `sandbox`: a profile, or an object with a profile and exceptions from it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sandbox {
    /// Profile.
    pub profile: Profile,
    /// Paths that may be read too: absolute, below `~/`, or relative to the workspace.
    pub read: Vec<String>,
    /// Paths that may be read and written too.
    pub write: Vec<String>,
    /// Network access.
    pub network: Network,
    /// Environment variables that are kept.
    pub env: Vec<String>,
}

/// As people read it: the profile, then exceptions.
impl fmt::Display for Sandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.profile.fmt(f)?;
        match &self.network {
            Network::All => {}
            Network::None => f.write_str(", no network")?,
            Network::Hosts(hosts) => {
                let hosts: Vec<&str> = hosts.iter().map(HostPattern::as_str).collect();
                write!(f, ", network {}", hosts.join(" "))?;
            }
        }
        for (name, list) in [("read", &self.read), ("write", &self.write), ("env", &self.env)] {
            if !list.is_empty() {
                write!(f, ", {name} {}", list.join(" "))?;
            }
        }
        Ok(())
    }
}

impl Sandbox {
    /// Names of the fields of the object.
    pub const FIELDS: &[&str] = &["profile", "read", "write", "network", "env"];

    /// A profile without exceptions.
    #[must_use]
    pub fn profile(profile: Profile) -> Self {
        Self { profile, ..Self::default() }
    }

    /// Whether anything is restricted.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.profile != Profile::Off
    }

    /// Parses the value of `sandbox`.
    ///
    /// # Errors
    /// Returns an error that names the field, which begins with `path`.
    pub fn from_value(value: Value, path: &str) -> Result<Self, FieldError> {
        let expected = "`off`, `workspace`, `strict`, or an object with `profile`";
        let profile = |value: &Value, field: &str| {
            value.as_str().and_then(Profile::parse).ok_or_else(|| FieldError {
                field: field.to_owned(),
                expected: expected.to_owned(),
                found: describe(value),
            })
        };
        if !value.is_object() {
            return Ok(Self::profile(profile(&value, path)?));
        }
        let mut fields = Fields::new(value, path)?;
        let field = format!("{path}.profile");
        let profile = match fields.take("profile") {
            Some(value) => profile(&value, &field)?,
            // What is restricted without a profile is restricted.
            None => Profile::Workspace,
        };
        let texts = |fields: &mut Fields, name: &str, expected: &str| match fields.take(name) {
            None => Ok(Vec::new()),
            Some(value) => {
                let list = serde_json::from_value::<Vec<String>>(value.clone()).ok();
                let list = list.filter(|list| list.iter().all(|text| is_plain(text)));
                list.ok_or_else(|| fields.wrong(name, expected, &value))
            }
        };
        let read = texts(&mut fields, "read", "a list of paths")?;
        let write = texts(&mut fields, "write", "a list of paths")?;
        let env = texts(&mut fields, "env", "a list of names of environment variables")?;
        let network = match fields.take("network") {
            Some(value) => Network::from_value(value, &format!("{path}.network"))?,
            None => Network::All,
        };
        if let Some((name, value)) = fields.rest().into_iter().next() {
            return Err(FieldError {
                field: format!("{path}.{name}"),
                expected: format!("one of {}", Self::FIELDS.join(", ")),
                found: describe(&value),
            });
        }
        let sandbox = Self { profile, read, write, network, env };
        if profile == Profile::Off && sandbox != Self::default() {
            let expected = "no other field: the profile `off` restricts nothing".to_owned();
            return Err(FieldError {
                field: path.to_owned(),
                expected,
                found: describe(&sandbox.to_value()),
            });
        }
        Ok(sandbox)
    }

    /// As written in files: the name of the profile if there are no exceptions.
    #[must_use]
    pub fn to_value(&self) -> Value {
        if *self == Self::profile(self.profile) {
            return json!(self.profile);
        }
        let mut value = json!({"profile": self.profile});
        for (name, list) in [("read", &self.read), ("write", &self.write), ("env", &self.env)] {
            if !list.is_empty() {
                value[name] = json!(list);
            }
        }
        if self.network != Network::All {
            value["network"] = self.network.to_value();
        }
        value
    }
}

fn is_plain(text: &str) -> bool {
    !text.is_empty() && !text.contains('\0')
}

impl Serialize for Sandbox {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_value().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Sandbox {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_value(Value::deserialize(deserializer)?, "sandbox").map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(text: &str) -> HostPattern {
        HostPattern::parse(text).expect("a pattern")
    }

    #[test]
    fn wildcard_stands_for_labels_only() {
        let pattern = host("*.example.com");
        for right in ["a.example.com", "a.b.example.com", "A-1.Example.COM.", "x_y.example.com"] {
            assert!(pattern.matches(right), "{right}");
        }
        for wrong in [
            "example.com",
            ".example.com",
            ":.example.com",
            "a..example.com",
            "[.example.com",
            "a b.example.com",
            "-a.example.com",
            "aexample.com",
            "/.example.com",
        ] {
            assert!(!pattern.matches(wrong), "{wrong}");
        }
    }

    #[test]
    fn values_are_read_and_written() {
        for value in [
            json!("off"),
            json!("strict"),
            json!({"profile": "workspace", "write": ["~/.cache", "/srv/x"], "network": "none"}),
            json!({"profile": "strict", "read": ["../lib"], "network": ["example.com", "*.crates.io"], "env": ["KEY"]}),
        ] {
            let sandbox = Sandbox::from_value(value.clone(), "sandbox").expect("valid");
            assert_eq!(sandbox.to_value(), value);
        }
        let implied = Sandbox::from_value(json!({"network": "none"}), "sandbox").expect("valid");
        assert_eq!(implied.profile, Profile::Workspace);
    }

    #[test]
    fn errors_name_the_field() {
        for (value, says) in [
            (json!("on"), "field `sandbox`: expected `off`, `workspace`, `strict`"),
            (json!({"profile": "lax"}), "sandbox.profile"),
            (json!({"profile": "off", "network": "none"}), "restricts nothing"),
            (json!({"read": "x"}), "sandbox.read"),
            (json!({"network": []}), "sandbox.network"),
            (json!({"network": ["a b"]}), "sandbox.network[0]"),
            (json!({"net": "none"}), "sandbox.net"),
        ] {
            let error = Sandbox::from_value(value, "sandbox").expect_err("invalid").to_string();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn patterns_match_names_below_them() {
        assert!(host("*.Example.com").matches("a.b.example.com."));
        assert!(
            !host("*.example.com").matches("example.com") && !host("*.example.com").matches("badexample.com")
        );
        assert!(host("*.example.com").contains(&host("*.a.example.com")));
        assert!(!host("a.example.com").contains(&host("*.a.example.com")));
    }
}
