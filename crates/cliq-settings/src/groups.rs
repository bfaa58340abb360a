//! Definitions of all settings: one struct per group.
//!
//! A definition has the key, the name and type of the field, the default and the description; the group has the security class, which a key can
//! narrow with `@`. [`KEYS`](crate::KEYS), the reader of the group and `cliq settings` follow from it.

mod a2a;
mod agents;
mod checkpoints;
mod code_hosts;
mod connectors;
mod docker;
mod kubernetes;
mod mcp;
mod notifications;
mod packages;
mod plans;
mod prices;
mod reviews;
mod runs;
mod sandbox;
mod server;
mod telemetry;
mod transfers;
mod triggers;
mod trust;

pub use a2a::{A2aSettings, CardSettings, InputSettings};
pub use agents::{AgentKind, AgentSettings, BuilderSettings, CacheLifetime, ModelProvider};
pub use checkpoints::CheckpointSettings;
pub use code_hosts::{BitbucketSettings, GithubSettings, GitlabSettings};
pub use connectors::{GdriveAccount, GdriveSettings};
pub use docker::DockerSettings;
pub use kubernetes::{ImagePullPolicy, KubernetesSettings};
pub use mcp::McpServerSettings;
pub use notifications::{
    EmailSettings, MailSecurity, NotificationSettings, SlackChannelSettings, WebhookChannelSettings,
};
pub use packages::{PackageSettings, ScopeTrustSettings};
pub use plans::{PlanSettings, RoleSettings, TaskLoopChoice};
pub use prices::{PRICES_DATE, PriceSettings, PriceSource};
pub use reviews::ReviewSettings;
pub use runs::{DurabilityChoice, LauncherChoice, RunSettings};
pub use sandbox::{EnforcementSettings, MechanismChoice, MissingSandbox};
pub use server::{DatabaseSettings, OidcSettings, RecoveryChoice, ReplicaSettings, ServerSettings};
pub use telemetry::TelemetrySettings;
pub use transfers::{PullSettings, PushSettings};
pub use triggers::TriggerSettings;
pub use trust::TrustSettings;

use crate::keys::Key;

