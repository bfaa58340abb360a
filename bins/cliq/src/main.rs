//! `cliq`: runs teams of agents. Arguments in, one library call, rendering out.

mod args;
mod commands;
mod failure;
mod gateway;
mod project;
mod render;
mod reviews;
mod server_record;
mod ui;

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use clap::Parser;

/// Continues as a process without the variables that git sets for hooks, if there are any. All that cliq starts inherits its
/// environment: agents, panes, servers, daemons.
fn leave_hook() {
    if cliq_git::LOCAL_VARIABLES.iter().all(|name| std::env::var_os(name).is_none()) {
        return;
    }
    if let Ok(program) = std::env::current_exe() {
        let mut command = Command::new(program);
        cliq_git::remove_local_variables(&mut command);
        // If it fails, the processes of agents are still started without them.
        let _ = command.args(std::env::args_os().skip(1)).exec();
    }
}

fn main() -> ExitCode {
    leave_hook();
    if let Some(code) = project::restart_with_absolute_home() {
        return code;
    }
    // Panes and sandboxes start with each job, and scripts ask for the version: none needs the table of all arguments.
    let own: Vec<String> =
        std::env::args_os().skip(1).filter_map(|argument| argument.into_string().ok()).collect();
    match own.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["pane", ..] => return cliq_orchestrator::run_pane(&own[1..]),
        ["watchdog"] => return cliq_orchestrator::run_watchdog(),
        #[cfg(target_os = "linux")]
        ["confine", policy, ..] => return commands::sandbox::confine(policy, &own[2..]).report(),
        #[cfg(target_os = "linux")]
        ["forward", socket] => return commands::sandbox::forward(socket),
        [cliq_agents::SERVE_TOOLS, ..] => return cliq_agents::serve_tools(&own[1..]),
        ["--version" | "-V"] if std::env::args_os().len() == 2 => {
            return ui::line(concat!("cliq ", env!("CARGO_PKG_VERSION")))
                .map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
        }
        _ => {}
    }
    let args = match args::Cli::try_parse() {
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
