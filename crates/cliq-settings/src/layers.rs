//! Reading settings: defaults, a person's file, a project's file.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_protocol::{AgentTools, FieldError, Price, Sandbox};
use cliq_review::Directory;
use cliq_workflow::parse_duration;
use serde_json::{Map, Value};

use crate::SettingsError;
use crate::keys::{KEYS, Key, parts};
use crate::mesh::Mesh;
use crate::secret::Secret;

/// Source of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The built-in default.
    Default,
    /// A file.
    File(Utf8PathBuf),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(file) => f.write_str(file.as_str()),
        }
    }
}

/// A setting as it stands.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Entry {
    /// Key path of the setting.
    pub key: String,
    /// Value, secrets included, or `None` if there is neither a value nor a default.
    pub value: Option<Value>,
    /// Source of the value.
    pub source: Source,
    /// Description of the setting.
    pub about: &'static str,
    /// Whether its value is never shown.
    pub secret: bool,
}

/// All that is set.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The weakest first.
    layers: Vec<(Utf8PathBuf, Map<String, Value>)>,
    /// Sandboxes of the layers, in the same order. Those that restrict nothing are left out.
    sandboxes: Vec<Sandbox>,
}

/// The groups that say where runs work, in a container or a cluster, and how.
const PLACES: [&str; 2] = ["docker", "kubernetes"];

impl Settings {
    /// Reads the settings of a person, whose cliq home is `home`, and of a project. Files that are not there set nothing.
    ///
    /// A project cannot override containers or a cluster that a person's settings enable: agents can write the project's file, and
    /// would choose their own restrictions.
    ///
    /// # Errors
    /// A file cannot be read, is not JSON, has an unknown key or a value of the wrong type.
    pub fn load(home: Option<&Utf8Path>, project: Option<&Utf8Path>) -> Result<Self, SettingsError> {
        let mut layers = Vec::new();
        for file in
            home.map(|home| home.join("settings.json")).into_iter().chain(project.map(Utf8Path::to_owned))
        {
            let values = read(&file)?;
            check(&values)
                .map_err(|source| SettingsError::In { file: file.clone(), source: Box::new(source) })?;
            layers.push((file, values));
        }
        // Only a person chooses how a sandbox is enforced.
        if let (Some(_), Some((_, project))) = (project, layers.last_mut())
            && let Some(Value::Object(sandbox)) = project.get_mut("sandbox")
        {
            sandbox.retain(|name, _| !ENFORCEMENT.contains(&name.as_str()));
        }
        if let (Some(_), Some((_, project))) = (project, layers.last_mut())
            && let Some(Value::Object(servers)) = project.get_mut("mcp")
        {
            for server in servers.values_mut().filter_map(Value::as_object_mut) {
                server.remove("trusted");
            }
        }
        if let [(_, own), (_, project)] = &mut layers[..] {
            let is_chosen = |group: &&str| at(own, &format!("{group}.enabled")) == Some(&Value::Bool(true));
            if PLACES.iter().any(is_chosen) {
                project.retain(|group, _| !PLACES.contains(&group.as_str()));
            }
        }
        let mut sandboxes = Vec::new();
        for (file, values) in &layers {
            let sandbox = sandbox_of(values)
                .map_err(|source| SettingsError::In { file: file.clone(), source: Box::new(source) })?;
            sandboxes.extend(sandbox.filter(Sandbox::is_on));
        }
        Ok(Self { layers, sandboxes })
    }

    /// A setting: its value, or else its default.
    ///
    /// # Errors
    /// The key does not exist.
    pub fn entry(&self, path: &str) -> Result<Entry, SettingsError> {
        let key = Key::find(path)?;
        let set = self.layers.iter().rev().find_map(|(file, values)| Some((file, at(values, path)?)));
        let (value, source) = match set {
            Some((file, value)) => (Some(value.clone()), Source::File(file.clone())),
            None => (key.default.and_then(|text| key.parse(path, text).ok()), Source::Default),
        };
        Ok(Entry { key: path.to_owned(), value, source, about: key.about, secret: key.is_secret() })
    }

