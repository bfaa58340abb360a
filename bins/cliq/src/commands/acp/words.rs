//! Words of agents at work: progress from signal channels, thoughts and messages from transcripts. The journal has neither.

use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom};

use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::CliqDir;
use cliq_protocol::{ChannelBody, ChannelMessage, PhaseName, Role, TranscriptBody, TranscriptEntry};

/// Maximum number of bytes that are read of a file at once. The rest follows with the next read.
const MAX_READ: u64 = 64 << 10;

/// Reader of the words of agents.
#[derive(Debug, Default)]
pub(super) struct LiveWords {
    /// Position in each file.
    positions: BTreeMap<Utf8PathBuf, u64>,
}

impl LiveWords {
    /// Passes over all that is there.
    pub(super) fn skip(&mut self, dir: &CliqDir, activations: &[(PhaseName, u32)]) {
        for (phase, activation) in activations {
            for path in [dir.signal_file(phase), dir.transcript(phase, *activation)] {
                if let Ok(meta) = path.metadata() {
                    self.positions.insert(path, meta.len());
                }
            }
        }
    }

    /// Returns what the agents of activations said since the last call.
    pub(super) fn read(
        &mut self,
        dir: &CliqDir,
        activations: &[(PhaseName, u32)],
    ) -> Vec<(PhaseName, String)> {
        let mut words = Vec::new();
        for (phase, activation) in activations {
            let texts = self.lines(&dir.signal_file(phase)).into_iter().filter_map(|line| progress(&line));
            words.extend(texts.map(|text| (phase.clone(), text)));
            let path = dir.transcript(phase, *activation);
            let texts = self.lines(&path).into_iter().filter_map(|line| said(&line));
            words.extend(texts.map(|text| (phase.clone(), text)));
        }
        words
    }

    /// Returns the new whole lines of a file. A file that cannot be read has none.
    fn lines(&mut self, path: &Utf8Path) -> Vec<Vec<u8>> {
        let Ok((mut file, length)) = cliq_fs::open_regular(path) else { return Vec::new() };
        let position = self.positions.entry(path.to_owned()).or_default();
        if *position > length {
            *position = 0;
        }
        let mut bytes = Vec::new();
        let read =
            file.seek(SeekFrom::Start(*position)).and_then(|_| file.take(MAX_READ).read_to_end(&mut bytes));
        if read.is_err() {
            return Vec::new();
        }
        match bytes.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => {
                *position += end as u64 + 1;
                bytes.truncate(end);
                bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
            }
            // A line that is longer is passed over.
            None if bytes.len() as u64 == MAX_READ => {
                *position += MAX_READ;
                Vec::new()
            }
            None => Vec::new(),
        }
    }
}

fn progress(line: &[u8]) -> Option<String> {
    match ChannelMessage::decode(line).ok()?.body {
        ChannelBody::Progress { message, .. } => message.filter(|message| !message.trim().is_empty()),
        _ => None,
    }
}

fn said(line: &[u8]) -> Option<String> {
    let text = match TranscriptEntry::decode(line).ok()?.body {
        TranscriptBody::Message { role: Role::Assistant, text, .. }
        | TranscriptBody::Thinking { text, .. } => text,
        TranscriptBody::ToolCall(call) => format!("calls {}", call.name),
        _ => return None,
    };
    (!text.trim().is_empty()).then_some(text)
}
