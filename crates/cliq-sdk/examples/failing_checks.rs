//! A whole gate: passes when every check does, else routes back twice and then calls a person.

use cliq_sdk::Agent;

fn main() -> std::process::ExitCode {
    Agent::new()
        .gate(|ctx| {
            let failed = ctx.checks().iter().filter(|check| !check.pass).count();
            match ctx.route_targets().first() {
                _ if failed == 0 => Ok(ctx.pass("Every check passes.")?),
                Some(target) if ctx.history().len() < 2 => {
                    Ok(ctx.route(target.as_str(), format!("{failed} checks fail."))?)
                }
                _ => Ok(ctx.escalate(format!("{failed} checks still fail."))),
            }
        })
        .run()
}
