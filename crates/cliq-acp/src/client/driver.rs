//! Driver of the machine: a process, pipes and deadlines.
//!
//! Everything happens in the futures of [`Client::start`], [`Session::prompt`] and [`Session::end`]. No task is spawned, so that a
//! runtime of one thread is enough, and a future that is dropped leaves no process behind.

use std::collections::BTreeMap;
use std::future::pending;
use std::io;
use std::process::Command;
use std::time::Duration;

use agent_client_protocol_schema::v1::ContentBlock;
use tokio::net::unix::pipe;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until, timeout};

use super::anomaly::Anomaly;
use super::host::{Control, Direction, Host, MAX_REPORTS, PermissionReply, QuestionReply};
use super::limits::Limits;
use super::machine::{AgentEnd, Effect, Event, Machine, Timer, TurnReport};
use super::outcome::{AgentExit, Failure, Outcome};
use super::process::{Pipes, Process};
use super::session::{AgentInfo, SessionInfo, SessionRequest};
use super::tail::Tail;
use crate::lines::{Line, LineReader};
use crate::rpc::Incoming;

/// Maximum number of bytes read after the end of a process whose output another one holds open.
const OWED: usize = 1 << 20;
/// Number of inputs after which the runtime gets a turn. Lines that are in memory would otherwise keep timers from it.
const BURST: usize = 64;

/// Client that is about to start an agent.
#[derive(Debug)]
pub struct Client {
    command: Command,
    request: SessionRequest,
    limits: Limits,
    secrets: Vec<String>,
    control: Control,
    events: UnboundedReceiver<Event>,
}

/// Start that failed. No process is left.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{failure}")]
pub struct StartError {
    /// Reason.
    pub failure: Box<Failure>,
    /// End of the agent's error output, without secrets.
    pub errors: String,
    /// Facts that the agent reported about itself. Fields that it did not report are empty.
    pub agent: Box<AgentInfo>,
}

impl Client {
    /// Returns a client for a command. Its program, arguments, directory and environment are the caller's; pipes and process group are
    /// set by the client.
    #[must_use]
    pub fn new(command: Command, request: SessionRequest) -> Self {
        let (sender, events) = unbounded_channel();
        let control = Control::new(sender);
        Self { command, request, limits: Limits::default(), secrets: Vec::new(), control, events }
    }

    /// Sets the deadlines and bounds.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Adds values that are never shown in errors. Variables that the command sets and whose name is that of a secret are added
    /// already.
    #[must_use]
    pub fn with_secrets(mut self, secrets: impl IntoIterator<Item = String>) -> Self {
        self.secrets.extend(secrets);
        self
    }

    /// Returns a handle that cancels and steers.
    #[must_use]
    pub fn control(&self) -> Control {
        self.control.clone()
    }

    /// Starts the agent and opens the session. Needs a runtime of tokio with IO and time.
    ///
    /// # Errors
    /// Returns an error if the program cannot be started, or the session is not ready for a prompt. No process is left then.
    pub async fn start(mut self, host: &mut impl Host) -> Result<Session, StartError> {
        let program = self.command.get_program().to_string_lossy().into_owned();
        let secrets = super::tail::secrets(&self.command, self.secrets);
        let (process, pipes) = match Process::start(&mut self.command) {
            Ok(started) => started,
            Err(error) => {
                let failure = Box::new(Failure::NotStarted { program, reason: error.to_string() });
                return Err(StartError { failure, errors: String::new(), agent: Box::default() });
            }
        };
        let Pipes { input, output, errors } = pipes;
        let mut session = Session {
            machine: Machine::new(self.request),
            process,
            exit: None,
            input: Some(input),
            outbox: Vec::new(),
            written: 0,
            lines: LineReader::new(output),
            has_output: true,
            errors: Some(errors),
            tail: Tail::new(secrets),
            deadlines: BTreeMap::new(),
            drain: None,
            owed: None,
            reports: 0,
            limits: self.limits,
            control: self.control,
            events: self.events,
        };
        let started = session.machine.step(Event::Start);
        match session.run(started, host).await {
            Finished::Started => Ok(session),
            Finished::StartFailed(failure) | Finished::Refused(failure) => {
                let errors = session.tail.text();
                let agent = Box::new(session.machine.agent().clone());
                Err(StartError { failure: Box::new(failure), errors, agent })
            }
            Finished::Turn(_) => unreachable!("no prompt was sent: a turn cannot end"),
        }
    }
}

