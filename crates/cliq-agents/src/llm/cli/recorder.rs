//! Transcript of a vendor's program.

use cliq_fs::{FsError, TranscriptFile};
use cliq_protocol::{
    FailedCall, FailedCallKind, Origin, ReplyUsage, Role, TranscriptBody, TranscriptEntry, TranscriptStart,
    Usage, VERSION,
};
use cliq_sdk::PhaseContext;

use crate::llm::thoughts;

/// Earlier work that a transcript begins with.
#[derive(Debug, Default)]
pub(crate) struct Past {
    /// Number of the interrupted activation whose lines follow.
    pub(crate) continues: Option<u32>,
    /// Lines of that activation.
    pub(crate) entries: Vec<TranscriptEntry>,
    /// Number of the completed activation whose conversation is continued.
    pub(crate) continued_from: Option<u32>,
}

/// Recorder of a program's work: text and usage come in pieces.
pub(crate) struct Recorder {
    file: Option<TranscriptFile>,
    said: String,
    /// Usage of the reply under way, with the reply's id.
    reply: Option<(String, Usage)>,
    has_replies: bool,
    failed: Option<FsError>,
}

impl Recorder {
    /// Creates the transcript of an activation.
    pub(crate) fn new(ctx: &PhaseContext, model: Option<&str>, past: Past) -> Result<Self, FsError> {
        let start = TranscriptBody::Start(TranscriptStart {
            version: VERSION,
            run_id: ctx.run_id().clone(),
            phase: ctx.phase().name.clone(),
            activation: ctx.phase().iteration,
            agent: ctx.phase().agent.clone(),
            model: model.map(str::to_owned),
            tools: Vec::new(),
            continues: past.continues,
            continued_from: past.continued_from,
        });
        let is_start = |entry: &TranscriptEntry| matches!(entry.body, TranscriptBody::Start(_));
        let kept = past.entries.into_iter().filter(|entry| !is_start(entry));
        let first = TranscriptEntry { ts: cliq_fs::now().into(), body: start };
        let entries: Vec<TranscriptEntry> = [first].into_iter().chain(kept).collect();
        let file = ctx.dispatch().transcript_file.as_deref();
        let file = file.map(|path| TranscriptFile::create(path, &entries)).transpose()?;
        Ok(Self { file, said: String::new(), reply: None, has_replies: false, failed: None })
    }

    /// Records a notice for people.
    pub(crate) fn notice(&mut self, text: &str) {
        self.flush();
        self.write(TranscriptBody::Notice { text: text.to_owned() });
    }

    /// Records a message for the program.
    pub(crate) fn ask(&mut self, text: &str, origin: Origin, steering: Vec<String>) {
        self.flush();
        let text = text.to_owned();
        self.write(TranscriptBody::Message {
            role: Role::User,
            text,
            origin: Some(origin),
            steering,
            images: Vec::new(),
        });
    }

    /// Adds a piece of text.
    pub(crate) fn say(&mut self, piece: &str) {
        self.said.push_str(piece);
    }

    /// Records a line.
    pub(crate) fn record(&mut self, body: TranscriptBody) {
        self.flush_text();
        self.write(body);
    }

    /// Takes note of the usage of a reply. Later reports of the same reply replace it.
    pub(crate) fn usage_of_reply(&mut self, id: &str, usage: &Usage) {
        if self.reply.as_ref().is_some_and(|(known, _)| known != id) {
            self.flush_usage();
        }
        self.has_replies = true;
        self.reply = Some((id.to_owned(), usage.clone()));
    }

    /// Takes note of the usage of all its work, unless its replies have reported theirs.
    pub(crate) fn total(&mut self, usage: &Usage) {
        if !self.has_replies && usage.tokens() > 0 {
            self.reply = Some((String::new(), usage.clone()));
        }
    }

    /// Records the usage of a turn.
    pub(crate) fn usage(&mut self, usage: &Usage) {
        self.flush();
        self.write(TranscriptBody::Usage(ReplyUsage { usage: Some(usage.clone()), ..ReplyUsage::default() }));
    }

    /// Records a failure.
    pub(crate) fn fail(&mut self, message: String) {
        let error = FailedCall { message, kind: FailedCallKind::Final, usage: None };
        self.record(TranscriptBody::Error(error));
    }

    /// Records the answer.
    pub(crate) fn end(&mut self, text: &str) -> Result<(), FsError> {
        self.flush();
        self.write(TranscriptBody::End { text: text.to_owned() });
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Records what has come so far.
    pub(crate) fn flush(&mut self) {
        self.flush_text();
        self.flush_usage();
    }

    fn flush_text(&mut self) {
        let split = thoughts::split(&std::mem::take(&mut self.said));
        for text in split.thoughts {
            self.write(TranscriptBody::Thinking { text, provider_data: None });
        }
        if !split.text.trim().is_empty() {
            let text = split.text.trim_end().to_owned();
            let (origin, steering, images) = (None, Vec::new(), Vec::new());
            self.write(TranscriptBody::Message { role: Role::Assistant, text, origin, steering, images });
        }
    }

    fn flush_usage(&mut self) {
        if let Some((_, usage)) = self.reply.take() {
            self.write(TranscriptBody::Usage(ReplyUsage { usage: Some(usage), ..ReplyUsage::default() }));
        }
    }

    /// Writes a line. A failure is reported at the end: the program works meanwhile.
    fn write(&mut self, body: TranscriptBody) {
        if let Some(file) = &mut self.file
            && let Err(error) = file.append(&[body])
        {
            self.failed.get_or_insert(error);
        }
    }
}
