//! Settings `kubernetes.*`.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{choice, group};
use crate::secret::Secret;

group! {
    /// Settings of Jobs of a Kubernetes cluster.
    Backend struct KubernetesSettings {
        "kubernetes.enabled", enabled: bool = "false",
            "whether runs work as Jobs of a Kubernetes cluster, as with `cliq run --kubernetes`; needs PostgreSQL";
        "kubernetes.context", context: Option<String>,
            "the context of the kubeconfig; without it the current one, or in a pod that pod's own cluster";
        "kubernetes.namespace", namespace: Option<String>,
            "the namespace of Jobs; without it that of the context, or in a pod that pod's own";
        "kubernetes.image", image: String = "cliq-runner:latest",
            "the image that runs work in; deploy/Dockerfile makes it";
        "kubernetes.image_pull_policy", image_pull_policy: ImagePullPolicy = "IfNotPresent",
            "when nodes fetch the image";
        "kubernetes.image_pull_secrets", image_pull_secrets: Vec<String>,
            "names of the Secrets with which nodes fetch the image";
        "kubernetes.claim", claim: String = "cliq-data",
            "the PersistentVolumeClaim with the workspaces; several nodes must be able to write to it (ReadWriteMany)";
        "kubernetes.mount_path", mount_path: String = "/data",
            "where that claim is mounted, here and in Jobs: workspaces are below it";
        "kubernetes.memory", memory: u64 = "4g", "the most memory of a run, such as 512m or 4g";
        "kubernetes.cpus", cpus: f64 = "2", "how many processors a run may keep busy";
        "kubernetes.memory_request", memory_request: u64 = "512m",
            "how much memory a node must have free for a run to begin there";
        "kubernetes.cpu_request", cpu_request: f64 = "0.25",
            "how many processors a node must have free for a run to begin there";
        "kubernetes.temporary_storage", temporary_storage: Option<u64>,
            "how much a run may write outside its workspace; it is evicted beyond that";
        "kubernetes.read_only_rootfs", read_only_rootfs: bool = "true",
            "whether a run may write to its workspace and to temporary directories only";
        "kubernetes.start_timeout", start_timeout: Duration = "5m",
            "how long a run may wait for a node, its image and its volumes";
        "kubernetes.deadline", deadline: Option<Duration>,
            "how long a run may take; its Job is ended after that";
        "kubernetes.ttl", ttl: Duration = "1h",
            "how long a Job that has ended can be looked at before the cluster removes it";
        "kubernetes.priority_class", priority_class: Option<String>, "the PriorityClass of runs";
        "kubernetes.node_selector", node_selector: Vec<String>,
            "labels that nodes of runs must have, as NAME=VALUE";
        "kubernetes.tolerations", tolerations: Vec<String>,
            "taints of nodes that runs bear, as taints are written: NAME=VALUE:EFFECT, NAME:EFFECT";
        "kubernetes.env.*", env: BTreeMap<String, Secret>, "a variable of the environment of a run";
    }
}

choice! {
    /// Time at which nodes pull the image.
    enum ImagePullPolicy {
        /// Only if the node does not have it.
        IfNotPresent = "IfNotPresent",
        /// Before each run.
        Always = "Always",
        /// Never.
        Never = "Never",
    }
}
