//! Models by a vendor's command line, in its non-interactive mode: the prompt goes to standard input, what it does comes
//! back line by line as JSON.

mod dialect;
mod end;
mod input;
mod lines;
mod progress;
mod recorder;
mod session;

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};

use camino::Utf8PathBuf;
use cliq_fs::{ChildInput, FollowLimits, FsError, follow_child};
use cliq_protocol::{ConversationKind, ConversationPartner, Origin};
use cliq_sandbox::Wrapper;
use cliq_sdk::{LimitReached, Steering};
use cliq_settings::Secret;

pub(crate) use dialect::Dialect;
use dialect::PromptInput;
use end::{ProgramEnd, decide};
use input::{Exchange, feed};
use progress::Progress;
pub(crate) use recorder::{Past, Recorder};
pub(crate) use session::Session;
use session::lost;
use uuid::Uuid;

use super::Ended;
use super::conversation::ConversationFile;
use super::display::Display;
use super::meter::{Meter, line};
use crate::AnyError;

/// Maximum number of bytes kept from error output.
const COMPLAINT: usize = 2000;
/// The longest argument that every system takes.
const LONGEST_ARGUMENT: usize = 100_000;

/// A vendor's program.
pub(crate) struct Cli {
    pub(crate) dialect: Dialect,
    pub(crate) name: String,
    pub(crate) program: Utf8PathBuf,
    /// Additional arguments of the user.
    pub(crate) args: Vec<String>,
    pub(crate) model: Option<String>,
    /// A key from the settings, and the variable from which the program reads it.
    pub(crate) key: Option<(&'static str, Secret)>,
    /// More variables of the user.
    pub(crate) env: BTreeMap<String, Secret>,
    /// The key that it will find, wherever.
    pub(crate) known_key: Option<Secret>,
    /// Base URL of the API, and the variable in which the program expects it.
    pub(crate) base: Option<String>,
    pub(crate) base_variable: Option<&'static str>,
    pub(crate) workspace: Utf8PathBuf,
    /// File for a prompt that is too long for an argument.
    pub(crate) prompt_file: Utf8PathBuf,
    /// Sandbox of the program.
    pub(crate) wrapper: Option<Wrapper>,
    /// Value of `PATH`.
    pub(crate) path: Option<String>,
}

/// Request to a program.
pub(crate) struct Question<'q> {
    /// Text that the program receives.
    pub(crate) text: &'q str,
    /// The part of it that is new, for the transcript.
    pub(crate) new: &'q str,
    /// Reason for the request.
    pub(crate) origin: Origin,
    /// Ids of the steering messages in it.
    pub(crate) steering: Vec<String>,
    /// Session in which it is asked.
    pub(crate) session: Session<'q>,
}

/// Places where the work of a program is shown and recorded.
pub(crate) struct Desk<'a> {
    pub(crate) display: Display<'a>,
    pub(crate) meter: Meter<'a>,
    pub(crate) steering: Steering,
    pub(crate) recorder: Recorder,
    /// Record of the conversation. The thread that writes steering messages uses it too.
    pub(crate) conversation: Mutex<ConversationFile>,
    /// Whether the program has named the session of the last request.
    pub(crate) is_confirmed: bool,
}

impl Desk<'_> {
    /// The record of the conversation.
    pub(crate) fn record(&self) -> MutexGuard<'_, ConversationFile> {
        // The record is whole at any moment: a thread that panicked leaves no half of it.
        self.conversation.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Outcome of a request.
pub(crate) enum Asked {
    /// The program worked on it.
    Ended(Ended),
    /// The program cannot continue the session, for this reason.
    Lost(String),
}

impl Cli {
    /// Agent of its conversations. The program's file stands for its version.
    pub(crate) fn partner(&self) -> ConversationPartner {
        let path = self.program.canonicalize_utf8().unwrap_or_else(|_| self.program.clone());
        let version = fs::metadata(&path).ok().map(|file| format!("{path} {}", file.len()));
        ConversationPartner {
            kind: ConversationKind::Program,
            agent: self.name.to_owned(),
            version,
            cwd: self.workspace.clone(),
        }
    }

