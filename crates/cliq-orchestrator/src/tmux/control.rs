//! A lasting conversation with a tmux server, in its control mode: a command costs a round trip and not a process.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use super::server::{Script, TmuxError, TmuxServer};

/// A client of a session that shows nothing, has no size, and carries commands.
#[derive(Debug)]
pub(super) struct Control {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Control {
    /// Joins the server's session.
    pub(super) fn join(server: &TmuxServer) -> io::Result<Self> {
        let mut command = server.command();
        command.args(["-C", "attach-session", "-t", server.session(), "-f", "no-output,ignore-size"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let mut control = Self { child, input: Some(input), output: BufReader::new(output) };
        // Joining is a command too.
        control.block()?.map_err(io::Error::other)?;
        Ok(control)
    }

    /// Runs a script. Gives what its commands print, one after the other.
    ///
    /// An error of the conversation itself is the outer one; nobody knows then how far the script came.
    pub(super) fn run(&mut self, script: &Script) -> io::Result<Result<String, TmuxError>> {
        let Some(line) = script.as_line() else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let input = self.input.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        input.write_all(line.as_bytes())?;
        input.flush()?;
        let mut printed = String::new();
        for _ in 0..script.commands() {
            match self.block()? {
                Ok(text) => printed.push_str(&text),
                // What follows in the script is not run.
                Err(message) => return Ok(Err(TmuxError::Refused(message))),
            }
        }
        Ok(Ok(printed))
    }

    /// The answer to one command. What the server tells unasked in between is for other clients.
    fn block(&mut self) -> io::Result<Result<String, String>> {
        let (mut text, mut inside) = (String::new(), false);
        loop {
            let mut line = Vec::new();
            if self.output.read_until(b'\n', &mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let line = String::from_utf8_lossy(&line);
            match line.split(' ').next().unwrap_or_default().trim_end() {
                "%begin" if !inside => inside = true,
                "%end" if inside => return Ok(Ok(text)),
                "%error" if inside => return Ok(Err(text.trim().to_owned())),
                "%exit" if !inside => return Err(io::ErrorKind::UnexpectedEof.into()),
                _ if inside => text.push_str(&line),
                _ => {}
            }
        }
    }
}

impl Drop for Control {
    /// Without input it leaves.
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
