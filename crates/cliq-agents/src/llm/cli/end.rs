//! Decision about the end of a vendor's program (docs/outcomes.md). Pure.
//!
//! Only the documented success of a program completes a phase. Everything else is a failure that has the program's own name for it, or
//! a limit of the program.

#![deny(clippy::wildcard_enum_match_arm)]

use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use cliq_protocol::Limited;

use super::dialect::Dialect;

/// Report of a program about its own end, from an output line.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Report {
    /// Documented success of a turn.
    Success,
    /// A limit of the program ended the work.
    Limit {
        limited: Limited,
        /// Text of the program, empty if there is none.
        reason: String,
    },
    /// The program failed.
    Failure {
        /// Name that the program uses.
        name: String,
        /// Text of the program, empty if there is none.
        reason: String,
    },
    /// An error after which the program may continue. Counts unless a success follows.
    Error { reason: String },
}

/// End of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exit {
    Code(i32),
    Signal(i32),
}

impl From<ExitStatus> for Exit {
    fn from(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Code(code),
            (None, signal) => Self::Signal(signal.unwrap_or(0)),
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit status: {code}"),
            Self::Signal(signal) => write!(f, "signal: {signal}"),
        }
    }
}

/// Way in which a vendor's program ended.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ProgramEnd {
    /// The documented success, and exit status 0.
    Success,
    /// A limit of the program, such as the number of turns. The work so far is a partial handoff.
    Limit { limited: Limited, reason: String },
    /// A failure that the program reported.
    Failure { name: String, reason: String },
    /// More results than requests: it is unclear which one counts.
    SeveralResults { results: usize, requests: usize },
    /// A result, and then an exit status or a signal that contradicts it.
    FailedAfterResult { exit: Exit },
    /// A failure without a report.
    ExitCode { code: i32, meaning: Option<&'static str> },
    /// The program was killed.
    Killed { signal: i32 },
    /// Exit status 0 without a result.
    NoResult,
}

/// Name of the limit that Gemini CLI reaches with exit status 53.
pub(super) const GEMINI_TURNS: &str = "max_session_turns";

/// Decides about the end of a program from its reports, the number of requests that it received (the prompt and steering messages), and
/// its exit.
pub(super) fn decide(dialect: Dialect, reports: &[Report], requests: usize, exit: Exit) -> ProgramEnd {
    let (mut results, mut limit, mut failure, mut error) = (0, None, None, None);
    for report in reports {
        match report {
            Report::Success => {
                results += 1;
                error = None;
            }
            Report::Limit { limited, reason } => limit = Some((limited.clone(), reason.clone())),
            Report::Failure { name, reason } => {
                failure.get_or_insert_with(|| (name.clone(), reason.clone()));
            }
            Report::Error { reason } => error = Some(reason.clone()),
        }
    }
    if let Some((limited, reason)) = limit {
        return ProgramEnd::Limit { limited, reason };
    }
    if dialect == Dialect::Gemini && exit == Exit::Code(53) {
        let limited = Limited { limit: GEMINI_TURNS.to_owned(), value: None, extra: Default::default() };
        return ProgramEnd::Limit { limited, reason: failure.map(|(_, reason)| reason).unwrap_or_default() };
    }
    if let Some((name, reason)) = failure {
        return ProgramEnd::Failure { name, reason };
    }
    if results > requests {
        return ProgramEnd::SeveralResults { results, requests };
    }
    match (exit, results, error) {
        (Exit::Code(_), _, Some(reason)) => ProgramEnd::Failure { name: "error".to_owned(), reason },
        (Exit::Code(0), 1.., None) => ProgramEnd::Success,
        (Exit::Code(_) | Exit::Signal(_), 1.., _) => ProgramEnd::FailedAfterResult { exit },
        (Exit::Code(0), 0, None) => ProgramEnd::NoResult,
        (Exit::Code(code), 0, None) => ProgramEnd::ExitCode { code, meaning: meaning(dialect, code) },
        (Exit::Signal(signal), 0, _) => ProgramEnd::Killed { signal },
    }
}

