//! Places of the panes for a size of the terminal.

use ratatui::layout::Rect;

use crate::state::Focus;

/// Smallest size at which anything is shown.
pub(crate) const SMALLEST: (u16, u16) = (24, 8);
/// Width from which list and run stand side by side.
const WIDE: u16 = 110;
/// Height from which all panes are shown at once in one column.
const TALL: u16 = 20;

/// Places of the panes. Each pane has a line for its title; a pane that is not shown has no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) head: Rect,
    pub(crate) list: Option<Rect>,
    pub(crate) phases: Option<Rect>,
    pub(crate) body: Option<Rect>,
    pub(crate) foot: Rect,
}

impl Layout {
    /// Returns the places for a size in columns and rows. `phases` is the number of rows of the phases.
    pub(crate) fn new(columns: u16, rows: u16, focus: Focus, phases: usize) -> Self {
        let foot = Rect::new(0, rows.saturating_sub(1), columns, 1.min(rows));
        let head = Rect::new(0, 0, columns, 1.min(rows));
        let height = rows.saturating_sub(2);
        let mut layout = Self { head, list: None, phases: None, body: None, foot };
        let phases = u16::try_from(phases).unwrap_or(u16::MAX).saturating_add(1);
        if columns >= WIDE {
            let left = (columns * 2 / 5).min(90);
            // A column stays free between the two.
            let right = Rect::new(left + 1, 1, columns - left - 1, height);
            layout.list = Some(Rect::new(0, 1, left, height));
            let upper = phases.min(height * 2 / 5).max(4.min(height));
            layout.phases = Some(Rect { height: upper, ..right });
            layout.body = Some(Rect { y: 1 + upper, height: height - upper, ..right });
            return layout;
        }
        let area = |y: u16, height: u16| Some(Rect::new(0, y, columns, height));
        if rows >= TALL {
            let list = match focus {
                Focus::List => height * 2 / 5,
                Focus::Phases => height / 5,
                Focus::Body => 0,
            };
            let phases = match focus {
                Focus::List => phases.min(height / 4),
                Focus::Phases => phases.min(height * 2 / 5),
                Focus::Body => phases.min(height / 5),
            };
            let phases = phases.max(3);
            layout.list = if list >= 3 { area(1, list) } else { None };
            let list = layout.list.map_or(0, |list| list.height);
            layout.phases = area(1 + list, phases);
            layout.body = area(1 + list + phases, height - list - phases);
            return layout;
        }
        match focus {
            Focus::List => layout.list = area(1, height),
            Focus::Phases => {
                let upper = phases.min(height / 2).max(3.min(height));
                layout.phases = area(1, upper);
                layout.body = area(1 + upper, height - upper);
            }
            Focus::Body => layout.body = area(1, height),
        }
        layout
    }

    pub(crate) fn list_lines(&self) -> usize {
        lines(self.list)
    }

    pub(crate) fn phase_lines(&self) -> usize {
        lines(self.phases)
    }

    pub(crate) fn body_lines(&self) -> usize {
        lines(self.body)
    }

    pub(crate) fn body_columns(&self) -> usize {
        self.body.map_or(80, |body| usize::from(body.width))
    }
}

fn lines(pane: Option<Rect>) -> usize {
    pane.map_or(0, |pane| usize::from(pane.height.saturating_sub(1)))
}
