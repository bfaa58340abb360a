//! Steps of stored plans: load, step, store, all or nothing.

use std::fs::{self, TryLockError};
use std::sync::Arc;
use std::time::Duration;

use camino::Utf8Path;
use cliq_fs::{FsError, IoContext, open_append, write_atomic};
use cliq_model::{Outcome, StoreError};

use cliq_gateway::{Claim, Finish, NewEvent, PlanName, PlanRow, Step, Store};
use serde_json::json;

use crate::layout::plan_dir;
use crate::machine::{Context, Effects, Event};
use crate::model::{PLAN_VERSION, Plan};
use crate::plan_file::{PlanFile, PlanProblem};

/// Maximum number of attempts of a step after an optimistic-lock conflict.
const ATTEMPTS: u32 = 20;

/// Reason why a step was not made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StepError {
    /// The store cannot be used.
    #[error(transparent)]
    Gateway(#[from] StoreError),
    /// The plan does not exist.
    #[error("there is no plan `{plan}` in {project}: `cliq plan add FILE` adds one")]
    NoPlan {
        /// The plan.
        plan: String,
        /// The project.
        project: String,
    },
    /// There is one already.
    #[error(
        "there is a plan `{plan}` in {project} already: change it in its own file, .cliq/plans/{plan}/plan.md, or give this one another name with `--name`"
    )]
    Exists {
        /// The plan.
        plan: String,
        /// The project.
        project: String,
    },
    /// The event does not fit.
    #[error("{0}")]
    Refused(String),
    /// Another worker has claimed the signal since.
    #[error("the signal was taken over by another worker")]
    Overtaken,
    /// The stored document cannot be read.
    #[error("cannot read the stored state of plan `{plan}`: {why}")]
    Document {
        /// The plan.
        plan: String,
        /// Reason.
        why: String,
    },
}

