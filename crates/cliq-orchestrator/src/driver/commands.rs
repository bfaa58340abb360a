//! Running the commands of a gate or exec phase: one `sh -c` each, one after the other.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::{FsError, SignalWriteError, SignalWriter, write_command_results, write_handoffs};
use cliq_protocol::{ChannelBody, CommandResult, DispatchType, Envelope, Object, PhaseKind};
use cliq_workflow::{Command, FailureCause, Phase, PhaseId, Scope, resolve_script};
use serde_json::json;
use tokio::time::Instant;

use super::condition::unevaluated;
use super::deadline::{Deadline, NOTICE, TimeoutDecision};
use super::shared::Shared;
use super::values;
use crate::blocking::spawn_blocking;
use crate::events::RunEvent;
use crate::launcher::{Exit, Job, Running};
use crate::process::{NO_TERMINAL, lacks_terminal};

/// From how many channels on it is worth to write them on another thread.
const MANY_CHANNELS: usize = 8;
/// The shell, where every system has it: looking for it on the PATH costs more than starting it.
const SHELL: &str = "/bin/sh";

/// Runs all commands and sends the outcome to the dispatcher.
pub(super) async fn run(shared: Arc<Shared>, phase: PhaseId, iteration: u32, routed_by: Option<PhaseId>) {
    let phase = &*shared.phase_of(phase);
    let workspace = shared.workspace_of(phase.name.as_str());
    let mut runner = Runner { shared: &shared, phase, iteration, channel: None, workspace, left: Vec::new() };
    if phase.kind == PhaseKind::Exec {
        shared.checkpoint(&phase.name, iteration, false).await;
    }
    let event = match runner.run(routed_by).await {
        Ok(results) => RunEvent::CommandsFinished {
            phase: runner.phase.name.clone(),
            iteration,
            results,
            max_iterations: runner.phase.kind.is_gate().then_some(runner.phase.max_iterations),
            reported: shared.plan.records_commands,
        },
        Err(failure @ (CommandFailure::Phase(_) | CommandFailure::TimedOut(_))) => RunEvent::WorkFailed {
            phase: runner.phase.name.clone(),
            cause: failure.cause(),
            reason: failure.into_reason(),
            output_tail: None,
            log_file: None,
            limited: None,
        },
        Err(CommandFailure::Run(reason)) => {
            // The run ends first, so that the phase counts as stopped by it.
            shared.send(RunEvent::OrchestratorFailed { reason });
            shared.stopped(&runner.phase.name)
        }
    };
    // Processes that the commands left are ended before the end is reported: a phase that ended is over.
    let grace = shared.plan.timing.kill_grace;
    for process in &mut runner.left {
        process.end(grace).await;
    }
    if phase.kind == PhaseKind::Exec {
        shared.checkpoint(&phase.name, iteration, true).await;
    }
    shared.send(event);
    // What follows from it begins first; the descriptors of processes that are gone can wait.
    tokio::task::yield_now().await;
    drop(runner);
}

/// End of a script.
enum ShellEnd {
    /// Exit of the script, and the end of its output, if there is any.
    Exited(Exit, Option<String>),
    /// Reason why the script could not be started.
    NotStarted(String),
}

/// Reason why the commands did not all run.
enum CommandFailure {
    /// The phase cannot go on.
    Phase(String),
    /// A command took longer than it or the phase may.
    TimedOut(String),
    /// The orchestrator cannot: a file of its own cannot be written.
    Run(String),
}

impl CommandFailure {
    fn cause(&self) -> Option<FailureCause> {
        match self {
            Self::TimedOut(_) => Some(FailureCause::Timeout),
            Self::Phase(_) | Self::Run(_) => None,
        }
    }

    fn into_reason(self) -> String {
        match self {
            Self::Phase(reason) | Self::TimedOut(reason) | Self::Run(reason) => reason,
        }
    }
}

