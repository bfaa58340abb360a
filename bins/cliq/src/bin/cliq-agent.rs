//! `cliq-agent`: reads one dispatch message on standard input and handles it with the built-in agent that it names.

use std::process::ExitCode;

use cliq_agents::Environment;

#[path = "../telemetry/mod.rs"]
mod telemetry;

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        None => run(),
        Some("--version" | "-V") => {
            print(&format!("cliq-agent {}", env!("CARGO_PKG_VERSION")), ExitCode::SUCCESS)
        }
        Some(cliq_agents::CONVERT) => cliq_agents::convert(),
        Some(cliq_agents::SERVE_TOOLS) => {
            cliq_agents::serve_tools(&std::env::args().skip(2).collect::<Vec<_>>())
        }
        Some("--help" | "-h") => print(&usage(), ExitCode::SUCCESS),
        Some(other) => {
            print(&format!("error: unexpected argument {other:?}\n\n{}", usage()), ExitCode::from(2))
        }
    }
}

fn run() -> ExitCode {
    let environment = Environment::of_process();
    let options = telemetry::Options::of(|name| environment.get(name).map(str::to_owned), 0);
    // A filter that is none is an error of the program that starts agents, which has reported it.
    let _ = telemetry::init(&options);
    cliq_agents::agent(environment).run()
}

fn usage() -> String {
    format!(
        "Reads one dispatch message on standard input and handles it with the built-in agent that it names.\n\n\
         Usage: cliq-agent < MESSAGE\n\n\
         Agents: {}\n\
         The orchestrator starts it; .cliq/messages/ keeps what it sent. docs/protocol.md in the repository of cliq describes the message.",
        cliq_agents::NAMES.join(", ")
    )
}

#[expect(clippy::print_stdout, reason = "the one thing that this program says to people")]
fn print(text: &str, code: ExitCode) -> ExitCode {
    println!("{text}");
    code
}
