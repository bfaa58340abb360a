//! Decisions about a complete reply: answer, calls, or neither.

use cliq_protocol::{ReplyKind, ReplyUsage, ToolCall};

use super::{Loop, MAX_CUT_OFF, MAX_USELESS, Owed, Stage};
use crate::conversation::{Reply, Turn};
use crate::outcome::Failure;

/// Starts of tool calls in texts. A reply that is cut off within one is no part of an answer.
const MARKS: &[&str] = &[
    "<tool_call>",
    "<function=",
    "<function_call>",
    "<|tool_call",
    "<|python_tag|>",
    "<|channel|>",
    "<｜tool",
    "[TOOL_CALLS]",
    "<think",
];

/// Reason why a reply cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Complaint {
    /// Neither text nor calls.
    Empty,
    /// The model refused.
    Refused { detail: Option<String> },
    /// Calls when there are no tools.
    Calls { names: Vec<String> },
    /// A summary that was cut off.
    CutOff { detail: Option<String> },
}

impl Complaint {
    /// Message for the model.
    pub(super) fn message(&self, stage: &Stage) -> String {
        let why = match self {
            Self::Empty => "Your reply was empty.".to_owned(),
            Self::Refused { .. } => {
                "You refused to reply. If parts of the task can be done, do these, and say which cannot."
                    .to_owned()
            }
            Self::Calls { names } => {
                let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
                format!(
                    "You called {}, but you cannot call tools now: the call was not run.",
                    names.join(", ")
                )
            }
            Self::CutOff { .. } => "Your reply was cut off before its end: it was too long.".to_owned(),
        };
        let request = match stage {
            Stage::Work => "Continue with your task. Give your answer complete, from its beginning.",
            Stage::Final { .. } => "Give your complete answer as text: what is done, and what is left open.",
            Stage::Summary => "Answer with the summary only, as text, and make it short.",
        };
        format!("{why} {request}")
    }

    fn failure(self, stage: &Stage) -> Failure {
        let failure = match self {
            Self::Empty => Failure::Empty,
            Self::Refused { detail } => Failure::Refused { detail },
            Self::Calls { .. } => Failure::Calls,
            Self::CutOff { detail } => Failure::CutOff { detail },
        };
        match stage {
            Stage::Summary => Failure::Summary(Box::new(failure)),
            Stage::Work | Stage::Final { .. } => failure,
        }
    }
}

/// Returns the kind of a reply. The content decides: a reply with calls is not an answer, even if it was recorded as one.
fn kind_of(recorded: Option<ReplyKind>, reply: &Reply) -> ReplyKind {
    let by_content = match (reply.calls.is_empty(), reply.text.trim().is_empty()) {
        (false, _) => ReplyKind::Calls,
        (true, true) => ReplyKind::Empty,
        (true, false) => ReplyKind::Answer,
    };
    match recorded {
        Some(kind @ (ReplyKind::CutOff | ReplyKind::Refused)) => kind,
        // Calls that the transcript does not have.
        Some(ReplyKind::Calls) if by_content == ReplyKind::Answer => ReplyKind::Empty,
        Some(ReplyKind::Empty) => {
            if by_content == ReplyKind::Calls {
                by_content
            } else {
                ReplyKind::Empty
            }
        }
        Some(ReplyKind::Answer | ReplyKind::Calls) | None => by_content,
    }
}

/// Whether a mark begins in `first` and ends in `second`.
fn splits_a_mark(first: &str, second: &str) -> bool {
    MARKS.iter().any(|mark| {
        (1..mark.len())
            .filter(|&at| mark.is_char_boundary(at))
            .any(|at| first.ends_with(&mark[..at]) && second.starts_with(&mark[at..]))
    })
}

impl Loop {
    pub(super) fn finish_reply(&mut self, end: &ReplyUsage) {
        let reply = std::mem::take(&mut self.partial);
        self.replies = self.replies.saturating_add(1);
        self.too_long = 0;
        self.is_ended = false;
        if let Some(usage) = &end.usage {
            self.learn_ratio(usage);
            self.spent.add(usage);
            self.last = usage.clone();
        }
        let kind = kind_of(end.kind, &reply);
        if !reply.text.trim().is_empty() {
            self.last_text = format!("{}{}", self.parts, reply.text);
        }
        match (self.stage, kind) {
            (_, ReplyKind::Empty) => self.complain(reply, Complaint::Empty),
            (_, ReplyKind::Refused) => {
                self.complain(reply, Complaint::Refused { detail: end.detail.clone() });
            }
            (Stage::Work, ReplyKind::Calls) if self.limits.has_tools => self.open_calls_of(reply, false),
            (_, ReplyKind::Calls) => self.complain_about_calls(reply),
            (Stage::Summary, ReplyKind::CutOff) => {
                self.complain(reply, Complaint::CutOff { detail: end.detail.clone() });
            }
            (Stage::Work, ReplyKind::CutOff) if !reply.calls.is_empty() && self.limits.has_tools => {
                self.cuts += 1;
                if self.cuts > MAX_CUT_OFF {
                    self.failure = Some(Failure::CutOff { detail: end.detail.clone() });
                    // Calls without results would be refused by the next request.
                    self.push(Turn::Assistant(Reply { calls: Vec::new(), ..reply }));
                } else {
                    self.open_calls_of(reply, true);
                }
            }
            (Stage::Work | Stage::Final { .. }, ReplyKind::CutOff) if !reply.calls.is_empty() => {
                self.complain_about_calls(reply);
            }
            (stage @ (Stage::Work | Stage::Final { .. }), ReplyKind::CutOff) => {
                self.cut_off(&stage, reply, end.detail.clone());
            }
            (Stage::Summary, ReplyKind::Answer) => self.condense(&reply.text),
            (Stage::Work, ReplyKind::Answer) => self.answered(reply),
            (Stage::Final { limit, .. }, ReplyKind::Answer) => {
                self.parts.clear();
                self.stage = Stage::Final { limit, is_over: true };
                self.push(Turn::Assistant(reply));
            }
        }
    }

