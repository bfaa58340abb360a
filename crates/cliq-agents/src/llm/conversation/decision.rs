//! Decision about the conversation that an activation continues. Pure.
#![deny(clippy::wildcard_enum_match_arm)]

use cliq_protocol::{
    ConversationKind, ConversationPartner, ConversationRecord, CountedTokens, PromptState, SentParts,
};

/// Relation of an earlier activation to the present one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Relation {
    /// The same work: its process ended before it was done.
    Interrupted,
    /// Completed, and then sent back.
    Completed,
}

/// Activation whose conversation may be continued.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Candidate {
    pub(super) activation: u32,
    pub(super) relation: Relation,
    /// Record of its conversation, or `None` if this run has none.
    pub(super) record: Option<ConversationRecord>,
}

/// Start of an activation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Opening {
    /// A new conversation with the whole prompt.
    Fresh {
        /// Reason why an earlier conversation is not continued, for people. `None` if there is none to be continued.
        notice: Option<String>,
    },
    /// The conversation of an interrupted process or activation. It contains the task.
    Resumed(Earlier),
    /// The conversation of a completed activation whose work was sent back.
    Continued(Earlier),
}

/// Conversation that is continued.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Earlier {
    /// Number of the activation.
    pub(crate) activation: u32,
    /// Id of the session. `None` for a transcript.
    pub(crate) session: Option<String>,
    /// Contents of its prompts.
    pub(crate) sent: SentParts,
    /// Whether the agent has answered the last prompt.
    pub(crate) has_answered: bool,
    /// Activation that it continues itself.
    pub(crate) continued_from: Option<u32>,
    /// Tokens that the agent has reported for the whole session.
    pub(crate) counted: Option<CountedTokens>,
}

/// Decides by the latest activation that has a record. `candidates` are in the order of preference; `sent_back` is the completed
/// activation whose conversation is to be continued.
pub(super) fn decide(
    partner: &ConversationPartner,
    sent_back: Option<u32>,
    candidates: Vec<Candidate>,
) -> Opening {
    let found = candidates
        .into_iter()
        .find_map(|Candidate { activation, relation, record }| Some((activation, relation, record?)));
    let Some((activation, relation, record)) = found else {
        let notice = sent_back.map(|activation| format!("activation {activation} has no record of one"));
        return Opening::Fresh { notice };
    };
    if let Some(reason) = obstacle(partner, activation, &record) {
        return Opening::Fresh { notice: Some(reason) };
    }
    let earlier = Earlier {
        activation,
        session: record.session,
        sent: record.sent,
        has_answered: record.state == PromptState::Answered,
        continued_from: record.continued_from,
        counted: record.counted,
    };
    match relation {
        Relation::Interrupted => Opening::Resumed(earlier),
        Relation::Completed => Opening::Continued(earlier),
    }
}

/// Returns the reason why a conversation cannot be continued.
fn obstacle(partner: &ConversationPartner, activation: u32, record: &ConversationRecord) -> Option<String> {
    let ConversationPartner { kind, agent, version, cwd } = &record.partner;
    if (*kind, agent) != (partner.kind, &partner.agent) {
        return Some(format!("activation {activation} was done by another agent, {agent}"));
    }
    if *version != partner.version {
        return Some(format!("{agent} has another version than in activation {activation}"));
    }
    if *cwd != partner.cwd {
        return Some(format!("activation {activation} worked in another directory, {cwd}"));
    }
    match kind {
        // Its transcript contains what was sent.
        ConversationKind::Loop => None,
        ConversationKind::Program | ConversationKind::Acp => match (&record.session, record.state) {
            (None, _) => Some(format!("the session of activation {activation} is not known")),
            (Some(_), PromptState::Pending) => Some(format!(
                "activation {activation} ended before the model had begun to reply, so that {agent} may not have received the prompt"
            )),
            (Some(_), PromptState::Accepted | PromptState::Answered) => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use cliq_protocol::{PhaseName, RunId, VERSION};

    use super::*;

    fn partner() -> ConversationPartner {
        ConversationPartner {
            kind: ConversationKind::Program,
            agent: "codex".to_owned(),
            version: Some("1".to_owned()),
            cwd: "/w".into(),
        }
    }

    fn candidate(activation: u32, relation: Relation, state: PromptState) -> Candidate {
        let record = ConversationRecord {
            version: VERSION,
            run_id: RunId::parse("r").expect("an id"),
            phase: PhaseName::parse("work").expect("a name"),
            activation,
            partner: partner(),
            session: Some("s".to_owned()),
            continued_from: None,
            notice: None,
            state,
            sent: SentParts::default(),
            counted: None,
        };
        Candidate { activation, relation, record: Some(record) }
    }

    fn without_record(activation: u32) -> Candidate {
        Candidate { activation, relation: Relation::Interrupted, record: None }
    }

    /// Words for a start.
    fn told(opening: &Opening) -> String {
        match opening {
            Opening::Fresh { notice } => notice.clone().unwrap_or_else(|| "fresh".to_owned()),
            Opening::Resumed(earlier) => format!("resumes {}", earlier.activation),
            Opening::Continued(earlier) => format!("continues {}", earlier.activation),
        }
    }

    #[test]
    fn latest_record_decides() {
        use PromptState::{Accepted, Answered, Pending};
        use Relation::{Completed, Interrupted};
        for (sent_back, candidates, expected) in [
            (None, vec![without_record(1)], "fresh"),
            (Some(1), vec![without_record(2), candidate(1, Completed, Answered)], "continues 1"),
            (Some(1), vec![without_record(2)], "activation 1 has no record of one"),
            (
                Some(1),
                vec![
                    without_record(3),
                    candidate(2, Interrupted, Accepted),
                    candidate(1, Completed, Answered),
                ],
                "resumes 2",
            ),
            (
                Some(1),
                vec![candidate(2, Interrupted, Pending), candidate(1, Completed, Answered)],
                "activation 2 ended before the model had begun to reply, so that codex may not have received the prompt",
            ),
        ] {
            assert_eq!(told(&decide(&partner(), sent_back, candidates)), expected);
        }
    }

    #[test]
    fn another_partner_starts_anew_with_the_reason() {
        type Change = fn(&mut ConversationRecord);
        let changes: [(Change, &str); 4] = [
            (|record| record.partner.agent = "gemini".to_owned(), "done by another agent, gemini"),
            (|record| record.partner.version = None, "another version"),
            (|record| record.partner.cwd = "/elsewhere".into(), "another directory, /elsewhere"),
            (|record| record.session = None, "session of activation 1 is not known"),
        ];
        for (change, expected) in changes {
            let mut candidate = candidate(1, Relation::Completed, PromptState::Answered);
            change(candidate.record.as_mut().expect("a record"));
            let said = told(&decide(&partner(), Some(1), vec![candidate]));
            assert!(said.contains(expected), "{said}");
        }
    }

    #[test]
    fn transcript_is_continued_whatever_was_recorded() {
        let mut partner = partner();
        partner.kind = ConversationKind::Loop;
        let mut candidate = candidate(1, Relation::Completed, PromptState::Pending);
        let record = candidate.record.as_mut().expect("a record");
        (record.partner.kind, record.session) = (ConversationKind::Loop, None);
        assert_eq!(told(&decide(&partner, Some(1), vec![candidate])), "continues 1");
    }
}
