//! Decisions about firings, in the order of their arrival. The run of a firing is stored in the transaction that decides it.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use cliq_model::{Firing, FiringDecision, FiringStart, RunTrigger, StoreError};
use cliq_protocol::Profile;
use cliq_supervisor::internals::{Duty, clock};
use cliq_supervisor::{NewRun, RegisterError, RequestError, RunRules};
use ring::digest::{SHA256, digest};
use serde_json::{Map, Value};

use super::Inner;
use super::files::is_there;
use crate::decide::{GroupDecision, decide};
use crate::model::{Policy, Source, Trigger};
use crate::plan::{Plan, PlannedRun, plan};

/// Longest time between two looks while firings wait, and while none does.
const WAITING: Duration = Duration::from_secs(1);
const IDLE: Duration = Duration::from_secs(5);
/// Changes of runs that follow each other within this time lead to one look.
const PAUSE: Duration = Duration::from_millis(50);
/// Number of firings per query.
const BATCH: u32 = 200;
/// Number of attempts to start a run in a group that other servers change.
const ATTEMPTS: usize = 5;
/// Interval between two removals of old firings, and their age.
const TIDY: Duration = Duration::from_secs(600);
const KEPT: Duration = Duration::from_secs(90 * 86_400);

/// SHA-256 in hexadecimal.
pub(super) fn digest_of(bytes: &[u8]) -> String {
    hex::encode(digest(&SHA256, bytes).as_ref())
}

/// Outcome of a look at one firing.
enum Step {
    Decided,
    Waits,
}

/// Decides firings until the engine stops.
pub(super) async fn run(inner: Arc<Inner>) {
    let mut changes = inner.supervisor.hub().changes();
    let mut catalogs = inner.catalog.subscribe();
    let (mut duty, mut tidied) = (Duty::new("firings"), None);
    loop {
        changes.mark_unchanged();
        let waiting = match pass(&inner).await {
            Ok(waiting) => waiting,
            Err(error) => {
                tracing::error!(%error, "cannot decide firings; retrying");
                true
            }
        };
        if tidied.is_none_or(|at: tokio::time::Instant| at.elapsed() > TIDY) {
            tidied = Some(tokio::time::Instant::now());
            tidy(&inner, &mut duty).await;
        }
        tokio::select! {
            () = inner.stopping.cancelled() => return,
            () = inner.pending.notified() => {}
            changed = catalogs.changed() => if changed.is_err() { return },
            changed = changes.changed(), if waiting => {
                if changed.is_err() {
                    return;
                }
                tokio::time::sleep(PAUSE).await;
            }
            () = tokio::time::sleep(if waiting { WAITING } else { IDLE }) => {}
        }
    }
}

async fn tidy(inner: &Inner, duty: &mut Duty) {
    let is_own = duty.is_own(inner.runs.as_ref(), inner.supervisor.options()).await.unwrap_or(false);
    if is_own && let Err(error) = inner.store.remove_firings(clock::ago(KEPT)).await {
        tracing::error!(%error, "cannot remove old firings; retrying");
    }
}

/// Looks at all undecided firings. Returns whether some are left.
pub(super) async fn pass(inner: &Arc<Inner>) -> Result<bool, StoreError> {
    let (mut after, mut is_left) = (0, false);
    let mut busy = HashSet::new();
    loop {
        let firings = inner.store.pending_firings(after, BATCH).await?;
        let Some(last) = firings.last() else { return Ok(is_left) };
        after = last.id;
        for firing in &firings {
            if inner.stopping.is_cancelled() {
                return Ok(true);
            }
            is_left |= matches!(step(inner, firing, &mut busy).await?, Step::Waits);
        }
    }
}

async fn settle(inner: &Inner, firing: &Firing, decision: FiringDecision) -> Result<Step, StoreError> {
    if let FiringDecision::Fail(reason) = &decision {
        tracing::warn!(trigger = firing.trigger, firing = firing.id, reason, "a trigger starts no run");
    }
    inner.store.decide_firing(firing.id, &decision, clock::now()).await?;
    // Open pages show the history.
    inner.supervisor.hub().wake();
    Ok(Step::Decided)
}

