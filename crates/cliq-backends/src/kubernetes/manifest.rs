//! The manifests of a run, made without IO.

use std::collections::BTreeMap;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::SharedPath;
use cliq_protocol::RunId;
use k8s_openapi::ByteString;
use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::{
    Capabilities, Container, EmptyDirVolumeSource, EnvVar, LocalObjectReference,
    PersistentVolumeClaimVolumeSource, PodSecurityContext, PodSpec, PodTemplateSpec, ResourceRequirements,
    SeccompProfile, Secret, SecretVolumeSource, SecurityContext, Toleration, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use super::KubernetesOptions;
use super::options::Taint;

/// The label that has the id of the run.
pub(crate) const RUN: &str = "cliq.dev/run";
/// The label of a Job that its maker did not let begin yet.
pub(crate) const PREPARED: &str = "cliq.dev/prepared";
/// The annotation that has its workspace.
const WORKSPACE: &str = "cliq.dev/workspace";
/// The container that the run works in.
pub(crate) const CONTAINER: &str = "run";
/// The key of the Secret, which is the name of the file too.
const HANDOVER: &str = "handover";
/// Directory in which the Secret is mounted.
const HANDOVER_DIR: &str = "/run/cliq";
/// The most bytes that a Secret can have.
pub(crate) const SECRET_LIMIT: usize = 1 << 20;

/// The file in the container that has the handover of a run.
pub(super) const HANDOVER_FILE: &str = "/run/cliq/handover";

/// A run that works in a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Work {
    /// The run.
    pub run_id: RunId,
    /// Workspace below the mount path of the claim.
    pub workspace: Utf8PathBuf,
    /// The cliq home. In the container it is a directory of its own in memory.
    pub home: Utf8PathBuf,
    /// Directories besides the workspace.
    pub mounts: Vec<SharedPath>,
    /// The arguments of the cliq in the container.
    pub arguments: Vec<String>,
    /// The user and the group who work.
    pub user: (u32, u32),
    /// Grace period of the run after a request to end.
    pub grace: Duration,
}

/// The name of a run's Job and of its Secret.
#[must_use]
pub(super) fn job_name(run_id: &RunId) -> String {
    format!("cliq-{run_id}")
}

/// A path is not on the claim, so no other node sees it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path} is not below {mount_path}, where the claim is mounted (`kubernetes.mount_path`)")]
pub struct NotOnClaim {
    /// The path.
    pub path: Utf8PathBuf,
    /// Mount path of the claim.
    pub mount_path: Utf8PathBuf,
}

/// The path of a directory on the claim: what is mounted of it, and not all of it.
///
/// # Errors
/// Returns an error if the path is not below the mount path.
pub(super) fn on_claim(path: &Utf8Path, mount_path: &Utf8Path) -> Result<String, NotOnClaim> {
    let inner = path.strip_prefix(mount_path).ok().filter(|inner| !inner.as_str().is_empty());
    inner
        .map(ToString::to_string)
        .ok_or_else(|| NotOnClaim { path: path.to_owned(), mount_path: mount_path.to_owned() })
}

fn labels(run_id: &RunId) -> BTreeMap<String, String> {
    [("app.kubernetes.io/name", "cliq-run"), ("app.kubernetes.io/managed-by", "cliq"), (RUN, run_id.as_str())]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
}

/// The Secret of a run: what it gets that nobody else is to see. It cannot be changed.
#[must_use]
pub(super) fn secret(run_id: &RunId, handover: Vec<u8>) -> Secret {
    Secret {
        metadata: ObjectMeta {
            name: Some(job_name(run_id)),
            labels: Some(labels(run_id)),
            ..ObjectMeta::default()
        },
        immutable: Some(true),
        data: Some([(HANDOVER.to_owned(), ByteString(handover))].into()),
        type_: Some("Opaque".to_owned()),
        ..Secret::default()
    }
}

/// Owner of the Secret: the cluster removes it with the Job.
#[must_use]
pub(super) fn owner(job: &Job) -> OwnerReference {
    OwnerReference {
        api_version: "batch/v1".to_owned(),
        kind: "Job".to_owned(),
        name: job.metadata.name.clone().unwrap_or_default(),
        uid: job.metadata.uid.clone().unwrap_or_default(),
        ..OwnerReference::default()
    }
}

