//! Transcript of an activation: a new one, or that of an interrupted activation that is continued.

use cliq_coder::{Limits, Loop, Step};
use cliq_fs::{TranscriptFile, read_transcript};
use cliq_protocol::{
    FailedCall, FailedCallKind, Origin, Role, ToolResult, TranscriptBody, TranscriptEntry, TranscriptStart,
    Usage, VERSION,
};
use cliq_sdk::{PhaseContext, SteeringMessage};

use super::setup::{Prompt, with_spent};
use super::{ModelLoop, guidance, images, user};
use crate::AnyError;

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
        mut limits: Limits,
        ctx: &PhaseContext,
        prompt: &Prompt<'_>,
        sees_images: bool,
    ) -> Result<(), AnyError> {
        let dispatched = &ctx.dispatch().steering;
        let own: Vec<&SteeringMessage> = dispatched.iter().collect();
        let earlier = earlier(ctx)?;
        let mut start = TranscriptStart {
            version: VERSION,
            run_id: ctx.run_id().clone(),
            phase: ctx.phase().name.clone(),
            activation: ctx.phase().iteration,
            agent: ctx.phase().agent.clone(),
            model: Some(self.api.model().to_owned()),
            tools: self.tools.iter().map(|tool| tool.name.clone()).collect(),
            continues: None,
        };
        let Some(earlier) = earlier else {
            self.create(ctx, &[])?;
            let text = (prompt.render)(dispatched)?;
            let images = if sees_images { images::named(&text, &self.workspace) } else { Vec::new() };
            let task = TranscriptBody::Message {
                role: Role::User,
                text,
                origin: Some(Origin::Task),
                steering: own.iter().map(|message| message.id.clone()).collect(),
                images,
            };
            return self.record(&[TranscriptBody::Start(start), task]);
        };
        start.continues = Some(earlier.activation);
        let entries: Vec<TranscriptEntry> = whole(earlier.entries);
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
                | TranscriptBody::End { .. } => None,
            };
            if let Some(usage) = usage {
                spent.add(usage);
            }
        }
        limits.budget = with_spent(limits.budget, &spent, limits.price.map(|price| price.cost(&spent)));
        self.state = Loop::new(limits);
        bodies().for_each(|body| self.state.apply(body));
        self.display.note(&format!("[continues with the transcript: {} replies]", self.state.replies()));
        let mut kept =
            vec![TranscriptEntry { ts: cliq_fs::now().into(), body: TranscriptBody::Start(start) }];
        kept.extend(entries.iter().filter(|entry| !matches!(entry.body, TranscriptBody::Start(_))).cloned());
        self.create(ctx, &kept)?;
        self.count_interrupted_request(&entries)?;
        let interrupted = self.state.open_calls().iter().map(|call| {
            let (id, text) = (call.id.clone(), INTERRUPTED.to_owned());
            TranscriptBody::ToolResult(ToolResult { id, is_error: true, text, duration_ms: None })
        });
        let interrupted: Vec<TranscriptBody> = interrupted.collect();
        self.record(&interrupted)?;
        self.update_task(&entries, dispatched, prompt)
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

    /// Tells the model what changed since the transcript began: the task, steering messages, a rejected verdict.
    fn update_task(
        &mut self,
        entries: &[TranscriptEntry],
        dispatched: &[SteeringMessage],
        prompt: &Prompt<'_>,
    ) -> Result<(), AnyError> {
        let messages = || {
            entries.iter().filter_map(|entry| match &entry.body {
                TranscriptBody::Message { role: Role::User, text, origin, steering, .. } => {
                    Some((text, *origin, steering))
                }
                _ => None,
            })
        };
        let tasks: Vec<_> = messages().filter(|(_, origin, _)| *origin == Some(Origin::Task)).collect();
        let known = |id: &str| messages().any(|(_, _, ids)| ids.iter().any(|known| known == id));
        if let Some((_, _, ids)) = tasks.first() {
            let first: Vec<SteeringMessage> =
                dispatched.iter().filter(|message| ids.contains(&message.id)).cloned().collect();
            let text = (prompt.render)(&first)?;
            let changed = format!("The task has changed since you began. It is now:\n\n{text}");
            if tasks.iter().all(|(known, _, _)| **known != text && **known != changed) {
                self.record(&[user(Origin::Task, changed)])?;
            }
        }
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
                _ => None,
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
