//! `exec`: runs the commands of the message, one after the other.

use std::process::Command;
use std::time::Instant;

use cliq_sdk::{Completion, Handoff, StandardContext};
use cliq_settings::Environment;
use serde_json::{Value, json};

type AnyError = Box<dyn std::error::Error + Send + Sync>;

pub(crate) fn run(ctx: &StandardContext, environment: &Environment) -> Result<Completion, AnyError> {
    let mut results = Vec::new();
    let mut fatal = None;
    for command in &ctx.phase().commands {
        let text = |key: &str| command.get(key).and_then(Value::as_str);
        let (name, script) =
            (text("name").unwrap_or("command"), text("run").ok_or("a command has no `run`")?);
        if let Some(condition) = text("if")
            && !shell(ctx, environment, condition)?.success()
        {
            results.push(json!({"name": name, "pass": null, "skipped": true}));
            continue;
        }
        ctx.progress(format!("running `{name}`"))?;
        let started = Instant::now();
        let status = shell(ctx, environment, script)?;
        let millis = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        results.push(json!({"name": name, "pass": status.success(), "exit_code": status.code(), "duration_ms": millis}));
        if !status.success() && command.get("escalate_on_fail").and_then(Value::as_bool).unwrap_or(true) {
            fatal = Some(format!("command `{name}` failed ({status})"));
            break;
        }
    }
    let word = |result: &Value| match result["pass"].as_bool() {
        Some(true) => "pass",
        Some(false) => "FAIL",
        None => "skipped",
    };
    let text = results.iter().map(|r| format!("- {}: {}", word(r), r["name"].as_str().unwrap_or_default()));
    let text = text.collect::<Vec<_>>().join("\n");
    let failed = results.iter().filter(|result| result["pass"] == false).count();
    let skipped = results.iter().filter(|result| result["pass"].is_null()).count();
    let mut data =
        json!({"all_passed": failed == 0, "total": results.len(), "failed": failed, "results": results});
    if skipped > 0 {
        data["skipped"] = skipped.into();
    }
    ctx.send(&Handoff::text(text).with_data(data.clone()))?;
    match fatal {
        Some(reason) => Err(reason.into()),
        None => Ok(ctx.complete(data)),
    }
}

/// The script's output is the agent's own. Templates are for the orchestrator: a message's scripts stand as they are.
fn shell(
    ctx: &StandardContext,
    environment: &Environment,
    script: &str,
) -> Result<std::process::ExitStatus, AnyError> {
    let mut command = match crate::wrapper(environment)? {
        Some(wrapper) => {
            let (wrapper, before) = wrapper.command(ctx.workspace(), environment.get("PATH"))?;
            let mut command = Command::new(wrapper);
            command.args(before).arg("sh");
            command
        }
        None => Command::new("sh"),
    };
    let status = command.arg("-c").arg(script).current_dir(ctx.workspace()).status();
    status.map_err(|error| format!("cannot start sh: {error}").into())
}
