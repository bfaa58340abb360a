//! Digests of the files of a team in a folder, without the limits of a package.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::{FsError, IoContext};

use crate::Digest;

/// Maximum number of directories that contain a file: more are a link to a directory around it.
const MAX_DEPTH: usize = 32;

/// Digests of files by path. The digest of all of them is that of the same files in a package ([`crate::Content::digest`]).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileDigests(BTreeMap<Utf8PathBuf, (Mode, Digest)>);

/// Kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Plain,
    Executable,
    /// A link that leaves the folder, such as to a program of the system. Only in folders, never in packages.
    Link,
}

impl FileDigests {
    /// Reads files and folders directly below a folder, and adds them below `within`. Those that are not there, and hidden ones, are left out. Of a link that leaves the folder, the path that it leads to counts.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn read_parts<'p>(
        &mut self,
        dir: &Utf8Path,
        within: &Utf8Path,
        parts: impl IntoIterator<Item = &'p str>,
    ) -> Result<(), FsError> {
        let root = dir.canonicalize_utf8().at("find", dir)?;
        for part in parts {
            let place = root.join(part);
            if !part.starts_with('.') && fs::symlink_metadata(&place).is_ok() {
                self.read(&root, &place, within.join(part), 0)?;
            }
        }
        Ok(())
    }

    fn read(
        &mut self,
        root: &Utf8Path,
        entry: &Utf8Path,
        path: Utf8PathBuf,
        depth: usize,
    ) -> Result<(), FsError> {
        let mut place = entry.to_owned();
        let mut meta = fs::symlink_metadata(&place).at("read", &place)?;
        if meta.is_symlink() {
            let to = place.read_link_utf8().at("read", &place)?;
            let real = place.canonicalize_utf8().ok().filter(|real| real.starts_with(root));
            let Some(real) = real.filter(|_| depth < MAX_DEPTH) else {
                self.0.insert(path, (Mode::Link, Digest::of(to.as_str().as_bytes())));
                return Ok(());
            };
            place = real;
            meta = fs::symlink_metadata(&place).at("read", &place)?;
        }
        if meta.is_dir() {
            for inner in place.read_dir_utf8().at("read", &place)? {
                let inner = inner.at("read", &place)?;
                if !inner.file_name().starts_with('.') {
                    self.read(root, inner.path(), path.join(inner.file_name()), depth + 1)?;
                }
            }
        } else if meta.is_file() {
            let (mut file, _) = cliq_fs::open_regular(&place)?;
            let digest = Digest::of_reader(&mut file).at("read", &place)?;
            let mode = if meta.permissions().mode() & 0o111 != 0 { Mode::Executable } else { Mode::Plain };
            self.0.insert(path, (mode, digest));
        }
        Ok(())
    }

    pub(crate) fn add(&mut self, path: &Utf8Path, executable: bool, digest: Digest) {
        let mode = if executable { Mode::Executable } else { Mode::Plain };
        self.0.insert(path.to_owned(), (mode, digest));
    }

    /// The digest of all files.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let mut text = String::new();
        for (path, (mode, digest)) in &self.0 {
            let mode = match mode {
                Mode::Plain => '-',
                Mode::Executable => 'x',
                Mode::Link => 'l',
            };
            // A line feed in a name would look like another file.
            let path = path.as_str().replace('\\', "\\\\").replace('\n', "\\n");
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{} {mode} {path}", digest.hex());
        }
        Digest::of(text.as_bytes())
    }

    /// The digests of the folders directly below `within`, by their names.
    #[must_use]
    pub fn digests_below(&self, within: &str) -> BTreeMap<String, Digest> {
        let mut parts: BTreeMap<String, Self> = BTreeMap::new();
        for (path, entry) in &self.0 {
            let Ok(rest) = path.strip_prefix(within) else { continue };
            let mut components = rest.components();
            let (Some(first), rest) = (components.next(), components.as_path()) else { continue };
            if !rest.as_str().is_empty() {
                parts.entry(first.as_str().to_owned()).or_default().0.insert(rest.to_owned(), *entry);
            }
        }
        parts.into_iter().map(|(name, part)| (name, part.digest())).collect()
    }
}
