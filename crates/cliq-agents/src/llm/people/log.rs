//! Record of the requests of a phase: `.cliq/asks/<phase>.json`.

use camino::Utf8PathBuf;
use cliq_fs::{CliqDir, IoContext, read_if_exists, write_atomic};
use cliq_protocol::{AskAnswer, AskFile, AskRecord, AskState, VERSION};
use cliq_sdk::PhaseContext;

use super::request::Request;
use crate::AnyError;

/// Maximum size of the file in bytes.
const LIMIT: u64 = 16 << 20;
/// Maximum number of used requests that are kept.
const KEPT: usize = 100;

/// Requests of a phase, on disk.
pub(super) struct AskLog {
    path: Utf8PathBuf,
    file: AskFile,
    activation: u32,
}

impl AskLog {
    /// Reads the requests of this run.
    pub(super) fn open(ctx: &PhaseContext) -> Result<Self, AnyError> {
        let dir = CliqDir::at(ctx.cliq_dir(), ctx.workspace())?.asks();
        let path = dir.join(format!("{}.json", ctx.phase().name));
        let new = || AskFile { version: VERSION, run_id: ctx.run_id().clone(), asks: Vec::new(), next: 1 };
        let file = match read_if_exists(&path, LIMIT)? {
            None => new(),
            Some(bytes) => {
                let file: AskFile = serde_json::from_slice(&bytes)
                    .map_err(|error| format!("{path} cannot be read: {error}"))?;
                if file.run_id == *ctx.run_id() && file.version == VERSION { file } else { new() }
            }
        };
        Ok(Self { path, file, activation: ctx.phase().iteration })
    }

    /// The request with a number.
    pub(super) fn record(&self, number: u32) -> Option<&AskRecord> {
        self.file.asks.iter().find(|record| record.number == number)
    }

    /// As [`Self::record`], for one that must be there.
    pub(super) fn required(&self, number: u32) -> Result<&AskRecord, AnyError> {
        self.record(number).ok_or_else(|| format!("the request {number} is not recorded").into())
    }

    /// Number of the request that waits for a person.
    pub(super) fn pending(&self) -> Option<u32> {
        self.file.asks.iter().find(|record| record.state == AskState::Pending).map(|record| record.number)
    }

    /// Number of the request with a digest, if it waits for a person.
    #[cfg(feature = "http")]
    pub(super) fn pending_of(&self, digest: &str) -> Option<u32> {
        let is_it = |record: &&AskRecord| record.state == AskState::Pending && record.digest == digest;
        self.file.asks.iter().find(is_it).map(|record| record.number)
    }

    /// Requests with an outcome on which the agent may not have acted.
    pub(super) fn unused(&self) -> impl Iterator<Item = &AskRecord> {
        self.file.asks.iter().filter(|record| record.state == AskState::Answered)
    }

    /// Records a new request. Returns its number.
    pub(super) fn add(&mut self, request: &Request) -> Result<u32, AnyError> {
        let number = self.file.next;
        self.file.next += 1;
        self.file.asks.push(AskRecord {
            number,
            activation: self.activation,
            digest: request.digest.clone(),
            subject: request.subject.clone(),
            form: (!request.form.is_empty()).then(|| request.form.to_value()),
            state: AskState::Pending,
            answer: None,
        });
        let used = self.file.asks.iter().filter(|record| record.state == AskState::Used).count();
        let mut surplus = used.saturating_sub(KEPT);
        self.file.asks.retain(|record| {
            let goes = surplus > 0 && record.state == AskState::Used;
            surplus -= usize::from(goes);
            !goes
        });
        self.write()?;
        Ok(number)
    }

    /// Records an outcome.
    pub(super) fn answer(
        &mut self,
        number: u32,
        answer: &AskAnswer,
        state: AskState,
    ) -> Result<(), AnyError> {
        for record in self.file.asks.iter_mut().filter(|record| record.number == number) {
            (record.state, record.answer) = (state, Some(answer.clone()));
        }
        self.write()
    }

    /// Records that outcomes do not count any more.
    pub(super) fn use_up(&mut self, which: impl Fn(&AskRecord) -> bool) -> Result<(), AnyError> {
        let mut has_changed = false;
        for record in self.file.asks.iter_mut().filter(|record| record.state == AskState::Answered) {
            if which(record) {
                record.state = AskState::Used;
                has_changed = true;
            }
        }
        if has_changed { self.write() } else { Ok(()) }
    }

    fn write(&self) -> Result<(), AnyError> {
        if let Some(dir) = self.path.parent() {
            std::fs::create_dir_all(dir).at("create", dir)?;
        }
        let mut bytes = serde_json::to_vec_pretty(&self.file)?;
        bytes.push(b'\n');
        Ok(write_atomic(&self.path, &bytes)?)
    }
}
