//! Inputs of the daemon: files, signals, and ends of agents.

use camino::Utf8Path;
use cliq_fs::CliqDir;
use cliq_gateway::{Finish, Inbox, PlanName, SignalType};
use cliq_model::StoreError;
use tracing::Instrument;

use super::{Daemon, DaemonEvent};
use crate::layout::read_plan_file;
use crate::machine::{Context, Event};
use crate::model::Config;
use crate::service::StepError;

impl Daemon {
    pub(super) async fn recover(&mut self, project: &Utf8Path) -> Result<(), StoreError> {
        self.end_orphans(project).await?;
        for inbox in Inbox::all_of(project) {
            match inbox.recover() {
                Ok(_) => {}
                Err(error) => self.report_error(error.to_string()),
            }
        }
        Ok(())
    }

    /// Everything that can be done now is done. What is wrong with one project is no other's trouble.
    pub(super) async fn tick(&mut self) -> Result<(), StepError> {
        let mut projects = self.plans.store().projects().await?;
        // A project without plans has an inbox too.
        for project in self.agents.projects() {
            let inboxes = Inbox::all_of(&project);
            inboxes.iter().for_each(|inbox| self.watch(inbox.root()));
            if !projects.iter().any(|known| *known == project) && inboxes.iter().any(Inbox::has_files) {
                projects.push(project.into_string());
            }
        }
        for project in projects {
            if let Err(error) = self.serve(&project).await {
                self.report_error(format!("{project}: {error}"));
            }
        }
        Ok(())
    }

    async fn serve(&mut self, project: &str) -> Result<(), StepError> {
        let path = Utf8Path::new(project);
        if !path.is_absolute() || !path.join(CliqDir::NAME).is_dir() {
            self.report_error(format!("{project} is not a cliq project: what is meant for it waits"));
            return Ok(());
        }
        let config = match self.agents.config(path) {
            Ok(config) => config,
            Err(why) => {
                self.report_error(format!("{project}: {why}"));
                return Ok(());
            }
        };
        self.bridge(path).await?;
        self.signals(project, config).await?;
        // Signals first: an agent that has emitted one and ended has done its part.
        while let Some(ended) = self.next_ended(project) {
            self.ended_one(project, config, ended).await?;
        }
        self.signals(project, config).await?;
        self.reconcile(path).await
    }

    async fn bridge(&mut self, project: &Utf8Path) -> Result<(), StepError> {
        for inbox in Inbox::all_of(project) {
            self.watch(inbox.root());
            let bridged = inbox.bridge(self.plans.store(), project.as_str()).await?;
            if !bridged.signals.is_empty() || !bridged.refused.is_empty() {
                self.report_event(DaemonEvent::BridgeReport {
                    signals: bridged.signals.len(),
                    refused: bridged.refused,
                });
            }
        }
        Ok(())
    }

    /// Processes what is pending, and what follows from it.
    async fn signals(&mut self, project: &str, config: Config) -> Result<(), StepError> {
        while let Some((claim, signal)) = self.plans.store().claim(project, super::WORKER).await? {
            let names =
                PlanName::parse(&signal.plan).and_then(|plan| Ok((plan, SignalType::parse(&signal.kind)?)));
            let result = match names {
                Ok((plan, kind)) => {
                    let file = read_plan_file(Utf8Path::new(project), plan.as_str());
                    let context = Context { config, file: file.as_ref().map_err(Clone::clone) };
                    let event = Event::Signal { kind, payload: signal.payload() };
                    let span = tracing::info_span!(
                        "signal",
                        id = signal.id,
                        kind = signal.kind.as_str(),
                        project,
                        plan = plan.as_str()
                    );
                    let step =
                        self.plans.step(project, &plan, &event, &context, Some(&claim)).instrument(span);
                    match step.await {
                        Ok(effects) => Ok(effects.ignored.map_or_else(
                            || {
                                let state = effects.notes.iter().find(|note| note.kind == "state");
                                state.map_or("ok".to_owned(), |note| {
                                    let side =
                                        |key: &str| note.detail[key].as_str().unwrap_or_default().to_owned();
                                    format!("{} → {}", side("from"), side("to"))
                                })
                            },
                            |why| format!("ignored: {why}"),
                        )),
                        Err(StepError::Gateway(error)) => return Err(error.into()),
                        Err(error) => Err(error.to_string()),
                    }
                }
                Err(why) => {
                    // The row was written by hand.
                    let _ = self.plans.store().finish(&claim, &Finish::Failed(why.clone())).await?;
                    Err(why)
                }
            };
            self.report_event(DaemonEvent::Signal {
                plan: signal.plan.clone(),
                signal: (signal.id, signal.kind.clone()),
                result,
            });
        }
        Ok(())
    }
}