    /// Every key without a name of the user's choice, and every other that is set.
    #[must_use]
    pub fn entries(&self) -> Vec<Entry> {
        // The paths that are set, by their key: one pass over each file.
        let mut set: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
        for (path, _) in self.layers.iter().flat_map(|(_, values)| leaves(values)) {
            if let Ok(key) = Key::find(&path) {
                set.entry(key.path).or_default().push(path);
            }
        }
        let mut entries = Vec::new();
        for key in KEYS {
            let mut paths = set.remove(key.path).unwrap_or_default();
            if !key.path.contains('*') {
                paths.push(key.path.to_owned());
            }
            paths.sort();
            paths.dedup();
            entries.extend(paths.iter().filter_map(|path| self.entry(path).ok()));
        }
        entries
    }

    /// Returns the lists below a group such as `notifications`, by user-defined name.
    #[must_use]
    pub fn lists_below(&self, group: &str) -> Vec<(String, Vec<String>)> {
        let prefix = format!("{group}.");
        self.set_below(&prefix)
            .into_iter()
            .map(|key| (key[prefix.len()..].to_owned(), self.list(&key)))
            .collect()
    }

    /// Whether a file sets something in a group such as `server.a2a`.
    #[must_use]
    pub fn has_below(&self, group: &str) -> bool {
        !self.set_below(&format!("{group}.")).is_empty()
    }

    /// The paths with this prefix that a file sets.
    fn set_below(&self, prefix: &str) -> BTreeSet<String> {
        let paths = self.layers.iter().flat_map(|(_, values)| leaves(values)).map(|(path, _)| path);
        paths.filter(|path| path.starts_with(prefix)).collect()
    }

    fn value(&self, path: &str) -> Option<Value> {
        self.entry(path).ok()?.value
    }

    /// A text.
    #[must_use]
    pub fn text(&self, path: &str) -> Option<String> {
        self.value(path)?.as_str().map(str::to_owned)
    }

    /// A text that is never shown.
    #[must_use]
    pub fn secret(&self, path: &str) -> Option<Secret> {
        self.text(path).map(Secret::new)
    }

    /// A whole number.
    #[must_use]
    pub fn count(&self, path: &str) -> Option<usize> {
        usize::try_from(self.value(path)?.as_u64()?).ok()
    }

    /// A number.
    #[must_use]
    pub fn amount(&self, path: &str) -> Option<f64> {
        crate::keys::amount_of(&self.value(path)?)
    }

    /// Names of the user's choice in a group such as `prices`, of which something is set.
    #[must_use]
    pub fn names_below(&self, group: &str) -> Vec<String> {
        let prefix = format!("{group}.");
        let paths = self.set_below(&prefix);
        let mut names: Vec<String> = paths
            .iter()
            .filter_map(|key| Some(key.strip_prefix(&prefix)?.rsplit_once('.')?.0.to_owned()))
            .collect();
        names.dedup();
        names
    }

    /// Yes or no; no where it is not set.
    #[must_use]
    pub fn flag(&self, path: &str) -> bool {
        self.value(path).and_then(|value| value.as_bool()).unwrap_or_default()
    }

    /// A flag, or `None` if it is not set and has no default.
    #[must_use]
    pub fn flag_if_set(&self, path: &str) -> Option<bool> {
        self.value(path).and_then(|value| value.as_bool())
    }

    /// The tools of an agent (`agents.NAME.tools`), if they are set.
    #[must_use]
    pub fn agent_tools(&self, agent: &str) -> Option<AgentTools> {
        let value = self.value(&format!("agents.{agent}.tools"))?;
        serde_json::from_value(value).ok()
    }

    /// Names of the MCP servers that are set.
    #[must_use]
    pub fn mcp_servers(&self) -> Vec<String> {
        let mut names = self.names_below("mcp");
        names.sort();
        names.dedup();
        names
    }

    /// Prices of models, by model (`prices.MODEL`).
    #[must_use]
    pub fn prices(&self) -> BTreeMap<String, Price> {
        let price = |model: String| {
            let part = |part: &str| self.amount(&format!("prices.{model}.{part}"));
            let price = Price { input: part("in")?, output: part("out")?, cached: part("cached") };
            Some((model, price))
        };
        self.names_below("prices").into_iter().filter_map(price).collect()
    }

    /// A duration.
    #[must_use]
    pub fn duration(&self, path: &str) -> Option<Duration> {
        parse_duration(self.value(path)?.as_str()?).ok()
    }

    /// A number of bytes.
    #[must_use]
    pub fn size(&self, path: &str) -> Option<u64> {
        crate::keys::size_of(&self.value(path)?)
    }