/// The Job of a run, with its limits and hardening (docs/kubernetes.md).
///
/// # Errors
/// The workspace, or something else that is to be mounted, is not on the claim.
pub(super) fn job(work: &Work, options: &KubernetesOptions) -> Result<Job, NotOnClaim> {
    let metadata = ObjectMeta {
        name: Some(job_name(&work.run_id)),
        labels: Some(labels(&work.run_id)),
        annotations: Some([(WORKSPACE.to_owned(), work.workspace.to_string())].into()),
        ..ObjectMeta::default()
    };
    let template = PodTemplateSpec {
        metadata: Some(ObjectMeta { labels: metadata.labels.clone(), ..ObjectMeta::default() }),
        spec: Some(pod(work, options)?),
    };
    let spec = JobSpec {
        // What failed is gone on with by `cliq run --resume`, or by the server.
        backoff_limit: Some(0),
        parallelism: Some(1),
        completions: Some(1),
        // Never two pods at a time.
        pod_replacement_policy: Some("Failed".to_owned()),
        ttl_seconds_after_finished: Some(i32::try_from(options.ttl.as_secs()).unwrap_or(i32::MAX)),
        active_deadline_seconds: options
            .deadline
            .map(|time| i64::try_from(time.as_secs().max(1)).unwrap_or(i64::MAX)),
        template,
        ..JobSpec::default()
    };
    Ok(Job { metadata, spec: Some(spec), status: None })
}

fn pod(work: &Work, options: &KubernetesOptions) -> Result<PodSpec, NotOnClaim> {
    let (uid, gid) = work.user;
    let empty = |name: &str, medium: Option<&str>| Volume {
        name: name.to_owned(),
        empty_dir: Some(EmptyDirVolumeSource {
            medium: medium.map(str::to_owned),
            ..EmptyDirVolumeSource::default()
        }),
        ..Volume::default()
    };
    let volumes = vec![
        Volume {
            name: "claim".to_owned(),
            persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
                claim_name: options.claim.clone(),
                ..PersistentVolumeClaimVolumeSource::default()
            }),
            ..Volume::default()
        },
        Volume {
            name: HANDOVER.to_owned(),
            secret: Some(SecretVolumeSource {
                secret_name: Some(job_name(&work.run_id)),
                // Nobody else is in the pod; its user is not the owner of the file.
                default_mode: Some(0o444),
                ..SecretVolumeSource::default()
            }),
            ..Volume::default()
        },
        empty("tmp", None),
        empty("home", Some("Memory")),
    ];
    Ok(PodSpec {
        containers: vec![container(work, options)?],
        restart_policy: Some("Never".to_owned()),
        automount_service_account_token: Some(false),
        enable_service_links: Some(false),
        // The first process of the pod ends what the run leaves behind.
        share_process_namespace: Some(true),
        termination_grace_period_seconds: Some(i64::try_from(work.grace.as_secs()).unwrap_or(i64::MAX)),
        security_context: Some(PodSecurityContext {
            run_as_user: Some(uid.into()),
            run_as_group: Some(gid.into()),
            run_as_non_root: Some(uid != 0),
            seccomp_profile: Some(SeccompProfile {
                type_: "RuntimeDefault".to_owned(),
                ..SeccompProfile::default()
            }),
            ..PodSecurityContext::default()
        }),
        volumes: Some(volumes),
        image_pull_secrets: none_if_empty(
            options
                .image_pull_secrets
                .iter()
                .map(|name| LocalObjectReference { name: name.clone() })
                .collect(),
        ),
        node_selector: (!options.node_selector.is_empty()).then(|| options.node_selector.clone()),
        tolerations: none_if_empty(options.tolerations.iter().map(toleration).collect()),
        priority_class_name: options.priority_class.clone(),
        ..PodSpec::default()
    })
}

fn none_if_empty<T>(list: Vec<T>) -> Option<Vec<T>> {
    (!list.is_empty()).then_some(list)
}

fn toleration(taint: &Taint) -> Toleration {
    Toleration {
        key: Some(taint.name.clone()),
        operator: Some(if taint.value.is_some() { "Equal" } else { "Exists" }.to_owned()),
        value: taint.value.clone(),
        effect: taint.effect.clone(),
        ..Toleration::default()
    }
}