/// Defines a group: a struct with a field per setting, or with `keys` only the keys.
///
/// A definition reads `"key", field: Type = "default", "description";`. `Type` decides the kind of the key, unless `as Kind` names another one.
/// `of NAME` makes a group that is read once for each user-defined name, which stands for `*` in its keys.
macro_rules! group {
    (
        $(#[$meta:meta])*
        $class:ident keys $name:ident {
            $($path:literal, $ty:ty $(as $kind:ident)? $(= $default:literal)?, $about:literal;)*
        }
    ) => {
        $(#[$meta])*
        pub(super) const $name: &[$crate::keys::Key] = &[
            $(group!(@key $class, $path, $ty, [$($kind)?], [$($default)?], $about)),*
        ];
    };
    (
        $(#[$meta:meta])*
        $class:ident struct $name:ident $(of $of:ident)? {
            $(
                $(@$own:ident)? $path:literal, $field:ident: $ty:ty $(as $kind:ident)? $(= $default:literal)?,
                $about:literal;
            )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name {
            $(
                #[doc = concat!("`", $path, "`: ", $about, ".")]
                pub $field: $ty,
            )*
        }

        impl $name {
            pub(crate) const KEYS: &'static [$crate::keys::Key] = &[
                $(group!(@key [$($own)? $class], $path, $ty, [$($kind)?], [$($default)?], $about)),*
            ];

            fn of(lookup: &$crate::value::Lookup<'_>) -> Self {
                Self {
                    $($field: {
                        const KEY: $crate::keys::Key =
                            group!(@key [$($own)? $class], $path, $ty, [$($kind)?], [$($default)?], $about);
                        const {
                            assert!(KEY.default.is_some() || !<$ty as $crate::value::Field>::NEEDS_DEFAULT);
                        }
                        <$ty as $crate::value::Field>::read(lookup, &KEY)
                    }),*
                }
            }

            group!(@read $($of)?);
        }
    };
    (@read) => {
        /// Reads the group.
        #[must_use]
        pub fn read(settings: &$crate::Settings) -> Self {
            Self::of(&$crate::value::Lookup::new(settings, ""))
        }
    };
    (@read $of:ident) => {
        /// Reads the group of a name.
        #[must_use]
        pub fn read(settings: &$crate::Settings, $of: &str) -> Self {
            Self::of(&$crate::value::Lookup::new(settings, $of))
        }
    };
    (@key [$class:ident $($group:ident)?], $($rest:tt)*) => { group!(@key $class, $($rest)*) };
    (@key $class:ident, $path:literal, $ty:ty, [$($kind:ident)?], [$($default:literal)?], $about:literal) => {
        $crate::keys::Key {
            path: $path,
            kind: group!(@kind $ty, $($kind)?),
            about: $about,
            default: group!(@default $($default)?),
            class: $crate::keys::Class::$class,
        }
    };
    (@kind $ty:ty,) => { <$ty as $crate::value::Field>::KIND };
    (@kind $ty:ty, $kind:ident) => { $crate::keys::Kind::$kind };
    (@default) => { None };
    (@default $default:literal) => { Some($default) };
}
use group;

/// Defines the values of a setting that takes one of some words.
macro_rules! choice {
    (
        $(#[$meta:meta])*
        enum $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)* }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name { $($(#[$doc])* $variant),* }

        impl $name {
            /// Word of the value.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),* }
            }
        }

        impl $crate::value::SettingValue for $name {
            const KIND: $crate::keys::Kind = $crate::keys::Kind::Choice(&[$($word),*]);

            fn from_json(value: &serde_json::Value) -> Option<Self> {
                match value.as_str()? {
                    $($word => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }
    };
}
use choice;

/// Keys of all groups, in the order in which they are listed.
const GROUPS: &[&[Key]] = &[
    RunSettings::KEYS,
    PlanSettings::KEYS,
    RoleSettings::KEYS,
    AgentSettings::KEYS,
    McpServerSettings::KEYS,
    PriceSettings::KEYS,
    NotificationSettings::KEYS,
    SlackChannelSettings::KEYS,
    WebhookChannelSettings::KEYS,
    DatabaseSettings::KEYS,
    ServerSettings::KEYS,
    OidcSettings::KEYS,
    TriggerSettings::KEYS,
    A2aSettings::KEYS,
    ReviewSettings::KEYS,
    EmailSettings::KEYS,
    CardSettings::KEYS,
    InputSettings::KEYS,
    BuilderSettings::KEYS,
    PushSettings::KEYS,
    PullSettings::KEYS,
    connectors::S3,
    GdriveSettings::KEYS,
    connectors::SERVICES,
    ReplicaSettings::KEYS,
    sandbox::PROFILE,
    EnforcementSettings::KEYS,
    TelemetrySettings::KEYS,
    TrustSettings::KEYS,
    PackageSettings::KEYS,
    ScopeTrustSettings::KEYS,
    CheckpointSettings::KEYS,
    DockerSettings::KEYS,
    KubernetesSettings::KEYS,
    GithubSettings::KEYS,
    GitlabSettings::KEYS,
    BitbucketSettings::KEYS,
];

const fn count() -> usize {
    let (mut count, mut group) = (0, 0);
    while group < GROUPS.len() {
        count += GROUPS[group].len();
        group += 1;
    }
    count
}

static ALL: [Key; count()] = {
    let mut all = [GROUPS[0][0]; count()];
    let (mut next, mut group) = (0, 0);
    while group < GROUPS.len() {
        let mut key = 0;
        while key < GROUPS[group].len() {
            all[next] = GROUPS[group][key];
            next += 1;
            key += 1;
        }
        group += 1;
    }
    all
};

/// All settings, in the order in which they are listed.
pub static KEYS: &[Key] = &ALL;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{Class, Settings};

    #[test]
    fn keys_are_unique_and_defaults_parse() {
        let mut paths = BTreeSet::new();
        for key in KEYS {
            assert!(paths.insert(key.path), "{} is defined twice", key.path);
            if let Some(text) = key.default {
                key.parse(key.path, text).unwrap_or_else(|error| panic!("{}: {error}", key.path));
            }
        }
    }

    #[test]
    fn classes_are_pinned() {
        let groups: BTreeSet<&str> = KEYS.iter().filter_map(|key| key.path.split('.').next()).collect();
        let of_machine: Vec<&str> =
            groups.into_iter().filter(|group| Key::is_group_of_machine(group)).collect();
        assert_eq!(of_machine, ["database", "docker", "kubernetes", "server"]);
        let of_person: Vec<&str> =
            KEYS.iter().filter(|key| key.class == Class::Person).map(|key| key.path).collect();
        assert_eq!(
            of_person,
            [
                "agents.*.permissions",
                "mcp.*.trusted",
                "sandbox.mechanism",
                "sandbox.missing",
                "telemetry.endpoint",
                "telemetry.headers.*",
                "telemetry.signals",
                "telemetry.content",
                "telemetry.trace_url",
                "trusted_projects",
                "registries.*",
                "packages.signing_key",
                "packages.plain_http",
                "trust.*.signers"
            ]
        );
    }

    #[test]
    fn groups_read_files_before_defaults() {
        let dir = tempfile::tempdir().expect("a directory");
        let home = camino::Utf8Path::from_path(dir.path()).expect("UTF-8");
        let project = home.join("project.json");
        let own = r#"{"server": {"lease": "2s"}, "docker": {"env": {"A": "1", "B": "2"}}, "prices": {"m.5": {"in": 1, "out": "2"}},
            "mcp": {"a": {"command": "x", "trusted": true}, "empty": {}}}"#;
        std::fs::write(home.join("settings.json"), own).expect("written");
        let of_project =
            r#"{"docker": {"env": {"B": "3"}}, "mcp": {"b": {"url": "http://h", "trusted": true}}}"#;
        std::fs::write(&project, of_project).expect("written");
        let settings = Settings::load(Some(home), Some(&project)).expect("settings");
        let replicas = ReplicaSettings::read(&settings);
        assert_eq!((replicas.lease.as_secs(), replicas.shared_workspaces), (2, false));
        let env = DockerSettings::read(&settings).env;
        let env: Vec<(&str, &str)> =
            env.iter().map(|(name, value)| (name.as_str(), value.reveal())).collect();
        assert_eq!(env, [("A", "1"), ("B", "3")]);
        let prices = PriceSettings::all(&settings);
        let price = prices.get("m.5").expect("a price");
        assert_eq!((price.input, price.output), (1.0, 2.0));
        assert_eq!(McpServerSettings::names(&settings).into_iter().collect::<Vec<_>>(), ["a", "b"]);
        // A project does not choose which programs run without a sandbox.
        assert!(
            McpServerSettings::read(&settings, "a").trusted
                && !McpServerSettings::read(&settings, "b").trusted
        );
        assert!(!A2aSettings::is_set(&settings));
    }
}
