//! Standard input of child processes.

use std::io::{self, Write};
use std::process::ChildStdin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Standard input of a program, which another thread can close at any time.
#[derive(Debug)]
pub struct ChildInput {
    pipe: Mutex<Option<ChildStdin>>,
    is_closed: AtomicBool,
}

/// Interval in which a writer that waits for the program looks whether the input was closed.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

impl ChildInput {
    /// Takes the pipe. Writes to it wait for the program no longer than until [`ChildInput::close`].
    ///
    /// # Errors
    /// Returns an error if the pipe cannot be set up.
    pub fn new(pipe: Option<ChildStdin>) -> io::Result<Self> {
        if let Some(pipe) = &pipe {
            rustix::io::ioctl_fionbio(pipe, true)?;
        }
        Ok(Self { is_closed: AtomicBool::new(pipe.is_none()), pipe: Mutex::new(pipe) })
    }

    /// Writes what `make` returns. Returns `false` if the input is closed or broken; `make` is not called if it was closed before.
    pub fn write(&self, make: impl FnOnce() -> Vec<u8>) -> bool {
        let mut pipe = self.pipe.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(open) = pipe.as_mut().filter(|_| !self.is_closed.load(Ordering::SeqCst)) else {
            return false;
        };
        let bytes = make();
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            if self.is_closed.load(Ordering::SeqCst) {
                return false;
            }
            match open.write(rest) {
                Ok(written) => rest = &rest[written..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let _ = poll(&mut [PollFd::new(&*open, PollFlags::OUT)], Some(&LOOK));
                }
                Err(_) => return false,
            }
        }
        true
    }

    /// Closes the input. A write under way ends within 100 ms.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        drop(self.pipe.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;
    use crate::{FollowLimits, follow_child};

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn input_can_be_closed_while_a_write_waits() {
        let mut child = shell("exec sleep 600").stdin(Stdio::piped()).spawn().expect("sh starts");
        let input = ChildInput::new(child.stdin.take()).expect("a pipe");
        assert!(input.write(|| b"little".to_vec()));
        std::thread::scope(|scope| {
            // More than a pipe holds, for a program that reads nothing.
            let writer = scope.spawn(|| input.write(|| vec![b'x'; 1 << 20]));
            input.close();
            assert!(!writer.join().expect("it ends"));
        });
        assert!(!input.write(|| panic!("a message that is not sent stays")));
        child.kill().and_then(|()| child.wait()).expect("it ends");
    }

    #[test]
    fn input_is_written_whole() {
        let mut child =
            shell("wc -c").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("sh starts");
        let input = ChildInput::new(child.stdin.take()).expect("a pipe");
        assert!(input.write(|| vec![b'x'; 1 << 20]));
        input.close();
        let mut lines = Vec::new();
        follow_child(&mut child, &FollowLimits::default(), |line| lines.push(format!("{line:?}")))
            .expect("it ends");
        assert!(lines.concat().contains("49, 48, 52, 56, 53, 55, 54"), "1048576: {lines:?}");
    }
}
