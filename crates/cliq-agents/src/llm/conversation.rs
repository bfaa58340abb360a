//! Conversation of an activation: the one that it continues, and its record. Shared by all kinds of model agents (docs/models.md).
//!
//! 1. [`opening`] decides how an activation starts, from the records of earlier ones.
//! 2. [`ConversationFile::begin`] writes the record of this one, before the first prompt.
//! 3. The agent reports what happens: [`ConversationFile::set_session`] as soon as the id is known, [`ConversationFile::accept`] with the
//!    first output of the model, [`ConversationFile::answered`] with the answer, [`ConversationFile::ask`] before a further prompt.
//! 4. If the agent does not find the conversation, [`ConversationFile::start_over`] records a new one with the reason.

mod decision;

use std::time::SystemTime;

use camino::Utf8PathBuf;
use cliq_fs::{FsError, read_if_exists, write_atomic};
use cliq_protocol::{
    ConversationKind, ConversationMode, ConversationPartner, ConversationRecord, CountedTokens, PromptState,
    SentParts, VERSION,
};
use cliq_sdk::PhaseContext;
use decision::{Candidate, Relation, decide};
pub(crate) use decision::{Earlier, Opening};

/// Maximum size of a record in bytes.
const LIMIT: u64 = 4 << 20;

/// Returns how an activation starts: in the conversation of an earlier process or activation, or anew.
///
/// # Errors
/// Returns an error if a record exists and cannot be read.
pub(crate) fn opening(ctx: &PhaseContext, partner: &ConversationPartner) -> Result<Opening, FsError> {
    let Some(own) = number(ctx) else { return Ok(Opening::Fresh { notice: None }) };
    let phase = ctx.phase();
    let sent_back = match phase.conversation {
        ConversationMode::Continue => phase.previous.as_ref().map(|previous| previous.activation),
        ConversationMode::Fresh => None,
    };
    let interrupted = phase.continues.map(|first| (first..own).rev()).into_iter().flatten();
    let before = sent_back.map(|first| (first..own).rev()).into_iter().flatten();
    let mut candidates: Vec<Candidate> = Vec::new();
    for activation in [own].into_iter().chain(interrupted).chain(before) {
        if candidates.iter().any(|known| known.activation == activation) {
            continue;
        }
        let relation =
            if sent_back == Some(activation) { Relation::Completed } else { Relation::Interrupted };
        // A transcript is the conversation: a record without one is that of a process that was killed before it began.
        let is_there = partner.kind != ConversationKind::Loop || transcript(ctx, activation).is_some();
        let record = read(ctx, activation)?.filter(|record| is_there && record.run_id == *ctx.run_id());
        candidates.push(Candidate { activation, relation, record });
    }
    Ok(decide(partner, sent_back, candidates))
}

/// Number of the activation by its transcript: of the evaluation in the whole run for a gate.
pub(crate) fn number(ctx: &PhaseContext) -> Option<u32> {
    let name = ctx.dispatch().transcript_file.as_ref()?.file_name()?;
    name.strip_prefix(ctx.phase().name.as_str())?.strip_prefix('.')?.strip_suffix(".jsonl")?.parse().ok()
}

/// Transcript of an activation, if it exists.
fn transcript(ctx: &PhaseContext, activation: u32) -> Option<Utf8PathBuf> {
    let own = ctx.dispatch().transcript_file.as_ref()?;
    let path = own.with_file_name(format!("{}.{activation}.jsonl", ctx.phase().name));
    path.exists().then_some(path)
}

fn path(ctx: &PhaseContext, activation: u32) -> Option<Utf8PathBuf> {
    let transcripts = ctx.dispatch().transcript_file.as_ref()?.parent()?;
    let name = format!("{}.{activation}.json", ctx.phase().name);
    Some(transcripts.with_file_name("conversations").join(name))
}

/// Time at which the conversation of an activation was last recorded.
pub(crate) fn recorded_at(ctx: &PhaseContext, activation: u32) -> Option<SystemTime> {
    std::fs::metadata(path(ctx, activation)?).and_then(|file| file.modified()).ok()
}

/// Reads the record of an activation. Returns `None` for one of another version.
fn read(ctx: &PhaseContext, activation: u32) -> Result<Option<ConversationRecord>, FsError> {
    let Some(path) = path(ctx, activation) else { return Ok(None) };
    let bytes = read_if_exists(&path, LIMIT)?;
    let record = bytes.and_then(|bytes| serde_json::from_slice::<ConversationRecord>(&bytes).ok());
    Ok(record.filter(|record| record.version == VERSION))
}

/// Record of the conversation of this activation, on disk.
#[derive(Debug)]
pub(crate) struct ConversationFile {
    path: Option<Utf8PathBuf>,
    record: ConversationRecord,
}