/// Returns the documented meaning of an exit status.
fn meaning(dialect: Dialect, code: i32) -> Option<&'static str> {
    match (dialect, code) {
        (Dialect::Gemini, 41) => Some("authentication failed"),
        (Dialect::Gemini, 42) => Some("invalid input"),
        (Dialect::Gemini, 44) => Some("the sandbox failed"),
        (Dialect::Gemini, 52) => Some("invalid configuration"),
        (Dialect::Gemini, 130) => Some("cancelled"),
        (Dialect::ClaudeCode | Dialect::Cursor | Dialect::Codex | Dialect::Gemini, 126) => {
            Some("the program cannot be executed")
        }
        (Dialect::ClaudeCode | Dialect::Cursor | Dialect::Codex | Dialect::Gemini, 127) => {
            Some("a program that it needs was not found")
        }
        (Dialect::ClaudeCode | Dialect::Cursor | Dialect::Codex | Dialect::Gemini, _) => None,
    }
}

impl ProgramEnd {
    /// Returns the error for people. `said` is the end of the program's other output, which explains an end without a report.
    pub(super) fn describe(&self, name: &str, said: &str) -> String {
        let with = |text: String, why: &str| if why.is_empty() { text } else { format!("{text}: {why}") };
        match self {
            Self::Success => format!("{name} succeeded"),
            Self::Limit { limited, reason } => with(
                format!("{name} stopped at a limit of its own, {limited}; what it had is a partial handoff"),
                reason,
            ),
            Self::Failure { name: kind, reason } => {
                with(format!("{name} failed with {kind}"), if reason.is_empty() { said } else { reason })
            }
            Self::SeveralResults { results, requests } => {
                let requests =
                    if *requests == 1 { "one request".to_owned() } else { format!("{requests} requests") };
                format!("{name} printed {results} results for {requests}: it is unclear which one counts")
            }
            Self::FailedAfterResult { exit } => {
                with(format!("{name} printed a result and then failed ({exit})"), said)
            }
            Self::ExitCode { code, meaning } => {
                let meaning = meaning.map(|meaning| format!(" ({meaning})")).unwrap_or_default();
                with(format!("{name} failed with exit status: {code}{meaning}"), said)
            }
            Self::Killed { signal } => with(format!("{name} was killed by signal {signal}"), said),
            Self::NoResult => with(format!("{name} ended without a result"), said),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALL: [Dialect; 4] = [Dialect::ClaudeCode, Dialect::Cursor, Dialect::Gemini, Dialect::Codex];

    fn failure(name: &str) -> Report {
        Report::Failure { name: name.to_owned(), reason: "why".to_owned() }
    }

    fn limit() -> Report {
        Report::Limit { limited: Limited::new("error_max_turns", 3), reason: String::new() }
    }

    fn told(dialect: Dialect, reports: &[Report], requests: usize, exit: Exit) -> String {
        decide(dialect, reports, requests, exit).describe("x", "the last words")
    }

    #[test]
    fn ends_have_names() {
        let error = || Report::Error { reason: "reconnecting".to_owned() };
        use Dialect::{ClaudeCode, Codex, Cursor, Gemini};
        use Report::Success;
        for (dialect, reports, requests, exit, expected) in [
            (ClaudeCode, vec![Success], 1, Exit::Code(0), "x succeeded"),
            (ClaudeCode, vec![Success, Success], 2, Exit::Code(0), "x succeeded"),
            // Two messages that the program answered in one turn.
            (ClaudeCode, vec![Success], 2, Exit::Code(0), "x succeeded"),
            (Codex, vec![error(), Success], 1, Exit::Code(0), "x succeeded"),
            (Codex, vec![Success, error()], 1, Exit::Code(0), "x failed with error: reconnecting"),
            (
                ClaudeCode,
                vec![Success, Success],
                1,
                Exit::Code(0),
                "x printed 2 results for one request: it is unclear which one counts",
            ),
            (
                ClaudeCode,
                vec![Success; 4],
                2,
                Exit::Code(0),
                "x printed 4 results for 2 requests: it is unclear which one counts",
            ),
            (
                ClaudeCode,
                vec![failure("error_during_execution"), Success],
                1,
                Exit::Code(0),
                "x failed with error_during_execution: why",
            ),
            (
                ClaudeCode,
                vec![Success, failure("error_during_execution")],
                2,
                Exit::Code(0),
                "x failed with error_during_execution: why",
            ),
            (Codex, vec![failure("turn.failed")], 1, Exit::Code(1), "x failed with turn.failed: why"),
            (Codex, vec![error()], 1, Exit::Code(0), "x failed with error: reconnecting"),
            (Codex, vec![error()], 1, Exit::Code(1), "x failed with error: reconnecting"),
            (
                ClaudeCode,
                vec![limit()],
                1,
                Exit::Code(0),
                "x stopped at a limit of its own, error_max_turns (3); what it had is a partial handoff",
            ),
            (
                ClaudeCode,
                vec![limit()],
                1,
                Exit::Code(1),
                "x stopped at a limit of its own, error_max_turns (3); what it had is a partial handoff",
            ),
            (
                ClaudeCode,
                vec![limit(), Success],
                1,
                Exit::Code(0),
                "x stopped at a limit of its own, error_max_turns (3); what it had is a partial handoff",
            ),
            (
                Gemini,
                vec![failure("FatalTurnLimitedError")],
                1,
                Exit::Code(53),
                "x stopped at a limit of its own, max_session_turns; what it had is a partial handoff: why",
            ),
            (
                Gemini,
                vec![],
                1,
                Exit::Code(53),
                "x stopped at a limit of its own, max_session_turns; what it had is a partial handoff",
            ),
            (
                Gemini,
                vec![],
                1,
                Exit::Code(41),
                "x failed with exit status: 41 (authentication failed): the last words",
            ),
            (
                Gemini,
                vec![],
                1,
                Exit::Code(42),
                "x failed with exit status: 42 (invalid input): the last words",
            ),
            (
                Gemini,
                vec![],
                1,
                Exit::Code(44),
                "x failed with exit status: 44 (the sandbox failed): the last words",
            ),
            (
                Gemini,
                vec![],
                1,
                Exit::Code(52),
                "x failed with exit status: 52 (invalid configuration): the last words",
            ),
            (Codex, vec![], 1, Exit::Code(53), "x failed with exit status: 53: the last words"),
            (
                Cursor,
                vec![],
                1,
                Exit::Code(127),
                "x failed with exit status: 127 (a program that it needs was not found): the last words",
            ),
            (Cursor, vec![], 1, Exit::Code(0), "x ended without a result: the last words"),
            (
                Cursor,
                vec![Success],
                1,
                Exit::Code(1),
                "x printed a result and then failed (exit status: 1): the last words",
            ),
            (
                Cursor,
                vec![Success],
                1,
                Exit::Signal(9),
                "x printed a result and then failed (signal: 9): the last words",
            ),
            (Cursor, vec![], 1, Exit::Signal(11), "x was killed by signal 11: the last words"),
        ] {
            assert_eq!(told(dialect, &reports, requests, exit), expected, "{reports:?} {exit}");
        }
    }

    fn report() -> impl Strategy<Value = Report> {
        prop_oneof![
            Just(Report::Success),
            Just(limit()),
            Just(failure("turn.failed")),
            Just(Report::Error { reason: "again".to_owned() }),
        ]
    }

    proptest! {
        #[test]
        fn only_clear_successes_succeed(
            reports in prop::collection::vec(report(), 0..5),
            requests in 1..4usize,
            exit in prop_oneof![(0..130).prop_map(Exit::Code), Just(Exit::Code(0)), (1..30).prop_map(Exit::Signal)],
        ) {
            let results = reports.iter().filter(|report| **report == Report::Success).count();
            let is_clear = exit == Exit::Code(0)
                && (1..=requests).contains(&results)
                && reports.last() == Some(&Report::Success)
                && reports.iter().all(|report| matches!(report, Report::Success | Report::Error { .. }));
            for dialect in ALL {
                let end = decide(dialect, &reports, requests, exit);
                prop_assert_eq!(end == ProgramEnd::Success, is_clear, "{:?}", end);
            }
        }
    }
}
