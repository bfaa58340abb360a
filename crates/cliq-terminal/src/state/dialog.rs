//! Dialogs: help, questions before something is ended, and forms.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{Effect, KEYS, State};
use crate::form::{Field, FormKey, FormState};
use crate::model::{Offers, ReviewDetail, RunKey};
use crate::source::Action;
use crate::text::{Tone, plain};
use crate::{answer_form, run_form};

/// Dialog above the panes.
#[derive(Debug, Clone)]
pub(crate) enum Dialog {
    /// Keys; the first line that is shown.
    Help { top: usize },
    /// Link to a page.
    Link(String),
    /// Question before an action.
    Confirm { title: String, lines: Vec<String>, action: Box<Action> },
    /// Form.
    Form { purpose: Box<Purpose>, form: Box<FormState> },
}

/// Purpose of a form.
#[derive(Debug, Clone)]
pub(crate) enum Purpose {
    /// Answer to a review.
    Answer(RunKey, Box<ReviewDetail>),
    /// Comment on a line.
    Comment { action: Action, place: String, line_text: String },
    /// Guidance.
    Steer { run: RunKey, phase: Option<String>, title: String },
    /// New run.
    Start(Offers),
}

impl Purpose {
    /// Title of the form.
    pub(crate) fn title(&self) -> String {
        match self {
            Self::Answer(_, detail) => {
                let review = &detail.review;
                let title = review.title.as_deref().map(|title| format!(": {title}")).unwrap_or_default();
                plain(&format!("{} of {}{title}", review.phase, review.team))
            }
            Self::Comment { action, place, .. } => {
                let is_guidance = matches!(action, Action::Comment { review: None, .. });
                let to = if is_guidance { "guidance about" } else { "comment on" };
                plain(&format!("{to} {place}"))
            }
            Self::Steer { title, .. } => plain(title),
            Self::Start(_) => "new run".to_owned(),
        }
    }

    /// Word of the key that submits the form.
    pub(crate) fn submit(&self) -> &'static str {
        match self {
            Self::Answer(..) | Self::Comment { .. } | Self::Steer { .. } => "send",
            Self::Start(_) => "start",
        }
    }
}

impl State {
    pub(super) fn open_form(&mut self, purpose: Purpose, fields: Vec<Field>) {
        self.message = None;
        let form = Box::new(FormState::new(fields));
        self.dialog = Some(Dialog::Form { purpose: Box::new(purpose), form });
    }

    pub(super) fn open_answer(&mut self, run: RunKey, detail: ReviewDetail) {
        if self.dialog.is_some() {
            return;
        }
        if let Some(ending) = detail.review.ending() {
            self.say(Tone::Warn, &format!("the review is over: {ending}"));
            return;
        }
        let fields = answer_form::fields(&detail, 0);
        self.open_form(Purpose::Answer(run, Box::new(detail)), fields);
    }

    pub(super) fn open_new_run(&mut self, offers: Offers) {
        if self.dialog.is_some() {
            return;
        }
        let fields = run_form::fields(&offers, 0, 0);
        self.open_form(Purpose::Start(offers), fields);
        if let Some(Dialog::Form { form, .. }) = &mut self.dialog {
            form.focus = form.fields.iter().position(|field| field.id == "requirement").unwrap_or(0);
        }
    }

