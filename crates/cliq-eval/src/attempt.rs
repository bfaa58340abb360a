//! One attempt of a trial: start, adopt or resume its run, then check the outcome.

use std::time::{Duration, Instant};

use cliq_backends::{BackendError, Cancellation, ChildProcess, RunEnd, RunJob};
use cliq_fs::PipelineStatus;
use cliq_model::{RunTotals, TrialRow};
use cliq_orchestrator::internals::spawn_blocking;
use cliq_orchestrator::{Journal, Record, RunEvent, RunView};
use cliq_project::{Host, Project, RunSpec, RunStart};
use cliq_protocol::RunId;
use tokio_util::sync::CancellationToken;

use crate::checks::{RunOutcome, check_command, check_end, check_expression, check_file};
use crate::directory::EvaluationDir;
use crate::error::EvalError;
use crate::infrastructure::is_infrastructure;
use crate::suite::{Case, CheckKind, CheckSpec, JudgeSpec, Suite, Variant};
use crate::trial::{CheckResult, TrialOutcome, TrialResult};

/// Maximum number of times that a run whose orchestrator was killed is resumed in one attempt.
const MAX_RESUMPTIONS: u32 = 3;
/// Time to wait for the exit of a run's process after the end of the run.
const EXIT_PATIENCE: Duration = Duration::from_secs(60);
/// Time limit of the run of a judge.
const JUDGE_LIMIT: Duration = Duration::from_secs(1800);

/// End of an attempt.
#[derive(Debug)]
pub(crate) enum AttemptEnd {
    /// The trial has a result that counts.
    Counted(TrialResult),
    /// The infrastructure failed.
    Infrastructure { reason: String, usage: RunTotals },
    /// The evaluation was stopped.
    Stopped,
}

/// Parts of an attempt that all trials share.
#[derive(Debug, Clone)]
pub(crate) struct Workshop {
    pub(crate) host: Host,
    pub(crate) suite: Suite,
    pub(crate) dir: EvaluationDir,
}

/// Finished run of a trial or a judge.
struct FinishedRun {
    status: Option<PipelineStatus>,
    reason: Option<String>,
    usage: RunTotals,
    duration_ms: u64,
    is_late: bool,
    /// Whether the last work that failed did so with an infrastructure error, and no gate judged after it.
    is_infrastructure: bool,
}

/// Run of a trial or a judge before it starts.
struct RunOrder<'a> {
    project: &'a Project,
    run_id: &'a RunId,
    spec: RunSpec,
    limit: Duration,
}

impl Workshop {
    /// Makes one attempt of a trial whose row has the id of the run.
    pub(crate) async fn attempt(
        &self,
        row: &TrialRow,
        run_id: &RunId,
        stop: &CancellationToken,
    ) -> AttemptEnd {
        let mut usage = RunTotals::default();
        match self.try_attempt(row, run_id, stop, &mut usage).await {
            Ok(end) => end,
            // The team was not at fault: its run could not be started or followed.
            Err(error) => AttemptEnd::Infrastructure { reason: error.to_string(), usage },
        }
    }

