//! The wire formats: JSON of 0.3, and the JSON form of Protocol Buffers of 1.0.

mod fields;
mod names;
mod read;
mod write;

pub use read::{read_artifact, read_messages, read_push, read_send_response, read_stream_item, read_task};
pub use write::{
    write_artifact, write_message, write_push, write_send_response, write_stream_item, write_task,
};

pub(crate) use fields::Fields;
pub(crate) use names::{parse_state, state_name};
pub(crate) use read::{message, push as push_config, push_of};
