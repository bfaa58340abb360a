//! Process of the agent of human gates, which makes the review of a request and waits for its end.

use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use cliq_fs::{CliqDir, SignalTail};
use cliq_protocol::{
    AgentMessage, AskAnswer, AskDispatch, AskRecord, ChannelBody, Dispatch, Form, GateDispatch, Line,
    NotifyRequest, PhaseDispatch, PhaseKind, ReviewSpec, Reviewers, WaitingReview,
};
use cliq_sdk::PhaseContext;
use cliq_settings::ReviewSettings;

use crate::AnyError;

/// Agent of human gates in a message.
const AGENT: &str = "hug";
/// Maximum number of starts without an outcome in a row.
const STARTS: u32 = 3;
/// Time in which a request has to be withdrawn.
const WITHDRAWAL: Duration = Duration::from_secs(30);

/// Event of the process.
pub(super) enum HelperEvent {
    /// A person is waited for, with the message for people.
    Review(String, Box<WaitingReview>),
    Progress(String),
    Notify(NotifyRequest),
    /// The request has an outcome.
    Answer(AskAnswer),
}

/// Process for one request at a time.
pub(super) struct Helper {
    command: Vec<String>,
    /// Message of the phase, of which that of a request is made.
    message: AgentMessage,
    spec: ReviewSpec,
    reviewer: String,
    running: Option<Running>,
}

struct Running {
    /// `None` if an earlier process has left the outcome.
    child: Option<Child>,
    tail: SignalTail,
    message: Vec<u8>,
    starts: u32,
    outcome: Option<AskAnswer>,
    error: Option<String>,
}

impl Helper {
    pub(super) fn new(command: Vec<String>, ctx: &PhaseContext, reviews: &ReviewSettings) -> Self {
        // An item works in a worktree below `.cliq`; reviews belong to the project.
        let workspace = match CliqDir::at(ctx.cliq_dir(), ctx.workspace()) {
            Ok(dir) if ctx.workspace().starts_with(ctx.cliq_dir()) => {
                dir.outermost().parent().map_or_else(|| ctx.workspace().to_owned(), ToOwned::to_owned)
            }
            Ok(_) | Err(_) => ctx.workspace().to_owned(),
        };
        let mut dispatch: PhaseDispatch = ctx.dispatch().clone();
        dispatch.phase.kind = PhaseKind::HumanGate;
        dispatch.phase.agent = AGENT.to_owned();
        dispatch.phase.commands.clear();
        dispatch.phase.config.clear();
        dispatch.outgoing.clear();
        dispatch.steering.clear();
        (dispatch.steering_file, dispatch.transcript_file) = (None, None);
        (dispatch.team, dispatch.gate) = (None, None);
        let message = AgentMessage {
            run_id: ctx.run_id().clone(),
            workspace,
            cliq_dir: ctx.cliq_dir().to_owned(),
            dispatch: Dispatch::Phase(Box::new(dispatch)),
        };
        let spec = ReviewSpec {
            reviewers: Reviewers::Name(reviews.ask_reviewer.clone()),
            artifacts: Vec::new(),
            timeout: reviews.ask_timeout,
            remind_every: None,
            inputs: Form::default(),
        };
        Self { command, message, spec, reviewer: reviews.ask_reviewer.clone(), running: None }
    }

    /// Starts the process for a request, unless an earlier one has left the outcome.
    pub(super) fn start(&mut self, record: &AskRecord) -> Result<(), AnyError> {
        self.stop();
        self.begin(record, false)
    }

    fn begin(&mut self, record: &AskRecord, withdraw: bool) -> Result<(), AnyError> {
        let (message, file) = self.message_for(record, withdraw)?;
        let mut tail = SignalTail::new(&file);
        let mut outcome = None;
        if !withdraw {
            read(&mut tail, |body| {
                if let ChannelBody::Complete { result } = body {
                    outcome = result.as_ref().and_then(AskAnswer::of_result);
                }
            })?;
        }
        if outcome.is_none() {
            if let Err(error) = std::fs::remove_file(&file)
                && error.kind() != std::io::ErrorKind::NotFound
            {
                return Err(format!("cannot remove {file}: {error}").into());
            }
            tail = SignalTail::new(&file);
        }
        let child = if outcome.is_some() { None } else { Some(self.spawn(&message)?) };
        self.running = Some(Running { child, tail, message, starts: 1, outcome, error: None });
        Ok(())
    }