    async fn try_attempt(
        &self,
        row: &TrialRow,
        run_id: &RunId,
        stop: &CancellationToken,
        usage: &mut RunTotals,
    ) -> Result<AttemptEnd, EvalError> {
        let missing = || EvalError::Unknown(format!("{}/{}", row.variant, row.case));
        let case = self.suite.case(&row.case).ok_or_else(missing)?;
        let variant = self.suite.variant(&row.variant).ok_or_else(missing)?;
        let project = self.project(row, run_id, case).await?;
        let title = format!("{}: {}, {}, repeat {}", self.suite.name, row.variant, row.case, row.repeat);
        let order = RunOrder {
            project: &project,
            run_id,
            spec: spec_of(variant, case, title),
            limit: self.suite.timeout(),
        };
        let Some(run) = self.run(order, stop).await? else { return Ok(AttemptEnd::Stopped) };
        usage.add(&run.usage);
        let end = run.status.map(|status| status.as_str().to_lowercase());
        let reason = run.reason.clone().unwrap_or_default();
        let has_broken = match run.status {
            Some(PipelineStatus::Failed) | None => true,
            Some(PipelineStatus::Cancelled) => !run.is_late,
            Some(PipelineStatus::Completed | PipelineStatus::Escalated) => false,
        };
        if has_broken || (run.status == Some(PipelineStatus::Escalated) && run.is_infrastructure) {
            let reason = if reason.is_empty() { "the run has no recorded end".to_owned() } else { reason };
            return Ok(AttemptEnd::Infrastructure { reason, usage: *usage });
        }
        let outcome = RunOutcome {
            end: end.clone(),
            cost_usd: run.usage.cost_usd,
            tokens: run.usage.tokens(),
            duration_ms: run.duration_ms,
        };
        let (mut checks, mut judge_usage) = (Vec::new(), RunTotals::default());
        for check in &case.checks {
            match self.check(check, row, case, &project, &outcome, stop, &mut judge_usage).await {
                Ok(Some(result)) => checks.push(result),
                Ok(None) => return Ok(AttemptEnd::Stopped),
                Err(error) => {
                    usage.add(&judge_usage);
                    return Err(error);
                }
            }
        }
        usage.add(&judge_usage);
        let failed = checks.iter().find(|check| !check.pass);
        let reason = match (failed, run.is_late) {
            (Some(_), true) => Some(format!("time limit of {} s exceeded", self.suite.timeout_s)),
            (Some(check), false) if check.name == "end" && run.reason.is_some() => run.reason.clone(),
            (Some(check), false) => Some(format!("{}: {}", check.name, check.detail)),
            (None, _) => None,
        };
        let outcome = if failed.is_none() { TrialOutcome::Passed } else { TrialOutcome::Failed };
        let (run_usage, duration_ms) = (run.usage, run.duration_ms);
        Ok(AttemptEnd::Counted(TrialResult {
            outcome,
            reason,
            end,
            checks,
            usage: *usage,
            run_usage,
            judge_usage,
            duration_ms,
        }))
    }

    /// Returns the project of the trial. A workspace in which the run has started is kept.
    async fn project(&self, row: &TrialRow, run_id: &RunId, case: &Case) -> Result<Project, EvalError> {
        let place = self.dir.trial(row.number);
        if let Ok(project) = Project::open(&place, self.host.clone())
            && (has_run(&project, run_id) || self.backend().is_active(run_id))
        {
            return Ok(project);
        }
        let (dir, host, case) = (self.dir.clone(), self.host.clone(), case.clone());
        let (number, variant) = (row.number, row.variant.clone());
        let made = spawn_blocking(move || dir.make_trial(&host, number, &variant, &case));
        made.await.unwrap_or_else(|error| {
            Err(std::io::Error::other(error.to_string())).map_err(|error| EvalError::Project(error.into()))
        })
    }

    fn backend(&self) -> ActiveRuns {
        ActiveRuns(ChildProcess::new(self.host.clone(), self.dir.logs()))
    }

