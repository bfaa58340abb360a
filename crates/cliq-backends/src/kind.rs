//! Choice of a backend by settings.

use cliq_project::Settings;
use cliq_settings::{DockerSettings, KubernetesSettings};

/// Kind of a backend that is not this machine itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackendKind {
    /// Container of Docker or Podman.
    Docker,
    /// Job of a Kubernetes cluster.
    Kubernetes,
}

impl BackendKind {
    /// Returns the backend that the settings choose, a cluster before a container, or `None` for this machine.
    #[must_use]
    pub fn of_settings(settings: &Settings) -> Option<Self> {
        if KubernetesSettings::read(settings).enabled {
            Some(Self::Kubernetes)
        } else {
            DockerSettings::read(settings).enabled.then_some(Self::Docker)
        }
    }

    /// Name in sentences, with its article.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Docker => "a container",
            Self::Kubernetes => "a cluster",
        }
    }
}