/// Session of an agent that runs. The process group is killed when this is dropped; [`Session::end`] ends it in order.
#[derive(Debug)]
pub struct Session {
    machine: Machine,
    process: Process,
    exit: Option<AgentExit>,
    input: Option<pipe::Sender>,
    /// Bytes for the agent, of which `written` are written.
    outbox: Vec<u8>,
    written: usize,
    lines: LineReader<pipe::Receiver>,
    has_output: bool,
    errors: Option<pipe::Receiver>,
    tail: Tail,
    deadlines: BTreeMap<Timer, Instant>,
    /// Point in time at which the connection counts as ended: the process or its output has ended.
    drain: Option<Instant>,
    /// Bytes that are still read although the time of `drain` is over: the process itself wrote them.
    owed: Option<usize>,
    reports: usize,
    limits: Limits,
    control: Control,
    events: UnboundedReceiver<Event>,
}

/// Effect that a caller waits for.
enum Finished {
    Started,
    StartFailed(Failure),
    Turn(Box<TurnReport>),
    Refused(Failure),
}

/// Occurrence that the driver waits for.
enum Input {
    Event(Event),
    Line(Option<Line>),
    OutputFailed,
    Written(io::Result<usize>),
    Exited(AgentExit),
    Drained,
}

impl Session {
    /// Returns the facts about the agent.
    #[must_use]
    pub fn agent(&self) -> &AgentInfo {
        self.machine.agent()
    }

    /// Returns the session: its id, and what can be chosen in it.
    #[must_use]
    pub fn info(&self) -> &SessionInfo {
        self.machine.session()
    }

    /// Returns a handle that cancels and steers.
    #[must_use]
    pub fn control(&self) -> Control {
        self.control.clone()
    }

    /// Returns the end of the agent's error output, without secrets.
    #[must_use]
    pub fn errors(&self) -> String {
        self.tail.text()
    }

    /// Sends a prompt and follows the turn to its end. If it failed for good, the process is ended before this returns.
    ///
    /// Between turns nothing is read: what the agent writes then is handled at the next prompt.
    pub async fn prompt(&mut self, prompt: Vec<ContentBlock>, host: &mut impl Host) -> TurnReport {
        let effects = self.machine.step(Event::Prompt(prompt));
        match self.run(effects, host).await {
            Finished::Turn(report) => *report,
            Finished::Refused(failure) | Finished::StartFailed(failure) => TurnReport::failed(failure),
            Finished::Started => TurnReport::failed(Failure::Busy),
        }
    }

    /// Ends the process group in order: end of input, SIGTERM, SIGKILL. Returns the end of the process.
    pub async fn end(mut self, host: &mut impl Host) -> AgentExit {
        self.shut_down(host).await
    }

    /// Performs effects and waits for events until the caller has its answer.
    async fn run(&mut self, effects: Vec<Effect>, host: &mut impl Host) -> Finished {
        let mut finished = None;
        let mut is_over = self.perform(effects, host, &mut finished);
        for turn in 1_usize.. {
            if turn.is_multiple_of(BURST) {
                yield_now().await;
            }
            if is_over {
                self.shut_down(host).await;
            }
            match finished.take() {
                Some(finished) => return finished,
                // The machine ends with a result for the pending call.
                None if is_over => return Finished::Refused(Failure::Ended),
                None => {}
            }
            let input = self.next_input().await;
            let Some(event) = self.event_of(input, host) else { continue };
            let effects = self.machine.step(event);
            is_over = self.perform(effects, host, &mut finished);
        }
        Finished::Refused(Failure::Ended)
    }

