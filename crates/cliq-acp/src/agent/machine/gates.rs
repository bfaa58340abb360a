//! Gates: permission requests and forms.

use super::super::gate::{GateChoice, form_values, form_words};
use super::{
    AgentEffect, AgentMachine, Ask, AskStage, AwaitedWords, Gate, GateAnswer, Id, Message, RpcError,
    SessionUpdate, TurnId, Value, json,
};
use crate::calls::Answered;
use agent_client_protocol_schema::v1::{ToolCallUpdate, ToolCallUpdateFields};

impl AgentMachine {
    pub(super) fn gate_opened(&mut self, turn: TurnId, gate: Box<Gate>) {
        let Some(session) = self.session_of(turn) else { return };
        let open = self.sessions.get_mut(&session).and_then(|state| state.turn.as_mut());
        let Some(open) = open.filter(|open| !open.is_cancelled) else { return };
        if !open.asked.insert(gate.id.clone()) {
            return;
        }
        let params = json!(gate.permission(&session));
        self.ask(
            "session/request_permission",
            params,
            Ask { session, turn, gate, stage: AskStage::Permission },
        );
    }

    fn ask(&mut self, method: &str, params: Value, ask: Ask) {
        let id = self.asks.open(ask);
        self.send(Message::request(id, method, params));
    }

    pub(super) fn gate_closed(&mut self, turn: TurnId, gate: &str) {
        self.close_asks(|ask| ask.turn == turn && ask.gate.id == gate);
    }

    pub(super) fn gate_refused(&mut self, turn: TurnId, gate: &Gate, reason: &str) {
        if let Some(session) = self.session_of(turn) {
            self.tell(&session, gate, &format!("The answer was not accepted: {reason}."));
        }
    }

    /// Tells how a gate is answered that was not answered here.
    fn tell(&mut self, session: &str, gate: &Gate, why: &str) {
        let mut content = gate.content.clone();
        content.push(format!("{why} {}", gate.hint).into());
        let fields = ToolCallUpdateFields::new().content(content);
        let update = ToolCallUpdate::new(gate.tool_call.clone(), fields);
        self.update(session, SessionUpdate::ToolCallUpdate(update));
    }

    /// Takes a response of the client. Only a clear choice decides a gate.
    pub(super) fn answered(&mut self, id: &Id, result: Result<Value, RpcError>) {
        let Answered::Open(ask) = self.asks.close(id) else { return };
        let Ask { session, turn, gate, stage } = ask;
        let answer = match result {
            Ok(answer) => answer,
            Err(error) => return self.tell(&session, &gate, &format!("The editor did not ask: {error}.")),
        };
        let decided = match stage {
            AskStage::Permission => match gate.choice(&answer) {
                Some(choice) => return self.chosen(session, turn, gate, choice),
                None => None,
            },
            AskStage::Form => form_values(&answer).map(|inputs| GateAnswer::Approve { inputs }),
            AskStage::Words(to) => form_words(&answer).map(|words| GateAnswer::Changes { to, words }),
        };
        match decided {
            Some(answer) => self.effects.push(AgentEffect::Answer { turn, gate, answer }),
            None => self.tell(&session, &gate, "The review was not answered here."),
        }
    }

    fn chosen(&mut self, session: String, turn: TurnId, gate: Box<Gate>, choice: GateChoice) {
        match choice {
            GateChoice::Reject => {
                self.effects.push(AgentEffect::Answer { turn, gate, answer: GateAnswer::Reject });
            }
            GateChoice::Approve if gate.form.is_empty() || (!self.has_forms && !gate.requires_answers()) => {
                let answer = GateAnswer::Approve { inputs: cliq_protocol::Object::new() };
                self.effects.push(AgentEffect::Answer { turn, gate, answer });
            }
            GateChoice::Approve if self.has_forms => {
                let params = gate.form_request(&session);
                self.ask("elicitation/create", params, Ask { session, turn, gate, stage: AskStage::Form });
            }
            GateChoice::Approve => self.tell(
                &session,
                &gate,
                "The review requires answers, and this editor shows no forms. It was not approved.",
            ),
            GateChoice::Changes(to) if self.has_forms => {
                let params = gate.words_request(&session, &to);
                self.ask(
                    "elicitation/create",
                    params,
                    Ask { session, turn, gate, stage: AskStage::Words(to) },
                );
            }
            GateChoice::Changes(to) => {
                self.await_words(&session, turn, AwaitedWords { gate: gate.id, to });
            }
        }
    }
}
