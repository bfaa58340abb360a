//! Following a run in a cluster to its end.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::time::Duration;

use cliq_protocol::RunId;
use futures_util::stream::{BoxStream, StreamExt};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, ResourceExt};
use tokio::time::{Instant, sleep};

use super::manifest::{RUN, job_name};
use super::{Cause, Cluster, JobEnd, JobStatus, KubernetesError, KubernetesOptions, Waiting, job_status};

/// Time to wait for an unreachable API server. The run continues in the meantime.
const AWAY: Duration = Duration::from_secs(600);
/// Time for which an image may be pulled without success.
const IMAGE: Duration = Duration::from_secs(30);
/// Polling interval for the reason why a run does not start.
const WARNINGS: Duration = Duration::from_secs(2);

impl Cluster {
    /// Follows a run's Job to its end. `notice` gets what the run waits for, and that the API server is away.
    ///
    /// One that does not begin in time is removed.
    ///
    /// # Errors
    /// The API server stays away for ten minutes, or forbids to watch.
    pub(super) async fn follow(
        &self,
        run_id: &RunId,
        options: &KubernetesOptions,
        mut notice: impl FnMut(&str),
    ) -> Result<JobEnd, KubernetesError> {
        let by_name = watcher::Config::default().fields(&format!("metadata.name={}", job_name(run_id)));
        let by_label = watcher::Config::default().labels(&format!("{RUN}={run_id}"));
        let mut jobs = WatchedObjects::<Job>::new(self.jobs(), by_name);
        let mut pods = WatchedObjects::<Pod>::new(self.pods(), by_label);
        let (mut patience, mut away) = (StartPatience::new(options.start_timeout), None);
        let (mut warnings, mut reported) = (Vec::new(), None);
        let (start, mut looked) = (Instant::now(), Instant::now());
        loop {
            let changed = tokio::select! {
                changed = jobs.next() => Some(changed),
                changed = pods.next() => Some(changed),
                () = sleep(WARNINGS) => None,
            };
            match changed {
                Some(Ok(())) => away = None,
                Some(Err(error)) => {
                    let error = self.watch_error(&error)?;
                    let since = *away.get_or_insert_with(|| {
                        notice(&format!("{error}; the run goes on, waiting for it"));
                        Instant::now()
                    });
                    if since.elapsed() > AWAY {
                        return Err(error);
                    }
                }
                None => {}
            }
            if !(jobs.is_complete && pods.is_complete) {
                continue;
            }
            let pods_now: Vec<Pod> = pods.objects.values().cloned().collect();
            let waiting = match job_status(jobs.objects.values().next(), &pods_now, &warnings) {
                JobStatus::Ended(end) => return Ok(end),
                JobStatus::Working => {
                    patience = StartPatience::new(options.start_timeout);
                    continue;
                }
                JobStatus::Waiting(waiting) => waiting,
            };
            if looked.elapsed() >= WARNINGS {
                let names = pods_now.iter().map(ResourceExt::name_any).chain([job_name(run_id)]);
                warnings = self.warnings(&names.collect::<Vec<_>>()).await;
                looked = Instant::now();
            }
            if !waiting.why.is_empty() && reported != Some(waiting.cause) {
                notice(&format!("the run waits for {}: {}", waiting.cause, waiting.why));
                reported = Some(waiting.cause);
            }
            if away.is_none() && patience.is_over(&waiting, start.elapsed()) {
                self.remove(run_id).await?;
                return Ok(JobEnd::NotBegun(waiting));
            }
        }
    }

    /// Translates the failure of a watch. Returns an error if waiting does not help.
    fn watch_error(&self, error: &watcher::Error) -> Result<KubernetesError, KubernetesError> {
        let away = |why: String| KubernetesError::Away { address: self.address().to_owned(), why };
        let error = match error {
            watcher::Error::InitialListFailed(error)
            | watcher::Error::WatchStartFailed(error)
            | watcher::Error::WatchFailed(error) => {
                KubernetesError::of("watch the run", self.address(), error)
            }
            // A watch that is too old begins anew, by itself.
            watcher::Error::WatchError(status) => away(status.message.clone()),
            watcher::Error::NoResourceVersion => away(error.to_string()),
        };
        if matches!(error, KubernetesError::Forbidden { .. } | KubernetesError::Unauthorized(_)) {
            return Err(error);
        }
        Ok(error)
    }
}

impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Pod => "its pod",
            Self::Suspended => "its Job, which is suspended",
            Self::Node => "a node",
            Self::Image | Self::ImageForEver => "its image",
            Self::Start => "its container",
        })
    }
}

/// Remaining waiting time of a run.
#[derive(Debug)]
struct StartPatience {
    most: Duration,
    /// Time of the first failure to fetch the image.
    image: Option<Duration>,
}

impl StartPatience {
    fn new(most: Duration) -> Self {
        Self { most, image: None }
    }

    /// Whether it has waited long enough, `now` after the beginning.
    fn is_over(&mut self, waiting: &Waiting, now: Duration) -> bool {
        let image = match waiting.cause {
            Cause::ImageForEver => return true,
            Cause::Image => now.saturating_sub(*self.image.get_or_insert(now)) >= IMAGE,
            _ => {
                self.image = None;
                false
            }
        };
        image || now >= self.most
    }
}

/// The objects that a watch shows.
struct WatchedObjects<K> {
    stream: Pin<Box<dyn futures_util::Stream<Item = watcher::Result<watcher::Event<K>>> + Send>>,
    objects: BTreeMap<String, K>,
    /// Those of a list that is not complete yet.
    listed: BTreeMap<String, K>,
    /// Whether `objects` are all: a list was complete once.
    is_complete: bool,
}

impl<K> WatchedObjects<K>
where
    K: kube::Resource + Clone + serde::de::DeserializeOwned + std::fmt::Debug + Send + 'static,
    K::DynamicType: Default + Eq + std::hash::Hash + Clone,
{
    fn new(api: Api<K>, config: watcher::Config) -> Self {
        let stream: BoxStream<'static, _> = watcher(api, config).default_backoff().boxed();
        Self { stream, objects: BTreeMap::new(), listed: BTreeMap::new(), is_complete: false }
    }

    /// Waits for the next change. Safe to be dropped while it waits.
    async fn next(&mut self) -> watcher::Result<()> {
        match self.stream.next().await {
            Some(Ok(watcher::Event::Apply(object))) => {
                self.objects.insert(object.name_any(), object);
            }
            Some(Ok(watcher::Event::Delete(object))) => {
                self.objects.remove(&object.name_any());
            }
            Some(Ok(watcher::Event::Init)) => self.listed.clear(),
            Some(Ok(watcher::Event::InitApply(object))) => {
                self.listed.insert(object.name_any(), object);
            }
            Some(Ok(watcher::Event::InitDone)) => {
                self.objects = std::mem::take(&mut self.listed);
                self.is_complete = true;
            }
            Some(Err(error)) => return Err(error),
            None => std::future::pending().await,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_waited_for_less_long_than_a_node() {
        let waits = |cause| Waiting { cause, why: String::new() };
        let seconds = Duration::from_secs;
        let mut patience = StartPatience::new(seconds(300));
        assert!(!patience.is_over(&waits(Cause::Node), seconds(200)));
        assert!(!patience.is_over(&waits(Cause::Image), seconds(210)));
        assert!(!patience.is_over(&waits(Cause::Image), seconds(239)));
        assert!(patience.is_over(&waits(Cause::Image), seconds(240)));
        assert!(!patience.is_over(&waits(Cause::Start), seconds(241)), "it has its image");
        assert!(patience.is_over(&waits(Cause::Start), seconds(300)));
        assert!(StartPatience::new(seconds(300)).is_over(&waits(Cause::ImageForEver), seconds(0)));
        assert!(StartPatience::new(seconds(5)).is_over(&waits(Cause::Image), seconds(5)));
    }
}
