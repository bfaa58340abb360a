//! State of a run in the cluster. Pure: computed from its Job, its pod and warnings about them.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ContainerStateTerminated, Pod, PodCondition};

use super::manifest::CONTAINER;

/// State of a run in the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum JobStatus {
    /// The run has not started.
    Waiting(Waiting),
    /// The run works.
    Working,
    /// The run has ended.
    Ended(JobEnd),
}

/// Reason why a run has not begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Waiting {
    /// Missing part.
    pub cause: Cause,
    /// Message of the cluster. Empty if there is no problem.
    pub why: String,
}

/// Missing part that a run waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub(super) enum Cause {
    /// The pod. The cluster creates it unless a quota or policy forbids that.
    Pod,
    /// Whoever suspended its Job.
    Suspended,
    /// A node.
    Node,
    /// The image.
    Image,
    /// An image that cannot be had by waiting: a name that is none, or a policy that forbids fetching it.
    ImageForEver,
    /// Volumes, and the start of the container.
    Start,
}

/// End of a run in the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub(super) enum JobEnd {
    /// The process exited.
    Exited {
        /// Exit status.
        code: u8,
        /// Whether another process was killed: out of memory.
        out_of_memory: bool,
        /// Last lines of output, if the process failed.
        last_words: String,
    },
    /// The process exceeded its memory limit.
    OutOfMemory,
    /// The process was ended by a signal.
    Killed {
        /// The number of the signal.
        signal: u8,
    },
    /// The node needed the resources, or the run exceeded its limits.
    Evicted {
        /// Message of the node.
        why: String,
    },
    /// The cluster took its node from it: for something more important, for maintenance, or because the node is silent.
    Disrupted {
        /// Message of the cluster.
        why: String,
    },
    /// The run exceeded its deadline.
    DeadlineExceeded,
    /// The run did not start in time.
    NotBegun(Waiting),
    /// The Job or its pod was deleted.
    Removed,
}

/// Returns the state of a Job's run.
///
/// `warnings` are the messages of events about the Job and the pod, newest last.
#[must_use]
pub(super) fn job_status(job: Option<&Job>, pods: &[Pod], warnings: &[String]) -> JobStatus {
    let newest = pods.iter().max_by_key(|pod| pod.metadata.creation_timestamp.clone());
    let of_pod = newest.map(|pod| look_at_pod(pod, warnings));
    let Some(job) = job else {
        return match of_pod {
            None | Some(JobStatus::Ended(_)) => JobStatus::Ended(JobEnd::Removed),
            // The pod of a Job that was deleted ends a moment later; what its node says of it may be older than that.
            Some(other) => other,
        };
    };
    let of_job = end_of_job(job);
    match (of_pod, of_job) {
        (Some(JobStatus::Ended(JobEnd::Killed { .. })), _) if is_overdue(job) => {
            JobStatus::Ended(JobEnd::DeadlineExceeded)
        }
        // The pod knows more.
        (Some(end @ JobStatus::Ended(_)), _) => end,
        (_, Some(end)) => JobStatus::Ended(end),
        (Some(other), None) => other,
        (None, None) => JobStatus::Waiting(waits_for_pod(job, warnings)),
    }
}

fn waits_for_pod(job: &Job, warnings: &[String]) -> Waiting {
    let is_suspended = job.spec.as_ref().is_some_and(|spec| spec.suspend == Some(true));
    let cause = if is_suspended { Cause::Suspended } else { Cause::Pod };
    Waiting { cause, why: warnings.last().cloned().unwrap_or_default() }
}

/// Whether the cluster ends the Job because of its deadline. It says so before the pod has ended.
fn is_overdue(job: &Job) -> bool {
    let conditions = job.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|condition| {
        condition.status == "True" && condition.reason.as_deref() == Some("DeadlineExceeded")
    })
}

fn end_of_job(job: &Job) -> Option<JobEnd> {
    let conditions = job.status.as_ref()?.conditions.as_ref()?;
    let ended = conditions.iter().find(|condition| {
        condition.status == "True" && matches!(condition.type_.as_str(), "Failed" | "Complete")
    })?;
    Some(match (ended.type_.as_str(), ended.reason.as_deref()) {
        ("Complete", _) => JobEnd::Exited { code: 0, out_of_memory: false, last_words: String::new() },
        (_, Some("DeadlineExceeded")) => JobEnd::DeadlineExceeded,
        // Its pod failed, but is gone.
        _ => JobEnd::Removed,
    })
}

