//! Patches in the form that some models are trained on: files that are added, deleted, moved and changed, with context in place of line numbers.

use std::collections::BTreeMap;
use std::fmt::Write;

use camino::Utf8PathBuf;
use schemars::JsonSchema;
use serde::Deserialize;

use super::Outcome;
use super::edit::difference;
use super::files::{read_text, replace};
use super::paths::Workspace;

/// Arguments of `apply_patch`.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct ApplyPatch {
    /// The patch, from `*** Begin Patch` to `*** End Patch`.
    patch: String,
}

/// Change of one file.
#[derive(Debug, PartialEq, Eq)]
enum Change {
    Add { path: String, content: String },
    Delete { path: String },
    Update { path: String, moved_to: Option<String>, hunks: Vec<Hunk> },
}

/// Part of a file that is changed.
#[derive(Debug, Default, PartialEq, Eq)]
struct Hunk {
    /// Lines that stand before it, in their order: a class, a function.
    headers: Vec<String>,
    /// Lines that the file has.
    old: Vec<String>,
    /// Lines in their place.
    new: Vec<String>,
    /// Whether it is at the end of the file.
    is_at_end: bool,
}

const ADD: &str = "*** Add File: ";
const DELETE: &str = "*** Delete File: ";
const UPDATE: &str = "*** Update File: ";
const MOVE: &str = "*** Move to: ";
const END_OF_FILE: &str = "*** End of File";

/// Parses a patch.
fn parse(patch: &str) -> Result<Vec<Change>, String> {
    let lines: Vec<&str> = patch.trim().lines().collect();
    let [first, inner @ .., last] = &lines[..] else {
        return Err("the patch is empty: it begins with `*** Begin Patch`".to_owned());
    };
    if first.trim() != "*** Begin Patch" || last.trim() != "*** End Patch" {
        return Err("the patch does not begin with `*** Begin Patch` and end with `*** End Patch`".to_owned());
    }
    let mut changes: Vec<Change> = Vec::new();
    for (n, line) in inner.iter().enumerate() {
        let wrong =
            |why: &str| format!("line {} of the patch, `{}`: {why}", n + 2, cliq_protocol::shorten(line, 80));
        if let Some(path) = line.strip_prefix(ADD) {
            changes.push(Change::Add { path: path.trim().to_owned(), content: String::new() });
        } else if let Some(path) = line.strip_prefix(DELETE) {
            changes.push(Change::Delete { path: path.trim().to_owned() });
        } else if let Some(path) = line.strip_prefix(UPDATE) {
            changes.push(Change::Update { path: path.trim().to_owned(), moved_to: None, hunks: Vec::new() });
        } else {
            match changes.last_mut() {
                Some(Change::Add { content, .. }) => {
                    let text = line
                        .strip_prefix('+')
                        .ok_or_else(|| wrong("each line of a new file begins with `+`"))?;
                    content.push_str(text);
                    content.push('\n');
                }
                Some(Change::Update { moved_to, hunks, .. }) => match line.strip_prefix(MOVE) {
                    Some(path) if hunks.is_empty() => *moved_to = Some(path.trim().to_owned()),
                    Some(_) => return Err(wrong("a move stands before the changes")),
                    None => add_line(line, hunks).map_err(wrong)?,
                },
                Some(Change::Delete { .. }) | None if line.trim().is_empty() => {}
                Some(Change::Delete { .. }) | None => {
                    return Err(wrong(
                        "a file is named first: `*** Add File:`, `*** Update File:` or `*** Delete File:`",
                    ));
                }
            }
        }
    }
    if changes.is_empty() {
        return Err("the patch changes nothing".to_owned());
    }
    Ok(changes)
}

/// Adds a line of a changed file to the last hunk, or begins one.
fn add_line(line: &str, hunks: &mut Vec<Hunk>) -> Result<(), &'static str> {
    if let Some(header) = line.strip_prefix("@@") {
        let header = header.trim().trim_end_matches("@@").trim();
        let is_open = hunks.last().is_some_and(|hunk| hunk.old.is_empty() && hunk.new.is_empty());
        if !is_open {
            hunks.push(Hunk::default());
        }
        if let (Some(hunk), false) = (hunks.last_mut(), header.is_empty()) {
            hunk.headers.push(header.to_owned());
        }
        return Ok(());
    }
    if hunks.is_empty() {
        hunks.push(Hunk::default());
    }
    let Some(hunk) = hunks.last_mut() else { return Ok(()) };
    if line.trim_end() == END_OF_FILE {
        hunk.is_at_end = true;
        return Ok(());
    }
    let mut chars = line.chars();
    match chars.next() {
        Some('+') => hunk.new.push(chars.as_str().to_owned()),
        Some('-') => hunk.old.push(chars.as_str().to_owned()),
        Some(' ') => {
            hunk.old.push(chars.as_str().to_owned());
            hunk.new.push(chars.as_str().to_owned());
        }
        // Models leave out the blank of an empty line.
        None => {
            hunk.old.push(String::new());
            hunk.new.push(String::new());
        }
        Some(_) => return Err("a line begins with ` `, `+`, `-` or `@@`"),
    }
    Ok(())
}

