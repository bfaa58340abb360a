//! The agent of team phases: runs the whole team of `.cliq/teams/<phase>/` and hands its result on.

use std::fmt::Write;
use std::thread::JoinHandle;
use std::time::Duration;

use camino::Utf8Path;
use cliq_fs::{CliqDir, ProjectLock, SteeringInbox, read_handoff, read_limited, write_atomic};
use cliq_orchestrator::{Journal, Parent, PipelineStatus, Record, RunEvent, RunPlan, RunView};
use cliq_protocol::{Budget, RunId, TRACE_VARIABLE, WaitingReview};
use cliq_sdk::{
    Agent, Completion, Handoff, Object, PhaseName, Reporter, SteeringMessage, SteeringStop, TeamContext,
    Usage,
};
use serde_json::{Value, json};

use crate::run_plan::max_file_bytes;
use crate::run_sandbox::RunAccess;
use crate::{Host, Project, ProjectError, RunStart};

/// Executes the plan of a team phase's team, and calls the function with each event. Programs make it from
/// [`crate::execute`], with a runtime and the signals that cancel the run.
pub type Execute =
    dyn Fn(RunPlan, &RunStart, &mut dyn FnMut(&Record, &RunView)) -> Result<RunView, ProjectError>;

/// The agent of team phases. `agent` is the agent for phases that name none, if not the one in the settings.
pub fn team_phase_agent(host: Host, agent: Option<String>, execute: Box<Execute>) -> Agent {
    Agent::new().team(move |ctx| Ok(run_team(ctx, &host, agent.as_deref(), &*execute)?))
}

fn run_team(
    ctx: &TeamContext,
    host: &Host,
    agent: Option<&str>,
    execute: &Execute,
) -> Result<Completion, ProjectError> {
    let outer = Project::of(CliqDir::at(ctx.cliq_dir(), ctx.workspace())?, host.clone());
    copy_team_of_item(outer.dir(), &ctx.phase().name)?;
    let inner = outer.team_phase(&ctx.phase().name);
    let settings = outer.settings()?;
    let dir = inner.dir().clone();
    let workflow = inner.workflow()?;
    write_atomic(&dir.requirement(), requirement(ctx)?.as_bytes())?;
    let mut plan = inner.base_plan(workflow, &settings);
    plan.inputs = ctx.team().map(|team| team.inputs.clone()).unwrap_or_default();
    let path = host.environment.get("CLIQ_RUN_PATH").unwrap_or_default();
    plan.parent = Some(Parent::new(ctx.phase().name.clone(), path));
    let caller = host.environment.get(TRACE_VARIABLE).and_then(|context| context.parse().ok());
    plan.trace = inner.trace_source(&settings, caller);
    if let Some(agent) = agent {
        inner.set_default_agent(&mut plan, agent);
    }
    inner.confine(&mut plan, &settings, RunAccess::default())?;
    plan.adopts_orphans = cliq_orchestrator::adopt_orphans();
    let results = result_channels(&plan);
    let start = start(ctx, &dir, &plan)?;
    // The team of a resumed run reports what it uses from now on: the rest was reported before.
    let earlier = match &start {
        RunStart::Resume { .. } => inner.last_run(&plan.workflow)?.and_then(|(_, view)| view.usage()),
        RunStart::Fresh | RunStart::Changed => None,
    };
    let earlier = earlier.unwrap_or_default().as_usage();
    plan.budget = within(plan.budget, ctx.team().map(|team| team.budget).unwrap_or_default(), &earlier);
    let reporter = ctx.reporter().clone();
    let run_id = match &start {
        RunStart::Resume { .. } => {
            Journal::read(&dir.journal())?.and_then(|journal| journal.run_id().cloned())
        }
        RunStart::Fresh | RunStart::Changed => None,
    };
    let run_id = run_id.unwrap_or_else(cliq_fs::new_run_id);
    plan.run_id = Some(run_id.clone());
    let forwarder = SteeringForwarder::start(ctx, &dir, &run_id)?;
    let mut reviews = InnerReviews::default();
    let view = execute(plan, &start, &mut |record, view| {
        if let Some(review) = reviews.change(&record.event) {
            // As for progress: the end of the phase would fail too.
            let _ = reporter.review(record.event.describe(), &review);
        }
        report(&reporter, record);
        if matches!(record.event, RunEvent::UsageReported { .. })
            && let Some(usage) = view.usage()
        {
            // As for progress: the end of the phase would fail too.
            let _ = reporter.usage(&since(usage.as_usage(), &earlier));
        }
    });
    forwarder.stop();
    let view = view?;
    if view.waiting.is_some() {
        return Err(ProjectError::TeamParked);
    }
    if view.pipeline_status() != Some(PipelineStatus::Completed) {
        return Err(ProjectError::TeamEnded {
            team: view.team.clone(),
            status: view.status.clone().unwrap_or_else(|| "FAILED".to_owned()),
            reason: view.reason.clone().unwrap_or_else(|| "no reason is known".to_owned()),
        });
    }
    ctx.send(&result(&view, &dir, &results, max_file_bytes(&settings))?)?;
    Ok(ctx.complete(json!({"team": view.team, "run_id": view.run_id, "status": view.status})))
}

