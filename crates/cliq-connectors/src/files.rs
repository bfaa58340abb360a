//! Local files: those that are written, and those that may be published.

use std::fs::File;
use std::io::{Read, Write};

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use sha2::{Digest, Sha256};

use crate::ConnectorError;
use crate::error::file_error;

/// A file that is to be published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalFile {
    /// Absolute path inside the workspace.
    pub path: Utf8PathBuf,
    /// Size in bytes.
    pub size: u64,
    /// SHA-256 in hexadecimal.
    pub sha256: String,
}

impl LocalFile {
    /// The whole file as text, without blanks around it.
    pub(crate) fn text(&self) -> Result<String, ConnectorError> {
        Ok(cliq_fs::read_text(&self.path, 16 << 20)?.trim().to_owned())
    }

    /// File name.
    pub(crate) fn name(&self) -> &str {
        self.path.file_name().unwrap_or("file")
    }

    /// Media type by extension.
    pub(crate) fn content_type(&self) -> &'static str {
        content_type(self.name())
    }
}

/// The type of a file, by the extension of its name.
pub(crate) fn content_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase()).as_deref() {
        Some("md" | "markdown") => "text/markdown; charset=utf-8",
        Some("txt" | "log") => "text/plain; charset=utf-8",
        Some("csv") => "text/csv; charset=utf-8",
        Some("html" | "htm") => "text/html; charset=utf-8",
        Some("json") => "application/json",
        Some("jsonl") => "application/x-ndjson",
        Some("xml") => "application/xml",
        Some("yml" | "yaml") => "application/yaml",
        Some("pdf") => "application/pdf",
        Some("png") => "image/png",
        Some("jpg" | "jpeg") => "image/jpeg",
        Some("gif") => "image/gif",
        Some("svg") => "image/svg+xml",
        Some("zip") => "application/zip",
        Some("gz") => "application/gzip",
        Some("docx") => "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        Some("xlsx") => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        Some("pptx") => "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        _ => "application/octet-stream",
    }
}

/// The extension for a type; nothing if there is no usual one.
pub(crate) fn extension_of(content_type: &str) -> Option<&'static str> {
    Some(match content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
        "text/html" | "application/xhtml+xml" => "html",
        "text/markdown" => "md",
        "text/plain" => "txt",
        "text/csv" => "csv",
        "application/json" | "text/json" => "json",
        "application/xml" | "text/xml" => "xml",
        "application/yaml" | "text/yaml" => "yaml",
        "application/pdf" => "pdf",
        "application/zip" => "zip",
        "application/gzip" => "gz",
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/gif" => "gif",
        "image/svg+xml" => "svg",
        "image/webp" => "webp",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document" => "docx",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet" => "xlsx",
        "application/vnd.openxmlformats-officedocument.presentationml.presentation" => "pptx",
        _ => return None,
    })
}

/// The SHA-256 of a file, in hexadecimal digits, and its size.
pub(crate) fn digest(path: &Utf8Path) -> Result<(String, u64), ConnectorError> {
    let (mut file, _) = cliq_fs::open_regular(path)?;
    let (mut digest, mut size, mut chunk) = (Sha256::new(), 0, vec![0; 256 << 10]);
    loop {
        let count = file.read(&mut chunk).map_err(|error| file_error("read", path, &error))?;
        if count == 0 {
            break;
        }
        digest.update(&chunk[..count]);
        size += count as u64;
    }
    Ok((hex::encode(digest.finalize()), size))
}

/// The SHA-256 of bytes, in hexadecimal digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// Writes a file whole, with its directory.
pub(crate) fn write(path: &Utf8Path, bytes: &[u8]) -> Result<(), ConnectorError> {
    let dir = path.parent().unwrap_or(path);
    std::fs::create_dir_all(dir).map_err(|error| file_error("make", dir, &error))?;
    let mut part =
        cliq_http::part_file(dir.as_std_path()).map_err(|error| file_error("write in", dir, &error))?;
    part.write_all(bytes).map_err(|error| file_error("write", path, &error))?;
    part.persist(path).map_err(|error| file_error("write", path, &error.error))?;
    Ok(())
}

/// Removes temporary files that a process which was killed left behind, in a directory and those below it.
pub(crate) fn remove_parts(dir: &Utf8Path) {
    let Ok(entries) = dir.read_dir_utf8() else { return };
    for entry in entries.filter_map(Result::ok) {
        let name = entry.file_name();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => remove_parts(entry.path()),
            Ok(kind) if kind.is_file() && name.starts_with('.') && name.ends_with(".part") => {
                let _ = std::fs::remove_file(entry.path());
            }
            _ => {}
        }
    }
}

/// A remote path as one below a directory.
///
/// # Errors
/// Returns an error if the path would leave the directory or is not a valid path.
pub fn inside(relative: &str) -> Result<Utf8PathBuf, ConnectorError> {
    let refused = |why: &str| ConnectorError::new(format!("the name {relative:?} {why}"));
    if relative.contains('\0') {
        return Err(refused("contains a NUL character"));
    }
    if relative.starts_with('/') || relative.contains('\\') {
        return Err(refused("is not relative, and could lead out of its directory"));
    }
    let path = Utf8Path::new(relative);
    for component in path.components() {
        match component {
            Utf8Component::Normal(name) if name.len() > 255 => {
                return Err(refused("is longer than a file's name can be"));
            }
            Utf8Component::Normal(_) => {}
            _ => return Err(refused("leads out of its directory")),
        }
    }
    if relative.is_empty() || relative.split('/').any(str::is_empty) {
        return Err(refused("has an empty part"));
    }
    if relative.split('/').any(|part| part.starts_with('.') && part.ends_with(".part")) {
        return Err(refused("is one that is used for temporary files"));
    }
    Ok(path.to_owned())
}

