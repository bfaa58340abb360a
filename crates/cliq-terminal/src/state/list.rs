//! The list of runs: order, filter, and the chosen run.

use std::cmp::Reverse;
use std::sync::Arc;

use super::{Effect, State};
use crate::model::{RunKey, RunList, RunRow, Section};
use crate::text::{Tone, plain};

/// Row of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListRow {
    /// Title of a section, with the number of its runs.
    Title(Section, usize),
    /// Run, by its index.
    Run(usize),
}

impl State {
    pub(super) fn take_runs(&mut self, reply: Result<Arc<RunList>, String>, effects: &mut Vec<Effect>) {
        let list = match reply {
            Ok(list) => list,
            Err(problem) => {
                self.is_loaded = true;
                self.listed = None;
                self.problems = vec![plain(&problem)];
                return;
            }
        };
        if self.listed.as_ref().is_some_and(|before| Arc::ptr_eq(before, &list)) {
            return;
        }
        self.is_loaded = true;
        self.is_partial = list.is_partial;
        self.problems = list.problems.iter().map(|problem| plain(problem)).collect();
        self.today = list.today.unwrap_or(self.today);
        let before = self.chosen_run().map(|run| run.status);
        self.runs.clone_from(&list.runs);
        self.listed = Some(list);
        let today = self.today;
        let time = |run: &RunRow| run.ended.or(run.started).map_or(0, cliq_protocol::Timestamp::unix_millis);
        self.runs.sort_by_cached_key(|run| (run.section(today), Reverse(time(run)), run.key.clone()));
        self.apply_filter();
        self.keep_chosen_visible();
        if self.chosen.is_none() {
            let first = self.visible.first().map(|at| self.runs[*at].key.clone());
            self.choose(first, effects);
        } else if before != self.chosen_run().map(|run| run.status) {
            self.load_detail(effects);
        }
        self.fit();
    }

    /// Finds the runs that contain all words of the filter.
    pub(super) fn apply_filter(&mut self) {
        let filter = self.filter.to_lowercase();
        let words: Vec<&str> = filter.split_whitespace().collect();
        let fits = |run: &RunRow| {
            let text = [
                run.title.as_str(),
                &run.team,
                &run.project,
                &run.id,
                run.status.as_str(),
                run.section(self.today).title(),
            ]
            .map(str::to_lowercase)
            .join(" ");
            words.iter().all(|word| text.contains(word))
        };
        self.visible = self
            .runs
            .iter()
            .enumerate()
            .filter(|(_, run)| words.is_empty() || fits(run))
            .map(|(at, _)| at)
            .collect();
    }

    /// Keeps the chosen run in the list if it no longer fits the filter: only a person chooses another.
    fn keep_chosen_visible(&mut self) {
        let chosen = self.runs.iter().position(|run| Some(&run.key) == self.chosen.as_ref());
        if let Some(at) = chosen
            && let Err(place) = self.visible.binary_search(&at)
        {
            self.visible.insert(place, at);
        }
    }

    /// Rows of the list with titles of sections.
    pub(crate) fn list_rows(&self) -> Vec<ListRow> {
        let mut rows = Vec::with_capacity(self.visible.len() + 4);
        let mut section = None;
        for &at in &self.visible {
            let own = self.runs[at].section(self.today);
            if section != Some(own) {
                section = Some(own);
                let count =
                    self.visible.iter().filter(|at| self.runs[**at].section(self.today) == own).count();
                rows.push(ListRow::Title(own, count));
            }
            rows.push(ListRow::Run(at));
        }
        rows
    }

    /// Chooses a run.
    pub(super) fn choose(&mut self, run: Option<RunKey>, effects: &mut Vec<Effect>) {
        if self.chosen == run {
            return;
        }
        self.chosen = run;
        self.detail_problem = None;
        (self.phase_cursor, self.phase_top, self.is_phase_chosen) = (0, 0, false);
        self.load_detail(effects);
        self.fit();
    }

    /// Moves the choice by runs.
    pub(super) fn choose_by(&mut self, step: isize, effects: &mut Vec<Effect>) {
        let Some(last) = self.visible.len().checked_sub(1) else { return };
        let at = self.visible.iter().position(|at| Some(&self.runs[*at].key) == self.chosen.as_ref());
        let next = at.map_or(0, |at| at.saturating_add_signed(step).min(last));
        let key = self.runs[self.visible[next]].key.clone();
        self.choose(Some(key), effects);
    }

    /// Scrolls the list so that the chosen run is in it.
    pub(super) fn show_chosen(&mut self, height: usize) {
        let rows = self.list_rows();
        let is_chosen = |row: &ListRow| match row {
            ListRow::Run(at) => Some(&self.runs[*at].key) == self.chosen.as_ref(),
            ListRow::Title(..) => false,
        };
        let height = height.max(1);
        if let Some(at) = rows.iter().position(is_chosen) {
            // The title above the first run of a section is shown with it.
            let from =
                if at > 0 && matches!(rows[at - 1], ListRow::Title(..)) && height > 1 { at - 1 } else { at };
            if from < self.list_top {
                self.list_top = from;
            }
            if at >= self.list_top + height {
                self.list_top = at + 1 - height;
            }
        }
        self.list_top = self.list_top.min(rows.len().saturating_sub(height));
    }

    /// Takes the filter over. A chosen run that does not fit gives way to the first that does.
    pub(super) fn filter_changed(&mut self, effects: &mut Vec<Effect>) {
        self.apply_filter();
        let is_visible = self.visible.iter().any(|at| Some(&self.runs[*at].key) == self.chosen.as_ref());
        if !is_visible {
            let first = self.visible.first().map(|at| self.runs[*at].key.clone());
            self.choose(first, effects);
        }
        self.list_top = 0;
        self.fit();
    }

    /// Returns the numbers of runs that need a person, that are active, and that ended today.
    pub(crate) fn counts(&self) -> [usize; 3] {
        let mut counts = [0; 3];
        for run in &self.runs {
            match run.section(self.today) {
                Section::NeedsYou => counts[0] += 1,
                Section::Working => counts[1] += 1,
                Section::Today => counts[2] += 1,
                Section::Earlier => {}
            }
        }
        counts
    }

    /// Chosen run, or a message that there is none.
    pub(super) fn chosen_or_say(&mut self) -> Option<RunRow> {
        let run = self.chosen_run().cloned();
        if run.is_none() {
            self.say(Tone::Warn, "no run is chosen");
        }
        run
    }
}
