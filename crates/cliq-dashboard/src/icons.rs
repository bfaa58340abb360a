//! Icons as inline SVG, in the colour of the text around them. They say nothing that the text beside them does not say.

use maud::{Markup, html};

/// An icon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Icon {
    /// Complete.
    Check,
    /// Failed.
    Cross,
    /// At work.
    Play,
    /// Waits.
    Clock,
    /// Needs a person.
    Alert,
    /// Stopped.
    Stop,
    /// Skipped.
    Skip,
    /// Has not begun.
    Dot,
}

impl Icon {
    /// All icons.
    #[cfg(debug_assertions)]
    pub(super) const ALL: [Self; 8] =
        [Self::Check, Self::Cross, Self::Play, Self::Clock, Self::Alert, Self::Stop, Self::Skip, Self::Dot];

    fn path(self) -> &'static str {
        match self {
            Self::Check => "M3 8.5l3.2 3.2L13 5",
            Self::Cross => "M4 4l8 8M12 4l-8 8",
            Self::Play => "M5 3.5l7 4.5-7 4.5z",
            Self::Clock => "M8 4.5V8l2.5 1.8M8 1.8a6.2 6.2 0 1 0 0 12.4 6.2 6.2 0 0 0 0-12.4z",
            Self::Alert => "M8 5.8v3.4M8 11.4v.2M8 1.9L1.7 13.2h12.6z",
            Self::Stop => "M4.5 4.5h7v7h-7z",
            Self::Skip => "M2.5 8h11M10 4.5L13.5 8 10 11.5",
            Self::Dot => "M8 6.8a1.2 1.2 0 1 0 0 2.4 1.2 1.2 0 0 0 0-2.4z",
        }
    }

    /// Returns the icon of a state of a run or a phase.
    pub(super) fn of(word: &str) -> Self {
        match word {
            "completed" | "complete" | "can run here" | "valid" | "done" | "delivered" | "passed" => {
                Self::Check
            }
            "failed" | "error" | "has errors" | "missing" => Self::Cross,
            "running" | "started" | "starting" | "processing" | "planning" | "implementing" | "reviewing"
            | "verifying" => Self::Play,
            "waiting" | "queued" | "pending" | "paused" | "asks" | "held" => Self::Clock,
            "escalated" | "stuck" | "unclear" => Self::Alert,
            "stopped" | "cancelled" | "expired" | "set_aside" => Self::Stop,
            "skipped" => Self::Skip,
            _ => Self::Dot,
        }
    }

    /// Renders the icon.
    pub(super) fn render(self) -> Markup {
        html! {
            svg.icon viewBox="0 0 16 16" width="14" height="14" aria-hidden="true" focusable="false" {
                path d=(self.path()) {}
            }
        }
    }
}