fn look_at_pod(pod: &Pod, warnings: &[String]) -> JobStatus {
    let Some(status) = &pod.status else {
        return JobStatus::Waiting(Waiting { cause: Cause::Node, why: String::new() });
    };
    let phase = status.phase.as_deref().unwrap_or("Pending");
    let message = || one_line(status.message.as_deref().unwrap_or_default());
    let conditions = status.conditions.as_deref().unwrap_or_default();
    let containers = status.container_statuses.as_deref().unwrap_or_default();
    let state = containers
        .iter()
        .find(|container| container.name == CONTAINER)
        .and_then(|container| container.state.as_ref());
    let terminated = state.and_then(|state| state.terminated.as_ref());
    if phase == "Failed" || terminated.is_some() {
        match (status.reason.as_deref(), disruption(conditions)) {
            (Some("Evicted"), _) => return JobStatus::Ended(JobEnd::Evicted { why: message() }),
            (Some("DeadlineExceeded"), _) => return JobStatus::Ended(JobEnd::DeadlineExceeded),
            (_, Some(why)) if phase == "Failed" => return JobStatus::Ended(JobEnd::Disrupted { why }),
            _ => {}
        }
    }
    if let Some(terminated) = terminated {
        return JobStatus::Ended(end_of_container(terminated));
    }
    match phase {
        "Succeeded" => {
            JobStatus::Ended(JobEnd::Exited { code: 0, out_of_memory: false, last_words: String::new() })
        }
        "Failed" => JobStatus::Ended(match status.reason.as_deref() {
            Some(reason) => JobEnd::Disrupted { why: [reason, ": ", &message()].concat() },
            None => JobEnd::Removed,
        }),
        "Pending" => {
            let waiting = state.and_then(|state| state.waiting.as_ref());
            let reason = waiting.and_then(|waiting| waiting.reason.as_deref()).unwrap_or_default();
            let said = waiting.and_then(|waiting| waiting.message.as_deref()).unwrap_or_default();
            JobStatus::Waiting(waits(reason, said, conditions, warnings))
        }
        // A node that is silent may have it at work.
        _ => JobStatus::Working,
    }
}

/// Reason why the cluster took the pod's node from it.
fn disruption(conditions: &[PodCondition]) -> Option<String> {
    let found = conditions
        .iter()
        .find(|condition| condition.type_ == "DisruptionTarget" && condition.status == "True")?;
    let reason = found.reason.as_deref().unwrap_or("DisruptionTarget");
    Some(match found.message.as_deref() {
        Some(message) => format!("{reason}: {}", one_line(message)),
        None => reason.to_owned(),
    })
}

fn waits(reason: &str, said: &str, conditions: &[PodCondition], warnings: &[String]) -> Waiting {
    let with_reason = || match said {
        "" => reason.to_owned(),
        said => format!("{reason}: {}", one_line(said)),
    };
    let (cause, why) = match reason {
        "InvalidImageName" | "ErrImageNeverPull" => (Cause::ImageForEver, with_reason()),
        "ErrImagePull"
        | "ImagePullBackOff"
        | "ImageInspectError"
        | "RegistryUnavailable"
        | "SignatureValidationFailed" => (Cause::Image, with_reason()),
        "" | "ContainerCreating" | "PodInitializing" => {
            let scheduled = conditions.iter().find(|condition| condition.type_ == "PodScheduled");
            match scheduled {
                Some(scheduled) if scheduled.status == "True" => {
                    (Cause::Start, warnings.last().cloned().unwrap_or_default())
                }
                Some(scheduled) => {
                    let reason = scheduled.reason.as_deref().unwrap_or("Unschedulable");
                    let message = one_line(scheduled.message.as_deref().unwrap_or_default());
                    (Cause::Node, format!("{reason}: {message}"))
                }
                None => (Cause::Node, String::new()),
            }
        }
        _ => (Cause::Start, with_reason()),
    };
    Waiting { cause, why }
}

