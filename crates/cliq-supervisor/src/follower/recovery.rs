//! Recovery of a run whose orchestrator died.
// A new outcome has to be handled by name.
#![deny(clippy::wildcard_enum_match_arm)]

use std::sync::Arc;
use std::time::Duration;

use cliq_fs::CliqDir;
use cliq_model::{Caveat, Death, LifecycleEffect, LifecycleEvent, Recovery, RunState, ServerEvent, Setback};
use cliq_orchestrator::PipelineStatus;

use super::REFUSED;
use super::state::Follower;
use crate::change::event;
use crate::journal::{ended, record_progress, status_document, totals};
use crate::{clock, workspace};

/// Grace period for processes that a dead orchestrator left.
const GRACE: Duration = Duration::from_secs(5);

/// Minimum time that a run is parked if nobody answers.
const EARLIEST: Duration = Duration::from_secs(1);

/// Next action of a follower whose orchestrator died.
pub(super) enum Next {
    /// Start an orchestrator that resumes the run.
    Restart,
    /// Stop following.
    End,
}

impl Follower<'_> {
    /// Whether the workspace is gone. One that is just being deleted loses its journal first: its end is waited for.
    async fn is_workspace_gone(&self) -> bool {
        let workspace = &self.run.workspace;
        let is_going =
            || workspace.exists() && !workspace.join(CliqDir::NAME).join(CliqDir::JOURNAL).exists();
        for _ in 0..20 {
            if !(self.run.life.began && is_going()) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        !workspace.exists()
    }

    /// Decides how the run continues after its orchestrator ended without recording an end.
    pub(super) async fn recover(&mut self) -> Next {
        // Its journal is ahead of it until a run that is resumed records that.
        if self.view.waiting.is_some() && self.run.life.state == RunState::Running {
            return self.park().await;
        }
        let status = self.child.take().map(|mut child| child.try_wait().ok().flatten());
        let code = status.flatten().and_then(|status| status.code());
        let refused = code == Some(REFUSED);
        let was_started_here = status.is_some();
        // A run has started or resumed once its journal records it.
        let has_begun = self.run.life.began && !self.run.life.resume;
        let death = if has_begun {
            Death::Died
        } else if !was_started_here
            || (refused && cliq_backends::internals::is_project_busy(&self.run.workspace))
        {
            // Dispatched by a supervisor that died, or started beside a run of a person.
            Death::ProjectBusy
        } else {
            Death::NeverBegan
        };
        let is_gone = self.is_workspace_gone().await;
        if death == Death::Died && was_started_here && is_gone {
            // Nothing is left to resume.
            let reason = "its workspace was deleted while it worked".to_owned();
            return self.end_lost(death, Recovery::Fail, reason).await;
        }
        let reason = match death {
            Death::Died if is_gone => {
                "the server that had it is gone, and its workspace is not here".to_owned()
            }
            // A follower of a container or Job: its last message names the reason.
            Death::Died if code.is_some_and(|code| code != 0 && !refused) => cliq_fs::last_error(&self.log),
            Death::Died => "its orchestrator died: it was killed, or the machine went down".to_owned(),
            Death::NeverBegan | Death::ProjectBusy => match cliq_fs::last_error(&self.log) {
                silent if silent.is_empty() => {
                    "its orchestrator was killed before it began the run".to_owned()
                }
                said => said,
            },
        };
        self.end_lost(death, self.shared.options.recovery, reason).await
    }

    /// Stores that the run is parked: its orchestrator has ended.
    async fn park(&mut self) -> Next {
        let Some(waiting) = self.view.waiting.clone() else { return Next::End };
        let (shared, now) = (Arc::clone(self.shared), clock::now());
        let host = &shared.options.host;
        // Where clocks differ, a run that is woken early parks again with the same time.
        let earliest = cliq_fs::now().after(EARLIEST);
        let until = waiting.until.time().map_or(earliest, |until| until.max(earliest));
        self.commit(|change, view| {
            if cliq_model::park(change, &waiting.on, until, now).is_ok() {
                change.run.totals = totals(view);
                record_progress(&mut change.run, view);
                change.run.view = status_document(host, &change.run, view);
            }
            Vec::new()
        })
        .await;
        shared.has_parked();
        Next::End
    }

    /// Stores the recovery of a lost run: failed, queued again or resumed. Returns the next action of the follower.
    pub(super) async fn end_lost(&mut self, death: Death, recovery: Recovery, reason: String) -> Next {
        let is_of_server = self.run.origin.is_started_by_server();
        let recovery = if is_of_server { recovery } else { Recovery::Fail };
        let planned = self.run.life.clone().step(LifecycleEvent::Lost(death, recovery)).unwrap_or_default();
        if planned.contains(&LifecycleEffect::EndLeftovers) && is_of_server {
            // Before the step is stored: after a crash in between it is done again.
            self.end_leftovers();
        }
        let mut effects = Vec::new();
        let (shared, verdicts) = (Arc::clone(self.shared), std::mem::take(&mut self.verdicts));
        let host = &shared.options.host;
        let committed = self
            .commit(|change, view| {
                let former = change.run.life.former;
                effects = change.run.life.step(LifecycleEvent::Lost(death, recovery)).unwrap_or_default();
                let state = change.run.life.state;
                if state == RunState::Queued {
                    change.run.replica = None;
                }
                let setback = Setback { reason: reason.clone(), state };
                if former.is_some() && state.is_final() {
                    // The attempt to resume it came to nothing: its outcome, its reason and its phases stay as they are.
                    change.push(event(&ServerEvent::RunNotResumed(setback)));
                    return Vec::new();
                }
                change.push(event(&match death {
                    Death::ProjectBusy if state == RunState::Queued => ServerEvent::RunRequeued(setback),
                    Death::Died => ServerEvent::OrchestratorDied(setback),
                    Death::ProjectBusy | Death::NeverBegan => ServerEvent::RunNotStarted(setback),
                }));
                if state.is_final() {
                    change.run.ended_at = Some(clock::now());
                    change.run.reason = Some(reason.clone());
                    change.run.totals = totals(view);
                    record_progress(&mut change.run, view);
                    // The clocks of its phases stop: nobody works any more.
                    let mut view = view.clone();
                    view.interrupt(Some(cliq_fs::now()));
                    let view = &view;
                    change.run.view = status_document(host, &change.run, view);
                    change.run.caveats = Caveat::of_document(&change.run.view);
                    let is_cancelled = state == RunState::Cancelled;
                    let status =
                        if is_cancelled { PipelineStatus::Cancelled } else { PipelineStatus::Failed };
                    change.push(ended(status, Some(reason.clone())));
                    if let Some(finished) = shared.options.delegated_finished(&change.run, view, &verdicts) {
                        change.push(finished);
                    }
                }
                Vec::new()
            })
            .await;
        self.verdicts = verdicts;
        if !committed {
            return Next::End;
        }
        if effects.contains(&LifecycleEffect::RemoveWorkspace)
            && self.run.has_own_workspace()
            && let Err(error) = workspace::remove(&self.run.workspace)
        {
            tracing::warn!(run = %self.run.id, %error, "cannot remove the workspace of a run that died");
        }
        // The workspace of a delegated run that never began has nothing to keep either.
        if self.run.life.state.is_final() {
            self.leave_workspace();
        }
        if effects.contains(&LifecycleEffect::Start) { Next::Restart } else { Next::End }
    }

    /// Ends processes that a dead orchestrator left.
    fn end_leftovers(&self) {
        let Ok(dir) = CliqDir::open(&self.run.workspace) else { return };
        let processes = cliq_orchestrator::internals::end_dead_run(&dir, &self.run.id, GRACE);
        if processes > 0 {
            tracing::info!(run = %self.run.id, processes, "ended processes of a dead orchestrator");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use cliq_model::{MemoryStore, Recovery, Run, RunState};

    use crate::follower::{StartMode, follow};
    use crate::test_support::TestSupervisor;

    /// Follows a run whose orchestrator is gone, to the end.
    async fn lose(test: &TestSupervisor, run: &Run, state: RunState) -> Run {
        follow(&test.shared, run.clone(), StartMode::Adopt);
        test.wait(&run.id, state).await
    }

    #[tokio::test]
    async fn lost_run_fails_with_the_reason() {
        let test = TestSupervisor::new();
        let run = test.add(&test.running(None)).await;
        let run = lose(&test, &run, RunState::Failed).await;
        assert!(run.reason.unwrap().contains("its workspace is not here"));
        assert!(run.ended_at.is_some());
        assert_eq!(test.events(&run.id).await, ["orchestrator_died", "run_finished"]);
    }

    #[tokio::test]
    async fn lost_run_is_resumed_if_the_setting_asks_for_it() {
        let test = TestSupervisor::on(MemoryStore::default(), |options| options.recovery = Recovery::Resume);
        let run = test.add(&test.running(None)).await;
        fs::create_dir_all(&run.workspace).unwrap();
        let run = lose(&test, &run, RunState::Failed).await;
        let events = test.events(&run.id).await;
        assert_eq!(events.first().map(String::as_str), Some("orchestrator_died"));
        // Its program does not exist: the attempt to resume it ends.
        assert!(
            run.life.recoveries > 0 && events.last().is_some_and(|kind| kind == "run_finished"),
            "{events:?}"
        );
    }

    #[tokio::test]
    async fn dispatched_run_of_a_dead_supervisor_is_queued_again() {
        let test = TestSupervisor::new();
        let mut run = test.new_run();
        run.life.step(cliq_model::LifecycleEvent::Dispatched).unwrap();
        let run = test.add(&run).await;
        let run = lose(&test, &run, RunState::Queued).await;
        assert_eq!(test.events(&run.id).await, ["run_requeued"]);
        assert_eq!(run.replica, None);
    }

    #[tokio::test]
    async fn follower_stores_its_change_once_the_store_works_again() {
        let test = TestSupervisor::new();
        let run = test.add(&test.running(None)).await;
        follow(&test.shared, run.clone(), StartMode::Adopt);
        test.store.fail(2);
        let failed = async {
            loop {
                // The store fails for the first calls of this test too.
                if let Ok(Some(run)) = cliq_model::RunStore::run(&test.store, &run.id).await
                    && run.life.state == RunState::Failed
                {
                    return;
                }
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(std::time::Duration::from_secs(10), failed).await.unwrap();
        assert_eq!(test.events(&run.id).await, ["orchestrator_died", "run_finished"], "once");
    }
}
