//! Directories of a run's workspace.

use camino::Utf8Path;
use cliq_supervisor::internals::workspace_files;
use serde::Serialize;
use utoipa::ToSchema;

use crate::problem::Problem;

/// Maximum number of listed entries of a directory.
const MAX_ENTRIES: usize = 5000;

/// Kind of a directory entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum FileKind {
    /// Directory.
    Directory,
    /// Regular file.
    File,
    /// Link or special file, which is not readable here.
    Other,
}

/// Entry of a directory.
#[derive(Debug, Serialize, ToSchema)]
pub struct FileEntry {
    /// Name.
    pub name: String,
    /// Path relative to the workspace.
    pub path: String,
    /// Kind.
    pub kind: FileKind,
    /// Size in bytes.
    pub size: u64,
}

/// Lists a directory of a workspace: directories first, then by name.
///
/// # Errors
/// Returns a problem if the path is not a directory that callers may read.
pub fn list_directory(workspace: &Utf8Path, relative: &str) -> Result<Vec<FileEntry>, Problem> {
    let dir = workspace_files::locate(workspace, relative)?;
    let read = dir.read_dir_utf8().map_err(|_| Problem::not_found("the path is not a directory"))?;
    let mut entries: Vec<FileEntry> = read
        .filter_map(Result::ok)
        .take(MAX_ENTRIES)
        .filter_map(|entry| {
            let meta = entry.metadata().ok()?;
            let kind = match meta.file_type() {
                kind if kind.is_dir() => FileKind::Directory,
                kind if kind.is_file() => FileKind::File,
                _ => FileKind::Other,
            };
            let name = entry.file_name().to_owned();
            let path = Utf8Path::new(relative).join(&name).into_string();
            Some(FileEntry { name, path, kind, size: meta.len() })
        })
        .collect();
    entries.sort_by(|a, b| (a.kind, &a.name).cmp(&(b.kind, &b.name)));
    Ok(entries)
}
