//! `cliq`: runs teams of agents. Arguments in, one library call, rendering out.

mod args;
mod commands;
mod failure;
mod gateway;
mod project;
mod render;
mod ui;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    // What runs in a pane starts with each job: it does not wait for all that a command line may say.
    let mut own = std::env::args().skip(1);
    if own.next().as_deref() == Some("pane") {
        return cliq_orchestrator::run_pane(&own.collect::<Vec<_>>());
    }
    let args = match args::Cli::try_parse() {
        Ok(args) => args,
        Err(error) => {
            // Usage errors go to standard error with code 2, help and version to standard output with 0.
            let code = if error.use_stderr() { 2 } else { 0 };
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    match commands::run(args) {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}
