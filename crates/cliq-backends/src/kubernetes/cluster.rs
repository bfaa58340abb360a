//! The cluster: requests to its API server.

use std::time::Duration;

use cliq_protocol::RunId;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Event, PersistentVolumeClaim, Pod, Secret};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};

use super::error::{innermost, status};
use super::job_status::one_line;
use super::manifest::{PREPARED, RUN, SECRET_LIMIT, job, job_name, owner, secret};
use super::{JobStatus, KubernetesError, KubernetesOptions, Work, job_status};

/// Deadlines for a connection and for a response.
const CONNECT: Duration = Duration::from_secs(10);
const ANSWER: Duration = Duration::from_secs(30);
/// Time that the cluster has to end a Job's pod, in addition to the grace period of the pod.
const REMOVAL: Duration = Duration::from_secs(60);
/// Polling interval of a Job that is being removed.
const LOOK: Duration = Duration::from_millis(200);
/// Age after which a Job that was never released counts as abandoned by a dead process.
const FORGOTTEN: Duration = Duration::from_secs(3600);

/// The Job of a run that is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JobState {
    /// The process that created the Job died before it released the Job.
    Prepared,
    /// The Job works, or waits for a node.
    Living,
    /// The Job has ended.
    Ended,
}

/// Rights that cliq needs in its namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Right {
    /// The group of the API; empty for the core.
    pub group: &'static str,
    /// The resource.
    pub resource: &'static str,
    /// Verbs of the right.
    pub verbs: &'static [&'static str],
}

/// All rights that cliq needs: those that the Role of `deploy/helm/cliq` grants.
pub const RIGHTS: &[Right] = &[
    Right { group: "batch", resource: "jobs", verbs: &["create", "get", "list", "watch", "patch", "delete"] },
    Right { group: "", resource: "pods", verbs: &["list", "watch"] },
    Right { group: "", resource: "secrets", verbs: &["create", "delete"] },
    Right { group: "", resource: "events", verbs: &["list"] },
    Right { group: "", resource: "persistentvolumeclaims", verbs: &["get"] },
];

/// Properties of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Claim {
    /// Whether several nodes can write to it.
    pub is_shared: bool,
    /// Whether it has its volume.
    pub is_bound: bool,
}

/// A namespace of a cluster.
#[derive(Clone)]
pub(super) struct Cluster {
    client: Client,
    address: String,
    namespace: String,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster")
            .field("address", &self.address)
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}

impl Cluster {
    /// The cluster of the kubeconfig, or of the pod that this process is in. Sends nothing yet.
    ///
    /// # Errors
    /// Neither names one, or the kubeconfig is broken.
    pub(super) async fn connect(options: &KubernetesOptions) -> Result<Self, KubernetesError> {
        let unknown = |error: &dyn std::error::Error| KubernetesError::NoCluster(one_line(&innermost(error)));
        let mut config = match &options.context {
            Some(context) => {
                let kubeconfig = Kubeconfig::read().map_err(|error| unknown(&error))?;
                let chosen =
                    KubeConfigOptions { context: Some(context.clone()), ..KubeConfigOptions::default() };
                let config = Config::from_custom_kubeconfig(kubeconfig, &chosen).await;
                config.map_err(|error| unknown(&error))?
            }
            None => Config::infer().await.map_err(|error| unknown(&error))?,
        };
        config.connect_timeout = Some(CONNECT);
        let address = config.cluster_url.to_string();
        let namespace = options.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
        let client = Client::try_from(config).map_err(|error| unknown(&error))?;
        Ok(Self { client, address, namespace })
    }

    /// Address of the API server.
    #[must_use]
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// The namespace.
    #[must_use]
    pub(super) fn namespace(&self) -> &str {
        &self.namespace
    }

    pub(crate) fn jobs(&self) -> Api<Job> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub(crate) fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Asks for something, for a limited time. `None` is that it is not there.
    async fn ask<T>(
        &self,
        action: &'static str,
        answer: impl Future<Output = kube::Result<T>>,
    ) -> Result<Option<T>, KubernetesError> {
        match timeout(ANSWER, answer).await {
            Ok(Ok(answer)) => Ok(Some(answer)),
            Ok(Err(error)) if status(&error) == Some(404) => Ok(None),
            Ok(Err(error)) => Err(KubernetesError::of(action, &self.address, &error)),
            Err(_) => Err(KubernetesError::Away {
                address: self.address.clone(),
                why: format!("no answer in {} s", ANSWER.as_secs()),
            }),
        }
    }

    /// Returns the error for a missing namespace.
    fn no_namespace(&self, action: &'static str) -> KubernetesError {
        KubernetesError::Refused { action, why: format!("there is no namespace `{}`", self.namespace) }
    }

