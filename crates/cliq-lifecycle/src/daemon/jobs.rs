//! Reconciliation of agents: compares those that run with those that the plans require.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::{CliqDir, write_atomic};
use cliq_gateway::PlanName;
use cliq_model::StoreError;
use cliq_orchestrator::internals::spawn_blocking;
use cliq_orchestrator::{Journal, Run, RunEvent, RunPlan, RunView};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::job_outcome::{JobOutcome, end_of, finished, output, used};
use super::remote_agents::{ask_to_end, follow};
use super::{AgentRun, Assignment, Daemon, DaemonEvent, PlanAgents};
use crate::brief::{brief, draft_file};
use crate::layout::{assignment_file, job_dir, plan_dir, read_plan_file};
use crate::machine::{Context, Event};
use crate::model::{Config, Job, Plan, PlanState, Purpose, WorkId};
use crate::service::{StepError, read};
use crate::worktrees::{MergeError, Worktrees};

/// Time that an agent may continue after its part is done.
const GRACE: Duration = Duration::from_secs(10);
/// Grace period for processes that a dead daemon left.
const ORPHANS: Duration = Duration::from_secs(2);

/// A job: project, plan, number.
pub(super) type Key = (String, String, u64);

/// A job that runs.
pub(super) struct Running {
    stop: CancellationToken,
    /// Since when its part is done.
    settled: Option<Instant>,
    what: String,
    job: Job,
}

/// A job that has ended.
pub(super) struct EndedJob {
    key: Key,
    outcome: JobOutcome,
}

impl Daemon {
    /// One at a time: where a step fails, the others are still there.
    pub(super) fn next_ended(&mut self, project: &str) -> Option<EndedJob> {
        let at = self.ended.iter().position(|ended| ended.key.0 == project)?;
        Some(self.ended.remove(at))
    }

    /// Ends agents that a dead daemon left running: their results would not be processed. One that works elsewhere and is still wanted goes on: it is
    /// followed again.
    pub(super) async fn end_orphans(&self, project: &Utf8Path) -> Result<(), StoreError> {
        let rows = self.plans.store().plans(Some(project.as_str())).await?;
        let of_plan = |row| read(row).map(|plan| plan.jobs).unwrap_or_default();
        let wanted: HashSet<Utf8PathBuf> = rows
            .iter()
            .flat_map(|row| of_plan(row).into_iter().map(|job| (job, row.name.as_str())))
            .filter(|(job, _)| !job.settled)
            .map(|(job, name)| job_dir(project, name, job.id))
            .collect();
        let below = |dir: Utf8PathBuf| {
            let entries = dir.read_dir_utf8().into_iter().flatten().filter_map(Result::ok);
            entries.map(camino::Utf8DirEntry::into_path).collect::<Vec<_>>()
        };
        let plans = below(project.join(CliqDir::NAME).join("plans"));
        for job in plans.into_iter().flat_map(|plan| below(plan.join("jobs"))) {
            let Ok(Some(journal)) = Journal::read(&job.join("journal.jsonl")) else { continue };
            let Ok(dir) = CliqDir::at(&job, project) else { continue };
            let (None, Some(run_id)) = (end_of(&journal), journal.run_id()) else { continue };
            let is_remote = assignment_file(&job).exists();
            if !is_remote {
                cliq_orchestrator::internals::end_dead_run(&dir, run_id, ORPHANS);
            } else if !wanted.contains(&job) {
                ask_to_end(&dir);
            }
        }
        Ok(())
    }

