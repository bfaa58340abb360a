//! The updates of a task as they happen.

use std::sync::Arc;

use cliq_a2a::{EventNumber, StreamItem, Task, TaskContext, Version, wire};
use cliq_model::StoredTask;
use cliq_supervisor::{EventTail, StoredEvent, TailItem};

use super::view::{context_of, updates};
use crate::app::App;
use crate::wire_event::{self, TaskUpdate};

/// An item as JSON, with its number where it is an update.
pub(super) type Item = (Arc<str>, Option<EventNumber>);

/// A piece of a stream.
pub(super) enum Piece {
    /// Items as JSON, each with its number where it is an update.
    Items(Vec<Item>),
    /// The stream is silent, and lives.
    Idle,
    /// The server stops: the client comes back.
    Stopping,
}

/// A stream of a task: first the task, then each update once, in order, until the task is over.
pub(super) struct TaskStream {
    version: Version,
    context: TaskContext,
    tail: EventTail,
    /// The last update that was given.
    last: EventNumber,
    /// Items ready for delivery, oldest first.
    ready: Vec<Item>,
    ended: bool,
}

impl TaskStream {
    /// A stream that begins with `first` and goes on after update `after`.
    pub(super) fn new(
        app: &Arc<App>,
        version: Version,
        stored: &StoredTask,
        first: Task,
        after: EventNumber,
    ) -> Self {
        let context =
            context_of(app, stored.run.id.as_str(), stored.run.team.as_str(), &stored.task.context_id);
        // The event of the last update may have more of them.
        let from = if after.index == u32::MAX { after.event } else { (after.event - 1).max(0) };
        let tail = app.core.supervisor.tail(&stored.run.id, from);
        let first = wire::write_stream_item(version, &StreamItem::Task(first)).to_string();
        let ready = vec![(first.into(), None)];
        Self { version, context, tail, last: after, ready, ended: false }
    }

    /// The next piece; `None` at the end. Where the store cannot be read the stream breaks, and the client comes back.
    pub(super) async fn next(&mut self) -> Option<Piece> {
        loop {
            if !self.ready.is_empty() {
                return Some(Piece::Items(std::mem::take(&mut self.ready)));
            }
            if self.ended {
                return None;
            }
            match self.tail.next().await.ok()? {
                TailItem::Events(events) => {
                    for event in events.iter() {
                        for update in written(event, self.version, &self.context).iter() {
                            if update.number > self.last && !self.ended {
                                self.last = update.number;
                                self.ready.push((Arc::clone(&update.json), Some(update.number)));
                                self.ended |= update.is_last;
                            }
                        }
                    }
                }
                TailItem::Idle => return Some(Piece::Idle),
                TailItem::Stopping => {
                    self.ended = true;
                    return Some(Piece::Stopping);
                }
                TailItem::End => self.ended = true,
            }
        }
    }
}

/// Returns the updates of an event in a version, written once for all streams of the task.
fn written(event: &StoredEvent, version: Version, context: &TaskContext) -> Arc<[TaskUpdate]> {
    wire_event::updates(event, version, || {
        let list = updates(context, [&event.row]).map(|update| TaskUpdate {
            number: update.number,
            json: wire::write_stream_item(version, &update.item).to_string().into(),
            is_last: update.item.is_last() || (version == Version::V0_3 && update.item.asks()),
        });
        list.collect()
    })
}