    /// Returns an id for a new session, if the program takes one.
    pub(crate) fn new_session(&self) -> Option<String> {
        (self.dialect.takes_session_id() && !self.manages_sessions()).then(|| Uuid::now_v7().to_string())
    }

    /// Whether the user's arguments choose its session.
    pub(crate) fn manages_sessions(&self) -> bool {
        self.dialect.manages_sessions(&self.args)
    }

    /// Asks and returns the answer, or what the program had when it reached a limit. Shows what comes while it comes, meters its usage, and
    /// records the progress of the conversation.
    ///
    /// # Errors
    /// Returns an error unless the program ended with its documented success or at a limit, or does not find the session.
    pub(crate) fn ask(&self, question: &Question<'_>, desk: &mut Desk<'_>) -> Result<Asked, AnyError> {
        let Desk { display, meter, steering, recorder, conversation, is_confirmed } = desk;
        let conversation = &*conversation;
        let record = || conversation.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(key) = &self.known_key {
            display.hide(key.reveal());
        }
        let prompt = question.text;
        // The program may get all of the conversation again, the transcript what is new.
        recorder.ask(question.new, question.origin, question.steering.clone());
        let mut command = match &self.wrapper {
            Some(wrapper) => {
                let (wrapper, before) = wrapper.command(&self.workspace, self.path.as_deref())?;
                let mut command = Command::new(wrapper);
                command.args(before).arg(&self.program);
                command
            }
            None => Command::new(&self.program),
        };
        command.args(self.dialect.args(self.model.as_deref(), self.base.as_deref()));
        command.args(&self.args).current_dir(&self.workspace);
        for (name, value) in &self.env {
            display.hide(value.reveal());
            command.env(name, value.reveal());
        }
        command.args(self.dialect.session_args(question.session));
        if let Some((variable, key)) = &self.key {
            command.env(variable, key.reveal());
        }
        if let (Some(variable), Some(base)) = (self.base_variable, &self.base) {
            command.env(variable, base);
        }
        let input = self.dialect.input();
        if input == PromptInput::Argument {
            command.arg(self.as_argument(prompt)?);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("cannot start {}: {error}", self.program))?;
        display.act(&format!("asking {}", self.model.as_deref().unwrap_or(&self.name)));
        let stdin = ChildInput::new(child.stdin.take())?;
        let is_resumed = matches!(question.session, Session::Resume(_));
        let baseline = record().counted().filter(|_| is_resumed);
        let mut progress = Progress::new(self.dialect, self.model.clone(), prompt.len(), baseline, recorder);
        let exchange = Exchange::new();
        let mut recorded = Ok(());
        let mut is_accepted = false;
        let on_message = |id: &str| {
            // A message that is not in the record is sent again after a kill.
            let _ = record().steer(id);
        };
        let on_message = &on_message;
        let followed = std::thread::scope(|scope| {
            let (stdin, exchange, stop) = (&stdin, &exchange, steering.stop_handle());
            scope.spawn(move || feed(input, prompt, stdin, steering, exchange, on_message));
            // A program that takes messages works until there are no more. One that came before is still answered.
            let end_input = || {
                if input == PromptInput::Messages {
                    stdin.close();
                    stop.stop();
                }
            };
            let limits = FollowLimits { errors: COMPLAINT, ..FollowLimits::default() };
            let followed = follow_child(&mut child, &limits, |line| {
                exchange.has_output.store(true, Ordering::SeqCst);
                if progress.line(line, display, meter) {
                    end_input();
                }
                if recorded.is_ok() {
                    recorded = self.follow_session(&progress, question, &mut is_accepted, &record);
                }
            });
            end_input();
            stdin.close();
            followed
        });
        progress.finish(meter);
        meter.settle();
        *is_confirmed = progress.session.is_some() && !self.manages_sessions();
        recorded?;
        if progress.session.is_none() {
            record().forget_session()?;
        }
        if let Some(counted) = progress.counted {
            record().count(counted)?;
        }
        display.finish();
        let followed = followed.map_err(|error| format!("cannot follow {}: {error}", self.program))?;
        if followed.is_held {
            display.note("[another process holds the output open; it is not waited for]");
        }
        let complaint = String::from_utf8_lossy(&followed.errors).trim().to_owned();
        let text = progress.answer();
        let said = [complaint.as_str(), progress.noise(), text.trim()]
            .into_iter()
            .find(|said| !said.is_empty())
            .unwrap_or_default()
            .to_owned();
        let requests = exchange.requests.load(Ordering::SeqCst);
        if let (Session::Resume(asked), Some(found)) = (question.session, &progress.session)
            && self.dialect.keeps_session_id()
            && asked != found
        {
            return Ok(Asked::Lost(format!("{} continued with another conversation", self.name)));
        }
        let end = decide(self.dialect, &progress.reports, requests, followed.status.into());
        let message = display.masked(&end.describe(&self.name, &said));
        let failure: AnyError = match end {
            ProgramEnd::Success if !text.trim().is_empty() => {
                if meter.total().tokens() > 0 {
                    display.note(&line(&meter.total()));
                }
                return Ok(Asked::Ended(Ended::Answer(text)));
            }
            ProgramEnd::Success => {
                let why = if complaint.is_empty() { String::new() } else { format!(": {complaint}") };
                display.masked(&format!("{} answered with nothing{why}", self.name)).into()
            }
            ProgramEnd::Limit { limited, .. } => {
                progress.fail(message.clone());
                let reached = LimitReached::new(message, limited);
                return Ok(Asked::Ended(Ended::Limited { partial: text, reached }));
            }
            ProgramEnd::Failure { .. }
            | ProgramEnd::SeveralResults { .. }
            | ProgramEnd::FailedAfterResult { .. }
            | ProgramEnd::ExitCode { .. }
            | ProgramEnd::Killed { .. }
            | ProgramEnd::NoResult => message.into(),
        };
        let is_lost = is_resumed && !progress.has_begun;
        if let Some(reason) = lost(&format!("{failure} {said}")).filter(|_| is_lost) {
            return Ok(Asked::Lost(format!("{reason} ({failure})")));
        }
        progress.fail(failure.to_string());
        Err(failure)
    }

