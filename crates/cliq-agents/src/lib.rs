//! The agents that come with cliq (SPEC section 9), as handlers of the SDK. `cliq-agent` and `cliq agent handle` run
//! them: the message on standard input names the agent.
//!
//! In this version: `rules`, a gate that needs no model, and `exec`, which runs a phase's commands. The orchestrator
//! runs exec phases itself, one process per command; the agent is for whoever dispatches without it.

mod exec;
mod rules;

use cliq_sdk::{Agent, PhaseContext};

pub use rules::decide;

/// Names of the agents that this version can run.
pub const NAMES: &[&str] = &["exec", "rules"];

/// All built-in agents in one: which one works is what the message says.
pub fn agent() -> Agent {
    Agent::new()
        .standard(|ctx| match ctx.phase().agent.as_str() {
            "exec" => exec::run(ctx),
            _ => Err(unknown(ctx)),
        })
        .gate(|ctx| match ctx.phase().agent.as_str() {
            "rules" => Ok(ctx.decide(&rules::decide(ctx))?),
            _ => Err(unknown(ctx)),
        })
}

fn unknown(ctx: &PhaseContext) -> Box<dyn std::error::Error + Send + Sync> {
    let (agent, kind) = (&ctx.phase().agent, ctx.phase().kind);
    format!(
        "this version of cliq has no built-in agent `{agent}` for phases of type `{kind}`; it has: {}",
        NAMES.join(", ")
    )
    .into()
}
