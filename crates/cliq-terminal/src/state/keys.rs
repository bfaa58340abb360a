//! Keys of the screen, outside of dialogs.

use crossterm::event::{
    KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};
use ratatui::layout::{Position, Rect};

use super::list::ListRow;
use super::{Effect, Focus, State, Tab};
use crate::state::dialog::Dialog;
use crate::text::Tone;

/// Key with its description, for help and the last line of the screen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyHelp {
    pub(crate) key: &'static str,
    pub(crate) what: &'static str,
    /// Word in the last line of the screen; empty if it is in the help only.
    pub(crate) short: &'static str,
    /// Group in the help.
    pub(crate) group: &'static str,
}

const fn help(group: &'static str, key: &'static str, short: &'static str, what: &'static str) -> KeyHelp {
    KeyHelp { key, what, short, group }
}

/// All keys.
pub(crate) const KEYS: &[KeyHelp] = &[
    help("move", "↑ ↓  j k", "", "previous, next line"),
    help("move", "PgUp PgDn", "", "previous, next page; also Ctrl-B, Ctrl-F, Space"),
    help("move", "g G", "", "beginning, end; at the end of a log: follow it"),
    help("move", "← →", "", "scroll long lines"),
    help("move", "Enter", "open", "from a run to its phases, from a phase to its log"),
    help("move", "Esc", "back", "one pane back; clears the filter"),
    help("move", "Tab", "tab", "log, transcript, changes"),
    help("move", "[ ]", "", "log of the earlier, later activation; previous, next file of the changes"),
    help(
        "runs",
        "/",
        "filter",
        "filter runs by title, team, project, state, id; in a log, transcript or changes: search",
    ),
    help("runs", "n", "new", "new run"),
    help("runs", "a", "answer", "answer the question: approve, request changes, reject"),
    help("runs", "c", "comment", "comment on the line of the changes at the cursor"),
    help("runs", "s", "steer", "send guidance to the run, or to the phase at the cursor"),
    help("runs", "x", "cancel", "cancel the run"),
    help("runs", "r", "resume", "resume the run"),
    help("runs", "R", "again", "run the team again from the beginning"),
    help("runs", "o", "browser", "open the page of the run or its review in the browser"),
    help("runs", "t", "panes", "show the panes of the run; C-b d leads back"),
    help("runs", "y", "copy", "copy the id of the run, the name of the phase, or the line at the cursor"),
    help("screen", "?", "help", "this help"),
    help("screen", "Ctrl-Z", "", "suspend"),
    help("screen", "q", "quit", "leave; runs go on"),
];

