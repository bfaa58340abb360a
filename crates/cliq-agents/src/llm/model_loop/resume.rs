//! Transcript of an activation: a new one, or that of an interrupted activation that is continued.

use cliq_coder::{Limits, Loop, Step};
use cliq_fs::{TranscriptFile, read_transcript};
use cliq_protocol::{
    ConversationKind, ConversationPartner, FailedCall, FailedCallKind, Origin, Role, SentParts, ToolResult,
    TranscriptBody, TranscriptEntry, TranscriptStart, Usage, VERSION,
};
use cliq_sdk::{PhaseContext, SteeringMessage};

use super::setup::{Prompt, with_spent};
use super::{ModelLoop, guidance, images, user};
use crate::AnyError;
use crate::llm::conversation::{self, ConversationFile, Opening, notice_of_fresh};
use crate::llm::prompt::Scope;

/// Text of the result of a call that was under way when its process ended.
const INTERRUPTED: &str = "interrupted; outcome unknown: look at the workspace before you call it again";

/// Transcript that an activation continues.
struct Earlier {
    activation: u32,
    entries: Vec<TranscriptEntry>,
}

impl ModelLoop<'_> {
    /// Writes the beginning of the transcript and applies it.
    pub(super) fn begin(
        &mut self,
        limits: Limits,
        ctx: &PhaseContext,
        prompt: &Prompt<'_>,
        sees_images: bool,
    ) -> Result<(), AnyError> {
        let start = TranscriptStart {
            version: VERSION,
            run_id: ctx.run_id().clone(),
            phase: ctx.phase().name.clone(),
            activation: ctx.phase().iteration,
            agent: ctx.phase().agent.clone(),
            model: Some(self.api.model().to_owned()),
            tools: self.tools.iter().map(|tool| tool.name.clone()).collect(),
            continues: None,
            continued_from: None,
        };
        let opening = conversation::opening(ctx, &partner(ctx))?;
        if let Some(earlier) = earlier(ctx)? {
            let sent = match opening {
                Opening::Resumed(found) if found.activation == earlier.activation => Some(found.sent),
                Opening::Resumed(_) | Opening::Continued(_) | Opening::Fresh { .. } => None,
            };
            return self.resume(limits, ctx, prompt, start, earlier, sent);
        }
        let notice = match opening {
            Opening::Continued(ref found) | Opening::Resumed(ref found) => {
                match history(ctx, found.activation)? {
                    Some(past) => return self.go_on(limits, ctx, prompt, start, &opening, found, &past),
                    None => Some(format!("the transcript of activation {} is not there", found.activation)),
                }
            }
            Opening::Fresh { notice } => notice,
        };
        let dispatched = &ctx.dispatch().steering;
        let task = (prompt.render)(dispatched, Scope::Whole)?;
        let fresh = Opening::Fresh { notice: notice.clone() };
        ConversationFile::begin(ctx, partner(ctx), &fresh, None, &task.sent)?;
        self.create(ctx, &[])?;
        let images = if sees_images { images::named(&task.text, &self.workspace) } else { Vec::new() };
        let message = TranscriptBody::Message {
            role: Role::User,
            text: task.text,
            origin: Some(Origin::Task),
            steering: dispatched.iter().map(|message| message.id.clone()).collect(),
            images,
        };
        let system = system(task.system);
        let notice = notice.map(|reason| {
            let text = notice_of_fresh(&reason);
            self.display.act(&text);
            TranscriptBody::Notice { text }
        });
        let lines: Vec<TranscriptBody> = [TranscriptBody::Start(start)]
            .into_iter()
            .chain(notice)
            .chain(self.notices())
            .chain(system)
            .chain([message])
            .collect();
        self.record(&lines)
    }

    /// Goes on in the conversation of a completed activation, with what others found, or of an attempt that failed.
    #[expect(clippy::too_many_arguments, reason = "the parts of one decision")]
    fn go_on(
        &mut self,
        mut limits: Limits,
        ctx: &PhaseContext,
        prompt: &Prompt<'_>,
        mut start: TranscriptStart,
        opening: &Opening,
        found: &conversation::Earlier,
        past: &[TranscriptEntry],
    ) -> Result<(), AnyError> {
        let scope = match opening {
            Opening::Resumed(_) => Scope::Resumed(&found.sent),
            Opening::Continued(_) | Opening::Fresh { .. } => Scope::Feedback(&found.sent),
        };
        let feedback = (prompt.render)(&ctx.dispatch().steering, scope)?;
        ConversationFile::begin(ctx, partner(ctx), opening, None, &feedback.sent)?;
        self.restore(&mut limits, past);
        self.display.act(&format!("conversation: continued from activation {}", found.activation));
        start.continued_from = Some(found.activation);
        let new = ctx.dispatch().steering.iter().map(|message| message.id.clone());
        let message = TranscriptBody::Message {
            role: Role::User,
            text: feedback.text,
            origin: Some(Origin::Feedback),
            steering: new.filter(|id| !found.sent.steering.contains(id)).collect(),
            images: Vec::new(),
        };
        // Calls of a failed attempt that have no result.
        let interrupted = self.interrupted_calls();
        let ts = cliq_fs::now();
        let lines = [TranscriptBody::Start(start)].into_iter().chain(interrupted).chain([message]);
        let entries: Vec<TranscriptEntry> =
            lines.map(|body| TranscriptEntry { ts: ts.into(), body }).collect();
        // All at once: a transcript without the message would not have the task.
        self.create(ctx, &entries)?;
        entries.iter().for_each(|entry| self.state.apply(&entry.body));
        Ok(())
    }

    /// Goes on with the transcript of an interrupted activation.
    fn resume(
        &mut self,
        mut limits: Limits,
        ctx: &PhaseContext,
        prompt: &Prompt<'_>,
        mut start: TranscriptStart,
        earlier: Earlier,
        sent: Option<SentParts>,
    ) -> Result<(), AnyError> {
        let entries: Vec<TranscriptEntry> = whole(earlier.entries);
        start.continues = Some(earlier.activation);
        start.continued_from = entries.iter().find_map(continued_from);
        let past = match start.continued_from {
            Some(activation) => history(ctx, activation)?.ok_or_else(|| {
                format!("the transcript of activation {activation}, which this one continues, is not there")
            })?,
            None => Vec::new(),
        };
        let all: Vec<TranscriptEntry> = past.iter().chain(&entries).cloned().collect();
        self.restore(&mut limits, &all);
        self.display.note(&format!("[continues with the transcript: {} replies]", self.state.replies()));
        let mut kept =
            vec![TranscriptEntry { ts: cliq_fs::now().into(), body: TranscriptBody::Start(start.clone()) }];
        kept.extend(entries.iter().filter(|entry| !matches!(entry.body, TranscriptBody::Start(_))).cloned());
        let dispatched = &ctx.dispatch().steering;
        // What changed in a conversation that had feedback is found by its record.
        let update = match (&sent, start.continued_from) {
            (Some(sent), Some(_)) => Some((prompt.render)(dispatched, Scope::Resumed(sent))?),
            (_, _) => None,
        };
        let known = sent.unwrap_or_default();
        let is_changed = update.as_ref().is_some_and(|update| {
            update.sent.parts.iter().any(|(name, digest)| known.parts.get(name) != Some(digest))
        });
        let as_it_was = conversation::Earlier {
            activation: earlier.activation,
            session: None,
            sent: known,
            has_answered: false,
            continued_from: start.continued_from,
            counted: None,
        };
        let now = match &update {
            Some(update) => update.sent.clone(),
            None => (prompt.render)(dispatched, Scope::Whole)?.sent,
        };
        ConversationFile::begin(ctx, partner(ctx), &Opening::Resumed(as_it_was), None, &now)?;
        self.create(ctx, &kept)?;
        self.count_interrupted_request(&entries)?;
        let interrupted = self.interrupted_calls();
        self.record(&interrupted)?;
        match update {
            Some(update) if is_changed => {
                self.record(&[user(Origin::Task, update.text)])?;
                self.add_missing(&all, dispatched, prompt)
            }
            Some(_) => self.add_missing(&all, dispatched, prompt),
            None => {
                self.update_task(&all, dispatched, prompt)?;
                self.add_missing(&all, dispatched, prompt)
            }
        }
    }

    /// Applies the lines of earlier activations. What they used counts for the limits.
    fn restore(&mut self, limits: &mut Limits, entries: &[TranscriptEntry]) {
        let bodies = || entries.iter().map(|entry| &entry.body);
        let mut spent = Usage::default();
        for body in bodies() {
            let usage = match body {
                TranscriptBody::Usage(end) => end.usage.as_ref(),
                TranscriptBody::Error(error) => error.usage.as_ref(),
                TranscriptBody::Start(_)
                | TranscriptBody::Message { .. }
                | TranscriptBody::Thinking { .. }
                | TranscriptBody::ToolCall(_)
                | TranscriptBody::ToolResult(_)
                | TranscriptBody::Permission(_)
                | TranscriptBody::Notice { .. }
                | TranscriptBody::End { .. } => None,
            };
            if let Some(usage) = usage {
                spent.add(usage);
            }
        }
        limits.budget = with_spent(limits.budget, &spent, limits.price.map(|price| price.cost(&spent)));
        self.state = Loop::new(limits.clone());
        for body in bodies() {
            if let (TranscriptBody::ToolResult(result), Some(found)) = (body, &mut self.instructions) {
                found.note_result(&result.text);
            }
            self.state.apply(body);
        }
    }

    /// Results of calls that were under way when their process ended.
    /// A question to a person is asked again instead: its outcome is recorded.
    fn interrupted_calls(&self) -> Vec<TranscriptBody> {
        let interrupted = self.state.open_calls().iter().filter(|call| !self.is_question(call)).map(|call| {
            TranscriptBody::ToolResult(ToolResult::new(call.id.clone(), Err(INTERRUPTED.to_owned())))
        });
        interrupted.collect()
    }

    /// Counts the request that was under way when the earlier process was killed: nobody reported its usage.
    fn count_interrupted_request(&mut self, entries: &[TranscriptEntry]) -> Result<(), AnyError> {
        let is_counted = matches!(
            entries.last().map(|entry| &entry.body),
            Some(TranscriptBody::Error(_) | TranscriptBody::End { .. } | TranscriptBody::Start(_)) | None
        );
        if is_counted || !matches!(self.state.next(), Step::Ask { .. }) {
            return Ok(());
        }
        let usage = Usage {
            provider: Some(self.api.provider().to_owned()),
            model: Some(self.api.model().to_owned()),
            tokens_in: self.state.estimate(),
            estimated: true,
            ..Usage::default()
        };
        self.meter.report(usage.clone());
        self.meter.settle();
        let message = "the process was ended before the reply was complete".to_owned();
        let kind = FailedCallKind::Passing;
        self.record(&[TranscriptBody::Error(FailedCall { message, kind, usage: Some(usage) })])
    }

    /// Tells the model that the task has changed since the transcript began.
    fn update_task(
        &mut self,
        entries: &[TranscriptEntry],
        dispatched: &[SteeringMessage],
        prompt: &Prompt<'_>,
    ) -> Result<(), AnyError> {
        let tasks: Vec<_> =
            messages(entries).filter(|(_, origin, _)| *origin == Some(Origin::Task)).collect();
        let Some((_, _, ids)) = tasks.first() else { return Ok(()) };
        let first: Vec<SteeringMessage> =
            dispatched.iter().filter(|message| ids.contains(&message.id)).cloned().collect();
        let now = (prompt.render)(&first, Scope::Whole)?;
        let whole = now.whole();
        // Transcripts of earlier versions have role and task in one message.
        let (is_same_system, text) = match self.state.system() {
            Some(known) => (known == now.system, &now.text),
            None => (true, &whole),
        };
        let changed = format!("The task has changed since you began. It is now:\n\n{whole}");
        let has = |text: &str| tasks.iter().any(|(known, _, _)| *known == text);
        let is_known = has(&changed) || is_same_system && has(text);
        if !is_known {
            self.record(&[user(Origin::Task, changed)])?;
        }
        Ok(())
    }

    /// Adds what the conversation does not contain: steering messages, a rejected verdict.
    fn add_missing(
        &mut self,
        entries: &[TranscriptEntry],
        dispatched: &[SteeringMessage],
        prompt: &Prompt<'_>,
    ) -> Result<(), AnyError> {
        let known = |id: &str| messages(entries).any(|(_, _, ids)| ids.iter().any(|known| known == id));
        let new: Vec<SteeringMessage> =
            dispatched.iter().filter(|message| !known(&message.id)).cloned().collect();
        if !new.is_empty() {
            self.record(&[guidance(&new)])?;
        }
        match &prompt.again {
            Some(question) => self.again(question.clone()),
            None => Ok(()),
        }
    }

    fn create(&mut self, ctx: &PhaseContext, entries: &[TranscriptEntry]) -> Result<(), AnyError> {
        if let Some(path) = &ctx.dispatch().transcript_file {
            self.transcript = Some(TranscriptFile::create(path, entries)?);
        }
        Ok(())
    }

    /// Images that the messages of the conversation name.
    pub(super) fn named_images(&self) -> Vec<String> {
        let turns = self.state.turns().iter();
        turns
            .filter_map(|turn| match turn {
                cliq_coder::Turn::User { images, .. } => Some(images.clone()),
                cliq_coder::Turn::Results(results) => {
                    Some(results.iter().flat_map(|result| result.images.iter().cloned()).collect())
                }
                cliq_coder::Turn::Assistant(_) => None,
            })
            .flatten()
            .collect()
    }
}