/// Reason why a plan was not added.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AddError {
    /// The text is not a plan.
    #[error("{}", .0.iter().map(|problem| format!("line {}: {}", problem.line, problem.message)).collect::<Vec<_>>().join("; "))]
    Text(Vec<PlanProblem>),
    /// The plan file cannot be written.
    #[error(transparent)]
    File(#[from] FsError),
    /// There is one of that name, or the store cannot be used.
    #[error(transparent)]
    Step(#[from] StepError),
}

/// Plans in a store.
#[derive(Debug, Clone)]
pub struct Plans {
    store: Arc<dyn Store>,
}

impl Plans {
    /// The plans in a store.
    #[must_use]
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &dyn Store {
        self.store.as_ref()
    }

    /// Adds a plan.
    ///
    /// # Errors
    /// There is one of that name, or the store cannot be written.
    pub async fn add(&self, project: &str, name: &PlanName, file: PlanFile) -> Result<(), StepError> {
        let waves = file.waves.len();
        let plan = Plan::new(file);
        let now = cliq_fs::now();
        let row = PlanRow {
            project: project.to_owned(),
            name: name.to_string(),
            state: plan.state.to_string(),
            document: json!(plan).to_string(),
            version: 0,
            created_at: now,
            updated_at: now,
        };
        let event = NewEvent {
            kind: "added".to_owned(),
            from: String::new(),
            to: plan.state.to_string(),
            detail: json!({"waves": waves}).to_string(),
        };
        let step = Step { plan: row, events: vec![event], finish: None, emit: Vec::new() };
        match self.store.apply(&step).await? {
            Outcome::Applied => Ok(()),
            Outcome::Stale => Err(StepError::Exists { plan: name.to_string(), project: project.to_owned() }),
        }
    }

    /// Adds a plan with the text of its file, which goes to `.cliq/plans/<name>/plan.md`. Adds of one project are made one
    /// after the other, so that the file is that of the plan.
    ///
    /// # Errors
    /// The text is not a plan, there is one of that name, or the file or the store cannot be written.
    pub async fn add_text(
        &self,
        project: &Utf8Path,
        name: &PlanName,
        text: &str,
    ) -> Result<PlanFile, AddError> {
        let file = PlanFile::parse(text).map_err(AddError::Text)?;
        let folder = plan_dir(project, name.as_str());
        let plans = folder.parent().unwrap_or(&folder).to_owned();
        fs::create_dir_all(&folder).at("create", &folder)?;
        let lock = plans.join(".lock");
        let lock_file = open_append(&lock)?;
        while let Err(error) = lock_file.try_lock() {
            match error {
                TryLockError::WouldBlock => tokio::time::sleep(Duration::from_millis(5)).await,
                TryLockError::Error(error) => return Err(error).at("lock", &lock).map_err(Into::into),
            }
        }
        if self.store.plan(project.as_str(), name.as_str()).await.map_err(StepError::from)?.is_some() {
            let (plan, project) = (name.to_string(), project.to_string());
            return Err(StepError::Exists { plan, project }.into());
        }
        write_atomic(&folder.join("plan.md"), text.as_bytes())?;
        self.add(project.as_str(), name, file.clone()).await?;
        Ok(file)
    }

    /// A plan with its row.
    ///
    /// # Errors
    /// There is none, it cannot be read, or a newer cliq wrote it.
    pub async fn load(&self, project: &str, name: &str) -> Result<(Plan, PlanRow), StepError> {
        let row = self.store.plan(project, name).await?;
        let row =
            row.ok_or_else(|| StepError::NoPlan { plan: name.to_owned(), project: project.to_owned() })?;
        read(&row).map(|plan| (plan, row))
    }

    /// Takes an event in. With a claim, its signal is finished in the same transaction; one that does not fit has failed.
    ///
    /// # Errors
    /// The event does not fit, or the store cannot be used.
    pub async fn step(
        &self,
        project: &str,
        name: &PlanName,
        event: &Event,
        context: &Context<'_>,
        claim: Option<&Claim>,
    ) -> Result<Effects, StepError> {
        let refused = async |why: &StepError| -> Result<(), StoreError> {
            if let Some(claim) = claim {
                let _ = self.store.finish(claim, &Finish::Failed(why.to_string())).await?;
            }
            Ok(())
        };
        for _ in 0..ATTEMPTS {
            let (mut plan, row) = match self.load(project, name.as_str()).await {
                Err(error @ (StepError::NoPlan { .. } | StepError::Document { .. })) => {
                    refused(&error).await?;
                    return Err(error);
                }
                other => other?,
            };
            let before = plan.state;
            let effects = match plan.step(event.clone(), context) {
                Ok(effects) => effects,
                Err(why) => {
                    let error = StepError::Refused(why);
                    refused(&error).await?;
                    return Err(error);
                }
            };
            let result = match effects.ignored {
                Some(why) => format!("ignored: {why}"),
                None if before == plan.state => plan.state.to_string(),
                None => format!("{before} → {}", plan.state),
            };
            let events = effects.notes.iter().map(|note| NewEvent {
                kind: note.kind.to_owned(),
                from: before.to_string(),
                to: plan.state.to_string(),
                detail: note.detail.to_string(),
            });
            let step = Step {
                events: events.collect(),
                finish: claim.map(|claim| (claim.clone(), Finish::Done(result))),
                emit: effects.signals(name),
                plan: PlanRow {
                    state: plan.state.to_string(),
                    document: json!(plan).to_string(),
                    ..row.clone()
                },
            };
            if self.store.apply(&step).await? == Outcome::Applied {
                log_unknown_output(name, &effects);
                return Ok(effects);
            }
            let now = self.store.plan(project, name.as_str()).await?;
            if claim.is_some() && now.is_some_and(|now| now.version == row.version) {
                return Err(StepError::Overtaken);
            }
        }
        Err(StepError::Refused(format!("plan `{name}` is changed by others all the time; try again")))
    }
}

/// Logs output without a known marker: the first time as a warning, then as an error.
fn log_unknown_output(plan: &PlanName, effects: &Effects) {
    for note in effects.notes.iter().filter(|note| note.kind == "unknown_output") {
        let text = |key: &str| note.detail[key].as_str().unwrap_or_default();
        let start: String = text("preview").chars().take(200).collect();
        let (work, role, strike) = (text("work"), text("role"), &note.detail["strike"]);
        match text("level") {
            "warning" => {
                tracing::warn!(%plan, work, role, %strike, output = start, "output without a known marker");
            }
            _ => tracing::error!(%plan, work, role, %strike, output = start, "output without a known marker"),
        }
    }
}

/// The plan in a row.
///
/// # Errors
/// Returns an error if the document cannot be read, or a newer cliq wrote it.
pub fn read(row: &PlanRow) -> Result<Plan, StepError> {
    let failed = |why: String| StepError::Document { plan: row.name.clone(), why };
    let value: serde_json::Value =
        serde_json::from_str(&row.document).map_err(|error| failed(error.to_string()))?;
    let version = value.get("version").and_then(serde_json::Value::as_u64).unwrap_or(0);
    if version > u64::from(PLAN_VERSION) {
        return Err(failed(format!(
            "it has version {version}, and this cliq knows {PLAN_VERSION}; use the newer cliq"
        )));
    }
    serde_json::from_value(value).map_err(|error| failed(error.to_string()))
}
