//! Steering: guidance for a run that has not ended (docs/steering.md).
//!
//! A sender appends a message to the run's inbox ([`steer`]). The orchestrator records it in the journal, passes it to activations that
//! work and to those that start later, and records each delivery. Messages are no input of the machine: they change no rule.

mod ledger;
mod reads;
mod send;

pub(crate) use ledger::Delivery;
pub use ledger::{SteeringDelivery, SteeringLedger, SteeringView};
pub(crate) use reads::{FileRead, ReadWatch};
pub use send::{SteerError, SteeringReceipt, accepts_steering, steer};