    /// Records the id of the session and the first output of the model.
    fn follow_session<'f>(
        &self,
        progress: &Progress<'_>,
        question: &Question<'_>,
        is_accepted: &mut bool,
        record: &dyn Fn() -> MutexGuard<'f, ConversationFile>,
    ) -> Result<(), FsError> {
        if self.manages_sessions() {
            return Ok(());
        }
        let is_another = |id: &str| match question.session {
            Session::Resume(asked) => self.dialect.keeps_session_id() && asked != id,
            Session::New(_) => false,
        };
        if let Some(id) = progress.session.as_deref().filter(|id| !is_another(id)) {
            record().set_session(id)?;
        }
        let has_begun = progress.has_begun && progress.session.is_some();
        if has_begun && !std::mem::replace(is_accepted, true) {
            record().accept()?;
        }
        Ok(())
    }

    fn as_argument(&self, prompt: &str) -> Result<String, AnyError> {
        if prompt.len() <= LONGEST_ARGUMENT {
            return Ok(prompt.to_owned());
        }
        if let Some(dir) = self.prompt_file.parent() {
            fs::create_dir_all(dir)?;
        }
        fs::write(&self.prompt_file, prompt)?;
        Ok(format!("Read the file {} to its end: it is your task. Do what it says.", self.prompt_file))
    }
}
