//! The wire of cliq on disk.
//!
//! Everything of a project is under its `.cliq` directory, which a [`CliqDir`] stands for. Three rules hold for every
//! file in it (docs/protocol.md): what another process may read is written whole, to a temporary file in the same
//! directory and then renamed ([`write_atomic`]); lines of JSON are appended with one write each ([`SignalWriter`]);
//! and a reader of a growing file keeps its offset and reads only what is new ([`SignalTail`]).
//!
//! Every error names the path and what was being done to it. Nothing here is async: agents are plain programs.

mod archive;
mod atomic;
mod channel;
mod child;
mod child_input;
mod clock;
mod copy;
mod error;
mod last_error;
mod layout;
mod lock;
mod markdown;
mod parking;
mod processes;
mod read;
mod shared_path;
mod signal_tail;
mod signal_writer;
mod state;
mod steering;
mod transcript;
mod watch;

pub use archive::{archive_run, archives};
pub use atomic::{AppendedFile, PrivateFile, append_line, open_append, sync_file_system, write_atomic};
pub use channel::{
    HandoffError, create_channel, is_half_written, read_handoff, write_handoff, write_handoffs,
};
pub use child::{DRAIN, FollowLimits, FollowedChild, OutputLine, follow_child};
pub use child_input::ChildInput;
pub use clock::{new_run_id, now, now_millis};
pub use copy::{copy_file_with_time, copy_tree};
pub use error::{FsError, IoContext};
pub use last_error::last_error;
pub use layout::CliqDir;
pub use lock::{FollowerLock, LockError, ProjectLock};
pub use markdown::render_handoff;
pub use parking::ParkingLock;
pub use processes::{parent_of, process_group_is_alive, processes_with, session_of};
pub use read::{
    DEFAULT_FILE_LIMIT, FILE_LIMIT_VARIABLE, describe_kind, open_regular, read_if_exists, read_limited,
    read_text, read_within,
};
pub use shared_path::SharedPath;
pub use signal_tail::SignalTail;
pub use signal_writer::{SignalWriteError, SignalWriter};
pub use state::{
    PipelineStatus, clear_signal, clear_signals, clear_status, clear_temporaries, read_command_results,
    read_status, write_command_results, write_routed, write_status,
};
pub use steering::{SteeringInbox, SteeringTail, append_steering};
pub use transcript::{TranscriptFile, read_transcript, transcripts_of};
pub use watch::SignalWatch;

/// Runs the example of the README as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
