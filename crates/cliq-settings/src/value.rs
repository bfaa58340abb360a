//! Values of settings as Rust types, and their lookup by the definition of a key.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cliq_protocol::{AgentTools, Effort, ExtraBody, Network, Permissions, Profile, Temperature};
use cliq_review::Directory;
use cliq_workflow::parse_duration;
use serde_json::Value;

use crate::keys::{Key, Kind, amount_of, size_of};
use crate::layers::Settings;
use crate::mesh::Mesh;
use crate::secret::Secret;

/// Type of a value.
pub(crate) trait SettingValue: Sized {
    /// Kind of a key with values of this type.
    const KIND: Kind;

    /// Returns the value, or `None` if it is not one of this type.
    fn from_json(value: &Value) -> Option<Self>;

    /// Returns the value of a key that is not set and has no default, or `None` if such a key needs a default.
    #[must_use]
    fn unset() -> Option<Self> {
        None
    }

    /// Whether [`Self::unset`] returns a value.
    const MAY_BE_UNSET: bool = false;
}

impl SettingValue for String {
    const KIND: Kind = Kind::Text;

    fn from_json(value: &Value) -> Option<Self> {
        value.as_str().map(str::to_owned)
    }
}

impl SettingValue for Secret {
    const KIND: Kind = Kind::Secret;

    fn from_json(value: &Value) -> Option<Self> {
        value.as_str().map(Self::new)
    }
}

impl SettingValue for usize {
    const KIND: Kind = Kind::Count;

    fn from_json(value: &Value) -> Option<Self> {
        Self::try_from(value.as_u64()?).ok()
    }
}

impl SettingValue for f64 {
    const KIND: Kind = Kind::Amount;

    fn from_json(value: &Value) -> Option<Self> {
        amount_of(value)
    }
}

impl SettingValue for bool {
    const KIND: Kind = Kind::Flag;

    fn from_json(value: &Value) -> Option<Self> {
        value.as_bool()
    }
}

impl SettingValue for Duration {
    const KIND: Kind = Kind::Duration;

    fn from_json(value: &Value) -> Option<Self> {
        parse_duration(value.as_str()?).ok()
    }
}

impl SettingValue for u64 {
    const KIND: Kind = Kind::Size;

    fn from_json(value: &Value) -> Option<Self> {
        size_of(value)
    }
}

impl SettingValue for Vec<String> {
    const KIND: Kind = Kind::List;
    const MAY_BE_UNSET: bool = true;

    fn from_json(value: &Value) -> Option<Self> {
        Some(value.as_array()?.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect())
    }

    fn unset() -> Option<Self> {
        Some(Self::new())
    }
}

impl SettingValue for Vec<Mesh> {
    const KIND: Kind = Kind::Meshes;
    const MAY_BE_UNSET: bool = true;

    fn from_json(value: &Value) -> Option<Self> {
        Mesh::read(value)
    }

    fn unset() -> Option<Self> {
        Some(Self::new())
    }
}

impl SettingValue for Directory {
    const KIND: Kind = Kind::Reviewers;
    const MAY_BE_UNSET: bool = true;

    fn from_json(value: &Value) -> Option<Self> {
        Self::from_value(value).ok()
    }

    fn unset() -> Option<Self> {
        Some(Self::default())
    }
}

impl SettingValue for AgentTools {
    const KIND: Kind = Kind::Tools;

    fn from_json(value: &Value) -> Option<Self> {
        serde_json::from_value(value.clone()).ok()
    }
}

impl SettingValue for Permissions {
    const KIND: Kind = Kind::Permissions;

    fn from_json(value: &Value) -> Option<Self> {
        serde_json::from_value(value.clone()).ok()
    }
}

impl SettingValue for Effort {
    const KIND: Kind = Kind::Choice(&Self::WORDS);

    fn from_json(value: &Value) -> Option<Self> {
        Self::parse(value.as_str()?)
    }
}

impl SettingValue for Temperature {
    const KIND: Kind = Kind::Temperature;

    fn from_json(value: &Value) -> Option<Self> {
        Self::new(amount_of(value)?)
    }
}

impl SettingValue for ExtraBody {
    const KIND: Kind = Kind::ExtraBody;
    const MAY_BE_UNSET: bool = true;

