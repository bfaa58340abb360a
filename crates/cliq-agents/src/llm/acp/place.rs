//! Places of the files that a call concerns, with links resolved.

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};

use super::policy::Place;

/// Directories of the workspace that belong to git and to cliq.
const INTERNAL: [&str; 2] = [".git", ".cliq"];

/// Returns the place of a path, absolute or relative to the workspace. Links are followed as far as the path exists.
pub(crate) fn place(workspace: &Utf8Path, path: &str) -> Place {
    let path = path.strip_prefix("file://").unwrap_or(path);
    let root = workspace.canonicalize_utf8().unwrap_or_else(|_| workspace.to_owned());
    let Some(real) = resolve(&root.join(path)) else { return Place::Outside };
    let Ok(below) = real.strip_prefix(&root) else { return Place::Outside };
    let is_internal = |part: Utf8Component<'_>| INTERNAL.contains(&part.as_str());
    if below.components().any(is_internal) { Place::Internal } else { Place::Inside }
}

/// Returns an absolute path without links, `.` and `..`, as the system would resolve it. Parts that do not exist are kept. Returns `None` if
/// a part of it is a link to nothing, or cannot be read.
fn resolve(path: &Utf8Path) -> Option<Utf8PathBuf> {
    let mut real = Utf8PathBuf::from("/");
    for part in path.components() {
        match part {
            Utf8Component::CurDir | Utf8Component::RootDir | Utf8Component::Prefix(_) => {}
            Utf8Component::ParentDir => {
                real.pop();
            }
            Utf8Component::Normal(name) => {
                real.push(name);
                if real.symlink_metadata().is_ok() {
                    real = real.canonicalize_utf8().ok()?;
                }
            }
        }
    }
    Some(real)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_follow_links_and_parents() {
        let temp = tempfile::tempdir().expect("a directory");
        let root = Utf8Path::from_path(temp.path()).expect("UTF-8");
        let workspace = root.join("work");
        std::fs::create_dir_all(workspace.join("src")).expect("made");
        std::os::unix::fs::symlink(root, workspace.join("out")).expect("linked");
        std::os::unix::fs::symlink("/nowhere/at/all", workspace.join("gone")).expect("linked");
        let at = |path: &str| place(&workspace, path);
        assert_eq!(at("src/new/file.rs"), Place::Inside);
        assert_eq!(at(workspace.join("a").as_str()), Place::Inside);
        assert_eq!(at(&format!("file://{workspace}/a")), Place::Inside);
        assert_eq!(at("src/../../other"), Place::Outside);
        assert_eq!(at("/etc/passwd"), Place::Outside);
        assert_eq!(at("out/x"), Place::Outside);
        assert_eq!(at("gone"), Place::Outside);
        assert_eq!(at(".git/config"), Place::Internal);
        assert_eq!(at("sub/.cliq/settings.json"), Place::Internal);
        assert_eq!(at("out/work/src/a"), Place::Inside);
        assert_eq!(at("out/../x"), Place::Outside);
        assert_eq!(at("src/../a"), Place::Inside);
    }
}
