//! Agent for editors.
//!
//! [`AgentMachine`] decides and is pure: lines of a client and reports of a driver in, effects out. The driver reads and writes the
//! streams, opens sessions, and carries out prompts.
//!
//! ```
//! use cliq_acp::Line;
//! use cliq_acp::agent::{AgentEffect, AgentEvent, AgentMachine, AgentProfile};
//!
//! let mut machine = AgentMachine::new(AgentProfile::new("example", "1.0.0"));
//! let line = br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}"#;
//! let effects = machine.step(AgentEvent::Line(Line::Whole(line.to_vec())));
//! let [AgentEffect::Send(answer)] = effects.as_slice() else { panic!("one answer") };
//! assert!(answer.to_line().contains(r#""protocolVersion":1"#));
//! ```

mod capabilities;
mod gate;
mod machine;
mod prompt;
mod requests;
mod session;

pub use capabilities::AgentProfile;
pub use gate::{Gate, GateAnswer};
pub use machine::{AgentEffect, AgentEvent, AgentMachine, CallId, OpenMode, OpenedSession};
pub use prompt::Prompt;
pub use session::{TurnEnd, TurnId};
