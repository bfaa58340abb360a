//! The loop of the screen: events in, effects out, one drawing after each batch.

use std::io::{self, BufWriter, Stdout, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cliq_protocol::Timestamp;
use ratatui::Terminal;

use crate::event::{Effect, Event};
use crate::input::Input;
use crate::model::RunKey;
use crate::output::Output;
use crate::screen::Screen;
use crate::source::Source;
use crate::state::State;
use crate::theme::Theme;
use crate::view::render;
use crate::worker::Workers;

/// Maximum size in bytes of a text for the clipboard: terminals refuse longer ones.
const CLIPBOARD: usize = 64 << 10;

/// Options of a screen.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Styles.
    pub theme: Theme,
    /// Whether the mouse is used. The terminal's own selection then needs a modifier key.
    pub has_mouse: bool,
    /// The present time.
    pub clock: fn() -> Timestamp,
}

/// Message to the loop.
#[derive(Debug)]
pub(crate) enum Message {
    /// Event for the state.
    Event(Event),
    /// The process was continued after a stop: the terminal has to be drawn anew.
    Continued,
    /// The process is asked to end, or the terminal is gone.
    Ended,
}

type Drawing = Terminal<Output<BufWriter<Stdout>>>;

/// Shows the runs of a source on the terminal until a person leaves.
///
/// # Errors
/// Returns an error if the terminal cannot be used. The terminal is restored in any case.
pub fn run(source: &Arc<dyn Source>, options: Options) -> io::Result<()> {
    let screen = Screen::enter(options.has_mouse)?;
    let (sender, messages) = channel();
    let workers = Workers::start(source, &sender)?;
    let terminal = Terminal::new(Output::new(BufWriter::with_capacity(64 << 10, io::stdout())))?;
    let size = terminal.size()?;
    let state = State::new(size.width, size.height, (options.clock)());
    let mut app = App { screen, terminal, state, workers, source: Arc::clone(source), options, input: None };
    // Reading starts first: the first picture may have runs already.
    app.event(Event::Tick((options.clock)()))?;
    app.draw()?;
    app.input = Some(Input::start(sender)?);
    app.work(&messages)
}

struct App {
    screen: Screen,
    terminal: Drawing,
    state: State,
    workers: Workers,
    source: Arc<dyn Source>,
    options: Options,
    input: Option<Input>,
}

impl App {
    fn work(&mut self, messages: &Receiver<Message>) -> io::Result<()> {
        let mut next = Instant::now();
        loop {
            let message = match messages.recv_timeout(next.saturating_duration_since(Instant::now())) {
                Ok(message) => Some(message),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            };
            let mut is_left = match message {
                Some(message) => self.message(message)?,
                None => self.event(Event::Tick((self.options.clock)()))?,
            };
            // All that has come by now is in one picture.
            while !is_left && let Ok(message) = messages.try_recv() {
                is_left = self.message(message)?;
            }
            if is_left {
                return Ok(());
            }
            self.draw()?;
            if next <= Instant::now() {
                next = Instant::now() + Duration::from_millis(self.state.tick_ms());
            }
        }
    }

    /// Takes a message. Returns whether the screen is left.
    fn message(&mut self, message: Message) -> io::Result<bool> {
        match message {
            Message::Event(event) => self.event(event),
            Message::Ended => Ok(true),
            Message::Continued => {
                self.screen.resume()?;
                self.terminal.clear()?;
                Ok(false)
            }
        }
    }

    fn event(&mut self, event: Event) -> io::Result<bool> {
        for effect in self.state.update(event) {
            match effect {
                Effect::Load(request) => self.workers.load(request),
                Effect::Act(action) => self.workers.act(action),
                Effect::Copy(text) => copy(&text)?,
                Effect::Attach(run, phase) => self.attach(&run, phase.as_deref())?,
                Effect::Suspend => self.suspend()?,
                Effect::Quit => return Ok(true),
            }
        }
        Ok(false)
    }

    fn draw(&mut self) -> io::Result<()> {
        let (state, theme) = (&self.state, self.options.theme);
        self.terminal.draw(|frame| render(frame, state, theme))?;
        Ok(())
    }

    /// Gives the terminal to the program that shows the panes of a run, until it ends.
    fn attach(&mut self, run: &RunKey, phase: Option<&str>) -> io::Result<()> {
        let problem = match self.source.attach(run, phase) {
            Err(problem) => Some(problem),
            Ok(mut command) => {
                self.give_up_terminal();
                let status = command.status();
                self.take_terminal()?;
                match status {
                    Ok(status) if status.success() => None,
                    Ok(status) => Some(format!("the panes ended: {status}")),
                    Err(error) => Some(format!("cannot show the panes: {error}")),
                }
            }
        };
        self.event(Event::Returned(problem)).map(drop)
    }

    fn suspend(&mut self) -> io::Result<()> {
        self.give_up_terminal();
        if let Some(input) = &self.input {
            input.stop_process();
        }
        self.take_terminal()
    }

    fn give_up_terminal(&mut self) {
        if let Some(input) = &self.input {
            input.pause();
        }
        self.screen.leave();
    }

    fn take_terminal(&mut self) -> io::Result<()> {
        self.screen.resume()?;
        self.terminal.clear()?;
        let size = self.terminal.size()?;
        if let Some(input) = &self.input {
            input.resume();
        }
        self.event(Event::Resized(size.width, size.height)).map(drop)
    }
}

/// Asks the terminal to put a text on the clipboard (OSC 52).
fn copy(text: &str) -> io::Result<()> {
    let cut = text.char_indices().map(|(at, c)| at + c.len_utf8()).take_while(|end| *end <= CLIPBOARD).last();
    let text = &text[..cut.unwrap_or(0)];
    let mut out = io::stdout();
    write!(out, "\x1b]52;c;{}\x07", STANDARD.encode(text))?;
    out.flush()
}
