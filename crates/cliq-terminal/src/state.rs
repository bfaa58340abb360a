//! State of the screen: `update` takes an event and returns effects. Pure: no IO, no clock.

mod actions;
mod dialog;
mod keys;
mod list;
mod panes;

use std::collections::HashMap;
use std::sync::Arc;

use cliq_protocol::Timestamp;

pub(crate) use dialog::{Dialog, Purpose};
pub(crate) use keys::KEYS;
pub use keys::key_table;
pub(crate) use list::ListRow;

use crate::changes_view::ChangesView;
use crate::event::{ChangesRequest, Effect, Event, Reply, Request};
use crate::layout::Layout;
use crate::model::{PhaseRow, RunDetail, RunKey, RunList, RunRow};
use crate::source::TextKind;
use crate::text::{Tone, plain};
use crate::text_view::{TextTarget, TextView};

/// Time for which a message is shown, in milliseconds.
const MESSAGE_MS: i64 = 8_000;
/// Time between two looks at runs while something is active, and while nothing is.
const ACTIVE_MS: i64 = 500;
const IDLE_MS: i64 = 2_000;
/// Time between two looks at changes.
const CHANGES_MS: i64 = 3_000;

/// Pane that has the keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Focus {
    /// List of runs.
    List,
    /// Phases of the chosen run.
    Phases,
    /// Log, transcript or changes.
    Body,
}

/// Content of the pane below the phases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tab {
    /// Log of a phase, or of the orchestrator.
    Log,
    /// Transcript of a model.
    Transcript,
    /// Changed files.
    Changes,
}

impl Tab {
    pub(crate) const ALL: [Self; 3] = [Self::Log, Self::Transcript, Self::Changes];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Transcript => "transcript",
            Self::Changes => "changes",
        }
    }
}

/// Sentence at the bottom of the screen.
#[derive(Debug, Clone)]
pub(crate) struct Message {
    pub(crate) tone: Tone,
    pub(crate) text: String,
    pub(crate) until_ms: i64,
}

/// State of the screen.
#[derive(Debug)]
pub struct State {
    pub(crate) columns: u16,
    pub(crate) rows: u16,
    pub(crate) now: Timestamp,
    pub(crate) today: Timestamp,
    pub(crate) runs: Vec<RunRow>,
    /// Value of the source that the runs were taken from.
    listed: Option<Arc<RunList>>,
    pub(crate) is_loaded: bool,
    pub(crate) is_partial: bool,
    pub(crate) problems: Vec<String>,
    /// Indices of the runs that the filter admits, in the order of the display.
    pub(crate) visible: Vec<usize>,
    pub(crate) filter: String,
    /// Whether keys go to the filter.
    pub(crate) is_filtering: bool,
    /// Text that is searched in the log, transcript or changes, while keys go to it.
    pub(crate) search: Option<String>,
    /// Text that was searched last.
    last_search: String,
    pub(crate) chosen: Option<RunKey>,
    /// First row of the list that is shown, counted with titles of sections.
    pub(crate) list_top: usize,
    pub(crate) detail: Option<(RunKey, RunDetail)>,
    pub(crate) detail_problem: Option<String>,
    pub(crate) focus: Focus,
    /// Row of the phases at the cursor; 0 is the whole run.
    pub(crate) phase_cursor: usize,
    pub(crate) phase_top: usize,
    /// Whether a person chose the phase: else the one at work is followed.
    is_phase_chosen: bool,
    pub(crate) tab: Tab,
    pub(crate) text: TextView,
    pub(crate) changes: ChangesView,
    changes_of: Option<ChangesRequest>,
    pub(crate) dialog: Option<Dialog>,
    pub(crate) message: Option<Message>,
    /// Actions that are being carried out.
    pub(crate) acting: usize,
    /// Whether the warning about an action under way was shown: the next key that leaves does leave.
    may_leave: bool,
    /// Requests that were not answered yet, by kind, with the time of the request.
    waiting: HashMap<&'static str, i64>,
    last_look: i64,
    last_changes: i64,
}

impl State {
    /// Returns the state of a screen with a size in columns and rows, before anything was read.
    #[must_use]
    pub fn new(columns: u16, rows: u16, now: Timestamp) -> Self {
        Self {
            columns,
            rows,
            now,
            today: now,
            runs: Vec::new(),
            listed: None,
            is_loaded: false,
            is_partial: false,
            problems: Vec::new(),
            visible: Vec::new(),
            filter: String::new(),
            is_filtering: false,
            search: None,
            last_search: String::new(),
            chosen: None,
            list_top: 0,
            detail: None,
            detail_problem: None,
            focus: Focus::List,
            phase_cursor: 0,
            phase_top: 0,
            is_phase_chosen: false,
            tab: Tab::Log,
            text: TextView::default(),
            changes: ChangesView::default(),
            changes_of: None,
            dialog: None,
            message: None,
            acting: 0,
            may_leave: false,
            waiting: HashMap::new(),
            last_look: i64::MIN,
            last_changes: i64::MIN,
        }
    }

