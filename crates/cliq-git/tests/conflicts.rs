//! Conflicts of each kind: found, shown by git, resolved by `git add`, `git rm` and by changes.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

use crate::common::{Place, sh};
use cliq_git::ConflictKind::{self, *};
use cliq_git::{mark_unmerged, restore_entries, staged_entries, unresolved};

/// Setup, change before the item, change of the item, paths with kinds, and a change that resolves.
type Case = (&'static str, &'static str, &'static str, &'static [(&'static str, ConflictKind)], &'static str);

const CASES: &[Case] = &[
    (
        "echo one > a.txt",
        "echo ours > a.txt",
        "echo theirs > a.txt",
        &[("a.txt", Content)],
        "echo both > a.txt",
    ),
    (
        "printf '\\000\\001base' > logo.bin",
        "printf '\\000\\001ours' > logo.bin",
        "printf '\\000\\001theirs' > logo.bin",
        &[("logo.bin", Binary)],
        "printf '\\000\\001both' > logo.bin",
    ),
    (
        "echo '*.rst conflict-marker-size=32' > .gitattributes; echo Title > doc.rst",
        "echo Title 0 > doc.rst",
        "echo Title 1 > doc.rst",
        &[("doc.rst", Content)],
        "echo Title 2 > doc.rst",
    ),
    (
        "echo base > \"$(printf 'caf\\351.txt')\"",
        "echo ours > \"$(printf 'caf\\351.txt')\"",
        "echo theirs > \"$(printf 'caf\\351.txt')\"",
        &[("caf\u{fffd}.txt", Content)],
        "echo both > \"$(printf 'caf\\351.txt')\"",
    ),
    ("echo b > n", "echo ours > n", "rm n", &[("n", DeletedByItem)], "rm n"),
    ("echo b > n", "rm n", "echo theirs > n", &[("n", DeletedBefore)], "rm n"),
    ("ln -s b l", "ln -sf ours l", "ln -sf theirs l", &[("l", Symlink)], "ln -sf theirs l"),
    ("ln -s b l", "ln -sf ours l", "rm l; echo file > l", &[("l", Types)], "ln -sf both l; rm -f l~*"),
    ("echo k > k", "echo ours > new", "echo theirs > new", &[("new", BothAdded)], "echo both > new"),
    (
        "echo '*.x -merge' > .gitattributes; echo b > a.x",
        "echo ours > a.x",
        "echo theirs > a.x",
        &[("a.x", Binary)],
        "echo c > a.x",
    ),
    (
        "seq 9 > old",
        "mv old mine",
        "mv old yours",
        &[("mine", Renamed), ("old", Renamed), ("yours", Renamed)],
        "rm mine; echo more >> yours",
    ),
    (
        "echo k > k",
        "echo file > thing",
        "mkdir thing; echo in > thing/inner",
        &[("thing~", FileDirectory)],
        "rm thing~*",
    ),
    (
        "echo k > k",
        "mkdir thing; echo in > thing/inner",
        "echo file > thing",
        &[("thing~", FileDirectory)],
        "rm thing~*",
    ),
    // A file that documents conflict markers has them as content.
    (
        "printf '<<<<<<< HEAD\\n=======\\n>>>>>>> topic\\nbase\\n' > doc.md",
        "sed -i s/base/ours/ doc.md",
        "sed -i s/base/theirs/ doc.md",
        &[("doc.md", Content)],
        "printf '<<<<<<< HEAD\\n=======\\n>>>>>>> topic\\nboth\\n' > doc.md",
    ),
];

fn place(case: &Case) -> (Place, Vec<cliq_git::Conflict>) {
    let (setup, ours, theirs, expected, _) = case;
    let mut place = Place::new(setup);
    place.begin();
    sh(&place.workspace, ours);
    sh(&place.item, theirs);
    let conflicts = place.merge().unwrap();
    let found: Vec<(String, ConflictKind)> = conflicts
        .iter()
        .map(|conflict| {
            let name = conflict.name();
            // The name of a moved file has the name of the side after it.
            (name.split_inclusive('~').next().unwrap_or_default().to_owned(), conflict.kind)
        })
        .collect();
    let expected: Vec<_> = expected.iter().map(|(name, kind)| ((*name).to_owned(), *kind)).collect();
    let found: Vec<_> = found.into_iter().filter(|(name, _)| name != "l~").collect();
    assert_eq!(found, expected, "{setup}");
    (place, conflicts)
}

#[test]
fn untouched_conflicts_stay_open_and_git_shows_them() {
    for case in CASES {
        let (place, conflicts) = place(case);
        let git = place.git();
        assert!(!unresolved(&git, &conflicts).unwrap().is_empty(), "{}", case.0);
        mark_unmerged(&git, &conflicts).unwrap();
        assert!(!unresolved(&git, &conflicts).unwrap().is_empty(), "{}", case.0);
        assert_ne!(sh(&place.workspace, "git ls-files -u"), "", "{}", case.0);
        // A reset of the index is no resolution.
        sh(&place.workspace, "git reset -q");
        assert!(!unresolved(&git, &conflicts).unwrap().is_empty(), "{}", case.0);
    }
}

#[test]
fn change_resolves_and_the_index_is_restored() {
    for case in CASES {
        let (place, conflicts) = place(case);
        let git = place.git();
        let before = sh(&place.workspace, "git ls-files -s");
        let entries = staged_entries(&git, &conflicts).unwrap();
        mark_unmerged(&git, &conflicts).unwrap();
        sh(&place.workspace, case.4);
        let open: Vec<String> = unresolved(&git, &conflicts).unwrap().iter().map(|c| c.name()).collect();
        assert_eq!(open, Vec::<String>::new(), "{}", case.0);
        restore_entries(&git, &conflicts, &entries).unwrap();
        assert_eq!(sh(&place.workspace, "git ls-files -s"), before, "{}", case.0);
    }
}

#[test]
fn confirmation_by_git_add_and_git_rm_resolves() {
    for case in CASES {
        let (place, conflicts) = place(case);
        let git = place.git();
        mark_unmerged(&git, &conflicts).unwrap();
        // The workspace keeps each file exactly as the merge left it.
        sh(&place.workspace, "git add -A");
        assert_eq!(unresolved(&git, &conflicts).unwrap(), Vec::<&cliq_git::Conflict>::new(), "{}", case.0);
    }
    let (place, conflicts) = place(&CASES[4]);
    mark_unmerged(&place.git(), &conflicts).unwrap();
    sh(&place.workspace, "git rm -q n");
    assert!(unresolved(&place.git(), &conflicts).unwrap().is_empty());
}

#[test]
fn sides_can_be_taken_by_checkout() {
    let (place, conflicts) = place(&CASES[1]);
    mark_unmerged(&place.git(), &conflicts).unwrap();
    sh(&place.workspace, "git checkout -q --theirs -- logo.bin");
    assert!(unresolved(&place.git(), &conflicts).unwrap().is_empty());
    assert!(std::fs::read(place.workspace.join("logo.bin")).unwrap().ends_with(b"theirs"));
}

#[test]
fn half_resolved_file_stays_open() {
    let case: Case = (
        "seq 30 > a",
        "sed -i 's/^2$/ours/; s/^28$/ours/' a",
        "sed -i 's/^2$/theirs/; s/^28$/theirs/' a",
        &[("a", Content)],
        "",
    );
    let (place, conflicts) = place(&case);
    let text = std::fs::read_to_string(place.workspace.join("a")).unwrap();
    let first = text.find("<<<<<<<").unwrap();
    let end = text.find(">>>>>>>").and_then(|at| Some(at + text[at..].find('\n')? + 1)).unwrap();
    std::fs::write(place.workspace.join("a"), format!("{}both\n{}", &text[..first], &text[end..])).unwrap();
    assert_eq!(unresolved(&place.git(), &conflicts).unwrap().len(), 1);
}

#[test]
fn repeated_merge_gives_the_same_files() {
    let (place, conflicts) = place(&CASES[0]);
    let read = |path: &Path| std::fs::read_to_string(path.join("a.txt")).unwrap();
    let before = read(&place.workspace);
    assert!(before.contains("<<<<<<<"));
    assert_eq!(conflicts.len(), 1);
    assert_eq!(
        sh(&place.workspace, "git status --porcelain"),
        " M a.txt",
        "the index is not changed by a merge"
    );
}
