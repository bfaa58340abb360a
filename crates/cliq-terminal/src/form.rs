//! Forms: fields of text, choices and switches, with the keys that fill them in.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui_textarea::{CursorMove, TextArea};

use crate::text::plain;

/// Maximum size of a text in bytes.
const MAX_TEXT: usize = 256 << 10;

/// Value of a field.
#[derive(Debug, Clone)]
pub(crate) enum FieldValue {
    /// One line.
    Line(Box<TextArea<'static>>),
    /// Several lines.
    Lines(Box<TextArea<'static>>),
    /// One of some options.
    Choice { options: Vec<String>, chosen: usize },
    /// Yes or no.
    Switch(bool),
}

/// Field of a form.
#[derive(Debug, Clone)]
pub(crate) struct Field {
    /// Name within the form.
    pub(crate) id: String,
    pub(crate) label: String,
    pub(crate) help: Option<String>,
    pub(crate) is_required: bool,
    pub(crate) value: FieldValue,
}

impl Field {
    pub(crate) fn line(id: &str, label: &str, text: &str) -> Self {
        Self::new(id, label, FieldValue::Line(Box::new(area(text, false))))
    }

    pub(crate) fn lines(id: &str, label: &str, text: &str) -> Self {
        Self::new(id, label, FieldValue::Lines(Box::new(area(text, true))))
    }

    pub(crate) fn choice(id: &str, label: &str, options: Vec<String>, chosen: usize) -> Self {
        Self::new(id, label, FieldValue::Choice { options, chosen })
    }

    pub(crate) fn switch(id: &str, label: &str, is_on: bool) -> Self {
        Self::new(id, label, FieldValue::Switch(is_on))
    }

    fn new(id: &str, label: &str, value: FieldValue) -> Self {
        Self { id: id.to_owned(), label: plain(label), help: None, is_required: false, value }
    }

    pub(crate) fn required(mut self, is_required: bool) -> Self {
        self.is_required = is_required;
        self
    }

    pub(crate) fn helped(mut self, help: Option<&str>) -> Self {
        self.help = help.map(plain);
        self
    }

    /// Text of the value.
    pub(crate) fn text(&self) -> String {
        match &self.value {
            FieldValue::Line(area) | FieldValue::Lines(area) => area.lines().join("\n"),
            FieldValue::Choice { options, chosen } => options.get(*chosen).cloned().unwrap_or_default(),
            FieldValue::Switch(is_on) => is_on.to_string(),
        }
    }

    fn is_text(&self) -> bool {
        matches!(self.value, FieldValue::Line(_) | FieldValue::Lines(_))
    }
}

fn area(text: &str, is_multiline: bool) -> TextArea<'static> {
    let lines: Vec<String> = if is_multiline {
        text.lines().map(str::to_owned).collect()
    } else {
        vec![text.replace(['\n', '\r'], " ")]
    };
    let mut area = TextArea::new(if lines.is_empty() { vec![String::new()] } else { lines });
    area.move_cursor(CursorMove::Bottom);
    area.move_cursor(CursorMove::End);
    area
}

/// Result of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FormKey {
    /// The form took it; values may have changed.
    Taken,
    /// The form is to be closed without an effect.
    Closed,
    /// The form is to be submitted.
    Submitted,
}

/// Form.
#[derive(Debug, Clone)]
pub(crate) struct FormState {
    pub(crate) fields: Vec<Field>,
    pub(crate) focus: usize,
    /// Problems of the last attempt to submit it.
    pub(crate) problems: Vec<String>,
    /// Whether something was typed.
    pub(crate) is_changed: bool,
    /// Whether the key to close it was pressed once although something was typed.
    pub(crate) asks_to_close: bool,
    /// Whether it was submitted and the result has not come.
    pub(crate) is_sent: bool,
}

impl FormState {
    pub(crate) fn new(fields: Vec<Field>) -> Self {
        Self {
            fields,
            focus: 0,
            problems: Vec::new(),
            is_changed: false,
            asks_to_close: false,
            is_sent: false,
        }
    }

