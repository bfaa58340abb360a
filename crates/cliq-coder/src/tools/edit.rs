//! Tools that change files.

use std::fs;

use schemars::JsonSchema;
use serde::Deserialize;
use similar::TextDiff;

use super::Outcome;
use super::files::{read_text, replace};
use super::paths::Workspace;

/// Maximum size of a difference in bytes.
const DIFF_LIMIT: usize = 8_000;

/// Arguments of `edit_file`.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct EditFile {
    /// Path of the file, relative to the workspace.
    path: String,
    /// Text to replace. It must occur exactly once, unless `replace_all` is true.
    old: Option<String>,
    /// Text in its place.
    new: Option<String>,
    /// Whether all occurrences are replaced. Default: false.
    replace_all: Option<bool>,
    /// Several edits in place of `old` and `new`, made in their order, all or none: objects with `old`, `new` and `replace_all`.
    edits: Option<Vec<Edit>>,
}

/// One edit of several.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields, inline)]
pub(super) struct Edit {
    /// Text to replace.
    old: String,
    /// Text in its place.
    new: String,
    /// Whether all occurrences are replaced. Default: false.
    #[serde(default)]
    replace_all: bool,
}

/// Arguments of `write_file`.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct WriteFile {
    /// Path of the file, relative to the workspace.
    path: String,
    /// The whole content.
    content: String,
}

pub(super) fn edit(workspace: &Workspace, arguments: &EditFile) -> Outcome {
    let EditFile { path, old, new, replace_all, edits } = arguments;
    let own = match (old, new) {
        (Some(old), Some(new)) => {
            Some(Edit { old: old.clone(), new: new.clone(), replace_all: replace_all.unwrap_or(false) })
        }
        (None, None) => None,
        // A call that was cut must not delete a text.
        (Some(_), None) => return Err("`new` is missing; an empty one deletes `old`".to_owned()),
        (None, Some(_)) => return Err("`old` is missing".to_owned()),
    };
    let edits: Vec<&Edit> = own.iter().chain(edits.iter().flatten()).collect();
    if edits.is_empty() {
        return Err("there is nothing to change: give `old` and `new`, or `edits`".to_owned());
    }
    let target = workspace.writable(path)?;
    let before = read_text(workspace, path)?;
    let mut after = before.clone();
    for (n, edit) in edits.iter().enumerate() {
        after = replaced(path, &after, edit).map_err(|why| match edits.len() {
            1 => why,
            count => format!("edit {} of {count} cannot be made, and none was: {why}", n + 1),
        })?;
    }
    replace(&target, path, &after)?;
    Ok(difference(path, &before, &after))
}

/// Makes one edit.
fn replaced(path: &str, before: &str, edit: &Edit) -> Outcome {
    let Edit { old, new, replace_all } = edit;
    if old.is_empty() {
        return Err("`old` is empty; `write_file` creates a file".to_owned());
    }
    if old == new {
        return Err("`old` and `new` are equal: nothing to change".to_owned());
    }
    // Models write line feeds, even for files with CRLF.
    let has_crlf = before.contains("\r\n");
    let adapt = |text: &str| {
        if has_crlf && !text.contains('\r') { text.replace('\n', "\r\n") } else { text.to_owned() }
    };
    let (old, new) =
        if before.contains(old.as_str()) { (old.clone(), new.clone()) } else { (adapt(old), adapt(new)) };
    let places: Vec<usize> = overlapping(before, &old);
    match places[..] {
        [] => Err(not_found(path, before, &old)),
        [at] => Ok(format!("{}{new}{}", &before[..at], &before[at + old.len()..])),
        _ if *replace_all => Ok(before.replace(&old, &new)),
        _ => {
            let lines: Vec<String> = places
                .iter()
                .take(10)
                .map(|at| (before[..*at].matches('\n').count() + 1).to_string())
                .collect();
            Err(format!(
                "`old` occurs {} times in {path} (lines {}): include more lines around the place that you mean, or set `replace_all`",
                places.len(),
                lines.join(", ")
            ))
        }
    }
}

/// All places of `needle`, overlapping ones too.
fn overlapping(text: &str, needle: &str) -> Vec<usize> {
    let mut places = Vec::new();
    let mut from = 0;
    while let Some(at) = text[from..].find(needle) {
        places.push(from + at);
        let step = text[from + at..].chars().next().map_or(1, char::len_utf8);
        from += at + step;
    }
    places
}

fn not_found(path: &str, text: &str, old: &str) -> String {
    let squeeze = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let hint = if squeeze(text).contains(&squeeze(old)) {
        "it occurs with other blanks or line ends: copy it from `read_file`, without the line numbers"
    } else {
        "read the file: its content may have changed"
    };
    format!("`old` does not occur in {path}: {hint}")
}

pub(super) fn write(workspace: &Workspace, arguments: &WriteFile) -> Outcome {
    let WriteFile { path, content } = arguments;
    let target = workspace.writable(path)?;
    if target.is_dir() {
        return Err(format!("{path} is a directory"));
    }
    let before = match fs::symlink_metadata(&target) {
        Ok(_) => Some(read_text(workspace, path)),
        Err(_) => None,
    };
    match before {
        Some(Ok(before)) if before == *content => Ok(format!("{path} already has this content")),
        Some(Ok(before)) => {
            replace(&target, path, content)?;
            Ok(difference(path, &before, content))
        }
        // A file that is not text can be replaced; one that is no file cannot.
        Some(Err(why)) if !target.is_file() => Err(why),
        Some(Err(_)) | None => {
            replace(&target, path, content)?;
            Ok(format!("{path} was written: {} lines", content.lines().count()))
        }
    }
}

pub(super) fn difference(path: &str, before: &str, after: &str) -> String {
    let diff = TextDiff::from_lines(before, after);
    let text =
        diff.unified_diff().context_radius(3).header(&format!("a/{path}"), &format!("b/{path}")).to_string();
    super::cap(text, DIFF_LIMIT)
}
