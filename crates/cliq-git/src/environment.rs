//! Environment of git and of all that must not act on the repository of a caller.

use std::process::Command;

/// Names of the variables that tie git to one repository, as `git rev-parse --local-env-vars` lists them.
///
/// Git sets some of them for hooks and for `git rebase --exec`. A program that inherits them works on the repository of that
/// command, whatever its working directory is.
pub const LOCAL_VARIABLES: [&str; 16] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_CONFIG",
    "GIT_CONFIG_PARAMETERS",
    "GIT_CONFIG_COUNT",
    "GIT_OBJECT_DIRECTORY",
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_GRAFT_FILE",
    "GIT_INDEX_FILE",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_REPLACE_REF_BASE",
    "GIT_PREFIX",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_SHALLOW_FILE",
    "GIT_COMMON_DIR",
];

/// Removes the variables of [`LOCAL_VARIABLES`] from the environment of a command. Call it before variables are set on purpose.
pub fn remove_local_variables(command: &mut Command) {
    for name in LOCAL_VARIABLES {
        command.env_remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_contains_every_variable_of_the_installed_git() {
        let output = Command::new("git").args(["rev-parse", "--local-env-vars"]).output().expect("git");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.lines().count() > 5, "{text}");
        for name in text.lines() {
            assert!(LOCAL_VARIABLES.contains(&name), "{name} is missing");
        }
    }
}
