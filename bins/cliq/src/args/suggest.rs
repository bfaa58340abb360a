//! Suggestions for mistyped commands, also for short ones and those of two swapped letters.

use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use clap::{Command, CommandFactory};

use super::Cli;

/// Adds the nearest command to the error of an unknown one, in place of that of clap: for clap, `rnu` is nearer to `runs` than to `run`.
pub(crate) fn suggest(error: &mut Error, arguments: &[String]) {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return;
    }
    let Some(ContextValue::String(typo)) = error.get(ContextKind::InvalidSubcommand) else { return };
    let mut root = Cli::command();
    root.build();
    if let Some(name) = nearest(&root, arguments, typo) {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![name]));
    }
}

/// Returns the command nearest to `typo` in the group that the arguments before it name.
fn nearest(root: &Command, arguments: &[String], typo: &str) -> Option<String> {
    let mut group = root;
    for argument in arguments.iter().take_while(|argument| *argument != typo) {
        group = group.find_subcommand(argument).unwrap_or(group);
    }
    let names: Vec<&str> =
        group.get_subcommands().filter(|command| !command.is_hide_set()).map(Command::get_name).collect();
    cliq_workflow::nearest(typo, names).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_command_of_the_group_is_found() {
        let mut root = Cli::command();
        root.build();
        for (arguments, expected) in [
            ("rnu", Some("run")),
            ("statsu", Some("status")),
            ("-v ini", Some("init")),
            ("team validte", Some("validate")),
            ("signal emti", Some("emit")),
            ("server tokne", Some("token")),
            ("quite-different", None),
            ("team run-all", None),
        ] {
            let arguments: Vec<String> = arguments.split(' ').map(str::to_owned).collect();
            let found = nearest(&root, &arguments, arguments.last().unwrap());
            assert_eq!(found.as_deref(), expected, "{arguments:?}");
        }
    }
}
