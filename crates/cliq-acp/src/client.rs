//! Client of agents.
//!
//! [`Machine`] decides and is pure. [`Client`] starts a process, performs the effects of the machine and feeds back what happened; a
//! [`Host`] receives updates and decides about permissions.
//!
//! ```no_run
//! use cliq_acp::client::{Client, Host, Origin, PermissionDecision, PermissionReply, PermissionRequest, SessionRequest, Update};
//! use cliq_acp::schema::ContentBlock;
//!
//! struct Terminal;
//!
//! impl Host for Terminal {
//!     fn update(&mut self, origin: Origin, update: &Update) {
//!         if let (Origin::Turn, Update::Answer(chunk)) = (origin, update) {
//!             print!("{}", chunk.text().unwrap_or_default());
//!         }
//!     }
//!
//!     fn permission(&mut self, _request: &PermissionRequest, reply: PermissionReply) {
//!         reply.send(PermissionDecision::Reject);
//!     }
//! }
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let mut command = std::process::Command::new("gemini");
//! command.arg("--acp");
//! let request = SessionRequest { cwd: "/work".into(), ..SessionRequest::default() };
//! let mut session = Client::new(command, request).start(&mut Terminal).await?;
//! let report = session.prompt(vec![ContentBlock::from("Say hello")], &mut Terminal).await;
//! println!("{}", report.outcome);
//! session.end(&mut Terminal).await;
//! # Ok(())
//! # }
//! ```

mod anomaly;
mod ask;
mod driver;
mod host;
mod limits;
mod machine;
mod outcome;
mod process;
mod session;
mod tail;
mod update;
mod usage;

pub use anomaly::Anomaly;
pub use ask::{
    AskId, OptionKind, PermissionDecision, PermissionOption, PermissionRequest, QuestionDecision,
    QuestionRequest,
};
pub use driver::{Client, Session, StartError};
pub use host::{Control, Direction, Host, MAX_REPORTS, PermissionReply, QuestionReply};
pub use limits::Limits;
pub use machine::{
    AgentEnd, Decisions, Effect, Event, MAX_ASKED, MAX_TEXT, Machine, SteerId, SteerOutcome, Timer,
    TurnReport,
};
pub use outcome::{AgentExit, Failure, Outcome, Step};
pub use process::MARK;
pub use session::{AgentInfo, Choice, SessionInfo, SessionRequest};
pub use update::{Chunk, Origin, ToolCalls, Update};
pub use usage::{Money, Tokens, TurnUsage, UsageCounter, UsageMeaning};