/// Returns a text with its changes.
fn changed(text: &str, hunks: &[Hunk]) -> Result<String, String> {
    let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut from = 0;
    for (n, hunk) in hunks.iter().enumerate() {
        let failed = |what: &str, lines: &[String]| {
            let shown: Vec<&str> = lines.iter().take(3).map(String::as_str).collect();
            format!(
                "change {} of {}: {what}: `{}`",
                n + 1,
                hunks.len(),
                cliq_protocol::shorten(&shown.join("\n"), 200)
            )
        };
        for header in &hunk.headers {
            let at = lines[from..].iter().position(|line| line.trim() == header.trim());
            let at = at.ok_or_else(|| {
                failed("there is no such line in the rest of the file", std::slice::from_ref(header))
            })?;
            from += at + 1;
        }
        let at = if hunk.old.is_empty() {
            if hunk.headers.is_empty() || hunk.is_at_end { lines.len() } else { from }
        } else {
            find(&lines, &hunk.old, from, hunk.is_at_end)
                .ok_or_else(|| failed("these lines are not in the rest of the file; read it", &hunk.old))?
        };
        lines.splice(at..at + hunk.old.len(), hunk.new.iter().cloned());
        from = at + hunk.new.len();
    }
    let mut text = lines.join(end);
    if !text.is_empty() {
        text.push_str(end);
    }
    Ok(text)
}

/// Returns the place of lines: as they are, else without blanks at their ends, else without blanks around them.
fn find(lines: &[String], wanted: &[String], from: usize, is_at_end: bool) -> Option<usize> {
    let last = lines.len().checked_sub(wanted.len())?;
    let starts: Vec<usize> = if is_at_end { vec![last] } else { (from..=last).collect() };
    let same: [fn(&str, &str) -> bool; 3] =
        [|a, b| a == b, |a, b| a.trim_end() == b.trim_end(), |a, b| a.trim() == b.trim()];
    same.iter().find_map(|same| {
        starts.iter().copied().find(|&start| wanted.iter().zip(&lines[start..]).all(|(a, b)| same(a, b)))
    })
}

/// File of a patch, by its path after links.
#[derive(Debug)]
struct Target {
    /// Path as the patch names it.
    shown: String,
    /// Text before the patch, or `None` if there was no file, or it was not read.
    before: Option<String>,
    /// Text after the patch, or `None` if the file is removed.
    after: Option<String>,
}

