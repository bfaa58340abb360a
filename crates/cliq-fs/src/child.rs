//! Child processes whose output is read without waiting for its end.
//!
//! A program may leave a process behind that holds its output open: a server, a daemon of git, a credential cache. So the end of the
//! program counts, not the end of its pipes. What was in the pipes at that moment is read, and what else comes within a short time.

use std::io::{self, PipeReader, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::{Child, ChildStderr, ChildStdout, ExitStatus};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

/// Time in which output is still read after the end of a program, while another process holds it open.
pub const DRAIN: Duration = Duration::from_secs(2);
/// Size of a single read, in bytes.
const CHUNK: usize = 64 * 1024;

/// Limits for [`follow_child`].
#[derive(Debug, Clone, Copy)]
pub struct FollowLimits {
    /// Maximum length of a line of standard output, in bytes. Longer lines are skipped.
    pub line: usize,
    /// Number of trailing bytes kept of standard error.
    pub errors: usize,
    /// Time in which output is still read after the end of the program.
    pub drain: Duration,
}

impl Default for FollowLimits {
    /// Returns limits of 64 MiB for a line, 4 KiB for standard error, and [`DRAIN`].
    fn default() -> Self {
        Self { line: 64 << 20, errors: 4096, drain: DRAIN }
    }
}

/// Line of standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputLine<'a> {
    /// A line without its line end. The last one may have had none.
    Whole(&'a [u8]),
    /// A line that exceeds the limit.
    TooLong {
        /// Length in bytes.
        bytes: u64,
    },
}

/// End of a program that was followed.
#[derive(Debug)]
pub struct FollowedChild {
    /// Exit status.
    pub status: ExitStatus,
    /// End of standard error.
    pub errors: Vec<u8>,
    /// Whether another process held the output open when reading stopped.
    pub is_held: bool,
}

/// Follows a program to its end: calls `on_line` for each line of standard output, and keeps the end of standard error.
///
/// Memory is bounded by the limits, time by the life of the program and `limits.drain`. Output that the program itself has written
/// is read in full. Standard input is the caller's.
///
/// # Errors
/// Returns an error if the pipes cannot be read or the program cannot be waited for.
pub fn follow_child(
    child: &mut Child,
    limits: &FollowLimits,
    mut on_line: impl FnMut(OutputLine<'_>),
) -> io::Result<FollowedChild> {
    let (mut lines, mut errors) = (Lines::new(limits.line), Tail::new(limits.errors));
    let is_held = pump(child, limits.drain, &mut |stream, bytes| match stream {
        Stream::Output => lines.feed(bytes, &mut on_line),
        Stream::Errors => errors.push(bytes),
    })?;
    lines.finish(&mut on_line);
    Ok(FollowedChild { status: child.wait()?, errors: errors.into_bytes(), is_held })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stream {
    Output,
    Errors,
}

/// Receiver of output.
type Sink<'a> = dyn FnMut(Stream, &[u8]) + 'a;

/// A pipe of a program, until its end.
struct Source<R> {
    pipe: Option<R>,
    stream: Stream,
    /// Number of bytes that the program itself wrote and that are still to be read. Known once it has ended.
    owed: u64,
}

impl<R: Read + AsFd> Source<R> {
    fn new(pipe: Option<R>, stream: Stream) -> Self {
        Self { pipe, stream, owed: 0 }
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(AsFd::as_fd)
    }

    /// Takes note of the bytes in the pipe.
    fn note_owed(&mut self) {
        self.owed = self.fd().and_then(|fd| rustix::io::ioctl_fionread(fd).ok()).unwrap_or(0);
    }

    /// Reads once.
    fn read(&mut self, buffer: &mut [u8], sink: &mut Sink<'_>) -> io::Result<()> {
        let Some(pipe) = &mut self.pipe else { return Ok(()) };
        match pipe.read(buffer) {
            Ok(0) => {
                self.pipe = None;
                self.owed = 0;
            }
            Ok(n) => {
                self.owed = self.owed.saturating_sub(n as u64);
                sink(self.stream, &buffer[..n]);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

/// Reads both pipes until the program has ended and they are at their end, or the time after that is over. Returns whether another process
/// holds them open.
fn pump(child: &mut Child, drain: Duration, sink: &mut Sink<'_>) -> io::Result<bool> {
    let mut output: Source<ChildStdout> = Source::new(child.stdout.take(), Stream::Output);
    let mut errors: Source<ChildStderr> = Source::new(child.stderr.take(), Stream::Errors);
    let mut exit = Some(watch_exit(child)?);
    let mut deadline = None;
    let mut buffer = vec![0; CHUNK];
    loop {
        if exit.is_none() {
            let is_over = deadline.is_some_and(|deadline: Instant| Instant::now() >= deadline);
            let is_at_end = output.pipe.is_none() && errors.pipe.is_none();
            if is_at_end || (is_over && output.owed == 0 && errors.owed == 0) {
                return Ok(!is_at_end);
            }
        }
        let wait = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let ready = wait_for([output.fd(), errors.fd(), exit.as_ref().map(AsFd::as_fd)], wait)?;
        if ready[0] {
            output.read(&mut buffer, sink)?;
        }
        if ready[1] {
            errors.read(&mut buffer, sink)?;
        }
        if ready[2] {
            exit = None;
            deadline = Instant::now().checked_add(drain);
            output.note_owed();
            errors.note_owed();
        }
    }
}

/// Returns the read end of a pipe that is closed when a program ends. The program is not reaped, so that its number stays taken.
fn watch_exit(child: &Child) -> io::Result<PipeReader> {
    let (reader, writer) = io::pipe()?;
    let pid = Pid::from_child(child);
    std::thread::Builder::new().name("exit".to_owned()).spawn(move || {
        let wait = || waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
        while matches!(wait(), Err(rustix::io::Errno::INTR)) {}
        drop(writer);
    })?;
    Ok(reader)
}

/// Waits for any of these to be readable or closed.
fn wait_for(sources: [Option<BorrowedFd<'_>>; 3], wait: Option<Duration>) -> io::Result<[bool; 3]> {
    let open = sources.iter().enumerate().filter_map(|(n, fd)| Some((n, (*fd)?)));
    let (places, mut fds): (Vec<usize>, Vec<PollFd<'_>>) =
        open.map(|(n, fd)| (n, PollFd::from_borrowed_fd(fd, PollFlags::IN))).unzip();
    let wait = wait.and_then(|wait| Timespec::try_from(wait).ok());
    let mut ready = [false; 3];
    match poll(&mut fds, wait.as_ref()) {
        Ok(_) => {}
        Err(rustix::io::Errno::INTR) => return Ok(ready),
        Err(error) => return Err(error.into()),
    }
    for (place, fd) in places.into_iter().zip(&fds) {
        ready[place] = !fd.revents().is_empty();
    }
    Ok(ready)
}

/// Cutter of an output into lines.
struct Lines {
    limit: usize,
    partial: Vec<u8>,
    /// Length of the line that exceeds the limit, so far.
    skipped: u64,
}

impl Lines {
    fn new(limit: usize) -> Self {
        Self { limit, partial: Vec::new(), skipped: 0 }
    }

    fn feed(&mut self, mut bytes: &[u8], on_line: &mut dyn FnMut(OutputLine<'_>)) {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let (head, rest) = bytes.split_at(end);
            bytes = &rest[1..];
            self.push(head);
            self.end(on_line);
        }
        self.push(bytes);
    }

    fn push(&mut self, bytes: &[u8]) {
        if self.skipped > 0 {
            self.skipped += bytes.len() as u64;
        } else if self.partial.len() + bytes.len() > self.limit {
            self.skipped = (self.partial.len() + bytes.len()) as u64;
            self.partial = Vec::new();
        } else {
            self.partial.extend_from_slice(bytes);
        }
    }

    fn end(&mut self, on_line: &mut dyn FnMut(OutputLine<'_>)) {
        match std::mem::take(&mut self.skipped) {
            0 => {
                let line = self.partial.strip_suffix(b"\r").unwrap_or(&self.partial);
                on_line(OutputLine::Whole(line));
                self.partial.clear();
            }
            bytes => on_line(OutputLine::TooLong { bytes }),
        }
    }

    /// Ends the last line if it has no line end.
    fn finish(mut self, on_line: &mut dyn FnMut(OutputLine<'_>)) {
        if self.skipped > 0 || !self.partial.is_empty() {
            self.end(on_line);
        }
    }
}

/// Last bytes of an output.
struct Tail {
    limit: usize,
    bytes: Vec<u8>,
}

impl Tail {
    fn new(limit: usize) -> Self {
        Self { limit, bytes: Vec::new() }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        if self.bytes.len() > 2 * self.limit {
            self.bytes.drain(..self.bytes.len() - self.limit);
        }
    }

    fn into_bytes(mut self) -> Vec<u8> {
        self.bytes.drain(..self.bytes.len().saturating_sub(self.limit));
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, Stdio};

    use super::*;

    /// Longer than any test waits.
    const HOLDER: &str = "sleep 600 & holder=$!;";

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    fn follow(script: &str, limits: &FollowLimits) -> (Vec<String>, FollowedChild) {
        let piped = |command: &mut Command| {
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
        };
        let mut child = piped(&mut shell(script)).expect("sh starts");
        let mut lines = Vec::new();
        let end = follow_child(&mut child, limits, |line| match line {
            OutputLine::Whole(line) => lines.push(String::from_utf8_lossy(line).into_owned()),
            OutputLine::TooLong { bytes } => lines.push(format!("[{bytes}]")),
        });
        (lines, end.expect("it ends"))
    }

    /// Ends the process whose number a script printed.
    fn end_holder(pid: &str) {
        let pid = Pid::from_raw(pid.trim().parse().expect("a number")).expect("a process");
        rustix::process::kill_process(pid, rustix::process::Signal::KILL)
            .expect("it is alive: it held the output");
    }

    const BRIEF: FollowLimits = FollowLimits { line: 20, errors: 5, drain: Duration::from_millis(50) };

    #[test]
    fn end_of_the_program_counts_while_another_holds_its_output() {
        for held in ["", ">/dev/null", "2>/dev/null"] {
            let script = format!("sleep 600 {held} & echo $!; echo result; echo why >&2; exit 3");
            let (lines, end) = follow(&script, &BRIEF);
            assert_eq!(lines[1..], ["result"], "{held}");
            assert_eq!(
                (end.status.code(), &end.errors[..], end.is_held),
                (Some(3), &b"why\n"[..], true),
                "{held}"
            );
            end_holder(&lines[0]);
        }
    }

    #[test]
    fn all_that_the_program_wrote_is_read_though_the_time_is_over() {
        // More than one read, in a pipe that another process holds open.
        let script = format!("{HOLDER} echo $holder; head -c 60000 /dev/zero | tr '\\0' x; echo; echo end");
        let limits = FollowLimits { line: 1 << 20, drain: Duration::ZERO, ..BRIEF };
        let (lines, end) = follow(&script, &limits);
        assert_eq!((lines[1].len(), lines[2].as_str(), end.is_held), (60_000, "end", true));
        end_holder(&lines[0]);
    }

    #[test]
    fn lines_are_cut_and_bounded() {
        let (lines, end) = follow(
            "printf 'a\\r\\n\\n'; printf '%030d\\n' 7; printf '%020d\\n' 8; printf last; printf 1234567 >&2",
            &BRIEF,
        );
        assert_eq!(lines, ["a", "", "[30]", "00000000000000000008", "last"]);
        assert_eq!((&end.errors[..], end.is_held, end.status.success()), (&b"34567"[..], false, true));
        let (lines, _) = follow("printf '%030d' 7", &BRIEF);
        assert_eq!(lines, ["[30]"]);
    }

    #[test]
    fn signals_are_reported() {
        let (_, end) = follow("kill -KILL $$", &BRIEF);
        assert_eq!(end.status.signal(), Some(9));
    }
}
