//! Last words of the agents of a run, from their signal files.

use std::collections::BTreeMap;

use cliq_fs::{CliqDir, SignalTail};
use cliq_orchestrator::{PhaseStatus, RunView};
use cliq_protocol::{ChannelBody, Line, PhaseName, shorten, without_credentials};

/// Maximum size of the words in bytes.
const SIZE: usize = 400;
/// Maximum number of phases whose words are read.
const PHASES: usize = 50;

/// Reader of the words of a run.
#[derive(Debug, Default)]
pub(super) struct WordsReader {
    tails: BTreeMap<PhaseName, SignalTail>,
    /// Phase that spoke last, with its words.
    last: Option<(PhaseName, String)>,
}

impl WordsReader {
    /// Returns the last words of a phase at work, in one line.
    pub(super) fn read(&mut self, dir: &CliqDir, view: &RunView) -> Option<String> {
        let running = view.phases.iter().filter(|phase| phase.status == PhaseStatus::Running).take(PHASES);
        let running: Vec<&PhaseName> = running.map(|phase| &phase.name).collect();
        self.tails.retain(|phase, _| running.contains(&phase));
        self.last = self.last.take().filter(|(phase, _)| running.contains(&phase));
        for phase in running {
            let tail =
                self.tails.entry(phase.clone()).or_insert_with(|| SignalTail::new(&dir.signal_file(phase)));
            let mut found = None;
            let read = tail.read_new(|Line { message, .. }| {
                if let Ok(message) = message
                    && let ChannelBody::Progress { message: Some(text), .. } = message.body
                {
                    found = Some(text);
                }
            });
            if read.is_ok()
                && let Some(text) = found
            {
                self.last = Some((phase.clone(), one_line(&text)));
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
