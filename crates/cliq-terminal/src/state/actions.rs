//! Keys that act on the chosen run, and results of actions.

use cliq_review::ReviewId;

use super::{Dialog, Effect, Focus, Purpose, Request, State, Tab};
use crate::form::Field;
use crate::model::RunRow;
use crate::source::{Action, ActionResult};
use crate::text::{StyledLine, Tone};

impl State {
    pub(super) fn action_key(&mut self, key: char, effects: &mut Vec<Effect>) {
        if key == 'n' {
            self.load(Request::Offers(self.chosen.clone()), effects);
            return;
        }
        if !"acsxrRoty".contains(key) {
            return;
        }
        let Some(run) = self.chosen_or_say() else { return };
        match key {
            'a' => self.answer(&run, effects),
            'c' => self.comment(&run),
            's' => self.steer(&run),
            'x' => self.cancel(&run),
            'r' => self.resume(&run, effects),
            'R' => self.run_again(&run),
            'o' => self.act(Action::Open(run.key), effects),
            't' => {
                let phase = self.phase().map(|phase| phase.name.clone());
                let phase = phase.filter(|_| self.focus != Focus::List);
                effects.push(Effect::Attach(run.key, phase));
            }
            _ => self.copy(&run, effects),
        }
    }

    fn answer(&mut self, run: &RunRow, effects: &mut Vec<Effect>) {
        let here = self.pending_review();
        let any = || self.phases().iter().find_map(|phase| phase.review.clone());
        match here.or_else(any) {
            Some(review) => self.load(Request::Review(run.key.clone(), review), effects),
            None => self.say(Tone::Warn, "no review of this run waits for an answer"),
        }
    }

    fn comment(&mut self, run: &RunRow) {
        let place = match (self.tab, self.focus) {
            (Tab::Changes, Focus::Body) => self.changes.place().cloned(),
            _ => None,
        };
        let Some(place) = place else {
            let hint = "comments belong to a line: `Tab` to the changes, `Enter`, and move to the line";
            self.say(Tone::Warn, hint);
            return;
        };
        let review = self.changes.changes.as_ref().and_then(|changes| changes.review.as_ref());
        let review: Option<ReviewId> = review.map(|detail| detail.review.id.clone());
        if review.is_none() && !run.status.is_active() {
            self.say(Tone::Warn, "the run has ended: nothing of it reads comments any more");
            return;
        }
        let hunks = self.changes.hunks(&place).unwrap_or_default().to_owned();
        let line = self.changes.rows.get(self.changes.cursor).map(|row| row.line.text()).unwrap_or_default();
        let action = Action::Comment {
            run: run.key.clone(),
            review,
            path: place.path.clone(),
            hunks,
            side: place.side,
            line: place.line,
            text: String::new(),
        };
        let at = format!("{}:{}", place.path, place.line);
        let purpose = Purpose::Comment { action, place: at, line_text: line };
        self.open_form(purpose, vec![Field::lines("text", "text", "").required(true)]);
    }

    fn steer(&mut self, run: &RunRow) {
        if !run.status.is_active() {
            self.say(Tone::Warn, "the run has ended: it takes no guidance");
            return;
        }
        let phase = self.phase().filter(|_| self.focus != Focus::List).map(|phase| phase.name.clone());
        let to = phase.as_deref().map_or_else(|| "the run".to_owned(), |phase| format!("phase {phase}"));
        let purpose = Purpose::Steer { run: run.key.clone(), phase, title: format!("guidance for {to}") };
        self.open_form(purpose, vec![Field::lines("text", "text", "").required(true)]);
    }

    fn cancel(&mut self, run: &RunRow) {
        if !run.status.is_active() {
            self.say(Tone::Warn, "the run has ended");
            return;
        }
        let lines = vec![
            format!("“{}” in {}", run.title, run.project),
            "Agents at work are stopped. `r` resumes the run later.".to_owned(),
        ];
        self.confirm("cancel this run?", lines, Action::Cancel(run.key.clone()));
    }

