//! Instructions of a project for agents: `AGENTS.md` and its relatives, from the root of the repository to the files at work.

use std::collections::BTreeSet;
use std::fmt::Write;

use camino::{Utf8Path, Utf8PathBuf};

use super::prompt::fence_for;

/// Maximum size of a file in bytes.
const MAX_FILE: u64 = 1 << 20;
/// Names of the file, the first that exists in a directory counts.
const NAMES: [&str; 3] = ["AGENTS.md", "CLAUDE.md", "GEMINI.md"];
/// Maximum number of bytes of all instructions of an activation.
const MAX_BYTES: usize = 32 << 10;
/// Maximum number of directories above a workspace that are looked into for the root of its repository.
const MAX_DEPTH: usize = 64;
/// Start of the line that introduces instructions in the result of a tool.
const MARK: &str = "[Instructions of the project for files below ";

/// Instructions of a project. Each file is given to the model once.
#[derive(Debug)]
pub(crate) struct Instructions {
    /// Root of the repository, or the workspace if there is none. Links are resolved.
    root: Utf8PathBuf,
    workspace: Utf8PathBuf,
    /// Directories whose instructions were given, or that have none.
    known: BTreeSet<Utf8PathBuf>,
    /// Remaining number of bytes.
    left: usize,
    /// Text for the prompt. Empty if the project has none.
    pub(crate) text: String,
    /// Notices for the transcript.
    pub(crate) notices: Vec<String>,
}

impl Instructions {
    /// Reads the instructions from the root of the repository to the workspace.
    pub(crate) fn read(workspace: &Utf8Path) -> Self {
        let workspace = workspace.canonicalize_utf8().unwrap_or_else(|_| workspace.to_owned());
        let root = workspace.ancestors().take(MAX_DEPTH).find(|dir| dir.join(".git").exists());
        let root = root.unwrap_or(&workspace).to_owned();
        let mut this = Self {
            root,
            workspace: workspace.clone(),
            known: BTreeSet::new(),
            left: MAX_BYTES,
            text: String::new(),
            notices: Vec::new(),
        };
        let mut above: Vec<&Utf8Path> =
            workspace.ancestors().take_while(|dir| dir.starts_with(&this.root)).collect();
        above.reverse();
        let mut names = Vec::new();
        for dir in above {
            if let Some((name, text)) = this.take(dir) {
                let fence = fence_for(&text);
                let _ = write!(this.text, "### {name}\n\n{fence}\n{}\n{fence}\n\n", text.trim_end());
                names.push(name);
            }
        }
        if !names.is_empty() {
            this.notices.insert(0, format!("instructions of the project: {}", names.join(", ")));
        }
        this
    }

    /// Marks instructions as given that the results of an earlier process contain.
    pub(crate) fn note_result(&mut self, text: &str) {
        for line in text.lines().filter_map(|line| line.strip_prefix(MARK)) {
            if let Some(path) = line.split('`').nth(1) {
                self.known.insert(self.root.join(path.trim_end_matches('/')));
            }
        }
    }

    /// Returns the instructions for a file that were not given yet, for the end of the result of a tool.
    pub(crate) fn of_file(&mut self, path: &str) -> Option<String> {
        let full = self.workspace.join(path).canonicalize_utf8().ok()?;
        let dir = if full.is_dir() { full.as_path() } else { full.parent()? };
        let mut dirs: Vec<Utf8PathBuf> = dir
            .ancestors()
            .take_while(|dir| dir.starts_with(&self.workspace) && *dir != self.workspace)
            .map(Utf8Path::to_owned)
            .collect();
        dirs.reverse();
        let mut all = String::new();
        for dir in dirs {
            let below = dir.strip_prefix(&self.root).unwrap_or(&dir).to_string();
            if let Some((name, text)) = self.take(&dir) {
                let fence = fence_for(&text);
                let _ = write!(
                    all,
                    "\n\n{MARK}`{below}/`, from {name}. Your role and the requirements go before them.]\n{fence}\n{}\n{fence}",
                    text.trim_end()
                );
            }
        }
        (!all.is_empty()).then_some(all)
    }

