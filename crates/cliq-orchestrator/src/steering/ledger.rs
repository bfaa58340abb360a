//! Ledger of the steering messages of a run and their deliveries. Pure.

use cliq_protocol::{MAX_STEERING_MESSAGES, PhaseName, SteeringMessage, WireTime};
use serde::Serialize;

/// Delivery of a steering message to an activation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SteeringDelivery {
    /// Phase that received it.
    pub phase: PhaseName,
    /// Number of the activation, 1-based.
    pub activation: u32,
    /// Time of the delivery.
    pub ts: WireTime,
}

/// A steering message with its deliveries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SteeringView {
    /// Message.
    #[serde(flatten)]
    pub message: SteeringMessage,
    /// Deliveries, oldest first.
    pub delivered: Vec<SteeringDelivery>,
    /// Whether no activation has received it.
    pub pending: bool,
}

/// Steering messages of a run, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(transparent)]
pub struct SteeringLedger {
    messages: Vec<SteeringView>,
}

/// Activation that receives a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Delivery<'a> {
    pub(crate) id: &'a str,
    pub(crate) phase: &'a PhaseName,
    pub(crate) activation: u32,
}

impl SteeringLedger {
    /// Whether the run has received no message.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Messages, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &SteeringView> + ExactSizeIterator {
        self.messages.iter()
    }

    /// Messages that no activation has received, oldest first.
    pub fn pending(&self) -> impl Iterator<Item = &SteeringView> {
        self.messages.iter().filter(|view| view.pending)
    }

    /// Returns the message with an id.
    #[must_use]
    pub fn find(&self, id: &str) -> Option<&SteeringView> {
        self.messages.iter().find(|view| view.message.id == id)
    }

    /// Whether the run takes no more messages.
    pub(crate) fn is_full(&self) -> bool {
        self.messages.len() >= MAX_STEERING_MESSAGES
    }

    /// Adds a message, unless it has the id of another.
    pub(crate) fn receive(&mut self, message: SteeringMessage) {
        if self.find(&message.id).is_none() {
            self.messages.push(SteeringView { message, delivered: Vec::new(), pending: true });
        }
    }

    /// Returns the messages for an activation of a phase that starts now. A gate judges what others made of theirs and receives all.
    pub(crate) fn for_activation(&self, phase: &PhaseName, is_gate: bool) -> Vec<SteeringMessage> {
        let messages = self.messages.iter().map(|view| &view.message);
        messages.filter(|message| is_gate || message.is_for(phase)).cloned().collect()
    }

    /// Whether a delivery is one: the message is for the phase, and the activation has not received it before.
    pub(crate) fn is_delivery(&self, new: Delivery<'_>) -> bool {
        self.find(new.id).is_some_and(|view| {
            let is_known =
                |known: &SteeringDelivery| known.phase == *new.phase && known.activation == new.activation;
            view.message.is_for(new.phase) && !view.delivered.iter().any(is_known)
        })
    }

    /// Records a delivery. Does nothing if it is none.
    pub(crate) fn deliver(&mut self, new: Delivery<'_>, ts: &WireTime) {
        if !self.is_delivery(new) {
            return;
        }
        if let Some(view) = self.messages.iter_mut().find(|view| view.message.id == new.id) {
            view.pending = false;
            let (phase, activation, ts) = (new.phase.clone(), new.activation, ts.clone());
            view.delivered.push(SteeringDelivery { phase, activation, ts });
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use cliq_protocol::Timestamp;

    use super::*;

    fn name(phase: &str) -> PhaseName {
        phase.parse().expect("a name")
    }

    fn message(id: &str, phase: Option<&str>) -> SteeringMessage {
        let ts = WireTime::from(Timestamp::UNIX_EPOCH);
        SteeringMessage { id: id.into(), ts, from: "Ana".into(), text: id.into(), phase: phase.map(name) }
    }

    fn ids(messages: &[SteeringMessage]) -> Vec<&str> {
        messages.iter().map(|message| message.id.as_str()).collect()
    }

    #[test]
    fn an_activation_receives_all_messages_for_its_phase_in_order() {
        let mut ledger = SteeringLedger::default();
        for (id, phase) in [("1", None), ("2", Some("a")), ("3", Some("b")), ("1", Some("b")), ("4", None)] {
            ledger.receive(message(id, phase));
        }
        assert_eq!(ids(&ledger.for_activation(&name("a"), false)), ["1", "2", "4"]);
        assert_eq!(ids(&ledger.for_activation(&name("b"), false)), ["1", "3", "4"]);
        assert_eq!(ids(&ledger.for_activation(&name("g"), true)), ["1", "2", "3", "4"], "a gate");
    }

    #[test]
    fn a_message_is_delivered_once_to_an_activation() {
        let (mut ledger, now) = (SteeringLedger::default(), WireTime::from(Timestamp::from_unix_millis(9)));
        ledger.receive(message("1", None));
        ledger.receive(message("2", Some("a")));
        let (a, b) = (name("a"), name("b"));
        let to = |id, phase, activation| Delivery { id, phase, activation };
        assert!(!ledger.is_delivery(to("2", &b, 1)), "for another phase");
        assert!(!ledger.is_delivery(to("3", &a, 1)), "no such message");
        for delivery in [to("1", &a, 1), to("1", &a, 1), to("2", &b, 1), to("1", &b, 1), to("1", &a, 2)] {
            ledger.deliver(delivery, &now);
        }
        let view = ledger.find("1").expect("a message");
        let delivered: Vec<_> = view.delivered.iter().map(|d| (d.phase.as_str(), d.activation)).collect();
        assert_eq!(delivered, [("a", 1), ("b", 1), ("a", 2)]);
        assert!(!view.pending);
        assert_eq!(ledger.pending().map(|view| view.message.id.as_str()).collect::<Vec<_>>(), ["2"]);
    }

    proptest! {
        /// Checks that each activation receives each message for its phase once, in order, and that the ledger is the same when it is
        /// rebuilt from its records. Receipts, starts, live reads and ends come in any order.
        #[test]
        fn activations_receive_each_message_once(
            steps in proptest::collection::vec((0..5_u8, 0..3_usize, proptest::option::of(0..2_usize)), 1..80),
        ) {
            let phases = [name("a"), name("b"), name("c")];
            let now = WireTime::from(Timestamp::UNIX_EPOCH);
            let mut ledger = SteeringLedger::default();
            // Per phase: number of activations, and what the present one has received.
            let mut active: Vec<(u32, Option<Vec<String>>)> = vec![(0, None); phases.len()];
            let mut records: Vec<Result<SteeringMessage, (String, usize, u32)>> = Vec::new();
            for (n, (step, which, only)) in steps.into_iter().enumerate() {
                match step {
                    // A message, sent twice.
                    0 | 1 => {
                        let new = message(&n.to_string(), only.map(|only| phases[only].as_str()));
                        records.push(Ok(new.clone()));
                        ledger.receive(new.clone());
                        ledger.receive(new.clone());
                        for (phase, (activation, received)) in phases.iter().zip(&mut active) {
                            // Agents that listen read it, all but the last.
                            let Some(received) = received.as_mut().filter(|_| *phase != phases[2]) else { continue };
                            let delivery = Delivery { id: &new.id, phase, activation: *activation };
                            if ledger.is_delivery(delivery) {
                                ledger.deliver(delivery, &now);
                                received.push(new.id.clone());
                                let place = phases.iter().position(|known| known == phase).unwrap_or(0);
                                records.push(Err((new.id.clone(), place, *activation)));
                            }
                        }
                    }
                    // A start, after an end or a kill.
                    2 | 3 => {
                        let (activation, received) = &mut active[which];
                        *activation += 1;
                        let messages = ledger.for_activation(&phases[which], false);
                        let all: Vec<&SteeringView> =
                            ledger.iter().filter(|view| view.message.is_for(&phases[which])).collect();
                        prop_assert_eq!(messages.len(), all.len());
                        *received = Some(messages.iter().map(|message| message.id.clone()).collect());
                        for message in messages {
                            let delivery =
                                Delivery { id: &message.id, phase: &phases[which], activation: *activation };
                            prop_assert!(ledger.is_delivery(delivery), "twice: {:?}", delivery);
                            ledger.deliver(delivery, &now);
                            records.push(Err((message.id.clone(), which, *activation)));
                        }
                    }
                    // The end of an activation.
                    _ => active[which].1 = None,
                }
            }
            for (phase, (activation, received)) in phases.iter().zip(&active) {
                let Some(received) = received else { continue };
                let recorded = |view: &&SteeringView| {
                    view.delivered.iter().filter(|d| d.phase == *phase && d.activation == *activation).count() == 1
                };
                let ids: Vec<String> =
                    ledger.iter().filter(recorded).map(|view| view.message.id.clone()).collect();
                prop_assert_eq!(&ids, received);
            }
            prop_assert_eq!(ledger.pending().count(), ledger.iter().filter(|view| view.delivered.is_empty()).count());
            let mut rebuilt = SteeringLedger::default();
            for record in &records {
                match record {
                    Ok(message) => rebuilt.receive(message.clone()),
                    Err((id, phase, activation)) => {
                        rebuilt.deliver(Delivery { id, phase: &phases[*phase], activation: *activation }, &now);
                    }
                }
            }
            prop_assert_eq!(rebuilt, ledger);
        }
    }
}
