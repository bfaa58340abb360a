//! A turn: a prompt that starts, continues or joins a run, and follows it to its end.

use std::time::Duration;

use cliq_acp::agent::{AgentEvent, CallId, Gate, GateAnswer, Prompt, TurnEnd, TurnId};
use cliq_acp::schema::{SessionInfoUpdate, SessionUpdate};
use cliq_orchestrator::internals::spawn_blocking;
use cliq_project::RunState;
use serde_json::Value;
use tokio::sync::mpsc;

use super::follow::{Follower, Step};
use super::runs::{self, FollowedRun, LastRun};
use super::sessions::OpenSession;
use super::{errors, gates};
use crate::failure::Failure;
use crate::run_process;

/// Number of attempts to cancel a run that is starting, and the time between two.
const CANCEL_ATTEMPTS: u32 = 100;
const CANCEL_PAUSE: Duration = Duration::from_millis(100);

/// Request to a turn.
#[derive(Debug)]
pub(super) enum TurnCommand {
    Steer { call: CallId, text: String },
    Answer { gate: Box<Gate>, answer: GateAnswer },
    Cancel,
}

/// Carries out a prompt and reports its end. Ends early, without a report, if `commands` is closed.
pub(super) async fn run(
    turn: TurnId,
    session: OpenSession,
    prompt: Prompt,
    mut commands: mpsc::Receiver<TurnCommand>,
    events: mpsc::Sender<AgentEvent>,
) {
    let end = match carry_out(turn, session, prompt, &mut commands, &events).await {
        Ok(end) => end,
        Err(failure) => TurnEnd::Failed(errors::of(&failure)),
    };
    let _ = events.send(AgentEvent::Ended { turn, end }).await;
    // Guidance that came last still gets an answer.
    commands.close();
    while let Some(command) = commands.recv().await {
        if let TurnCommand::Steer { call, .. } = command {
            let failure = Failure::refused("the run has ended and takes no more messages");
            let _ = events.send(AgentEvent::Done { call, result: Err(errors::of(&failure)) }).await;
        }
    }
}

async fn carry_out(
    turn: TurnId,
    mut session: OpenSession,
    prompt: Prompt,
    commands: &mut mpsc::Receiver<TurnCommand>,
    events: &mpsc::Sender<AgentEvent>,
) -> Result<TurnEnd, Failure> {
    let mut answered = None;
    if let Prompt::Answer { gate, answer } = &prompt {
        gates::answer(&session.project, gate, answer.clone()).await?;
        answered = Some(gate.clone());
    }
    let (session, run) = blocking(move || {
        let run = begin(&mut session, prompt)?;
        Ok((session, run))
    })
    .await?;
    let is_new = run.child.is_some() && run.before == 0;
    let mut follower = Follower::new(turn, session.project.clone(), run, events.clone());
    // The run may not have noticed its answer yet.
    follower.skip_gate(answered);
    if is_new {
        let info = SessionInfoUpdate::new().title(session.record.title.clone());
        let update = Box::new(SessionUpdate::SessionInfoUpdate(info));
        let _ = events.send(AgentEvent::Update { turn, update }).await;
    } else {
        follower.attach().await?;
    }
    follow(turn, &mut follower, commands, events).await
}

async fn follow(
    turn: TurnId,
    follower: &mut Follower,
    commands: &mut mpsc::Receiver<TurnCommand>,
    events: &mpsc::Sender<AgentEvent>,
) -> Result<TurnEnd, Failure> {
    loop {
        if let Step::Ended(end) = follower.step().await? {
            return Ok(end);
        }
        tokio::select! {
            () = follower.changed() => {}
            command = commands.recv() => match command {
                Some(command) => handle(turn, follower, command, events).await?,
                // The turn was left, or the editor has gone: the run goes on.
                None => return Err(Failure::failed("the run is no longer followed")),
            },
        }
    }
}

async fn handle(
    turn: TurnId,
    follower: &mut Follower,
    command: TurnCommand,
    events: &mpsc::Sender<AgentEvent>,
) -> Result<(), Failure> {
    let (dir, run) = (follower.project().dir().clone(), follower.run().clone());
    match command {
        TurnCommand::Cancel => cancel(follower).await,
        TurnCommand::Steer { call, text } => {
            let sent = blocking(move || runs::send_guidance(&dir, &run, &text)).await;
            let result = match sent {
                Ok(_) => Ok(Value::from(
                    "Sent to the run: agents that listen receive it now, others when they start.",
                )),
                Err(failure) => Err(errors::of(&failure)),
            };
            let _ = events.send(AgentEvent::Done { call, result }).await;
            Ok(())
        }
        TurnCommand::Answer { gate, answer } => {
            if let Err(failure) = gates::answer(follower.project(), &gate.id, answer).await {
                let reason = failure.sentences();
                let _ = events.send(AgentEvent::GateRefused { turn, gate, reason }).await;
            }
            Ok(())
        }
    }
}

/// Cancels the run. One that has not taken its lock yet is asked again, and one that has ended has its own end.
async fn cancel(follower: &mut Follower) -> Result<(), Failure> {
    let mut attempts = 0;
    loop {
        let dir = follower.project().dir().clone();
        let Err(failure) = blocking(move || run_process::cancel(&dir)).await else { return Ok(()) };
        attempts += 1;
        if !follower.is_working()? {
            return Ok(());
        }
        if attempts >= CANCEL_ATTEMPTS {
            return Err(failure);
        }
        tokio::time::sleep(CANCEL_PAUSE).await;
    }
}

/// Starts, continues or joins a run.
fn begin(session: &mut OpenSession, prompt: Prompt) -> Result<FollowedRun, Failure> {
    session.refresh();
    let last = runs::last_run(&session.project)?;
    let is_active = run_process::is_active(session.project.dir())?;
    let is_own = |last: &LastRun| session.record.runs.contains(&last.id);
    let nothing = || Failure::refused("nothing is running in this project").hint("a message starts a run");
    match (prompt, last) {
        (Prompt::Text(text), Some(last)) if is_active => {
            if !is_own(&last) {
                return Err(Failure::refused(format!("run {} is at work in this project", last.id))
                    .hint("`/follow` follows it, `cliq cancel` stops it"));
            }
            if !text.trim().is_empty() {
                runs::send_guidance(session.project.dir(), &last.id, &text)?;
            }
            Ok(join(last))
        }
        (Prompt::Text(text), Some(last))
            if is_own(&last) && matches!(last.state, RunState::Waiting | RunState::Interrupted) =>
        {
            if !text.trim().is_empty() {
                runs::send_guidance(session.project.dir(), &last.id, &text)?;
            }
            let last = runs::last_run(&session.project)?.unwrap_or(last);
            runs::resume(session, &last)
        }
        (Prompt::Text(text), _) => runs::start(session, &text),
        (Prompt::Follow | Prompt::Answer { .. } | Prompt::Resume, Some(last)) if is_active => {
            session.change(|record| record.add_run(last.id.clone()))?;
            Ok(join(last))
        }
        (Prompt::Resume, Some(last)) => runs::resume(session, &last),
        (Prompt::Follow | Prompt::Answer { .. }, Some(last)) if last.state == RunState::Waiting => {
            runs::resume(session, &last)
        }
        _ => Err(nothing()),
    }
}

fn join(last: LastRun) -> FollowedRun {
    FollowedRun { id: last.id, child: None, before: 0 }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    match spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(Failure::failed(error.to_string())),
    }
}
