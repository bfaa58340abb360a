//! Progress of an evaluation on standard error: a line that changes on a terminal, now and then a line in a pipe.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use cliq_eval::Progress;
use cliq_eval::report::dollars;

use crate::ui::{DIM, paint};

/// Interval between two lines in a pipe.
const PIPE: Duration = Duration::from_secs(10);
/// Interval between two changes on a terminal.
const TERMINAL: Duration = Duration::from_millis(100);

/// Display of the progress.
pub(super) struct Display {
    name: String,
    is_terminal: bool,
    last: Option<Instant>,
    is_open: bool,
    last_error: Option<String>,
}

impl Display {
    pub(super) fn new(name: &str) -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        Self { name: name.to_owned(), is_terminal, last: None, is_open: false, last_error: None }
    }

    pub(super) fn show(&mut self, progress: &Progress) {
        if progress.last_error.is_some() && progress.last_error != self.last_error {
            self.end();
            self.last_error.clone_from(&progress.last_error);
            let reason = self.last_error.as_deref().unwrap_or_default().lines().next().unwrap_or_default();
            crate::ui::warning(&format!(
                "infrastructure: {}; the trial is tried again",
                crate::ui::plain(reason)
            ));
        }
        let every = if self.is_terminal { TERMINAL } else { PIPE };
        let is_due = self.last.is_none_or(|last| last.elapsed() >= every);
        if !is_due && progress.finished < progress.trials {
            return;
        }
        self.last = Some(Instant::now());
        let Progress { trials, finished, passed, running, used, .. } = progress;
        let line = format!(
            "{}: {finished} of {trials} trials, {passed} passed, {running} at work, used {}",
            self.name,
            dollars(used.cost_usd)
        );
        let mut err = anstream::stderr();
        // An error of standard error has no reader.
        let _ = if self.is_terminal {
            write!(err, "\r\x1b[K{}", paint(DIM, line))
        } else {
            writeln!(err, "{line}")
        };
        let _ = err.flush();
        self.is_open = self.is_terminal;
    }

    pub(super) fn end(&mut self) {
        if std::mem::take(&mut self.is_open) {
            let _ = writeln!(anstream::stderr());
        }
    }
}
