//! What comes in: files, signals, and the ends of agents.

use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::CliqDir;
use cliq_gateway::{Finish, Inbox, PlanName, SignalType};
use tracing::Instrument;

use super::{Daemon, DaemonEvent};
use crate::machine::{Context, Event};
use crate::model::Config;
use crate::plan_file::PlanFile;
use crate::service::StepError;

/// The inboxes of a project: its own, and those of its worktrees.
pub(super) fn inboxes(project: &Utf8Path) -> Vec<Inbox> {
    let inbox = |workspace: &Utf8Path| Inbox::new(workspace.join(CliqDir::NAME).join("signals/inbox"));
    let mut all = vec![inbox(project)];
    let worktrees = project.join(".worktrees");
    if let Ok(entries) = worktrees.read_dir_utf8() {
        let mut paths: Vec<Utf8PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.into_path())).collect();
        paths.sort();
        all.extend(paths.iter().map(|path| inbox(path)));
    }
    all
}

/// Where a plan's file and its jobs are.
#[must_use]
pub fn plan_dir(project: &Utf8Path, plan: &str) -> Utf8PathBuf {
    project.join(CliqDir::NAME).join("plans").join(plan)
}

/// Where an agent of a plan finds its brief and leaves its log and its journal: a `.cliq` directory of its own.
#[must_use]
pub fn job_dir(project: &Utf8Path, plan: &str, job: u64) -> Utf8PathBuf {
    plan_dir(project, plan).join("jobs").join(job.to_string())
}

/// The most bytes of a plan's file.
const PLAN_LIMIT: u64 = 64 << 20;

/// A plan's file, as it is now.
///
/// # Errors
/// It cannot be read, or is no plan; why.
pub fn read_plan_file(project: &Utf8Path, plan: &str) -> Result<PlanFile, String> {
    let path = plan_dir(project, plan).join("plan.md");
    let bytes = cliq_fs::read_limited(&path, PLAN_LIMIT).map_err(|error| error.to_string())?;
    let text = String::from_utf8(bytes).map_err(|_| format!("{path} is not UTF-8"))?;
    PlanFile::parse(&text).map_err(|problems| {
        let problems: Vec<String> = problems.iter().map(|problem| format!("{path}, {problem}")).collect();
        problems.join("; ")
    })
}

impl Daemon {
    pub(super) fn recover(&mut self, project: &Utf8Path) {
        self.end_orphans(project);
        for inbox in inboxes(project) {
            match inbox.recover() {
                Ok(_) => {}
                Err(error) => self.trouble(error.to_string()),
            }
        }
    }

    /// Everything that can be done now is done. What is wrong with one project is no other's trouble.
    pub(super) async fn tick(&mut self) -> Result<(), StepError> {
        let mut projects = self.plans.store().projects().await?;
        // A project without plans has an inbox too.
        for project in self.agents.projects() {
            let inboxes = inboxes(&project);
            inboxes.iter().for_each(|inbox| self.watch(inbox.root()));
            if !projects.iter().any(|known| *known == project) && inboxes.iter().any(Inbox::has_files) {
                projects.push(project.into_string());
            }
        }
        for project in projects {
            if let Err(error) = self.serve(&project).await {
                self.trouble(format!("{project}: {error}"));
            }
        }
        Ok(())
    }

    async fn serve(&mut self, project: &str) -> Result<(), StepError> {
        let path = Utf8Path::new(project);
        if !path.is_absolute() || !path.join(CliqDir::NAME).is_dir() {
            self.trouble(format!("{project} is no cliq project: what is meant for it waits"));
            return Ok(());
        }
        let config = match self.agents.config(path) {
            Ok(config) => config,
            Err(why) => {
                self.trouble(format!("{project}: {why}"));
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
        for inbox in inboxes(project) {
            self.watch(inbox.root());
            let bridged = inbox.bridge(self.plans.store(), project.as_str()).await?;
            if !bridged.signals.is_empty() || !bridged.refused.is_empty() {
                self.tell(DaemonEvent::Bridged { signals: bridged.signals.len(), refused: bridged.refused });
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
            self.tell(DaemonEvent::Signal {
                plan: signal.plan.clone(),
                signal: (signal.id, signal.kind.clone()),
                result,
            });
        }
        Ok(())
    }
}
