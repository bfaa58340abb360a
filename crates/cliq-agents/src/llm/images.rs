//! Images that texts of a task name, for models that see them.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use camino::Utf8Path;
use cliq_coder::tools::Workspace;

/// Maximum number of images of a task.
const LIMIT: usize = 8;
/// Maximum size of an image in bytes.
const SIZE: u64 = 5 << 20;
/// Media types by extension: those that all three APIs accept.
const TYPES: [(&str, &str); 5] = [
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("webp", "image/webp"),
    ("gif", "image/gif"),
];

/// Content of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Image {
    /// Path relative to the workspace.
    pub(crate) path: String,
    pub(crate) media_type: &'static str,
    pub(crate) base64: String,
}

/// Paths of images of the workspace that a text names, in their order.
pub(crate) fn named(text: &str, workspace: &Utf8Path) -> Vec<String> {
    let is_end = |c: char| {
        c.is_whitespace() || matches!(c, '(' | ')' | '[' | ']' | '"' | '\'' | '`' | '<' | '>' | ',')
    };
    let mut seen = BTreeSet::new();
    let words = text.split(is_end).map(|word| word.trim_end_matches(['.', ':', ';', '!', '?']));
    let found = words.filter(|word| media_type(word).is_some() && !word.contains("://"));
    let found = found.filter(|word| seen.insert((*word).to_owned()));
    found.filter(|word| load(word, workspace).is_some()).take(LIMIT).map(str::to_owned).collect()
}

/// Loads images. Leaves out those that are gone or too large.
pub(crate) fn load_all<'a>(paths: impl Iterator<Item = &'a String>, workspace: &Utf8Path) -> Vec<Image> {
    paths.filter_map(|path| load(path, workspace)).collect()
}

fn load(path: &str, workspace: &Utf8Path) -> Option<Image> {
    let media_type = media_type(path)?;
    let file = Workspace::open(workspace, Vec::new()).ok()?.file(path)?;
    let bytes = cliq_fs::read_limited(&file, SIZE).ok()?;
    Some(Image { path: path.to_owned(), media_type, base64: STANDARD.encode(bytes) })
}

fn media_type(path: &str) -> Option<&'static str> {
    let extension = Utf8Path::new(path).extension()?.to_ascii_lowercase();
    TYPES.iter().find(|(known, _)| *known == extension).map(|(_, media_type)| *media_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_of_the_workspace_are_found() {
        let place = tempfile::tempdir().expect("a directory");
        let workspace = Utf8Path::from_path(place.path()).expect("UTF-8");
        std::fs::create_dir(workspace.join("docs")).expect("made");
        for name in ["docs/a.png", "b.JPG"] {
            std::fs::write(workspace.join(name), [1, 2, 3]).expect("written");
        }
        let text = "As in ![the page](docs/a.png) and `b.JPG`, see docs/a.png, not gone.png, /etc/x.png, ../b.JPG or https://x.org/b.JPG.";
        assert_eq!(named(text, workspace), ["docs/a.png", "b.JPG"]);
        let images = load_all(["docs/a.png".to_owned()].iter(), workspace);
        assert_eq!(
            images[0],
            Image { path: "docs/a.png".into(), media_type: "image/png", base64: "AQID".into() }
        );
    }
}
