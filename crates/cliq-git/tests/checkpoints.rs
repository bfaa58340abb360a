//! Checkpoints of real repositories, made and compared with the program `git`.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_git::checkpoints::{Checkpoint, Label, Limits, Moment, Store};

struct Work {
    _place: tempfile::TempDir,
    dir: Utf8PathBuf,
}

impl Work {
    fn new() -> Self {
        let place = tempfile::tempdir().expect("a directory");
        let dir = Utf8Path::from_path(place.path()).expect("UTF-8").join("w");
        fs::create_dir_all(&dir).expect("created");
        Self { _place: place, dir }
    }

    fn repository(path: &str) -> Self {
        let work = Self::new();
        work.init(path);
        work
    }

    fn init(&self, path: &str) {
        fs::create_dir_all(self.dir.join(path)).expect("created");
        self.git(path, &["init", "-q", "-b", "main"]);
        self.git(path, &["config", "user.email", "a@b.c"]);
        self.git(path, &["config", "user.name", "a"]);
    }

    fn git(&self, path: &str, args: &[&str]) -> String {
        let output = Command::new("git").args(args).current_dir(self.dir.join(path)).output().expect("git");
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.dir.join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("created");
        fs::write(path, text).expect("written");
    }

    fn store(&self, roots: &[&str]) -> Store {
        let roots: Vec<String> = roots.iter().map(|root| (*root).to_owned()).collect();
        let limits = Limits { max_file_bytes: 1000, ..Limits::default() };
        Store::new(&self.dir.join(".cliq/checkpoints.git"), &self.dir, &roots, limits)
    }

    /// Every file outside of `.cliq` with its content, its mode or its link.
    fn files(&self) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
        let mut files = BTreeMap::new();
        let mut pending = vec![self.dir.clone().into_std_path_buf()];
        while let Some(dir) = pending.pop() {
            for entry in fs::read_dir(dir).expect("listed") {
                let path = entry.expect("an entry").path();
                let metadata = fs::symlink_metadata(&path).expect("metadata");
                if path.file_name() == Some(OsStr::new(".cliq")) {
                } else if metadata.is_dir() {
                    pending.push(path);
                } else if metadata.is_symlink() {
                    let target = fs::read_link(&path).expect("a link").as_os_str().as_bytes().to_vec();
                    files.insert(path, (0, target));
                } else {
                    let content = fs::read(&path).expect("read");
                    files.insert(path, (metadata.permissions().mode(), content));
                }
            }
        }
        files
    }
}

fn take(store: &Store, phase: &str, moment: Moment) -> Checkpoint {
    store.take(&label(phase, moment), "2026-11-24T10:00:00.000Z").expect("taken")
}

fn label(phase: &str, moment: Moment) -> Label {
    Label { run: "r".into(), phase: phase.into(), activation: 1, moment }
}

fn changes(store: &Store, from: &Checkpoint, to: &Checkpoint) -> Vec<String> {
    let changes = store.changes(from, to).expect("compared");
    changes.iter().map(|change| format!("{} {}", change.kind.letter(), change.path)).collect()
}

#[test]
fn tracked_and_untracked_files_are_stored_and_ignored_ones_are_not() {
    let work = Work::repository("");
    work.write(".gitignore", "*.log\ntracked.log\n");
    work.write("a.txt", "one\n");
    work.write("tracked.log", "one\n");
    work.git("", &["add", "-f", ".gitignore", "a.txt", "tracked.log"]);
    work.git("", &["commit", "-qm", "first"]);
    let store = work.store(&[""]);
    let before = take(&store, "a", Moment::Before);
    assert!(take(&store, "a", Moment::Before).has_same_files(&before));
    work.write("a.txt", "two\n");
    work.write("new/b c.txt", "new\n");
    work.write("tracked.log", "two\n");
    work.write("debug.log", "ignored\n");
    fs::write(work.dir.as_std_path().join(OsStr::from_bytes(b"\xff\xfe.txt")), "x").expect("written");
    symlink("a.txt", work.dir.join("link")).expect("linked");
    fs::set_permissions(work.dir.join("a.txt"), fs::Permissions::from_mode(0o755)).expect("changed");
    let after = take(&store, "a", Moment::After);
    let found = changes(&store, &before, &after);
    assert_eq!(found[..4], ["M a.txt", "A link", "A new/b c.txt", "M tracked.log"], "{found:?}");
    assert!(found[4].starts_with("A \u{fffd}") && found.len() == 5, "{found:?}");
    let patch =
        String::from_utf8_lossy(&store.diff(&before, &after, false, false).expect("a patch")).into_owned();
    assert!(
        patch.contains("-one\n+two\n") && patch.contains("new mode 100755") && !patch.contains("debug.log"),
        "{patch}"
    );
    let stat =
        String::from_utf8_lossy(&store.diff(&before, &after, true, false).expect("a summary")).into_owned();
    assert!(stat.contains("5 files changed"), "{stat}");
    assert_eq!(store.list().expect("listed").len(), 3);
}

