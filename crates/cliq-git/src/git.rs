//! The program `git`.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use crate::hooks;
use crate::{GitError, remove_local_variables};

/// Name of the program.
pub const PROGRAM: &str = "git";

/// Time limit of a call.
const TIMEOUT: Duration = Duration::from_secs(300);
/// Maximum number of bytes of an output.
const MAX_OUTPUT: u64 = 256 << 20;
/// Maximum number of bytes and of lines of an output that an error quotes.
const QUOTED_BYTES: u64 = 8 << 10;
const QUOTED_LINES: usize = 20;
/// Interval at which the size of an output is checked against its limit while git runs.
const SIZE_CHECK: Duration = Duration::from_millis(100);

/// Settings of each call: no other program than git is started by the configuration of a repository.
const SETTINGS: [&str; 6] = [
    "core.fsmonitor=false",
    "core.quotePath=false",
    "submodule.recurse=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "advice.addEmbeddedRepo=false",
];

/// A directory in which git runs, with settings and variables for its calls.
///
/// The end of the process is waited for, and not the end of its output: a background process that holds the output open
/// delays nothing. Hooks do not run unless [`Git::with_hooks`] allows them.
#[derive(Debug, Clone)]
pub struct Git {
    program: PathBuf,
    dir: PathBuf,
    settings: Vec<String>,
    env: Vec<(OsString, OsString)>,
    is_private: bool,
    hooks: bool,
    timeout: Duration,
    limit: u64,
}

/// End of a call.
struct Ended {
    /// Exit status, or `None` if git was killed since its output exceeded the limit.
    status: Option<ExitStatus>,
    stdout: File,
    stderr: File,
}

impl Git {
    /// Git in a directory.
    #[must_use]
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            program: PathBuf::from(PROGRAM),
            dir: dir.into(),
            settings: SETTINGS.map(str::to_owned).to_vec(),
            env: Vec::new(),
            is_private: false,
            hooks: false,
            timeout: TIMEOUT,
            limit: MAX_OUTPUT,
        }
    }

    /// Git with the same settings in another directory, and without a particular index.
    #[must_use]
    pub fn in_dir(&self, dir: impl Into<PathBuf>) -> Self {
        let mut git = self.clone();
        git.dir = dir.into();
        git.env.retain(|(name, _)| name != "GIT_INDEX_FILE");
        git
    }

    /// Working directory of the calls.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Uses the program at a path instead of the one that `PATH` names.
    #[must_use]
    pub fn with_program(mut self, program: impl Into<PathBuf>) -> Self {
        self.program = program.into();
        self
    }

    /// Sets a variable of the environment.
    #[must_use]
    pub fn with_env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Sets a value of the configuration, as `NAME=VALUE`.
    #[must_use]
    pub fn with_setting(mut self, setting: impl Into<String>) -> Self {
        self.settings.push(setting.into());
        self
    }

    /// Uses another index file.
    #[must_use]
    pub fn with_index(&self, index: &Path) -> Self {
        self.clone().with_env("GIT_INDEX_FILE", index)
    }

    /// Commits as cliq, whoever the user is, and without signatures.
    #[must_use]
    pub fn as_cliq(mut self) -> Self {
        for role in ["AUTHOR", "COMMITTER"] {
            self = self
                .with_env(format!("GIT_{role}_NAME"), "cliq")
                .with_env(format!("GIT_{role}_EMAIL"), "cliq@localhost");
        }
        self.with_setting("commit.gpgSign=false")
    }

    /// Runs the hooks of the repository. A hook that fails is [`GitError::Hook`].
    #[must_use]
    pub fn with_hooks(mut self) -> Self {
        self.hooks = true;
        self
    }

    /// Inherits no variable and reads no configuration of the user or the system.
    #[must_use]
    pub fn private(mut self) -> Self {
        self.is_private = true;
        self
    }

    /// Sets the deadline of each call.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the maximum number of bytes of an output.
    #[must_use]
    pub fn with_limit(mut self, bytes: u64) -> Self {
        self.limit = bytes;
        self
    }

    /// Runs git and returns its standard output.
    ///
    /// # Errors
    /// Returns an error if git cannot be started, fails, or exceeds a limit.
    pub fn run<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Result<Vec<u8>, GitError> {
        self.run_with(args, &[])
    }

    /// Runs git with an input and returns its standard output.
    ///
    /// # Errors
    /// As [`Git::run`].
    pub fn run_with<A: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = A>,
        input: &[u8],
    ) -> Result<Vec<u8>, GitError> {
        let args = owned(args);
        self.call(&args, input, &[0], Excess::Refused).map(|(_, output)| output)
    }

    /// Runs git and returns its standard output, cut at the limit.
    ///
    /// # Errors
    /// As [`Git::run`].
    pub(crate) fn run_cut<A: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = A>,
    ) -> Result<Vec<u8>, GitError> {
        self.call(&owned(args), &[], &[0], Excess::Cut).map(|(_, output)| output)
    }

    /// Runs git and returns its standard output as text without surrounding white space.
    ///
    /// # Errors
    /// As [`Git::run`].
    pub fn text<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Result<String, GitError> {
        self.run(args).map(|output| String::from_utf8_lossy(&output).trim().to_owned())
    }

    /// Runs a command for which the exit status 1 is an answer. Returns whether the status is 0, with the output.
    ///
    /// # Errors
    /// As [`Git::run`], for any other status.
    pub fn ask<A: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = A>,
    ) -> Result<(bool, Vec<u8>), GitError> {
        let args = owned(args);
        self.call(&args, &[], &[0, 1], Excess::Refused).map(|(status, output)| (status == 0, output))
    }

    fn call(
        &self,
        args: &[OsString],
        input: &[u8],
        allowed: &[i32],
        excess: Excess,
    ) -> Result<(i32, Vec<u8>), GitError> {
        let command = args.first().map(|arg| arg.to_string_lossy().into_owned()).unwrap_or_default();
        let trace = self.hooks.then(hooks::trace_file).transpose().map_err(GitError::Start)?;
        let mut process = self.command(args);
        if let Some(trace) = &trace {
            process.env("GIT_TRACE2_EVENT", trace.path());
        }
        let mut ended = self.wait(&mut process, &command, input)?;
        let code = ended.status.map_or(Some(0), |status| status.code());
        if let Some(code) = code.filter(|code| allowed.contains(code)) {
            let size = ended.stdout.seek(SeekFrom::End(0)).map_err(GitError::Start)?;
            if size > self.limit && excess == Excess::Refused {
                return Err(GitError::TooLarge { command, limit: self.limit });
            }
            return Ok((code, read_from(&mut ended.stdout, 0, self.limit).map_err(GitError::Start)?));
        }
        let mut output = quoted(&mut ended.stderr);
        if output.is_empty() {
            output = quoted(&mut ended.stdout);
        }
        if let Some(hook) = trace.and_then(|trace| hooks::failed(trace.path())) {
            return Err(GitError::Hook { command, hook, output });
        }
        Err(GitError::Failed { command, status: code, output })
    }

    fn command(&self, args: &[OsString]) -> Command {
        let mut command = Command::new(&self.program);
        if self.is_private {
            command.env_clear();
            command.envs([("GIT_CONFIG_NOSYSTEM", "1"), ("GIT_CONFIG_GLOBAL", "/dev/null")]);
        }
        remove_local_variables(&mut command);
        command.env_remove("GIT_EXTERNAL_DIFF").current_dir(&self.dir);
        command.envs([("GIT_TERMINAL_PROMPT", "0"), ("GIT_EDITOR", "true"), ("LC_ALL", "C")]);
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        for setting in &self.settings {
            command.args(["-c", setting]);
        }
        if !self.hooks {
            command.args(["-c", "core.hooksPath=/dev/null"]);
        }
        command.args(args);
        command
    }

    /// Starts git with files as input and output, and waits for its end.
    fn wait(&self, process: &mut Command, command: &str, input: &[u8]) -> Result<Ended, GitError> {
        let files = || -> io::Result<(Stdio, File, File)> {
            let stdin = if input.is_empty() {
                Stdio::null()
            } else {
                let mut file = tempfile::tempfile()?;
                file.write_all(input)?;
                file.seek(SeekFrom::Start(0))?;
                file.into()
            };
            Ok((stdin, tempfile::tempfile()?, tempfile::tempfile()?))
        };
        let (stdin, stdout, stderr) = files().map_err(GitError::Start)?;
        let clone = |file: &File| file.try_clone().map_err(GitError::Start);
        process.stdin(stdin).stdout(clone(&stdout)?).stderr(clone(&stderr)?);
        let mut child = process.spawn().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound if self.dir.is_dir() => GitError::NotFound,
            io::ErrorKind::NotFound => {
                GitError::Io { action: "enter", path: self.dir.clone(), source: error }
            }
            _ => GitError::Start(error),
        })?;
        let is_too_large = || stdout.metadata().is_ok_and(|metadata| metadata.len() > self.limit);
        let status = match end_of(&mut child, self.timeout, is_too_large).map_err(GitError::Start)? {
            End::Exited(status) => Some(status),
            End::TooLarge => None,
            End::Late => {
                let seconds = self.timeout.as_secs();
                return Err(GitError::TimedOut { command: command.to_owned(), seconds });
            }
        };
        Ok(Ended { status, stdout, stderr })
    }
}

