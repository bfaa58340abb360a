//! Models by a vendor's command line, in its non-interactive mode: the prompt goes to standard input, what it does comes
//! back line by line as JSON.

mod dialect;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};

use camino::Utf8PathBuf;
use cliq_settings::Secret;
use serde_json::Value;

pub(crate) use dialect::Dialect;
use dialect::Event;

use super::display::Display;
use super::{Answer, Conversation, Model};
use crate::AnyError;

/// What is kept of what it complains about.
const COMPLAINT: usize = 2000;
/// The longest argument that every system takes.
const LONGEST_ARGUMENT: usize = 100_000;

/// A vendor's program.
pub(crate) struct Cli {
    pub(crate) dialect: Dialect,
    pub(crate) name: &'static str,
    pub(crate) program: Utf8PathBuf,
    /// What the user adds.
    pub(crate) args: Vec<String>,
    pub(crate) model: Option<String>,
    /// A key from the settings, and the variable in which the program wants it.
    pub(crate) key: Option<(&'static str, Secret)>,
    /// The key that it will find, wherever.
    pub(crate) known_key: Option<Secret>,
    /// Where its API is, and the variable in which the program wants it, if it takes it from there.
    pub(crate) base: Option<String>,
    pub(crate) base_variable: Option<&'static str>,
    pub(crate) workspace: Utf8PathBuf,
    /// Where a prompt goes that is too long for an argument.
    pub(crate) prompt_file: Utf8PathBuf,
}

impl Model for Cli {
    fn ask(&self, conversation: &Conversation, display: &mut Display<'_>) -> Result<Answer, AnyError> {
        if let Some(key) = &self.known_key {
            display.hide(key.reveal());
        }
        let prompt = conversation.as_one();
        let mut command = Command::new(&self.program);
        command.args(self.dialect.args(self.model.as_deref(), self.base.as_deref()));
        command.args(&self.args).current_dir(&self.workspace);
        if let Some((variable, key)) = &self.key {
            command.env(variable, key.reveal());
        }
        if let (Some(variable), Some(base)) = (self.base_variable, &self.base) {
            command.env(variable, base);
        }
        if !self.dialect.reads_standard_input() {
            command.arg(self.as_argument(&prompt)?);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("cannot start {}: {error}", self.program))?;
        display.act(&format!("asking {}", self.model.as_deref().unwrap_or(self.name)));
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let mut heard = Heard::default();
        let complaint = std::thread::scope(|scope| {
            let feeds = self.dialect.reads_standard_input();
            scope.spawn(move || {
                // One that does not read to the end says why in its own words.
                if let Some(mut stdin) = stdin.filter(|_| feeds) {
                    let _ = stdin.write_all(prompt.as_bytes());
                }
            });
            let complaint = scope.spawn(move || stderr.map_or(String::new(), last_words));
            if let Some(stdout) = stdout {
                self.follow(BufReader::new(stdout), &mut heard, display);
            }
            complaint.join().unwrap_or_default()
        });
        let status = child.wait()?;
        display.finish();
        let complaint = display.masked(complaint.trim());
        if let Some(why) = heard.failed {
            return Err(format!("{} failed: {}", self.name, display.masked(&why)).into());
        }
        if !status.success() {
            let why = if complaint.is_empty() { heard.answer() } else { complaint };
            return Err(format!("{} ended with {status}: {why}", self.name).into());
        }
        let text = heard.answer();
        if text.trim().is_empty() {
            let why = if complaint.is_empty() { String::new() } else { format!(": {complaint}") };
            return Err(format!("{} answered with nothing{why}", self.name).into());
        }
        if let (Some(tokens_in), Some(tokens_out)) = heard.usage {
            display.note(&format!("[{tokens_in} tokens in, {tokens_out} out]"));
        }
        Ok(Answer { text, tokens_in: heard.usage.0, tokens_out: heard.usage.1 })
    }

    fn describe(&self) -> (&'static str, Option<String>) {
        (self.dialect.provider(), self.model.clone())
    }
}

/// What has been heard of a program.
#[derive(Debug, Default)]
struct Heard {
    /// What it called its answer.
    last: Option<String>,
    /// What it said since it last did something.
    said: String,
    /// What it said before that.
    before: String,
    failed: Option<String>,
    usage: (Option<u64>, Option<u64>),
}

impl Heard {
    fn answer(&self) -> String {
        match (&self.last, self.said.trim().is_empty()) {
            (Some(last), _) => last.clone(),
            (None, false) => self.said.clone(),
            (None, true) => self.before.clone(),
        }
    }
}

impl Cli {
    fn follow(&self, mut lines: impl BufRead, heard: &mut Heard, display: &mut Display<'_>) {
        let mut line = Vec::new();
        loop {
            line.clear();
            match lines.read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            let text = String::from_utf8_lossy(&line);
            let Ok(value @ Value::Object(_)) = serde_json::from_str::<Value>(text.trim()) else {
                // Notices and warnings of its own.
                display.note(text.trim_end());
                continue;
            };
            for event in self.dialect.read(&value) {
                match event {
                    Event::Say(piece) => {
                        display.say(&piece);
                        heard.said.push_str(&piece);
                    }
                    Event::Act(what) => {
                        display.act(&what);
                        if !heard.said.trim().is_empty() {
                            heard.before = std::mem::take(&mut heard.said);
                        }
                    }
                    Event::Answer(text) => heard.last = Some(text),
                    Event::Failed(why) => heard.failed = Some(why),
                    Event::Usage(tokens_in, tokens_out) => heard.usage = (tokens_in, tokens_out),
                }
            }
        }
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
