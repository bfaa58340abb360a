//! Options of runs in a cluster from the settings.

use std::collections::BTreeMap;
use std::time::Duration;

use camino::Utf8PathBuf;
use cliq_settings::{ImagePullPolicy, KubernetesSettings, Settings};

/// The settings `kubernetes.*` (docs/kubernetes.md).
#[derive(Clone, PartialEq)]
pub(super) struct KubernetesOptions {
    /// The context of the kubeconfig, where one is set.
    pub context: Option<String>,
    /// The namespace, where one is set.
    pub namespace: Option<String>,
    /// The image.
    pub image: String,
    /// Policy by which nodes fetch the image.
    pub image_pull_policy: ImagePullPolicy,
    /// The Secrets with which nodes fetch it.
    pub image_pull_secrets: Vec<String>,
    /// The claim with the workspaces.
    pub claim: String,
    /// Mount path of the claim, here and in Jobs.
    pub mount_path: Utf8PathBuf,
    /// The most memory, in bytes.
    pub memory: u64,
    /// The most processors.
    pub cpus: f64,
    /// The memory that a node must have free, in bytes.
    pub memory_request: u64,
    /// The processors that a node must have free.
    pub cpu_request: f64,
    /// The most bytes outside the workspace.
    pub temporary_storage: Option<u64>,
    /// Whether only the workspace and temporary directories can be written.
    pub read_only_rootfs: bool,
    /// Maximum time that a run waits for its node, image and volumes.
    pub start_timeout: Duration,
    /// Maximum duration of a run.
    pub deadline: Option<Duration>,
    /// Time for which a Job is kept after its end.
    pub ttl: Duration,
    /// The PriorityClass of runs.
    pub priority_class: Option<String>,
    /// Labels that nodes must have.
    pub node_selector: BTreeMap<String, String>,
    /// Taints that runs bear.
    pub tolerations: Vec<Taint>,
    /// Variables, which may be secret.
    pub env: BTreeMap<String, String>,
}

/// A taint of nodes: `NAME[=VALUE][:EFFECT]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Taint {
    /// Key of the taint.
    pub name: String,
    /// Value of the taint. `None` matches any value.
    pub value: Option<String>,
    /// Effect of the taint. `None` matches any effect.
    pub effect: Option<String>,
}

impl Taint {
    fn parse(text: &str) -> Self {
        let (rest, effect) = match text.rsplit_once(':') {
            Some((rest, effect)) => (rest, Some(effect.to_owned())),
            None => (text, None),
        };
        let (name, value) = match rest.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (rest, None),
        };
        Self { name: name.to_owned(), value, effect }
    }
}

impl KubernetesOptions {
    /// The options in settings.
    #[must_use]
    pub(super) fn of(settings: &Settings) -> Self {
        // All fields are named, so a new setting does not compile until it has a use here.
        let KubernetesSettings {
            enabled: _,
            context,
            namespace,
            image,
            image_pull_policy,
            image_pull_secrets,
            claim,
            mount_path,
            memory,
            cpus,
            memory_request,
            cpu_request,
            temporary_storage,
            read_only_rootfs,
            start_timeout,
            deadline,
            ttl,
            priority_class,
            node_selector,
            tolerations,
            env,
        } = KubernetesSettings::read(settings);
        let label = |text: String| {
            let (name, value) = text.split_once('=').unwrap_or((&text, ""));
            (name.to_owned(), value.to_owned())
        };
        Self {
            context,
            namespace,
            image,
            image_pull_policy,
            image_pull_secrets,
            claim,
            mount_path: mount_path.into(),
            memory,
            cpus,
            memory_request,
            cpu_request,
            temporary_storage,
            read_only_rootfs,
            start_timeout,
            deadline,
            ttl,
            priority_class,
            node_selector: node_selector.into_iter().map(label).collect(),
            tolerations: tolerations.iter().map(|text| Taint::parse(text)).collect(),
            env: env.into_iter().map(|(name, value)| (name, value.reveal().to_owned())).collect(),
        }
    }
}

impl std::fmt::Debug for KubernetesOptions {
    /// Shows no variable.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KubernetesOptions")
            .field("context", &self.context)
            .field("namespace", &self.namespace)
            .field("image", &self.image)
            .field("claim", &self.claim)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taints_are_written_as_kubectl_writes_them() {
        let taint = |name: &str, value: Option<&str>, effect: Option<&str>| Taint {
            name: name.to_owned(),
            value: value.map(str::to_owned),
            effect: effect.map(str::to_owned),
        };
        assert_eq!(Taint::parse("gpu=yes:NoSchedule"), taint("gpu", Some("yes"), Some("NoSchedule")));
        assert_eq!(
            Taint::parse("example.com/gpu:NoExecute"),
            taint("example.com/gpu", None, Some("NoExecute"))
        );
        assert_eq!(Taint::parse("gpu"), taint("gpu", None, None));
    }
}
