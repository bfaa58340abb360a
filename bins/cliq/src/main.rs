//! `cliq`: runs teams of agents. Arguments in, one library call, rendering out.

mod args;
mod commands;
mod environment;
mod failure;
mod gateway;
mod project;
mod render;
mod reviews;
#[cfg(feature = "otlp")]
mod run_export;
#[cfg(not(feature = "otlp"))]
#[path = "no_export.rs"]
mod run_export;
mod run_process;
mod server_export;
mod server_record;
mod telemetry;
mod ui;

use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(code) = environment::restart_if_unsuitable() {
        return code;
    }
    // Panes and sandboxes start with each job, and scripts ask for the version: none needs the table of all arguments.
    let own: Vec<String> =
        std::env::args_os().skip(1).filter_map(|argument| argument.into_string().ok()).collect();
    match own.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["pane", ..] => return cliq_orchestrator::run_pane(&own[1..]),
        ["watchdog"] => return cliq_orchestrator::run_watchdog(),
        ["confine", policy, ..] => return commands::sandbox::confine(policy, &own[2..]).report(),
        ["forward", socket] => return commands::sandbox::forward(socket),
        [cliq_agents::SERVE_TOOLS, ..] => return cliq_agents::serve_tools(&own[1..]),
        ["--version" | "-V"] if std::env::args_os().len() == 2 => {
            return ui::line(concat!("cliq ", env!("CARGO_PKG_VERSION")))
                .map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
        }
        _ => {}
    }
    // Without arguments, a person on a terminal gets the screen, and a program the help.
    if std::env::args_os().len() == own.len() + 1 && ui::can_show_screen() {
        match own.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            [] => return commands::terminal::run_alone(None),
            ["-C" | "--directory", dir] => return commands::terminal::run_alone(Some(dir)),
            _ => {}
        }
    }
    let args = match args::parse(&own) {
        Ok(args) => args,
        Err(mut error) => {
            args::suggest(&mut error, &own);
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