    pub(super) async fn ended_one(
        &mut self,
        project: &str,
        config: Config,
        ended: EndedJob,
    ) -> Result<(), StepError> {
        let (_, plan, job) = ended.key.clone();
        let running = self.running.remove(&ended.key);
        let of = running.as_ref().and_then(|running| Some((running.job.purpose, running.job.role?)));
        let what = running.map_or_else(|| format!("job {job}"), |running| running.what);
        let (event, why) = match ended.outcome {
            JobOutcome::Ended { text, success, why, usage } => {
                // Why an agent failed is what the next one, or a person, has to know.
                let text = match &why {
                    Some(why) => format!("{}\n\n{why}\n", text.trim_end()),
                    None => text,
                };
                (Event::JobEnded { job, text, success, usage }, why)
            }
            JobOutcome::NotStarted(why) => (Event::JobNotStarted { job, why: why.clone() }, Some(why)),
            JobOutcome::Stopped(usage) => {
                let still_wanted = match self.plans.load(project, &plan).await {
                    Ok((plan, _)) => plan.jobs.iter().any(|wanted| wanted.id == job),
                    Err(_) => return Ok(()),
                };
                // A job that starts anew counts all it has used once it ends.
                let Some((purpose, role, usage)) = of.zip(usage).map(|((p, r), usage)| (p, r, usage)) else {
                    return Ok(());
                };
                if still_wanted {
                    return Ok(());
                }
                (Event::StoppedJobUsed { purpose, role, usage }, None)
            }
        };
        self.report_event(DaemonEvent::Ended { plan: plan.clone(), what: what.clone(), why });
        let Ok(name) = PlanName::parse(&plan) else { return Ok(()) };
        let file = read_plan_file(Utf8Path::new(project), &plan);
        let context = Context { config, file: file.as_ref().map_err(Clone::clone) };
        match self.plans.step(project, &name, &event, &context, None).await {
            // The plan no longer has the job: it was cancelled, for example.
            Err(StepError::Refused(_) | StepError::NoPlan { .. }) => Ok(()),
            Err(error) => Err(error),
            Ok(effects) => {
                for note in effects.notes.iter().filter(|note| note.kind == "unknown_output") {
                    let (plan, what) = (plan.clone(), what.clone());
                    let strike = note.detail["strike"].as_u64().unwrap_or(1);
                    self.report_event(DaemonEvent::UnknownOutput { plan, what, strike });
                }
                Ok(())
            }
        }
    }

    /// Starts what is wanted and does not run, and ends what runs and is not wanted.
    pub(super) async fn reconcile(&mut self, project: &Utf8Path) -> Result<(), StepError> {
        for row in self.plans.store().plans(Some(project.as_str())).await? {
            let plan = match read(&row) {
                Ok(plan) => plan,
                Err(error) => {
                    self.report_error(error.to_string());
                    continue;
                }
            };
            let is_wanted = |id: u64| plan.jobs.iter().find(|job| job.id == id);
            let now = Instant::now();
            for ((of, name, id), running) in &mut self.running {
                if of != project.as_str() || *name != row.name {
                    continue;
                }
                match is_wanted(*id) {
                    None => running.stop.cancel(),
                    Some(job) if job.settled && now - *running.settled.get_or_insert(now) > GRACE => {
                        running.stop.cancel()
                    }
                    Some(_) => {}
                }
            }
            for job in &plan.jobs {
                let key = (project.to_string(), row.name.clone(), job.id);
                if !self.running.contains_key(&key) {
                    self.start(project, &row.name, &plan, job, key);
                }
            }
        }
        Ok(())
    }

