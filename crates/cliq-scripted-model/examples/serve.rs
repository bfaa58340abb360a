//! Serves a script until its standard input ends: `serve SCRIPT`. Prints the base URLs first, and a line of JSON per request at the end.

use std::io::Read;
use std::process::ExitCode;

use cliq_scripted_model::{Behavior, ScriptedModel};
use serde_json::json;

#[expect(clippy::print_stdout, reason = "its output")]
fn main() -> ExitCode {
    let script = std::env::args().nth(1).and_then(|path| std::fs::read_to_string(path).ok());
    let script = script.and_then(|text| serde_json::from_str(&text).ok());
    let server = script.and_then(|script| ScriptedModel::start(script, Behavior::default()).ok());
    let Some(server) = server else { return ExitCode::FAILURE };
    println!(
        "{}",
        json!({"anthropic": server.base("anthropic"), "openai": server.base("openai"), "gemini": server.base("gemini")})
    );
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    for request in server.requests() {
        println!(
            "{}",
            json!({
                "bytes": request.body.to_string().len(), "tokens_in": request.tokens_in, "tokens_cached": request.tokens_cached,
                "received_us": request.received_us, "answered_us": request.answered_us,
            })
        );
    }
    ExitCode::SUCCESS
}