    fn from_json(value: &Value) -> Option<Self> {
        serde_json::from_value(value.clone()).ok()
    }

    fn unset() -> Option<Self> {
        Some(Self::default())
    }
}

impl SettingValue for Network {
    const KIND: Kind = Kind::Network;

    fn from_json(value: &Value) -> Option<Self> {
        Self::from_value(value.clone(), "network").ok()
    }
}

impl SettingValue for Profile {
    const KIND: Kind = Kind::Choice(&["off", "workspace", "strict"]);

    fn from_json(value: &Value) -> Option<Self> {
        Self::parse(value.as_str()?)
    }
}

/// Values of the settings of one group, with the name that stands for `*` in its keys.
pub(crate) struct Lookup<'a> {
    settings: &'a Settings,
    name: &'a str,
}

impl<'a> Lookup<'a> {
    pub(crate) fn new(settings: &'a Settings, name: &'a str) -> Self {
        Self { settings, name }
    }

    /// Returns the value of a key from the strongest file that sets it.
    fn value(&self, key: &Key) -> Option<&'a Value> {
        self.settings.value_at(|| key.path.split('.').map(|part| if part == "*" { self.name } else { part }))
    }

    /// Whether a file sets the key.
    pub(crate) fn is_set(&self, key: &Key) -> bool {
        match key.path.strip_suffix(".*") {
            Some(_) => !self.entries(key).is_empty(),
            None => self.value(key).is_some(),
        }
    }

    /// Returns the values of a key that ends with `*`, by user-defined name.
    fn entries(&self, key: &Key) -> BTreeMap<&'a str, &'a Value> {
        // `*` within the path is the name of the group, that at its end those of the entries.
        let group = key.path.trim_end_matches(".*");
        let parts: Vec<&str> =
            group.split('.').map(|part| if part == "*" { self.name } else { part }).collect();
        self.settings.objects_at(&parts).flatten().map(|(name, value)| (name.as_str(), value)).collect()
    }
}

/// Returns the user-defined names of which a file sets one of these keys.
pub(crate) fn names(settings: &Settings, keys: &[Key]) -> BTreeSet<String> {
    let group = keys.first().and_then(|key| key.path.split_once(".*")).map_or("", |(group, _)| group);
    let mut names = BTreeSet::new();
    let parts: Vec<&str> = group.split('.').collect();
    for (name, _) in settings.objects_at(&parts).flatten() {
        let lookup = Lookup::new(settings, name);
        if !names.contains(name) && keys.iter().any(|key| lookup.is_set(key)) {
            names.insert(name.clone());
        }
    }
    names
}

/// Type of a field in a group.
pub(crate) trait Field: Sized {
    /// Kind of the key.
    const KIND: Kind;
    /// Whether the key must have a default.
    const NEEDS_DEFAULT: bool;

    /// Reads the field.
    fn read(lookup: &Lookup<'_>, key: &Key) -> Self;
}

impl<T: SettingValue> Field for T {
    const KIND: Kind = T::KIND;
    const NEEDS_DEFAULT: bool = !T::MAY_BE_UNSET;

    fn read(lookup: &Lookup<'_>, key: &Key) -> Self {
        let of_default = || {
            let value = key.parse(key.path, key.default?).ok()?;
            T::from_json(&value)
        };
        lookup.value(key).and_then(T::from_json).or_else(of_default).or_else(T::unset).unwrap_or_else(|| {
            unreachable!(
                "the definition of a key without a value of its own has a default, and a test parses them all"
            )
        })
    }
}

impl<T: SettingValue> Field for Option<T> {
    const KIND: Kind = T::KIND;
    const NEEDS_DEFAULT: bool = false;

    fn read(lookup: &Lookup<'_>, key: &Key) -> Self {
        lookup.value(key).and_then(T::from_json)
    }
}

impl<T: SettingValue> Field for BTreeMap<String, T> {
    const KIND: Kind = T::KIND;
    const NEEDS_DEFAULT: bool = false;

    fn read(lookup: &Lookup<'_>, key: &Key) -> Self {
        let entries = lookup.entries(key).into_iter();
        entries.filter_map(|(name, value)| Some((name.to_owned(), T::from_json(value)?))).collect()
    }
}
