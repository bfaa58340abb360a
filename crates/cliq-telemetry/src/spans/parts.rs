//! Spans of commands, reviews and merges.

use std::time::Duration;

use cliq_protocol::{CommandEnd, CommandResult, PhaseName, SpanId, Timestamp, WaitingReview};

use super::TraceBuilder;
use crate::conventions::{OPENINFERENCE_KIND, key, own};
use crate::metrics::{Measurement, REVIEW_WAIT};
use crate::span::{Attribute, Span, SpanKind};

/// Review that waits for people.
#[derive(Debug)]
pub(super) struct OpenReview {
    pub(super) phase: PhaseName,
    id: SpanId,
    parent: SpanId,
    since: Timestamp,
    is_question: bool,
}

impl TraceBuilder {
    /// Adds the spans of commands. They ran one after the other, and the last one ended just now.
    pub(super) fn commands_finished(&mut self, phase: &PhaseName, results: &[CommandResult]) {
        let mut end = self.now;
        let parent = self.parent_of(phase);
        let mut spans = Vec::new();
        for result in results.iter().rev().filter(|result| result.skipped != Some(true)) {
            let duration = Duration::from_millis(result.duration_ms.unwrap_or(0));
            let start = before(end, duration);
            let repository = result.extra.get("repo").and_then(|repo| repo.as_str()).unwrap_or_default();
            let mut attributes: Vec<Attribute> = vec![
                (own::COMMAND, result.name.as_str().into()),
                (own::PHASE, phase.as_str().into()),
                (OPENINFERENCE_KIND, "TOOL".into()),
            ];
            if !repository.is_empty() {
                attributes.push((own::REPOSITORY, repository.into()));
            }
            attributes.extend(result.exit_code.map(|code| (own::EXIT_CODE, code.into())));
            let error = match result.end() {
                CommandEnd::Passed | CommandEnd::Skipped => None,
                CommandEnd::Failed(_) => Some("exit"),
                CommandEnd::Killed(_) => Some("signal"),
                CommandEnd::TimedOut(_) => Some("timeout"),
                CommandEnd::NotStarted(_) => Some("not_started"),
                CommandEnd::Unclear => Some("failed"),
            };
            attributes.extend(error.map(|error| (key::ERROR, error.into())));
            spans.push(Span {
                trace: self.ids.id(),
                id: self.ids.command_span(phase, &result.name, repository),
                parent: Some(parent),
                name: format!("command {}", result.name),
                kind: SpanKind::Internal,
                start,
                end,
                attributes,
                links: Vec::new(),
                error: error.map(|error| format!("the command failed: {error}")),
                measurements: Vec::new(),
            });
            end = start;
        }
        spans.into_iter().rev().for_each(|span| self.push(span));
    }

    pub(super) fn review_waits(&mut self, phase: &PhaseName, review: &WaitingReview) {
        if review.reviewers.is_empty() {
            return self.end_review(&review.id);
        }
        let (id, parent) = (self.ids.part_span(phase, "review", &review.id), self.parent_of(phase));
        let since = review.since.time().unwrap_or(self.now);
        let is_question = review.asks.is_some();
        self.reviews.entry(review.id.clone()).or_insert_with(|| OpenReview {
            phase: phase.clone(),
            id,
            parent,
            since,
            is_question,
        });
    }

    /// Ends reviews that a condition holds for.
    pub(super) fn end_reviews(&mut self, is_over: impl Fn(&OpenReview) -> bool) {
        let over: Vec<String> =
            self.reviews.iter().filter(|(_, review)| is_over(review)).map(|(id, _)| id.clone()).collect();
        for review in over {
            self.end_review(&review);
        }
    }

    fn end_review(&mut self, review: &str) {
        let Some(open) = self.reviews.remove(review) else { return };
        let seconds = self.now.since(open.since).as_secs_f64();
        let labels = [(own::QUESTION, open.is_question.to_string())];
        let span = Span {
            trace: self.ids.id(),
            id: open.id,
            parent: Some(open.parent),
            name: format!("review {}", open.phase.whole()),
            kind: SpanKind::Internal,
            start: open.since,
            end: self.now,
            attributes: vec![
                (own::REVIEW, review.into()),
                (own::PHASE, open.phase.as_str().into()),
                (own::QUESTION, open.is_question.into()),
                (OPENINFERENCE_KIND, "CHAIN".into()),
            ],
            links: Vec::new(),
            error: None,
            measurements: vec![Measurement::new(&REVIEW_WAIT, seconds, labels)],
        };
        self.push(span);
    }

    pub(super) fn items_merged(
        &mut self,
        phase: &PhaseName,
        has_conflict: bool,
        files: usize,
        reason: Option<&str>,
    ) {
        let mut attributes: Vec<Attribute> =
            vec![(own::PHASE, phase.as_str().into()), (OPENINFERENCE_KIND, "CHAIN".into())];
        let error = match (has_conflict, reason) {
            (true, _) => Some("conflict"),
            (false, Some(_)) => Some("failed"),
            (false, None) => None,
        };
        if has_conflict {
            attributes.push((own::CONFLICTS, (files as u64).into()));
        }
        attributes.extend(error.map(|error| (key::ERROR, error.into())));
        let span = Span {
            trace: self.ids.id(),
            id: self.ids.part_span(phase, "merge", &self.records.to_string()),
            parent: Some(self.parent_of(phase)),
            name: format!("merge {}", phase.whole()),
            kind: SpanKind::Internal,
            start: self.now,
            end: self.now,
            attributes,
            links: Vec::new(),
            error: error.map(|error| self.failure(reason, &format!("the merge failed: {error}"))),
            measurements: Vec::new(),
        };
        self.push(span);
    }
}

/// Time before another one.
pub(super) fn before(time: Timestamp, duration: Duration) -> Timestamp {
    let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_unix_millis(time.unix_millis().saturating_sub(millis))
}