    async fn next_input(&mut self) -> Input {
        if let Some(left) = self.owed {
            let is_wanted = left > 0 && self.has_output;
            let line = if is_wanted { timeout(Duration::ZERO, self.lines.next()).await.ok() } else { None };
            return match line {
                Some(Ok(line)) => {
                    self.owed = Some(left.saturating_sub(line.as_ref().map_or(left, Line::len)));
                    Input::Line(line)
                }
                Some(Err(_)) | None => Input::Drained,
            };
        }
        let next = self.deadlines.iter().map(|(timer, at)| (*at, *timer)).min();
        let Self {
            events,
            input,
            outbox,
            written,
            lines,
            has_output,
            errors,
            tail,
            process,
            exit,
            drain,
            ..
        } = self;
        let deadline = async |at: Option<Instant>| match at {
            Some(at) => sleep_until(at).await,
            None => pending().await,
        };
        loop {
            let writable = async {
                match input {
                    Some(input) if *written < outbox.len() => {
                        input.writable().await.and_then(|()| input.try_write(&outbox[*written..]))
                    }
                    _ => pending().await,
                }
            };
            tokio::select! {
                Some(event) = events.recv() => return Input::Event(event),
                () = deadline(next.map(|(at, _)| at)) => {
                    return Input::Event(Event::Timer(next.map_or(Timer::Start, |(_, timer)| timer)));
                }
                () = deadline(*drain) => return Input::Drained,
                result = writable => match result {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    result => return Input::Written(result),
                },
                line = lines.next(), if *has_output => return line.map_or(Input::OutputFailed, Input::Line),
                is_open = tail.read(errors) => if !is_open { *errors = None },
                status = process.wait(), if exit.is_none() => return Input::Exited(status),
            }
        }
    }

    /// Takes note of an input. Returns the event for the machine, if it is one.
    fn event_of(&mut self, input: Input, host: &mut impl Host) -> Option<Event> {
        match input {
            Input::Event(event) => {
                if let Event::Timer(timer) = &event {
                    self.deadlines.remove(timer);
                }
                Some(event)
            }
            Input::Line(Some(line)) => {
                if let Line::Whole(bytes) | Line::Half(bytes) = &line {
                    host.line(Direction::FromAgent, bytes);
                }
                let mut incoming = Incoming::parse(&line);
                // Before it is cut for a message: half a secret is one, too.
                if let Incoming::Noise(text) = &mut incoming {
                    *text = self.tail.masked(text);
                }
                Some(Event::Line(incoming))
            }
            Input::Line(None) | Input::OutputFailed => {
                self.has_output = false;
                match self.exit {
                    Some(exit) => Some(self.exited(exit)),
                    None => {
                        self.drain = Instant::now().checked_add(self.limits.drain);
                        None
                    }
                }
            }
            Input::Written(Ok(bytes)) => {
                self.written += bytes;
                if self.written == self.outbox.len() {
                    self.outbox.clear();
                    self.outbox.shrink_to(1 << 16);
                    self.written = 0;
                }
                None
            }
            Input::Written(Err(_)) => {
                // The process has ended, most likely. Its end says more.
                self.input = None;
                self.drain = self.drain.or_else(|| Instant::now().checked_add(self.limits.drain));
                None
            }
            Input::Exited(exit) => {
                self.exit = Some(exit);
                if !self.has_output {
                    return Some(self.exited(exit));
                }
                self.drain = Instant::now().checked_add(self.limits.drain);
                None
            }
            Input::Drained => {
                self.drain = None;
                if self.exit.is_some() && self.has_output && self.owed.is_none() {
                    self.owed = Some(OWED);
                    return None;
                }
                Some(match self.exit {
                    Some(exit) => self.exited(exit),
                    None if self.has_output => Event::Ended(AgentEnd::InputClosed),
                    None => Event::Ended(AgentEnd::OutputClosed),
                })
            }
        }
    }

    fn exited(&self, exit: AgentExit) -> Event {
        Event::Ended(AgentEnd::Exited { exit, errors: self.tail.text() })
    }

