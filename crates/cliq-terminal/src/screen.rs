//! The terminal as a full screen, and its restoration: at the end, after a panic, and after SIGKILL.

use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::cursor::{Hide, Show};
use crossterm::event::{
    DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture,
};
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use crossterm::{execute, queue};

/// Script of the guard: it notes the modes of the terminal, and restores them when its input ends without a word (decision 81).
const GUARD: &str = r"
trap '' HUP INT QUIT TERM TSTP TTIN TTOU
modes=$(stty -g </dev/tty) || exit 0
echo ready
read -r word && exit 0
printf '\033[?1049l\033[?25h\033[?2004l\033[?1000l\033[?1002l\033[?1003l\033[?1015l\033[?1006l\033[0m' >/dev/tty
stty $modes </dev/tty
";

/// Whether the terminal is a full screen now.
static IS_ENTERED: AtomicBool = AtomicBool::new(false);

/// Full screen until it is dropped.
#[derive(Debug)]
pub(crate) struct Screen {
    has_mouse: bool,
    guard: Option<Guard>,
}

impl Screen {
    /// Makes the terminal a full screen.
    pub(crate) fn enter(has_mouse: bool) -> io::Result<Self> {
        restore_after_panics();
        // Without a shell there is no guard, and the screen works.
        let guard = Guard::start().ok();
        let screen = Self { has_mouse, guard };
        screen.resume()?;
        Ok(screen)
    }

    /// Makes the terminal a full screen again after [`Screen::leave`].
    pub(crate) fn resume(&self) -> io::Result<()> {
        enable_raw_mode()?;
        IS_ENTERED.store(true, Ordering::SeqCst);
        let mut out = io::stdout();
        queue!(out, EnterAlternateScreen, EnableBracketedPaste, Hide)?;
        if self.has_mouse {
            queue!(out, EnableMouseCapture)?;
        }
        out.flush()
    }

    /// Gives the terminal back as it was.
    pub(crate) fn leave(&self) {
        restore();
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
        self.guard.take();
    }
}

fn restore() {
    if IS_ENTERED.swap(false, Ordering::SeqCst) {
        let mut out = io::stdout();
        let _ = execute!(out, DisableMouseCapture, DisableBracketedPaste, LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
    }
}

/// Makes panics readable: the terminal is restored before the message.
fn restore_after_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            restore();
            before(info);
        }));
    });
}

/// Process that outlives this one and restores the terminal.
#[derive(Debug)]
struct Guard {
    child: Child,
    input: Option<ChildStdin>,
}

impl Guard {
    fn start() -> io::Result<Self> {
        let mut child = Command::new("/bin/sh")
            .args(["-c", GUARD])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // A signal to the group of this process does not reach it.
            .process_group(0)
            .spawn()?;
        let input = child.stdin.take();
        // The modes are to be noted before they change.
        if let Some(mut said) = child.stdout.take() {
            let mut byte = [0; 6];
            let _ = said.read_exact(&mut byte);
        }
        Ok(Self { child, input })
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(mut input) = self.input.take() {
            let _ = input.write_all(b"done\n");
        }
        let _ = self.child.wait();
    }
}

/// Number of columns of the terminal of this process, if it has one.
#[must_use]
pub fn columns() -> Option<u16> {
    crossterm::terminal::size().ok().map(|(columns, _)| columns).filter(|columns| *columns > 0)
}
