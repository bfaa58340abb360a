//! Wire forms of a stored event, written once for all its subscribers.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use cliq_a2a::{EventNumber, Version};
use cliq_model::RunEventRow;
use cliq_supervisor::StoredEvent;

/// Update of a task in the format of one version of A2A.
#[derive(Debug)]
pub(crate) struct TaskUpdate {
    pub(crate) number: EventNumber,
    /// Item of the stream as JSON.
    pub(crate) json: Arc<str>,
    /// Whether the task is over with this update.
    pub(crate) is_last: bool,
}

/// Wire forms of one event, each written when a subscriber first needs it.
#[derive(Debug, Default)]
struct WireForms {
    frame: OnceLock<Bytes>,
    updates: [OnceLock<Arc<[TaskUpdate]>>; 2],
}

fn forms(event: &StoredEvent) -> Option<&WireForms> {
    event.derived(|_| WireForms::default())
}

/// Returns the event as a server-sent event. JSON text has no line breaks.
pub(crate) fn frame(event: &StoredEvent) -> Bytes {
    let write = || write_frame(&event.row);
    forms(event).map_or_else(write, |forms| forms.frame.get_or_init(write).clone())
}

fn write_frame(row: &RunEventRow) -> Bytes {
    format!("id: {}\nevent: {}\ndata: {}\n\n", row.id, row.kind, row.data).into()
}

/// Returns the updates of the event in a version of A2A. `write` runs if no stream has needed them before.
pub(crate) fn updates(
    event: &StoredEvent,
    version: Version,
    write: impl Fn() -> Arc<[TaskUpdate]>,
) -> Arc<[TaskUpdate]> {
    let index = match version {
        Version::V0_3 => 0,
        Version::V1_0 => 1,
    };
    forms(event).map_or_else(&write, |forms| Arc::clone(forms.updates[index].get_or_init(&write)))
}

#[cfg(test)]
mod tests {
    use cliq_protocol::WireTime;

    use super::*;

    #[test]
    fn frame_has_number_kind_and_data() {
        let row = RunEventRow { id: 4, ts: WireTime::from_text(""), kind: "a".into(), data: "{}".into() };
        assert_eq!(&write_frame(&row)[..], b"id: 4\nevent: a\ndata: {}\n\n");
    }
}