impl ConversationFile {
    /// Writes the record before the first prompt. `session` is the id of a new session, if the agent lets its caller choose it; `sent` is
    /// the content of the prompt.
    ///
    /// # Errors
    /// Returns an error if the record cannot be written.
    pub(crate) fn begin(
        ctx: &PhaseContext,
        partner: ConversationPartner,
        opening: &Opening,
        session: Option<String>,
        sent: &SentParts,
    ) -> Result<Self, FsError> {
        let own = number(ctx);
        let mut record = ConversationRecord {
            version: VERSION,
            run_id: ctx.run_id().clone(),
            phase: ctx.phase().name.clone(),
            activation: own.unwrap_or(ctx.phase().iteration),
            partner,
            session,
            continued_from: None,
            notice: None,
            state: PromptState::Pending,
            sent: sent.clone(),
            counted: None,
        };
        match opening {
            Opening::Fresh { notice } => record.notice.clone_from(notice),
            Opening::Resumed(earlier) => {
                record.continued_from = earlier.continued_from;
                record.take_over(earlier, sent);
            }
            Opening::Continued(earlier) => {
                record.continued_from = Some(earlier.activation);
                record.take_over(earlier, sent);
            }
        }
        let this = Self { path: own.and_then(|own| path(ctx, own)), record };
        this.write()?;
        Ok(this)
    }

    /// Id of the session, if it is known.
    pub(crate) fn session(&self) -> Option<&str> {
        self.record.session.as_deref()
    }

    /// Activation whose conversation is continued.
    pub(crate) fn continued_from(&self) -> Option<u32> {
        self.record.continued_from
    }

    /// Tokens that the agent has reported for the whole session.
    pub(crate) fn counted(&self) -> Option<CountedTokens> {
        self.record.counted
    }

    /// Records the id of the session.
    ///
    /// # Errors
    /// Returns an error if the record cannot be written.
    pub(crate) fn set_session(&mut self, id: &str) -> Result<(), FsError> {
        if self.record.session.as_deref() == Some(id) {
            return Ok(());
        }
        self.record.session = Some(id.to_owned());
        self.write()
    }

    /// Records that the id of the session is not known: the agent has not named it.
    ///
    /// # Errors
    /// Returns an error if the record cannot be written.
    pub(crate) fn forget_session(&mut self) -> Result<(), FsError> {
        if self.record.session.take().is_some() { self.write() } else { Ok(()) }
    }

    /// Records that the model has begun to reply: the conversation contains the prompt.
    ///
    /// # Errors
    /// Returns an error if the record cannot be written.
    pub(crate) fn accept(&mut self) -> Result<(), FsError> {
        self.set_state(PromptState::Accepted)
    }

    /// Records that the agent has answered.
    ///
    /// # Errors
    /// Returns an error if the record cannot be written.
    pub(crate) fn answered(&mut self) -> Result<(), FsError> {
        self.set_state(PromptState::Answered)
    }

    /// Records a further prompt before it is sent.
    ///
    /// # Errors
    /// Returns an error if the record cannot be written.
    pub(crate) fn ask(&mut self, sent: &SentParts) -> Result<(), FsError> {
        self.record.sent.add(sent);
        self.record.state = PromptState::Pending;
        self.write()
    }

    /// Records a steering message before it is sent into a turn that is under way.
    ///
    /// # Errors
    /// Returns an error if the record cannot be written.
    pub(crate) fn steer(&mut self, id: &str) -> Result<(), FsError> {
        self.record.sent.steering.insert(id.to_owned());
        self.write()
    }

    /// Records the tokens that the agent has reported for the whole session.
    ///
    /// # Errors
    /// Returns an error if the record cannot be written.
    pub(crate) fn count(&mut self, counted: CountedTokens) -> Result<(), FsError> {
        self.record.counted = Some(counted);
        self.write()
    }

    /// Records a new conversation in place of one that the agent cannot continue. `reason` is for people.
    ///
    /// # Errors
    /// Returns an error if the record cannot be written.
    pub(crate) fn start_over(
        &mut self,
        reason: &str,
        session: Option<String>,
        sent: &SentParts,
    ) -> Result<(), FsError> {
        self.record.session = session;
        self.record.continued_from = None;
        self.record.notice = Some(reason.to_owned());
        self.record.sent = sent.clone();
        self.record.state = PromptState::Pending;
        self.record.counted = None;
        self.write()
    }

    fn set_state(&mut self, state: PromptState) -> Result<(), FsError> {
        if self.record.state == state {
            return Ok(());
        }
        self.record.state = state;
        self.write()
    }

    fn write(&self) -> Result<(), FsError> {
        let Some(path) = &self.path else { return Ok(()) };
        if let Some(dir) = path.parent() {
            cliq_fs::IoContext::at(std::fs::create_dir_all(dir), "create", dir)?;
        }
        // A struct with text keys always becomes JSON.
        let mut bytes = serde_json::to_vec_pretty(&self.record).unwrap_or_default();
        bytes.push(b'\n');
        write_atomic(path, &bytes)
    }
}

/// Extension of the record by what an earlier one has.
trait TakeOver {
    fn take_over(&mut self, earlier: &Earlier, sent: &SentParts);
}

impl TakeOver for ConversationRecord {
    fn take_over(&mut self, earlier: &Earlier, sent: &SentParts) {
        self.session.clone_from(&earlier.session);
        self.counted = earlier.counted;
        self.sent = earlier.sent.clone();
        self.sent.add(sent);
    }
}

/// Sentence for people about a conversation that is not continued.
pub(crate) fn notice_of_fresh(reason: &str) -> String {
    format!("a new conversation was started: {reason}")
}