/// Policy for an output that exceeds its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Excess {
    /// The call fails.
    Refused,
    /// The output is cut.
    Cut,
}

/// End of a process.
enum End {
    Exited(ExitStatus),
    /// Killed at its deadline.
    Late,
    /// Killed since its output is too large.
    TooLarge,
}

/// Waits for the end of a process. Kills it at its deadline, and if its output is too large.
fn end_of(child: &mut Child, timeout: Duration, is_too_large: impl Fn() -> bool) -> io::Result<End> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidData)?;
    let (ended, end) = mpsc::channel();
    // The process is not reaped here, so that its number stays its own until it was killed or has ended.
    std::thread::Builder::new().name("git".to_owned()).spawn(move || {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while waitid(WaitId::Pid(pid), options).is_err_and(|error| error == rustix::io::Errno::INTR) {}
        let _ = ended.send(());
    })?;
    let start = Instant::now();
    let killed = loop {
        let left = timeout.saturating_sub(start.elapsed());
        if end.recv_timeout(left.min(SIZE_CHECK)).is_ok() {
            break None;
        }
        if is_too_large() {
            break Some(End::TooLarge);
        }
        if start.elapsed() >= timeout {
            break Some(End::Late);
        }
    };
    if killed.is_some() {
        let _ = kill_process(pid, Signal::KILL);
        let _ = end.recv();
    }
    let status = child.wait()?;
    Ok(killed.unwrap_or(End::Exited(status)))
}

fn owned<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> Vec<OsString> {
    args.into_iter().map(|arg| arg.as_ref().to_owned()).collect()
}

fn read_from(file: &mut File, start: u64, limit: u64) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The last lines of an output.
fn quoted(file: &mut File) -> String {
    let size = file.seek(SeekFrom::End(0)).unwrap_or(0);
    let bytes = read_from(file, size.saturating_sub(QUOTED_BYTES), QUOTED_BYTES).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(QUOTED_LINES)..].join("\n")
}
