//! Settings of plans, and `roles.*`.

use super::{choice, group};

group! {
    /// Settings of plans: their steps, and the number of agents at the same time.
    Shared struct PlanSettings {
        "task_loop", task_loop: TaskLoopChoice = "signals",
            "how tasks of a plan are done: by a coder that emits a signal, or by developer, critic and auditor that print markers";
        "auto_readiness_review", auto_readiness_review: bool = "true",
            "whether a master agent verifies a plan after its review";
        "readiness_max_verify_cycles", readiness_max_verify_cycles: usize = "3",
            "after how many failed verifications a plan is done all the same, and reported as such";
        "auto_implement", auto_implement: bool = "true",
            "whether the first wave begins by itself once a plan is planned";
        "planners", planners: usize = "1",
            "how many planners draft a plan that has no waves; with several, another one merges their drafts";
        "use_architect", use_architect: bool = "false",
            "whether an architect spells a plan out before its first wave";
        "use_business_analyst", use_business_analyst: bool = "false",
            "whether a business analyst spells out tasks that have no text, where tasks are done by markers";
        "slots.developers", developers: usize = "3",
            "how many developers or coders of a plan may work at the same time";
        "slots.critics", critics: usize = "2", "how many critics of a plan may work at the same time";
        "slots.auditors", auditors: usize = "2", "how many auditors of a plan may work at the same time";
    }
}

group! {
    /// Settings of a role in plans.
    Shared struct RoleSettings of role {
        "roles.*.agent", agent: Option<String>,
            "the agent that works on plans in a role; without it, the default agent";
        "roles.*.command", command: Option<String>,
            "a shell command that works in a role, instead of an agent";
        "roles.*.file", file: Option<String>,
            "the role file, from the project's directory; without it, the bundled one";
    }
}

choice! {
    /// Method by which tasks of a plan are done.
    enum TaskLoopChoice {
        /// A coder emits a signal.
        Signals = "signals",
        /// Developer, critic and auditor print markers.
        Markers = "markers",
    }
}