    /// Runs an order to its end. A run that is active is adopted, an interrupted one resumed, and one that has ended is not repeated.
    /// Returns `None` if the evaluation was stopped.
    async fn run(
        &self,
        order: RunOrder<'_>,
        stop: &CancellationToken,
    ) -> Result<Option<FinishedRun>, EvalError> {
        let backend = self.backend();
        let deadline = Instant::now() + order.limit;
        let mut is_late = false;
        for resumptions in 0.. {
            let is_active = backend.is_active(order.run_id);
            let has_started = has_run(order.project, order.run_id);
            if !is_active && has_started && recorded_end(order.project, order.run_id).is_some() {
                break;
            }
            let start = if has_started { RunStart::Resume { from: None } } else { RunStart::Fresh };
            let spec = order.spec.clone();
            let spec = if has_started { spec.for_resumption() } else { spec };
            let job = RunJob::builder(order.project)
                .with_start(start)
                .with_spec(spec)
                .with_run_id(order.run_id.clone())
                .with_active(is_active.then(|| order.run_id.clone()))
                .build()?;
            let cancel = Cancellation::from(stop.child_token());
            // The journal contains the events.
            let mut silent = |_: &Record, _: &RunView| {};
            let running = cliq_backends::run(&backend.0, &job, &mut silent, &cancel);
            tokio::pin!(running);
            let end: Result<Option<RunEnd>, BackendError> = tokio::select! {
                end = &mut running => end,
                () = tokio::time::sleep(deadline.saturating_duration_since(Instant::now())) => {
                    is_late = true;
                    cancel.cancel();
                    running.await
                }
            };
            match end {
                _ if stop.is_cancelled() => return Ok(None),
                Ok(Some(_)) => break,
                Ok(None) if is_late => break,
                Ok(None) => return Ok(None),
                // The orchestrator was killed, perhaps with an evaluation before this one.
                Err(BackendError::Ended(_)) if resumptions < MAX_RESUMPTIONS && !is_late => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.wait_for_exit(order.run_id).await;
        Ok(Some(finished(order.project, order.run_id, is_late)))
    }

    /// Waits until the process of a run is gone: after its last event it may still have a container to remove.
    async fn wait_for_exit(&self, run_id: &RunId) {
        let deadline = Instant::now() + EXIT_PATIENCE;
        let mut pause = Duration::from_millis(1);
        while self.backend().is_active(run_id) && Instant::now() < deadline {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(50));
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of an attempt, used here only")]
    async fn check(
        &self,
        check: &CheckSpec,
        row: &TrialRow,
        case: &Case,
        project: &Project,
        outcome: &RunOutcome,
        stop: &CancellationToken,
        judge_usage: &mut RunTotals,
    ) -> Result<Option<CheckResult>, EvalError> {
        let (name, workspace) = (check.name.as_str(), project.dir().workspace());
        Ok(Some(match &check.kind {
            CheckKind::End(end) => check_end(name, *end, outcome),
            CheckKind::File { path, rule } => check_file(name, workspace, path, rule),
            CheckKind::Expr(source) => check_expression(name, source, project.dir(), outcome),
            CheckKind::Run { command, timeout_s } => {
                let log = self.dir.logs().join(format!("{}.{name}.check.log", row.number));
                let limit = Duration::from_secs(*timeout_s);
                tokio::select! {
                    () = stop.cancelled() => return Ok(None),
                    result = check_command(name, command, workspace, limit, &log) => result?,
                }
            }
            CheckKind::Judge(judge) => {
                let Some(result) = self.judge(name, judge, row, case, stop, judge_usage).await? else {
                    return Ok(None);
                };
                result
            }
        }))
    }

    async fn judge(
        &self,
        name: &str,
        judge: &JudgeSpec,
        row: &TrialRow,
        case: &Case,
        stop: &CancellationToken,
        usage: &mut RunTotals,
    ) -> Result<Option<CheckResult>, EvalError> {
        let (dir, host, case, spec) = (self.dir.clone(), self.host.clone(), case.clone(), judge.clone());
        let (number, check) = (row.number, name.to_owned());
        let made = spawn_blocking(move || dir.make_judge(&host, number, &check, &spec, &case));
        let project = made
            .await
            .map_err(|error| std::io::Error::other(error.to_string()))
            .map_err(cliq_project::ProjectError::from)??;
        let run_id = cliq_fs::new_run_id();
        let title = Some(format!("{}: judge {name} of trial {}", self.suite.name, row.number));
        let spec = RunSpec { agent: judge.agent.clone(), title, ..RunSpec::default() };
        let order = RunOrder { project: &project, run_id: &run_id, spec, limit: JUDGE_LIMIT };
        let Some(run) = self.run(order, stop).await? else { return Ok(None) };
        usage.add(&run.usage);
        let reason = run.reason.unwrap_or_default();
        match run.status {
            Some(PipelineStatus::Completed) => {
                Ok(Some(CheckResult { name: name.to_owned(), pass: true, detail: reason }))
            }
            Some(PipelineStatus::Escalated) if !run.is_infrastructure && has_verdict(&project) => {
                Ok(Some(CheckResult { name: name.to_owned(), pass: false, detail: reason }))
            }
            Some(PipelineStatus::Escalated | PipelineStatus::Failed | PipelineStatus::Cancelled) | None => {
                let message = format!("judge `{name}`: {reason}");
                Err(EvalError::Backend(BackendError::NotStarted { message, hint: None }))
            }
        }
    }
}

/// Runs of an evaluation that are active.
struct ActiveRuns(ChildProcess);

impl ActiveRuns {
    fn is_active(&self, run_id: &RunId) -> bool {
        cliq_backends::internals::is_alive(&self.0.log_of(run_id))
    }
}

fn spec_of(variant: &Variant, case: &Case, title: String) -> RunSpec {
    RunSpec {
        agent: variant.agent.clone(),
        title: Some(title),
        inputs: case.inputs.clone().into_iter().collect(),
        ..RunSpec::default()
    }
}

fn journal(project: &Project) -> Option<Journal> {
    Journal::read(&project.dir().journal()).ok().flatten()
}

/// Whether the journal of a project is of this run.
fn has_run(project: &Project, run_id: &RunId) -> bool {
    journal(project).is_some_and(|journal| journal.run_id() == Some(run_id))
}

fn recorded_end(project: &Project, run_id: &RunId) -> Option<PipelineStatus> {
    let journal = journal(project).filter(|journal| journal.run_id() == Some(run_id))?;
    RunView::of(&journal).pipeline_status()
}

/// Whether a gate of the run has given a verdict.
fn has_verdict(project: &Project) -> bool {
    let records = journal(project).map(|journal| journal.records).unwrap_or_default();
    records.iter().any(|record| matches!(record.event, RunEvent::Verdict { .. }))
}

fn finished(project: &Project, run_id: &RunId, is_late: bool) -> FinishedRun {
    let journal = journal(project).filter(|journal| journal.run_id() == Some(run_id));
    let view = journal.as_ref().map(RunView::of);
    let records = journal.map(|journal| journal.records).unwrap_or_default();
    let times = || records.iter().filter_map(|record| record.ts.time());
    let duration = times().max().zip(times().min()).map_or(Duration::ZERO, |(last, first)| last.since(first));
    // The verdict of a judge has its reason; the end of the run names the phase.
    let reason = records.iter().rev().find_map(|record| match &record.event {
        RunEvent::RunFinished { reason, .. } => reason.clone(),
        RunEvent::Verdict { verdict, .. } => verdict.reason.clone(),
        RunEvent::PhaseEscalated { reason, .. } => Some(reason.clone()),
        _ => None,
    });
    // The reason of a verdict is about the work: a test may well print "connection refused".
    let is_infrastructure = records
        .iter()
        .rev()
        .find_map(|record| match &record.event {
            RunEvent::WorkFailed { reason, .. } => Some(is_infrastructure(reason)),
            RunEvent::Verdict { .. } => Some(false),
            _ => None,
        })
        .unwrap_or(false);
    let usage = view.as_ref().and_then(RunView::usage).map_or_else(RunTotals::default, |usage| RunTotals {
        tokens_in: usage.tokens_in,
        tokens_out: usage.tokens_out,
        cost_usd: usage.cost_usd,
    });
    FinishedRun {
        status: view.and_then(|view| view.pipeline_status()),
        reason,
        usage,
        duration_ms: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
        is_late,
        is_infrastructure,
    }
}