/// Copies the assembled team of a phase for one of its items, which runs it in a directory of its own.
fn copy_team_of_item(dir: &CliqDir, phase: &PhaseName) -> Result<(), ProjectError> {
    let Ok(whole) = PhaseName::parse(phase.whole()) else { return Ok(()) };
    let (from, to) = (dir.team_of(&whole), dir.team_of(phase));
    if phase.item().is_none() || to.team_file().exists() {
        return Ok(());
    }
    // The team's own file comes last: a copy that was interrupted is made anew.
    let copied = copy_tree(from.root(), to.root(), &from.team_file());
    let copied = copied.and_then(|()| std::fs::copy(from.team_file(), to.team_file()).map(drop));
    copied.map_err(|source| ProjectError::CopyTeam { path: to.root().to_owned(), source })
}

fn copy_tree(from: &Utf8Path, to: &Utf8Path, except: &Utf8Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in from.read_dir_utf8()? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_tree(entry.path(), &target, except)?;
        } else if entry.path() != except {
            std::fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}

/// Reviews that the run of a team waits for, as the phase reports them.
#[derive(Default)]
struct InnerReviews {
    /// Open reviews, by phase.
    open: Vec<(PhaseName, WaitingReview)>,
    /// Review that was reported last.
    last: Option<WaitingReview>,
}

impl InnerReviews {
    /// Returns what is to be reported after an event: a review that is waited for, with the time up to which the whole run waits; or one that
    /// is over, without reviewers, if there is no other.
    #[deny(clippy::wildcard_enum_match_arm)]
    fn change(&mut self, event: &RunEvent) -> Option<WaitingReview> {
        let changed = match event {
            RunEvent::ReviewWaits { phase, review, .. } => {
                self.open.retain(|(of, _)| of != phase);
                if !review.reviewers.is_empty() {
                    self.open.push((phase.clone(), review.clone()));
                }
                review.clone()
            }
            RunEvent::AgentCompleted { phase, .. } | RunEvent::WorkFailed { phase, .. } => {
                let place = self.open.iter().position(|(of, _)| of == phase)?;
                let (_, over) = self.open.remove(place);
                match self.open.last() {
                    Some((_, review)) => review.clone(),
                    None => WaitingReview { reviewers: Vec::new(), ..over },
                }
            }
            RunEvent::RunIdle { on, until } => {
                let last = self.last.clone()?;
                let is_named = |review: &WaitingReview| on.contains(&review.id);
                let others = self.open.iter().map(|(_, review)| review).find(|review| is_named(review));
                let review = Some(last.clone()).filter(is_named).or(others.cloned()).unwrap_or(last);
                let others = on.iter().filter(|id| **id != review.id).cloned().collect();
                WaitingReview { due: until.map(Into::into), others, ..review }
            }
            RunEvent::RunStarted { .. }
            | RunEvent::RunInterrupted
            | RunEvent::RunResumed { .. }
            | RunEvent::PhaseStarted { .. }
            | RunEvent::AgentStarted { .. }
            | RunEvent::CommandStarted { .. }
            | RunEvent::CommandFinished { .. }
            | RunEvent::CommandsFinished { .. }
            | RunEvent::Progress { .. }
            | RunEvent::UsageReported { .. }
            | RunEvent::ReviewIdle { .. }
            | RunEvent::PhaseSandboxed { .. }
            | RunEvent::AccessRefused { .. }
            | RunEvent::RunParked { .. }
            | RunEvent::SteeringReceived { .. }
            | RunEvent::SteeringDelivered { .. }
            | RunEvent::NotifyRequested { .. }
            | RunEvent::PhaseDecided { .. }
            | RunEvent::PhaseSkipped { .. }
            | RunEvent::ItemsStarted { .. }
            | RunEvent::ItemFailed { .. }
            | RunEvent::RetryScheduled { .. }
            | RunEvent::MergeConflict { .. }
            | RunEvent::ItemsMerged { .. }
            | RunEvent::RetryDelayed { .. }
            | RunEvent::RetryDue { .. }
            | RunEvent::Verdict { .. }
            | RunEvent::VerdictRejected { .. }
            | RunEvent::PhaseCompleted { .. }
            | RunEvent::PhaseEscalated { .. }
            | RunEvent::PhaseReset { .. }
            | RunEvent::PhaseStopped { .. }
            | RunEvent::Draining { .. }
            | RunEvent::WorkspaceChanged { .. }
            | RunEvent::Warning { .. }
            | RunEvent::CompletionContradicted { .. }
            | RunEvent::CancelRequested { .. }
            | RunEvent::OrchestratorFailed { .. }
            | RunEvent::RunFinished { .. } => return None,
            _ => return None,
        };
        self.last = Some(WaitingReview { due: None, others: Vec::new(), ..changed.clone() });
        Some(changed)
    }
}