pub(super) fn apply(workspace: &Workspace, arguments: &ApplyPatch) -> Outcome {
    // All or none: nothing is written before everything fits.
    let mut targets: BTreeMap<Utf8PathBuf, Target> = BTreeMap::new();
    let is_there = |targets: &BTreeMap<Utf8PathBuf, Target>, full: &Utf8PathBuf| match targets.get(full) {
        Some(target) => target.after.is_some(),
        None => std::fs::symlink_metadata(full).is_ok(),
    };
    let new = |shown: &str, after: Option<String>| Target { shown: shown.to_owned(), before: None, after };
    for change in parse(&arguments.patch)? {
        match change {
            Change::Add { path, content } => {
                let full = workspace.writable(&path)?;
                if is_there(&targets, &full) {
                    return Err(format!("{path} exists already: change it with `*** Update File:`"));
                }
                targets.entry(full).or_insert_with(|| new(&path, None)).after = Some(content);
            }
            Change::Delete { path } => {
                let full = workspace.writable(&path)?;
                if !is_there(&targets, &full) || full.is_dir() {
                    return Err(format!("there is no file {path} to delete"));
                }
                targets.entry(full).or_insert_with(|| new(&path, None)).after = None;
            }
            Change::Update { path, moved_to, hunks } => {
                let full = workspace.writable(&path)?;
                let text = match targets.get(&full) {
                    Some(Target { after: Some(text), .. }) => text.clone(),
                    Some(Target { after: None, .. }) => {
                        return Err(format!("{path} is deleted by the same patch"));
                    }
                    None => read_text(workspace, &path)?,
                };
                let changed =
                    changed(&text, &hunks).map_err(|why| format!("{path} is not changed: {why}"))?;
                let moved_to =
                    moved_to.map(|to| workspace.writable(&to).map(|full| (to, full))).transpose()?;
                let target = targets.entry(full.clone()).or_insert_with(|| new(&path, None));
                target.before.get_or_insert(text);
                target.after = Some(changed.clone());
                if let Some((to, other)) = moved_to.filter(|(_, other)| *other != full) {
                    target.after = None;
                    if is_there(&targets, &other) {
                        return Err(format!("{path} cannot be moved: {to} exists already"));
                    }
                    targets.entry(other).or_insert_with(|| new(&to, None)).after = Some(changed);
                }
            }
        }
    }
    // What is moved is written first, so that a failure loses nothing.
    let mut out = String::new();
    for (full, target) in &targets {
        let Some(after) = &target.after else { continue };
        replace(full, &target.shown, after)?;
        match &target.before {
            Some(before) => out.push_str(&difference(&target.shown, before, after)),
            None => drop(writeln!(out, "{} was written: {} lines", target.shown, after.lines().count())),
        }
    }
    for (full, target) in targets.iter().filter(|(_, target)| target.after.is_none()) {
        match std::fs::remove_file(full) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(format!("{out}cannot delete {}: {error}", target.shown));
            }
            Ok(()) | Err(_) => drop(writeln!(out, "{} was deleted", target.shown)),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hunks(lines: &str) -> Vec<Hunk> {
        let patch = format!("*** Begin Patch\n*** Update File: a\n{lines}\n*** End Patch");
        match parse(&patch).unwrap().remove(0) {
            Change::Update { hunks, .. } => hunks,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn hunks_are_found_by_context_and_headers() {
        let text = "class A\n  def f\n    1\n  end\nclass B\n  def f\n    1\n  end\n";
        let new = changed(text, &hunks("@@ class B\n@@   def f\n-    1\n+    2\n   end")).unwrap();
        assert_eq!(new, text.replacen("class B\n  def f\n    1", "class B\n  def f\n    2", 1));
        assert_eq!(changed("a\nb\n", &hunks("@@\n a\n+c\n b")).unwrap(), "a\nc\nb\n");
        assert_eq!(changed("a\r\nb\r\n", &hunks("-b\n+c")).unwrap(), "a\r\nc\r\n");
        assert_eq!(changed("a  \n  b\n", &hunks(" a\n-b\n+c")).unwrap(), "a\nc\n", "blanks may differ");
        assert_eq!(changed("a\nb\na\n", &hunks("-a\n+z\n*** End of File")).unwrap(), "a\nb\nz\n");
        assert_eq!(changed("", &hunks("+a")).unwrap(), "a\n");
        assert!(changed("a\n", &hunks("-b\n+c")).unwrap_err().contains("change 1 of 1"));
        assert!(changed("a\n", &hunks("@@ fn x\n-a")).unwrap_err().contains("fn x"));
    }

    #[test]
    fn patches_that_are_none_are_refused_with_the_line() {
        for (patch, why) in [
            ("", "empty"),
            ("*** Begin Patch\n+a", "does not begin"),
            ("*** Begin Patch\n*** End Patch", "changes nothing"),
            ("*** Begin Patch\n+a\n*** End Patch", "line 2"),
            ("*** Begin Patch\n*** Add File: a\nb\n*** End Patch", "begins with `+`"),
            ("*** Begin Patch\n*** Update File: a\nb\n*** End Patch", "line 3"),
        ] {
            let error = parse(patch).unwrap_err();
            assert!(error.contains(why), "{patch}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_patch_or_an_error(inner in "([-+ @*]{0,3}[ab]{0,2}(\n|: ))*{0,20}", text in "[ab\n ]{0,40}") {
            let patch = format!("*** Begin Patch\n*** Update File: a\n{inner}\n*** End Patch");
            if let Ok(changes) = parse(&patch) {
                for change in changes {
                    if let Change::Update { hunks, .. } = change {
                        let _ = changed(&text, &hunks);
                    }
                }
            }
        }

        /// The patch from one text to another leads to the other.
        #[test]
        fn whole_replacements_apply(before in proptest::collection::vec("[a-c]{1,3}", 1..8), after in proptest::collection::vec("[a-c]{1,3}", 1..8)) {
            let lines: Vec<String> = before.iter().map(|line| format!("-{line}")).chain(after.iter().map(|line| format!("+{line}"))).collect();
            let text = before.join("\n") + "\n";
            prop_assert_eq!(changed(&text, &hunks(&lines.join("\n"))), Ok(after.join("\n") + "\n"));
        }
    }
}
