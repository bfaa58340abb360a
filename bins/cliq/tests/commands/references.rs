//! References in comments and pages (docs/decisions/0032-wording.md): pages, headings, decisions and files that they name exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;

use crate::commands::docs::anchors;

/// Directories with sources and pages.
const PLACES: [&str; 9] =
    ["crates", "bins", "docs", "scripts", "benches", "fixtures", "fuzz", "deploy", ".ci"];
/// Directories of files that are made.
const MADE: [&str; 4] = ["target", "node_modules", "snapshots", "corpus"];
/// Pages that compare cliq with other projects and name their files.
const COMPARISONS: [&str; 2] =
    ["docs/decisions/0017-compared-with-jj-and-nextest.md", "docs/decisions/0032-wording.md"];

/// Reference to a page, with an anchor or the heading in quotes.
static PAGE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"\bdocs/([\w/-]+\.md)`?(?:#([\w-]+)|,\s+"([^"]+)")?"#).expect("a pattern"));
static DECISION: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\b[Dd]ecision (\d+)\b").expect("a pattern"));
/// Link to a decision whose text is its number.
static DECISION_LINK: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\[(?:[Dd]ecision )?(\d+)\]\((?:decisions/)?(\d{4})-").expect("a pattern"));
/// Path from the root of the repository.
static PATH: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?:^|[\s`(])((?:crates|bins|scripts|benches|fixtures|fuzz)/[\w./-]*\w)").expect("a pattern")
});
/// Name of a source file, with some of its directories.
static SOURCE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?:^|[\s`(])((?:[\w-]+/)*\w{2,}\.rs)\b").expect("a pattern"));
/// References to documents that are not part of the repository.
static OUTSIDE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\bSPEC (?:section|\d)|\b[Ss]eed \d{3}\b").expect("a pattern"));

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns all files below a directory, relative to the root.
fn collect(dir: &str, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(root().join(dir)).into_iter().flatten() {
        let entry = entry.expect("an entry");
        let name = entry.file_name().into_string().expect("a name in UTF-8");
        let path = format!("{dir}/{name}");
        if entry.file_type().expect("a type").is_dir() {
            if !MADE.contains(&name.as_str()) {
                collect(&path, found);
            }
        } else {
            found.insert(path);
        }
    }
}

fn files() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for place in PLACES {
        collect(place, &mut found);
    }
    for entry in fs::read_dir(root()).expect("the root") {
        let entry = entry.expect("an entry");
        if entry.file_type().expect("a type").is_file() {
            found.insert(entry.file_name().into_string().expect("a name in UTF-8"));
        }
    }
    assert!(found.len() > 1000, "the files are not where this test looks");
    found
}

/// Returns the comment of a line, or all of a line of a page.
fn comment<'a>(path: &str, line: &'a str) -> Option<&'a str> {
    let marker = match Path::new(path).extension().and_then(|extension| extension.to_str()) {
        Some("md") => return Some(line),
        Some("rs" | "mjs" | "js") => "//",
        Some("sql") => "--",
        Some("yml" | "toml" | "sh" | "py") => "#",
        None if path.starts_with("scripts/") || path.starts_with("benches/") || path.starts_with(".ci/") => {
            "#"
        }
        _ => return None,
    };
    let line = line.trim_start();
    // A hint of a message refers to a page too.
    if line.contains("in the repository of cliq") {
        return Some(line);
    }
    let start = line.match_indices(marker).map(|(at, _)| at);
    let mut start = start.filter(|at| *at == 0 || line[..*at].ends_with(' '));
    start.next().map(|at| &line[at..])
}

/// Returns the problems of one line.
fn problems(files: &BTreeSet<String>, path: &str, line: &str) -> Vec<String> {
    let is_there = |name: &str| {
        let name = name.trim_end_matches('/');
        files.contains(name)
            || files.iter().any(|file| file.strip_prefix(name).is_some_and(|rest| rest.starts_with('/')))
    };
    let mut found = Vec::new();
    let is_comparison = COMPARISONS.contains(&path);
    for page in PAGE.captures_iter(line).filter(|_| !is_comparison) {
        let file = format!("docs/{}", &page[1]);
        if !files.contains(&file) {
            found.push(format!("there is no page {file}"));
            continue;
        }
        let text = fs::read_to_string(root().join(&file)).expect("a page");
        let heading = page.get(2).map(|anchor| anchor.as_str().to_owned());
        let heading =
            heading.or_else(|| page.get(3).map(|title| crate::commands::docs::anchor(title.as_str())));
        if heading.as_ref().is_some_and(|heading| !anchors(&text).contains(heading)) {
            found.push(format!("{file} has no heading {heading:?}"));
        }
    }
    for decision in DECISION.captures_iter(line) {
        let prefix = format!("docs/decisions/{:0>4}-", &decision[1]);
        if !files.iter().any(|file| file.starts_with(&prefix)) {
            found.push(format!("there is no decision {}", &decision[1]));
        }
    }
    for link in DECISION_LINK.captures_iter(line) {
        if link[1].parse::<u32>() != link[2].parse() {
            found.push(format!("{} is a link to {}", &link[1], &link[2]));
        }
    }
    for name in PATH.captures_iter(line) {
        if !is_there(&name[1]) {
            found.push(format!("there is no {}", &name[1]));
        }
    }
    for name in SOURCE.captures_iter(line).filter(|_| !is_comparison) {
        let suffix = format!("/{}", &name[1]);
        if !files.contains(&name[1]) && !files.iter().any(|file| file.ends_with(&suffix)) {
            found.push(format!("there is no {}", &name[1]));
        }
    }
    found.extend(
        OUTSIDE.find_iter(line).map(|found| format!("{} is not part of this repository", found.as_str())),
    );
    found
}

#[test]
fn references_lead_to_pages_headings_decisions_and_files() {
    let files = files();
    let mut broken = Vec::new();
    let mut count = 0;
    for path in &files {
        // The history names files of earlier versions.
        if path == "CHANGELOG.md" {
            continue;
        }
        let Ok(text) = fs::read_to_string(root().join(path)) else { continue };
        let mut is_example = false;
        for (n, line) in text.lines().enumerate() {
            is_example ^= path.ends_with(".md") && line.trim_start().starts_with("```");
            if is_example {
                continue;
            }
            let Some(line) = comment(path, line) else { continue };
            count += usize::from(PAGE.is_match(line));
            broken.extend(
                problems(&files, path, line).into_iter().map(|why| format!("{path}:{}: {why}", n + 1)),
            );
        }
    }
    assert!(count > 300, "only {count} references were found");
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn reference_to_a_missing_target_is_found() {
    let files = files();
    let of = |line: &str| problems(&files, "crates/a.rs", line);
    for fine in [
        "(docs/signals.md)",
        "(docs/server.md, \"States\")",
        "docs/models.md#transcripts",
        "decision 32",
        "`layering.rs`",
    ] {
        assert_eq!(of(fine), Vec::<String>::new(), "{fine}");
    }
    let sections = format!("SPEC {} 3", "section");
    for broken in [
        "(docs/nothing.md)",
        "(docs/server.md, \"Nothing\")",
        "docs/models.md#nothing",
        "decision 999",
        "[decision 1](decisions/0002-yaml.md)",
        "`nothing.rs`",
        "see crates/nothing/src",
        sections.as_str(),
    ] {
        assert_eq!(of(broken).len(), 1, "{broken}: {:?}", of(broken));
    }
}