/// Files that are never published, in addition to `push.deny` (docs/pull-push.md).
const NEVER: &[&str] = &[".cliq/settings*", "**/.cliq/settings*", ".git/**", "**/.git/**", ".env", "**/.env"];

/// Files of the workspace that may be published.
#[derive(Debug, Clone)]
pub struct Publishable {
    deny: globset::GlobSet,
    globs: Vec<String>,
}

/// Maximum length of a glob of `push.deny` in bytes, and maximum number of its alternatives.
const MAX_GLOB: usize = 2000;
const MAX_ALTERNATIVES: usize = 50;

impl Publishable {
    /// All but those that `deny` matches (globs relative to the workspace).
    ///
    /// # Errors
    /// A glob cannot be read.
    pub fn new(deny: &[String]) -> Result<Self, ConnectorError> {
        let globs: Vec<String> =
            NEVER.iter().map(|glob| (*glob).to_owned()).chain(deny.iter().cloned()).collect();
        let mut set = globset::GlobSetBuilder::new();
        for glob in &globs {
            // The library nests a call per level of alternatives.
            if glob.len() > MAX_GLOB || glob.matches('{').count() > MAX_ALTERNATIVES {
                let shown: String = glob.chars().take(60).collect();
                return Err(ConnectorError::new(format!(
                    "`push.deny` has {shown:?}…, which is longer than {MAX_GLOB} bytes or has more than {MAX_ALTERNATIVES} alternatives: write several globs"
                )));
            }
            let built = globset::GlobBuilder::new(glob).literal_separator(false).build();
            set.add(built.map_err(|error| {
                ConnectorError::new(format!("`push.deny` has {glob:?}, which is not a valid glob: {error}"))
            })?);
        }
        let deny = set.build().map_err(|error| ConnectorError::new(format!("`push.deny`: {error}")))?;
        Ok(Self { deny, globs })
    }

    /// The file, if it may be published.
    ///
    /// # Errors
    /// Returns an error if the file is outside the workspace, a link leads out, the file is not regular, denied, or unreadable.
    pub fn open(&self, workspace: &Utf8Path, file: &Utf8Path) -> Result<LocalFile, ConnectorError> {
        let root = workspace.canonicalize_utf8().map_err(|error| file_error("open", workspace, &error))?;
        let asked = if file.is_absolute() { file.to_owned() } else { workspace.join(file) };
        let real = asked.canonicalize_utf8().map_err(|error| {
            if error.kind() == std::io::ErrorKind::NotFound {
                ConnectorError::new(format!("there is no file {file}: no phase has written it"))
            } else {
                file_error("open", file, &error)
            }
        })?;
        let relative = real.strip_prefix(&root).map_err(|_| {
            ConnectorError::new(format!("{file} is not published: it is, or leads, outside of the workspace"))
        })?;
        // Under the name that was asked for, and under the one that a link leads to.
        let named = asked.strip_prefix(workspace).unwrap_or(relative);
        for path in [relative, named] {
            if let Some(&first) = self.deny.matches(path.as_std_path()).first() {
                return Err(ConnectorError::new(format!(
                    "{file} is not published: `{}` denies it",
                    self.globs[first]
                )));
            }
        }
        let meta = File::open(&real)
            .and_then(|file| file.metadata())
            .map_err(|error| file_error("read", file, &error))?;
        if !meta.is_file() {
            return Err(ConnectorError::new(format!("{file} is not published: it is not a regular file")));
        }
        let (sha256, size) = digest(&real)?;
        Ok(LocalFile { path: real, size, sha256 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_in_their_directory() {
        for name in ["a", "a/b.txt", "ä/ö ü.md", "a/.hidden"] {
            assert!(inside(name).is_ok(), "{name}");
        }
        let long = "x".repeat(256);
        for name in [
            "",
            "/etc/passwd",
            "..",
            "a/../../b",
            "a/./../b/..",
            "a//b",
            "a\\..\\b",
            "a\0b",
            &long,
            "a/.x.part",
        ] {
            assert!(inside(name).is_err(), "{name}");
        }
    }

    #[test]
    fn secrets_and_what_is_outside_are_not_published() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = Utf8Path::from_path(dir.path()).expect("UTF-8").join("work");
        let write = |path: &str| {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            std::fs::write(path, "x").expect("written");
        };
        ["report.md", ".cliq/settings.json", "keys/a.pem", ".env", ".git/config"].into_iter().for_each(write);
        std::fs::write(root.with_file_name("outside"), "x").expect("written");
        std::os::unix::fs::symlink("../outside", root.join("link")).expect("linked");
        std::os::unix::fs::symlink(".cliq/settings.json", root.join("fine.json")).expect("linked");
        let publishable = Publishable::new(&["keys/**".to_owned()]).expect("globs");
        let opened =
            |file: &str| publishable.open(&root, file.into()).map(|file| file.size).map_err(|e| e.message);
        assert_eq!(opened("report.md"), Ok(1));
        for file in [
            "link",
            "../outside",
            ".cliq/settings.json",
            "fine.json",
            "keys/a.pem",
            ".env",
            ".git/config",
            "none",
            "keys",
        ] {
            let said = opened(file).expect_err(file);
            assert!(said.contains(file), "{said}");
        }
    }
}
