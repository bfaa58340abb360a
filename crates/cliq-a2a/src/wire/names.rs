//! The words of each version.

use crate::model::{Role, TaskState};
use crate::version::Version;

/// The word for a state.
pub(crate) fn state_name(version: Version, state: TaskState) -> &'static str {
    use TaskState as S;
    match (version, state) {
        (Version::V0_3, S::Submitted) => "submitted",
        (Version::V0_3, S::Working) => "working",
        (Version::V0_3, S::InputRequired) => "input-required",
        (Version::V0_3, S::Completed) => "completed",
        (Version::V0_3, S::Failed) => "failed",
        (Version::V0_3, S::Canceled) => "canceled",
        (Version::V0_3, S::Rejected) => "rejected",
        (Version::V0_3, S::AuthRequired) => "auth-required",
        (Version::V1_0, S::Submitted) => "TASK_STATE_SUBMITTED",
        (Version::V1_0, S::Working) => "TASK_STATE_WORKING",
        (Version::V1_0, S::InputRequired) => "TASK_STATE_INPUT_REQUIRED",
        (Version::V1_0, S::Completed) => "TASK_STATE_COMPLETED",
        (Version::V1_0, S::Failed) => "TASK_STATE_FAILED",
        (Version::V1_0, S::Canceled) => "TASK_STATE_CANCELED",
        (Version::V1_0, S::Rejected) => "TASK_STATE_REJECTED",
        (Version::V1_0, S::AuthRequired) => "TASK_STATE_AUTH_REQUIRED",
    }
}

/// The state that a word names.
pub(crate) fn parse_state(version: Version, text: &str) -> Option<TaskState> {
    TaskState::ALL.into_iter().find(|state| state_name(version, *state) == text)
}

pub(crate) fn role_name(version: Version, role: Role) -> &'static str {
    match (version, role) {
        (Version::V0_3, Role::User) => "user",
        (Version::V0_3, Role::Agent) => "agent",
        (Version::V1_0, Role::User) => "ROLE_USER",
        (Version::V1_0, Role::Agent) => "ROLE_AGENT",
    }
}

pub(crate) fn parse_role(version: Version, text: &str) -> Option<Role> {
    [Role::User, Role::Agent].into_iter().find(|role| role_name(version, *role) == text)
}
