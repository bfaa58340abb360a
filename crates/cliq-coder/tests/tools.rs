//! The built-in tools in a workspace.
#![expect(clippy::unwrap_used, reason = "a failure here is the failure of a test")]

use std::fs;

use camino::Utf8Path;
use cliq_coder::tools::{Cancel, Outcome, Workspace, run};
use serde_json::{Value, json};

struct World {
    place: tempfile::TempDir,
}

impl World {
    fn new(files: &[(&str, &str)]) -> Self {
        let this = Self { place: tempfile::tempdir().unwrap() };
        for (path, text) in files {
            let path = this.place.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        this
    }

    fn run(&self, name: &str, arguments: &Value) -> Outcome {
        let workspace = Workspace::open(Utf8Path::from_path(self.place.path()).unwrap(), Vec::new()).unwrap();
        run(name, arguments, &workspace, None, 30_000, &Cancel::default())
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.place.path().join(path)).unwrap()
    }
}

#[test]
fn files_are_read_in_parts() {
    let long: String = (1..=5_000).map(|n| format!("line {n} of a file that is long\n")).collect();
    let world = World::new(&[
        ("a.txt", "one\ntwo\nthree"),
        ("long.txt", &long),
        ("empty", ""),
        ("b\u{e4}.txt", "ü\n"),
    ]);
    let read = |arguments: Value| world.run("read_file", &arguments);
    assert_eq!(read(json!({"path": "a.txt"})).unwrap(), "    1\tone\n    2\ttwo\n    3\tthree\n");
    assert_eq!(
        read(json!({"path": "a.txt", "start_line": 2, "end_line": 2})).unwrap(),
        "    2\ttwo\n[a.txt has 3 lines]"
    );
    assert_eq!(read(json!({"path": "bä.txt"})).unwrap(), "    1\tü\n");
    assert_eq!(read(json!({"path": "empty"})).unwrap(), "empty is empty");
    let part = read(json!({"path": "long.txt"})).unwrap();
    assert!(
        part.len() < 30_000 && part.contains("long.txt has 5000 lines; continue with start_line "),
        "{}",
        part.len()
    );
    let next: u64 = part.rsplit(' ').next().unwrap().trim_end_matches(']').parse().unwrap();
    assert!(
        read(json!({"path": "long.txt", "start_line": next}))
            .unwrap()
            .starts_with(&format!("{next:>5}\tline {next} "))
    );
    for (arguments, why) in [
        (json!({"path": "a.txt", "start_line": 9}), "has 3 lines; line 9 does not exist"),
        (json!({"path": "a.txt", "start_line": 3, "end_line": 1}), "`end_line` 1 is before `start_line` 3"),
        (json!({"path": "."}), "is a directory"),
        (json!({"path": "gone"}), "no such file"),
        (json!({}), "missing field `path`"),
        (json!({"path": 5}), "invalid type: integer `5`, expected a string"),
    ] {
        let said = read(arguments).unwrap_err();
        assert!(said.contains(why), "{said}");
    }
    // Unknown arguments do not matter if the needed ones are there. The model is told.
    for (arguments, note) in [
        (
            json!({"path": "bä.txt", "lines": 3}),
            "`read_file` does not have: `lines`; it has: path, start_line, end_line",
        ),
        (json!({"path": "bä.txt", "a": 1, "b": 1, "c": 1, "d": 1, "e": 1, "f": 1}), "`e` and 1 more"),
    ] {
        let said = read(arguments).unwrap();
        assert!(said.starts_with("    1\tü\n") && said.contains(note), "{said}");
    }
    fs::write(world.place.path().join("binary"), [0_u8, 159, 146, 150]).unwrap();
    assert!(read(json!({"path": "binary"})).unwrap_err().contains("a binary file of 4 bytes"));
    std::process::Command::new("mkfifo").arg(world.place.path().join("fifo")).status().unwrap();
    assert!(read(json!({"path": "fifo"})).is_err(), "a FIFO does not block");
}

