//! Viewer of changes: of a run, of a review, and between two runs. Large changes show their files first, and the lines of a file when it is opened
//! (docs/dashboard.md).

mod highlight;
mod notes;
mod rows;
mod tree;

use cliq_review::{Diff, FileDiff, Side, place_in};
use maud::{Markup, html};
use serde::Deserialize;

use crate::elements::count;
use crate::text::shown;
pub(crate) use notes::{CommentForm, Note, earlier, line_of};
use tree::{Leaf, counts, tree};

/// Files with more lines than this are folded, and all files where there are more lines in all.
const OPEN_LINES: usize = 300;
const OPEN_ALL: usize = 1500;
/// With more files than this, the page shows one of them.
const MANY: usize = 100;

/// Query of a page with changes.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct DiffQuery {
    /// `split` for side by side.
    pub(crate) view: Option<String>,
    /// File whose lines are shown.
    pub(crate) file: Option<String>,
    /// Line that is commented on: `n12`, or `o3` for a removed one.
    pub(crate) at: Option<String>,
    /// Line that was commented on.
    pub(crate) said: Option<String>,
    /// `file` for the lines of the file alone, `comment` for the form alone, for a page that has the rest.
    pub(crate) part: Option<String>,
}

impl DiffQuery {
    /// Whether lines stand side by side.
    pub(crate) fn is_split(&self) -> bool {
        self.view.as_deref() == Some("split")
    }

    /// Path of the file whose lines are asked for, without a page around them.
    pub(crate) fn file_part(&self) -> Option<&str> {
        self.file.as_deref().filter(|_| self.part.as_deref() == Some("file"))
    }

    /// Whether the form for a comment is asked for, without a page around it.
    pub(crate) fn is_form_part(&self) -> bool {
        self.part.as_deref() == Some("comment")
    }
}

/// Viewer of changes on a page.
#[derive(Clone)]
pub(crate) struct Viewer<'a> {
    /// Address of the page, with the fixed part of its query.
    pub(crate) address: String,
    /// Whether lines stand side by side.
    pub(crate) split: bool,
    /// File that was chosen.
    pub(crate) chosen: Option<&'a str>,
    /// Line that is commented on.
    pub(crate) at: Option<(Side, u64)>,
    /// Line that was commented on just now.
    pub(crate) said: Option<(Side, u64)>,
    /// Comments.
    pub(crate) notes: &'a [Note],
    /// Form for comments, if the person may make any.
    pub(crate) form: Option<&'a CommentForm>,
}

impl<'a> Viewer<'a> {
    /// A viewer without comments.
    #[cfg(test)]
    pub(crate) fn plain(address: &str) -> Self {
        Self {
            address: address.to_owned(),
            split: false,
            chosen: None,
            at: None,
            said: None,
            notes: &[],
            form: None,
        }
    }

    /// A viewer of a page by its query.
    pub(crate) fn new(
        address: String,
        query: &'a DiffQuery,
        notes: &'a [Note],
        form: Option<&'a CommentForm>,
    ) -> Self {
        let (at, said) = (query.at.as_deref().and_then(line_of), query.said.as_deref().and_then(line_of));
        Self { address, split: query.is_split(), chosen: query.file.as_deref(), at, said, notes, form }
    }

    /// Whether the changes show the line that is commented on, or come without their lines.
    fn shows_form(&self, diffs: &[Diff]) -> bool {
        let (Some(path), Some((side, line))) = (self.chosen, self.at) else { return false };
        let mut files = diffs.iter().flat_map(|diff| diff.files.iter().map(move |file| (diff, file)));
        let found = files.find(|(diff, file)| diff.path_of(file) == path);
        found
            .is_some_and(|(_, file)| file.hunks.is_empty() || place_in(path, &file.hunks, side, line).is_ok())
    }

    /// Renders the form for a comment on the line that was asked for. Empty if there is no such form.
    pub(crate) fn form_alone(&self) -> Markup {
        match (self.form, self.chosen, self.at) {
            (Some(form), Some(path), Some((side, line))) => notes::comment_form(self, form, path, side, line),
            _ => html! {},
        }
    }

    /// Address of the page with a comment that was made.
    pub(crate) fn said_address(&self, path: &str, at: &str) -> String {
        format!("{}#said", self.with(&[("file", path), ("said", at)]))
    }

    fn with(&self, parameters: &[(&str, &str)]) -> String {
        let view = self.split.then_some(("view", "split"));
        let all: Vec<&(&str, &str)> = view.iter().chain(parameters).collect();
        let query = serde_urlencoded::to_string(&all).unwrap_or_default();
        let mark = if self.address.contains('?') { '&' } else { '?' };
        if query.is_empty() { self.address.clone() } else { format!("{}{mark}{query}", self.address) }
    }

    /// Address of the page with the lines of a file.
    fn file_address(&self, path: &str) -> String {
        format!("{}#changes", self.with(&[("file", path)]))
    }