/// Finds the transcript to continue: that of this activation, if its process was started before, or the latest of the interrupted ones.
fn earlier(ctx: &PhaseContext) -> Result<Option<Earlier>, AnyError> {
    let Some(path) = &ctx.dispatch().transcript_file else { return Ok(None) };
    let phase = ctx.phase();
    let of = |activation: u32| path.with_file_name(format!("{}.{activation}.jsonl", phase.name));
    let interrupted = phase.continues.map(|first| (first..phase.iteration).rev()).into_iter().flatten();
    let places = [(phase.iteration, path.clone())].into_iter();
    for (activation, path) in places.chain(interrupted.map(|number| (number, of(number)))) {
        let Some(entries) = read_transcript(&path)? else { continue };
        let is_of_this_task = entries.iter().any(|entry| match &entry.body {
            TranscriptBody::Start(start) => start.run_id == *ctx.run_id() && start.agent == phase.agent,
            _ => false,
        });
        let has_task = entries.iter().any(|entry| matches!(entry.body, TranscriptBody::Message { .. }));
        if is_of_this_task && has_task {
            return Ok(Some(Earlier { activation, entries }));
        }
    }
    Ok(None)
}

/// Messages of the user in a transcript: text, reason, ids of steering messages.
fn messages(entries: &[TranscriptEntry]) -> impl Iterator<Item = (&String, Option<Origin>, &Vec<String>)> {
    entries.iter().filter_map(|entry| match &entry.body {
        TranscriptBody::Message { role: Role::User, text, origin, steering, .. } => {
            Some((text, *origin, steering))
        }
        _ => None,
    })
}

