//! Process that tools run in: requests and results as lines of JSON on its standard input and output.
//!
//! The caller starts it in a sandbox. It ends with its input, and all commands end with it.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use cliq_protocol::{ToolCall, ToolResult};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::tools::{self, Cancel, PageReader, Workspace};

/// Signal by which the orchestrator asks processes to end.
const TERM: i32 = 15;
/// Time that the process has to end after its input has ended.
const GRACE: Duration = Duration::from_secs(1);

/// Request to run a tool.
#[derive(Debug, Serialize, Deserialize)]
struct Request {
    id: String,
    name: String,
    arguments: Value,
    /// Maximum size of the result in bytes.
    limit: usize,
}

/// Serves requests from `input` until it ends, with a reader of pages if there is one. Then the commands end that still run.
///
/// # Errors
/// Returns an error if the input cannot be read.
pub fn serve(
    workspace: &Workspace,
    pages: Option<&(dyn PageReader + Sync)>,
    input: impl BufRead,
    output: impl Write + Send,
) -> io::Result<()> {
    let cancel = Cancel::default();
    end_with_signal(&cancel)?;
    let output = Mutex::new(output);
    std::thread::scope(|scope| {
        let mut served = Ok(());
        for line in input.lines() {
            let line = match line {
                Ok(line) => line,
                Err(error) => {
                    served = Err(error);
                    break;
                }
            };
            let Ok(request) = serde_json::from_str::<Request>(&line) else { continue };
            let (output, cancel) = (&output, &cancel);
            scope.spawn(move || {
                let started = Instant::now();
                let Request { id, name, arguments, limit } = request;
                let outcome =
                    tools::run(&name, &arguments, workspace, pages.map(|pages| pages as _), limit, cancel);
                let result =
                    ToolResult { duration_ms: Some(millis(started)), ..ToolResult::new(id, outcome) };
                let mut line = serde_json::to_vec(&result).unwrap_or_default();
                line.push(b'\n');
                let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
                // A caller that is gone needs no result.
                let _ = output.write_all(&line).and_then(|()| output.flush());
            });
        }
        cancel.cancel();
        served
    })
}

/// Ends commands, and then this process, at the signal to end.
fn end_with_signal(cancel: &Cancel) -> io::Result<()> {
    let (mut reader, writer) = UnixStream::pair()?;
    signal_hook::low_level::pipe::register(TERM, writer)?;
    let cancel = cancel.clone();
    std::thread::spawn(move || {
        if io::Read::read(&mut reader, &mut [0]).is_ok() {
            cancel.cancel();
            let _ = signal_hook::low_level::emulate_default_handler(TERM);
        }
    });
    Ok(())
}

fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// Command that starts the process: a program that calls [`serve`], with the sandbox before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostCommand {
    /// Program.
    pub program: String,
    /// Arguments.
    pub arguments: Vec<String>,
    /// Working directory.
    pub dir: Utf8PathBuf,
    /// Environment variables that it must not have, such as those with keys.
    pub without: Vec<String>,
}

/// Process that tools run in, from the caller's side. Starts with the first call, and anew after it has died.
#[derive(Debug)]
pub struct ToolHost {
    command: HostCommand,
    running: Option<Running>,
}

#[derive(Debug)]
struct Running {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    complaint: Arc<Mutex<String>>,
}

impl ToolHost {
    /// Makes a handle. Nothing is started yet.
    #[must_use]
    pub fn new(command: HostCommand) -> Self {
        Self { command, running: None }
    }

    /// Starts the process, so that the first call does not wait for it. A failure is reported by the first call.
    pub fn start(&mut self) {
        if self.running.is_none() {
            self.running = Running::start(&self.command).ok();
        }
    }

    /// Runs calls at the same time and passes each result to `each` as it comes. `limit` is the maximum size of a result in bytes.
    ///
    /// A call whose process dies has a result that says so: whether the tool had an effect is unknown.
    pub fn run(&mut self, calls: &[ToolCall], limit: usize, mut each: impl FnMut(ToolResult)) {
        let mut open: BTreeMap<&str, &ToolCall> = calls.iter().map(|call| (call.id.as_str(), call)).collect();
        if let Err(why) = self.run_until(&mut open, limit, &mut each) {
            let why = match self.running.take() {
                Some(running) => running.end(why),
                None => why,
            };
            for id in open.into_keys() {
                each(ToolResult::new(id, Err(why.clone())));
            }
        }
    }

