//! Placement of the next pane. Pure: decides from the existing panes.

use super::server::PaneRow;

/// Minimum width of a readable pane, in columns.
const MIN_WIDTH: u32 = 50;
const MIN_HEIGHT: u32 = 8;
/// From here on, panes of phases that are over make room.
const MANY: usize = 60;

/// Placement of a job's pane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PanePlacement {
    /// There is no session yet.
    NewSession,
    /// In place of what is over in this pane.
    Respawn(String),
    /// Beside another pane, in its window, which is then laid out anew.
    Split {
        /// The window.
        window: String,
        /// A pane in it.
        beside: String,
    },
    /// In a window of its own.
    NewWindow,
}

/// Decides for a job whose last pane was `known`. The pane that the orchestrator itself works in, `own`, keeps its
/// window to itself.
pub(super) fn place(panes: &[PaneRow], known: Option<&str>, own: Option<&str>) -> PanePlacement {
    if panes.is_empty() {
        return PanePlacement::NewSession;
    }
    let own_window = panes.iter().find(|pane| Some(pane.id.as_str()) == own).map(|pane| pane.window.as_str());
    let usable = |pane: &&PaneRow| Some(pane.window.as_str()) != own_window;
    if let Some(pane) = panes.iter().filter(usable).find(|pane| Some(pane.id.as_str()) == known && pane.dead)
    {
        return PanePlacement::Respawn(pane.id.clone());
    }
    if panes.len() >= MANY
        && let Some(pane) = panes.iter().filter(usable).find(|pane| pane.dead)
    {
        return PanePlacement::Respawn(pane.id.clone());
    }
    // The newest window is the only one that may have room.
    let Some(last) = panes.iter().rfind(usable) else { return PanePlacement::NewWindow };
    let count = panes.iter().filter(|pane| pane.window == last.window).count();
    let (rows, columns) = tiled(count + 1);
    let width = last.window_width.saturating_sub(columns - 1) / columns;
    // Each row has a line above it with the title.
    let height = last.window_height / rows - 1;
    if width >= MIN_WIDTH && height >= MIN_HEIGHT {
        PanePlacement::Split { window: last.window.clone(), beside: last.id.clone() }
    } else {
        PanePlacement::NewWindow
    }
}

/// Returns the rows and columns that tmux gives `n` panes in its layout `tiled`.
fn tiled(n: usize) -> (u32, u32) {
    let (mut rows, mut columns) = (1, 1);
    while ((rows * columns) as usize) < n {
        rows += 1;
        if ((rows * columns) as usize) < n {
            columns += 1;
        }
    }
    (rows, columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pane(n: usize, window: &str, dead: bool) -> PaneRow {
        PaneRow {
            id: format!("%{n}"),
            window: window.to_owned(),
            dead,
            window_width: 200,
            window_height: 50,
            session: "t".to_owned(),
        }
    }

    #[test]
    fn panes_share_a_window_until_it_is_full() {
        assert_eq!(place(&[], None, None), PanePlacement::NewSession);
        let mut panes = vec![pane(0, "@0", false)];
        while let PanePlacement::Split { window, .. } = place(&panes, None, None) {
            assert_eq!(window, "@0");
            panes.push(pane(panes.len(), "@0", false));
        }
        // Tiled in 200 by 50: four rows of three columns. A thirteenth would make it four columns.
        assert_eq!(panes.len(), 12);
        assert_eq!(place(&panes, None, None), PanePlacement::NewWindow);
        panes.push(pane(12, "@1", false));
        assert_eq!(
            place(&panes, None, None),
            PanePlacement::Split { window: "@1".into(), beside: "%12".into() }
        );
    }

    #[test]
    fn a_phase_comes_back_to_its_pane() {
        let panes = [pane(0, "@0", true), pane(1, "@0", false)];
        assert_eq!(place(&panes, Some("%0"), None), PanePlacement::Respawn("%0".into()));
        assert!(
            matches!(place(&panes, Some("%1"), None), PanePlacement::Split { .. }),
            "it still works there"
        );
        assert!(matches!(place(&panes, Some("%7"), None), PanePlacement::Split { .. }), "somebody closed it");
    }

    #[test]
    fn the_orchestrator_has_its_window_to_itself() {
        let panes = [pane(0, "@0", false)];
        assert_eq!(place(&panes, None, Some("%0")), PanePlacement::NewWindow);
        let panes = [pane(0, "@0", false), pane(1, "@1", false)];
        assert!(
            matches!(place(&panes, None, Some("%0")), PanePlacement::Split { window, .. } if window == "@1")
        );
    }

    #[test]
    fn finished_panes_are_reused_at_the_limit() {
        let mut panes: Vec<PaneRow> = (0..MANY).map(|n| pane(n, &format!("@{}", n / 15), n == 7)).collect();
        assert_eq!(place(&panes, None, None), PanePlacement::Respawn("%7".into()));
        panes[7].dead = false;
        assert_eq!(place(&panes, None, None), PanePlacement::NewWindow);
    }
}