#[test]
fn restoring_brings_back_every_file_and_can_be_undone() {
    let work = Work::repository("");
    work.write(".gitignore", "kept.log\n");
    work.write(".gitattributes", "*.txt text eol=lf filter=evil ident\n");
    work.git("", &["config", "filter.evil.clean", "touch pwned"]);
    work.write("crlf.txt", "a\r\nb\r\n$Id$\n");
    work.write("dir/deep/x", "x");
    work.write("run.sh", "#!/bin/sh\n");
    fs::set_permissions(work.dir.join("run.sh"), fs::Permissions::from_mode(0o755)).expect("changed");
    symlink("dir", work.dir.join("link")).expect("linked");
    let store = work.store(&[""]);
    let first = take(&store, "a", Moment::Before);
    let files = work.files();
    fs::remove_dir_all(work.dir.join("dir")).expect("removed");
    work.write("dir", "a file now");
    fs::remove_file(work.dir.join("link")).expect("removed");
    work.write("link/inside", "a directory now");
    work.write("crlf.txt", "other\n");
    work.write("kept.log", "ignored files stay");
    fs::set_permissions(work.dir.join("run.sh"), fs::Permissions::from_mode(0o644)).expect("changed");
    let changed = work.files();
    let restored =
        store.restore(&first, &label("b", Moment::Restore), "2026-11-24T11:00:00Z").expect("restored");
    assert!(restored.changes.iter().any(|change| change.path == "crlf.txt"));
    let mut now = work.files();
    now.remove(work.dir.join("kept.log").as_std_path());
    assert_eq!(now, files);
    store.restore(&restored.before, &label("b", Moment::Restore), "2026-11-24T11:00:00Z").expect("restored");
    assert_eq!(work.files(), changed);
    assert!(!work.dir.join("pwned").exists(), "a filter of the project ran");
}

#[test]
fn repository_of_the_project_stays_as_it_is() {
    let work = Work::repository("");
    work.write("a.txt", "one\n");
    work.git("", &["add", "."]);
    work.git("", &["commit", "-qm", "first"]);
    work.write("staged.txt", "staged\n");
    work.git("", &["add", "staged.txt"]);
    work.write(".git/hooks/post-checkout", "#!/bin/sh\ntouch pwned\n");
    work.write(".git/hooks/post-index-change", "#!/bin/sh\ntouch pwned\n");
    for hook in ["post-checkout", "post-index-change"] {
        fs::set_permissions(work.dir.join(".git/hooks").join(hook), fs::Permissions::from_mode(0o755))
            .expect("changed");
    }
    let hostile = "[core]\n\tfsmonitor = \"touch pwned; false\"\n\thooksPath = .git/hooks\n\tsshCommand = touch pwned\n\tpager = touch pwned\n\
                   [diff]\n\texternal = touch pwned\n[include]\n\tpath = ../evil\n[core]\n\tworktree = /tmp\n";
    let config = fs::read_to_string(work.dir.join(".git/config")).expect("read");
    work.write(".git/config", &format!("{config}{hostile}"));
    let repository = |work: &Work| {
        let files = work
            .files()
            .into_iter()
            .filter(|(path, _)| path.components().any(|part| part.as_os_str() == ".git"));
        files.collect::<BTreeMap<_, _>>()
    };
    let before = repository(&work);
    let store = work.store(&[""]);
    let first = take(&store, "a", Moment::Before);
    work.write("a.txt", "two\n");
    let second = take(&store, "a", Moment::After);
    store.diff(&first, &second, false, true).expect("a patch");
    store.restore(&first, &label("b", Moment::Restore), "2026-11-24T11:00:00Z").expect("restored");
    assert_eq!(repository(&work), before);
    assert!(!work.dir.join("pwned").exists());
    assert_eq!(fs::read_to_string(work.dir.join("a.txt")).expect("read"), "one\n");
}

