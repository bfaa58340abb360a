//! Output of the agents of a delegated run, for those who follow it (setting `server.workflow_streaming`).
//!
//! A model agent's output is its transcript: text of the model, tool calls as `→ Read path`, results as `✓ N lines`. Any other agent's
//! output is what it printed.

mod transcript;

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};

use camino::Utf8Path;
use cliq_fs::CliqDir;
use cliq_model::{LogEvent, NewRunEvent, OutputSource, PhaseOutput, RunStore, ServerEvent, StoreError};
use cliq_protocol::{PhaseName, RunId};
use serde_json::Value;

use crate::change::event;

/// Maximum number of bytes of a log that callers get, for each activation.
const MAX_LOG: u64 = 1 << 20;
/// Maximum number of bytes of a transcript that is translated, for each activation.
const MAX_TRANSCRIPT: u64 = 32 << 20;
/// Maximum number of bytes of a line of a transcript.
const MAX_LINE: u64 = 4 << 20;
/// Number of bytes after which an event with output ends.
const CHUNK: u64 = 32 << 10;

/// Activation whose output is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Activation {
    /// Number of the activation, 1-based.
    pub(crate) number: u32,
    /// Whether its agent has ended.
    pub(crate) is_over: bool,
    /// Whether a review of the run waits for an answer.
    pub(crate) input_required: bool,
}

/// Position up to which the output of agents is in the event log.
#[derive(Debug, Default)]
pub(crate) struct Outputs {
    offsets: HashMap<(PhaseName, u32, OutputSource), u64>,
}

impl Outputs {
    /// Restores the position from the event log: a server that begins again goes on where the one before was.
    pub(crate) async fn restore(store: &dyn RunStore, run: &RunId) -> Result<Self, StoreError> {
        let (mut outputs, mut after) = (Self::default(), 0);
        loop {
            let rows = store.run_events(run, after, 1000).await?;
            let Some(last) = rows.last() else { return Ok(outputs) };
            after = last.id;
            for row in rows {
                let LogEvent::Server(event) = LogEvent::parse(&row.data) else { continue };
                if let ServerEvent::PhaseOutput(output) = *event {
                    let source = output.source.unwrap_or_default();
                    let end = output.offset + output.bytes;
                    outputs.offsets.insert((output.phase, output.activation, source), end);
                }
            }
        }
    }

    /// Returns new output of a phase's agent: whole lines, and the rest of a log once the activation is over.
    pub(crate) fn read(
        &mut self,
        dir: &CliqDir,
        phase: &PhaseName,
        activation: Activation,
    ) -> Vec<NewRunEvent> {
        let Activation { number: activation, is_over, input_required } = activation;
        let transcript = dir.transcript(phase, activation);
        let (source, path) = match transcript.is_file() {
            true => (OutputSource::Transcript, transcript),
            false => (OutputSource::Log, dir.phase_log(phase, activation)),
        };
        let at = self.offsets.entry((phase.clone(), activation, source)).or_default();
        let mut events = Vec::new();
        loop {
            let piece = match source {
                OutputSource::Log if *at < MAX_LOG => log_piece(&path, *at, is_over),
                OutputSource::Transcript if *at < MAX_TRANSCRIPT => transcript_piece(&path, *at),
                OutputSource::Log | OutputSource::Transcript => None,
            };
            let Some(piece) = piece else { return events };
            if !piece.lines.is_empty() || !piece.events.is_empty() {
                events.push(event(&ServerEvent::PhaseOutput(PhaseOutput {
                    phase: phase.clone(),
                    activation,
                    source: Some(source),
                    offset: *at,
                    bytes: piece.bytes,
                    lines: piece.lines,
                    events: piece.events,
                    input_required,
                })));
            }
            *at += piece.bytes;
        }
    }
}

/// A part of a file, translated.
#[derive(Debug, Default)]
struct Piece {
    bytes: u64,
    lines: Vec<String>,
    events: Vec<Value>,
}

/// Reads the next whole lines of a log. Returns `None` if there are none.
fn log_piece(path: &Utf8Path, at: u64, is_over: bool) -> Option<Piece> {
    let text = read_from(path, at)?;
    let end = match text.iter().rposition(|byte| *byte == b'\n') {
        Some(end) => end + 1,
        None if is_over || text.len() as u64 == CHUNK => text.len(),
        None => 0,
    };
    let end = if is_over && (text.len() as u64) < CHUNK { text.len() } else { end };
    let lines = String::from_utf8_lossy(&text[..end]).lines().map(plain).collect();
    (end > 0).then_some(Piece { bytes: end as u64, lines, events: Vec::new() })
}