    /// The texts of a group such as `docker.env`, by name.
    #[must_use]
    pub fn texts_below(&self, group: &str) -> BTreeMap<String, String> {
        let prefix = format!("{group}.");
        let paths = self.set_below(&prefix);
        paths
            .iter()
            .filter_map(|path| Some((path.strip_prefix(&prefix)?.to_owned(), self.text(path)?)))
            .collect()
    }

    /// Sandboxes that the files set, the person's first. All of them hold: what they allow together is what each allows.
    #[must_use]
    pub fn sandboxes(&self) -> Vec<Sandbox> {
        self.sandboxes.clone()
    }

    /// The meshes of `server.a2a.meshes`.
    #[must_use]
    pub fn meshes(&self) -> Vec<Mesh> {
        self.value("server.a2a.meshes").as_ref().and_then(Mesh::read).unwrap_or_default()
    }

    /// The people and groups of `hug.reviewers`.
    #[must_use]
    pub fn reviewers(&self) -> Directory {
        let value = self.value("hug.reviewers");
        value.as_ref().and_then(|value| Directory::from_value(value).ok()).unwrap_or_default()
    }

    /// A list of texts; empty where it is not set.
    #[must_use]
    pub fn list(&self, path: &str) -> Vec<String> {
        let Some(Value::Array(items)) = self.value(path) else { return Vec::new() };
        items.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect()
    }
}

/// Returns the sandbox that a file sets, or `None` if it sets none.
///
/// # Errors
/// Returns an error if the fields do not make a sandbox together: one that was ignored would leave agents unrestricted.
pub(crate) fn sandbox_of(values: &Map<String, Value>) -> Result<Option<Sandbox>, SettingsError> {
    let Some(mut value) = values.get("sandbox").cloned() else { return Ok(None) };
    if let Value::Object(fields) = &mut value {
        fields.retain(|name, _| !ENFORCEMENT.contains(&name.as_str()));
        if fields.is_empty() {
            return Ok(None);
        }
    }
    let wrong = |error: FieldError| SettingsError::Type {
        key: error.field,
        expected: error.expected,
        found: error.found,
    };
    Sandbox::from_value(value, "sandbox").map(Some).map_err(wrong)
}

/// Settings of `sandbox` that say how it is enforced.
const ENFORCEMENT: &[&str] = &["mechanism", "missing"];

/// The most bytes of a settings file.
const FILE_LIMIT: u64 = 16 << 20;

/// Reads the settings of a file. Empty if the file does not exist.
pub(crate) fn read(file: &Utf8Path) -> Result<Map<String, Value>, SettingsError> {
    let Some(bytes) = cliq_fs::read_if_exists(file, FILE_LIMIT).map_err(SettingsError::Unreadable)? else {
        return Ok(Map::new());
    };
    let broken = |message: String| SettingsError::Syntax { file: file.to_owned(), message };
    match serde_json::from_slice(&bytes) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err(broken("settings are a JSON object".to_owned())),
        Err(error) => Err(broken(error.to_string())),
    }
}

fn check(values: &Map<String, Value>) -> Result<(), SettingsError> {
    for (path, value) in leaves(values) {
        Key::find(&path)?.check(&path, value)?;
    }
    Ok(())
}

