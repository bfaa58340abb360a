//! Files of a team, read from a folder and written to one.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use cliq_fs::{FsError, IoContext};

use crate::{Digest, FileDigests};

/// Maximum number of files of a package.
pub const MAX_FILES: usize = 10_000;
/// Maximum number of bytes of all files of a package.
pub const MAX_BYTES: u64 = 50 << 20;
/// Maximum number of bytes of an archive.
pub const MAX_ARCHIVE_BYTES: u64 = 10 << 20;
/// Maximum number of directories that contain a file.
const MAX_DEPTH: usize = 32;
/// Maximum number of bytes of the path of a file.
const MAX_PATH: usize = 512;

/// A file of a team.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Whether it can be executed.
    pub executable: bool,
    /// Content.
    pub bytes: Vec<u8>,
}

/// The files of a team by their path, within the limits of a package. Hidden files, whose name or directory begins with `.`, are no part of
/// it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Content {
    files: BTreeMap<Utf8PathBuf, File>,
    bytes: u64,
}

/// The files are not those of a package.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ContentError {
    /// There are too many files.
    #[error("a package has at most {MAX_FILES} files")]
    TooMany,
    /// The files are too large.
    #[error("the files of a package have at most {} MB together", MAX_BYTES >> 20)]
    TooLarge,
    /// The archive is too large.
    #[error("the archive has {bytes} bytes: a package has at most {} MB", MAX_ARCHIVE_BYTES >> 20)]
    ArchiveTooLarge {
        /// Size of the archive.
        bytes: u64,
    },
    /// A path is that of no file of a package.
    #[error("the path {path:?} {why}")]
    Path {
        /// The path.
        path: String,
        /// Rule that it breaks.
        why: &'static str,
    },
    /// An entry is neither a file nor a directory.
    #[error("{path:?} is {kind}: a package has files and directories only")]
    Kind {
        /// The path.
        path: String,
        /// Kind of the entry, with its article.
        kind: &'static str,
    },
    /// Directories are nested too deeply, as by a link to a directory around it.
    #[error("{0} is in more than {MAX_DEPTH} directories")]
    TooDeep(Utf8PathBuf),
    /// A link leaves the folder.
    #[error("{0} is a link that leaves the folder of the team")]
    Leaves(Utf8PathBuf),
    /// The archive cannot be read.
    #[error("the archive cannot be read: {0}")]
    Archive(String),
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FsError),
}

impl Content {
    /// Reads the files of a folder. Links are replaced by the files that they lead to.
    ///
    /// # Errors
    /// A file cannot be read, a link leaves the folder, an entry is neither file nor directory, or a limit is exceeded.
    pub fn read(dir: &Utf8Path) -> Result<Self, ContentError> {
        let root = dir.canonicalize_utf8().at("find", dir)?;
        let mut content = Self::default();
        content.read_dir(&root, &root, Utf8Path::new(""), 0)?;
        Ok(content)
    }

