//! The page of a review in a real Chromium: `browser.mjs` is the person, this is the machine.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use cliq_testkit::machine::Machine;

use crate::reviews::waiting::Waiting;

const TEAM: &str = "workflow:
  phases:
    - {name: writer, type: exec, commands: [{name: write, run: sh ../change.sh}]}
    - name: approval
      type: hug
      depends_on: [writer]
      max_iterations: 5
      commands: [{name: exists, run: 'echo fine; test -f docs/guide.md'}, {name: tests, run: 'for n in 1 2 3; do echo ok $n; done'}]
      review:
        reviewer: {policy: all, members: [ann, bob]}
        artifacts: [docs, picture.png, src/*.rs]
        inputs:
          - {name: version, label: Version, required: true, help: As in the tag.}
          - {name: channel, label: Channel, choices: [stable, beta], default: beta}
          - {name: sure, label: Are you sure?, type: boolean}
          - {name: notes, label: Notes, type: textarea}
    - {name: after, type: exec, depends_on: [approval], commands: [{name: done, run: 'echo passed >> after.txt'}]}
";

/// Commands of the writer: change, add, move and remove files.
const CHANGE: &str = "printf '# Guide\\n\\nHow to **begin**:\\n\\n1. Look.\\n2. Decide.\\n\\n| a | b |\\n|---|---|\\n| 1 | 2 |\\n' > docs/guide.md
sed -i 's/println/eprintln/' src/main.rs
[ -e src/old.rs ] && git mv src/old.rs src/new.rs
printf 'fn added() {}\\n' > src/added.rs
rm -f gone.txt
";

fn modules() -> Option<PathBuf> {
    let modules = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/node/node_modules");
    let has = |program: &str| {
        Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
    };
    let there = modules.join("playwright-core").exists() && modules.join("axe-core").exists();
    if has("node") && has("chromium") && there {
        return Some(modules.canonicalize().unwrap());
    }
    cliq_testkit::not_run(
        "there is no chromium, node, or target/node with playwright-core and axe-core (./test makes it)",
    );
    None
}

fn prepared() -> Waiting {
    let machine = Machine::new();
    let role = machine.home.join("teams/@local/review/roles/approval.md");
    fs::create_dir_all(role.parent().unwrap()).unwrap();
    fs::write(role, "Is the guide **right**? Look at `docs/guide.md`.\n").unwrap();
    fs::write(machine.path("change.sh"), CHANGE).unwrap();
    let waiting = Waiting::with(machine, TEAM);
    let write = |name: &str, content: &[u8]| {
        let path = waiting.project.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    };
    write("docs/guide.md", b"# Guide\n\nNothing yet.\n");
    write("src/main.rs", b"fn main() {\n    println!(\"hello\");\n}\n");
    write("src/old.rs", b"//! Moves.\n\nfn moved() {\n    let x = 1;\n    drop(x);\n}\n");
    write("gone.txt", b"gone\n");
    // One red pixel.
    write(
        "picture.png",
        &[
            0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0x0d, 0x49, 0x48, 0x44, 0x52, 0, 0, 0,
            1, 0, 0, 0, 1, 8, 2, 0, 0, 0, 0x90, 0x77, 0x53, 0xde, 0, 0, 0, 0x0c, 0x49, 0x44, 0x41, 0x54, 8,
            0xd7, 0x63, 0xf8, 0xcf, 0xc0, 0, 0, 3, 1, 1, 0, 0x18, 0xdd, 0x8d, 0xb0, 0, 0, 0, 0, 0x49, 0x45,
            0x4e, 0x44, 0xae, 0x42, 0x60, 0x82,
        ],
    );
    for arguments in [
        &["init", "-q"][..],
        &["add", "-A", "--", ".", ":(exclude).cliq"],
        &["-c", "user.name=n", "-c", "user.email=e@x", "commit", "-qm", "first"],
    ] {
        assert!(
            Command::new("git").args(arguments).current_dir(&waiting.project).status().unwrap().success()
        );
    }
    waiting
}

#[test]
fn a_person_at_the_page_of_a_review() {
    let Some(modules) = modules() else { return };
    let waiting = prepared();
    waiting.start(&["--headless"]);
    let pictures = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("reviews");
    fs::create_dir_all(&pictures).unwrap();
    let mut server = None;
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/reviews/browser.mjs");
    let mut node = Command::new("node")
        .arg(script)
        .args([&waiting.link("ann"), &waiting.link("bob"), pictures.to_str().unwrap()])
        .env("NODE_MODULES", modules)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut reply, mut said) = (node.stdin.take().unwrap(), Vec::new());
    for line in BufReader::new(node.stdout.take().unwrap()).lines().map_while(Result::ok) {
        println!("{line}");
        match line.split_once(' ').unwrap_or((&line, "")) {
            // The links of the review that comes after one.
            ("NEXT", before) => {
                let review = waiting.review_after(Some(before));
                writeln!(
                    reply,
                    "{} {}",
                    review["links"]["ann"].as_str().unwrap(),
                    review["links"]["bob"].as_str().unwrap()
                )
                .unwrap();
            }
            ("SERVER", _) => {
                server = Some(waiting.machine.serve());
                writeln!(reply, "{}", waiting.machine.ok(&["server", "open"]).trim()).unwrap();
            }
            _ => said.push(line),
        }
    }
    assert!(node.wait().unwrap().success(), "{}", said.join("\n"));
    assert_eq!(said.last().map(String::as_str), Some("ALL DONE"));
    assert_eq!(waiting.end(), 0);
    let inputs = &waiting.json(".cliq/channels/approval--after/handoff.json")["data"]["inputs"];
    assert_eq!(inputs["version"], "2.0");
    drop(server);
}
