//! Artifacts of a remote agent, as files of the phase.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use camino::{Utf8Path, Utf8PathBuf};
use cliq_a2a::{Artifact, Content, Part};
use serde_json::{Value, json};

use crate::AnyError;

/// The most bytes of all artifacts of a task.
const MAX_BYTES: usize = 256 << 20;
/// The longest file name.
const MAX_NAME: usize = 100;

/// Keeps artifacts as they come. One that comes again replaces the earlier.
pub(super) struct Collector {
    dir: Utf8PathBuf,
    names: BTreeSet<String>,
    /// The entry of each artifact in the handoff, by its id.
    kept: Vec<(String, Value)>,
    texts: Vec<(String, String)>,
    answer: String,
    bytes: usize,
}

impl Collector {
    pub(super) fn new(dir: &Utf8Path) -> Self {
        Self {
            dir: dir.to_owned(),
            names: BTreeSet::new(),
            kept: Vec::new(),
            texts: Vec::new(),
            answer: String::new(),
            bytes: 0,
        }
    }

    /// The agent answered with a message in place of a task.
    pub(super) fn answer(&mut self, text: String) {
        self.answer = text;
    }

    /// Writes an artifact's parts to files.
    pub(super) fn keep(&mut self, artifact: &Artifact) -> Result<(), AnyError> {
        let id = artifact.artifact_id.clone();
        self.kept.retain(|(known, _)| *known != id);
        self.texts.retain(|(known, _)| *known != id);
        let title = artifact.name.as_deref().unwrap_or(&artifact.artifact_id);
        let mut files = Vec::new();
        for part in &artifact.parts {
            let (bytes, default) = match &part.content {
                Content::Text(text) => {
                    // A text with a name is a file, however long.
                    if part.filename.is_none() {
                        self.texts.push((id.clone(), text.clone()));
                    }
                    (text.clone().into_bytes(), format!("{title}.md"))
                }
                Content::Data(value) => (format!("{value:#}\n").into_bytes(), format!("{title}.json")),
                Content::Bytes(text) => {
                    let bytes = STANDARD.decode(text.as_bytes());
                    let bytes = bytes
                        .map_err(|error| format!("artifact {title}: its bytes are not base64: {error}"))?;
                    (bytes, title.to_owned())
                }
                // Not fetched: the remote agent would choose what this machine connects to.
                Content::Url(url) => {
                    files.push(json!({"url": url, "name": part.filename}));
                    continue;
                }
            };
            self.bytes += bytes.len();
            if self.bytes > MAX_BYTES {
                return Err(format!("the artifacts have more than {} MiB", MAX_BYTES >> 20).into());
            }
            let name = self.name_of(part, &default, &id);
            std::fs::create_dir_all(&self.dir)?;
            let path = self.dir.join(&name);
            std::fs::write(&path, &bytes).map_err(|error| format!("cannot write {path}: {error}"))?;
            files.push(json!({"file": path, "size": bytes.len(), "media_type": part.media_type}));
        }
        self.kept.push((id, json!({"name": title, "description": artifact.description, "files": files})));
        Ok(())
    }

    /// A file name for a part, which no other artifact has and which stays in the directory.
    fn name_of(&mut self, part: &Part, default: &str, id: &str) -> String {
        let wanted = plain(part.filename.as_deref().unwrap_or(default));
        // The same artifact may come again: then the same file is meant.
        let key = |name: &str| format!("{id}\0{name}");
        let mut name = wanted.clone();
        for n in 2.. {
            let taken =
                self.names.iter().any(|known| known.ends_with(&format!("\0{name}")) && *known != key(&name));
            if !taken {
                break;
            }
            name = format!("{n}-{wanted}");
        }
        self.names.insert(key(&name));
        name
    }

    /// The text of the handoff, and its list of artifacts.
    pub(super) fn into_handoff(self, said: &str) -> (String, Value) {
        let texts: Vec<&str> = self.texts.iter().map(|(_, text)| text.as_str()).collect();
        let mut text = match (self.answer.is_empty(), texts.is_empty()) {
            (false, _) => self.answer.clone(),
            (true, false) => texts.join("\n\n"),
            (true, true) => said.to_owned(),
        };
        let files = self.kept.iter().flat_map(|(_, artifact)| artifact["files"].as_array()).flatten();
        let names: Vec<String> =
            files.filter_map(|file| file["file"].as_str()).map(|file| format!("- {file}")).collect();
        if !names.is_empty() {
            text.push_str("\n\nFiles:\n");
            text.push_str(&names.join("\n"));
        }
        (text, self.kept.into_iter().map(|(_, artifact)| artifact).collect())
    }
}

/// A name that stays in its directory: letters, digits, `.`, `-`, `_`, and none of them first but a letter, a digit or `_`.
fn plain(name: &str) -> String {
    let keep = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    let name: String = name.chars().map(keep).collect();
    let name: String = name.trim_start_matches(['.', '-']).chars().take(MAX_NAME).collect();
    if name.is_empty() { "artifact".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn artifact(id: &str, filename: Option<&str>, content: Content) -> Artifact {
        let part = Part { content, metadata: None, filename: filename.map(str::to_owned), media_type: None };
        Artifact { artifact_id: id.into(), name: None, description: None, parts: vec![part] }
    }

    #[test]
    fn names_stay_in_the_directory_and_do_not_collide() {
        let temporary = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(temporary.path()).unwrap().join("files");
        let mut collector = Collector::new(&dir);
        for (id, name) in [
            ("a", "../../etc/passwd"),
            ("b", "..\\x"),
            ("c", ""),
            ("d", ".bashrc"),
            ("e", "r.md"),
            ("f", "r.md"),
        ] {
            collector.keep(&artifact(id, Some(name), Content::Bytes("eA==".into()))).unwrap();
        }
        // The same once more: no other file.
        collector.keep(&artifact("e", Some("r.md"), Content::Bytes("eXk=".into()))).unwrap();
        let mut names: Vec<String> =
            dir.read_dir_utf8().unwrap().map(|entry| entry.unwrap().file_name().to_owned()).collect();
        names.sort();
        assert_eq!(names, ["2-r.md", "_.._etc_passwd", "_x", "artifact", "bashrc", "r.md"]);
        assert_eq!(std::fs::read(dir.join("r.md")).unwrap(), b"yy");
        assert!(collector.keep(&artifact("g", None, Content::Bytes("%".into()))).is_err());
    }

    #[test]
    fn texts_are_the_handoff() {
        let temporary = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(temporary.path()).unwrap();
        let mut collector = Collector::new(dir);
        collector.keep(&artifact("summary", None, Content::Text("All good.".into()))).unwrap();
        collector.keep(&artifact("result", None, Content::Data(json!({"a": 1})))).unwrap();
        let (text, list) = collector.into_handoff("Pipeline completed");
        assert!(text.starts_with("All good.\n\nFiles:\n- "), "{text}");
        assert_eq!(list.as_array().map(Vec::len), Some(2));
        assert_eq!(Collector::new(dir).into_handoff("Done").0, "Done");
    }
}
