//! The agents that come with cliq (docs/team-yml.md, docs/models.md), as handlers of the SDK. `cliq-agent` and `cliq agent handle` run
//! them: the message on standard input names the agent.
//!
//! `rules` is a gate that needs no model; `exec` runs a phase's commands, for dispatchers other than the orchestrator;
//! the model agents ask a language model, over a vendor's HTTP API (feature `http`) or by a vendor's command line;
//! `pull`, `push` and the connectors fetch from outside and publish to it (feature `connectors`);
//! `slack`, `email` and `webhook` deliver notifications; `a2a` has a phase done by a remote A2A agent; `builder` makes teams with a model.

#[cfg(feature = "http")]
mod builder;
mod exec;
#[cfg_attr(
    not(feature = "http"),
    allow(dead_code, unused_imports, reason = "agents of models are only named")
)]
mod llm;
#[cfg(feature = "http")]
mod notifications;
#[cfg(feature = "connectors")]
mod outside;
#[cfg(feature = "connectors")]
mod pages;
#[cfg(feature = "connectors")]
mod pull_requests;
#[cfg(feature = "http")]
mod remote;
mod rules;
mod scripted;

use std::sync::Arc;

use camino::Utf8Path;
use cliq_protocol::{AgentTools, PhaseKind};
use cliq_sandbox::{POLICY_VARIABLE, PROGRAM_VARIABLE, Wrapper};
use cliq_sdk::{Agent, Completion, NotifyContext, PhaseContext};
pub use cliq_settings::{AgentKind, Environment};
use cliq_settings::{AgentSettings, Settings};

pub use llm::{
    Abilities, AcpCheck, AfterRefusal, ModelAgent, PRESETS, Preset, PresetMode, ResumeFitness, ServerFacts,
    ServerProbe, ServerState, Usable, UsageReport, probes,
};
#[cfg(feature = "connectors")]
pub use outside::{CONVERT, SHAREPOINT, convert, preview, sign_in, test as test_connector};
#[cfg(feature = "connectors")]
pub use pull_requests::{Draft, PullRequests, test as test_code_host};
pub use rules::decide;
pub use scripted::{
    ActivationRecord, Script, ScriptedOutcome, ScriptedReply, is_path_inside, scripted_agent, split_item,
    write_inside,
};

type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// Names of the agents that this version can run without settings.
pub const NAMES: &[&str] = &[
    "a2a",
    "builder",
    "email",
    "exec",
    "rules",
    "slack",
    "webhook",
    "pull",
    "push",
    "curl",
    "s3",
    "gdrive",
    "jira",
    "confluence",
    "zendesk",
    "hubspot",
    "datadog",
    "claude-code",
    "cursor",
    "gemini",
    "codex",
    "claude-api",
    "openai-api",
    "gemini-api",
];

/// All built-in agents in one: the message names the agent that answers. `environment` has their keys and the PATH.
pub fn agent(environment: Environment) -> Agent {
    let environment = Arc::new(environment);
    let (for_gates, for_deliveries) = (Arc::clone(&environment), Arc::clone(&environment));
    Agent::new()
        .standard(move |ctx| match ctx.phase().agent.as_str() {
            "exec" => exec::run(ctx, &environment),
            #[cfg(feature = "http")]
            "a2a" => remote::run(ctx, &environment),
            #[cfg(feature = "http")]
            "builder" => builder::run(ctx, &environment),
            #[cfg(feature = "connectors")]
            name if outside::is_outside_agent(name) => outside::run(ctx, &environment),
            _ => llm::standard(ctx, &environment),
        })
        .gate(move |ctx| match ctx.phase().agent.as_str() {
            "rules" => Ok(ctx.decide(&rules::decide(ctx))?),
            _ => llm::gate(ctx, &for_gates),
        })
        .notify(move |ctx| deliver(ctx, &for_deliveries))
}

/// The wrapper around programs that a built-in agent starts, if its phase has a sandbox.
fn wrapper(environment: &Environment) -> Result<Option<Wrapper>, AnyError> {
    Ok(Wrapper::of_variables(environment.get(POLICY_VARIABLE), environment.get(PROGRAM_VARIABLE))?)
}

#[cfg(feature = "http")]
fn deliver(ctx: &NotifyContext, environment: &Environment) -> Result<Completion, AnyError> {
    notifications::deliver(ctx, environment)
}

#[cfg(not(feature = "http"))]
fn deliver(_: &NotifyContext, _: &Environment) -> Result<Completion, AnyError> {
    Err("this cliq was built without HTTP".into())
}

