//! Settings `checkpoints.*`.

use std::time::Duration;

use super::group;

group! {
    /// Settings of checkpoints.
    Shared struct CheckpointSettings {
        "checkpoints.enabled", enabled: bool = "true",
            "whether the files of a git workspace are stored before and after each activation";
        "checkpoints.always", always: bool = "false",
            "whether the files of a workspace are stored that is not a git repository";
        "checkpoints.max_file", max_file: u64 = "50m",
            "the largest file whose content is stored; larger ones are named only";
        "checkpoints.max_age", max_age: Duration = "30d", "how long checkpoints are kept";
        "checkpoints.max_size", max_size: u64 = "2g",
            "the size of the store of checkpoints from which on the oldest are removed";
    }
}
