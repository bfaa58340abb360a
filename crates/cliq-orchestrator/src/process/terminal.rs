//! Controlling terminals of jobs.

use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::OnceLock;

use process_wrap::std::{CommandWrap, CommandWrapper, ProcessSession};
use rustix::io::Errno;

/// Controlling terminal of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Terminal {
    /// None: a program that asks there fails at once.
    None,
    /// Terminal of the parent process: a pane of the job's own.
    Inherited,
}

impl Terminal {
    /// Puts a command into a process group of its own, and without a terminal into a session of its own.
    ///
    /// A session costs a copy of this process, so it is made only if this process has a terminal.
    pub(super) fn apply(self, command: &mut Command) -> io::Result<()> {
        if self == Self::None && has_terminal() {
            // This hook is all of `process-wrap` that is needed: its children wait for their whole groups.
            return ProcessSession.pre_spawn(command, &CommandWrap::from(Command::new("")));
        }
        command.process_group(0);
        Ok(())
    }
}

/// Puts a command that is about to start into a process group of its own and takes its controlling terminal away, as for
/// commands of a run: what asks there fails at once.
///
/// # Errors
/// Returns an error if the command cannot be prepared.
pub fn leave_terminal(command: &mut Command) -> io::Result<()> {
    Terminal::None.apply(command)
}

/// Whether this process has a controlling terminal.
fn has_terminal() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| match File::open("/dev/tty") {
        Ok(_) => true,
        Err(error) => !matches!(Errno::from_io_error(&error), Some(Errno::NXIO | Errno::NOENT)),
    })
}

/// Ends of messages of programs that ask on a terminal and find none.
const COMPLAINTS: [&str; 13] = [
    "/dev/tty: no such device or address",
    "/dev/tty: device not configured",
    "terminal prompts disabled",
    "could not read username",
    "could not read password",
    "a terminal is required",
    "no tty present",
    "not a tty",
    "not a terminal",
    "must be run from a terminal",
    "requires a terminal",
    "inappropriate ioctl for device",
    "cannot open /dev/tty",
];
/// Number of trailing lines of an output that are searched.
const LAST_LINES: usize = 5;

/// Whether the end of an output is the message of a program that asked on a terminal and found none.
pub(crate) fn lacks_terminal(output: &str) -> bool {
    let last = output.lines().rev().filter(|line| !line.trim().is_empty()).take(LAST_LINES);
    last.map(str::to_lowercase).any(|line| COMPLAINTS.iter().any(|complaint| line.contains(complaint)))
}

/// Explanation for people, after the name of the program that failed.
pub(crate) const NO_TERMINAL: &str = "asked for something on a terminal, and there is no terminal: give it what it needs by an option, a variable or a file";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_about_terminals_are_recognised() {
        for output in [
            "sh: 1: cannot open /dev/tty: No such device or address",
            "bash: line 1: /dev/tty: No such device or address\n",
            "fatal: could not read Username for 'http://127.0.0.1:5105': No such device or address\n",
            "sudo: a terminal is required to read the password; either use the -S option\nsudo: a password is required",
            "the input device is not a TTY",
            "stty: 'standard input': Inappropriate ioctl for device\n",
        ] {
            assert!(lacks_terminal(output), "{output}");
        }
        for output in ["", "error: test failed", "a terminal is required\n1\n2\n3\n4\n5\n", "terminal"] {
            assert!(!lacks_terminal(output), "{output}");
        }
    }
}
