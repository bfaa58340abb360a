//! Driver of an evaluation: performs the effects of the scheduler and stores each result once.

use cliq_orchestrator::internals::spawn_blocking;
use cliq_protocol::{RunId, Timestamp};
use std::collections::HashMap;
use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, Instant};

use camino::Utf8Path;
use cliq_fs::IoContext;
use cliq_model::{EvaluationRow, EvaluationStore, RunTotals, TrialRow, TrialState};
use cliq_project::Host;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::attempt::{AttemptEnd, Workshop};
use crate::directory::EvaluationDir;
use crate::error::EvalError;
use crate::scheduler::{Effect, Event, Scheduler};
use crate::suite::Suite;
use crate::trial::{TrialOutcome, TrialResult, trials_of};

/// Name of the directory of all evaluations below the cliq home.
pub const DIRECTORY: &str = "evaluations";
/// Time to wait for the lock of an evaluation.
const LOCK_PATIENCE: Duration = Duration::from_millis(500);

/// Progress of an evaluation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Progress {
    /// Number of trials.
    pub trials: usize,
    /// Number of trials with a result.
    pub finished: usize,
    /// Number of trials that passed.
    pub passed: usize,
    /// Number of trials at work.
    pub running: usize,
    /// Usage so far.
    pub used: RunTotals,
    /// Last infrastructure error.
    pub last_error: Option<String>,
}

/// Evaluation that this process works on. Another process cannot, until this value is dropped.
#[derive(Debug)]
pub struct Evaluation {
    row: EvaluationRow,
    store: Arc<dyn EvaluationStore>,
    workshop: Arc<Workshop>,
    _lock: File,
}

impl Evaluation {
    /// Stores a new evaluation and makes its templates. Nothing is left behind if that fails.
    ///
    /// # Errors
    /// Returns an error if a team or a workspace cannot be prepared, or the store fails.
    pub async fn start(
        host: &Host,
        home: &Utf8Path,
        store: Arc<dyn EvaluationStore>,
        suite: Suite,
    ) -> Result<Self, EvalError> {
        let id = uuid::Uuid::now_v7().to_string();
        let dir = EvaluationDir::new(home.join(DIRECTORY).join(&id));
        let row = EvaluationRow {
            id,
            name: suite.name.clone(),
            directory: dir.path().to_owned(),
            document: serde_json::to_string(&suite).unwrap_or_default(),
            created_at: cliq_fs::now(),
            ended_at: None,
            trials: suite.trials() as u64,
            finished: 0,
        };
        let lock = lock(&row)?;
        let trials = trials_of(&suite);
        let workshop = Arc::new(Workshop { host: host.clone(), suite, dir });
        let preparing = Arc::clone(&workshop);
        let prepared = spawn_blocking(move || preparing.dir.prepare(&preparing.host, &preparing.suite)).await;
        let prepared = prepared
            .unwrap_or_else(|error| Err(EvalError::Project(std::io::Error::other(error.to_string()).into())));
        if let Err(error) = prepared {
            let _ = crate::directory::remove(workshop.dir.path());
            return Err(error);
        }
        store.add_evaluation(&row, &trials).await?;
        Ok(Self { row, store, workshop, _lock: lock })
    }

    /// Opens a stored evaluation to continue it.
    ///
    /// # Errors
    /// Returns an error if there is no such evaluation, another process works on it, or the store fails.
    pub async fn open(host: &Host, store: Arc<dyn EvaluationStore>, id: &str) -> Result<Self, EvalError> {
        let row = store.evaluation(id).await?.ok_or_else(|| EvalError::Unknown(id.to_owned()))?;
        let suite = suite_of(&row)?;
        let lock = lock(&row)?;
        let dir = EvaluationDir::new(row.directory.clone());
        let workshop = Arc::new(Workshop { host: host.clone(), suite, dir });
        Ok(Self { row, store, workshop, _lock: lock })
    }

    /// Row as it was stored at the start.
    #[must_use]
    pub fn row(&self) -> &EvaluationRow {
        &self.row
    }