    fn start(&mut self, project: &Utf8Path, name: &str, plan: &Plan, job: &Job, key: Key) {
        let what = describe(job);
        let ends = self.ends.0.clone();
        if job.settled {
            // Its work was done before the daemon died. It is not repeated.
            let outcome = JobOutcome::Ended { text: String::new(), success: true, why: None, usage: None };
            let _ = ends.send(EndedJob { key: key.clone(), outcome });
            self.running.insert(
                key,
                Running { stop: CancellationToken::new(), settled: None, what, job: job.clone() },
            );
            return;
        }
        let worktrees = Worktrees::new(project, name);
        if let Purpose::Merge { wave } = job.purpose {
            // Branches are merged once no agent works in the worktrees.
            if self.running.keys().any(|(p, n, _)| *p == key.0 && *n == key.1) {
                return;
            }
            let tasks = plan.tasks().filter_map(|(id, _)| Some((id, plan.task(id)?.title)));
            let tasks: Vec<(WorkId, String)> = tasks.collect();
            self.report_event(DaemonEvent::Started { plan: name.to_owned(), what: what.clone() });
            let of = key.clone();
            spawn_blocking(move || {
                let outcome = match worktrees.merge(&tasks) {
                    Ok(text) => JobOutcome::Ended { text, success: true, why: None, usage: None },
                    Err(MergeError::Conflict(text)) => JobOutcome::Ended {
                        text,
                        success: false,
                        why: Some(format!("wave {wave} conflicts")),
                        usage: None,
                    },
                    Err(MergeError::Failed(text)) => JobOutcome::Ended {
                        text,
                        success: false,
                        why: Some(format!("the branches of wave {wave} cannot be merged")),
                        usage: None,
                    },
                };
                let _ = ends.send(EndedJob { key: of, outcome });
            });
            self.running.insert(
                key,
                Running { stop: CancellationToken::new(), settled: None, what, job: job.clone() },
            );
            return;
        }
        let stop = CancellationToken::new();
        let workshop = JobDirectory {
            project: project.to_owned(),
            name: name.to_owned(),
            dir: job_dir(project, name, job.id),
            branches: plan.file.branches.then_some(worktrees),
            text: brief(plan, name, &plan_dir(project, name).join("plan.md"), job),
            job: job.clone(),
            state: plan.state,
        };
        self.report_event(DaemonEvent::Started { plan: name.to_owned(), what: what.clone() });
        let span = tracing::info_span!(
            parent: None, "plan_job", otel.name = format!("{name}: {what}"), project = project.as_str(),
            plan = name, job = job.id, what, outcome = tracing::field::Empty,
        );
        let (agents, token, of) = (std::sync::Arc::clone(&self.agents), stop.clone(), key.clone());
        let outcome_of = span.clone();
        let job_run = async move {
            let outcome = match workshop.prepare().await {
                Err(why) => JobOutcome::NotStarted(why),
                Ok(PreparedJob::Over(outcome)) => outcome,
                Ok(PreparedJob::Assignment(assignment)) => match agents.prepare(&assignment) {
                    Err(why) => JobOutcome::NotStarted(why),
                    Ok(AgentRun::Here(plan)) => {
                        let _ = fs::remove_file(assignment_file(&assignment.dir));
                        work(*plan, &assignment, agents.as_ref(), token).await
                    }
                    Ok(AgentRun::Elsewhere(command)) => follow(*command, &assignment, token).await,
                },
            };
            outcome_of.record("outcome", outcome.name());
            send(&ends, of, outcome);
        };
        tokio::spawn(job_run.instrument(span));
        self.running.insert(key, Running { stop, settled: None, what, job: job.clone() });
    }

    /// Ends all agents. The plans still require them.
    pub(super) async fn stop_all(&mut self) {
        self.running.values().for_each(|running| running.stop.cancel());
        for ended in self.ended.drain(..) {
            self.running.remove(&ended.key);
        }
        while !self.running.is_empty() {
            let Some(ended) = self.ends.1.recv().await else { return };
            self.running.remove(&ended.key);
        }
    }
}

fn send(ends: &mpsc::UnboundedSender<EndedJob>, key: Key, outcome: JobOutcome) {
    // Where the daemon has ended, the result is not needed.
    let _ = ends.send(EndedJob { key, outcome });
}

fn describe(job: &Job) -> String {
    let role = job.role.map_or("merge", crate::role::Role::as_str);
    match job.purpose {
        Purpose::Work(WorkId::Plan) | Purpose::Infrastructure => role.to_owned(),
        Purpose::Work(id) | Purpose::Advise(id) => format!("{role} for {id}"),
        Purpose::Merge { wave } => format!("merge of wave {wave}"),
    }
}

/// Working directory and metadata of a job.
struct JobDirectory {
    project: Utf8PathBuf,
    name: String,
    dir: Utf8PathBuf,
    branches: Option<Worktrees>,
    text: String,
    job: Job,
    state: PlanState,
}

enum PreparedJob {
    Assignment(Assignment),
    Over(JobOutcome),
}