/// Forwards the steering messages of the phase to the run of its team (docs/steering.md). The inner run receives each with its id: those
/// that an earlier attempt forwarded have no effect.
struct SteeringForwarder {
    stop: SteeringStop,
    thread: JoinHandle<()>,
}

impl SteeringForwarder {
    /// Forwards the messages of the dispatch message at once, and later ones from a thread.
    fn start(ctx: &TeamContext, dir: &CliqDir, run_id: &RunId) -> Result<Self, ProjectError> {
        // The inner run has not started: it records the messages of its inbox first.
        for message in &ctx.dispatch().steering {
            store(dir, run_id, message)?;
        }
        let mut steering = ctx.steering().live_only();
        let stop = steering.stop_handle();
        let (dir, run_id, reporter) = (dir.clone(), run_id.clone(), ctx.reporter().clone());
        let thread = std::thread::spawn(move || {
            while let Ok(Some(message)) = steering.next_within(Duration::MAX) {
                if let Err(error) = store(&dir, &run_id, &message) {
                    let _ = reporter.progress(format!("cannot forward a steering message: {error}"));
                }
            }
        });
        Ok(Self { stop, thread })
    }

    fn stop(self) {
        self.stop.stop();
        // A thread that panicked has nothing more to forward.
        let _ = self.thread.join();
    }
}

/// Stores a message in the inbox of the team's run, for all its phases. The orchestrator of this process reads it there.
fn store(dir: &CliqDir, run_id: &RunId, message: &SteeringMessage) -> Result<(), ProjectError> {
    let mut inbox = SteeringInbox::open(dir, run_id)?;
    if !inbox.messages().iter().any(|known| known.id == message.id) {
        inbox.append(SteeringMessage { phase: None, ..message.clone() })?;
    }
    Ok(())
}

/// The budget of the team: its own, within what the phase around it may still use after `earlier`.
fn within(own: Budget, around: Budget, earlier: &Usage) -> Budget {
    let tokens = around.tokens.map(|tokens| tokens.saturating_add(earlier.tokens()));
    let usd = around.usd.map(|usd| usd + earlier.cost_usd.unwrap_or(0.0));
    let least = match (own.usd, usd) {
        (Some(own), Some(around)) => Some(own.min(around)),
        (own, around) => own.or(around),
    };
    Budget { tokens: own.tokens.into_iter().chain(tokens).min(), usd: least }
}

/// The part of a usage that came after `earlier`.
fn since(total: Usage, earlier: &Usage) -> Usage {
    Usage {
        tokens_in: total.tokens_in.saturating_sub(earlier.tokens_in),
        tokens_out: total.tokens_out.saturating_sub(earlier.tokens_out),
        tokens_cached: total
            .tokens_cached
            .map(|cached| cached.saturating_sub(earlier.tokens_cached.unwrap_or(0))),
        tokens_reasoning: total
            .tokens_reasoning
            .map(|reasoning| reasoning.saturating_sub(earlier.tokens_reasoning.unwrap_or(0))),
        cost_usd: total.cost_usd.map(|cost| (cost - earlier.cost_usd.unwrap_or(0.0)).max(0.0)),
        ..total
    }
}