    /// Reads files and folders directly below a folder, and adds them below `within`. Those that are not there are left out.
    ///
    /// # Errors
    /// As for [`Content::read`] and [`Content::add`].
    pub fn read_parts<'p>(
        &mut self,
        dir: &Utf8Path,
        within: &Utf8Path,
        parts: impl IntoIterator<Item = &'p str>,
    ) -> Result<(), ContentError> {
        let root = dir.canonicalize_utf8().at("find", dir)?;
        for part in parts {
            let place = root.join(part);
            if !part.starts_with('.') && fs::symlink_metadata(&place).is_ok() {
                self.read_entry(&root, &place, within.join(part), 0)?;
            }
        }
        Ok(())
    }

    fn read_dir(
        &mut self,
        root: &Utf8Path,
        dir: &Utf8Path,
        within: &Utf8Path,
        depth: usize,
    ) -> Result<(), ContentError> {
        if depth > MAX_DEPTH {
            return Err(ContentError::TooDeep(dir.to_owned()));
        }
        for entry in dir.read_dir_utf8().at("read", dir)? {
            let entry = entry.at("read", dir)?;
            if entry.file_name().starts_with('.') {
                continue;
            }
            self.read_entry(root, entry.path(), within.join(entry.file_name()), depth)?;
        }
        Ok(())
    }

    fn read_entry(
        &mut self,
        root: &Utf8Path,
        entry: &Utf8Path,
        path: Utf8PathBuf,
        depth: usize,
    ) -> Result<(), ContentError> {
        let mut place = entry.to_owned();
        let mut meta = fs::symlink_metadata(&place).at("read", &place)?;
        if meta.is_symlink() {
            place = place.canonicalize_utf8().at("find", entry)?;
            if !place.starts_with(root) {
                return Err(ContentError::Leaves(entry.to_owned()));
            }
            meta = fs::symlink_metadata(&place).at("read", &place)?;
        }
        if meta.is_dir() {
            self.read_dir(root, &place, &path, depth + 1)
        } else if meta.is_file() {
            self.check_room(meta.len())?;
            let bytes = cliq_fs::read_limited(&place, MAX_BYTES)?;
            self.add(path, File { executable: meta.permissions().mode() & 0o111 != 0, bytes })
        } else {
            let kind = cliq_fs::describe_kind(meta.file_type());
            Err(ContentError::Kind { path: path.into_string(), kind })
        }
    }

    /// Checks that a file with `bytes` bytes fits.
    pub(crate) fn check_room(&self, bytes: u64) -> Result<(), ContentError> {
        if self.files.len() >= MAX_FILES {
            return Err(ContentError::TooMany);
        }
        if bytes > MAX_BYTES - self.bytes {
            return Err(ContentError::TooLarge);
        }
        Ok(())
    }

    /// Number of bytes that still fit.
    pub(crate) fn room(&self) -> u64 {
        MAX_BYTES - self.bytes
    }

    /// Adds a file.
    ///
    /// # Errors
    /// The path leaves the folder, is hidden, is there already (letters in upper and lower case count as the same), or a limit is exceeded.
    pub fn add(&mut self, path: Utf8PathBuf, file: File) -> Result<(), ContentError> {
        check_path(&path)?;
        self.check_room(file.bytes.len() as u64)?;
        let wrong = |why| ContentError::Path { path: path.to_string(), why };
        if self.files.contains_key(&path) {
            return Err(wrong("comes twice"));
        }
        self.bytes += file.bytes.len() as u64;
        self.files.insert(path, file);
        Ok(())
    }

    /// Checks what concerns several paths: none is a directory of another, and none differs from another in the case of letters only, as
    /// some file systems could not keep both.
    ///
    /// # Errors
    /// Two paths cannot be kept together.
    pub(crate) fn check_together(&self) -> Result<(), ContentError> {
        let wrong = |path: &Utf8Path, why| ContentError::Path { path: path.to_string(), why };
        let mut seen = BTreeMap::new();
        for path in self.files.keys() {
            for place in path.ancestors().filter(|place| !place.as_str().is_empty()) {
                if place != path && self.files.contains_key(place) {
                    return Err(wrong(path, "is below a file"));
                }
                let other = seen.insert(place.as_str().to_lowercase(), place);
                if other.is_some_and(|other| other != place) {
                    return Err(wrong(path, "differs from another in the case of letters only"));
                }
            }
        }
        Ok(())
    }

    /// The files, sorted by path.
    pub fn files(&self) -> impl ExactSizeIterator<Item = (&Utf8Path, &File)> {
        self.files.iter().map(|(path, file)| (path.as_path(), file))
    }

    /// A file.
    #[must_use]
    pub fn file(&self, path: &Utf8Path) -> Option<&File> {
        self.files.get(path)
    }

    /// The text of a file, if it is there and is UTF-8.
    #[must_use]
    pub fn text(&self, path: &str) -> Option<&str> {
        std::str::from_utf8(&self.files.get(Utf8Path::new(path))?.bytes).ok()
    }

    /// The digest of the files: that of a text with a line `DIGITS MODE PATH` per file, where the digits are the SHA-256 of the content and
    /// the mode is `x` or `-`. The same files have the same digest, wherever they come from.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let mut digests = FileDigests::default();
        for (path, file) in &self.files {
            digests.add(path, file.executable, Digest::of(&file.bytes));
        }
        digests.digest()
    }

    /// Writes the files below a folder.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write(&self, dir: &Utf8Path) -> Result<(), ContentError> {
        fs::create_dir_all(dir).at("create", dir)?;
        for (path, file) in &self.files {
            let place = dir.join(path);
            let parent = place.parent().unwrap_or(dir);
            fs::create_dir_all(parent).at("create", parent)?;
            fs::write(&place, &file.bytes).at("write", &place)?;
            let mode = if file.executable { 0o755 } else { 0o644 };
            fs::set_permissions(&place, fs::Permissions::from_mode(mode)).at("set the mode of", &place)?;
        }
        Ok(())
    }
}

/// Checks that a path stays below the folder of a team and can be shown.
pub(crate) fn check_path(path: &Utf8Path) -> Result<(), ContentError> {
    let wrong = |why| ContentError::Path { path: path.to_string(), why };
    if path.as_str().len() > MAX_PATH {
        return Err(wrong("is too long"));
    }
    if path.as_str().chars().any(|c| c.is_control() || c == '\\') {
        return Err(wrong("has a control character or a backslash"));
    }
    if path.components().count() > MAX_DEPTH {
        return Err(wrong("is too deep"));
    }
    let mut is_empty = true;
    for component in path.components() {
        is_empty = false;
        match component {
            Utf8Component::Normal(name) if name.starts_with('.') => {
                return Err(wrong("is hidden: names of files in a package do not begin with `.`"));
            }
            Utf8Component::Normal(_) => {}
            Utf8Component::ParentDir | Utf8Component::RootDir | Utf8Component::Prefix(_) => {
                return Err(wrong("leaves the folder of the team"));
            }
            Utf8Component::CurDir => return Err(wrong("has a part `.`")),
        }
    }
    // `a//b`, `a/./b` and `a/` are other spellings of a path that may be there already.
    let plain: Utf8PathBuf = path.components().collect();
    if is_empty || plain.as_str() != path.as_str() {
        return Err(wrong("is not written plainly"));
    }
    Ok(())
}
