//! Scripted agents: replies from a file instead of a model (docs/team-test.md). `cliq agent scripted SCRIPT RECORDS` runs one. The prompt of
//! each activation is recorded, as a model agent without tools would get it.

mod default_reply;
mod script;

use camino::{Utf8Component, Utf8Path};
use cliq_fs::{read_limited, write_atomic};
use cliq_protocol::Object;
use cliq_sdk::{
    Agent, Completion, GateContext, Handoff, PhaseContext, StandardContext, TeamContext, Verdict,
};
use serde_json::{Value, json};

use crate::AnyError;
use crate::llm::{Outputs, plain_prompt};
use default_reply::default_data;
use script::Choice;
pub use script::{ActivationRecord, Script, ScriptedOutcome, ScriptedReply, split_item};

/// Maximum size of a script, in bytes.
const MAX_SCRIPT: u64 = 64 << 20;

/// Returns the agent that answers with the replies of a script, and records each activation as a file of `records`.
pub fn scripted_agent(script: &Utf8Path, records: &Utf8Path) -> Agent {
    let for_gates = Place::new(script, records);
    let (for_phases, for_teams) = (for_gates.clone(), for_gates.clone());
    Agent::new()
        .standard(move |ctx| for_phases.standard(ctx))
        .gate(move |ctx| for_gates.gate(ctx))
        .team(move |ctx| for_teams.team(ctx))
        .notify(|ctx| Ok(ctx.complete()))
}

/// Paths of the script and of the records.
#[derive(Clone)]
struct Place {
    script: camino::Utf8PathBuf,
    records: camino::Utf8PathBuf,
}

impl Place {
    fn new(script: &Utf8Path, records: &Utf8Path) -> Self {
        Self { script: script.to_owned(), records: records.to_owned() }
    }

    fn standard(&self, ctx: &StandardContext) -> Result<Completion, AnyError> {
        let reply = self.reply(ctx, plain_prompt::standard(ctx)?)?;
        ctx.send(&handoff(ctx, &reply)?)?;
        Ok(ctx.complete(json!({})))
    }

    fn team(&self, ctx: &TeamContext) -> Result<Completion, AnyError> {
        let reply = self.reply(ctx, plain_prompt::task_of(ctx)?)?;
        ctx.send(&handoff(ctx, &reply)?)?;
        Ok(ctx.complete(json!({})))
    }

    fn gate(&self, ctx: &GateContext) -> Result<Completion, AnyError> {
        let reply = self.reply(ctx, plain_prompt::gate(ctx)?)?;
        let reason = reply.reason.unwrap_or_else(|| "Scripted verdict.".to_owned());
        let verdict = match reply.verdict.unwrap_or(ScriptedOutcome::Pass) {
            ScriptedOutcome::Pass => Verdict::pass(reason),
            ScriptedOutcome::Escalate => Verdict::escalate(reason),
            ScriptedOutcome::Route(target) => {
                let targets = ctx.route_targets();
                let known = targets.iter().find(|name| name.as_str() == target);
                let known = known.ok_or_else(|| {
                    format!("the script routes to `{target}`, where this gate may not route")
                })?;
                Verdict::route(known.clone(), reason)
            }
        };
        Ok(ctx.decide_with(&verdict, &reply.data.unwrap_or_default())?)
    }

    /// Records the activation, and returns its reply. Its files are written.
    fn reply(&self, ctx: &PhaseContext, prompt: String) -> Result<ScriptedReply, AnyError> {
        let bytes = read_limited(&self.script, MAX_SCRIPT)?;
        let script: Script = serde_json::from_slice(&bytes)
            .map_err(|error| format!("{} is not a script: {error}", self.script))?;
        let phase = ctx.phase();
        let choice = script.choose(phase.name.as_str(), phase.iteration);
        let record = ActivationRecord {
            phase: phase.name.clone(),
            activation: phase.iteration,
            agent: phase.agent.clone(),
            prompt,
            reply: match &choice {
                Choice::Reply(index, _) => Some(*index),
                Choice::Default | Choice::Exhausted(_) => None,
            },
        };
        std::fs::create_dir_all(&self.records)?;
        write_atomic(&self.records.join(record.file_name()), &serde_json::to_vec(&record)?)?;
        let reply = match choice {
            Choice::Reply(_, reply) => reply.clone(),
            Choice::Default => ScriptedReply::default(),
            Choice::Exhausted(replies) => {
                return Err(format!(
                    "activation {} of `{}` has no scripted reply: the script has {replies}",
                    phase.iteration, phase.name
                )
                .into());
            }
        };
        for (path, content) in &reply.files {
            write_inside(ctx.workspace(), path, content.as_deref())?;
        }
        match reply.error {
            Some(error) => Err(error.into()),
            None => Ok(reply),
        }
    }
}

/// Returns the handoff of a reply, with data that fits the schema of the phase.
fn handoff(ctx: &PhaseContext, reply: &ScriptedReply) -> Result<Handoff, AnyError> {
    let text = reply.text.clone().unwrap_or_else(|| format!("Scripted reply of {}.", ctx.phase().name));
    let data = match (&reply.data, &ctx.phase().outputs) {
        (Some(data), None) => Some(data.clone()),
        (None, None) => None,
        (given, Some(schema)) => {
            let outputs =
                Outputs::new(schema).map_err(|why| format!("the schema of `outputs` is not valid: {why}"))?;
            let data: Object = given.clone().unwrap_or_else(|| default_data(schema));
            outputs.check(Some(&data)).map_err(|why| match given {
                Some(_) => format!("the scripted reply cannot be handed over: {why}"),
                None => {
                    format!("the script has no data for this phase, and a default cannot be derived: {why}")
                }
            })?;
            Some(data)
        }
    };
    let handoff = Handoff::text(text);
    Ok(match data {
        Some(data) => handoff.with_data(Value::Object(data)),
        None => handoff,
    })
}

/// Whether a path stays below the directory that it is relative to, and is not one of cliq or git.
#[must_use]
pub fn is_path_inside(path: &str) -> bool {
    let mut parts = Utf8Path::new(path).components();
    let is_own = matches!(parts.clone().next(), Some(Utf8Component::Normal(".cliq" | ".git")));
    !path.is_empty() && !is_own && parts.all(|part| matches!(part, Utf8Component::Normal(_)))
}

/// Writes a file of a workspace, or removes it if there is no content. Links are not followed.
///
/// # Errors
/// Returns the reason if the path leaves the workspace or leads through a link, the file to be removed does not exist, or the system refuses.
pub fn write_inside(workspace: &Utf8Path, path: &str, content: Option<&str>) -> Result<(), String> {
    if !is_path_inside(path) {
        return Err(format!("{path:?} is not a path in the workspace"));
    }
    let mut place = workspace.to_owned();
    for part in Utf8Path::new(path).components() {
        place.push(part.as_str());
        if place.is_symlink() {
            return Err(format!("{path} leads through the link {place}, which is not followed"));
        }
    }
    match content {
        Some(content) => {
            let parent = place.parent().unwrap_or(workspace);
            std::fs::create_dir_all(parent)
                .and_then(|()| std::fs::write(&place, content))
                .map_err(|error| format!("cannot write {path}: {error}"))
        }
        None => std::fs::remove_file(&place).map_err(|error| format!("cannot remove {path}: {error}")),
    }
}
