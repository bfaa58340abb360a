//! Condition of a command (`if`): false, or not evaluated. Pure.

use crate::launcher::Exit;

/// Reason why a condition that failed is neither true nor false: a signal ended it, or the shell could not run it
/// (docs/team-yml.md). `None` if it is false.
///
/// The words of the shell count beside the exit status: `command -v tool` has the status of a missing program too.
pub(super) fn unevaluated(exit: Exit, output: &str) -> Option<String> {
    let said = |words: &[&str]| {
        let is_it = |line: &&str| words.iter().any(|word| line.contains(word));
        output.lines().rev().find(is_it).map(|line| line.trim().to_owned())
    };
    match exit {
        Exit::Signal(signal) => Some(format!("signal {signal} ended it")),
        Exit::Code(126) => {
            let line = said(&["denied", "cannot execute", "Exec format", "directory"]);
            Some(line.unwrap_or_else(|| "its exit status is 126".to_owned()))
        }
        Exit::Code(127) => said(&["not found", "No such file"]),
        Exit::Code(2) => said(&["yntax error"]).filter(|line| line.contains("sh: ")),
        Exit::Code(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn condition_is_false_only_if_it_ran() {
        for (exit, output, reason) in [
            (Exit::Code(1), "sh: 1: tool: not found", None),
            (Exit::Code(1), "", None),
            // As of `command -v tool`.
            (Exit::Code(127), "", None),
            (Exit::Code(127), "looking\n/bin/sh: 1: tool: not found\n", Some("/bin/sh: 1: tool: not found")),
            (
                Exit::Code(126),
                "/bin/sh: 1: ./t: Permission denied",
                Some("/bin/sh: 1: ./t: Permission denied"),
            ),
            (Exit::Code(126), "", Some("its exit status is 126")),
            (
                Exit::Code(2),
                "/bin/sh: 1: Syntax error: \")\" unexpected",
                Some("/bin/sh: 1: Syntax error: \")\" unexpected"),
            ),
            (
                Exit::Code(2),
                "/bin/sh: -c: line 1: syntax error near",
                Some("/bin/sh: -c: line 1: syntax error near"),
            ),
            (Exit::Code(2), "grep: x: No such file or directory", None),
            (Exit::Signal(9), "", Some("signal 9 ended it")),
        ] {
            assert_eq!(unevaluated(exit, output).as_deref(), reason, "{exit:?} {output}");
        }
    }
}