async fn step(inner: &Arc<Inner>, firing: &Firing, busy: &mut HashSet<String>) -> Result<Step, StoreError> {
    // Groups with an active run need no look at each of the firings that wait for them.
    if firing.group.as_ref().is_some_and(|group| busy.contains(group)) {
        return Ok(Step::Waits);
    }
    let Some(trigger) = inner.catalog().find(&firing.trigger) else {
        let reason = "the trigger is no longer in triggers.yml".to_owned();
        return settle(inner, firing, FiringDecision::Skip(reason)).await;
    };
    let values = serde_json::from_str::<Map<String, Value>>(&firing.payload).unwrap_or_default();
    let planned = {
        let trigger = Arc::clone(&trigger);
        tokio::task::spawn_blocking(move || plan(&trigger, &values)).await
    };
    let planned = match planned {
        Ok(Plan::Run(planned)) => *planned,
        Ok(Plan::Skip(reason)) => return settle(inner, firing, FiringDecision::Skip(reason)).await,
        Ok(Plan::Fail(reason)) => return settle(inner, firing, FiringDecision::Fail(reason)).await,
        Err(error) => return settle(inner, firing, FiringDecision::Fail(error.to_string())).await,
    };
    for _ in 0..ATTEMPTS {
        let group = match &planned.group {
            None => None,
            Some((name, policy)) => {
                let state = inner.store.group(name).await?;
                match decide(*policy, firing.id, &state) {
                    GroupDecision::Start => Some((name.clone(), state.version)),
                    GroupDecision::Skip(reason) => {
                        return settle(inner, firing, FiringDecision::Skip(reason)).await;
                    }
                    GroupDecision::Wait(cancelled) => {
                        if *policy != Policy::Cancel {
                            busy.insert(name.clone());
                        }
                        return wait(inner, firing, name, &state.running, &cancelled).await;
                    }
                }
            }
        };
        match start(inner, &trigger, firing, planned.clone(), group).await? {
            Start::Started => return Ok(Step::Decided),
            Start::Refused(reason) => return settle(inner, firing, FiringDecision::Fail(reason)).await,
            Start::Elsewhere => return Ok(Step::Waits),
            // Decided by another server, or its group changed.
            Start::Conflict => {}
        }
    }
    Ok(Step::Waits)
}

/// Records that a firing waits for its group, and cancels runs.
async fn wait(
    inner: &Inner,
    firing: &Firing,
    group: &str,
    running: &[cliq_protocol::RunId],
    cancelled: &[cliq_protocol::RunId],
) -> Result<Step, StoreError> {
    for run in cancelled {
        // It may have ended at this moment.
        let _ = inner.supervisor.cancel(run, &format!("trigger {}", firing.trigger)).await;
    }
    if firing.group.as_deref() != Some(group) {
        let reason = match running.first() {
            Some(run) => format!("waits for run {run}"),
            None => "waits for earlier firings of the same group".to_owned(),
        };
        let decision = FiringDecision::Wait { group: group.to_owned(), reason };
        inner.store.decide_firing(firing.id, &decision, clock::now()).await?;
    }
    Ok(Step::Waits)
}

/// Outcome of an attempt to start the run of a firing.
enum Start {
    Started,
    Refused(String),
    /// The project is on another machine: the server there starts it.
    Elsewhere,
    Conflict,
}

async fn start(
    inner: &Arc<Inner>,
    trigger: &Trigger,
    firing: &Firing,
    planned: PlannedRun,
    group: Option<(String, i64)>,
) -> Result<Start, StoreError> {
    let instance = match &planned.project {
        None => None,
        Some(project) => match Trigger::directory_of(project) {
            None => Some(project.clone()),
            Some(path) if inner.runs.is_shared() && !is_there(inner, path).await => {
                return Ok(Start::Elsewhere);
            }
            Some(path) => match inner.supervisor.register_project(path).await {
                Ok(Some(instance)) => Some(instance.id),
                Ok(None) => {
                    return Ok(Start::Refused(format!("{path} is not a project: `cliq init` makes it one")));
                }
                Err(RegisterError::Store(error)) => return Err(error),
                Err(error) => return Ok(Start::Refused(error.to_string())),
            },
        },
    };
    let sandbox = sandbox_of(inner, trigger, planned.spec.sandbox);
    let caller = format!("trigger {}", trigger.name);
    let new = NewRun::new(planned.spec).with_instance(instance).with_caller(caller);
    let checked = match inner.supervisor.check(new, &RunRules::for_trigger()).await {
        Ok(checked) => checked,
        Err(RequestError::Store(error)) => return Err(error),
        Err(RequestError::Values(errors)) => {
            return Ok(Start::Refused(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")));
        }
        Err(RequestError::TeamInvalid { name, diagnostics }) => {
            let first = diagnostics.first().map(|d| format!(": line {}: {}", d.span.line, d.message));
            return Ok(Start::Refused(format!("team {name} has errors{}", first.unwrap_or_default())));
        }
        Err(RequestError::Inputs(errors)) => return Ok(Start::Refused(errors.to_string())),
        Err(error) => return Ok(Start::Refused(error.to_string())),
    };
    let run_trigger = RunTrigger {
        name: trigger.name.clone(),
        firing: firing.id,
        depth: firing.depth,
        sandbox: Some(sandbox.to_string()),
    };
    let start = FiringStart { firing: firing.id, group };
    match inner.supervisor.submit_fired(checked, run_trigger, start).await? {
        Some(run) => {
            tracing::info!(trigger = trigger.name, run = %run.id, cause = firing.cause, "a trigger started a run");
            Ok(Start::Started)
        }
        None => Ok(Start::Conflict),
    }
}

/// The sandbox of a run: as the trigger says, or that of tasks for text from outside (docs/sandbox.md).
fn sandbox_of(inner: &Inner, trigger: &Trigger, named: Option<Profile>) -> Profile {
    let is_external = matches!(trigger.source, Source::Webhook(_));
    named.unwrap_or(if is_external { inner.supervisor.options().untrusted_sandbox } else { Profile::Off })
}
