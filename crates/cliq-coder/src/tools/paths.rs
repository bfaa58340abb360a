//! Paths of tools: inside of the workspace, without links that lead out.

use std::fs;
use std::io;

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};

/// Directories of the workspace that tools do not write: other programs act on their content.
const PROTECTED: [&str; 2] = [".git", ".cliq"];

/// Workspace that tools work in.
#[derive(Debug, Clone)]
pub struct Workspace {
    root: Utf8PathBuf,
    /// Directories inside protected ones that may be written.
    open: Vec<Utf8PathBuf>,
}

impl Workspace {
    /// Opens a workspace. `open` are directories inside `.cliq` that may be written.
    ///
    /// # Errors
    /// Returns an error if the directory does not exist, or its path is not UTF-8.
    pub fn open(root: &Utf8Path, open: Vec<Utf8PathBuf>) -> io::Result<Self> {
        Ok(Self { root: root.canonicalize_utf8()?, open })
    }

    /// Absolute path of the workspace.
    #[must_use]
    pub fn root(&self) -> &Utf8Path {
        &self.root
    }

    /// Returns the real path of a file inside the workspace, or `None` if there is none.
    #[must_use]
    pub fn file(&self, path: &str) -> Option<Utf8PathBuf> {
        self.existing(path).ok().filter(|path| path.is_file())
    }

    /// As [`Self::file`].
    ///
    /// # Errors
    /// Returns the reason, for the model.
    pub fn required_file(&self, path: &str) -> Result<Utf8PathBuf, String> {
        let full = self.existing(path)?;
        if full.is_file() { Ok(full) } else { Err(format!("{path} is a directory, or no regular file")) }
    }

    /// Returns the path relative to the workspace.
    pub(crate) fn relative<'a>(&self, path: &'a Utf8Path) -> &'a Utf8Path {
        path.strip_prefix(&self.root).unwrap_or(path)
    }

    /// Resolves the path of an entry that exists. Links must lead into the workspace.
    pub(crate) fn existing(&self, path: &str) -> Result<Utf8PathBuf, String> {
        let full = self.resolve(path)?;
        match full.canonicalize_utf8() {
            Ok(real) if real.starts_with(&self.root) => Ok(real),
            Ok(_) => Err(outside(path)),
            Err(error) => Err(format!("cannot open {path}: {}", reason(&error))),
        }
    }

    /// Resolves the path of a file to write, which need not exist.
    pub(crate) fn writable(&self, path: &str) -> Result<Utf8PathBuf, String> {
        let full = self.resolve(path)?;
        let Some(name) = full.file_name().filter(|_| full != self.root) else {
            return Err(format!("{path} is the workspace itself"));
        };
        // The nearest directory that exists must be inside.
        let mut missing = vec![name.to_owned()];
        let mut dir = full.parent().unwrap_or(&self.root).to_owned();
        let real = loop {
            match dir.canonicalize_utf8() {
                Ok(real) => break real,
                Err(error)
                    if error.kind() == io::ErrorKind::NotFound && fs::symlink_metadata(&dir).is_err() =>
                {
                    missing.push(dir.file_name().unwrap_or_default().to_owned());
                    if !dir.pop() {
                        return Err(outside(path));
                    }
                }
                Err(error) => return Err(format!("cannot open {dir}: {}", reason(&error))),
            }
        };
        let mut target = real;
        target.extend(missing.into_iter().rev());
        if fs::symlink_metadata(&target).is_ok_and(|meta| meta.is_symlink()) {
            target = target
                .canonicalize_utf8()
                .map_err(|error| format!("cannot open {path}: {}", reason(&error)))?;
        }
        if !target.starts_with(&self.root) {
            return Err(outside(path));
        }
        let first = self.relative(&target).components().next();
        let is_protected = matches!(first, Some(Utf8Component::Normal(name)) if PROTECTED.contains(&name));
        if is_protected && !self.open.iter().any(|dir| target.starts_with(dir)) {
            return Err(format!("{path} cannot be written: cliq and git own this directory"));
        }
        Ok(target)
    }

    /// Joins a path to the workspace and removes `.` and `..`.
    fn resolve(&self, path: &str) -> Result<Utf8PathBuf, String> {
        if path.contains('\0') {
            return Err("a path cannot contain a NUL character".to_owned());
        }
        let mut full = Utf8PathBuf::from("/");
        for part in self.root.join(path).components() {
            match part {
                Utf8Component::ParentDir => {
                    full.pop();
                }
                Utf8Component::Normal(name) => full.push(name),
                _ => {}
            }
        }
        // Links above the workspace make other names for it.
        if full.starts_with(&self.root) || Utf8Path::new(path).is_absolute() {
            Ok(full)
        } else {
            Err(outside(path))
        }
    }
}

fn outside(path: &str) -> String {
    format!("{path} is outside of the workspace; paths are relative to the workspace")
}

/// Text of an error without the number of the system.
pub(crate) fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file or directory".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_in_the_workspace() {
        let place = tempfile::tempdir().expect("a directory");
        let top = Utf8Path::from_path(place.path()).expect("UTF-8").canonicalize_utf8().expect("there");
        let root = top.join("w");
        for dir in ["w/src", "w/.git/hooks", "w/.cliq/files/p", "outside"] {
            fs::create_dir_all(top.join(dir)).expect("made");
        }
        fs::write(top.join("outside/key"), "x").expect("written");
        fs::write(root.join("src/a.rs"), "x").expect("written");
        for (target, link) in
            [("../outside", "w/dir"), ("../outside/key", "w/key"), ("src", "w/in"), ("../gone", "w/dangling")]
        {
            std::os::unix::fs::symlink(target, top.join(link)).expect("linked");
        }
        let workspace = Workspace::open(&root, vec![root.join(".cliq/files/p")]).expect("there");
        for path in ["src/a.rs", "./src/../src/a.rs", "in/a.rs", root.join("src/a.rs").as_str()] {
            assert_eq!(workspace.existing(path), Ok(root.join("src/a.rs")), "{path}");
        }
        for path in ["../outside/key", "/etc/passwd", "dir/key", "key", "missing", "a\0b"] {
            assert!(workspace.existing(path).is_err(), "{path}");
        }
        assert_eq!(workspace.writable("new/deep/file"), Ok(root.join("new/deep/file")));
        assert_eq!(workspace.writable("in/b.rs"), Ok(root.join("src/b.rs")));
        assert!(workspace.writable(".cliq/files/p/result.json").is_ok());
        for path in [
            "../x",
            "/tmp/x",
            "dir/x",
            "key",
            "dangling",
            ".git/hooks/pre-commit",
            ".cliq/team.yml",
            ".",
            "dangling/x",
        ] {
            assert!(workspace.writable(path).is_err(), "{path}");
        }
    }
}