/// The requirement of the team: the phase's role, if it has one, the requirement around it, and what was handed over.
fn requirement(ctx: &TeamContext) -> Result<String, ProjectError> {
    let parts = [ctx.role()?, ctx.requirement()?];
    let parts: Vec<String> = parts.into_iter().flatten().map(|part| part.trim().to_owned()).collect();
    let mut text = parts.join("\n\n");
    for received in ctx.incoming()? {
        let Some(envelope) = received.envelope else { continue };
        let _ = write!(text, "\n\n## From {}\n", received.from);
        if let Some(said) = &envelope.text {
            let _ = write!(text, "\n{}\n", said.trim());
        }
        if let Some(data) = envelope.data().filter(|data| !data.is_empty()) {
            let _ = write!(text, "\n```json\n{:#}\n```\n", Value::Object(data));
        }
    }
    Ok(text)
}

/// A team that was interrupted within the same outer run is resumed; any other starts fresh.
fn start(ctx: &TeamContext, dir: &CliqDir, plan: &RunPlan) -> Result<RunStart, ProjectError> {
    let file = dir.root().join("for-run");
    let same_run =
        read_limited(&file, 4096).is_ok_and(|run| run.trim_ascii() == ctx.run_id().as_str().as_bytes());
    // The orchestrator of an interrupted attempt may still hold the lock for a moment.
    ProjectLock::check(dir)?;
    let journal = Journal::read(&dir.journal())?;
    let unfinished = journal.is_some_and(|journal| !journal.completed() && journal.fits(plan));
    if same_run && unfinished && ctx.phase().routed_by.is_none() {
        return Ok(RunStart::Resume { from: None });
    }
    write_atomic(&file, ctx.run_id().as_str().as_bytes())?;
    Ok(RunStart::Fresh)
}

/// The channels in which the team's last phases hand over its result.
fn result_channels(plan: &RunPlan) -> Vec<(PhaseName, PhaseName)> {
    let phases = plan.workflow.phases().map(|(_, phase)| phase);
    phases.filter_map(|phase| Some((phase.name.clone(), plan.result_channel(phase)?))).collect()
}

/// Combines the handoffs of the last phases. If there is only one, its data becomes the data of the whole.
fn result(
    view: &RunView,
    dir: &CliqDir,
    channels: &[(PhaseName, PhaseName)],
    limit: u64,
) -> Result<Handoff, ProjectError> {
    let (mut results, mut texts) = (Object::new(), Vec::new());
    for (phase, to) in channels {
        let Some(envelope) = read_handoff(&dir.channel(phase, to), phase, limit)? else { continue };
        let text = envelope.text.clone().unwrap_or_default();
        texts.push(if channels.len() == 1 { text } else { format!("## {phase}\n\n{}", text.trim()) });
        results.insert(phase.to_string(), Value::Object(envelope.data().unwrap_or_default()));
    }
    let mut data = match results.values().next() {
        Some(Value::Object(only)) if results.len() == 1 => only.clone(),
        _ => Object::new(),
    };
    data.insert("team".to_owned(), json!(view.team));
    data.insert("status".to_owned(), json!(view.status));
    data.insert("results".to_owned(), Value::Object(results));
    Ok(Handoff::text(texts.join("\n\n")).with_data(Value::Object(data)))
}

/// Reports the team's progress as that of the phase.
fn report(reporter: &Reporter, record: &Record) {
    let reported = matches!(
        record.event,
        RunEvent::RunResumed { .. }
            | RunEvent::PhaseStarted { .. }
            | RunEvent::PhaseCompleted { .. }
            | RunEvent::PhaseEscalated { .. }
            | RunEvent::Verdict { .. }
            | RunEvent::Progress { .. }
            | RunEvent::Warning { .. }
            | RunEvent::CompletionContradicted { .. }
    );
    if reported {
        // Where the channel cannot be written, the end of the phase fails too, and says so.
        let _ = reporter.progress(record.event.describe());
    }
}
