//! Content for reviewers: files, changes, and hostile content.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use cliq_testkit::machine::Machine;

use crate::reviews::waiting::{Waiting, send};

fn git(waiting: &Waiting, arguments: &[&str]) {
    let mut command = Command::new("git");
    command
        .args(["-c", "user.name=n", "-c", "user.email=e@x", "-c", "init.defaultBranch=main"])
        .args(arguments);
    let output = command.current_dir(&waiting.project).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn write(waiting: &Waiting, name: &str, content: impl AsRef<[u8]>) {
    let path = waiting.project.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn shown(waiting: &Waiting) -> serde_json::Value {
    waiting.review();
    serde_json::from_str(&waiting.ok(&["review", "show", "--json"])).unwrap()
}

#[test]
fn all_uncommitted_changes_are_one_diff() {
    let waiting = Waiting::new("reviewer: ann");
    for (name, content) in [
        ("staged.txt", "a\nb\n"),
        ("unstaged.txt", "a\n"),
        ("gone.txt", "x\n"),
        ("sub/old name.txt", "1\n2\n3\n4\n"),
    ] {
        write(&waiting, name, content);
    }
    fs::write(waiting.project.join(".gitignore"), "*.log\n").unwrap();
    git(&waiting, &["init", "-q"]);
    git(&waiting, &["add", "-A", "--", ".", ":(exclude).cliq"]);
    git(&waiting, &["commit", "-qm", "first"]);
    write(&waiting, "staged.txt", "a\nc\n");
    git(&waiting, &["add", "staged.txt"]);
    write(&waiting, "unstaged.txt", "a\nmore\n");
    fs::remove_file(waiting.project.join("gone.txt")).unwrap();
    git(&waiting, &["mv", "sub/old name.txt", "sub/n\u{e9}w name.txt"]);
    write(&waiting, "new.txt", "new\n");
    write(&waiting, "image.bin", [0, 1, 2, 255]);
    write(&waiting, "ignored.log", "no");
    let index = fs::read(waiting.project.join(".git/index")).unwrap();
    waiting.start(&["--headless"]);
    let content = shown(&waiting)["content"].clone();
    let files = content["diffs"][0]["files"].as_array().unwrap();
    let found: Vec<(String, String)> = files
        .iter()
        .map(|file| (file["path"].as_str().unwrap().to_owned(), file["change"].as_str().unwrap().to_owned()))
        .collect();
    let expected = [
        ("gone.txt", "deleted"),
        ("image.bin", "added"),
        ("new.txt", "added"),
        ("notes.md", "added"),
        ("staged.txt", "modified"),
        ("sub/n\u{e9}w name.txt", "renamed"),
        ("unstaged.txt", "modified"),
    ];
    assert_eq!(found, expected.map(|(path, change)| (path.to_owned(), change.to_owned())));
    assert_eq!(files[5]["old_path"], "sub/old name.txt");
    assert_eq!(files[1]["binary"], true);
    assert!(files[4]["hunks"].as_str().unwrap().contains("-b\n+c\n"));
    // The repository is as it was.
    assert_eq!(fs::read(waiting.project.join(".git/index")).unwrap(), index);
    waiting.ok(&["review", "approve"]);
    assert_eq!(waiting.end(), 0);
}

#[test]
fn a_repository_without_commits_and_several_repositories() {
    let workflow = crate::reviews::waiting::team("        reviewer: ann\n");
    let waiting = Waiting::with(Machine::new(), &workflow);
    for repo in ["one", "two"] {
        fs::create_dir_all(waiting.project.join(repo)).unwrap();
        let output = Command::new("git")
            .args(["init", "-q"])
            .current_dir(waiting.project.join(repo))
            .output()
            .unwrap();
        assert!(output.status.success());
        write(&waiting, &format!("{repo}/{repo}.txt"), "x\n");
    }
    waiting.start(&["--headless"]);
    let diffs = shown(&waiting)["content"]["diffs"].clone();
    assert_eq!((diffs[0]["repo"].as_str(), diffs[1]["repo"].as_str()), (Some("one"), Some("two")));
    assert_eq!(diffs[1]["files"][0]["path"], "two.txt");
}

/// Output of agents is data: nothing runs in the page, nothing forbidden is read, and size is limited.
#[test]
fn hostile_content_is_harmless() {
    let waiting = Waiting::new(
        "reviewer: ann
artifacts: ['**/*', ../secret, /etc/passwd, .cliq/settings.json, '[', '.cliq/**']",
    );
    let evil = "<script>alert(1)</script><img src=x onerror=alert(2)><svg onload=alert(3)>";
    fs::write(waiting.machine.path("secret"), "TOPSECRET").unwrap();
    write(&waiting, ".cliq/settings.json", "{\"agents\": {\"codex\": {\"api_key\": \"TOPSECRET\"}}}");
    write(
        &waiting,
        "evil.md",
        format!(
            "# {evil}\n\n[x](javascript:alert(4)) ![y](http://evil.example/z.png)\n\n<iframe src=//evil.example>\n"
        ),
    );
    write(&waiting, "evil.svg", format!("<svg xmlns='http://www.w3.org/2000/svg'>{evil}</svg>"));
    write(&waiting, "evil.html", evil);
    write(&waiting, "fake.png", format!("\u{89}PNG{evil}"));
    write(&waiting, "escape.txt", "\x1b]0;title\x07\x1b[31mred\u{202e}gnp.exe\n");
    write(&waiting, "long.txt", "x".repeat(1 << 20));
    write(&waiting, "latin.txt", b"caf\xe9\n");
    write(&waiting, "<img src=x onerror=alert(5)>.txt", "name");
    write(&waiting, "dir/a\nb\"'.txt", "name");
    let big = fs::File::create(waiting.project.join("big.dat")).unwrap();
    big.set_len(100 << 20).unwrap();
    symlink(waiting.machine.path("secret"), waiting.project.join("leads-out.txt")).unwrap();
    symlink("/proc/self/environ", waiting.project.join("environ.txt")).unwrap();
    symlink(".", waiting.project.join("circle")).unwrap();
    assert!(Command::new("mkfifo").arg(waiting.project.join("pipe")).status().unwrap().success());
    // A change of 50,000 lines, and one in a file whose name is hostile too.
    write(&waiting, "huge.txt", "old\n");
    git(&waiting, &["init", "-q"]);
    git(&waiting, &["add", "huge.txt"]);
    git(&waiting, &["commit", "-qm", "first"]);
    git(&waiting, &["config", "diff.external", "touch /tmp/never; true"]);
    git(&waiting, &["config", "core.fsmonitor", "touch pwned-fsmonitor"]);
    write(&waiting, ".gitattributes", "*.txt diff=evil\n");
    git(&waiting, &["config", "diff.evil.textconv", "touch pwned-textconv; cat"]);
    let lines: String = (0..50_000).map(|n| format!("{n} {}\n", if n == 7 { evil } else { "" })).collect();
    write(&waiting, "huge.txt", lines);
    waiting.start(&["--headless"]);
    let link = waiting.link("ann");
    for view in ["", "?view=split"] {
        let answer = send("GET", &format!("{link}{view}"), &[], None).expect(200);
        let page = &answer.body;
        assert!(page.len() < 12 << 20, "{} bytes", page.len());
        for wrong in [
            "<script>alert",
            "<img src=x",
            "<svg onload",
            "<iframe",
            "href=\"javascript",
            "evil.example/z.png\"",
            "TOPSECRET",
            "\x1b",
            "\u{202e}",
        ] {
            assert!(!page.contains(wrong), "{wrong}");
        }
        assert!(page.contains("&lt;script&gt;alert(1)"));
        assert!(page.contains("more lines are not shown"));
        let policy = answer.header("content-security-policy");
        assert!(
            policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"),
            "{policy}"
        );
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(answer.header("x-frame-options"), "DENY");
    }
    let content = shown(&waiting)["content"].clone();
    let artifacts = content["artifacts"].as_array().unwrap();
    let find = |name: &str| artifacts.iter().find(|a| a["path"] == name).unwrap_or_else(|| panic!("{name}"));
    assert_eq!(find("big.dat")["size"], 100 << 20);
    assert_eq!(find("big.dat")["sha256"], "20492a4d0d84f8beb1767f6616229f85d44c2827b64bdbfb260ee12fa1109e0e");
    assert_eq!(find("latin.txt")["shown"]["as"], "binary");
    assert_eq!(find("evil.svg")["shown"]["as"], "text");
    for name in ["leads-out.txt", "environ.txt", "pipe"] {
        assert_eq!(find(name)["shown"]["as"], "unreadable", "{name}");
    }
    assert!(!content.to_string().contains("TOPSECRET"));
    let remarks = content["remarks"].to_string();
    for said in ["`../secret`: it leads out of the workspace", "`/etc/passwd`", "`[`: it is not a valid glob"]
    {
        assert!(remarks.contains(said), "{said}: {remarks}");
    }
    // The terminal is not steered either.
    let text = waiting.ok(&["review", "show", "--full"]);
    assert!(!text.contains('\x1b') && !text.contains('\x07'));
    for name in ["pwned-fsmonitor", "pwned-textconv"] {
        assert!(!waiting.project.join(name).exists(), "{name}");
    }
    waiting.ok(&["review", "approve"]);
    assert_eq!(waiting.end(), 0);
}
