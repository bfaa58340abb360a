//! The state machine of a gate (docs/team-yml.md).
//!
//! A gate evaluates: its commands run, then its agent (or a person) renders a verdict. PASS ends it, ROUTE sends the
//! work back to another phase and evaluates again afterwards, ESCALATE calls a person. It has a budget of
//! evaluations; a ROUTE on the last one escalates. An answer that is not a valid verdict is given back once per
//! evaluation, with the reason, and costs no evaluation; a second one escalates.
//!
//! [`Gate::step`] takes what happened and returns what to do. There is no IO here, no clock and no process: the same
//! events always give the same effects, so a run is resumed by replaying them.
//!
//! ```
//! use cliq_gate::{Gate, GateEffect, GateEvent, GateSpec};
//! # use cliq_protocol::PhaseName;
//! let developer = PhaseName::parse("developer")?;
//! let mut gate = Gate::new(GateSpec { max_iterations: 3, route_targets: vec![developer.clone()], human: false, required: Vec::new() });
//! assert_eq!(gate.step(GateEvent::Start), GateEffect::RunCommands { iteration: 1 });
//! let effect = gate.step(GateEvent::CommandsFinished(vec![]));
//! assert!(matches!(effect, GateEffect::AskAgent { iteration: 1, .. }));
//! let answer = serde_json::json!({"verdict": "ROUTE:developer"});
//! assert_eq!(gate.step(GateEvent::AgentAnswered(Some(answer))), GateEffect::Route { target: developer });
//! assert_eq!(gate.step(GateEvent::TargetFinished), GateEffect::RunCommands { iteration: 2 });
//! # Ok::<(), cliq_protocol::NameError>(())
//! ```

mod machine;

pub use machine::{Gate, GateEffect, GateEvent, GateSpec, GateState};

/// Evaluations of a gate that says nothing else (docs/team-yml.md).
pub const DEFAULT_MAX_ITERATIONS: u32 = 3;
/// The most evaluations a gate may have (docs/team-yml.md).
pub const MOST_ITERATIONS: u32 = 5;

/// Runs the example of the README as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
