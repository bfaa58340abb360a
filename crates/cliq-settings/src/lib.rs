//! Settings: every key with its type, default and description, and the two files that hold them.
//!
//! `CLIQ_HOME/settings.json` is for a person, `.cliq/settings.json` for a project; where both set a key, the project's
//! counts. A key is a path such as `agents.claude-api.model`, and in the files a nested object. Programs read settings by group, as
//! [`RunSettings::read`]. [`KEYS`] is all there is: what is not there is refused with the nearest name.

mod edit;
mod environment;
mod groups;
mod keys;
mod layers;
mod mesh;
mod schema;
mod secret;
mod value;

pub use edit::{set, unset};
pub use environment::{Environment, is_executable};
pub use groups::{
    A2aSettings, AgentKind, AgentSettings, BitbucketSettings, BuilderSettings, CacheLifetime, CardSettings,
    CheckpointSettings, DatabaseSettings, DockerSettings, DurabilityChoice, EmailSettings,
    EnforcementSettings, GdriveAccount, GdriveSettings, GithubSettings, GitlabSettings, ImagePullPolicy,
    InputSettings, KEYS, KubernetesSettings, LauncherChoice, MailSecurity, McpServerSettings,
    MechanismChoice, MissingSandbox, ModelProvider, NotificationSettings, OidcSettings, PRICES_DATE,
    PackageSettings, PlanSettings, PriceSettings, PriceSource, PullSettings, PushSettings, RecoveryChoice,
    ReplicaSettings, ReviewSettings, RoleSettings, RunSettings, ScopeTrustSettings, ServerSettings,
    SlackChannelSettings, TaskLoopChoice, TelemetrySettings, TriggerSettings, TrustSettings,
    WebhookChannelSettings,
};
pub use keys::{Class, Key, Kind};
pub use layers::{Entry, Settings, Source};
pub use mesh::Mesh;
pub use schema::settings_schema;
pub use secret::Secret;

use camino::Utf8PathBuf;

/// Reason why settings cannot be read or changed. Each says where, and how to mend it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// The key does not exist.
    #[error("there is no setting `{key}`{hint}")]
    Unknown {
        /// Requested key.
        key: String,
        /// Suggestion.
        hint: String,
    },
    /// A value has the wrong type.
    #[error("`{key}` is {expected}; here is {found}")]
    Type {
        /// The key.
        key: String,
        /// Expected type.
        expected: String,
        /// Actual value. Never a secret.
        found: String,
    },
    /// Something in a file is wrong.
    #[error("{file}: {source}")]
    In {
        /// The file.
        file: Utf8PathBuf,
        /// Error of the value.
        source: Box<SettingsError>,
    },
    /// A file holds no settings.
    #[error("{file}: {message}")]
    Syntax {
        /// The file.
        file: Utf8PathBuf,
        /// Error with line and column.
        message: String,
    },
    /// A file cannot be read, or is not a regular file.
    #[error(transparent)]
    Unreadable(cliq_fs::FsError),
    /// A file cannot be written.
    #[error("{action} {file}: {source}")]
    File {
        /// The file.
        file: Utf8PathBuf,
        /// Attempted action, such as `cannot write`.
        action: &'static str,
        /// Error of the system.
        source: std::io::Error,
    },
}

/// Runs the example of the README as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