    fn answered(&mut self, reply: Reply) {
        let is_call = splits_a_mark(&self.parts, &reply.text);
        let answer = std::mem::take(&mut self.parts) + &reply.text;
        let repeated = self.repetition.text(&answer);
        self.push(Turn::Assistant(reply));
        if is_call {
            self.owed = Owed::Whole;
            return;
        }
        (self.useless, self.cuts) = (0, 0);
        if let Some(repeated) = repeated {
            self.failure = Some(Failure::Repetition(repeated));
        }
        self.answer = Some(answer);
    }

    /// Takes the calls of a reply. Those of a reply that was cut off are not run: the last one may be incomplete.
    fn open_calls_of(&mut self, reply: Reply, is_cut_off: bool) {
        self.parts.clear();
        if !is_cut_off {
            (self.useless, self.cuts) = (0, 0);
        }
        self.are_calls_cut = is_cut_off;
        self.repetition.calls(&reply.calls);
        self.open.clone_from(&reply.calls);
        self.push(Turn::Assistant(reply));
    }

    /// Keeps a text that was cut off, and requests its continuation once.
    fn cut_off(&mut self, stage: &Stage, reply: Reply, detail: Option<String>) {
        self.cuts += 1;
        // A continuation of thoughts would look like an answer.
        let are_thoughts = reply.text.trim().is_empty();
        self.parts.push_str(&reply.text);
        if !are_thoughts {
            self.push(Turn::Assistant(reply));
        }
        match stage {
            Stage::Final { limit, .. } if self.cuts > MAX_CUT_OFF => {
                self.stage = Stage::Final { limit: *limit, is_over: true };
            }
            Stage::Work | Stage::Summary if self.cuts > MAX_CUT_OFF => {
                self.failure = Some(Failure::CutOff { detail });
            }
            Stage::Work | Stage::Summary | Stage::Final { .. } => {
                self.owed = if are_thoughts { Owed::Whole } else { Owed::Continuation };
            }
        }
    }

    fn complain_about_calls(&mut self, reply: Reply) {
        let mut names: Vec<String> = reply.calls.iter().map(|call: &ToolCall| call.name.clone()).collect();
        names.dedup();
        self.complain(reply, Complaint::Calls { names });
    }

    /// Asks once more for a reply that can be used.
    fn complain(&mut self, reply: Reply, complaint: Complaint) {
        self.useless += 1;
        self.parts.clear();
        if !reply.text.trim().is_empty() {
            self.push(Turn::Assistant(Reply { calls: Vec::new(), ..reply }));
        }
        if self.useless < MAX_USELESS {
            self.owed = Owed::Retry(complaint);
            return;
        }
        match self.stage {
            // The limit is the reason that counts.
            Stage::Final { limit, .. } => self.stage = Stage::Final { limit, is_over: true },
            Stage::Work | Stage::Summary => self.failure = Some(complaint.failure(&self.stage)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_overrules_the_recorded_kind() {
        let call = || ToolCall {
            id: "1".into(),
            name: "search".into(),
            arguments: Default::default(),
            invalid: None,
            provider_data: None,
        };
        let reply = |text: &str, calls| Reply { text: text.into(), calls, ..Reply::default() };
        for (recorded, reply, kind) in [
            (None, reply("Yes.", vec![]), ReplyKind::Answer),
            (None, reply("Yes.", vec![call()]), ReplyKind::Calls),
            (None, reply(" \n", vec![]), ReplyKind::Empty),
            (Some(ReplyKind::Answer), reply("Yes.", vec![call()]), ReplyKind::Calls),
            (Some(ReplyKind::Answer), reply("", vec![]), ReplyKind::Empty),
            (Some(ReplyKind::Calls), reply("Yes.", vec![]), ReplyKind::Empty),
            (Some(ReplyKind::CutOff), reply("Yes", vec![call()]), ReplyKind::CutOff),
            (Some(ReplyKind::Refused), reply("No.", vec![]), ReplyKind::Refused),
            (Some(ReplyKind::Empty), reply("hm", vec![]), ReplyKind::Empty),
        ] {
            assert_eq!(kind_of(recorded, &reply), kind, "{recorded:?} {reply:?}");
        }
    }

    #[test]
    fn mark_across_a_cut_is_found() {
        assert!(splits_a_mark("I look. <tool_", "call>{}</tool_call>"));
        assert!(splits_a_mark("<", "｜tool▁calls▁begin｜>"));
        assert!(splits_a_mark("[TOOL", "_CALLS] []"));
        assert!(!splits_a_mark("1 <", " 2"));
        assert!(!splits_a_mark("", "<tool_call>"));
    }
}
