//! The environment as a value: variables, the cliq home, programs on the PATH.

use std::collections::BTreeMap;
use std::fmt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use camino::Utf8PathBuf;

/// Environment variables as a value, so that a library never reads those of its process by itself.
///
/// Variables often hold keys: the debug output shows names only.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environment {
    variables: BTreeMap<String, String>,
}

impl Environment {
    /// An environment of these variables.
    #[must_use]
    pub fn new(variables: impl IntoIterator<Item = (String, String)>) -> Self {
        Self { variables: variables.into_iter().collect() }
    }

    /// The environment of this process, for the `main` of a program. Bytes that are not UTF-8 are replaced.
    #[must_use]
    pub fn of_process() -> Self {
        Self::new(
            std::env::vars_os().map(|(name, value)| {
                (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned())
            }),
        )
    }

    /// The value of a variable; `None` if it is not set or empty.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Whether a variable is set, be it empty.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.variables.contains_key(name)
    }

    /// The names of all variables.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.variables.keys().map(String::as_str)
    }

    /// The cliq home: `CLIQ_HOME`, else `~/.cliqrc`. It need not exist. `None` if neither `CLIQ_HOME` nor
    /// `HOME` is set.
    #[must_use]
    pub fn cliq_home(&self) -> Option<Utf8PathBuf> {
        let home = || self.get("HOME").map(|home| Utf8PathBuf::from(home).join(".cliqrc"));
        self.get("CLIQ_HOME").map(Utf8PathBuf::from).or_else(home)
    }

    /// The file of a program: `name` itself where it contains a slash, else the first executable of that name on the PATH.
    #[must_use]
    pub fn find_program(&self, name: &str) -> Option<Utf8PathBuf> {
        if name.contains('/') {
            return Some(Utf8PathBuf::from(name)).filter(|path| is_executable(path.as_std_path()));
        }
        std::env::split_paths(self.get("PATH")?)
            .filter_map(|dir| Utf8PathBuf::from_path_buf(dir).ok())
            .map(|dir| dir.join(name))
            .find(|path| is_executable(path.as_std_path()))
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.variables.keys()).finish()
    }
}

/// Whether a path leads to a file that has an execute permission.
#[must_use]
pub fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(variables: &[(&str, &str)]) -> Environment {
        Environment::new(variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
    }

    #[test]
    fn the_cliq_home_is_set_or_below_the_home() {
        assert_eq!(environment(&[("HOME", "/h")]).cliq_home(), Some("/h/.cliqrc".into()));
        assert_eq!(environment(&[("HOME", "/h"), ("CLIQ_HOME", "/c")]).cliq_home(), Some("/c".into()));
        assert_eq!(environment(&[("HOME", "/h"), ("CLIQ_HOME", "")]).cliq_home(), Some("/h/.cliqrc".into()));
        assert_eq!(environment(&[("HOME", "")]).cliq_home(), None);
    }

    #[test]
    fn programs_are_found_on_the_path() {
        let found = environment(&[("PATH", "/nowhere:/bin:/usr/bin")]).find_program("sh");
        assert!(found.is_some_and(|path| path.file_name() == Some("sh")));
        assert_eq!(environment(&[("PATH", "/bin")]).find_program("no-such-program"), None);
        assert_eq!(environment(&[]).find_program("sh"), None);
        assert_eq!(environment(&[]).find_program("/bin/sh"), Some("/bin/sh".into()));
        assert_eq!(environment(&[]).find_program("/bin"), None, "a directory is not a program");
    }

    #[test]
    fn debug_output_shows_no_values() {
        let shown = format!("{:?}", environment(&[("ANTHROPIC_API_KEY", "sk-1")]));
        assert!(shown.contains("ANTHROPIC_API_KEY") && !shown.contains("sk-1"), "{shown}");
    }
}
