//! Changed files as a tree of directories.

use std::collections::BTreeMap;

use cliq_review::FileDiff;
use maud::{Markup, html};

use super::Viewer;
use crate::text::shown;

/// Trees with more files than this are folded.
const OPEN: usize = 200;

/// A file of the tree.
pub(super) struct Leaf<'a> {
    /// Path relative to the workspace.
    pub(super) path: String,
    /// Change.
    pub(super) file: &'a FileDiff,
    /// Id of the file on the page.
    pub(super) id: String,
    /// Whether the page shows its lines.
    pub(super) is_on_page: bool,
}

#[derive(Default)]
struct Directory<'a> {
    directories: BTreeMap<&'a str, Directory<'a>>,
    files: Vec<(&'a str, &'a Leaf<'a>)>,
}

/// Renders the tree.
pub(super) fn tree(viewer: &Viewer<'_>, leaves: &[Leaf<'_>], nth: usize) -> Markup {
    let mut root = Directory::default();
    for leaf in leaves {
        let mut directory = &mut root;
        let (directories, name) = leaf.path.rsplit_once('/').unwrap_or(("", &leaf.path));
        for part in directories.split('/').filter(|part| !part.is_empty()) {
            directory = directory.directories.entry(part).or_default();
        }
        directory.files.push((name, leaf));
    }
    html! {
        nav.tree aria-label=(if nth == 0 { "Changed files".to_owned() } else { format!("Changed files, {}", nth + 1) }) { (list(viewer, &root, leaves.len() <= OPEN)) }
    }
}

fn list(viewer: &Viewer<'_>, directory: &Directory<'_>, open: bool) -> Markup {
    html! {
        ul {
            @for (name, below) in &directory.directories {
                @let (name, below) = joined(name, below);
                li { details open[open] { summary { (shown(name.as_bytes())) "/" } (list(viewer, below, open)) } }
            }
            @for (name, leaf) in &directory.files {
                @let is_chosen = viewer.chosen == Some(leaf.path.as_str());
                @let address = if leaf.is_on_page { format!("#{}", leaf.id) } else { viewer.file_address(&leaf.path) };
                li {
                    a href=(address) aria-current=[is_chosen.then_some("true")] { (shown(name.as_bytes())) }
                    " " span.small { (counts(leaf.file)) }
                    @let notes = viewer.notes.iter().filter(|note| note.place.path() == leaf.path).count();
                    @if notes > 0 { " " span.small.badge { (notes) @if notes == 1 { " comment" } @else { " comments" } } }
                }
            }
        }
    }
}

/// Directories with nothing but one directory are one line.
fn joined<'d, 'a>(name: &str, directory: &'d Directory<'a>) -> (String, &'d Directory<'a>) {
    let (mut name, mut directory) = (name.to_owned(), directory);
    while let (true, Some((below, only))) = (
        directory.files.is_empty() && directory.directories.len() == 1,
        directory.directories.first_key_value(),
    ) {
        name = format!("{name}/{below}");
        directory = only;
    }
    (name, directory)
}

/// Numbers of lines of a change.
pub(super) fn counts(file: &FileDiff) -> Markup {
    html! {
        @if file.binary { span.quiet { "no text" } }
        @else { span.plus { "+" (file.added) } " " span.minus { "−" (file.removed) } }
    }
}
