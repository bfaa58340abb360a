//! Fields of each marker.

use crate::kind::MarkerKind;

/// A field of a marker's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Field {
    /// Key of the field.
    pub key: &'static str,
    /// Shape of the field.
    pub shape: Shape,
    /// Whether its absence is worth a warning.
    pub required: bool,
}

/// Shape of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A value on the key's line; what it is.
    Line(&'static str),
    /// Lines below the key; what they are.
    Text(&'static str),
    /// Items below the key; what each is.
    Items(&'static str),
    /// One of some words on the key's line.
    Choice(&'static [&'static str]),
    /// A text between the START and END lines of a delegation prompt.
    Prompt(&'static str),
}

const fn line(key: &'static str, what: &'static str) -> Field {
    Field { key, shape: Shape::Line(what), required: true }
}

const fn text(key: &'static str, what: &'static str) -> Field {
    Field { key, shape: Shape::Text(what), required: true }
}

const fn items(key: &'static str, each: &'static str) -> Field {
    Field { key, shape: Shape::Items(each), required: true }
}

const fn choice(key: &'static str, words: &'static [&'static str]) -> Field {
    Field { key, shape: Shape::Choice(words), required: true }
}

const fn optional(field: Field) -> Field {
    Field { key: field.key, shape: field.shape, required: false }
}

const LEVELS: &[&str] = &["HIGH", "MEDIUM", "LOW"];
const CHECK: &str = "[check] ([environment]): PASS";
const ISSUE: &str = "[file]:[line]: [issue]";

impl MarkerKind {
    /// The fields of its body, in their order.
    #[must_use]
    pub fn fields(self) -> &'static [Field] {
        match self {
            Self::ReadyForReview => {
                const {
                    &[
                        items("Files Modified", "[file]: [change]"),
                        items("Tests Written", "[test file]: [what it tests]"),
                        items("Verification Results", CHECK),
                        line("Summary", "[what was implemented]"),
                    ]
                }
            }
            Self::TaskIncomplete => {
                const {
                    &[
                        line("Blocker", "[what is missing]"),
                        line("Attempted", "[what was tried]"),
                        line("Needed", "[what would unblock it]"),
                    ]
                }
            }
            Self::InfraBlocked => {
                const {
                    &[
                        line("Issue", "[what is broken]"),
                        line("Command", "[the command that failed]"),
                        line("Output", "[its error output]"),
                        line("Environment", "[where]"),
                    ]
                }
            }
            Self::ReviewPassed => {
                const {
                    &[
                        items("Files Reviewed", "[file]"),
                        items("Quality Assessment", "[aspect]: [finding]"),
                        line("Summary", "[assessment]"),
                    ]
                }
            }
            Self::ReviewFailed => {
                const {
                    &[
                        items("Files Reviewed", "[file]"),
                        items("Issues Found", ISSUE),
                        items("Required Fixes", "[action]"),
                        choice("Priority", LEVELS),
                    ]
                }
            }
            Self::AuditPassed => {
                const {
                    &[
                        items("Verification Results", "[criterion]: VERIFIED - [evidence]"),
                        items("Commands Executed", CHECK),
                        line("Summary", "[conclusion]"),
                    ]
                }
            }
            Self::AuditFailed => {
                const {
                    &[
                        items("Failed Criteria", "[criterion]: FAILED - [reason]"),
                        items("Issues Found", ISSUE),
                        items("Required Fixes", "[action]"),
                        optional(items("Passing Criteria", "[criterion]")),
                    ]
                }
            }
            Self::AuditBlocked => {
                const { &[items("Pre-existing Failures", "[failure that this task did not cause]")] }
            }
            Self::ExpandedTaskSpecification => {
                const {
                    &[
                        choice("Confidence", LEVELS),
                        line("Original", "[the task as it was]"),
                        text("Expanded Specification", "[the specification in detail]"),
                        items("Acceptance Criteria", "[ ] [criterion]"),
                        text("Technical Approach", "[how to go about it]"),
                        items("Target Files", "[file]"),
                    ]
                }
            }
            Self::RemediationComplete => {
                const { &[items("Issues Fixed", "[issue]: [fix]"), items("Verification Results", "[check]: PASS")] }
            }
            Self::HealthAuditHealthy => const { &[items("Verification Results", CHECK)] },
            Self::HealthAuditUnhealthy => {
                const {
                    &[
                        items(
                            "Failed Checks",
                            "[check] ([environment]): FAIL\n  Exit: [code]\n  Output: [error]",
                        ),
                        optional(items("Passing Checks", CHECK)),
                    ]
                }
            }
            Self::SeekingDivineClarification => {
                const {
                    &[
                        line("Task", "[task_id]"),
                        line("Agent", "[kind of agent]"),
                        line("Question", "[the question for a person]"),
                        text("Context", "[what one must know to answer]"),
                        optional(items("Options Considered", "[option]: [why it does not do]")),
                        optional(items("Attempts Made", "[way]: [number] attempts")),
                        optional(text("What Would Help", "[the guidance that is needed]")),
                    ]
                }
            }
            Self::ExpertRequest => {
                const {
                    &[
                        line("Target Agent", "[name of the expert]"),
                        choice(
                            "Request Type",
                            &["decision", "interpretation", "ambiguity", "options", "validation"],
                        ),
                        optional(line("Context Snapshot", "[path of a snapshot file]")),
                        Field {
                            key: "",
                            shape: Shape::Prompt("[the prompt for the expert]"),
                            required: true,
                        },
                    ]
                }
            }
            Self::ExpertAdvice => {
                const {
                    &[
                        line("Requesting Agent", "[who asked]"),
                        line("Task", "[task_id]"),
                        line("Question", "[what was asked]"),
                        text("Recommendation", "[what to do]"),
                        items("Rationale", "[why it is right for this plan]"),
                        optional(items("Pitfalls Avoided", "[what it avoids]")),
                        text("Next Steps", "[what the agent that asked should do]"),
                    ]
                }
            }
            Self::ExpertUnsuccessful => {
                const {
                    &[
                        line("Requesting Agent", "[who asked]"),
                        line("Question", "[what was asked]"),
                        items("Attempts", "[approach]: [outcome]"),
                        line("Reason", "[why there is no advice]"),
                        line("Recommendation", "[whom to ask instead]"),
                    ]
                }
            }
            Self::ExpertCreated => {
                const {
                    &[
                        line("Gap Filled", "[what was missing]"),
                        line("Supports", "[which agents]"),
                        line("Tasks", "[task ids]"),
                        line("File", "[the expert's role file]"),
                        items("Expertise Encoded", "[what is special to this plan]"),
                        items("Delegation Triggers", "[agent] should ask when: [trigger]"),
                    ]
                }
            }
            Self::FileConflict => {
                const {
                    &[
                        line("Assigned To", "[agent or task, or UNKNOWN]"),
                        line("I Need To", "[the change]"),
                        line("Reason", "[why this file]"),
                        choice("Can Wait", &["YES", "NO"]),
                    ]
                }
            }
            Self::Checkpoint => {
                const {
                    &[
                        line("Progress", "[percentage or stage]"),
                        line("Current Activity", "[what is being done]"),
                        line("Files Modified", "[count]"),
                        line("Blockers", "[NONE, or what they are]"),
                        line("Estimated Remaining", "[what is left to do, not a time]"),
                    ]
                }
            }
        }
    }
}