/// Reads the next whole lines of a transcript. A line that cannot be read is left out. Returns `None` if there are none.
fn transcript_piece(path: &Utf8Path, at: u64) -> Option<Piece> {
    let (mut file, size) = cliq_fs::open_regular(path).ok()?;
    if size <= at {
        return None;
    }
    file.seek(SeekFrom::Start(at)).ok()?;
    let mut reader = BufReader::new(file);
    let (mut piece, mut line) = (Piece::default(), Vec::new());
    while piece.bytes < CHUNK {
        line.clear();
        let read = reader.by_ref().take(MAX_LINE).read_until(b'\n', &mut line).ok()? as u64;
        if line.last() != Some(&b'\n') && read < MAX_LINE {
            break;
        }
        piece.bytes += read;
        if let Some(shown) = transcript::translate(&line) {
            piece.lines.extend(shown.lines.iter().map(|line| plain(line)));
            piece.events.push(shown.event);
        }
    }
    (piece.bytes > 0).then_some(piece)
}

/// Returns a line without the characters that steer a terminal.
fn plain(line: &str) -> String {
    let text = anstream::adapter::strip_str(line).to_string();
    text.chars().filter(|c| !c.is_control() || *c == '\t').collect()
}

fn read_from(path: &Utf8Path, at: u64) -> Option<Vec<u8>> {
    let (mut file, size) = cliq_fs::open_regular(path).ok()?;
    if size <= at {
        return None;
    }
    file.seek(SeekFrom::Start(at)).ok()?;
    let mut bytes = Vec::new();
    file.take(CHUNK).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use serde_json::json;

    use super::*;

    const FIRST: Activation = Activation { number: 1, is_over: false, input_required: false };

    fn read(outputs: &mut Outputs, dir: &CliqDir) -> Vec<Value> {
        let events = outputs.read(dir, &"a".parse().unwrap(), FIRST);
        events.iter().map(|event| serde_json::from_str(event.data()).unwrap()).collect()
    }

    #[test]
    fn transcript_is_read_by_whole_lines_and_goes_on_where_it_was() {
        let temp = tempfile::tempdir().unwrap();
        let dir = CliqDir::create(Utf8Path::from_path(temp.path()).unwrap()).unwrap();
        let phase: PhaseName = "a".parse().unwrap();
        let mut outputs = Outputs::default();
        assert!(read(&mut outputs, &dir).is_empty(), "nothing is there");
        let path = dir.transcript(&phase, 1);
        fs::create_dir_all(dir.transcripts()).unwrap();
        let call = r#"{"ts":"2026-01-01T00:00:00.000Z","type":"tool_call","id":"1","name":"Read","arguments":{"path":"a.md"}}"#;
        let result = r#"{"ts":"2026-01-01T00:00:01.000Z","type":"tool_result","id":"1","text":"x\ny\n"}"#;
        // A line that is not whole yet waits; one that is not an entry is left out.
        fs::write(&path, format!("{call}\nnot JSON\n{}", &result[..20])).unwrap();
        let events = read(&mut outputs, &dir);
        assert_eq!(events.len(), 1);
        assert_eq!(
            (&events[0]["lines"], &events[0]["source"]),
            (&json!(["→ Read a.md"]), &json!("transcript"))
        );
        assert_eq!(events[0]["events"][0]["type"], "tool_call");
        let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
        writeln!(file, "{}", &result[20..]).unwrap();
        let events = read(&mut outputs, &dir);
        assert_eq!(events[0]["lines"], json!(["✓ 2 lines"]));
        assert_eq!(events[0]["offset"], call.len() + "\nnot JSON\n".len());
        assert!(read(&mut outputs, &dir).is_empty(), "all of it was read");
    }

    #[test]
    fn transcript_beyond_its_bounds_is_cut_and_ends() {
        let temp = tempfile::tempdir().unwrap();
        let dir = CliqDir::create(Utf8Path::from_path(temp.path()).unwrap()).unwrap();
        let phase: PhaseName = "a".parse().unwrap();
        fs::create_dir_all(dir.transcripts()).unwrap();
        // A line that is longer than any entry may be, without an end.
        fs::write(dir.transcript(&phase, 1), vec![b'x'; 2 * MAX_LINE as usize + 5]).unwrap();
        let mut outputs = Outputs::default();
        assert!(read(&mut outputs, &dir).is_empty());
        let at = outputs.offsets[&(phase.clone(), 1, OutputSource::Transcript)];
        assert_eq!(at, 2 * MAX_LINE);
        // Without a transcript the log is the output.
        let other: PhaseName = "b".parse().unwrap();
        fs::create_dir_all(dir.logs()).unwrap();
        fs::write(dir.phase_log(&other, 1), "one\ntwo").unwrap();
        let events = outputs.read(&dir, &other, Activation { input_required: true, ..FIRST });
        let event: Value = serde_json::from_str(events[0].data()).unwrap();
        assert_eq!((&event["lines"], &event["source"]), (&json!(["one"]), &json!("log")));
        assert_eq!(event["input_required"], true);
    }
}
