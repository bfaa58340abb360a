//! Follower of a run: reads the journal and the transcripts of a project as they grow, and gives what is complete.

use std::collections::HashMap;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::{CliqDir, IoContext, open_regular, transcripts_of};
use cliq_orchestrator::{JournalError, JournalFollower, JournalUpdate, Record, RunEvent};
use cliq_protocol::{PhaseName, RunId, Timestamp, TranscriptEntry};

use crate::metrics::Measurement;
use crate::span::Batch;
use crate::spans::{SpanOptions, TraceBuilder};

/// Maximum number of bytes of a transcript that are read at once, as anywhere else.
const MAX_READ: u64 = 1 << 30;

/// Part of a run between two ends, or times at which it was parked.
#[derive(Debug, Clone, PartialEq)]
pub struct RunSegment {
    /// Measurements that were not there before.
    pub measurements: Vec<Measurement>,
    /// Last record.
    pub end: SegmentEnd,
}

/// End of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SegmentEnd {
    /// None: the run is at work, or was killed.
    Open,
    /// The run is parked.
    Parked,
    /// The run ended.
    Finished,
}

/// Follower of one run of a project.
#[derive(Debug)]
pub struct RunFollower {
    dir: CliqDir,
    run: Option<RunId>,
    journal: JournalFollower,
    options: SpanOptions,
    builder: Option<TraceBuilder>,
    files: HashMap<Utf8PathBuf, TranscriptFile>,
    end: SegmentEnd,
    /// Spans and lines up to the last end of the run, or of its process, which others have followed.
    earlier: Batch,
}

/// Transcript, as far as it was read.
#[derive(Debug, Default)]
struct TranscriptFile {
    identity: (u64, u64),
    offset: u64,
    /// Whether the next lines are the first ones of the file.
    is_anew: bool,
    /// Lines that are later than the record which is being applied.
    later: Vec<TranscriptEntry>,
}

impl RunFollower {
    /// Follows the present run of a project.
    #[must_use]
    pub fn new(dir: CliqDir, options: SpanOptions) -> Self {
        let journal = JournalFollower::new(&dir.journal());
        Self {
            dir,
            run: None,
            journal,
            options,
            builder: None,
            files: HashMap::new(),
            end: SegmentEnd::Open,
            earlier: Batch::default(),
        }
    }

    /// The run, once its journal was read.
    #[must_use]
    pub fn builder(&self) -> Option<&TraceBuilder> {
        self.builder.as_ref()
    }

    /// Whether the last record is the end of the run, or of its process.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.end != SegmentEnd::Open
    }

    /// Returns the last segment of a run, or `None` if the run is not the present one of its project.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub fn last_segment(
        dir: CliqDir,
        run: &RunId,
        options: SpanOptions,
    ) -> Result<Option<RunSegment>, JournalError> {
        let mut follower = Self::new(dir, options);
        follower.read_journal()?;
        if follower.run.as_ref() != Some(run) {
            return Ok(None);
        }
        let batch = follower.builder.as_mut().map(TraceBuilder::take).unwrap_or_default();
        let measurements = batch.spans.into_iter().flat_map(|span| span.measurements).collect();
        Ok(Some(RunSegment { measurements, end: follower.end }))
    }

    /// Reads what is new, and returns what is complete. Returns `None` once another run has begun in the project.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub fn read(&mut self) -> Result<Option<Batch>, JournalError> {
        if !self.read_journal()? {
            return Ok(None);
        }
        let mut batch = std::mem::take(&mut self.earlier);
        batch.append(self.builder.as_mut().map(TraceBuilder::take).unwrap_or_default());
        Ok(Some(batch))
    }

    /// Reads what is new. Returns `false` once another run has begun in the project.
    fn read_journal(&mut self) -> Result<bool, JournalError> {
        let (records, is_afresh) = match self.journal.read()? {
            JournalUpdate::More(records) => (records, false),
            JournalUpdate::Afresh(records) => (records, true),
            _ => return Ok(true),
        };
        if is_afresh {
            let Some(builder) =
                records.first().and_then(|first| TraceBuilder::new(first, self.options.clone()))
            else {
                return Ok(true);
            };
            if self.run.get_or_insert_with(|| builder.run_id().clone()) != builder.run_id() {
                return Ok(false);
            }
            self.builder = Some(builder);
            self.files.clear();
        }
        for record in &records {
            self.apply(record);
        }
        let working = self.builder.as_ref().map(TraceBuilder::working).unwrap_or_default();
        for phase in working {
            self.read_transcripts(&phase, None);
        }
        Ok(true)
    }

    fn apply(&mut self, record: &Record) {
        if self.has_ended() {
            self.earlier.append(self.builder.as_mut().map(TraceBuilder::take).unwrap_or_default());
        }
        let phases = self.builder.as_ref().map(|builder| builder.reads_before(record)).unwrap_or_default();
        let until = record.ts.time();
        for phase in phases {
            self.read_transcripts(&phase, until);
        }
        if let Some(builder) = &mut self.builder {
            builder.observe(record);
        }
        self.end = match record.event {
            RunEvent::RunFinished { .. } => SegmentEnd::Finished,
            RunEvent::RunParked { .. } => SegmentEnd::Parked,
            _ => SegmentEnd::Open,
        };
    }

    /// Reads the transcripts of a phase up to a time. A transcript that cannot be read has no spans: the log of its agent says why.
    fn read_transcripts(&mut self, phase: &PhaseName, until: Option<Timestamp>) {
        let Some(builder) = &mut self.builder else { return };
        let Ok(all) = transcripts_of(&self.dir.transcripts(), phase.as_str()) else { return };
        for (activation, path) in all {
            let file = self.files.entry(path.clone()).or_default();
            if let Err(error) = file.read(&path) {
                tracing::debug!(%path, %error, "a transcript cannot be read");
                continue;
            }
            let is_later =
                |line: &TranscriptEntry| until.zip(line.ts.time()).is_some_and(|(until, time)| time > until);
            let split = file.later.iter().position(is_later).unwrap_or(file.later.len());
            let now: Vec<TranscriptEntry> = file.later.drain(..split).collect();
            if !now.is_empty() {
                builder.transcript(phase, activation, std::mem::take(&mut file.is_anew), &now);
            }
        }
    }
}

impl TranscriptFile {
    /// Reads the lines that are new, as far as they are whole.
    fn read(&mut self, path: &Utf8Path) -> Result<(), cliq_fs::FsError> {
        let (mut file, _) = open_regular(path)?;
        let meta = file.metadata().at("read", path)?;
        let identity = (meta.dev(), meta.ino());
        if identity != self.identity || meta.len() < self.offset {
            *self = Self { identity, is_anew: true, ..Self::default() };
        }
        if meta.len() == self.offset {
            return Ok(());
        }
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(self.offset)).at("read", path)?;
        file.take(MAX_READ).read_to_end(&mut bytes).at("read", path)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        self.offset += whole as u64;
        let lines = bytes[..whole].split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        self.later.extend(lines.filter_map(|line| TranscriptEntry::decode(line).ok()));
        Ok(())
    }
}
