//! Reading settings: defaults, a person's file, a project's file.

use std::cell::LazyCell;
use std::collections::BTreeMap;
use std::fmt;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_protocol::{FieldError, Sandbox};
use serde_json::{Map, Value};

use crate::SettingsError;
use crate::edit::remove;
use crate::groups::{DockerSettings, EnforcementSettings, KEYS, KubernetesSettings};
use crate::keys::{Class, Key, parts};

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
    /// Whether the last layer is a project's.
    has_project: bool,
    /// Sandboxes of the layers, in the same order. Those that restrict nothing are left out.
    sandboxes: Vec<Sandbox>,
}

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
        let mut settings = Self { layers, has_project: project.is_some(), sandboxes: Vec::new() };
        if project.is_some() {
            settings.restrict_project();
        }
        for (file, values) in &settings.layers {
            let sandbox = sandbox_of(values)
                .map_err(|source| SettingsError::In { file: file.clone(), source: Box::new(source) })?;
            settings.sandboxes.extend(sandbox.filter(Sandbox::is_on));
        }
        Ok(settings)
    }

    /// Removes from the project's file the settings that are not a project's to choose, by their class.
    fn restrict_project(&mut self) {
        let Some((file, mut project)) = self.layers.pop() else { return };
        // The person's settings alone are left.
        let has_backend =
            LazyCell::new(|| DockerSettings::read(self).enabled || KubernetesSettings::read(self).enabled);
        let is_refused = |path: &str| match Key::find(path).map(|key| key.class) {
            Ok(Class::Person) => true,
            Ok(Class::Backend) => *has_backend,
            Ok(Class::Shared | Class::Machine) | Err(_) => false,
        };
        let refused = leaves(&project).into_iter().map(|(path, _)| path).filter(|path| is_refused(path));
        for path in refused.collect::<Vec<_>>() {
            remove(&mut project, &parts(&path));
        }
        self.layers.push((file, project));
    }

    /// Returns a setting, its value or else its default, to be shown. Code that uses a setting reads its group.
    ///
    /// # Errors
    /// The key does not exist.
    pub fn entry(&self, path: &str) -> Result<Entry, SettingsError> {
        let key = Key::find(path)?;
        let set = self
            .layers
            .iter()
            .rev()
            .find_map(|(file, values)| Some((file, at(values, parts(path).into_iter())?)));
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

    /// Returns the value from the strongest file that sets the key with these parts.
    pub(crate) fn value_at<'p, P: Iterator<Item = &'p str>>(&self, parts: impl Fn() -> P) -> Option<&Value> {
        self.layers.iter().rev().find_map(|(_, values)| at(values, parts()))
    }

    /// Returns the objects of a group such as `docker.env`, given by its parts, the weakest first.
    pub(crate) fn objects_at<'a>(&'a self, group: &[&str]) -> impl Iterator<Item = &'a Map<String, Value>> {
        self.layers.iter().filter_map(move |(_, values)| at(values, group.iter().copied())?.as_object())
    }

    /// Whether the project's file sets a value, or values below it, at these parts of a key.
    pub(crate) fn is_set_by_project(&self, parts: &[&str]) -> bool {
        let project = self.layers.last().filter(|_| self.has_project);
        project.is_some_and(|(_, values)| at(values, parts.iter().copied()).is_some())
    }

    /// Sandboxes that the files set, the person's first. All of them hold: what they allow together is what each allows.
    #[must_use]
    pub fn sandboxes(&self) -> Vec<Sandbox> {
        self.sandboxes.clone()
    }
}

/// Returns the sandbox that a file sets, or `None` if it sets none.
///
/// # Errors
/// Returns an error if the fields do not make a sandbox together: one that was ignored would leave agents unrestricted.
pub(crate) fn sandbox_of(values: &Map<String, Value>) -> Result<Option<Sandbox>, SettingsError> {
    let Some(mut value) = values.get("sandbox").cloned() else { return Ok(None) };
    if let Value::Object(fields) = &mut value {
        let enforcement =
            || EnforcementSettings::KEYS.iter().filter_map(|key| key.path.strip_prefix("sandbox."));
        fields.retain(|name, _| enforcement().all(|other| name != other));
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
    // Editors write the address of the schema into the file.
    let settings = values.iter().filter(|(key, value)| *key != "$schema" || !value.is_string());
    let mut pending: Vec<(String, &Value)> = settings.map(|(key, value)| (key.clone(), value)).collect();
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

fn at<'a, 'p>(values: &'a Map<String, Value>, mut parts: impl Iterator<Item = &'p str>) -> Option<&'a Value> {
    let mut value = values.get(parts.next()?)?;
    for part in parts {
        value = value.as_object()?.get(part)?;
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::groups::{LauncherChoice, MechanismChoice, MissingSandbox, PriceSettings, RunSettings};

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
        assert_eq!(EnforcementSettings::read(&settings).missing, MissingSandbox::Refuse);
        assert_eq!(EnforcementSettings::read(&settings).mechanism, MechanismChoice::Landlock);
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
        assert!(PriceSettings::all(&settings).iter().count() >= 20_000);
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
        assert!(DockerSettings::read(&settings).enabled && !KubernetesSettings::read(&settings).enabled);
        assert_ne!(DockerSettings::read(&settings).image, "evil");
        assert_eq!(
            RunSettings::read(&settings).launcher,
            LauncherChoice::Tmux,
            "what is not a wall is the project's"
        );
        // Where a person has chosen no place, the project may.
        let settings = loaded("{}", evil);
        assert!(KubernetesSettings::read(&settings).enabled);
        assert_eq!(DockerSettings::read(&settings).image, "evil");
    }
}
