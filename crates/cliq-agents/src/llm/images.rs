//! Images that texts of a task name, for models that see them.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use camino::{Utf8Path, Utf8PathBuf};
use cliq_coder::tools::Workspace;
use cliq_protocol::PhaseName;

/// Maximum number of images of a task.
const LIMIT: usize = 8;
/// Maximum size of an image in bytes.
const SIZE: u64 = 5 << 20;
/// Extensions of images in texts.
const EXTENSIONS: [&str; 5] = ["png", "jpg", "jpeg", "webp", "gif"];

/// Content of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Image {
    /// Path relative to the workspace.
    pub(crate) path: String,
    pub(crate) media_type: &'static str,
    pub(crate) base64: String,
}

impl Image {
    /// Size of the content in bytes.
    pub(crate) fn size(&self) -> usize {
        self.base64.trim_end_matches('=').len() * 3 / 4
    }
}

/// Paths of images of the workspace that a text names, in their order.
pub(crate) fn named(text: &str, workspace: &Utf8Path) -> Vec<String> {
    let is_end = |c: char| {
        c.is_whitespace() || matches!(c, '(' | ')' | '[' | ']' | '"' | '\'' | '`' | '<' | '>' | ',')
    };
    let mut seen = BTreeSet::new();
    let words = text.split(is_end).map(|word| word.trim_end_matches(['.', ':', ';', '!', '?']));
    let found = words.filter(|word| has_name_of_image(word) && !word.contains("://"));
    let found = found.filter(|word| seen.insert((*word).to_owned()));
    found.filter(|word| read(word, workspace).is_ok()).take(LIMIT).map(str::to_owned).collect()
}

/// Images that a model has asked to see. Copies of them are kept: a conversation shows each as it was, also after it has changed.
#[derive(Debug)]
pub(crate) struct KeptImages {
    workspace: Utf8PathBuf,
    /// Directory of the copies.
    dir: Utf8PathBuf,
    /// Beginning of the paths of copies in conversations.
    prefix: String,
}

impl KeptImages {
    /// Images of a phase, with its directory for files.
    pub(crate) fn new(workspace: &Utf8Path, files: &Utf8Path, phase: &PhaseName) -> Self {
        // Hidden: others receive the files of the phase without it.
        let dir = files.join(".images");
        Self { workspace: workspace.to_owned(), dir, prefix: format!(".cliq/files/{phase}/.images/") }
    }

    /// Reads an image of the workspace, and keeps a copy, which the path of the result names.
    ///
    /// # Errors
    /// Returns the reason for the model.
    pub(crate) fn read(&self, path: &str) -> Result<Image, String> {
        let image = read(path, &self.workspace)?;
        let failed = |error: &dyn std::fmt::Display| format!("{path} cannot be kept: {error}");
        std::fs::create_dir_all(&self.dir).map_err(|error| failed(&error))?;
        let extension = image.media_type.trim_start_matches("image/");
        let taken = std::fs::read_dir(&self.dir).map_err(|error| failed(&error))?.count();
        let mut names = (taken + 1..).map(|number| format!("{number}.{extension}"));
        // A conversation may name what has another number by now: nothing is written over.
        let name = names.find(|name| !self.dir.join(name).exists()).unwrap_or_default();
        let bytes = STANDARD.decode(&image.base64).map_err(|error| failed(&error))?;
        cliq_fs::write_atomic(&self.dir.join(&name), &bytes).map_err(|error| failed(&error))?;
        Ok(Image { path: format!("{}{name}", self.prefix), ..image })
    }

    /// Loads the images of a conversation. Leaves out those that are gone or too large.
    pub(crate) fn load_all(&self, paths: &[String]) -> Vec<Image> {
        let load = |path: &String| match path.strip_prefix(&self.prefix) {
            Some(name) => Some(Image { path: path.clone(), ..read(name, &self.dir).ok()? }),
            None => read(path, &self.workspace).ok(),
        };
        paths.iter().filter_map(load).collect()
    }
}