fn container(work: &Work, options: &KubernetesOptions) -> Result<Container, NotOnClaim> {
    let at = |name: &str, path: &str| VolumeMount {
        name: name.to_owned(),
        mount_path: path.to_owned(),
        ..VolumeMount::default()
    };
    let claimed = |path: &Utf8Path, writable: bool| {
        Ok(VolumeMount {
            sub_path: Some(on_claim(path, &options.mount_path)?),
            read_only: (!writable).then_some(true),
            ..at("claim", path.as_str())
        })
    };
    let mut mounts = vec![
        at("tmp", "/tmp"),
        at("home", work.home.as_str()),
        VolumeMount { read_only: Some(true), ..at(HANDOVER, HANDOVER_DIR) },
        claimed(&work.workspace, true)?,
    ];
    for mount in &work.mounts {
        mounts.push(claimed(&mount.path, mount.writable)?);
    }
    let variable = |name: &str, value: &str| EnvVar {
        name: name.to_owned(),
        value: Some(value.to_owned()),
        ..EnvVar::default()
    };
    Ok(Container {
        name: CONTAINER.to_owned(),
        image: Some(options.image.clone()),
        image_pull_policy: Some(options.image_pull_policy.as_str().to_owned()),
        command: Some(vec!["cliq".to_owned()]),
        args: Some(work.arguments.clone()),
        working_dir: Some(work.workspace.to_string()),
        env: Some(vec![variable("CLIQ_HOME", work.home.as_str()), variable("HOME", "/tmp/home")]),
        volume_mounts: Some(mounts),
        resources: Some(resources(options)),
        security_context: Some(SecurityContext {
            allow_privilege_escalation: Some(false),
            capabilities: Some(Capabilities { drop: Some(vec!["ALL".to_owned()]), add: None }),
            read_only_root_filesystem: Some(options.read_only_rootfs),
            ..SecurityContext::default()
        }),
        // Why a run did not begin is in its last lines. They are in the pod's status, so nobody needs to read logs.
        termination_message_policy: Some("FallbackToLogsOnError".to_owned()),
        ..Container::default()
    })
}

fn resources(options: &KubernetesOptions) -> ResourceRequirements {
    let cpus = |amount: f64| Quantity(format!("{}m", (amount * 1000.0).ceil().max(1.0)));
    let bytes = |amount: u64| Quantity(amount.to_string());
    let mut limits: BTreeMap<String, Quantity> =
        [("cpu".to_owned(), cpus(options.cpus)), ("memory".to_owned(), bytes(options.memory))].into();
    // A request above the limit is refused by the cluster.
    let requests = [
        ("cpu".to_owned(), cpus(options.cpu_request.min(options.cpus))),
        ("memory".to_owned(), bytes(options.memory_request.min(options.memory))),
    ];
    if let Some(most) = options.temporary_storage {
        limits.insert("ephemeral-storage".to_owned(), bytes(most));
    }
    ResourceRequirements {
        limits: Some(limits),
        requests: Some(requests.into()),
        ..ResourceRequirements::default()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use cliq_settings::ImagePullPolicy;

    use super::*;

    pub(crate) fn options() -> KubernetesOptions {
        KubernetesOptions {
            context: None,
            namespace: None,
            image: "cliq-runner:1".to_owned(),
            image_pull_policy: ImagePullPolicy::IfNotPresent,
            image_pull_secrets: vec!["registry".to_owned()],
            claim: "cliq-data".to_owned(),
            mount_path: "/data".into(),
            memory: 4 << 30,
            cpus: 1.5,
            memory_request: 8 << 30,
            cpu_request: 0.25,
            temporary_storage: Some(1 << 30),
            read_only_rootfs: true,
            start_timeout: Duration::from_secs(300),
            deadline: Some(Duration::from_secs(7200)),
            ttl: Duration::from_secs(3600),
            priority_class: None,
            node_selector: [("kubernetes.io/arch".to_owned(), "amd64".to_owned())].into(),
            tolerations: vec![Taint {
                name: "gpu".to_owned(),
                value: None,
                effect: Some("NoSchedule".to_owned()),
            }],
            env: [("KEY".to_owned(), "hush".to_owned())].into(),
        }
    }

    pub(crate) fn work() -> Work {
        Work {
            run_id: RunId::parse("01930000-0000-7000-8000-000000000001").expect("an id"),
            workspace: "/data/workspaces/shop".into(),
            home: "/home/cliq/.cliqrc".into(),
            mounts: vec![SharedPath { path: "/data/home/teams".into(), writable: false }],
            arguments: vec!["contained".to_owned(), "--".to_owned(), "run".to_owned()],
            user: (1000, 1001),
            grace: Duration::from_secs(30),
        }
    }

    #[test]
    fn a_job_has_limits_and_no_secret() {
        let made = serde_json::to_value(job(&work(), &options()).expect("on the claim")).expect("JSON");
        assert!(!made.to_string().contains("hush"));
        insta::assert_json_snapshot!(made);
    }

    #[test]
    fn a_secret_is_the_jobs() {
        let made = job(&work(), &options()).expect("on the claim");
        let mut secret = secret(&work().run_id, b"hush".to_vec());
        secret.metadata.owner_references = Some(vec![owner(&made)]);
        insta::assert_json_snapshot!(serde_json::to_value(secret).expect("JSON"));
    }

    #[test]
    fn only_what_is_on_the_claim_is_mounted() {
        for workspace in ["/home/ada/shop", "/data", "/database/x"] {
            let work = Work { workspace: workspace.into(), ..work() };
            let error = job(&work, &options()).expect_err("not on the claim").to_string();
            assert!(error.starts_with(workspace) && error.contains("kubernetes.mount_path"), "{error}");
        }
    }
}
