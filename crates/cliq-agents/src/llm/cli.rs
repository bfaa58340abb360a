//! Models by a vendor's command line, in its non-interactive mode: the prompt goes to standard input, what it does comes
//! back line by line as JSON.

mod dialect;
mod recorder;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use cliq_protocol::{Origin, TranscriptBody};
use cliq_sandbox::Wrapper;
use cliq_sdk::{Steering, Usage};
use cliq_settings::Secret;
use serde_json::Value;

pub(crate) use dialect::Dialect;
use dialect::{Event, PromptInput};
pub(crate) use recorder::Recorder;

use super::Conversation;
use super::display::Display;
use super::meter::{Meter, line};
use super::prompt::guidance;
use crate::AnyError;

/// Maximum number of characters kept from error output.
const COMPLAINT: usize = 2000;
/// Time within which a program that takes messages prints its first line. Then its input ends, and messages wait for its answer.
const SILENCE: Duration = Duration::from_secs(5);
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
    /// A key from the settings, and the variable in which the program wants it.
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
    /// Asks and returns the answer. Shows what comes while it comes, and meters its usage.
    pub(crate) fn ask(
        &self,
        conversation: &Conversation,
        display: &mut Display<'_>,
        meter: &mut Meter<'_>,
        steering: &mut Steering,
        recorder: &mut Recorder,
    ) -> Result<String, AnyError> {
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
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let mut progress = Progress::new(self.model.clone(), recorder);
        let complaint = std::thread::scope(|scope| {
            let (stdin, stop) = (Arc::new(Mutex::new(stdin)), steering.stop_handle());
            let (feeder, has_output) = (Arc::clone(&stdin), Arc::new(AtomicBool::new(false)));
            let takes_messages = Arc::clone(&has_output);
            scope.spawn(move || feed(input, &prompt, &feeder, steering, &takes_messages));
            let complaint = scope.spawn(move || stderr.map_or(String::new(), last_words));
            let end_input = || {
                if input == PromptInput::Messages {
                    close(&stdin);
                    stop.stop();
                }
            };
            if let Some(stdout) = stdout {
                let first = || has_output.store(true, Ordering::SeqCst);
                let lines = BufReader::new(stdout);
                self.follow(lines, &mut progress, display, meter, &first, &end_input);
            }
            end_input();
            complaint.join().unwrap_or_default()
        });
        let status = child.wait()?;
        meter.settle();
        display.finish();
        let complaint = display.masked(complaint.trim());
        if let Some(why) = progress.failed {
            return Err(format!("{} failed: {}", self.name, display.masked(&why)).into());
        }
        if !status.success() {
            let why = if complaint.is_empty() { progress.answer() } else { complaint };
            return Err(format!("{} ended with {status}: {why}", self.name).into());
        }
        let text = progress.answer();
        if text.trim().is_empty() {
            let why = if complaint.is_empty() { String::new() } else { format!(": {complaint}") };
            return Err(format!("{} answered with nothing{why}", self.name).into());
        }
        if meter.total().tokens() > 0 {
            display.note(&line(&meter.total()));
        }
        Ok(text)
    }
}

/// Output of a program so far.
struct Progress<'a> {
    recorder: &'a mut Recorder,
    /// The model that it uses.
    model: Option<String>,
    /// The usage of each reply.
    replies: BTreeMap<String, Usage>,
    /// The usage of the turns that have ended. A program that received further messages has several.
    total: Usage,
    /// Text that the program declared as its answer.
    last: Option<String>,
    /// Text since the last action.
    said: String,
    /// Text before that.
    before: String,
    failed: Option<String>,
}

impl<'a> Progress<'a> {
    fn new(model: Option<String>, recorder: &'a mut Recorder) -> Self {
        Self {
            recorder,
            model,
            replies: BTreeMap::new(),
            total: Usage::default(),
            last: None,
            said: String::new(),
            before: String::new(),
            failed: None,
        }
    }

    /// Adds the usage of a turn. Tokens are those of the turn, the cost is that of all turns.
    fn finish_turn(&mut self, turn: &Usage) {
        let cost_usd = turn.cost_usd;
        self.total.add(turn);
        self.total.cost_usd = cost_usd;
    }

    fn answer(&self) -> String {
        match (&self.last, self.said.trim().is_empty()) {
            (Some(last), _) => last.clone(),
            (None, false) => self.said.clone(),
            (None, true) => self.before.clone(),
        }
    }
}

