//! A change of a run with the events that belong to it.

#[cfg(doc)]
use crate::event::LogEvent;
use crate::event::ServerEvent;
use crate::run::Run;
use crate::task::{PushRow, TaskRow};
use crate::trigger::FiringStart;
use cliq_protocol::{RunId, Timestamp, WireTime};

/// Kind of the journal event that ends a run.
const RUN_FINISHED: &str = "run_finished";

/// An event that is to be stored: one of the server, or a line of the run's journal.
#[derive(Debug, Clone, PartialEq)]
pub struct NewRunEvent {
    ts: WireTime,
    kind: String,
    data: String,
}

impl NewRunEvent {
    /// Encodes an event of the server. `ts` is the current time, UTC.
    #[must_use]
    pub fn of_server(ts: Timestamp, event: &ServerEvent) -> Self {
        let data = event.to_value(ts).to_string();
        Self { ts: ts.into(), kind: event.kind().to_owned(), data }
    }

    /// Takes a line of a journal: a JSON object without line breaks whose `event` is `kind`.
    #[must_use]
    pub fn of_journal(ts: WireTime, kind: String, line: String) -> Self {
        Self { ts, kind, data: line }
    }

    /// Time of the event, UTC.
    #[must_use]
    pub fn ts(&self) -> &WireTime {
        &self.ts
    }

    /// Name of the event on the wire.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// The whole event as the text of a JSON object without line breaks.
    #[must_use]
    pub fn data(&self) -> &str {
        &self.data
    }

    /// Whether the event ends the run.
    #[must_use]
    pub fn ends_run(&self) -> bool {
        self.kind == RUN_FINISHED
    }
}

/// A stored event. Numbers of a run's events begin at 1 and have no gaps.
#[derive(Debug, Clone, PartialEq)]
pub struct RunEventRow {
    /// Number of the event.
    pub id: i64,
    /// Time of the event, UTC. That of a journal is kept as its line has it.
    pub ts: WireTime,
    /// Name of the event on the wire.
    pub kind: String,
    /// The whole event as JSON text. It is passed on as it is; [`LogEvent::parse`] decodes it.
    pub data: String,
}

/// A new version of a run with its new events: all of it is stored, or nothing.
#[derive(Debug, Clone)]
pub struct Change {
    /// The run as it is to be. `version` is the one that it was made from; `last_event` counts the events below already.
    pub run: Run,
    /// New events, oldest first. The last one has the number `run.last_event`.
    pub events: Vec<NewRunEvent>,
    /// For a new run that is a task: what belongs to its caller.
    pub task: Option<TaskRow>,
    /// For a new task: where its push notifications go.
    pub push: Option<PushRow>,
    /// For a run that begins to wait: the reviews, by id. The store wakes it at once if one of them is over, and later together with the
    /// change that ends one.
    pub parked_on: Vec<String>,
    /// For a new run of a trigger: the firing that it decides. The store refuses the change if the firing is decided.
    pub firing: Option<FiringStart>,
}

impl Change {
    /// A change without events.
    #[must_use]
    pub fn of(run: Run) -> Self {
        Self { run, events: Vec::new(), task: None, push: None, parked_on: Vec::new(), firing: None }
    }

    /// Adds an event.
    pub fn push(&mut self, event: NewRunEvent) {
        self.run.last_event += 1;
        self.events.push(event);
    }

    /// The events as rows, with their numbers.
    #[must_use]
    pub fn rows(&self) -> Vec<RunEventRow> {
        let first = self.run.last_event - i64::try_from(self.events.len()).unwrap_or(0) + 1;
        let row = |(id, event): (i64, &NewRunEvent)| RunEventRow {
            id,
            ts: event.ts.clone(),
            kind: event.kind.clone(),
            data: event.data.clone(),
        };
        (first..).zip(&self.events).map(row).collect()
    }

    /// The run.
    #[must_use]
    pub fn id(&self) -> &RunId {
        &self.run.id
    }
}
