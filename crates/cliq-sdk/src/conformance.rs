//! The conformance kit: plays the orchestrator to an agent and names each rule that it breaks. For agents in any
//! language; `cliq agent check -- COMMAND` is its command line.

mod dialogue;
mod rules;

use std::time::Duration;

use cliq_fs::FsError;
use serde::Serialize;

/// Role of the agent in its dispatches, after the test message that every agent answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The agent of a standard phase.
    Standard,
    /// The agent of a gate, which may route to `developer` and `fixer`.
    Gate,
}

/// Options of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Role of the agent.
    pub role: Role,
    /// Deadline for each message.
    pub timeout: Duration,
}

impl Options {
    /// Returns the options for an agent of a role, with 30 seconds for each message.
    #[must_use]
    pub fn new(role: Role) -> Self {
        Self { role, ..Self::default() }
    }

    /// Sets the deadline for each message.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }
}

impl Default for Options {
    fn default() -> Self {
        Self { role: Role::Standard, timeout: Duration::from_secs(30) }
    }
}

/// One rule, and whether the agent keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// The message that the agent was answering: `test`, `phase` or `gate`.
    pub dialogue: &'static str,
    /// The rule's stable name. `docs/protocol.md` explains each.
    pub rule: &'static str,
    /// Whether it was kept.
    pub kept: bool,
    /// Observation.
    pub detail: String,
}

/// Report of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// Whether every rule was kept.
    pub conforms: bool,
    /// Every rule that was looked at.
    pub findings: Vec<Finding>,
    /// Output of the agent, at most 4 KiB per message.
    pub output: String,
}

/// Checks the agent that `command` (a program and its arguments) starts.
///
/// ```no_run
/// use cliq_sdk::conformance::{Options, Role, check};
///
/// let report = check(&["./my-gate".to_owned()], Options::new(Role::Gate))?;
/// for finding in report.findings.iter().filter(|finding| !finding.kept) {
///     println!("{}: {}", finding.rule, finding.detail);
/// }
/// assert!(report.conforms);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The kit itself cannot write its temporary files. An agent that cannot be started is a finding.
pub fn check(command: &[String], options: Options) -> Result<Report, FsError> {
    let mut findings = Vec::new();
    let mut output = String::new();
    let role = match options.role {
        Role::Standard => dialogue::Kind::Phase,
        Role::Gate => dialogue::Kind::Gate,
    };
    for kind in [dialogue::Kind::Test, role] {
        let transcript = dialogue::run(command, kind, options.timeout)?;
        rules::judge(kind, &transcript, &mut findings);
        output.push_str(&transcript.output);
        if transcript.exit.is_err() {
            break;
        }
    }
    Ok(Report { conforms: findings.iter().all(|finding| finding.kept), findings, output })
}