    /// Address of the page with the form for a comment on a line.
    fn comment_address(&self, path: &str, side: Side, line: u64) -> String {
        format!("{}#comment", self.with(&[("file", path), ("at", &rows::mark(side, line))]))
    }

    /// Renders the changes of all repositories, with a tree of the files and a choice of the view. A page can have several changes; `nth` is the number of
    /// this one, from 0.
    pub(crate) fn render(&self, diffs: &[Diff], nth: usize) -> Markup {
        let files =
            || diffs.iter().flat_map(|diff| diff.files.iter().map(move |file| (diff.path_of(file), file)));
        let lines: usize = files().map(|(_, file)| file.hunks.lines().count()).sum();
        let is_one_only = files().count() > MANY;
        let mut leaves: Vec<Leaf<'_>> = Vec::new();
        for (number, (path, file)) in files().enumerate() {
            let is_on_page = !is_one_only || self.chosen == Some(path.as_str());
            leaves.push(Leaf { path, file, id: format!("file-{nth}-{number}"), is_on_page });
        }
        let more: u64 = diffs.iter().map(|diff| diff.more_files).sum();
        let other = Viewer { split: !self.split, ..self.clone() };
        let there = |viewer: &Viewer<'_>| {
            let file = self.chosen.map(|file| ("file", file));
            format!("{}#changes", viewer.with(file.as_slice()))
        };
        let (unified, split) = if self.split { (&other, self) } else { (self, &other) };
        html! {
            p.filters {
                @if nth == 0 {
                    a href=(there(unified)) aria-current=[(!self.split).then_some("true")] { "Unified" }
                    a href=(there(split)) aria-current=[self.split.then_some("true")] { "Side by side" }
                }
                span.quiet { (leaves.len()) @if leaves.len() == 1 { " file, " } @else { " files, " } (sums(&leaves)) }
            }
            @if self.at.is_some() && self.form.is_some() && !self.shows_form(diffs) {
                p.warning role="alert" { "The changes do not show the line of this address: choose another one." }
            }
            @if self.form.is_some() && nth == 0 { p.hint { "The number of a line is the way to a comment on it. With the keyboard: arrow keys from line to line, Enter to comment." } }
            div class=(if leaves.len() > 1 { "changes with-tree" } else { "changes" }) data-diff {
                @if leaves.len() > 1 { (tree(self, &leaves, nth)) }
                div.files {
                    @for leaf in leaves.iter().filter(|leaf| leaf.is_on_page) { (self.file(leaf, lines <= OPEN_ALL)) }
                    @if is_one_only && !leaves.iter().any(|leaf| leaf.is_on_page) { p.empty { "Choose a file." } }
                }
            }
            @if more > 0 { p.warning { (more) " more files changed and are not shown." } }
        }
    }

    fn file(&self, leaf: &Leaf<'_>, may_open: bool) -> Markup {
        let (path, file) = (leaf.path.as_str(), leaf.file);
        let is_chosen = self.chosen == Some(path);
        let is_told = file.binary || file.lines_left_out > 0 || file.added + file.removed == 0;
        let has_lines = is_told || !file.hunks.is_empty();
        let has_notes = self.notes.iter().any(|note| note.place.path() == path);
        let open =
            is_chosen || has_lines && may_open && (has_notes || file.hunks.lines().count() <= OPEN_LINES);
        let old = file.old_path.as_ref().map(|old| shown(old.as_bytes()));
        let lazy = (!has_lines).then(|| self.with(&[("file", path), ("part", "file")]));
        html! {
            details.card.file id=(leaf.id) open[open] data-path=(path) data-lazy=[lazy.as_deref()] {
                summary {
                    code { @if let Some(old) = &old { (old) " → " } (shown(path.as_bytes())) }
                    " " span.quiet { (file.change) } " " (counts(file))
                }
                @if has_lines { (self.lines(path, file)) }
                @else { div data-lazy-place { p.empty { a href=(self.file_address(path)) { "Show the lines of " (shown(path.as_bytes())) } } } }
            }
        }
    }

    /// Renders the lines of a file alone.
    pub(crate) fn lines(&self, path: &str, file: &FileDiff) -> Markup {
        let shown_path = shown(path.as_bytes());
        html! {
            @if file.binary {
                p.empty { "It is not text." }
            } @else if file.hunks.is_empty() && file.lines_left_out == 0 {
                p.empty { @if file.change == "added" { "It is empty." } @else { "Its content did not change." } }
            } @else if !file.hunks.is_empty() {
                div.scroll tabindex="0" role="region" aria-label=(format!("Changes in {shown_path}")) { (rows::table(self, path, &file.hunks)) }
            }
            @if file.lines_left_out > 0 { p.warning { (file.lines_left_out) " more lines are not shown." } }
        }
    }
}

fn sums(leaves: &[Leaf<'_>]) -> Markup {
    let (added, removed) = leaves
        .iter()
        .fold((0, 0), |(added, removed), leaf| (added + leaf.file.added, removed + leaf.file.removed));
    html! { span.plus { "+" (count(added)) } " " span.minus { "−" (count(removed)) } }
}