    fn resume(&mut self, run: &RunRow, effects: &mut Vec<Effect>) {
        if run.can_resume() {
            self.act(Action::Resume(run.key.clone()), effects);
            return;
        }
        let why = if run.status.is_active() {
            "the run is active"
        } else if run.is_last {
            "the run is complete: `R` runs it again"
        } else {
            "only the last run of a project can be resumed"
        };
        self.say(Tone::Warn, why);
    }

    fn run_again(&mut self, run: &RunRow) {
        if !run.can_run_again() {
            let why = if run.status.is_active() {
                "the run is active"
            } else {
                "only the last run of a project can be run again"
            };
            self.say(Tone::Warn, why);
            return;
        }
        let lines = vec![
            format!("“{}” in {}", run.title, run.project),
            if run.is_on_server {
                "A new run is started with the same requirement and inputs.".to_owned()
            } else {
                "All phases work again. The files of this run move to its history.".to_owned()
            },
        ];
        self.confirm("run again from the beginning?", lines, Action::RunAgain(run.key.clone()));
    }

    fn confirm(&mut self, title: &str, lines: Vec<String>, action: Action) {
        self.dialog = Some(Dialog::Confirm { title: title.to_owned(), lines, action: Box::new(action) });
    }

    fn copy(&mut self, run: &RunRow, effects: &mut Vec<Effect>) {
        let (what, text) = match self.focus {
            Focus::List => ("the id of the run", run.id.clone()),
            Focus::Phases => match self.phase() {
                Some(phase) => ("the name of the phase", phase.name.clone()),
                None => ("the id of the run", run.id.clone()),
            },
            Focus::Body => {
                let line = match self.tab {
                    Tab::Changes => self.changes.rows.get(self.changes.cursor).map(|row| row.line.text()),
                    Tab::Log | Tab::Transcript => {
                        self.text.line(self.text.cursor).as_ref().map(StyledLine::text)
                    }
                };
                ("the line", line.unwrap_or_default())
            }
        };
        if text.is_empty() {
            self.say(Tone::Warn, "there is nothing to copy here");
            return;
        }
        effects.push(Effect::Copy(text));
        self.say(Tone::Dim, &format!("copied {what}, if the terminal allows programs to"));
    }

    pub(super) fn act(&mut self, action: Action, effects: &mut Vec<Effect>) {
        self.acting += 1;
        self.message = None;
        effects.push(Effect::Act(action));
    }

    pub(super) fn acted(
        &mut self,
        action: &Action,
        result: Result<ActionResult, String>,
        effects: &mut Vec<Effect>,
    ) {
        self.acting = self.acting.saturating_sub(1);
        match result {
            Ok(done) => {
                if matches!(&self.dialog, Some(Dialog::Form { form, .. }) if form.is_sent) {
                    self.dialog = None;
                }
                if !done.message.is_empty() {
                    self.say(Tone::Good, &done.message);
                }
                if let Some(link) = done.link
                    && self.dialog.is_none()
                {
                    self.dialog = Some(Dialog::Link(crate::text::plain(&link)));
                }
                if matches!(action, Action::Comment { .. }) {
                    self.changes_of = None;
                }
                if done.chosen.is_some() {
                    if !self.filter.is_empty() {
                        self.filter.clear();
                        self.apply_filter();
                    }
                    self.focus = Focus::List;
                    self.choose(done.chosen, effects);
                }
            }
            Err(problem) => {
                // The form stays open with what was typed.
                match &mut self.dialog {
                    Some(Dialog::Form { form, .. }) if form.is_sent => {
                        form.is_sent = false;
                        form.problems = vec![crate::text::plain(&problem)];
                    }
                    _ => self.say(Tone::Bad, &problem),
                }
            }
        }
        self.look(effects);
        self.load_detail(effects);
    }
}