    /// Suite.
    #[must_use]
    pub fn suite(&self) -> &Suite {
        &self.workshop.suite
    }

    /// Runs all trials that have no result. `stop` stops the evaluation: runs at work are cancelled, and their trials start again when it
    /// is resumed.
    ///
    /// # Errors
    /// Returns an error if the store fails.
    pub async fn run(
        &self,
        stop: &CancellationToken,
        mut on_progress: impl FnMut(&Progress),
    ) -> Result<(), EvalError> {
        let mut rows = self.store.trials(&self.row.id).await?;
        let results: Vec<Option<TrialResult>> = rows.iter().map(result_of).collect();
        let mut progress = progress(&rows, &results);
        // Those that were at work are adopted first.
        let mut is_interrupted: HashMap<usize, RunId> = HashMap::new();
        for (index, row) in rows.iter().enumerate().filter(|(_, row)| row.state == TrialState::Running) {
            is_interrupted.extend(row.run_id.clone().map(|id| (index, id)));
        }
        let states = rows.iter().map(|row| (row.state == TrialState::Finished, row.attempts));
        let suite = &self.workshop.suite;
        let mut scheduler = Scheduler::new(states, suite.max_parallel, suite.budget, progress.used);
        let mut attempts: JoinSet<(usize, AttemptEnd)> = JoinSet::new();
        let mut effects = scheduler.step(Event::Tick, cliq_fs::now());
        let (mut wake, mut is_stopped) = (None::<Timestamp>, false);
        loop {
            let mut is_finished = false;
            wake = None.or(wake.filter(|at| *at > cliq_fs::now()));
            for effect in std::mem::take(&mut effects) {
                match effect {
                    Effect::Start { trial } => {
                        let adopted = is_interrupted.remove(&trial);
                        self.start_attempt(&mut rows[trial], trial, adopted, stop, &mut attempts).await?;
                        progress.running += 1;
                    }
                    Effect::Skip { trial } => {
                        let reason = "the budget was used up".to_owned();
                        let result =
                            TrialResult::without_run(TrialOutcome::Skipped, reason, RunTotals::default());
                        self.finish(&mut rows[trial], &result).await?;
                        progress.finished += 1;
                    }
                    Effect::GiveUp { trial } => {
                        let reason = progress.last_error.clone().unwrap_or_default();
                        let used = result_of(&rows[trial]).map(|result| result.usage).unwrap_or_default();
                        let result = TrialResult::without_run(TrialOutcome::Infrastructure, reason, used);
                        self.finish(&mut rows[trial], &result).await?;
                        progress.finished += 1;
                    }
                    Effect::Wake { at } => wake = Some(at),
                    Effect::Finish => is_finished = true,
                }
            }
            on_progress(&progress);
            if is_finished {
                break;
            }
            let pause = wake.map(|at| at.since(cliq_fs::now()));
            let event = tokio::select! {
                Some(ended) = attempts.join_next() => match ended {
                    Ok((trial, end)) => {
                        progress.running -= 1;
                        self.end_attempt(&mut rows[trial], trial, end, &mut progress).await?
                    }
                    // A panic of an attempt is a defect; its trial starts again when the evaluation is resumed.
                    Err(_) => Event::Stopped,
                },
                () = stop.cancelled(), if !is_stopped => {
                    is_stopped = true;
                    Event::Stopped
                }
                () = tokio::time::sleep(pause.unwrap_or(Duration::from_secs(3600))), if pause.is_some() => Event::Tick,
            };
            effects = scheduler.step(event, cliq_fs::now());
            progress.used = scheduler.used();
        }
        if !stop.is_cancelled() && progress.finished == progress.trials {
            self.store.end_evaluation(&self.row.id, cliq_fs::now()).await?;
        }
        Ok(())
    }

