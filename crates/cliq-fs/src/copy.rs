//! Copies of files and directories that keep their times.

use std::fs::{self, File};

use camino::Utf8Path;

use crate::{FsError, IoContext};

/// Copies a file with its permissions and the time of its last change.
///
/// # Errors
/// A file cannot be read or written.
pub fn copy_file_with_time(from: &Utf8Path, to: &Utf8Path) -> Result<(), FsError> {
    let modified = fs::metadata(from).and_then(|metadata| metadata.modified()).at("look at", from)?;
    fs::copy(from, to).at("copy", from)?;
    let file = File::options().append(true).open(to);
    // The time of a read-only copy cannot be set, and stays the current one.
    file.map_or(Ok(()), |file| file.set_modified(modified)).at("set the time of", to)
}

/// Copies the files and links below a directory, with the times of files, except files at its top that `takes` refuses by name. Links are
/// not followed; other files, such as pipes, are left out. Directories that are missing are created.
///
/// # Errors
/// A file cannot be read or written.
pub fn copy_tree(from: &Utf8Path, to: &Utf8Path, takes: &dyn Fn(&str) -> bool) -> Result<(), FsError> {
    fs::create_dir_all(to).at("create", to)?;
    for entry in from.read_dir_utf8().at("read", from)? {
        let entry = entry.at("read", from)?;
        let kind = entry.file_type().at("look at", entry.path())?;
        let target = to.join(entry.file_name());
        if kind.is_dir() {
            copy_tree(entry.path(), &target, &|_| true)?;
        } else if kind.is_symlink() {
            copy_link(entry.path(), &target)?;
        } else if kind.is_file() && takes(entry.file_name()) {
            copy_file_with_time(entry.path(), &target)?;
        }
    }
    Ok(())
}

fn copy_link(from: &Utf8Path, to: &Utf8Path) -> Result<(), FsError> {
    let goal = fs::read_link(from).at("read", from)?;
    match fs::remove_file(to) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error).at("remove", to),
        _ => {}
    }
    std::os::unix::fs::symlink(goal, to).at("create", to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_links_and_times_are_copied() {
        let place = tempfile::tempdir().expect("a directory");
        let root = Utf8Path::from_path(place.path()).expect("UTF-8");
        let from = root.join("from");
        fs::create_dir_all(from.join("deep")).expect("created");
        fs::write(from.join("deep/file"), "text").expect("written");
        fs::write(from.join("left-out"), "text").expect("written");
        std::os::unix::fs::symlink("deep/file", from.join("link")).expect("linked");
        let long_ago = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
        let file = File::options().append(true).open(from.join("deep/file")).expect("opened");
        file.set_modified(long_ago).expect("set");

        let to = root.join("to/there");
        for _ in 0..2 {
            copy_tree(&from, &to, &|name| name != "left-out").expect("copied");
        }
        assert_eq!(fs::read_to_string(to.join("link")).expect("read"), "text");
        assert!(to.join("link").is_symlink());
        assert!(!to.join("left-out").exists());
        let time = fs::metadata(to.join("deep/file")).and_then(|metadata| metadata.modified());
        assert_eq!(time.expect("a time"), long_ago);
    }
}
