//! Last words of the agents of a run, from their signal files.

use std::collections::BTreeMap;

use camino::Utf8Path;
use cliq_fs::{CliqDir, FsError, SignalTail};
use cliq_orchestrator::{PhaseStatus, RunView};
use cliq_protocol::{ChannelBody, Line, PhaseName, shorten, without_credentials};

/// Maximum size of the words in bytes.
const SIZE: usize = 400;
/// Maximum number of phases whose words are read.
const PHASES: usize = 50;

/// Reader of the words of a phase.
#[derive(Debug)]
pub struct WordsTail(SignalTail);

impl WordsTail {
    /// Follows a signal file.
    #[must_use]
    pub fn new(signals: &Utf8Path) -> Self {
        Self(SignalTail::new(signals))
    }

    /// Returns the last words since the last call, in one line without control characters and passwords in addresses.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn read(&mut self) -> Result<Option<String>, FsError> {
        let mut last = None;
        self.0.read_new(|Line { message, .. }| {
            if let Ok(message) = message
                && let ChannelBody::Progress { message: Some(text), .. } = message.body
            {
                last = Some(text);
            }
        })?;
        Ok(last.map(|text| one_line(&text)))
    }
}

/// Reader of the words of a run.
#[derive(Debug, Default)]
pub(super) struct WordsReader {
    tails: BTreeMap<PhaseName, WordsTail>,
    /// Phase that spoke last, with its words.
    last: Option<(PhaseName, String)>,
}

impl WordsReader {
    /// Returns the last words of a phase at work. Signals that cannot be read are a matter of the run.
    pub(super) fn read(&mut self, dir: &CliqDir, view: &RunView) -> Option<String> {
        let running = view.phases.iter().filter(|phase| phase.status == PhaseStatus::Running).take(PHASES);
        let running: Vec<&PhaseName> = running.map(|phase| &phase.name).collect();
        self.tails.retain(|phase, _| running.contains(&phase));
        self.last = self.last.take().filter(|(phase, _)| running.contains(&phase));
        for phase in running {
            let tail =
                self.tails.entry(phase.clone()).or_insert_with(|| WordsTail::new(&dir.signal_file(phase)));
            if let Ok(Some(text)) = tail.read() {
                self.last = Some((phase.clone(), text));
            }
        }
        self.last.as_ref().map(|(phase, text)| format!("{phase}: {text}"))
    }
}

/// Text in one line, without control characters and passwords in addresses.
fn one_line(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    shorten(&without_credentials(&text), SIZE).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_one_short_line_without_control_characters() {
        assert_eq!(one_line("a\u{1b}[31m\n  b\tc"), "a [31m b c");
        assert!(one_line(&"word ".repeat(1000)).len() <= SIZE + 4);
        assert!(!one_line("clone https://ann:secret@example.com/x").contains("secret"));
    }
}