impl JobDirectory {
    /// Makes everything ready. A job that came to its end before the daemon died is not done again.
    async fn prepare(self) -> Result<PreparedJob, String> {
        spawn_blocking(move || self.prepare_now()).await.map_err(|error| error.to_string())?
    }

    fn prepare_now(self) -> Result<PreparedJob, String> {
        let role = self.job.role.ok_or("the job has no role")?;
        let work = match self.job.purpose {
            Purpose::Work(id) | Purpose::Advise(id) => id,
            Purpose::Infrastructure | Purpose::Merge { .. } => WorkId::Plan,
        };
        let workspace = match &self.branches {
            Some(worktrees) if self.state != PlanState::Planning => {
                if work == WorkId::Plan {
                    worktrees.commit_plan(&format!("Before {role}"))?;
                }
                worktrees.ensure(work)?
            }
            _ => self.project.clone(),
        };
        let failed = |error: &dyn std::fmt::Display| error.to_string();
        fs::create_dir_all(&self.dir).map_err(|error| format!("cannot create {}: {error}", self.dir))?;
        let dir = CliqDir::at(&self.dir, &workspace).map_err(|error| failed(&error))?;
        if let Some(outcome) = finished(&dir, role.as_str()) {
            return Ok(PreparedJob::Over(outcome));
        }
        dir.ensure_layout().map_err(|error| failed(&error))?;
        write_atomic(&dir.requirement(), self.text.as_bytes()).map_err(|error| failed(&error))?;
        let plan_file = plan_dir(&self.project, &self.name).join("plan.md");
        let draft = match work {
            WorkId::Draft { planner } => Some(draft_file(&plan_file, planner)),
            WorkId::Plan | WorkId::Task { .. } => None,
        };
        if let Some(drafts) = draft.as_ref().and_then(|draft| draft.parent()) {
            fs::create_dir_all(drafts).map_err(|error| format!("cannot create {drafts}: {error}"))?;
        }
        let mut env = BTreeMap::from([
            ("CLIQ_PROJECT".to_owned(), self.project.to_string()),
            ("CLIQ_PLAN".to_owned(), self.name.clone()),
            ("CLIQ_PLAN_FILE".to_owned(), plan_file.to_string()),
            ("CLIQ_ROLE".to_owned(), role.to_string()),
            ("CLIQ_TASK".to_owned(), work.to_string()),
            ("CLIQ_BRIEF".to_owned(), dir.requirement().to_string()),
        ]);
        env.extend(draft.map(|draft| ("CLIQ_DRAFT_FILE".to_owned(), draft.to_string())));
        Ok(PreparedJob::Assignment(Assignment {
            project: self.project,
            plan: self.name,
            role,
            dir: dir.root().to_owned(),
            workspace,
            env,
        }))
    }
}

async fn work(
    plan: RunPlan,
    assignment: &Assignment,
    agents: &dyn PlanAgents,
    stop: CancellationToken,
) -> JobOutcome {
    let dir = plan.dir.clone();
    let mut companion = agents.companion(&plan);
    let mut run = match Run::start(plan, &|name: &str| agents.has_env(name)) {
        Ok(run) => run,
        Err(error) => return JobOutcome::NotStarted(error.to_string()),
    };
    let mut stopped = false;
    loop {
        tokio::select! {
            record = run.next() => match record {
                None => break,
                Some(record) if matches!(record.event, RunEvent::RunStarted { .. }) => {
                    companion.iter_mut().for_each(|companion| companion.begin());
                }
                Some(_) => {}
            },
            () = stop.cancelled(), if !stopped => {
                stopped = true;
                run.cancel();
            }
        }
    }
    let view: RunView = run.finish().await;
    if let Some(companion) = companion {
        let _ = spawn_blocking(move || companion.end()).await;
    }
    let success = view.completed();
    if stopped && !success {
        return JobOutcome::Stopped(used(&dir));
    }
    let why = view.reason.clone().filter(|_| !success);
    JobOutcome::Ended { text: output(&dir, assignment.role.as_str()), success, why, usage: used(&dir) }
}
