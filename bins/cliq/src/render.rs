//! Rendering what the libraries hand over.

pub(crate) mod diagnostics;
pub(crate) mod difference;
pub(crate) mod plan;
pub(crate) mod progress;
pub(crate) mod report;
pub(crate) mod sandbox;
pub(crate) mod summary;
pub(crate) mod transcript;
pub(crate) mod usage;

/// Number of columns of the terminal; without one, as many as a text needs.
pub(crate) fn columns() -> usize {
    use std::io::IsTerminal;
    let size = std::io::stdout().is_terminal().then(cliq_terminal::columns).flatten();
    size.map_or(usize::MAX, usize::from)
}

/// Text of at most `columns` characters, with an ellipsis if it was longer.
pub(crate) fn short(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    text.chars().take(columns.saturating_sub(1)).chain(['…']).collect()
}