    /// Stores that a trial is at work, and then starts its attempt: after a kill the run is found by the id in the row.
    async fn start_attempt(
        &self,
        row: &mut TrialRow,
        index: usize,
        adopted: Option<RunId>,
        stop: &CancellationToken,
        attempts: &mut JoinSet<(usize, AttemptEnd)>,
    ) -> Result<(), EvalError> {
        let run_id = adopted.unwrap_or_else(cliq_fs::new_run_id);
        row.state = TrialState::Running;
        row.run_id = Some(run_id.clone());
        self.store.save_trial(&self.row.id, row).await?;
        let (workshop, row, stop) = (Arc::clone(&self.workshop), row.clone(), stop.clone());
        attempts.spawn(async move { (index, workshop.attempt(&row, &run_id, &stop).await) });
        Ok(())
    }

    async fn end_attempt(
        &self,
        row: &mut TrialRow,
        index: usize,
        end: AttemptEnd,
        progress: &mut Progress,
    ) -> Result<Event, EvalError> {
        // Usage of failed attempts before.
        let before = result_of(row).map(|result| result.usage).unwrap_or_default();
        match end {
            AttemptEnd::Counted(mut result) => {
                let usage = result.usage;
                result.usage.add(&before);
                self.finish(row, &result).await?;
                progress.finished += 1;
                progress.passed += usize::from(result.outcome == TrialOutcome::Passed);
                Ok(Event::Counted { trial: index, usage })
            }
            AttemptEnd::Infrastructure { reason, usage } => {
                let mut used = before;
                used.add(&usage);
                row.attempts += 1;
                row.state = TrialState::Pending;
                row.run_id = None;
                let result = TrialResult::without_run(TrialOutcome::Infrastructure, reason.clone(), used);
                row.result = serde_json::to_string(&result).unwrap_or_default();
                self.store.save_trial(&self.row.id, row).await?;
                progress.last_error = Some(reason);
                Ok(Event::Infrastructure { trial: index, usage })
            }
            AttemptEnd::Stopped => {
                row.state = TrialState::Pending;
                row.run_id = None;
                self.store.save_trial(&self.row.id, row).await?;
                Ok(Event::Returned { trial: index })
            }
        }
    }

    async fn finish(&self, row: &mut TrialRow, result: &TrialResult) -> Result<(), EvalError> {
        row.state = TrialState::Finished;
        row.result = serde_json::to_string(result).unwrap_or_default();
        self.store.save_trial(&self.row.id, row).await?;
        Ok(())
    }
}

/// Reads the suite of a stored evaluation.
///
/// # Errors
/// Returns an error if it was written by a newer version.
pub fn suite_of(row: &EvaluationRow) -> Result<Suite, EvalError> {
    serde_json::from_str(&row.document).map_err(|source| EvalError::Stored { id: row.id.clone(), source })
}

/// Returns the result of a trial, or of its failed attempts so far.
#[must_use]
pub fn result_of(row: &TrialRow) -> Option<TrialResult> {
    serde_json::from_str(&row.result).ok()
}

fn progress(rows: &[TrialRow], results: &[Option<TrialResult>]) -> Progress {
    let mut progress = Progress { trials: rows.len(), ..Progress::default() };
    for (row, result) in rows.iter().zip(results) {
        if let Some(result) = result {
            progress.used.add(&result.usage);
            let is_finished = row.state == TrialState::Finished;
            progress.finished += usize::from(is_finished);
            progress.passed += usize::from(is_finished && result.outcome == TrialOutcome::Passed);
        }
    }
    progress
}

/// Locks the directory of an evaluation for this process.
fn lock(row: &EvaluationRow) -> Result<File, EvalError> {
    std::fs::create_dir_all(&row.directory).at("create", &row.directory)?;
    let path = row.directory.join("lock");
    let file = File::options().create(true).append(true).open(&path).at("open", &path)?;
    let deadline = Instant::now() + LOCK_PATIENCE;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            // A process that a killed evaluation was about to start holds the lock until it runs another program.
            Err(std::fs::TryLockError::WouldBlock) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(std::fs::TryLockError::WouldBlock) => return Err(EvalError::Busy(row.id.clone())),
            Err(std::fs::TryLockError::Error(error)) => return Ok(Err(error).at("lock", &path)?),
        }
    }
}