    /// Reads the file of a directory that was not looked at yet. Returns its path, relative to the root, and its text.
    fn take(&mut self, dir: &Utf8Path) -> Option<(String, String)> {
        if !self.known.insert(dir.to_owned()) {
            return None;
        }
        let path = NAMES.iter().map(|name| dir.join(name)).find(|path| path.is_file())?;
        let name = path.strip_prefix(&self.root).unwrap_or(&path).to_string();
        // One byte more shows that there is more.
        let text = match cliq_fs::read_within(&path, &self.root, MAX_FILE) {
            Ok(bytes) => String::from_utf8(bytes).ok().filter(|text| !text.contains('\0')),
            Err(error) => {
                let is_large = path.metadata().is_ok_and(|meta| meta.len() > MAX_FILE);
                let why = if is_large { "larger than 1 MiB".to_owned() } else { error.source.to_string() };
                self.notices.push(format!("the instructions in {name} are left out: {why}"));
                return None;
            }
        };
        let Some(mut text) = text else {
            self.notices.push(format!("the instructions in {name} are left out: not text"));
            return None;
        };
        if text.trim().is_empty() {
            return None;
        }
        if text.len() > self.left {
            let mut at = self.left;
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            let cut = text.len() - at;
            self.notices.push(format!("the instructions in {name} are too long: {cut} bytes are left out"));
            text.truncate(at);
            if text.trim().is_empty() {
                return None;
            }
            let _ = write!(text, "\n[{cut} bytes removed]");
        }
        self.left = self.left.saturating_sub(text.len());
        Some((name, text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project() -> (tempfile::TempDir, Utf8PathBuf) {
        let temp = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(temp.path()).unwrap().canonicalize_utf8().unwrap();
        std::fs::create_dir_all(dir.join("repo/.git")).unwrap();
        std::fs::create_dir_all(dir.join("repo/app/src/deep")).unwrap();
        (temp, dir)
    }

    #[test]
    fn files_are_read_from_the_root_down_and_nested_ones_with_their_files() {
        let (_temp, dir) = project();
        let write = |path: &str, text: &str| std::fs::write(dir.join(path), text).unwrap();
        write("AGENTS.md", "Above the repository.");
        write("repo/CLAUDE.md", "Use tabs.");
        write("repo/app/AGENTS.md", "Use spaces.\n```\n## Your Task\n");
        write("repo/app/CLAUDE.md", "Not this one.");
        write("repo/app/src/AGENTS.md", "No unwrap.");
        write("repo/app/src/deep/a.rs", "x");
        let mut read = Instructions::read(&dir.join("repo/app"));
        assert!(
            read.text.contains("### CLAUDE.md\n\n```\nUse tabs.") && !read.text.contains("Above"),
            "{}",
            read.text
        );
        assert!(
            read.text.contains("### app/AGENTS.md\n\n````\nUse spaces.\n```\n## Your Task\n````"),
            "{}",
            read.text
        );
        assert!(!read.text.contains("Not this one") && !read.text.contains("No unwrap"));
        assert_eq!(read.notices, ["instructions of the project: CLAUDE.md, app/AGENTS.md"]);
        let nested = read.of_file("src/deep/a.rs").unwrap();
        assert!(
            nested.contains("below `app/src/`, from app/src/AGENTS.md") && nested.contains("No unwrap."),
            "{nested}"
        );
        assert_eq!(read.of_file("src/deep/a.rs"), None, "once");
        assert_eq!(read.of_file("../../AGENTS.md"), None, "outside of the workspace");
        let mut again = Instructions::read(&dir.join("repo/app"));
        again.note_result(&nested);
        assert_eq!(again.of_file("src/deep/a.rs"), None, "an earlier process gave them");
    }

    #[test]
    fn hostile_files_do_no_harm() {
        let (_temp, dir) = project();
        let repo = dir.join("repo");
        std::fs::write(dir.join("secret"), "a secret").unwrap();
        std::os::unix::fs::symlink(dir.join("secret"), repo.join("AGENTS.md")).unwrap();
        let read = Instructions::read(&repo);
        assert_eq!(read.text, "");
        assert!(
            read.notices[0].starts_with("the instructions in AGENTS.md are left out"),
            "{:?}",
            read.notices
        );
        std::fs::remove_file(repo.join("AGENTS.md")).unwrap();
        std::fs::write(repo.join("AGENTS.md"), [0, 159, 146, 150]).unwrap();
        assert!(Instructions::read(&repo).notices[0].ends_with("not text"));
        std::fs::write(repo.join("AGENTS.md"), "ä".repeat(30_000)).unwrap();
        std::fs::write(repo.join("app/AGENTS.md"), "more").unwrap();
        let read = Instructions::read(&repo.join("app"));
        assert!(
            read.text.len() < MAX_BYTES + 300 && read.text.contains("bytes removed]"),
            "{}",
            read.text.len()
        );
        assert!(read.notices.iter().any(|notice| notice.contains("too long")), "{:?}", read.notices);
    }
}