    pub(super) fn dialog_key(&mut self, key: KeyEvent, effects: &mut Vec<Effect>) {
        let is_closing = key.code == KeyCode::Esc
            || key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
        match &mut self.dialog {
            None => {}
            Some(Dialog::Help { top }) => match key.code {
                KeyCode::Down | KeyCode::Char('j') => *top = (*top + 1).min(KEYS.len()),
                KeyCode::Up | KeyCode::Char('k') => *top = top.saturating_sub(1),
                KeyCode::PageDown | KeyCode::Char(' ') => *top = (*top + 10).min(KEYS.len()),
                KeyCode::PageUp => *top = top.saturating_sub(10),
                _ => self.dialog = None,
            },
            Some(Dialog::Link(link)) => match key.code {
                KeyCode::Char('y') => {
                    effects.push(Effect::Copy(link.clone()));
                    self.dialog = None;
                    self.say(Tone::Dim, "copied the link, if the terminal allows programs to");
                }
                KeyCode::Char('q') | KeyCode::Enter => self.dialog = None,
                _ if is_closing => self.dialog = None,
                // What is typed on is no command.
                _ => {}
            },
            Some(Dialog::Confirm { action, .. }) => match key.code {
                KeyCode::Char('y' | 'Y') => {
                    let action = (**action).clone();
                    self.dialog = None;
                    self.act(action, effects);
                }
                KeyCode::Char('n' | 'N' | 'q') => self.dialog = None,
                _ if is_closing => self.dialog = None,
                // Enter does not destroy: only the letter does.
                _ => {}
            },
            Some(Dialog::Form { purpose, form }) => {
                let project = form.chosen("project");
                match form.key(key) {
                    FormKey::Closed => self.dialog = None,
                    FormKey::Taken => refresh(purpose, form, project != form.chosen("project")),
                    FormKey::Submitted => match action_of(purpose, form) {
                        Ok(action) => {
                            form.is_sent = true;
                            form.problems.clear();
                            self.act(action, effects);
                        }
                        Err(problems) => {
                            form.problems = problems.iter().map(|problem| plain(problem)).collect();
                        }
                    },
                }
            }
        }
    }
}

/// Adapts the fields of a form to the choices made in it. Another project brings the team that is assembled there.
fn refresh(purpose: &Purpose, form: &mut FormState, has_other_project: bool) {
    match purpose {
        Purpose::Answer(_, detail) => {
            let fields = answer_form::fields(detail, form.chosen("answer").unwrap_or(0));
            if ids(&fields) != ids(&form.fields) {
                form.problems.clear();
                form.replace(fields, None);
            }
        }
        Purpose::Start(offers) => {
            let project = form.chosen("project").unwrap_or(0);
            let team = if has_other_project { 0 } else { form.chosen("team").unwrap_or(0) };
            let fields = run_form::fields(offers, project, team);
            let is_same = !has_other_project
                && ids(&fields) == ids(&form.fields)
                && fields.iter().zip(&form.fields).all(|(new, old)| new.help == old.help)
                && fields.iter().map(options).eq(form.fields.iter().map(options));
            if !is_same {
                form.problems.clear();
                form.replace(fields, Some("team"));
            }
        }
        Purpose::Comment { .. } | Purpose::Steer { .. } => {}
    }
}

fn ids(fields: &[Field]) -> Vec<&str> {
    fields.iter().map(|field| field.id.as_str()).collect()
}

fn options(field: &Field) -> Vec<String> {
    match &field.value {
        crate::form::FieldValue::Choice { options, .. } => options.clone(),
        _ => Vec::new(),
    }
}

fn action_of(purpose: &Purpose, form: &FormState) -> Result<Action, Vec<String>> {
    let text = form.text("text").trim().to_owned();
    match purpose {
        Purpose::Answer(run, detail) => answer_form::action(form, detail, run),
        Purpose::Start(offers) => run_form::action(form, offers),
        Purpose::Comment { .. } | Purpose::Steer { .. } if text.is_empty() => {
            Err(vec!["the text is empty".to_owned()])
        }
        Purpose::Steer { run, phase, .. } => {
            Ok(Action::Steer { run: run.clone(), phase: phase.clone(), text })
        }
        Purpose::Comment { action, .. } => match action.clone() {
            Action::Comment { run, review, path, hunks, side, line, text: _ } => {
                Ok(Action::Comment { run, review, path, hunks, side, line, text })
            }
            other => Ok(other),
        },
    }
}