impl Cli {
    fn follow(
        &self,
        mut lines: impl BufRead,
        progress: &mut Progress<'_>,
        display: &mut Display<'_>,
        meter: &mut Meter<'_>,
        has_output: &dyn Fn(),
        end_input: &dyn Fn(),
    ) {
        let mut bytes = Vec::new();
        loop {
            bytes.clear();
            match lines.read_until(b'\n', &mut bytes) {
                Ok(0) | Err(_) => return,
                Ok(_) => has_output(),
            }
            let text = String::from_utf8_lossy(&bytes);
            let Ok(value @ Value::Object(_)) = serde_json::from_str::<Value>(text.trim()) else {
                // Notices and warnings of its own.
                display.note(text.trim_end());
                continue;
            };
            for event in self.dialect.read(&value) {
                match event {
                    Event::Say(piece) => {
                        display.print(&piece);
                        progress.recorder.say(&piece);
                        progress.said.push_str(&piece);
                    }
                    Event::Act(what) => {
                        display.act(&what);
                        if !progress.said.trim().is_empty() {
                            progress.before = std::mem::take(&mut progress.said);
                        }
                    }
                    // A program that takes messages works until there are no more. One that came before is still answered.
                    Event::Answer(text) => {
                        end_input();
                        progress.last = Some(text);
                    }
                    Event::Record(body) => progress.recorder.record(body),
                    Event::Failed(why) => {
                        end_input();
                        let message = display.masked(&why);
                        progress.recorder.record(TranscriptBody::Error {
                            message,
                            is_retried: false,
                            is_too_long: false,
                            has_stale_thinking: false,
                            usage: None,
                        });
                        progress.failed = Some(why);
                    }
                    Event::Model(model) => progress.model = Some(model),
                    Event::Reply(id, usage) => {
                        let named = self.named(usage.clone(), progress);
                        progress.recorder.usage_of_reply(&id, &named);
                        progress.replies.insert(id, usage);
                        let mut sum = Usage::default();
                        progress.replies.values().for_each(|usage| sum.add(usage));
                        meter.report(self.named(sum, progress));
                    }
                    Event::Total(usage) => {
                        let named = self.named(usage.clone(), progress);
                        progress.recorder.total(&named);
                        progress.finish_turn(&usage);
                        meter.report(self.named(progress.total.clone(), progress));
                    }
                }
            }
        }
    }

    fn named(&self, usage: Usage, progress: &Progress<'_>) -> Usage {
        let provider = Some(self.dialect.provider().to_owned());
        Usage { provider, model: progress.model.clone(), ..usage }
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

/// Standard input of a program, until it is closed.
type Input = Mutex<Option<ChildStdin>>;

/// Writes the prompt, and then steering messages if the program takes them.
fn feed(input: PromptInput, prompt: &str, stdin: &Input, steering: &mut Steering, has_output: &AtomicBool) {
    if input == PromptInput::Argument {
        return close(stdin);
    }
    // A program that does not read to the end reports the reason itself.
    write(stdin, || input.encode(prompt));
    if input == PromptInput::Text {
        return close(stdin);
    }
    let started = Instant::now();
    loop {
        let is_silent = !has_output.load(Ordering::SeqCst);
        let patience = if is_silent { SILENCE.saturating_sub(started.elapsed()) } else { Duration::MAX };
        if !steering.wait(patience) {
            if steering.is_stopped() || !is_silent {
                return;
            }
            if !has_output.load(Ordering::SeqCst) {
                // A wrapper may read its input to the end before it starts the program.
                return close(stdin);
            }
            continue;
        }
        let message = || {
            let message = steering.try_next().ok().flatten();
            message.map(|message| input.encode(&guidance(&[message]))).unwrap_or_default()
        };
        if !write(stdin, message) {
            return;
        }
    }
}

/// Writes what `make` returns, unless the input is closed: a message that was taken has been sent. Returns `false` if the input is closed
/// or broken.
fn write(stdin: &Input, make: impl FnOnce() -> Vec<u8>) -> bool {
    let mut stdin = stdin.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(open) = stdin.as_mut() else { return false };
    open.write_all(&make()).and_then(|()| open.flush()).is_ok()
}

fn close(stdin: &Input) {
    drop(stdin.lock().unwrap_or_else(PoisonError::into_inner).take());
}

fn last_words(mut stderr: impl Read) -> String {
    let (mut kept, mut buffer) = (Vec::new(), [0; 4096]);
    while let Ok(n @ 1..) = stderr.read(&mut buffer) {
        kept.extend_from_slice(&buffer[..n]);
        if kept.len() > 2 * COMPLAINT {
            kept.drain(..kept.len() - COMPLAINT);
        }
    }
    String::from_utf8_lossy(&kept[kept.len().saturating_sub(COMPLAINT)..]).into_owned()
}