    /// Message for the agent of human gates, and its signal file.
    fn message_for(&self, record: &AskRecord, withdraw: bool) -> Result<(Vec<u8>, Utf8PathBuf), AnyError> {
        let mut message = self.message.clone();
        let dir = CliqDir::at(&message.cliq_dir, &message.workspace)?.asks();
        let Dispatch::Phase(dispatch) = &mut message.dispatch else { return Err("no phase".into()) };
        let suffix = if withdraw { ".withdrawn" } else { "" };
        let file = dir.join(format!("{}.{}{suffix}.jsonl", dispatch.phase.name, record.number));
        dispatch.signal_file.clone_from(&file);
        dispatch.phase.iteration = record.activation;
        let mut review = self.spec.to_value();
        if let Some(form) = &record.form {
            review["inputs"] = form.clone();
        }
        dispatch.gate = Some(GateDispatch {
            iteration: record.activation,
            max_iterations: record.activation,
            checks: Vec::new(),
            route_targets: Vec::new(),
            history: Vec::new(),
            context_file: file.with_extension("context"),
            rejected: None,
            evaluation: Some(record.number),
            review: Some(review),
            ask: Some(AskDispatch { subject: record.subject.clone(), withdraw }),
        });
        Ok((message.encode(), file))
    }

    fn spawn(&self, message: &[u8]) -> Result<Child, AnyError> {
        let (program, args) = self.command.split_first().ok_or("there is no program that asks people")?;
        let failed = |error: std::io::Error| format!("people cannot be asked: {program}: {error}");
        let mut child = Command::new(program).args(args).stdin(Stdio::piped()).spawn().map_err(failed)?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(message).map_err(failed)?;
        }
        Ok(child)
    }

    /// Reads what the process has reported. A process that died is started again.
    pub(super) fn poll(&mut self) -> Result<Vec<HelperEvent>, AnyError> {
        let Some(mut running) = self.running.take() else { return Ok(Vec::new()) };
        // Its last words come before its end is seen.
        let has_ended = match &mut running.child {
            Some(child) => child.try_wait()?.is_some(),
            None => false,
        };
        let mut events = Vec::new();
        let Running { tail, outcome, error, .. } = &mut running;
        read(tail, |body| match body {
            ChannelBody::Progress { message, review: Some(review), .. } => {
                events.push(HelperEvent::Review(message.unwrap_or_default(), review));
            }
            ChannelBody::Progress { message: Some(message), .. } => {
                events.push(HelperEvent::Progress(message))
            }
            ChannelBody::Notify(request) => events.push(HelperEvent::Notify(request)),
            ChannelBody::Complete { result } => *outcome = result.as_ref().and_then(AskAnswer::of_result),
            ChannelBody::Error { error: reason, .. } => *error = Some(reason),
            ChannelBody::Progress { .. } | ChannelBody::Ok => {}
        })?;
        if let Some(outcome) = running.outcome.take() {
            events.push(HelperEvent::Answer(outcome));
            // It may serve the page of the review a little longer.
            running.reap();
            return Ok(events);
        }
        if let Some(error) = running.error {
            return Err(format!(
                "people cannot be asked: {error} (`hug.ask_reviewer` is `{}`)",
                self.reviewer
            )
            .into());
        }
        if has_ended {
            if running.starts >= STARTS {
                return Err(
                    "people cannot be asked: the program that makes the reviews ended without a word".into(),
                );
            }
            running.child = Some(self.spawn(&running.message)?);
            running.starts += 1;
        }
        self.running = Some(running);
        Ok(events)
    }

    /// Cancels the review of a request. Returns the outcome: an answer that came before counts.
    pub(super) fn withdraw(&mut self, record: &AskRecord) -> Result<AskAnswer, AnyError> {
        self.stop();
        self.begin(record, true)?;
        let last = Instant::now() + WITHDRAWAL;
        while Instant::now() < last {
            for event in self.poll()? {
                if let HelperEvent::Answer(answer) = event {
                    return Ok(answer);
                }
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        self.stop();
        Err("the review of a request that was withdrawn cannot be cancelled".into())
    }

    /// Ends the process. Its review stays open.
    pub(super) fn stop(&mut self) {
        if let Some(mut child) = self.running.take().and_then(|running| running.child) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Running {
    /// Lets the process end by itself.
    fn reap(self) {
        if let Some(mut child) = self.child {
            std::thread::spawn(move || child.wait());
        }
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Reads the new lines of a signal file. Lines that are no messages are left out.
fn read(tail: &mut SignalTail, mut each: impl FnMut(ChannelBody)) -> Result<(), AnyError> {
    tail.read_new(|Line { message, .. }| {
        if let Ok(message) = message {
            each(message.body);
        }
    })?;
    Ok(())
}