fn end_of_container(terminated: &ContainerStateTerminated) -> JobEnd {
    let out_of_memory = terminated.reason.as_deref() == Some("OOMKilled");
    let message = terminated.message.as_deref().unwrap_or_default();
    match u8::try_from(terminated.exit_code).unwrap_or(1) {
        137 if out_of_memory => JobEnd::OutOfMemory,
        // SIGINT and SIGTERM are those by which a run is cancelled: it exits with 130 by itself then.
        code @ (129 | 131 | 134 | 137 | 139 | 143) => JobEnd::Killed { signal: code - 128 },
        // What container runtimes give for a program that cannot be started.
        _ if matches!(terminated.reason.as_deref(), Some("StartError" | "ContainerCannotRun")) => {
            JobEnd::NotBegun(Waiting { cause: Cause::Start, why: one_line(message) })
        }
        code => JobEnd::Exited { code, out_of_memory, last_words: message.trim().to_owned() },
    }
}

/// A message without the line breaks and the length that some have.
pub(crate) fn one_line(text: &str) -> String {
    const MOST: usize = 600;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MOST) {
        Some((at, _)) => [&line[..at], " …"].concat(),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::PodStatus;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn job(value: Value) -> Job {
        serde_json::from_value(value).expect("a Job")
    }

    fn pod(status: Value) -> Pod {
        let status: PodStatus = serde_json::from_value(status).expect("a status");
        Pod { status: Some(status), ..Pod::default() }
    }

    fn seen(status: Value) -> JobStatus {
        job_status(Some(&job(json!({}))), &[pod(status)], &[])
    }

    fn container(state: &Value) -> Value {
        json!([{"name": "run", "state": state, "image": "i", "imageID": "", "ready": false, "restartCount": 0}])
    }

    fn waiting(reason: &str, message: &str) -> Value {
        json!({
            "phase": "Pending",
            "conditions": [{"type": "PodScheduled", "status": "True"}],
            "containerStatuses": container(&json!({"waiting": {"reason": reason, "message": message}})),
        })
    }

    fn terminated(code: i32, reason: &str) -> Value {
        json!({
            "phase": "Failed",
            "containerStatuses": container(&json!({"terminated": {"exitCode": code, "reason": reason, "message": "error: x\n"}})),
        })
    }

    fn cause_of(look: JobStatus) -> (Cause, String) {
        match look {
            JobStatus::Waiting(waiting) => (waiting.cause, waiting.why),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn causes_of_a_pending_job() {
        let no_pod = job_status(Some(&job(json!({}))), &[], &["exceeded quota: q".to_owned()]);
        assert_eq!(cause_of(no_pod), (Cause::Pod, "exceeded quota: q".to_owned()));
        let suspended = job(json!({"spec": {"suspend": true, "template": {}}}));
        assert_eq!(cause_of(job_status(Some(&suspended), &[], &[])).0, Cause::Suspended);
        let message = "0/1 nodes are available:\n 1 Insufficient cpu.";
        let unschedulable = json!({"phase": "Pending", "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message},
        ]});
        let said = "Unschedulable: 0/1 nodes are available: 1 Insufficient cpu.".to_owned();
        assert_eq!(cause_of(seen(unschedulable)), (Cause::Node, said));
        assert_eq!(
            cause_of(seen(waiting("ImagePullBackOff", "no such image"))),
            (Cause::Image, "ImagePullBackOff: no such image".to_owned())
        );
        assert_eq!(cause_of(seen(waiting("InvalidImageName", ""))).0, Cause::ImageForEver);
        assert_eq!(
            cause_of(seen(waiting("CreateContainerConfigError", "secret \"x\" not found"))),
            (Cause::Start, "CreateContainerConfigError: secret \"x\" not found".to_owned())
        );
        assert_eq!(cause_of(seen(waiting("ContainerCreating", ""))), (Cause::Start, String::new()));
        let mounts = ["MountVolume.SetUp failed".to_owned()];
        let stuck = job_status(Some(&job(json!({}))), &[pod(waiting("ContainerCreating", ""))], &mounts);
        assert_eq!(cause_of(stuck).1, mounts[0]);
    }

    #[test]
    fn ends_of_a_job() {
        let exited = |code| {
            JobStatus::Ended(JobEnd::Exited { code, out_of_memory: false, last_words: "error: x".to_owned() })
        };
        for code in [1, 2, 3, 4, 130] {
            assert_eq!(seen(terminated(code, "Error")), exited(u8::try_from(code).expect("small")));
        }
        assert_eq!(seen(terminated(0, "Completed")), exited(0));
        assert_eq!(seen(terminated(137, "OOMKilled")), JobStatus::Ended(JobEnd::OutOfMemory));
        assert_eq!(seen(terminated(137, "Error")), JobStatus::Ended(JobEnd::Killed { signal: 9 }));
        let inner = JobEnd::Exited { code: 3, out_of_memory: true, last_words: "error: x".to_owned() };
        assert_eq!(seen(terminated(3, "OOMKilled")), JobStatus::Ended(inner));
        let missing = Waiting { cause: Cause::Start, why: "error: x".to_owned() };
        assert_eq!(seen(terminated(128, "StartError")), JobStatus::Ended(JobEnd::NotBegun(missing)));
        let evicted = json!({"phase": "Failed", "reason": "Evicted", "message": "low on memory", "conditions": [
            {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"},
        ]});
        assert_eq!(seen(evicted), JobStatus::Ended(JobEnd::Evicted { why: "low on memory".to_owned() }));
        let preempted = json!({"phase": "Failed", "conditions": [
            {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": "for x"},
        ]});
        let why = "PreemptionByScheduler: for x".to_owned();
        assert_eq!(seen(preempted), JobStatus::Ended(JobEnd::Disrupted { why }));
        let late = job(json!({"status": {"conditions": [
            {"type": "Failed", "status": "True", "reason": "DeadlineExceeded"},
        ]}}));
        assert_eq!(job_status(Some(&late), &[], &[]), JobStatus::Ended(JobEnd::DeadlineExceeded));
        let killed = [pod(terminated(137, "Error"))];
        assert_eq!(job_status(Some(&late), &killed, &[]), JobStatus::Ended(JobEnd::DeadlineExceeded));
        let ending = job(json!({"status": {"conditions": [
            {"type": "FailureTarget", "status": "True", "reason": "DeadlineExceeded"},
        ]}}));
        let terminated = [pod(terminated(143, "Error"))];
        assert_eq!(job_status(Some(&ending), &terminated, &[]), JobStatus::Ended(JobEnd::DeadlineExceeded));
        assert_eq!(job_status(None, &[], &[]), JobStatus::Ended(JobEnd::Removed));
        assert_eq!(job_status(None, &[pod(json!({"phase": "Running"}))], &[]), JobStatus::Working);
        let starting = job_status(None, &[pod(json!({"phase": "Pending"}))], &[]);
        assert!(matches!(starting, JobStatus::Waiting(_)), "its container may work already: {starting:?}");
        assert_eq!(job_status(None, &terminated, &[]), JobStatus::Ended(JobEnd::Removed));
        let lost = job(json!({"status": {"conditions": [
            {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"},
        ]}}));
        assert_eq!(job_status(Some(&lost), &[], &[]), JobStatus::Ended(JobEnd::Removed));
    }

    #[test]
    fn a_run_works_until_its_container_has_ended() {
        let running = json!({"phase": "Running", "containerStatuses": container(&json!({"running": {}}))});
        assert_eq!(seen(running), JobStatus::Working);
        assert_eq!(seen(json!({"phase": "Unknown"})), JobStatus::Working);
    }

    proptest! {
        /// Whatever texts a cluster gives: an end is one only where something has ended.
        #[test]
        fn no_end_without_one(phase in "Pending|Running|Unknown|[A-Z][a-z]{0,5}", reason in "[A-Za-z]{0,12}", message in ".{0,700}") {
            prop_assume!(phase != "Failed" && phase != "Succeeded");
            let status = json!({
                "phase": phase, "reason": reason,
                "containerStatuses": container(&json!({"waiting": {"reason": reason, "message": message}})),
            });
            match seen(status) {
                JobStatus::Ended(end) => prop_assert!(false, "{end:?}"),
                JobStatus::Waiting(waiting) => prop_assert!(!waiting.why.contains('\n') && waiting.why.len() < 3000),
                JobStatus::Working => {}
            }
        }
    }
}
