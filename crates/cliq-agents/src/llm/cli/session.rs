//! Sessions of vendors' programs: arguments that begin or continue one, and failures that mean that one cannot be continued. Pure.

use super::dialect::Dialect;

/// Session in which a program is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Session<'s> {
    /// A new one. Its id is chosen, if the program takes one.
    New(Option<&'s str>),
    /// The one with this id.
    Resume(&'s str),
}

/// Failures of the programs if a session is not there, in lower case. Claude Code 2.1.197, Codex CLI 0.171.0, Gemini CLI 0.61.0.
const NOT_FOUND: [&str; 7] = [
    "no conversation found",
    "--resume requires a valid session",
    "no rollout found",
    "thread/resume failed",
    "error resuming session",
    "invalid session identifier",
    "no previous sessions found",
];
/// Words for a session, and for its absence, in messages of other versions.
const NAMES: [&str; 4] = ["session", "conversation", "thread", "chat"];
const ABSENCES: [&str; 5] = ["not found", "no such", "does not exist", "unknown", "cannot be resumed"];
/// Failures because a conversation exceeds the context of the model, in lower case.
const TOO_LONG: [&str; 6] = [
    "prompt is too long",
    "context length",
    "context window",
    "maximum context",
    "too many tokens",
    "input token count",
];

/// Arguments with which a user manages sessions. cliq then does not.
fn managing(dialect: Dialect) -> &'static [&'static str] {
    match dialect {
        Dialect::ClaudeCode | Dialect::Cursor => &[
            "--resume",
            "-r",
            "--continue",
            "-c",
            "--session-id",
            "--fork-session",
            "--no-session-persistence",
        ],
        Dialect::Gemini => &["--resume", "-r", "--session-id", "--session-file"],
        Dialect::Codex => &["resume", "--ephemeral"],
    }
}

impl Dialect {
    /// Whether the caller chooses the id of a new session. Other programs print theirs first.
    pub(super) fn takes_session_id(self) -> bool {
        self == Self::ClaudeCode
    }

    /// Whether a continued session always keeps its id. Some versions of Claude Code continue with a copy.
    pub(super) fn keeps_session_id(self) -> bool {
        self != Self::ClaudeCode
    }

    /// Whether the usage that the program reports is that of the whole session.
    pub(super) fn counts_sessions(self) -> bool {
        self == Self::Codex
    }

    /// Whether the user's own arguments choose the session.
    pub(super) fn manages_sessions(self, args: &[String]) -> bool {
        let is_one = |arg: &String| {
            let name = arg.split('=').next().unwrap_or_default();
            managing(self).contains(&name)
        };
        args.iter().any(is_one)
    }

    /// Arguments for a session. They follow all options.
    pub(super) fn session_args(self, session: Session<'_>) -> Vec<String> {
        let args: &[&str] = match (self, session) {
            (Self::ClaudeCode, Session::New(Some(id))) => &["--session-id", id],
            (Self::ClaudeCode | Self::Cursor | Self::Gemini, Session::Resume(id)) => &["--resume", id],
            (Self::Codex, Session::Resume(id)) => &["resume", id, "-"],
            (Self::ClaudeCode | Self::Cursor | Self::Gemini | Self::Codex, Session::New(_)) => &[],
        };
        args.iter().map(|arg| (*arg).to_owned()).collect()
    }
}

/// Returns the reason, for people, if a failure means that a session cannot be continued.
pub(super) fn lost(failure: &str) -> Option<&'static str> {
    let failure = failure.to_lowercase();
    let has_any = |words: &[&str]| words.iter().any(|word| failure.contains(word));
    if has_any(&TOO_LONG) {
        Some("the conversation is too long for the model")
    } else if has_any(&NOT_FOUND) || has_any(&NAMES) && has_any(&ABSENCES) {
        Some("the program does not find the conversation")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_continued_as_the_programs_document_it() {
        let shown = |dialect: Dialect, session| dialect.session_args(session).join(" ");
        assert_eq!(shown(Dialect::ClaudeCode, Session::New(Some("a"))), "--session-id a");
        assert_eq!(shown(Dialect::Codex, Session::New(Some("a"))), "");
        for (dialect, args) in [
            (Dialect::ClaudeCode, "--resume a"),
            (Dialect::Cursor, "--resume a"),
            (Dialect::Gemini, "--resume a"),
            (Dialect::Codex, "resume a -"),
        ] {
            assert_eq!(shown(dialect, Session::Resume("a")), args);
        }
    }

    #[test]
    fn arguments_of_the_user_go_first() {
        let args = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert!(Dialect::ClaudeCode.manages_sessions(&args("--verbose --session-id=x")));
        assert!(Dialect::Codex.manages_sessions(&args("--ephemeral")));
        assert!(!Dialect::Codex.manages_sessions(&args("-c model=x")));
        assert!(!Dialect::Gemini.manages_sessions(&args("--sandbox")));
    }

    #[test]
    fn failures_of_real_programs_are_known() {
        for failure in [
            "claude-code failed with error_during_execution: No conversation found with session ID: 019aa000-0000-7000-8000-000000000000",
            "codex failed with exit status: 1: Error: thread/resume: thread/resume failed: no rollout found for thread id 019aa000 (code -32600)",
            "gemini failed with exit status: 42 (invalid input): Error resuming session: Invalid session identifier \"019aa000\".",
            "gemini failed with exit status: 42 (invalid input): Error resuming session: No previous sessions found for this project.",
            "cursor failed with exit status: 1: Chat 019aa000 not found",
        ] {
            assert_eq!(lost(failure), Some("the program does not find the conversation"), "{failure}");
        }
        let long = "claude-code failed with is_error: Prompt is too long";
        assert_eq!(lost(long), Some("the conversation is too long for the model"));
        for failure in [
            "codex failed with turn.failed: stream disconnected",
            "gemini failed with FatalAuthenticationError: no login",
            "claude-code failed with is_error: Credit balance is too low",
        ] {
            assert_eq!(lost(failure), None, "{failure}");
        }
    }
}
