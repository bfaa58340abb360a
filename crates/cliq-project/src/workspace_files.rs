//! Files of the workspace by name, directory or glob.

use camino::{Utf8Path, Utf8PathBuf};
use cliq_workflow::{Glob, parse_glob};

/// Maximum depth of directories.
const MAX_DEPTH: usize = 32;
/// Characters of wildcards.
const WILDCARDS: [char; 4] = ['*', '?', '[', '{'];

/// Returns the files that a pattern names, relative to the workspace and in order: a file, all files below a directory, or those that match a
/// glob. Files of git and of cliq are not among them, unless they are named. Links are not followed.
///
/// # Errors
/// The pattern leads out of the workspace or is no glob, or more than `most` files would have to be looked at.
pub(crate) fn workspace_files(
    workspace: &Utf8Path,
    pattern: &str,
    most: usize,
) -> Result<Vec<Utf8PathBuf>, String> {
    let pattern = pattern.trim_start_matches("./").trim_end_matches('/');
    let matcher = parse_glob(pattern).map_err(|error| format!("it {error}"))?;
    let is_glob = pattern.contains(WILDCARDS);
    // The part without wildcards: no other directory is looked into.
    let parts = Utf8Path::new(pattern).components().map(|part| part.as_str());
    let fixed: Utf8PathBuf = parts.take_while(|part| !part.contains(WILDCARDS)).collect();
    let matcher = is_glob.then_some(matcher);
    let mut walk = Walk { workspace, matcher, most, looked_at: 0, found: Vec::new() };
    walk.visit(&fixed, 0)?;
    walk.found.sort();
    Ok(walk.found)
}

struct Walk<'a> {
    workspace: &'a Utf8Path,
    matcher: Option<Glob>,
    most: usize,
    looked_at: usize,
    found: Vec<Utf8PathBuf>,
}

impl Walk<'_> {
    fn visit(&mut self, path: &Utf8Path, depth: usize) -> Result<(), String> {
        self.looked_at += 1;
        if self.looked_at > self.most {
            return Err(format!("there are more than {} files; name a smaller directory", self.most));
        }
        let full = self.workspace.join(path);
        let Ok(meta) = full.symlink_metadata() else { return Ok(()) };
        if meta.is_dir() {
            if depth > MAX_DEPTH {
                return Ok(());
            }
            let Ok(entries) = full.read_dir_utf8() else { return Ok(()) };
            for entry in entries.filter_map(Result::ok) {
                let name = entry.file_name();
                // Neither git's files nor cliq's own, unless they are named.
                if name != ".git" && name != ".cliq" {
                    self.visit(&path.join(name), depth + 1)?;
                }
            }
        } else if self.matcher.as_ref().is_none_or(|matcher| matcher.matches(path)) {
            self.found.push(path.to_owned());
        }
        Ok(())
    }
}