    fn run_until(
        &mut self,
        open: &mut BTreeMap<&str, &ToolCall>,
        limit: usize,
        each: &mut impl FnMut(ToolResult),
    ) -> Result<(), String> {
        let running = match &mut self.running {
            Some(running) => running,
            none => none.insert(Running::start(&self.command)?),
        };
        let mut lines = Vec::new();
        for call in open.values() {
            let request = Request {
                id: call.id.clone(),
                name: call.name.clone(),
                arguments: Value::Object(call.arguments.clone()),
                limit,
            };
            serde_json::to_writer(&mut lines, &request).map_err(|error| error.to_string())?;
            lines.push(b'\n');
        }
        let ended = |error: &dyn std::fmt::Display| {
            format!("the process of the tools ended before the result; its effect is unknown ({error})")
        };
        let input = running.input.as_mut().ok_or_else(|| ended(&"its input is closed"))?;
        input.write_all(&lines).and_then(|()| input.flush()).map_err(|error| ended(&error))?;
        let mut line = String::new();
        while !open.is_empty() {
            line.clear();
            if !running.has_output().map_err(|error| ended(&error))? {
                return Err(ended(&"no further output"));
            }
            if running.output.read_line(&mut line).map_err(|error| ended(&error))? == 0 {
                return Err(ended(&"no further output"));
            }
            // Lines of others may come from a program that a tool started.
            let Ok(result) = serde_json::from_str::<ToolResult>(&line) else { continue };
            if open.remove(result.id.as_str()).is_some() {
                each(result);
            }
        }
        Ok(())
    }
}

impl Running {
    fn start(command: &HostCommand) -> Result<Self, String> {
        let mut starter = Command::new(&command.program);
        starter.args(&command.arguments).current_dir(&command.dir);
        for name in &command.without {
            starter.env_remove(name);
        }
        starter.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let failed = |error: io::Error| format!("the process of the tools cannot be started: {error}");
        let mut child = starter.spawn().map_err(failed)?;
        let missing = || failed(io::Error::other("it has no pipes"));
        let output = BufReader::new(child.stdout.take().ok_or_else(missing)?);
        let errors = child.stderr.take().ok_or_else(missing)?;
        let complaint = Arc::new(Mutex::new(String::new()));
        let said = Arc::clone(&complaint);
        std::thread::spawn(move || {
            for line in BufReader::new(errors).lines().map_while(Result::ok) {
                let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
                if said.len() < 2000 {
                    said.push_str(&line);
                    said.push('\n');
                }
            }
        });
        Ok(Self { input: child.stdin.take(), child, output, complaint })
    }

    /// Waits for output. Returns `false` if the process has ended without further output.
    ///
    /// The end of the output alone does not say so: a process that it started may hold it open, such as that of a sandbox which died during its start.
    #[cfg(target_os = "linux")]
    fn has_output(&self) -> io::Result<bool> {
        use rustix::event::{PollFd, PollFlags, poll};
        let pid = rustix::process::Pid::from_child(&self.child);
        if !self.output.buffer().is_empty() {
            return Ok(true);
        }
        // Without it, on old kernels, only the end of the output counts.
        let Ok(process) = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()) else {
            return Ok(true);
        };
        let mut both =
            [PollFd::new(self.output.get_ref(), PollFlags::IN), PollFd::new(&process, PollFlags::IN)];
        rustix::io::retry_on_intr(|| poll(&mut both, None))?;
        Ok(!both[0].revents().is_empty())
    }

    #[cfg(not(target_os = "linux"))]
    #[expect(clippy::unnecessary_wraps, clippy::unused_self, reason = "as on Linux")]
    fn has_output(&self) -> io::Result<bool> {
        Ok(true)
    }

    /// Ends the process. Returns the reason with its last words.
    fn end(mut self, why: String) -> String {
        drop(self.input.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
        let said = self.complaint.lock().unwrap_or_else(PoisonError::into_inner).trim().to_owned();
        if said.is_empty() { why } else { format!("{why}: {said}") }
    }
}

impl Drop for ToolHost {
    fn drop(&mut self) {
        let Some(mut running) = self.running.take() else { return };
        // The end of its input ends it, and its commands.
        drop(running.input.take());
        let until = Instant::now() + GRACE;
        while Instant::now() < until {
            if running.child.try_wait().is_ok_and(|status| status.is_some()) {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let _ = running.child.kill();
        let _ = running.child.wait();
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn process_that_ended_is_noticed_though_another_holds_its_output() {
        let dir = tempfile::tempdir().unwrap();
        let command = HostCommand {
            program: "/bin/sh".into(),
            arguments: vec!["-c".into(), "sleep 60 & echo $! > pid; exit 1".into()],
            dir: Utf8PathBuf::from_path_buf(dir.path().into()).unwrap(),
            without: Vec::new(),
        };
        let mut host = ToolHost::new(command);
        let call = serde_json::json!({"id": "a", "name": "list_files"});
        let mut results = Vec::new();
        host.run(&[serde_json::from_value(call).unwrap()], 1000, |result| results.push(result));
        let other = std::fs::read_to_string(dir.path().join("pid")).unwrap();
        let other = rustix::process::Pid::from_raw(other.trim().parse().unwrap()).unwrap();
        assert_eq!(rustix::process::kill_process(other, rustix::process::Signal::KILL), Ok(()));
        assert_eq!(results.len(), 1);
        assert!(results[0].is_error && results[0].text.contains("effect is unknown"), "{results:?}");
    }
}