#[test]
fn edits_replace_one_place_and_show_the_difference() {
    let world = World::new(&[
        ("a.rs", "fn a() {}\nfn b() {}\nfn a() {}\n"),
        ("dos.txt", "one\r\ntwo\r\n"),
        ("x.txt", "aaa"),
    ]);
    let edit = |path: &str, old: &str, new: &str| {
        world.run("edit_file", &json!({"path": path, "old": old, "new": new}))
    };
    let said = edit("a.rs", "fn b() {}", "fn c() {}").unwrap();
    assert!(said.contains("-fn b() {}\n+fn c() {}\n"), "{said}");
    assert_eq!(world.read("a.rs"), "fn a() {}\nfn c() {}\nfn a() {}\n");
    assert!(edit("a.rs", "fn a() {}", "x").unwrap_err().contains("occurs 2 times in a.rs (lines 1, 3)"));
    assert!(edit("x.txt", "aa", "b").unwrap_err().contains("occurs 2 times"), "overlapping places count");
    assert!(edit("a.rs", "fn  a()", "x").unwrap_err().contains("with other blanks"));
    assert!(edit("a.rs", "fn zzz", "x").unwrap_err().contains("does not occur"));
    assert!(
        edit("a.rs", "", "x").is_err()
            && edit("a.rs", "fn c", "fn c").is_err()
            && edit("gone", "a", "b").is_err()
    );
    edit("dos.txt", "one\ntwo", "one\nzwei").unwrap();
    assert_eq!(world.read("dos.txt"), "one\r\nzwei\r\n");
    use std::os::unix::fs::PermissionsExt;
    let script = world.place.path().join("run.sh");
    fs::write(&script, "echo a\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    edit("run.sh", "echo a", "echo b").unwrap();
    assert_eq!(fs::metadata(&script).unwrap().permissions().mode() & 0o777, 0o755);
}

#[test]
fn files_are_written_whole() {
    let world = World::new(&[("a.txt", "old\n")]);
    let write =
        |path: &str, content: &str| world.run("write_file", &json!({"path": path, "content": content}));
    assert_eq!(write("deep/er/b.txt", "1\n2\n").unwrap(), "deep/er/b.txt was written: 2 lines");
    assert!(write("a.txt", "new\n").unwrap().contains("-old\n+new\n"));
    assert!(write("a.txt", "new\n").unwrap().contains("already has this content"));
    assert!(write("deep", "x").unwrap_err().contains("is a directory"));
    for path in ["../out.txt", "/etc/cliq-test", ".git/config", ".cliq/team.yml"] {
        assert!(write(path, "x").is_err(), "{path}");
    }
}

#[test]
fn lists_and_searches_respect_gitignore() {
    let world = World::new(&[
        (".gitignore", "target/\n*.log\n"),
        ("src/a.rs", "fn needle() {}\n"),
        ("src/b.txt", "a Needle\n"),
        ("target/c.rs", "needle\n"),
        ("x.log", "needle\n"),
        (".hidden/d.rs", "needle\n"),
        (".cliq/secret", "needle\n"),
        (".git/config", "needle\n"),
    ]);
    let list = world.run("list_files", &json!({})).unwrap();
    for (path, there) in [
        ("src/a.rs (15 bytes)", true),
        (".hidden/d.rs", true),
        ("target", false),
        ("x.log", false),
        (".cliq", false),
        (".git/", false),
    ] {
        assert_eq!(list.contains(path), there, "{path}: {list}");
    }
    assert_eq!(
        world.run("list_files", &json!({"pattern": "*.rs", "path": "src"})).unwrap(),
        "src/a.rs (15 bytes)\n"
    );
    let search = |arguments: Value| world.run("search", &arguments);
    assert_eq!(
        search(json!({"pattern": "needle"})).unwrap(),
        ".hidden/d.rs:1: needle\nsrc/a.rs:1: fn needle() {}\n"
    );
    assert_eq!(
        search(json!({"pattern": "needle", "ignore_case": true, "path": "src"})).unwrap(),
        "src/a.rs:1: fn needle() {}\nsrc/b.txt:1: a Needle\n"
    );
    assert_eq!(search(json!({"pattern": "needle", "files": "*.txt"})).unwrap(), "no matches in .");
    assert!(search(json!({"pattern": "("})).unwrap_err().contains("not a valid regular expression"));
    assert!(
        search(json!({"pattern": "x", "path": "/etc"})).unwrap_err().contains("outside of the workspace")
    );
    let many: String = (0..5_000).map(|n| format!("match {n}\n")).collect();
    fs::write(world.place.path().join("many.txt"), many).unwrap();
    let said = search(json!({"pattern": "match"})).unwrap();
    assert!(said.len() < 30_000 && said.contains("more matches"), "{said}");
}

#[test]
fn several_edits_are_made_together_or_not_at_all() {
    let world = World::new(&[("a.txt", "one two two three\n")]);
    let edit = |arguments: Value| world.run("edit_file", &arguments);
    let edits = json!([{"old": "one", "new": "1"}, {"old": "two", "new": "2", "replace_all": true}]);
    let diff = edit(json!({"path": "a.txt", "edits": edits})).unwrap();
    assert!(diff.contains("+1 2 2 three"), "{diff}");
    let edits = json!([{"old": "three", "new": "3"}, {"old": "four", "new": "4"}]);
    let why = edit(json!({"path": "a.txt", "edits": edits})).unwrap_err();
    assert!(why.starts_with("edit 2 of 2 cannot be made, and none was"), "{why}");
    assert_eq!(world.read("a.txt"), "1 2 2 three\n");
    assert!(
        edit(json!({"path": "a.txt", "old": "2", "new": "two"})).unwrap_err().contains("set `replace_all`")
    );
    edit(json!({"path": "a.txt", "old": "2", "new": "two", "replace_all": true})).unwrap();
    assert_eq!(world.read("a.txt"), "1 two two three\n");
    assert!(edit(json!({"path": "a.txt"})).unwrap_err().contains("nothing to change"));
    assert!(edit(json!({"path": "a.txt", "old": "1"})).unwrap_err().contains("`new` is missing"));
    assert_eq!(world.read("a.txt"), "1 two two three\n");
}

#[test]
fn list_of_steps_is_a_sentence_for_people() {
    let message =
        |steps: Value| cliq_coder::tools::todo_message(&json!({ "steps": steps })).map(|(text, _)| text);
    let steps = json!([{"text": "read", "status": "completed"}, {"text": "write", "status": "in_progress"}, {"text": "test", "status": "pending"}]);
    assert_eq!(message(steps), Ok("1 of 3 steps done: write".to_owned()));
    assert!(message(json!([])).is_err() && message(json!([{"text": "a", "status": "done"}])).is_err());
}

#[test]
fn patch_adds_changes_moves_and_deletes_files_or_nothing() {
    let world = World::new(&[("a.txt", "one\ntwo\n"), ("b.txt", "b\n"), ("c.txt", "c\n")]);
    let apply = |lines: &str| {
        let patch = format!("*** Begin Patch\n{lines}\n*** End Patch");
        world.run("apply_patch", &json!({ "patch": patch }))
    };
    let done = apply(
        "*** Update File: a.txt\n one\n-two\n+2\n*** Add File: sub/new.txt\n+new\n*** Delete File: b.txt\n*** Update File: c.txt\n*** Move to: d.txt\n-c\n+d",
    );
    let done = done.unwrap();
    assert!(done.contains("+2") && done.contains("b.txt was deleted"), "{done}");
    assert_eq!(
        (world.read("a.txt"), world.read("sub/new.txt"), world.read("d.txt")),
        ("one\n2\n".into(), "new\n".into(), "d\n".into())
    );
    let why = apply("*** Update File: a.txt\n-one\n+1\n*** Update File: d.txt\n-missing\n+x").unwrap_err();
    assert!(why.contains("d.txt is not changed"), "{why}");
    assert_eq!(world.read("a.txt"), "one\n2\n", "nothing was written");
    for path in ["../out.txt", ".git/config", "/etc/x"] {
        assert!(apply(&format!("*** Add File: {path}\n+x")).is_err(), "{path}");
    }
    assert!(apply("*** Add File: a.txt\n+x").unwrap_err().contains("exists already"));
    assert!(apply("*** Delete File: b.txt").unwrap_err().contains("no file b.txt"));
    let why = apply("*** Update File: d.txt\n*** Move to: a.txt\n-d\n+e").unwrap_err();
    assert!(why.contains("a.txt exists already"), "{why}");
    // One file by two names.
    apply("*** Update File: a.txt\n-one\n+1\n*** Update File: ./a.txt\n-2\n+two").unwrap();
    assert_eq!((world.read("a.txt"), world.read("d.txt")), ("1\ntwo\n".into(), "d\n".into()));
}