/// Whether a built-in agent can work with these settings and this environment; `None` for those that need neither.
#[must_use]
pub fn usable(name: &str, settings: &Settings, environment: &Environment) -> Option<Usable> {
    #[cfg(feature = "connectors")]
    if let Some(connector) = cliq_workflow::Connector::find(name).filter(|found| !found.settings.is_empty()) {
        let missing = outside::missing(connector, settings, environment);
        let places: Vec<String> = missing
            .iter()
            .map(|setting| {
                format!("`agents.{name}.{}` (or the variable {})", setting.key, setting.variables[0])
            })
            .collect();
        return Some(if places.is_empty() {
            Usable::Yes(connector.about.to_owned())
        } else {
            Usable::No(format!("{} is not set; `cliq settings set -g KEY -` sets it", places.join(", ")))
        });
    }
    llm::usable(name, settings, environment)
}

/// The environment variables that built-in agents look at: keys and addresses of models, services and code hosts.
#[must_use]
pub fn variables() -> std::collections::BTreeSet<&'static str> {
    let models = llm::variables();
    let connectors = cliq_workflow::CONNECTORS.iter().flat_map(|connector| connector.settings);
    let connectors = connectors.flat_map(|setting| setting.variables.iter().copied());
    let all = models.chain(connectors);
    #[cfg(feature = "connectors")]
    let all = all.chain(pull_requests::variables());
    all.collect()
}

/// The settings of the project that an agent works in.
fn settings_of(cliq_dir: &Utf8Path, environment: &Environment) -> Result<Settings, AnyError> {
    // A team within a team, or an agent of a plan, works in a directory of its own below the project's `.cliq`.
    let project = cliq_dir.ancestors().find(|dir| dir.file_name() == Some(".cliq")).unwrap_or(cliq_dir);
    let project = project.join("settings.json");
    Ok(Settings::load(environment.cliq_home().as_deref(), Some(&project))?)
}

/// Tools that a model agent has in a phase: those that the phase chooses, those of the settings, or by the type of the phase.
#[must_use]
pub fn agent_tools(
    agent: &str,
    settings: &Settings,
    phase: Option<&AgentTools>,
    kind: PhaseKind,
) -> AgentTools {
    let by_kind = || if kind.is_gate() { AgentTools::Read } else { AgentTools::Full };
    phase.cloned().or_else(|| AgentSettings::read(settings, agent).tools).unwrap_or_else(by_kind)
}

/// Returns the reason why a value is not a valid JSON Schema for what a phase hands over.
#[must_use]
pub fn schema_problem(schema: &serde_json::Value) -> Option<String> {
    llm::schema_problem(schema)
}

/// Returns the ways in which data violates a JSON Schema, or `None` if it is valid or the schema is not.
#[must_use]
pub fn schema_violation(schema: &serde_json::Value, data: &cliq_protocol::Object) -> Option<String> {
    llm::Outputs::new(schema).ok()?.check(Some(data)).err()
}

/// Argument by which the programs of cliq serve the tools of model agents.
pub const SERVE_TOOLS: &str = "serve-tools";

/// Serves the tools of a model agent on standard input and output. `arguments` are the workspace and the directory of the phase's files.
#[cfg(feature = "http")]
#[must_use]
pub fn serve_tools(arguments: &[String]) -> std::process::ExitCode {
    let [workspace, files] = arguments else { return std::process::ExitCode::from(2) };
    #[cfg(feature = "connectors")]
    let reader = pages::HttpPages::new();
    #[cfg(feature = "connectors")]
    let pages: Option<&(dyn cliq_coder::tools::PageReader + Sync)> = Some(&reader);
    #[cfg(not(feature = "connectors"))]
    let pages = None;
    let served = cliq_coder::tools::Workspace::open(Utf8Path::new(workspace), vec![files.into()]).and_then(
        |workspace| cliq_coder::serve(&workspace, pages, std::io::stdin().lock(), std::io::stdout()),
    );
    match served {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            let _ = std::io::Write::write_all(&mut std::io::stderr(), format!("{error}\n").as_bytes());
            std::process::ExitCode::FAILURE
        }
    }
}

fn unknown(ctx: &PhaseContext) -> AnyError {
    let (agent, kind) = (&ctx.phase().agent, ctx.phase().kind);
    format!(
        "this version of cliq has no built-in agent `{agent}` for phases of type `{kind}`; it has: {}",
        NAMES.join(", ")
    )
    .into()
}

/// Runs the example of the README as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