impl From<FsError> for CommandFailure {
    fn from(error: FsError) -> Self {
        Self::Run(error.to_string())
    }
}

impl From<SignalWriteError> for CommandFailure {
    fn from(error: SignalWriteError) -> Self {
        Self::Run(error.to_string())
    }
}

struct Runner<'a> {
    shared: &'a Shared,
    phase: &'a Phase,
    iteration: u32,
    /// The channel of an exec phase, once it is open.
    channel: Option<SignalWriter>,
    /// Working directory of its commands.
    workspace: Utf8PathBuf,
    /// Commands that exited; others that they started may still run until the phase ends.
    left: Vec<Box<dyn Running>>,
}

impl Runner<'_> {
    async fn run(&mut self, routed_by: Option<PhaseId>) -> Result<Vec<CommandResult>, CommandFailure> {
        self.shared.prepare_worktree(&self.phase.name, None).await.map_err(CommandFailure::Phase)?;
        let exec = self.phase.kind == PhaseKind::Exec;
        let limit = self.phase.timeout.filter(|_| exec).unwrap_or(self.shared.plan.timing.phase_timeout);
        let deadline = Instant::now() + limit;
        let mut results = Vec::new();
        for (n, command) in self.phase.commands.iter().enumerate() {
            let command_results = self.run_command(n, command, deadline, limit).await?;
            let failed = command_results.iter().any(|r| !r.pass);
            for result in command_results {
                // The end of the phase says of a single command how it ended, but not that it was skipped.
                let is_one_of_many = self.phase.commands.len() > 1 || command.scope == Scope::Repo;
                if is_one_of_many || result.was_skipped() || self.shared.plan.records_commands {
                    let phase = self.phase.name.clone();
                    self.shared.send(RunEvent::CommandFinished { phase, result: result.clone() });
                }
                results.push(result);
            }
            if exec && failed && command.escalate_on_fail {
                break;
            }
            if exec && failed {
                self.shared
                    .warn(&self.phase.name, format!("command `{}` failed; the phase goes on", command.name));
            }
        }
        let dir = self.shared.dir();
        if !self.phase.commands.is_empty() {
            write_command_results(dir, &self.phase.name, &results)?;
        }
        if exec {
            self.finish_exec(&results, routed_by).await?;
        }
        Ok(results)
    }

    /// The channel of the phase, in which it has said that it began.
    fn channel(&mut self) -> Result<&mut SignalWriter, CommandFailure> {
        let channel = match self.channel.take() {
            Some(channel) => channel,
            None => {
                let path = self.shared.dir().signal_file(&self.phase.name);
                // What an earlier activation said was cleared when this one was recorded.
                let mut channel = SignalWriter::open(&path, DispatchType::Phase)?;
                channel.write(ChannelBody::Ok)?;
                channel
            }
        };
        Ok(self.channel.insert(channel))
    }

    /// Handoffs and terminal message of an exec phase, as its agent would write them (docs/team-yml.md).
    async fn finish_exec(
        &mut self,
        results: &[CommandResult],
        routed_by: Option<PhaseId>,
    ) -> Result<(), CommandFailure> {
        let workflow = self.shared.workflow();
        let data = exec_data(results);
        let word = |r: &CommandResult| match (r.skipped, r.pass) {
            (Some(true), _) => "skipped",
            (_, true) => "pass",
            (_, false) => "FAIL",
        };
        let text = results.iter().map(|r| format!("- {}: {}", word(r), r.label()));
        let text = text.collect::<Vec<_>>().join("\n");
        let envelope = Envelope::standard(self.phase.name.clone(), "exec", Some(data.clone()), Some(text));
        let to = self.phase.dependents.iter().chain(&routed_by).map(|&to| &workflow.phase(to).name);
        let result = self.shared.plan.result_channel(self.phase);
        let channels: Vec<Utf8PathBuf> =
            to.chain(&result).map(|to| self.shared.dir().channel(&self.phase.name, to)).collect();
        let many = channels.len() > MANY_CHANNELS;
        let write = move || write_handoffs(channels.iter().map(Utf8PathBuf::as_path), &envelope);
        if many {
            // Meanwhile other phases go on.
            spawn_blocking(write).await.map_err(|error| CommandFailure::Run(error.to_string()))??;
        } else {
            write()?;
        }
        let fatal = results
            .iter()
            .find(|r| !r.pass && self.phase.commands.iter().any(|c| c.name == r.name && c.escalate_on_fail));
        let body = match fatal {
            Some(result) => {
                let error = format!("command `{}` failed", result.label());
                ChannelBody::Error { error, usage: None, limited: None }
            }
            None => ChannelBody::Complete { result: Some(data.into()) },
        };
        Ok(self.channel()?.write(body)?)
    }

    async fn run_command(
        &mut self,
        n: usize,
        command: &Command,
        deadline: Instant,
        limit: Duration,
    ) -> Result<Vec<CommandResult>, CommandFailure> {
        let workspace = self.workspace.clone();
        let dirs = match command.scope {
            Scope::Workspace => vec![workspace],
            Scope::Repo => repositories(&workspace),
        };
        let mut results = Vec::with_capacity(dirs.len());
        for dir in dirs {
            results.push(self.run_in(n, command, &dir, deadline, limit).await?);
        }
        Ok(results)
    }

    async fn run_in(
        &mut self,
        n: usize,
        command: &Command,
        dir: &Utf8Path,
        deadline: Instant,
        limit: Duration,
    ) -> Result<CommandResult, CommandFailure> {
        let mut result = CommandResult::new(command.name.clone(), true);
        result.run = Some(command.run.clone());
        if dir != self.workspace {
            result.extra.insert("repo".to_owned(), self.repository(dir).into());
        }
        let phase = self.phase.name.as_str();
        if let Some(pass) = self.shared.plan.command_script.result(phase, &command.name, self.iteration) {
            return self.scripted(result, command, pass);
        }
        let log = self.log_file(n, command, dir);
        // The condition counts for the time of the command.
        let now = Instant::now();
        let (deadline, limit) = match command.timeout {
            Some(own) if now + own < deadline => (now + own, own),
            _ => (deadline, limit),
        };
        if let Some(condition) = &command.condition {
            let problem = match self.shell(&command.name, condition, dir, &log, deadline, limit).await {
                Ok(ShellEnd::Exited(exit, _)) if exit.success() => None,
                Ok(ShellEnd::Exited(exit, output)) => {
                    let Some(problem) = unevaluated(exit, output.as_deref().unwrap_or_default()) else {
                        result.skipped = Some(true);
                        return Ok(result);
                    };
                    Some(problem)
                }
                Ok(ShellEnd::NotStarted(reason)) => Some(reason),
                Err(CommandFailure::TimedOut(reason)) if command.timeout == Some(limit) => Some(reason),
                Err(trouble) => return Err(trouble),
            };
            if let Some(problem) = problem {
                not_started(&mut result, format!("its condition could not be evaluated: {problem}"));
                return Ok(result);
            }
        }
        let phase = self.phase.name.clone();
        self.shared.send(RunEvent::CommandStarted { phase, command: command.name.clone() });
        let started = Instant::now();
        let outcome = self.shell(&command.name, &command.run, dir, &log, deadline, limit).await;
        result.duration_ms = Some(u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX));
        match outcome {
            Ok(ShellEnd::NotStarted(reason)) => {
                not_started(&mut result, reason);
                Ok(result)
            }
            Ok(ShellEnd::Exited(exit, tail)) => {
                result.pass = exit.success();
                if !result.pass && tail.as_deref().is_some_and(lacks_terminal) {
                    self.shared.warn(&self.phase.name, format!("command `{}` {NO_TERMINAL}", command.name));
                }
                match exit {
                    Exit::Code(code) => result.exit_code = Some(code.into()),
                    Exit::Signal(signal) => drop(result.extra.insert("signal".to_owned(), signal.into())),
                }
                result.log_file = tail.as_ref().map(|_| self.shared.dir().relative(&log).to_string());
                result.output_tail = tail;
                Ok(result)
            }
            // A command's own limit is a failed command; the phase's limit ends the phase.
            Err(CommandFailure::TimedOut(reason)) if command.timeout == Some(limit) => {
                result.pass = false;
                result.output_tail = Some(reason);
                result.extra.insert("timed_out".to_owned(), true.into());
                Ok(result)
            }
            Err(trouble) => Err(trouble),
        }
    }

    /// Returns the result of a command that is not run. Its templates are resolved as if it were.
    fn scripted(
        &mut self,
        mut result: CommandResult,
        command: &Command,
        pass: bool,
    ) -> Result<CommandResult, CommandFailure> {
        let values = self.shared.values(self.phase);
        for script in command.condition.iter().chain([&command.run]) {
            resolve_script(script, &values).map_err(|error| {
                CommandFailure::Phase(format!("command `{}` cannot start: {error}", command.name))
            })?;
        }
        let phase = self.phase.name.clone();
        self.shared.send(RunEvent::CommandStarted { phase, command: command.name.clone() });
        (result.pass, result.exit_code, result.duration_ms) = (pass, Some(i64::from(!pass)), Some(0));
        result.extra.insert("scripted".to_owned(), true.into());
        Ok(result)
    }

    /// Runs a script to its end.
    async fn shell(
        &mut self,
        name: &str,
        script: &str,
        dir: &Utf8Path,
        log: &Utf8Path,
        deadline: Instant,
        limit: Duration,
    ) -> Result<ShellEnd, CommandFailure> {
        let script = resolve_script(script, &self.shared.values(self.phase))
            .map_err(|e| CommandFailure::Phase(format!("command `{name}` cannot start: {e}")))?;
        // The files of large values are there until the script has ended.
        let script = match values::prepare(script, &self.shared.dir().messages()) {
            Ok(script) => script,
            Err(error) => return Ok(ShellEnd::NotStarted(error.to_string())),
        };
        let mut env: BTreeMap<String, String> = self.shared.environment(self.phase.name.as_str());
        env.extend(script.env.clone());
        self.shared
            .put_trace(&mut env, |trace| trace.command_span(&self.phase.name, name, self.repository(dir)));
        let job = Job {
            title: self.phase.name.to_string(),
            program: SHELL.to_owned(),
            args: vec!["-c".to_owned(), script.text.clone()],
            env,
            dir: dir.to_owned(),
            stdin: None,
            log: log.to_owned(),
        };
        let job = self.shared.confine(job, self.phase, None).map_err(CommandFailure::Phase)?;
        let launched = self.shared.launch(&job).await;
        if self.phase.kind == PhaseKind::Exec {
            // While the command works, not before it begins.
            self.channel()?;
        }
        let mut process = match launched {
            Ok(process) => process,
            Err(error) => return Ok(ShellEnd::NotStarted(error.to_string())),
        };
        let grace = self.shared.plan.timing.kill_grace;
        let mut deadline = Deadline::new(deadline);
        let exit = loop {
            tokio::select! {
                exit = process.wait() => break exit,
                () = tokio::time::sleep_until(deadline.due()) => {
                    let exit = tokio::time::timeout(NOTICE, process.wait()).await.ok();
                    match (deadline.expired(Instant::now(), exit.is_some()), exit) {
                        (TimeoutDecision::Ended, Some(exit)) => break exit,
                        (TimeoutDecision::Ended, None) | (TimeoutDecision::Wait, _) => {}
                        (TimeoutDecision::TimedOut, _) => {
                            process.end(grace).await;
                            let reason = format!("command `{name}` did not end within {}", show(limit));
                            return Err(CommandFailure::TimedOut(reason));
                        }
                    }
                }
                () = self.shared.stop.cancelled() => {
                    process.end(grace).await;
                    return Err(CommandFailure::Phase("stopped".to_owned()));
                }
            }
        };
        let exit = exit.map_err(|e| {
            CommandFailure::Phase(format!("the exit status of command `{name}` is unknown: {e}"))
        })?;
        if let Some(reason) = process.start_error() {
            return Ok(ShellEnd::NotStarted(format!("cannot start {SHELL}: {reason}")));
        }
        let tail = process.output_tail().await;
        let tail = process.has_output().then_some(tail);
        self.left.push(process);
        Ok(ShellEnd::Exited(exit, tail))
    }

    /// Directory of a command relative to the workspace: empty for one that does not run in each repository.
    fn repository<'d>(&self, dir: &'d Utf8Path) -> &'d str {
        dir.strip_prefix(&self.workspace).unwrap_or(dir).as_str()
    }

    fn log_file(&self, n: usize, command: &Command, dir: &Utf8Path) -> Utf8PathBuf {
        let slug = |text: &str| -> String {
            let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
            text.chars().map(plain).take(40).collect()
        };
        let name = format!("{}.{}.{}-{}", self.phase.name, self.iteration, n + 1, slug(&command.name));
        let repo = if dir == self.workspace {
            String::new()
        } else {
            // Repositories that differ keep names that do.
            format!(".{}", dir.file_name().unwrap_or_default())
        };
        self.shared.dir().logs().join(format!("{name}{repo}.log"))
    }
}