impl State {
    pub(super) fn key(&mut self, key: KeyEvent, effects: &mut Vec<Effect>) {
        if key.kind == KeyEventKind::Release {
            return;
        }
        // Escape and a key right after it arrive as one key with Alt. Only texts know such keys.
        let is_in_text = matches!(self.dialog, Some(Dialog::Form { .. }));
        if key.modifiers.contains(KeyModifiers::ALT) && !is_in_text {
            self.key(KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE), effects);
            let modifiers = key.modifiers.difference(KeyModifiers::ALT);
            self.key(KeyEvent { modifiers, ..key }, effects);
            return;
        }
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if is_control && key.code == KeyCode::Char('z') {
            effects.push(Effect::Suspend);
            return;
        }
        if self.dialog.is_some() {
            self.dialog_key(key, effects);
            return;
        }
        if is_control && key.code == KeyCode::Char('c') {
            self.leave(effects);
            return;
        }
        self.may_leave &= key.code == KeyCode::Char('q');
        if self.is_filtering {
            self.filter_key(key, effects);
            return;
        }
        if self.search.is_some() {
            self.search_key(key, effects);
            return;
        }
        if is_control {
            match key.code {
                KeyCode::Char('f') => self.page(1, effects),
                KeyCode::Char('b') => self.page(-1, effects),
                KeyCode::Char('n') => self.step(1, effects),
                KeyCode::Char('p') => self.step(-1, effects),
                _ => {}
            }
            return;
        }
        match key.code {
            KeyCode::Up | KeyCode::Char('k') => self.step(-1, effects),
            KeyCode::Down | KeyCode::Char('j') => self.step(1, effects),
            KeyCode::PageUp => self.page(-1, effects),
            KeyCode::PageDown | KeyCode::Char(' ') => self.page(1, effects),
            KeyCode::Home | KeyCode::Char('g') => self.go_to_edge(false, effects),
            KeyCode::End | KeyCode::Char('G') => self.go_to_edge(true, effects),
            KeyCode::Left | KeyCode::Char('h') => self.scroll(-8),
            KeyCode::Right | KeyCode::Char('l') => self.scroll(8),
            KeyCode::Enter => self.enter(),
            KeyCode::Esc | KeyCode::Backspace => self.back(effects),
            KeyCode::Tab => self.next_tab(1, effects),
            KeyCode::BackTab => self.next_tab(Tab::ALL.len() - 1, effects),
            KeyCode::Char('[') => self.switch(false, effects),
            KeyCode::Char(']') => self.switch(true, effects),
            KeyCode::Char('/') if self.focus == Focus::Body => self.search = Some(self.last_search.clone()),
            KeyCode::Char('/') => {
                self.is_filtering = true;
                self.set_focus(Focus::List);
            }
            KeyCode::Char('?') | KeyCode::F(1) => self.dialog = Some(Dialog::Help { top: 0 }),
            KeyCode::Char('q') => self.leave(effects),
            KeyCode::Char(c) => self.action_key(c, effects),
            _ => {}
        }
    }

    /// Leaves. While an action is under way, the second time only.
    fn leave(&mut self, effects: &mut Vec<Effect>) {
        if self.acting > 0 && !std::mem::replace(&mut self.may_leave, true) {
            self.say(Tone::Warn, "an action is under way: the same key again leaves without its result");
        } else {
            effects.push(Effect::Quit);
        }
    }

    fn filter_key(&mut self, key: KeyEvent, effects: &mut Vec<Effect>) {
        match key.code {
            KeyCode::Esc => {
                self.is_filtering = false;
                self.filter.clear();
                self.filter_changed(effects);
            }
            KeyCode::Enter => self.is_filtering = false,
            KeyCode::Up => self.choose_by(-1, effects),
            KeyCode::Down => self.choose_by(1, effects),
            KeyCode::Backspace => {
                self.filter.pop();
                self.filter_changed(effects);
            }
            KeyCode::Char('u') if key.modifiers.contains(KeyModifiers::CONTROL) => {
                self.filter.clear();
                self.filter_changed(effects);
            }
            KeyCode::Char(c) if !key.modifiers.contains(KeyModifiers::CONTROL) && self.filter.len() < 200 => {
                self.filter.push(c);
                self.filter_changed(effects);
            }
            _ => {}
        }
    }

    /// Keys of a search: `Enter` and `↑` find the line before, `↓` the line after.
    fn search_key(&mut self, key: KeyEvent, effects: &mut Vec<Effect>) {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        let Some(text) = &mut self.search else { return };
        match key.code {
            KeyCode::Esc => {
                self.last_search = self.search.take().unwrap_or_default();
                self.message = None;
            }
            KeyCode::Enter | KeyCode::Up => self.find(false, effects),
            KeyCode::Down => self.find(true, effects),
            KeyCode::Backspace => {
                text.pop();
            }
            KeyCode::Char('u') if is_control => text.clear(),
            KeyCode::Char(c) if !is_control && text.len() < 200 => text.push(c),
            _ => {}
        }
    }

    pub(super) fn paste(&mut self, text: &str) {
        if let Some(Dialog::Form { form, .. }) = &mut self.dialog {
            form.paste(text);
        } else if self.is_filtering {
            let line: String = text.chars().filter(|c| !c.is_control()).take(200).collect();
            self.filter.push_str(&line);
            self.filter_changed(&mut Vec::new());
        } else if let Some(search) = &mut self.search {
            search.extend(text.chars().filter(|c| !c.is_control()).take(200));
        }
    }

    /// Mouse: the wheel scrolls the pane below it, a click chooses.
    pub(super) fn mouse(&mut self, mouse: MouseEvent, effects: &mut Vec<Effect>) {
        if self.dialog.is_some() {
            return;
        }
        let layout = self.layout();
        let at = Position::new(mouse.column, mouse.row);
        let hit = |pane: Option<Rect>| pane.filter(|pane| pane.contains(at));
        let row = |pane: Rect| usize::from(mouse.row.saturating_sub(pane.y + 1));
        let step: isize = match mouse.kind {
            MouseEventKind::ScrollUp => -3,
            MouseEventKind::ScrollDown => 3,
            MouseEventKind::Down(MouseButton::Left) => 0,
            _ => return,
        };
        if let Some(pane) = hit(layout.list) {
            if step != 0 {
                self.choose_by(step.signum(), effects);
                return;
            }
            let rows = self.list_rows();
            if mouse.row > pane.y
                && let Some(ListRow::Run(run)) = rows.get(self.list_top + row(pane))
            {
                let key = self.runs[*run].key.clone();
                self.choose(Some(key), effects);
            }
            self.set_focus(Focus::List);
        } else if let Some(pane) = hit(layout.phases) {
            if step != 0 {
                self.move_phase(step.signum());
                return;
            }
            if mouse.row > pane.y {
                let wanted = self.phase_top + row(pane);
                let by =
                    isize::try_from(wanted).unwrap_or(0) - isize::try_from(self.phase_cursor).unwrap_or(0);
                self.move_phase(by);
            }
            self.set_focus(Focus::Phases);
        } else if let Some(pane) = hit(layout.body) {
            if step != 0 {
                self.move_body(step, effects);
                return;
            }
            self.set_focus(Focus::Body);
            if mouse.row > pane.y {
                let layout = self.layout();
                let (top, cursor) = match self.tab {
                    Tab::Changes => (self.changes.top, self.changes.cursor),
                    Tab::Log | Tab::Transcript => (self.text.top, self.text.cursor),
                };
                if layout.body == Some(pane) {
                    let wanted = isize::try_from(top + row(pane)).unwrap_or(0);
                    self.move_body(wanted - isize::try_from(cursor).unwrap_or(0), effects);
                }
            }
        }
    }
}

/// Returns the keys as a table in markdown, for the documentation.
#[must_use]
pub fn key_table() -> String {
    let rows = KEYS.iter().map(|help| format!("| `{}` | {} |\n", help.key, help.what));
    format!("| key | effect |\n|---|---|\n{}", rows.collect::<String>())
}
