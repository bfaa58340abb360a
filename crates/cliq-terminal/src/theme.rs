//! Styles of the screen. Colours come from the palette of the terminal, so that they fit light and dark ones.

use ratatui::style::{Color, Modifier, Style};

use crate::model::{PhaseState, RunStatus};
use crate::text::Tone;

/// Styles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Theme {
    has_colours: bool,
}

impl Theme {
    /// Returns the theme. Without colours, weight and reversal alone tell things apart.
    #[must_use]
    pub fn new(has_colours: bool) -> Self {
        Self { has_colours }
    }

    pub(crate) fn tone(self, tone: Tone) -> Style {
        let style = Style::default();
        let (colour, modifier) = match tone {
            Tone::Plain => (None, Modifier::empty()),
            Tone::Dim => (None, Modifier::DIM),
            Tone::Strong => (None, Modifier::BOLD),
            Tone::Good | Tone::Added => (Some(Color::Green), Modifier::empty()),
            Tone::Bad => (Some(Color::Red), Modifier::BOLD),
            Tone::Removed => (Some(Color::Red), Modifier::empty()),
            Tone::Warn => (Some(Color::Yellow), Modifier::empty()),
            Tone::Accent => (Some(Color::Cyan), Modifier::empty()),
            Tone::Printed { colour, is_bold } => {
                (colour.map(Color::Indexed), if is_bold { Modifier::BOLD } else { Modifier::empty() })
            }
        };
        let style = style.add_modifier(modifier);
        match colour.filter(|_| self.has_colours) {
            Some(colour) => style.fg(colour),
            None => style,
        }
    }

    /// Row at the cursor of a pane.
    pub(crate) fn cursor(self, has_keys: bool) -> Style {
        if has_keys {
            Style::default().add_modifier(Modifier::REVERSED)
        } else {
            Style::default().add_modifier(Modifier::BOLD | Modifier::UNDERLINED)
        }
    }

    pub(crate) fn status(self, status: RunStatus, needs: bool) -> Style {
        self.tone(match status {
            _ if needs => Tone::Warn,
            RunStatus::Queued => Tone::Dim,
            RunStatus::Working => Tone::Accent,
            RunStatus::Parked
            | RunStatus::Interrupted
            | RunStatus::Cancelled
            | RunStatus::CompletedWithCaveats => Tone::Warn,
            RunStatus::Completed => Tone::Good,
            RunStatus::Escalated | RunStatus::Failed => Tone::Bad,
        })
    }

    pub(crate) fn phase(self, state: PhaseState) -> Style {
        self.tone(match state {
            PhaseState::Pending | PhaseState::Skipped => Tone::Dim,
            PhaseState::Running => Tone::Accent,
            PhaseState::Waiting | PhaseState::Stopped | PhaseState::Unknown => Tone::Warn,
            PhaseState::Completed => Tone::Good,
            PhaseState::Failed | PhaseState::Escalated => Tone::Bad,
        })
    }
}
