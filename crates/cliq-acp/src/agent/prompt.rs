//! Prompts of a client: text and commands.

use std::fmt::Write;

use agent_client_protocol_schema::v1::{ContentBlock, EmbeddedResourceResource};

use super::gate::GateAnswer;

/// Prompt that starts a turn.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Prompt {
    /// Work to do, or guidance for work that goes on. Empty if the client sent no text.
    Text(String),
    /// Follows the work that goes on, without guidance.
    Follow,
    /// Continues work that has stopped.
    Resume,
    /// Answer to a gate, in the words that the gate asked for.
    Answer {
        /// Id of the gate.
        gate: String,
        /// Answer.
        answer: GateAnswer,
    },
}

impl Prompt {
    /// Commands with a description for people.
    pub(super) const COMMANDS: [(&str, &str); 2] = [
        ("follow", "Follow the run of this project, without a message to it"),
        ("resume", "Continue the last run where it stopped"),
    ];

    /// Reads a command or text.
    pub(super) fn parse(text: String) -> Self {
        match text.trim() {
            "/follow" => Self::Follow,
            "/resume" => Self::Resume,
            _ => Self::Text(text),
        }
    }
}

/// Returns the text of a prompt. Embedded files are quoted, links are named.
///
/// # Errors
/// Returns the kind of a block that has no text.
pub(super) fn text(blocks: &[ContentBlock]) -> Result<String, &'static str> {
    let mut out = String::new();
    for block in blocks {
        match block {
            ContentBlock::Text(text) => out.push_str(&text.text),
            ContentBlock::ResourceLink(link) => {
                let _ = write!(out, "[{}]({})", link.name, link.uri);
            }
            ContentBlock::Resource(resource) => match &resource.resource {
                EmbeddedResourceResource::TextResourceContents(file) => {
                    quote(&mut out, &file.uri, &file.text)
                }
                EmbeddedResourceResource::BlobResourceContents(_) => return Err("a file that is not text"),
                _ => return Err("a resource of an unknown kind"),
            },
            ContentBlock::Image(_) => return Err("an image"),
            ContentBlock::Audio(_) => return Err("audio"),
            _ => return Err("a block of an unknown kind"),
        }
    }
    Ok(out)
}

/// Appends a file as a fenced block. The fence is longer than any in the file.
fn quote(out: &mut String, uri: &str, text: &str) {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let end = if text.ends_with('\n') { "" } else { "\n" };
    let _ = write!(out, "\n\n{uri}:\n\n{fence}\n{text}{end}{fence}\n\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(json: &str) -> Vec<ContentBlock> {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn files_are_quoted_and_links_are_named() {
        let text = text(&blocks(
            r#"[{"type":"text","text":"Mend "},
                {"type":"resource_link","name":"a.rs","uri":"file:///w/a.rs"},
                {"type":"resource","resource":{"uri":"file:///w/b.md","text":"```x```"}}]"#,
        ));
        assert_eq!(
            text.unwrap(),
            "Mend [a.rs](file:///w/a.rs)\n\nfile:///w/b.md:\n\n````\n```x```\n````\n\n"
        );
    }

    #[test]
    fn blocks_without_text_are_refused_by_name() {
        for (json, kind) in [
            (r#"[{"type":"image","data":"","mimeType":"image/png"}]"#, "an image"),
            (r#"[{"type":"audio","data":"","mimeType":"audio/wav"}]"#, "audio"),
            (r#"[{"type":"resource","resource":{"uri":"u","blob":"AA=="}}]"#, "a file that is not text"),
        ] {
            assert_eq!(text(&blocks(json)), Err(kind));
        }
    }

    #[test]
    fn commands_are_whole_prompts() {
        assert_eq!(Prompt::parse(" /follow\n".to_owned()), Prompt::Follow);
        assert_eq!(Prompt::parse("/resume".to_owned()), Prompt::Resume);
        assert_eq!(Prompt::parse("/follow me".to_owned()), Prompt::Text("/follow me".to_owned()));
    }
}