/// Line with the instructions before a conversation, or `None` if there are none.
fn system(text: String) -> Option<TranscriptBody> {
    (!text.is_empty()).then(|| TranscriptBody::Message {
        role: Role::System,
        text,
        origin: None,
        steering: Vec::new(),
        images: Vec::new(),
    })
}

/// Partner of the conversation: cliq itself keeps it.
fn partner(ctx: &PhaseContext) -> ConversationPartner {
    ConversationPartner {
        kind: ConversationKind::Loop,
        agent: ctx.phase().agent.clone(),
        version: None,
        cwd: ctx.workspace().to_owned(),
    }
}

/// Activation that a transcript continues, by its first line.
fn continued_from(entry: &TranscriptEntry) -> Option<u32> {
    match &entry.body {
        TranscriptBody::Start(start) => start.continued_from,
        _ => None,
    }
}

/// Returns the lines of a conversation up to the end of an activation: those of its transcript, after those of the activations that it
/// continues. `None` if a transcript is not there, or is that of another run.
fn history(ctx: &PhaseContext, activation: u32) -> Result<Option<Vec<TranscriptEntry>>, AnyError> {
    let Some(path) = &ctx.dispatch().transcript_file else { return Ok(None) };
    let (mut parts, mut next) = (Vec::new(), Some(activation));
    while let Some(activation) = next {
        let path = path.with_file_name(format!("{}.{activation}.jsonl", ctx.phase().name));
        let entries = read_transcript(&path)?.unwrap_or_default();
        let is_own = entries.iter().any(
            |entry| matches!(&entry.body, TranscriptBody::Start(start) if start.run_id == *ctx.run_id()),
        );
        if !is_own {
            return Ok(None);
        }
        // Numbers decrease, so that this ends whatever the files contain.
        next = entries.iter().find_map(continued_from).filter(|before| *before < activation);
        parts.push(whole(entries));
    }
    Ok(Some(parts.into_iter().rev().flatten().collect()))
}

/// Removes lines of a reply whose end is missing.
fn whole(mut entries: Vec<TranscriptEntry>) -> Vec<TranscriptEntry> {
    let is_part = |entry: &TranscriptEntry| {
        matches!(
            entry.body,
            TranscriptBody::Thinking { .. }
                | TranscriptBody::ToolCall(_)
                | TranscriptBody::Message { role: Role::Assistant, .. }
        )
    };
    while entries.last().is_some_and(is_part) {
        entries.pop();
    }
    entries
}
