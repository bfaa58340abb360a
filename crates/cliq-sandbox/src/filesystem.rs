//! File rules of Landlock for a policy. Landlock only allows: a tree without some entries is a list of the others.

use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_protocol::Profile;

use crate::policy::{Mechanism, Policy};

/// Kind of access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Right {
    /// Names of entries.
    List,
    /// Reading and executing.
    Read,
    /// Reading, executing and writing.
    Write,
    /// Writing to devices.
    Device,
}

/// Right to a tree or a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rule {
    pub(crate) path: Utf8PathBuf,
    pub(crate) right: Right,
    /// Whether the path is a directory, if that is known.
    pub(crate) is_dir: Option<bool>,
}

impl Rule {
    fn new(path: impl Into<Utf8PathBuf>, right: Right) -> Self {
        Self { path: path.into(), right, is_dir: None }
    }
}

/// Devices that every process may use.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/ptmx", "/dev/pts"];
/// Trees of the kernel that every process may read.
const KERNEL: &[&str] =
    &["/proc", "/dev/random", "/dev/urandom", "/sys/devices/system/cpu", "/sys/fs/cgroup"];

/// Returns the rules of a policy. Looks at the file system as it is now.
pub(crate) fn rules(policy: &Policy) -> Vec<Rule> {
    let mut rules: Vec<Rule> = Vec::new();
    let is_wrapped = policy.mechanism == Mechanism::Bubblewrap;
    // In its own mount namespace, a process sees what it may read.
    if is_wrapped {
        rules.push(Rule::new("/", Right::Read));
        rules.extend(["/tmp", "/var/tmp", "/dev/shm"].map(|path| Rule::new(path, Right::Write)));
        rules.extend(policy.write.iter().map(|path| Rule::new(path.clone(), Right::Write)));
    } else {
        let is_writable = |path: &Utf8PathBuf| policy.write.iter().any(|tree| path.starts_with(tree));
        let (secrets, mut hidden) = (policy.hidden.clone(), policy.hidden.clone());
        hidden.extend(policy.covered.iter().filter(|path| !is_writable(path)).cloned());
        let mut allow = |paths: &[Utf8PathBuf], right: Right, hidden: &[Utf8PathBuf]| {
            for path in paths.iter().filter_map(|path| path.canonicalize_utf8().ok()) {
                // An entry inside a hidden tree names a secret.
                let around = hidden.iter().map(AsRef::as_ref).filter(|hidden| !path.starts_with(hidden));
                allow_except(&path, None, right, &around.collect::<Vec<_>>(), &mut rules);
            }
        };
        allow(&policy.read, Right::Read, &hidden);
        // New entries can be made in a tree that is writable as a whole only.
        allow(&policy.write, Right::Write, &secrets);
        if policy.profile == Profile::Strict {
            rules.extend(KERNEL.iter().map(|path| Rule::new(*path, Right::Read)));
        }
        rules.extend(policy.temporary.iter().map(|path| Rule::new(path.clone(), Right::Write)));
    }
    rules.extend(DEVICES.iter().map(|path| Rule::new(*path, Right::Device)));
    rules
}

/// Allows a tree without the hidden paths in it. Their parents may be listed.
fn allow_except(
    path: &Utf8Path,
    is_dir: Option<bool>,
    right: Right,
    hidden: &[&Utf8Path],
    rules: &mut Vec<Rule>,
) {
    if hidden.contains(&path) {
        return;
    }
    let inside: Vec<&Utf8Path> = hidden.iter().copied().filter(|hidden| hidden.starts_with(path)).collect();
    if inside.is_empty() {
        rules.push(Rule { path: path.to_owned(), right, is_dir });
        return;
    }
    rules.push(Rule { path: path.to_owned(), right: Right::List, is_dir });
    let Ok(entries) = fs::read_dir(path) else { return };
    for entry in entries.flatten() {
        // A link leads to what has rules of its own.
        let kind = entry.file_type().ok();
        if kind.is_some_and(|kind| kind.is_symlink()) {
            continue;
        }
        if let Ok(child) = Utf8PathBuf::try_from(entry.path()) {
            allow_except(&child, kind.map(|kind| kind.is_dir()), right, &inside, rules);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_paths_are_left_out() {
        let place = tempfile::tempdir().expect("a directory");
        let root = Utf8Path::from_path(place.path()).expect("UTF-8").canonicalize_utf8().expect("there");
        for dir in ["h/.ssh/deep", "h/src/deep", "other"] {
            fs::create_dir_all(root.join(dir)).expect("made");
        }
        fs::write(root.join("h/.netrc"), "").expect("written");
        fs::write(root.join("h/notes"), "").expect("written");
        let hidden = [root.join("h/.ssh"), root.join("h/.netrc"), root.join("h/absent")];
        let hidden: Vec<&Utf8Path> = hidden.iter().map(AsRef::as_ref).collect();
        let mut rules = Vec::new();
        allow_except(&root, None, Right::Read, &hidden, &mut rules);
        rules.sort();
        let rules: Vec<(&str, Right)> = rules
            .iter()
            .map(|rule| (rule.path.strip_prefix(&root).expect("below").as_str(), rule.right))
            .collect();
        assert_eq!(
            rules,
            [
                ("", Right::List),
                ("h", Right::List),
                ("h/notes", Right::Read),
                ("h/src", Right::Read),
                ("other", Right::Read)
            ]
        );
    }
}
