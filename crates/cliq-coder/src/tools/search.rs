//! Search by regular expressions, with the parts of ripgrep.

use std::fmt::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use grep_regex::RegexMatcherBuilder;
use grep_searcher::{BinaryDetection, SearcherBuilder, sinks::Lossy};
use ignore::WalkState;
use schemars::JsonSchema;
use serde::Deserialize;

use super::Outcome;
use super::files::walk;
use super::paths::Workspace;

/// Number of matches after which the search ends.
const MATCH_LIMIT: usize = 2_000;
/// Maximum number of matches in a result.
const SHOWN: usize = 200;
/// Maximum number of characters of a line.
const LINE_LIMIT: usize = 300;

/// Arguments of `search`.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct Search {
    /// Regular expression.
    pattern: String,
    /// File or directory, relative to the workspace. Default: the workspace.
    path: Option<String>,
    /// Glob that the paths must match, such as `*.rs`. Default: all files.
    files: Option<String>,
    /// Whether upper and lower case are the same. Default: false.
    ignore_case: Option<bool>,
}

pub(super) fn search(workspace: &Workspace, arguments: &Search, limit: usize) -> Outcome {
    let matcher = RegexMatcherBuilder::new()
        .case_insensitive(arguments.ignore_case.unwrap_or(false))
        .line_terminator(Some(b'\n'))
        .build(&arguments.pattern)
        .map_err(|error| format!("`{}` is not a valid regular expression: {error}", arguments.pattern))?;
    let path = arguments.path.as_deref().unwrap_or(".");
    let start = workspace.existing(path)?;
    let (found, count) = (Mutex::new(Vec::<(Utf8PathBuf, u64, String)>::new()), AtomicUsize::new(0));
    let walk = walk(workspace, &start, arguments.files.as_deref())?.threads(threads()).build_parallel();
    walk.run(|| {
        let mut searcher =
            SearcherBuilder::new().binary_detection(BinaryDetection::quit(0)).line_number(true).build();
        let (matcher, found, count) = (&matcher, &found, &count);
        Box::new(move |entry| {
            let Ok(entry) = entry else { return WalkState::Continue };
            if !entry.file_type().is_some_and(|kind| kind.is_file()) {
                return WalkState::Continue;
            }
            let mut own = Vec::new();
            let sink = Lossy(|line, text| {
                own.push((line, shorten(text)));
                Ok(count.fetch_add(1, Ordering::Relaxed) < MATCH_LIMIT)
            });
            // A file that cannot be read has no matches.
            let _ = searcher.search_path(matcher, entry.path(), sink);
            if !own.is_empty()
                && let Some(path) = Utf8Path::from_path(entry.path())
            {
                let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                found.extend(own.into_iter().map(|(line, text)| (path.to_owned(), line, text)));
            }
            if count.load(Ordering::Relaxed) > MATCH_LIMIT { WalkState::Quit } else { WalkState::Continue }
        })
    });
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    if found.is_empty() {
        return Ok(format!("no matches in {path}"));
    }
    found.sort();
    let mut out = String::new();
    for (n, (path, line, text)) in found.iter().enumerate() {
        let row = format!("{}:{line}: {text}\n", workspace.relative(path));
        if n >= SHOWN || out.len() + row.len() + 80 > limit {
            let more = found.len() - n;
            let at_least = if found.len() > MATCH_LIMIT { "at least " } else { "" };
            let _ =
                write!(out, "[{at_least}{more} more matches: name a directory, `files` or a longer pattern]");
            return Ok(out);
        }
        out.push_str(&row);
    }
    Ok(out)
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get().min(8))
}

fn shorten(line: &str) -> String {
    let line = line.trim_end_matches(['\n', '\r']);
    match line.char_indices().nth(LINE_LIMIT) {
        Some((at, _)) => format!("{} [line cut]", &line[..at]),
        None => line.to_owned(),
    }
}
