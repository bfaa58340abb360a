//! Teams that tests run.

use std::fmt::Write;

/// Returns the `team.yml`, without its name, of phases `p0`, `p1` and so on in sequence, each with one command.
#[must_use]
pub fn chain(commands: &[&str]) -> String {
    let mut text = "workflow:\n  phases:\n".to_owned();
    for (n, command) in commands.iter().enumerate() {
        let after = if n == 0 { String::new() } else { format!("      depends_on: [p{}]\n", n - 1) };
        let command = serde_json::json!(command);
        let _ = write!(
            text,
            "    - name: p{n}\n      type: exec\n{after}      commands: [{{name: c, run: {command}}}]\n"
        );
    }
    text
}
