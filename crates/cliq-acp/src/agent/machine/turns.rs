//! Turns: prompts, guidance, cancellation, ends.

use agent_client_protocol_schema::v1::ContentChunk;

use super::{
    AgentEffect, AgentMachine, AwaitedWords, GateAnswer, Id, Message, PendingCall, PendingKind, Prompt,
    PromptResponse, RpcError, SessionUpdate, StopReason, Turn, TurnEnd, TurnId, invalid, json,
};

impl AgentMachine {
    /// Starts a turn, or sends guidance to the one that is open.
    pub(super) fn prompt(&mut self, request: &Id, session: &str, text: String) -> Result<(), RpcError> {
        let state = self.state(session)?;
        if let Some(turn) = state.turn.as_ref() {
            if turn.is_cancelled {
                return Err(invalid("the run is being cancelled: wait for its end"));
            }
            let turn = turn.id;
            let Prompt::Text(text) = Prompt::parse(text) else {
                return Err(invalid("the run is followed already"));
            };
            if text.trim().is_empty() {
                return Err(invalid("the message is empty"));
            }
            let session = session.to_owned();
            let call = self.call(request, PendingKind::Steer(session.clone()));
            self.effects.push(AgentEffect::Steer { call, session, turn, text });
            return Ok(());
        }
        let awaited = state.awaited.take();
        let prompt = match (Prompt::parse(text), awaited) {
            (Prompt::Text(text), Some(AwaitedWords { gate, to })) if !text.trim().is_empty() => {
                Prompt::Answer { gate, answer: GateAnswer::Changes { to, words: text } }
            }
            (prompt, _) => prompt,
        };
        let turn = TurnId(self.next());
        let open =
            Turn { id: turn, request: request.clone(), is_cancelled: false, asked: Default::default() };
        self.state(session)?.turn = Some(open);
        self.effects.push(AgentEffect::Start { turn, session: session.to_owned(), prompt });
        Ok(())
    }

    /// Returns the session of an open turn.
    pub(super) fn session_of(&self, turn: TurnId) -> Option<String> {
        let is_open = |state: &super::SessionState| state.turn.as_ref().is_some_and(|open| open.id == turn);
        self.sessions.iter().find(|(_, state)| is_open(state)).map(|(session, _)| session.clone())
    }

    /// Sends a message to the person.
    pub(super) fn say(&mut self, session: &str, text: &str) {
        let chunk = ContentChunk::new(format!("{text}\n\n").into());
        self.update(session, SessionUpdate::AgentMessageChunk(chunk));
    }

    /// Cancels the turn of a session, and guidance that is not delivered yet.
    pub(super) fn cancel(&mut self, session: &str) {
        let Some(state) = self.sessions.get_mut(session) else { return };
        state.awaited = None;
        let Some(turn) = state.turn.as_mut().filter(|turn| !turn.is_cancelled) else { return };
        turn.is_cancelled = true;
        let turn = turn.id;
        // The client answers them by itself, with `cancelled`.
        self.asks.abandon(|ask| ask.turn == turn);
        let is_guidance = |call: &PendingCall| matches!(&call.kind, PendingKind::Steer(of) if of == session);
        let guidance: Vec<_> =
            self.pending.iter().filter(|(_, call)| is_guidance(call)).map(|(id, _)| *id).collect();
        for call in guidance {
            if let Some(PendingCall { request, .. }) = self.pending.remove(&call) {
                self.respond(request, Ok(json!(PromptResponse::new(StopReason::Cancelled))));
            }
        }
        self.effects.push(AgentEffect::Cancel { turn });
    }

    /// Cancels one request. Only prompts can be cancelled; other requests end by themselves.
    pub(super) fn cancel_request(&mut self, request: &Id) {
        let is_turn =
            |state: &super::SessionState| state.turn.as_ref().is_some_and(|turn| turn.request == *request);
        let session = self.sessions.iter().find(|(_, state)| is_turn(state)).map(|(id, _)| id.clone());
        if let Some(session) = session {
            self.cancel(&session);
        }
    }

    pub(super) fn ended(&mut self, turn: TurnId, end: TurnEnd) {
        let Some(session) = self.session_of(turn) else { return };
        self.close_asks(|ask| ask.turn == turn);
        let open = self.sessions.get_mut(&session).and_then(|state| state.turn.take());
        let Some(open) = open else { return };
        let result = match end {
            TurnEnd::Failed(error) => Err(error),
            // The protocol demands it, however the work ended in the meantime.
            TurnEnd::Answered { meta, .. } if open.is_cancelled => {
                Ok(json!(PromptResponse::new(StopReason::Cancelled).meta(meta)))
            }
            TurnEnd::Answered { reason, meta } => Ok(json!(PromptResponse::new(reason).meta(meta))),
        };
        self.respond(open.request, result);
    }

    /// Ends a turn while its work goes on: the next prompt has the words of a request for changes.
    pub(super) fn await_words(&mut self, session: &str, turn: TurnId, awaited: AwaitedWords) {
        let question = format!("Write the changes that {} is to make as your next message.", awaited.to);
        self.say(session, &question);
        self.effects.push(AgentEffect::Leave { turn });
        if let Some(state) = self.sessions.get_mut(session) {
            state.awaited = Some(awaited);
        }
        self.ended(turn, TurnEnd::Answered { reason: StopReason::EndTurn, meta: None });
    }

    /// Withdraws requests to the client.
    pub(super) fn close_asks(&mut self, matches: impl Fn(&super::Ask) -> bool) {
        let withdrawn = self.asks.abandon(matches);
        for id in withdrawn {
            self.send(Message::notification("$/cancel_request", json!({ "requestId": id })));
        }
    }
}