    pub(crate) fn field(&self, id: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.id == id)
    }

    /// Text of a field; empty if there is no such field.
    pub(crate) fn text(&self, id: &str) -> String {
        self.field(id).map(Field::text).unwrap_or_default()
    }

    /// Index of the chosen option of a field.
    pub(crate) fn chosen(&self, id: &str) -> Option<usize> {
        match self.field(id)?.value {
            FieldValue::Choice { chosen, .. } => Some(chosen),
            _ => None,
        }
    }

    /// Replaces the fields. Values of fields that stay are kept if they are of the same kind, but for the field `anew`.
    pub(crate) fn replace(&mut self, fields: Vec<Field>, anew: Option<&str>) {
        let focused = self.fields.get(self.focus).map(|field| field.id.clone());
        let old = std::mem::replace(&mut self.fields, fields);
        for field in &mut self.fields {
            if anew == Some(field.id.as_str()) {
                continue;
            }
            let Some(before) = old.iter().find(|before| before.id == field.id) else { continue };
            match (&mut field.value, &before.value) {
                (FieldValue::Line(new), FieldValue::Line(old))
                | (FieldValue::Lines(new), FieldValue::Lines(old)) => new.clone_from(old),
                (FieldValue::Switch(new), FieldValue::Switch(old)) => *new = *old,
                (FieldValue::Choice { options, chosen }, FieldValue::Choice { .. }) => {
                    if let Some(at) = options.iter().position(|option| *option == before.text()) {
                        *chosen = at;
                    }
                }
                _ => {}
            }
        }
        self.focus = focused
            .and_then(|id| self.fields.iter().position(|field| field.id == id))
            .unwrap_or(self.focus)
            .min(self.fields.len().saturating_sub(1));
    }

    pub(crate) fn paste(&mut self, text: &str) {
        if self.is_sent {
            return;
        }
        let Some(field) = self.fields.get_mut(self.focus) else { return };
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let room = MAX_TEXT.saturating_sub(field.text().len());
        let text: String =
            text.chars().take(room).filter(|c| !c.is_control() || "\n\t".contains(*c)).collect();
        match &mut field.value {
            FieldValue::Line(area) => {
                area.insert_str(text.replace('\n', " "));
            }
            FieldValue::Lines(area) => {
                area.insert_str(text);
            }
            FieldValue::Choice { .. } | FieldValue::Switch(_) => return,
        }
        self.is_changed = true;
    }

    pub(crate) fn key(&mut self, key: KeyEvent) -> FormKey {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if self.is_sent {
            return if key.code == KeyCode::Esc { FormKey::Closed } else { FormKey::Taken };
        }
        if key.code == KeyCode::Esc || is_control && key.code == KeyCode::Char('c') {
            if !self.is_changed || self.asks_to_close {
                return FormKey::Closed;
            }
            self.asks_to_close = true;
            return FormKey::Taken;
        }
        self.asks_to_close = false;
        if is_control && matches!(key.code, KeyCode::Char('s') | KeyCode::Enter) {
            return FormKey::Submitted;
        }
        let last = self.fields.len().saturating_sub(1);
        match key.code {
            KeyCode::Tab => self.focus = if self.focus >= last { 0 } else { self.focus + 1 },
            KeyCode::BackTab => self.focus = if self.focus == 0 { last } else { self.focus - 1 },
            _ => return self.field_key(key, last),
        }
        FormKey::Taken
    }

    fn field_key(&mut self, key: KeyEvent, last: usize) -> FormKey {
        let focus = self.focus;
        let Some(field) = self.fields.get_mut(focus) else { return FormKey::Submitted };
        let is_full = field.is_text() && field.text().len() >= MAX_TEXT;
        match &mut field.value {
            FieldValue::Lines(area) => {
                let at = area.cursor().0;
                match key.code {
                    // The first and the last line lead to the neighbours.
                    KeyCode::Up if at == 0 => self.focus = focus.saturating_sub(1),
                    KeyCode::Down if at + 1 >= area.lines().len() => self.focus = (focus + 1).min(last),
                    KeyCode::Char(_) | KeyCode::Enter if is_full => {}
                    _ => self.is_changed |= area.input(key),
                }
            }
            FieldValue::Line(area) => match key.code {
                KeyCode::Enter if focus == last => return FormKey::Submitted,
                KeyCode::Enter | KeyCode::Down => self.focus = (focus + 1).min(last),
                KeyCode::Up => self.focus = focus.saturating_sub(1),
                KeyCode::Char('m' | 'j') if key.modifiers.contains(KeyModifiers::CONTROL) => {}
                KeyCode::Char(_) if is_full => {}
                _ => self.is_changed |= area.input(key),
            },
            FieldValue::Choice { options, chosen } => {
                let count = options.len().max(1);
                match key.code {
                    KeyCode::Enter if focus == last => return FormKey::Submitted,
                    KeyCode::Enter | KeyCode::Down => self.focus = (focus + 1).min(last),
                    KeyCode::Up => self.focus = focus.saturating_sub(1),
                    KeyCode::Right | KeyCode::Char(' ') => {
                        *chosen = (*chosen + 1) % count;
                        self.is_changed = true;
                    }
                    KeyCode::Left => {
                        *chosen = (*chosen + count - 1) % count;
                        self.is_changed = true;
                    }
                    KeyCode::Char(c) => {
                        // A letter chooses the next option that begins with it, or a part of which does: `@scope/name`.
                        let letter = c.to_lowercase().to_string();
                        let starts = |option: &String| {
                            option.to_lowercase().split('/').any(|part| part.starts_with(&letter))
                        };
                        let order = (1..=count).map(|step| (*chosen + step) % count);
                        if let Some(found) = order.into_iter().find(|at| options.get(*at).is_some_and(starts))
                        {
                            *chosen = found;
                            self.is_changed = true;
                        }
                    }
                    _ => {}
                }
            }
            FieldValue::Switch(is_on) => match key.code {
                KeyCode::Enter if focus == last => return FormKey::Submitted,
                KeyCode::Enter | KeyCode::Down => self.focus = (focus + 1).min(last),
                KeyCode::Up => self.focus = focus.saturating_sub(1),
                KeyCode::Char(' ') | KeyCode::Left | KeyCode::Right => {
                    *is_on = !*is_on;
                    self.is_changed = true;
                }
                KeyCode::Char('y') => *is_on = true,
                KeyCode::Char('n') => *is_on = false,
                _ => {}
            },
        }
        FormKey::Taken
    }
}