#[test]
fn several_and_nested_repositories_are_stored_each() {
    let work = Work::new();
    for path in ["one", "two", "two/vendor/three"] {
        work.init(path);
        work.write(&format!("{path}/f.txt"), path);
    }
    work.git("one", &["add", "."]);
    work.git("one", &["commit", "-qm", "first"]);
    // A repository without a commit, and a submodule.
    work.git("two", &["-c", "protocol.file.allow=always", "submodule", "add", "-q", "../one", "sub"]);
    work.write("outside.txt", "in no repository");
    let store = work.store(&["one", "two"]);
    let first = take(&store, "a", Moment::Before);
    let paths: Vec<&str> = first.units.iter().map(|unit| unit.path.as_str()).collect();
    assert_eq!(paths, ["one", "two", "two/sub", "two/vendor/three"]);
    work.write("one/f.txt", "1");
    work.write("two/sub/f.txt", "2");
    work.write("two/vendor/three/g.txt", "3");
    let second = take(&store, "a", Moment::After);
    assert_eq!(
        changes(&store, &first, &second),
        ["M one/f.txt", "M two/sub/f.txt", "A two/vendor/three/g.txt"]
    );
    let patch =
        String::from_utf8_lossy(&store.diff(&first, &second, false, false).expect("a patch")).into_owned();
    assert!(patch.contains("+++ b/two/sub/f.txt"), "{patch}");
    store.restore(&first, &label("b", Moment::Restore), "2026-11-24T11:00:00Z").expect("restored");
    assert_eq!(fs::read_to_string(work.dir.join("two/sub/f.txt")).expect("read"), "one");
    assert!(!work.dir.join("two/vendor/three/g.txt").exists());
}

#[test]
fn large_files_are_named_and_left_alone() {
    let work = Work::repository("");
    work.write("a.txt", "a");
    work.write("big.bin", &"x".repeat(2000));
    work.write("pointer.bin", "version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 9\n");
    let store = work.store(&[""]);
    let first = take(&store, "a", Moment::Before);
    assert_eq!(
        first.large.iter().map(|large| (large.path.as_str(), large.bytes)).collect::<Vec<_>>(),
        [("big.bin", 2000)]
    );
    work.write("grows.txt", "small");
    let second = take(&store, "a", Moment::After);
    work.write("grows.txt", &"y".repeat(3000));
    let third = take(&store, "b", Moment::After);
    assert_eq!(third.large.len(), 2);
    let text =
        String::from_utf8_lossy(&store.diff(&second, &third, false, false).expect("a patch")).into_owned();
    assert!(text.contains("grows.txt: 3000 bytes, not stored"), "{text}");
    store.restore(&first, &label("b", Moment::Restore), "2026-11-24T11:00:00Z").expect("restored");
    assert_eq!(fs::metadata(work.dir.join("big.bin")).expect("there").len(), 2000);
}

#[test]
fn workspace_without_a_repository_is_stored_if_asked_for() {
    let work = Work::new();
    work.write("a.txt", "a");
    work.write(".cliq/private", "p");
    let store = work.store(&[""]);
    let first = take(&store, "a", Moment::Before);
    work.write("b.txt", "b");
    work.write(".cliq/private", "q");
    let second = take(&store, "a", Moment::After);
    assert_eq!(changes(&store, &first, &second), ["A b.txt"]);
}

#[test]
fn old_checkpoints_are_removed_and_the_rest_stays_whole() {
    let work = Work::repository("");
    let store = work.store(&[""]);
    for n in 0..6 {
        work.write("a.txt", &format!("{n}"));
        store.take(&label("a", Moment::After), &n.to_string()).expect("taken");
    }
    let removed = store.prune(|ts| if ts < "3" { u64::MAX } else { 0 }).expect("pruned");
    assert_eq!(removed, 3);
    let kept = store.list().expect("listed");
    assert_eq!(kept.iter().map(|checkpoint| checkpoint.id).collect::<Vec<_>>(), [4, 5, 6]);
    assert_eq!(changes(&store, &kept[0], &kept[2]), ["M a.txt"]);
    assert_eq!(take(&store, "b", Moment::After).id, 7);
    store.restore(&kept[0], &label("b", Moment::Restore), "9").expect("restored");
    assert_eq!(fs::read_to_string(work.dir.join("a.txt")).expect("read"), "3");
}

#[test]
fn remains_of_a_killed_process_do_not_matter() {
    let work = Work::repository("");
    work.write("a.txt", "a");
    let store = work.store(&[""]);
    take(&store, "a", Moment::Before);
    let dir: &Path = &work.dir.as_std_path().join(".cliq/checkpoints.git");
    fs::write(dir.join("index.lock"), "").expect("written");
    let mut record = fs::read(dir.join("checkpoints.jsonl")).expect("read");
    record.extend(b"{\"id\":2,\"ts");
    fs::write(dir.join("checkpoints.jsonl"), record).expect("written");
    work.write("a.txt", "b");
    assert_eq!(take(&store, "a", Moment::After).id, 2);
    assert_eq!(store.list().expect("listed").len(), 2);
}