    /// Looks at a claim. `None` if this user may not.
    ///
    /// # Errors
    /// Returns an error if the claim does not exist or the API server does not respond.
    pub(super) async fn claim(&self, name: &str) -> Result<Option<Claim>, KubernetesError> {
        let claims: Api<PersistentVolumeClaim> = Api::namespaced(self.client.clone(), &self.namespace);
        let claim = match self.ask("look at the claim", claims.get(name)).await {
            Err(KubernetesError::Forbidden { .. }) => return Ok(None),
            other => other?.ok_or_else(|| KubernetesError::NoClaim {
                claim: name.to_owned(),
                namespace: self.namespace.clone(),
            })?,
        };
        let modes = claim.spec.and_then(|spec| spec.access_modes).unwrap_or_default();
        let phase = claim.status.and_then(|status| status.phase);
        Ok(Some(Claim {
            is_shared: modes.iter().any(|mode| mode == "ReadWriteMany"),
            is_bound: phase.as_deref() == Some("Bound"),
        }))
    }

    /// The rights that this user lacks in the namespace, as `VERB RESOURCE`.
    ///
    /// # Errors
    /// The API server does not answer.
    pub(super) async fn missing_rights(&self) -> Result<Vec<String>, KubernetesError> {
        let reviews: Api<SelfSubjectAccessReview> = Api::all(self.client.clone());
        let mut missing = Vec::new();
        for right in RIGHTS {
            for verb in right.verbs {
                let review = SelfSubjectAccessReview {
                    spec: SelfSubjectAccessReviewSpec {
                        resource_attributes: Some(ResourceAttributes {
                            group: Some(right.group.to_owned()),
                            resource: Some(right.resource.to_owned()),
                            verb: Some((*verb).to_owned()),
                            namespace: Some(self.namespace.clone()),
                            ..ResourceAttributes::default()
                        }),
                        ..SelfSubjectAccessReviewSpec::default()
                    },
                    ..SelfSubjectAccessReview::default()
                };
                let asked = async { reviews.create(&PostParams::default(), &review).await };
                let answer = self.ask("ask for rights", asked).await?;
                if !answer.and_then(|answer| answer.status).is_some_and(|status| status.allowed) {
                    missing.push(format!("{verb} {}", right.resource));
                }
            }
        }
        Ok(missing)
    }

    /// The Job of a run, if there is one.
    ///
    /// # Errors
    /// The API server does not answer, or forbids it.
    pub(super) async fn find(&self, run_id: &RunId) -> Result<Option<JobState>, KubernetesError> {
        let Some(job) = self.ask("look at Jobs", self.jobs().get(&job_name(run_id))).await? else {
            return Ok(None);
        };
        if is_prepared(&job) {
            return Ok(Some(JobState::Prepared));
        }
        // The Job says so a moment after its pod.
        let own = ListParams::default().labels(&format!("{RUN}={run_id}"));
        let pods = self.ask("look at pods", self.pods().list(&own)).await?;
        let pods = pods.map(|pods| pods.items).unwrap_or_default();
        let is_over = job.metadata.deletion_timestamp.is_some()
            || matches!(job_status(Some(&job), &pods, &[]), JobStatus::Ended(_));
        Ok(Some(if is_over { JobState::Ended } else { JobState::Living }))
    }

    /// Starts the Job of a run. `handover` is what it gets in its Secret. One that another process makes at the same time is the same.
    ///
    /// # Errors
    /// Something is not on the claim, or the cluster refuses: a missing right (also one to follow the run), a quota, a policy.
    /// Nothing is left then.
    pub(super) async fn start(
        &self,
        work: &Work,
        options: &KubernetesOptions,
        handover: Vec<u8>,
    ) -> Result<(), KubernetesError> {
        if handover.len() > SECRET_LIMIT {
            return Err(KubernetesError::TooBig { size: handover.len() });
        }
        let mut manifest = job(work, options)?;
        // It begins when its Secret is there. The Secret goes with it: whoever is killed in between leaves a Job that takes nothing.
        if let Some(spec) = &mut manifest.spec {
            spec.suspend = Some(true);
        }
        manifest.metadata.labels.get_or_insert_default().insert(PREPARED.to_owned(), "true".to_owned());
        self.check_rights_to_follow(&work.run_id).await?;
        let (name, jobs) = (job_name(&work.run_id), self.jobs());
        let making = async {
            match jobs.create(&PostParams::default(), &manifest).await {
                Err(error) if status(&error) == Some(409) => Ok((jobs.get(&name).await?, false)),
                other => Ok((other?, true)),
            }
        };
        let made = self.ask("make a Job", making).await?;
        let (made, is_own) = made.ok_or_else(|| self.no_namespace("make a Job"))?;
        let begun = self.begin(&made, &work.run_id, handover).await;
        if begun.is_err() && is_own {
            let _ = self.remove(&work.run_id).await;
        }
        begun
    }

    /// Checks the rights to list and watch the objects of a run. A run that cannot be followed must not begin: its end would stay
    /// unknown.
    async fn check_rights_to_follow(&self, run_id: &RunId) -> Result<(), KubernetesError> {
        const ACTION: &str = "watch the run";
        let of_run = format!("{RUN}={run_id}");
        let one = ListParams::default().labels(&of_run).limit(1);
        self.ask(ACTION, self.pods().list(&one)).await?;
        // The API server answers at once, even if nothing changes. Then the watch is closed.
        let watch = WatchParams::default().labels(&of_run).timeout(1);
        let (jobs, pods) = (self.jobs(), self.pods());
        self.ask(ACTION, async { jobs.watch(&watch, "0").await.map(drop) }).await?;
        self.ask(ACTION, async { pods.watch(&watch, "0").await.map(drop) }).await?;
        Ok(())
    }

