//! The agents that come with cliq (SPEC section 9), as handlers of the SDK. `cliq-agent` and `cliq agent handle` run
//! them: the message on standard input names the agent.
//!
//! `rules` is a gate that needs no model; `exec` runs a phase's commands, for whoever dispatches without an orchestrator;
//! the model agents ask a language model, over a vendor's HTTP API (feature `http`) or by a vendor's command line;
//! `slack` and `webhook` deliver notifications.

mod exec;
#[cfg(feature = "http")]
mod http;
mod llm;
mod rules;
#[cfg(feature = "http")]
mod tell;

use camino::Utf8Path;
use cliq_sdk::{Agent, Completion, NotifyContext, PhaseContext};
use cliq_settings::Settings;

pub use llm::{KNOWN as MODEL_AGENTS, ModelAgent, Usable, usable};
pub use rules::decide;

type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// Names of the agents that this version can run.
pub const NAMES: &[&str] = &[
    "exec",
    "rules",
    "slack",
    "webhook",
    "claude-code",
    "cursor",
    "gemini",
    "codex",
    "claude-api",
    "openai-api",
    "gemini-api",
];

/// All built-in agents in one: which one works is what the message says.
pub fn agent() -> Agent {
    Agent::new()
        .standard(|ctx| match ctx.phase().agent.as_str() {
            "exec" => exec::run(ctx),
            name if ModelAgent::find(name).is_some() => llm::standard(ctx),
            _ => Err(unknown(ctx)),
        })
        .gate(|ctx| match ctx.phase().agent.as_str() {
            "rules" => Ok(ctx.decide(&rules::decide(ctx))?),
            name if ModelAgent::find(name).is_some() => llm::gate(ctx),
            _ => Err(unknown(ctx)),
        })
        .notify(deliver)
}

#[cfg(feature = "http")]
fn deliver(ctx: &NotifyContext) -> Result<Completion, AnyError> {
    tell::deliver(ctx)
}

#[cfg(not(feature = "http"))]
fn deliver(_: &NotifyContext) -> Result<Completion, AnyError> {
    Err("this cliq was built without HTTP".into())
}

/// What is set where the agent works.
fn settings(ctx: &PhaseContext) -> Result<Settings, AnyError> {
    settings_at(ctx.cliq_dir())
}

fn settings_at(cliq_dir: &Utf8Path) -> Result<Settings, AnyError> {
    // A team within a team, or an agent of a plan, works in a directory of its own below the project's `.cliq`.
    let project = cliq_dir.ancestors().find(|dir| dir.file_name() == Some(".cliq")).unwrap_or(cliq_dir);
    let project = project.join("settings.json");
    Ok(Settings::load(cliq_settings::home().as_deref(), Some(&project))?)
}

fn unknown(ctx: &PhaseContext) -> AnyError {
    let (agent, kind) = (&ctx.phase().agent, ctx.phase().kind);
    format!(
        "this version of cliq has no built-in agent `{agent}` for phases of type `{kind}`; it has: {}",
        NAMES.join(", ")
    )
    .into()
}