/// Every value with its path. What is inside a group that exists is looked into; everything else is a value.
fn leaves(values: &Map<String, Value>) -> Vec<(String, &Value)> {
    let mut found = Vec::new();
    let mut pending: Vec<(String, &Value)> = values.iter().map(|(key, value)| (key.clone(), value)).collect();
    while let Some((path, value)) = pending.pop() {
        match value {
            Value::Object(map) if Key::is_group(&path) => {
                pending.extend(map.iter().map(|(key, value)| (format!("{path}.{key}"), value)));
            }
            _ => found.push((path, value)),
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

fn at<'a>(values: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    let (mut parts, mut map) = (parts(path).into_iter(), values);
    let last = parts.next_back()?;
    for part in parts {
        map = map.get(part)?.as_object()?;
    }
    map.get(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn project_does_not_choose_how_its_sandbox_is_enforced() {
        let dir = tempfile::tempdir().expect("a directory");
        let home = Utf8Path::from_path(dir.path()).expect("UTF-8");
        let project = home.join("project.json");
        std::fs::write(
            home.join("settings.json"),
            r#"{"sandbox": {"profile": "workspace", "mechanism": "landlock"}}"#,
        )
        .expect("written");
        let of_project = r#"{"sandbox": {"profile": "off", "mechanism": "bubblewrap", "missing": "warn"}}"#;
        std::fs::write(&project, of_project).expect("written");
        let settings = Settings::load(Some(home), Some(&project)).expect("settings");
        assert_eq!(settings.text("sandbox.missing").as_deref(), Some("refuse"));
        assert_eq!(settings.text("sandbox.mechanism").as_deref(), Some("landlock"));
        assert_eq!(settings.sandboxes(), [Sandbox::profile(cliq_protocol::Profile::Workspace)]);
        std::fs::write(&project, r#"{"sandbox": "strict"}"#).expect("written");
        let settings = Settings::load(Some(home), Some(&project)).expect("settings");
        assert_eq!(settings.sandboxes().len(), 2);
    }

    #[test]
    fn sandbox_that_cannot_be_read_is_an_error_with_its_place() {
        let dir = tempfile::tempdir().expect("a directory");
        let home = Utf8Path::from_path(dir.path()).expect("UTF-8");
        for (field, value) in [("write", r#"["a\u0000b"]"#), ("read", r#"[""]"#), ("env", r#"["A", ""]"#)] {
            let text = format!(r#"{{"sandbox": {{"profile": "strict", "{field}": {value}}}}}"#);
            std::fs::write(home.join("settings.json"), text).expect("written");
            let error = Settings::load(Some(home), None).expect_err(field).to_string();
            assert!(
                error.contains("settings.json") && error.contains(&format!("sandbox.{field}")),
                "{error}"
            );
        }
    }

    #[test]
    fn large_settings_are_listed_in_linear_time() {
        let dir = tempfile::tempdir().expect("a directory");
        let home = Utf8Path::from_path(dir.path()).expect("UTF-8");
        let prices: Map<String, Value> =
            (0..20_000).map(|n| (format!("model-{n}.5"), serde_json::json!({"in": 1, "out": 2}))).collect();
        let values = serde_json::json!({ "prices": prices });
        std::fs::write(home.join("settings.json"), values.to_string()).expect("written");
        let settings = Settings::load(Some(home), None).expect("settings");
        assert_eq!(settings.prices().len(), 20_000);
        let entries = settings.entries();
        assert_eq!(entries.iter().filter(|entry| entry.key.starts_with("prices.")).count(), 40_000);
        // The groups of reviewers that contain each other, in a file that agents can write.
        let bomb = include_str!("../../../fixtures/fuzz/settings-reviewers-bomb.json");
        std::fs::write(home.join("settings.json"), bomb).expect("written");
        let error = Settings::load(Some(home), None).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains("hug.reviewers") && error.len() < 1500, "{error}");
        let long = serde_json::json!({"log": {"level": "x".repeat(1_000_000)}, "y".repeat(100_000): 1});
        std::fs::write(home.join("settings.json"), long.to_string()).expect("written");
        let error = Settings::load(Some(home), None).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(!error.is_empty() && error.len() < 1500, "{} bytes", error.len());
    }

    #[test]
    fn a_project_does_not_choose_its_own_walls() {
        let dir = tempfile::tempdir().expect("a directory");
        let home = Utf8Path::from_path(dir.path()).expect("UTF-8");
        let project = home.join("project.json");
        let loaded = |own: &str, of_project: &str| {
            std::fs::write(home.join("settings.json"), own).expect("written");
            std::fs::write(&project, of_project).expect("written");
            Settings::load(Some(home), Some(&project)).expect("settings")
        };
        let evil = r#"{"docker": {"enabled": false, "image": "evil"}, "kubernetes": {"enabled": true}, "launcher": "tmux"}"#;
        let settings = loaded(r#"{"docker": {"enabled": true}}"#, evil);
        assert!(settings.flag("docker.enabled") && !settings.flag("kubernetes.enabled"));
        assert_ne!(settings.text("docker.image").as_deref(), Some("evil"));
        assert_eq!(settings.text("launcher").as_deref(), Some("tmux"), "what is not a wall is the project's");
        // Where a person has chosen no place, the project may.
        let settings = loaded("{}", evil);
        assert!(settings.flag("kubernetes.enabled"));
        assert_eq!(settings.text("docker.image").as_deref(), Some("evil"));
    }
}