    async fn begin(&self, job: &Job, run_id: &RunId, handover: Vec<u8>) -> Result<(), KubernetesError> {
        let mut manifest = secret(run_id, handover);
        manifest.metadata.owner_references = Some(vec![owner(job)]);
        let making = async {
            match self.secrets().create(&PostParams::default(), &manifest).await {
                Err(error) if status(&error) == Some(409) => Ok(()),
                other => other.map(|_| ()),
            }
        };
        self.ask("make a Secret", making).await?;
        let go = Patch::Merge(json!({"metadata": {"labels": {PREPARED: null}}, "spec": {"suspend": false}}));
        let begun = async { self.jobs().patch(&job_name(run_id), &PatchParams::default(), &go).await };
        match self.ask("start the Job", begun).await? {
            Some(_) => Ok(()),
            None => {
                Err(KubernetesError::Refused { action: "start the Job", why: "it was deleted".to_owned() })
            }
        }
    }

    /// Removes the Job of a run with its pod, whatever it does, and waits until they are gone.
    ///
    /// # Errors
    /// The API server does not answer or forbids it, or the pod does not end.
    pub(super) async fn remove(&self, run_id: &RunId) -> Result<(), KubernetesError> {
        let (name, jobs) = (job_name(run_id), self.jobs());
        // The Job stays until its pods are gone.
        let removed = self.ask("delete the Job", jobs.delete(&name, &DeleteParams::foreground())).await?;
        self.forget_secret(run_id).await?;
        if removed.is_none() {
            return Ok(());
        }
        let grace = match self.ask("look at Jobs", jobs.get(&name)).await? {
            Some(job) => grace_of(&job),
            None => return Ok(()),
        };
        let deadline = Instant::now() + grace + REMOVAL;
        while self.ask("look at Jobs", jobs.get(&name)).await?.is_some() {
            if Instant::now() > deadline {
                return Err(KubernetesError::Refused {
                    action: "end the run's pod",
                    why: format!("the Job {name} is still there: is its node silent?"),
                });
            }
            sleep(LOOK).await;
        }
        Ok(())
    }

    /// Removes the Secret of a run that is over. The cluster would keep it as long as the Job.
    ///
    /// # Errors
    /// The API server does not answer, or forbids it.
    pub(super) async fn forget_secret(&self, run_id: &RunId) -> Result<(), KubernetesError> {
        let deleted = async { self.secrets().delete(&job_name(run_id), &DeleteParams::default()).await };
        self.ask("delete the Secret", deleted).await.map(|_| ())
    }

    /// Removes Jobs that never began because who made them was killed, an hour ago or longer.
    ///
    /// # Errors
    /// The API server does not answer, or forbids it.
    pub(super) async fn sweep(&self) -> Result<(), KubernetesError> {
        let prepared = ListParams::default().labels(PREPARED);
        let Some(jobs) = self.ask("list Jobs", self.jobs().list(&prepared)).await? else { return Ok(()) };
        for job in jobs.items.iter().filter(|job| age(job) > FORGOTTEN) {
            let name = job.metadata.name.as_deref().unwrap_or_default();
            tracing::info!(job = name, "a Job that its maker left is removed");
            self.ask("delete the Job", self.jobs().delete(name, &DeleteParams::background())).await?;
        }
        Ok(())
    }

    /// Warnings about the objects of these names, oldest first. Nothing where this user may not see them.
    pub(crate) async fn warnings(&self, names: &[String]) -> Vec<String> {
        let events: Api<Event> = Api::namespaced(self.client.clone(), &self.namespace);
        let mut found = Vec::new();
        for name in names {
            let about = ListParams::default().fields(&format!("involvedObject.name={name},type=Warning"));
            if let Ok(Some(list)) = self.ask("list events", events.list(&about)).await {
                found.extend(list.items);
            }
        }
        found.sort_by_key(|event| event.last_timestamp.clone().map(|time| time.0));
        let text = |event: &Event| {
            let message = one_line(event.message.as_deref().unwrap_or_default());
            event.reason.as_ref().map_or_else(|| message.clone(), |reason| format!("{reason}: {message}"))
        };
        found.iter().map(text).collect()
    }
}

/// Whether a Job waits for who made it.
fn is_prepared(job: &Job) -> bool {
    job.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(PREPARED))
}

fn age(job: &Job) -> Duration {
    let Some(made) = &job.metadata.creation_timestamp else { return Duration::ZERO };
    let now = std::time::SystemTime::now();
    now.duration_since(std::time::SystemTime::from(made.0)).unwrap_or_default()
}

fn grace_of(job: &Job) -> Duration {
    let pod = job.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
    let seconds = pod.and_then(|pod| pod.termination_grace_period_seconds).unwrap_or(30);
    Duration::from_secs(u64::try_from(seconds).unwrap_or_default())
}
