//! A text that is shown again and again on the full screen, such as the status of a run.

use std::io::{self, BufWriter, Stdout};
use std::time::{Duration, Instant};

use crossterm::event::{self as terminal, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::Terminal;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

use crate::output::Output;
use crate::screen::Screen;
use crate::text::{StyledLine, Tone, fit, printed_line};
use crate::theme::Theme;

/// Result of waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchKey {
    /// Nothing was pressed.
    None,
    /// The person leaves.
    Left,
    /// The text is to be shown again: the size changed, or the person scrolled.
    Redraw,
}

/// Full screen with a text.
#[derive(Debug)]
pub struct WatchScreen {
    terminal: Terminal<Output<BufWriter<Stdout>>>,
    theme: Theme,
    top: usize,
    // Restores the terminal last.
    _screen: Screen,
}

impl WatchScreen {
    /// Makes the terminal a full screen.
    ///
    /// # Errors
    /// Returns an error if the terminal cannot be used.
    pub fn enter(theme: Theme) -> io::Result<Self> {
        let screen = Screen::enter(false)?;
        let terminal = Terminal::new(Output::new(BufWriter::with_capacity(64 << 10, io::stdout())))?;
        Ok(Self { terminal, theme, top: 0, _screen: screen })
    }

    /// Number of columns.
    ///
    /// # Errors
    /// Returns an error if the terminal is gone.
    pub fn columns(&self) -> io::Result<u16> {
        Ok(self.terminal.size()?.width)
    }

    /// Shows a text, which may have colours, above a line for keys. Lines are cut to the width.
    ///
    /// # Errors
    /// Returns an error if the terminal is gone.
    pub fn show(&mut self, text: &str, keys: &str) -> io::Result<()> {
        let lines: Vec<StyledLine> = text.lines().map(|line| printed_line(line.as_bytes())).collect();
        let (theme, top) = (self.theme, &mut self.top);
        self.terminal.draw(|frame| {
            let area = frame.area();
            let height = usize::from(area.height.saturating_sub(1));
            *top = (*top).min(lines.len().saturating_sub(height));
            let columns = usize::from(area.width);
            let mut shown: Vec<Line<'_>> = lines
                .iter()
                .skip(*top)
                .take(height)
                .map(|line| crate::view::line(line, theme, 0, columns))
                .collect();
            while shown.len() < height {
                shown.push(Line::default());
            }
            let more = if lines.len() > height { "↑ ↓ scroll  " } else { "" };
            shown.push(Line::styled(fit(&format!("{more}{keys}"), columns), theme.tone(Tone::Dim)));
            frame.render_widget(Paragraph::new(shown), area);
        })?;
        Ok(())
    }

    /// Waits for a key, at most for a time.
    ///
    /// # Errors
    /// Returns an error if the terminal is gone.
    pub fn wait(&mut self, time: Duration) -> io::Result<WatchKey> {
        let until = Instant::now() + time;
        while terminal::poll(until.saturating_duration_since(Instant::now()))? {
            let key = match terminal::read()? {
                terminal::Event::Key(key) if key.kind != KeyEventKind::Release => key,
                terminal::Event::Resize(..) => return Ok(WatchKey::Redraw),
                _ => continue,
            };
            let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
            match key.code {
                KeyCode::Char('q') | KeyCode::Esc => return Ok(WatchKey::Left),
                KeyCode::Char('c') if is_control => return Ok(WatchKey::Left),
                KeyCode::Down | KeyCode::Char('j') => self.top += 1,
                KeyCode::Up | KeyCode::Char('k') => self.top = self.top.saturating_sub(1),
                KeyCode::PageDown | KeyCode::Char(' ') => self.top += 10,
                KeyCode::PageUp => self.top = self.top.saturating_sub(10),
                _ => continue,
            }
            return Ok(WatchKey::Redraw);
        }
        Ok(WatchKey::None)
    }
}
