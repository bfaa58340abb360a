//! Keys and signals as events, read on threads of their own.

use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;
use std::{io, thread};

use crossterm::event as terminal;
use crossterm::terminal::size as terminal_size;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Signal, getpid, kill_process};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGWINCH};
use signal_hook::iterator::Signals;

use crate::app::Message;
use crate::event::Event;

/// Time after which the reader looks whether it is to pause.
const PAUSE_CHECK: Duration = Duration::from_millis(100);
const PAUSE_CHECK_TIME: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// Time within which the rest of a key arrives. With zero, the library reads nothing.
const MORE_KEYS: Duration = Duration::from_millis(1);

/// Time within which a stop takes effect.
const STOPS: Duration = Duration::from_millis(500);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Reading,
    Pausing,
    Paused,
}

/// Reader of keys, which pauses while another program has the terminal.
#[derive(Debug, Clone)]
pub(crate) struct Input {
    mode: Arc<(Mutex<Mode>, Condvar)>,
    /// Whether the process was continued since the last stop.
    continued: Arc<(Mutex<bool>, Condvar)>,
}

impl Input {
    /// Starts to read.
    pub(crate) fn start(messages: Sender<Message>) -> io::Result<Self> {
        let input =
            Self { mode: Arc::new((Mutex::new(Mode::Reading), Condvar::new())), continued: Arc::default() };
        let reader = input.clone();
        let keys = messages.clone();
        thread::Builder::new().name("keys".to_owned()).spawn(move || reader.read(&keys))?;
        let continued = Arc::clone(&input.continued);
        let mut signals = Signals::new([SIGTERM, SIGHUP, SIGINT, SIGCONT, SIGWINCH])?;
        thread::Builder::new().name("signals".to_owned()).spawn(move || {
            for signal in signals.forever() {
                if signal == SIGCONT {
                    *continued.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
                    continued.1.notify_all();
                }
                let message = match signal {
                    SIGCONT => Message::Continued,
                    SIGWINCH => match terminal_size() {
                        Ok((columns, rows)) => Message::Event(Event::Resized(columns, rows)),
                        Err(_) => continue,
                    },
                    _ => Message::Ended,
                };
                if messages.send(message).is_err() {
                    return;
                }
            }
        })?;
        Ok(input)
    }

    fn read(&self, messages: &Sender<Message>) {
        let stdin = io::stdin();
        loop {
            self.wait_while_paused();
            // The library's own wait spins for the last millisecond: it is asked only when there is something to read.
            let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
            match poll(&mut fds, Some(&PAUSE_CHECK_TIME)) {
                Ok(0) | Err(Errno::INTR) => continue,
                Ok(_) if fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) => {
                    let _ = messages.send(Message::Ended);
                    return;
                }
                Ok(_) => {}
                Err(_) => {
                    let _ = messages.send(Message::Ended);
                    return;
                }
            }
            loop {
                let event = match terminal::poll(MORE_KEYS) {
                    Ok(false) => break,
                    Ok(true) => terminal::read(),
                    Err(error) => Err(error),
                };
                let message = match event {
                    Ok(terminal::Event::Key(key)) => Message::Event(Event::Key(key)),
                    Ok(terminal::Event::Mouse(mouse)) => Message::Event(Event::Mouse(mouse)),
                    Ok(terminal::Event::Paste(text)) => Message::Event(Event::Paste(text)),
                    Ok(terminal::Event::Resize(columns, rows)) => {
                        Message::Event(Event::Resized(columns, rows))
                    }
                    Ok(terminal::Event::FocusGained | terminal::Event::FocusLost) => continue,
                    // The terminal is gone.
                    Err(_) => Message::Ended,
                };
                let is_end = matches!(message, Message::Ended);
                if messages.send(message).is_err() || is_end {
                    return;
                }
                // A key may have given the terminal to another program.
                self.wait_while_paused();
            }
        }
    }

    fn wait_while_paused(&self) {
        let (mode, changed) = &*self.mode;
        let mut mode = mode.lock().unwrap_or_else(PoisonError::into_inner);
        while *mode != Mode::Reading {
            if *mode == Mode::Pausing {
                *mode = Mode::Paused;
                changed.notify_all();
            }
            mode = changed.wait(mode).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Stops reading. Returns when no key is read any more.
    pub(crate) fn pause(&self) {
        let (mode, changed) = &*self.mode;
        let mut mode = mode.lock().unwrap_or_else(PoisonError::into_inner);
        *mode = Mode::Pausing;
        while *mode == Mode::Pausing {
            let waited = changed.wait_timeout(mode, PAUSE_CHECK * 10);
            let (guard, result) = waited.unwrap_or_else(PoisonError::into_inner);
            mode = guard;
            if result.timed_out() {
                return;
            }
        }
    }

    /// Stops the process, as the key of a shell does, and returns when it is continued. A process whose shell is gone is not stopped.
    pub(crate) fn stop_process(&self) {
        let (continued, changed) = &*self.continued;
        let mut continued = continued.lock().unwrap_or_else(PoisonError::into_inner);
        *continued = false;
        // The signal may reach another thread a moment later: this one must not touch the terminal before it is continued.
        if kill_process(getpid(), Signal::TSTP).is_err() {
            return;
        }
        while !*continued {
            let (guard, result) =
                changed.wait_timeout(continued, STOPS).unwrap_or_else(PoisonError::into_inner);
            continued = guard;
            if result.timed_out() {
                return;
            }
        }
    }

    /// Reads again.
    pub(crate) fn resume(&self) {
        let (mode, changed) = &*self.mode;
        *mode.lock().unwrap_or_else(PoisonError::into_inner) = Mode::Reading;
        changed.notify_all();
    }
}
