//! Movement within the panes and between them.

use super::{Effect, Focus, Request, State, Tab};
use crate::text::Tone;

impl State {
    pub(super) fn set_focus(&mut self, focus: Focus) {
        self.focus = focus;
        self.fit();
    }

    pub(super) fn step(&mut self, lines: isize, effects: &mut Vec<Effect>) {
        match self.focus {
            Focus::List => self.choose_by(lines, effects),
            Focus::Phases => self.move_phase(lines),
            Focus::Body => self.move_body(lines, effects),
        }
    }

    pub(super) fn page(&mut self, pages: isize, effects: &mut Vec<Effect>) {
        let layout = self.layout();
        let lines = match self.focus {
            Focus::List => layout.list_lines(),
            Focus::Phases => layout.phase_lines(),
            Focus::Body => layout.body_lines(),
        };
        let lines = isize::try_from(lines.saturating_sub(1).max(1)).unwrap_or(1);
        self.step(lines * pages, effects);
    }

    pub(super) fn go_to_edge(&mut self, end: bool, effects: &mut Vec<Effect>) {
        let all = isize::MAX / 4;
        if self.focus != Focus::Body || self.tab == Tab::Changes {
            self.step(if end { all } else { -all }, effects);
            return;
        }
        let height = self.layout().body_lines();
        let request = if end { self.text.follow(height) } else { self.text.go_to_start() };
        effects.extend(request.map(|request| Effect::Load(Request::Text(request))));
    }

    pub(super) fn move_phase(&mut self, lines: isize) {
        self.phase_cursor = self.phase_cursor.saturating_add_signed(lines).min(self.phases().len());
        self.is_phase_chosen = true;
        self.fit();
    }

    pub(super) fn move_body(&mut self, lines: isize, effects: &mut Vec<Effect>) {
        let height = self.layout().body_lines();
        if self.tab == Tab::Changes {
            self.changes.go_by(lines, height);
        } else {
            let request = self.text.go_by(lines, height);
            effects.extend(request.map(|request| Effect::Load(Request::Text(request))));
        }
    }

    /// Moves to the next line that has the text of the search.
    pub(super) fn find(&mut self, forward: bool, effects: &mut Vec<Effect>) {
        let Some(text) = self.search.clone().filter(|text| !text.is_empty()) else { return };
        self.message = None;
        if self.tab == Tab::Changes {
            let height = self.layout().body_lines();
            if !self.changes.find(&text, forward, height) {
                self.say(Tone::Warn, "no further line has this text");
            }
        } else {
            // A large log takes a moment.
            self.say(Tone::Dim, "searching …");
            let request = self.text.find(&text, forward);
            effects.extend(request.map(|request| Effect::Load(Request::Text(request))));
        }
    }

    pub(super) fn scroll(&mut self, columns: isize) {
        let left = if self.tab == Tab::Changes { &mut self.changes.left } else { &mut self.text.left };
        *left = left.saturating_add_signed(columns).min(crate::text::MAX_LINE);
    }

    pub(super) fn enter(&mut self) {
        match self.focus {
            Focus::List if self.chosen.is_some() => self.set_focus(Focus::Phases),
            Focus::Phases => {
                self.is_phase_chosen = true;
                self.set_focus(Focus::Body);
            }
            Focus::List | Focus::Body => {}
        }
    }

    pub(super) fn back(&mut self, effects: &mut Vec<Effect>) {
        match self.focus {
            Focus::Body => self.set_focus(Focus::Phases),
            Focus::Phases => {
                // The phase at work is followed again.
                self.is_phase_chosen = false;
                self.set_focus(Focus::List);
            }
            Focus::List => {
                if !self.filter.is_empty() {
                    self.filter.clear();
                    self.filter_changed(effects);
                }
                self.message = None;
            }
        }
    }

    pub(super) fn next_tab(&mut self, step: usize, effects: &mut Vec<Effect>) {
        let at = Tab::ALL.iter().position(|tab| *tab == self.tab).unwrap_or(0);
        self.tab = Tab::ALL[(at + step) % Tab::ALL.len()];
        if self.tab == Tab::Changes {
            self.load_body(effects);
        }
    }

    /// Shows the next or previous file: of the changes, or of the logs of a phase.
    pub(super) fn switch(&mut self, forward: bool, effects: &mut Vec<Effect>) {
        let height = self.layout().body_lines();
        if self.tab == Tab::Changes {
            self.changes.go_to_file(forward, height);
        } else {
            let request = self.text.switch_file(if forward { 1 } else { -1 });
            effects.extend(request.map(|request| Effect::Load(Request::Text(request))));
        }
    }
}
