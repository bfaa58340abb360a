//! Models by a vendor's command line, in its non-interactive mode: the prompt goes to standard input, what it does comes
//! back line by line as JSON.

mod dialect;
mod end;
mod input;
mod lines;
mod progress;
mod recorder;

use std::fs;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;

use camino::Utf8PathBuf;
use cliq_fs::{ChildInput, FollowLimits, follow_child};
use cliq_protocol::Origin;
use cliq_sandbox::Wrapper;
use cliq_sdk::{LimitReached, Steering};
use cliq_settings::Secret;

pub(crate) use dialect::Dialect;
use dialect::PromptInput;
use end::{ProgramEnd, decide};
use input::{Exchange, feed};
use progress::Progress;
pub(crate) use recorder::Recorder;

use super::display::Display;
use super::meter::{Meter, line};
use super::{Conversation, Ended};
use crate::AnyError;

/// Maximum number of bytes kept from error output.
const COMPLAINT: usize = 2000;
/// The longest argument that every system takes.
const LONGEST_ARGUMENT: usize = 100_000;

/// A vendor's program.
pub(crate) struct Cli {
    pub(crate) dialect: Dialect,
    pub(crate) name: &'static str,
    pub(crate) program: Utf8PathBuf,
    /// Additional arguments of the user.
    pub(crate) args: Vec<String>,
    pub(crate) model: Option<String>,
    /// A key from the settings, and the variable from which the program reads it.
    pub(crate) key: Option<(&'static str, Secret)>,
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

impl Cli {
    /// Asks and returns the answer, or what the program had when it reached a limit. Shows what comes while it comes, and meters its usage.
    ///
    /// # Errors
    /// Returns an error unless the program ended with its documented success or at a limit.
    pub(crate) fn ask(
        &self,
        conversation: &Conversation,
        display: &mut Display<'_>,
        meter: &mut Meter<'_>,
        steering: &mut Steering,
        recorder: &mut Recorder,
    ) -> Result<Ended, AnyError> {
        if let Some(key) = &self.known_key {
            display.hide(key.reveal());
        }
        let prompt = conversation.as_one();
        // The program gets all of the conversation again, the transcript what is new.
        let (question, origin) = match &conversation.turns[..] {
            [only] => (only.as_str(), Origin::Task),
            [.., last] => (last.as_str(), Origin::Retry),
            [] => ("", Origin::Task),
        };
        recorder.ask(question, origin, Vec::new());
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
        if let Some((variable, key)) = &self.key {
            command.env(variable, key.reveal());
        }
        if let (Some(variable), Some(base)) = (self.base_variable, &self.base) {
            command.env(variable, base);
        }
        let input = self.dialect.input();
        if input == PromptInput::Argument {
            command.arg(self.as_argument(&prompt)?);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("cannot start {}: {error}", self.program))?;
        display.act(&format!("asking {}", self.model.as_deref().unwrap_or(self.name)));
        let stdin = ChildInput::new(child.stdin.take())?;
        let mut progress = Progress::new(self.dialect, self.model.clone(), prompt.len(), recorder);
        let exchange = Exchange::new();
        let followed = std::thread::scope(|scope| {
            let (stdin, exchange, stop) = (&stdin, &exchange, steering.stop_handle());
            scope.spawn(move || feed(input, &prompt, stdin, steering, exchange));
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
            });
            end_input();
            stdin.close();
            followed
        });
        progress.finish(meter);
        meter.settle();
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
        let end = decide(self.dialect, &progress.reports, requests, followed.status.into());
        let message = display.masked(&end.describe(self.name, &said));
        let failure: AnyError = match end {
            ProgramEnd::Success if !text.trim().is_empty() => {
                if meter.total().tokens() > 0 {
                    display.note(&line(&meter.total()));
                }
                return Ok(Ended::Answer(text));
            }
            ProgramEnd::Success => {
                let why = if complaint.is_empty() { String::new() } else { format!(": {complaint}") };
                display.masked(&format!("{} answered with nothing{why}", self.name)).into()
            }
            ProgramEnd::Limit { limited, .. } => {
                progress.fail(message.clone());
                let reached = LimitReached::new(message, limited);
                return Ok(Ended::Limited { partial: text, reached });
            }
            ProgramEnd::Failure { .. }
            | ProgramEnd::SeveralResults { .. }
            | ProgramEnd::FailedAfterResult { .. }
            | ProgramEnd::ExitCode { .. }
            | ProgramEnd::Killed { .. }
            | ProgramEnd::NoResult => message.into(),
        };
        progress.fail(failure.to_string());
        Err(failure)
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