    /// Size in columns and rows.
    #[must_use]
    pub fn size(&self) -> (u16, u16) {
        (self.columns, self.rows)
    }

    /// Key of the chosen run.
    #[must_use]
    pub fn chosen(&self) -> Option<&RunKey> {
        self.chosen.as_ref()
    }

    /// Pane that has the keys.
    #[must_use]
    pub fn focus(&self) -> Focus {
        self.focus
    }

    /// Whether a dialog is open.
    #[must_use]
    pub fn has_dialog(&self) -> bool {
        self.dialog.is_some()
    }

    /// Milliseconds until the next tick is due.
    #[must_use]
    pub fn tick_ms(&self) -> u64 {
        let active = self.is_partial
            || self.acting > 0
            || self.message.is_some()
            || self.runs.iter().any(|run| run.status.is_active());
        if active { ACTIVE_MS.unsigned_abs() } else { IDLE_MS.unsigned_abs() }
    }

    /// Takes an event. Returns effects.
    pub fn update(&mut self, event: Event) -> Vec<Effect> {
        let mut effects = Vec::new();
        match event {
            Event::Key(key) => self.key(key, &mut effects),
            Event::Mouse(mouse) => self.mouse(mouse, &mut effects),
            Event::Paste(text) => self.paste(&text),
            Event::Resized(columns, rows) => {
                (self.columns, self.rows) = (columns, rows);
                self.fit();
            }
            Event::Tick(now) => self.tick(now, &mut effects),
            Event::Loaded(loaded) => self.loaded(*loaded, &mut effects),
            Event::Acted(action, result) => self.acted(&action, result, &mut effects),
            Event::Returned(problem) => {
                if let Some(problem) = problem {
                    self.say(Tone::Bad, &problem);
                }
                self.look(&mut effects);
            }
        }
        self.load_body(&mut effects);
        effects
    }

    pub(crate) fn say(&mut self, tone: Tone, text: &str) {
        let until_ms = self.now.unix_millis() + MESSAGE_MS;
        self.message = Some(Message { tone, text: plain(text), until_ms });
    }

    /// Adds a request, unless one of its kind waits for its answer.
    fn load(&mut self, request: Request, effects: &mut Vec<Effect>) {
        let kind = kind(&request);
        if self.waiting.contains_key(kind) {
            return;
        }
        self.waiting.insert(kind, self.now.unix_millis());
        effects.push(Effect::Load(request));
    }

    fn tick(&mut self, now: Timestamp, effects: &mut Vec<Effect>) {
        self.now = now;
        let now_ms = now.unix_millis();
        if self.message.as_ref().is_some_and(|message| message.until_ms <= now_ms) {
            self.message = None;
        }
        if now_ms.saturating_sub(self.last_look) >= i64::try_from(self.tick_ms()).unwrap_or(IDLE_MS) - 50 {
            self.look(effects);
        }
    }

    /// Looks at runs, and at all that is shown of the chosen one.
    fn look(&mut self, effects: &mut Vec<Effect>) {
        self.last_look = self.now.unix_millis();
        self.load(Request::Runs, effects);
        let Some(run) = self.chosen.clone() else { return };
        let is_active = self.chosen_run().is_some_and(|run| run.status.is_active());
        let is_known = self.detail.as_ref().is_some_and(|(key, _)| *key == run);
        if is_active || !is_known {
            self.load(Request::Detail(run), effects);
        }
        if self.tab != Tab::Changes
            && (is_active || !self.text.is_loaded)
            && let Some(request) = self.text.poll()
        {
            effects.push(Effect::Load(Request::Text(request)));
        }
        let is_due = self.last_look.saturating_sub(self.last_changes) >= CHANGES_MS;
        if self.tab == Tab::Changes && is_active && is_due {
            self.changes_of = None;
        }
    }

    fn loaded(&mut self, loaded: Reply, effects: &mut Vec<Effect>) {
        match loaded {
            Reply::Runs(reply) => {
                self.waiting.remove("runs");
                self.take_runs(reply, effects);
            }
            Reply::Detail(run, reply) => {
                self.waiting.remove("detail");
                if self.chosen.as_ref() != Some(&run) {
                    self.load_detail(effects);
                    return;
                }
                match reply {
                    Ok(detail) => {
                        self.detail_problem = None;
                        self.take_detail(run, detail);
                    }
                    Err(problem) => self.detail_problem = Some(plain(&problem)),
                }
            }
            Reply::Text(request, reply) => {
                let height = self.layout().body_lines();
                if request.find.is_some() {
                    match &reply {
                        Ok(part) if part.found.is_some() => self.message = None,
                        Ok(_) => self.say(Tone::Warn, "no further line has this text"),
                        Err(problem) => self.say(Tone::Bad, problem),
                    }
                }
                if let Some(request) = self.text.take(&request, reply, height) {
                    effects.push(Effect::Load(Request::Text(request)));
                }
            }
            Reply::Changes(request, reply) => {
                self.waiting.remove("changes");
                if self.changes_of.as_ref() == Some(&request) {
                    let height = self.layout().body_lines();
                    self.changes.take(reply, height);
                    self.last_changes = self.now.unix_millis();
                }
            }
            Reply::Review(run, _, reply) => {
                self.waiting.remove("review");
                match reply {
                    Ok(detail) => self.open_answer(run, detail),
                    Err(problem) => self.say(Tone::Bad, &problem),
                }
            }
            Reply::Offers(reply) => {
                self.waiting.remove("offers");
                match reply {
                    Ok(offers) => self.open_new_run(offers),
                    Err(problem) => self.say(Tone::Bad, &problem),
                }
            }
        }
    }