    /// Performs effects. Returns whether the process is to be ended.
    fn perform(
        &mut self,
        effects: Vec<Effect>,
        host: &mut impl Host,
        finished: &mut Option<Finished>,
    ) -> bool {
        let mut is_over = false;
        for effect in effects {
            match effect {
                Effect::Send(message) => {
                    let line = message.to_line();
                    host.line(Direction::ToAgent, line.as_bytes());
                    self.outbox.extend_from_slice(line.as_bytes());
                    self.outbox.push(b'\n');
                }
                Effect::Arm(timer) => self.arm(timer),
                Effect::Disarm(timer) => {
                    self.deadlines.remove(&timer);
                }
                Effect::Started => *finished = Some(Finished::Started),
                Effect::StartFailed(mut failure) => {
                    failure.mask(&|text| self.tail.masked(text));
                    *finished = Some(Finished::StartFailed(failure));
                }
                Effect::Update(origin, update) => host.update(origin, &update),
                Effect::AskPermission(request) => {
                    host.permission(
                        &request,
                        PermissionReply::new(request.id, self.control.sender().clone()),
                    );
                }
                Effect::AskQuestion(request) => {
                    host.question(&request, QuestionReply::new(request.id, self.control.sender().clone()));
                }
                Effect::Withdraw(id) => host.withdrawn(id),
                Effect::Steered(id, outcome) => host.steered(id, &outcome),
                Effect::TurnEnded(mut report) => {
                    if let Outcome::Failed(failure) = &mut report.outcome {
                        failure.mask(&|text| self.tail.masked(text));
                    }
                    *finished = Some(Finished::Turn(report));
                }
                Effect::PromptRefused(mut failure) => {
                    failure.mask(&|text| self.tail.masked(text));
                    *finished = Some(Finished::Refused(failure));
                }
                Effect::Report(anomaly) => self.report(&anomaly, host),
                Effect::End => is_over = true,
            }
        }
        let waiting = self.outbox.len() - self.written;
        if waiting > self.limits.input && !is_over {
            let effects = self.machine.step(Event::Ended(AgentEnd::InputStuck { bytes: waiting }));
            return self.perform(effects, host, finished);
        }
        is_over
    }

    fn arm(&mut self, timer: Timer) {
        let limit = match timer {
            Timer::Start => Some(self.limits.start),
            Timer::Replay => Some(self.limits.replay),
            Timer::Silence => self.limits.silence,
            Timer::Cancel => Some(self.limits.cancel),
            Timer::Usage => Some(self.limits.usage),
        };
        // A deadline that the clock cannot express is none.
        if let Some(at) = limit.and_then(|limit| Instant::now().checked_add(limit)) {
            self.deadlines.insert(timer, at);
        }
    }

    fn report(&mut self, anomaly: &Anomaly, host: &mut impl Host) {
        self.reports += 1;
        if self.reports <= MAX_REPORTS {
            host.anomaly(anomaly);
        }
    }

    async fn shut_down(&mut self, host: &mut impl Host) -> AgentExit {
        self.input = None;
        let Self { lines, has_output, errors, tail, process, limits, .. } = self;
        // An agent that waits for room in a pipe could not end.
        let discard = async {
            loop {
                tokio::select! {
                    line = lines.next(), if *has_output => *has_output = matches!(line, Ok(Some(_))),
                    is_open = tail.read(errors) => if !is_open { *errors = None },
                }
            }
        };
        let was_left = tokio::select! {
            was_left = process.end(limits.close, limits.terminate) => was_left,
            () = discard => false,
        };
        // Beside the number of reports: lines of a process that was left could use it up.
        if was_left {
            host.anomaly(&Anomaly::LeftProcesses);
        }
        self.process.wait().await
    }
}

impl TurnReport {
    fn failed(failure: Failure) -> Self {
        Self {
            outcome: Outcome::Failed(failure),
            messages: Vec::new(),
            usage: super::usage::TurnUsage::default(),
            tool_calls: 0,
            decisions: super::machine::Decisions::default(),
        }
    }
}