/// Reads an image of the workspace. Its content decides about the type: a server refuses a conversation with an image that is none.
fn read(path: &str, workspace: &Utf8Path) -> Result<Image, String> {
    let place = Workspace::open(workspace, Vec::new()).map_err(|error| error.to_string())?;
    let file = place.required_file(path)?;
    let bytes = cliq_fs::read_limited(&file, SIZE)
        .map_err(|error| format!("{path} cannot be read, at most 5 MB: {}", error.source))?;
    let media_type = media_type(&bytes)
        .ok_or_else(|| format!("{path} is no whole image that can be shown: PNG, JPEG, GIF or WebP"))?;
    Ok(Image { path: path.to_owned(), media_type, base64: STANDARD.encode(bytes) })
}

/// Media type of a whole image by its first and last bytes: those that all APIs accept.
fn media_type(bytes: &[u8]) -> Option<&'static str> {
    let end = &bytes[bytes.len().saturating_sub(4096)..];
    let ends_with = |part: &[u8]| end.windows(part.len()).any(|window| window == part);
    let is_whole = match bytes {
        [0x89, ..] => ends_with(b"IEND"),
        [0xff, ..] => ends_with(&[0xff, 0xd9]),
        [b'R', b'I', b'F', b'F', size @ ..] => size
            .first_chunk()
            .is_some_and(|size| u64::from(u32::from_le_bytes(*size)) + 8 <= bytes.len() as u64),
        _ => bytes.iter().rfind(|byte| **byte != 0) == Some(&b';'),
    };
    if !is_whole {
        return None;
    }
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

fn has_name_of_image(path: &str) -> bool {
    let extension = Utf8Path::new(path).extension().map(str::to_ascii_lowercase);
    extension.is_some_and(|extension| EXTENSIONS.contains(&extension.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_of_the_workspace_are_found() {
        let place = tempfile::tempdir().expect("a directory");
        let workspace = Utf8Path::from_path(place.path()).expect("UTF-8");
        std::fs::create_dir(workspace.join("docs")).expect("made");
        for (name, start) in
            [("docs/a.png", &b"\x89PNG\r\n\x1a\nIEND"[..]), ("b.JPG", b"\xff\xd8\xff\xff\xd9")]
        {
            std::fs::write(workspace.join(name), start).expect("written");
        }
        std::fs::write(workspace.join("text.png"), "no image").expect("written");
        let text = "As in ![the page](docs/a.png) and `b.JPG`, see docs/a.png, not gone.png, text.png, /etc/x.png, ../b.JPG or https://x.org/b.JPG.";
        assert_eq!(named(text, workspace), ["docs/a.png", "b.JPG"]);
        let kept = KeptImages::new(workspace, &workspace.join("files"), &"dev".parse().expect("a name"));
        let images = kept.load_all(&["docs/a.png".to_owned()]);
        assert_eq!(
            images[0],
            Image { path: "docs/a.png".into(), media_type: "image/png", base64: "iVBORw0KGgpJRU5E".into() }
        );
        assert_eq!(images[0].size(), 12);
        std::fs::write(workspace.join("half.png"), b"\x89PNG\r\n\x1a\n").expect("written");
        let first = kept.read("docs/a.png").expect("an image");
        std::fs::write(workspace.join("docs/a.png"), b"\xff\xd8\xff\xff\xd9").expect("written");
        let second = kept.read("docs/a.png").expect("an image");
        assert_eq!(
            (first.path.as_str(), second.path.as_str()),
            (".cliq/files/dev/.images/1.png", ".cliq/files/dev/.images/2.jpeg")
        );
        let paths = [first.path.clone(), second.path.clone(), ".cliq/files/dev/.images/../a.png".to_owned()];
        assert_eq!(kept.load_all(&paths), [first, second], "each as it was");
        for (path, part) in [
            ("text.png", "no whole image"),
            ("half.png", "no whole image"),
            ("../b.JPG", "outside"),
            ("docs", "is a directory"),
        ] {
            assert!(read(path, workspace).is_err_and(|why| why.contains(part)), "{path}");
        }
    }
}