/// Makes a result that of a command that could not be started.
fn not_started(result: &mut CommandResult, reason: String) {
    result.pass = false;
    result.extra.insert("not_started".to_owned(), true.into());
    result.output_tail = Some(reason);
}

/// `90 s`, `20 min`.
pub(super) fn show(duration: Duration) -> String {
    match duration.as_secs() {
        seconds if seconds >= 120 && seconds % 60 == 0 => format!("{} min", seconds / 60),
        seconds => format!("{seconds} s"),
    }
}

/// Data of the handoff of an exec phase. A command that was skipped counts neither as passed nor as failed.
fn exec_data(results: &[CommandResult]) -> Object {
    let failed = results.iter().filter(|r| !r.pass).count();
    let skipped = results.iter().filter(|r| r.skipped == Some(true)).count();
    let row = |r: &CommandResult| {
        let mut row =
            json!({"name": r.name, "pass": r.pass, "exit_code": r.exit_code, "duration_ms": r.duration_ms});
        if let Some(repo) = r.extra.get("repo") {
            row["repo"] = repo.clone();
        }
        if r.skipped == Some(true) {
            row["pass"] = serde_json::Value::Null;
            row["skipped"] = true.into();
        }
        row
    };
    let rows: Vec<_> = results.iter().map(row).collect();
    let mut data = Object::new();
    data.insert("results".to_owned(), rows.into());
    data.insert("all_passed".to_owned(), (failed == 0).into());
    data.insert("total".to_owned(), results.len().into());
    data.insert("failed".to_owned(), failed.into());
    if skipped > 0 {
        data.insert("skipped".to_owned(), skipped.into());
    }
    data
}

/// The git repositories of a workspace: itself where it is one, else those directly in it. A workspace without any
/// counts as one (docs/team-yml.md).
#[must_use]
pub fn repositories(workspace: &Utf8Path) -> Vec<Utf8PathBuf> {
    let is_repo = |dir: &Utf8Path| dir.join(".git").exists();
    if is_repo(workspace) {
        return vec![workspace.to_owned()];
    }
    let entries = workspace.read_dir_utf8().into_iter().flatten().filter_map(Result::ok);
    let mut found: Vec<Utf8PathBuf> =
        entries.map(camino::Utf8DirEntry::into_path).filter(|dir| is_repo(dir)).collect();
    found.sort();
    if found.is_empty() { vec![workspace.to_owned()] } else { found }
}