    fn load_detail(&mut self, effects: &mut Vec<Effect>) {
        if let Some(run) = self.chosen.clone() {
            self.load(Request::Detail(run), effects);
        }
    }

    fn take_detail(&mut self, run: RunKey, detail: RunDetail) {
        let name = self.phase().map(|phase| phase.name.clone());
        self.detail = Some((run, detail));
        let phases = self.phases();
        // A chosen phase stays chosen when rows are added before it.
        let found = if self.is_phase_chosen {
            name.and_then(|name| phases.iter().position(|phase| phase.name == name)).map(|at| at + 1)
        } else {
            phases.iter().position(is_at_work).map(|at| at + 1)
        };
        let count = phases.len();
        self.phase_cursor =
            found.unwrap_or(if self.is_phase_chosen { self.phase_cursor } else { 0 }).min(count);
        self.fit();
    }

    /// Requests what the pane below the phases shows, if it is something else by now.
    fn load_body(&mut self, effects: &mut Vec<Effect>) {
        let Some(run) = self.chosen.clone() else { return };
        // Before its phases are known, the run may show another phase in a moment.
        if self.detail.as_ref().is_none_or(|(key, _)| *key != run) {
            return;
        }
        let phase = self.phase().map(|phase| phase.name.clone());
        let kind = match self.tab {
            Tab::Log => TextKind::Log,
            Tab::Transcript => TextKind::Transcript,
            Tab::Changes => {
                let review = self.pending_review();
                let wanted = ChangesRequest { run, phase, review };
                if self.changes_of.as_ref() == Some(&wanted) || self.waiting.contains_key("changes") {
                    return;
                }
                if self
                    .changes_of
                    .as_ref()
                    .is_some_and(|shown| shown.run != wanted.run || shown.phase != wanted.phase)
                {
                    self.changes = ChangesView::default();
                }
                self.changes_of = Some(wanted.clone());
                self.load(Request::Changes(wanted), effects);
                return;
            }
        };
        if let Some(request) = self.text.show(&TextTarget { run, phase, kind }) {
            effects.push(Effect::Load(Request::Text(request)));
        }
    }

    /// Id of the pending review of the chosen phase; for the whole run, of the first phase that waits.
    pub(crate) fn pending_review(&self) -> Option<String> {
        match self.phase() {
            Some(phase) => phase.review.clone(),
            None => self.phases().iter().find_map(|phase| phase.review.clone()),
        }
    }

    /// Row of the chosen run.
    pub(crate) fn chosen_run(&self) -> Option<&RunRow> {
        let chosen = self.chosen.as_ref()?;
        self.runs.iter().find(|run| run.key == *chosen)
    }

    /// Phases of the chosen run.
    pub(crate) fn phases(&self) -> &[PhaseRow] {
        match &self.detail {
            Some((run, detail)) if Some(run) == self.chosen.as_ref() => &detail.phases,
            _ => &[],
        }
    }

    /// Phase at the cursor; `None` for the whole run.
    pub(crate) fn phase(&self) -> Option<&PhaseRow> {
        self.phases().get(self.phase_cursor.checked_sub(1)?)
    }

    pub(crate) fn layout(&self) -> Layout {
        Layout::new(self.columns, self.rows, self.focus, self.phases().len() + 1)
    }

    /// Brings cursors and windows into the panes of the current size.
    fn fit(&mut self) {
        let layout = self.layout();
        self.text.resize(layout.body_columns(), layout.body_lines());
        self.changes.clamp(layout.body_lines());
        self.show_chosen(layout.list_lines());
        let height = layout.phase_lines().max(1);
        self.phase_cursor = self.phase_cursor.min(self.phases().len());
        if self.phase_cursor < self.phase_top {
            self.phase_top = self.phase_cursor;
        }
        if self.phase_cursor >= self.phase_top + height {
            self.phase_top = self.phase_cursor + 1 - height;
        }
        self.phase_top = self.phase_top.min((self.phases().len() + 1).saturating_sub(height));
    }
}

/// Whether a phase works or waits for a person.
fn is_at_work(phase: &PhaseRow) -> bool {
    use crate::model::PhaseState as S;
    phase.review.is_some() || phase.state == S::Running
}

fn kind(request: &Request) -> &'static str {
    match request {
        Request::Runs => "runs",
        Request::Detail(_) => "detail",
        Request::Text(_) => "text",
        Request::Changes(_) => "changes",
        Request::Review(..) => "review",
        Request::Offers(_) => "offers",
    }
}
