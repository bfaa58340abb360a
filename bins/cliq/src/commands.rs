//! One module per command.

mod acp;
mod agent;
mod assemble;
mod attach;
mod audit;
mod auth;
mod backends;
mod background;
mod cancel;
mod changed;
mod checkpoint;
mod ci;
mod clean;
#[cfg(any(feature = "docker", feature = "kubernetes"))]
mod contained;
mod daemon;
mod demo;
mod detach;
mod doctor;
mod eval;
mod execution;
mod explain;
mod init;
mod logs;
mod man;
mod markers;
#[cfg(feature = "mcp")]
mod mcp;
mod plan;
#[cfg(any(feature = "docker", feature = "kubernetes"))]
mod plan_agent;
mod releases;
mod req;
mod review;
mod run;
mod runs;
pub(crate) mod sandbox;
mod self_check;
mod server;
mod settings;
mod signal;
mod signals;
mod skill;
mod status;
mod steer;
mod team;
mod telemetry;
pub(crate) mod terminal;
mod tool;
mod trigger;
mod trust;

use std::process::ExitCode;

use clap::CommandFactory;

use crate::args::{Cli, Command, Lazy, LazyArgs, OwnCommand};
use crate::failure::Failure;

/// Carries out a command.
pub(crate) fn run(cli: Cli) -> Result<ExitCode, Failure> {
    let variable = |name: &str| std::env::var(name).ok();
    let is_server = matches!(cli.command, Command::Server(Lazy(crate::args::ServerCommand::Run { .. })));
    // The log of a server is its standard error.
    let verbosity = if is_server { cli.global.verbose.max(1) } else { cli.global.verbose };
    let options = crate::telemetry::Options::of(variable, verbosity);
    crate::telemetry::init(&options).map_err(|error| Failure::usage(error.to_string()))?;
    if let Some(dir) = &cli.global.directory {
        std::env::set_current_dir(dir)
            .map_err(|error| Failure::usage(format!("cannot work in {dir}: {error}")))?;
    }
    match cli.command {
        Command::Init => init::run(),
        Command::Assemble { team, locked } => assemble::run(team.as_deref(), locked),
        Command::Req(args) => req::run(&args),
        Command::Run(args) => run::run(&args),
        Command::Ui(LazyArgs(args)) => terminal::run(&args),
        Command::Runs(LazyArgs(args)) => runs::run(&args),
        Command::Status(args) => status::run(args.json, args.watch),
        Command::Logs(LazyArgs(args)) => {
            let content = match (args.transcript, args.json) {
                (false, _) => logs::Content::Output,
                (true, false) => logs::Content::Transcript,
                (true, true) => logs::Content::TranscriptLines,
            };
            logs::run(args.phase.as_deref(), args.follow, content)
        }
        Command::Explain(LazyArgs(args)) => explain::run(args.run.as_deref(), args.json),
        Command::Ci(LazyArgs(args)) => ci::run(args.run.as_deref(), args.link.as_deref()),
        Command::Diff(LazyArgs(args)) => checkpoint::diff(args.of.as_deref(), args.stat, args.json),
        Command::Checkpoint(Lazy(command)) => checkpoint::run(&command),
        Command::Attach { phase } => attach::run(phase.as_deref()),
        Command::Settings(Lazy(command)) => settings::run(&command),
        Command::Cancel => cancel::run(),
        Command::Steer(LazyArgs(args)) => steer::run(&args),
        Command::Clean => clean::run(),
        Command::Own(Lazy(OwnCommand::Check { from, json })) => self_check::run(from.as_deref(), json),
        Command::Doctor { json, command } => doctor::run(json, command.as_ref()),
        Command::Tool(Lazy(command)) => tool::run(&command),
        Command::Auth { service } => auth::run(service),
        Command::Demo(LazyArgs(args)) => demo::run(&args),
        Command::Eval(LazyArgs(args)) => eval::run(&args),
        Command::Team(Lazy(command)) => team::run(command),
        Command::Agent(Lazy(command)) => agent::run(command),
        Command::Telemetry(Lazy(command)) => self::telemetry::run(&command),
        Command::Trust(LazyArgs(args)) => trust::run(&args),
        Command::Skill(LazyArgs(args)) => skill::run(&args),
        Command::Signal(Lazy(command)) => signal::run(&command),
        Command::Plan(Lazy(command)) => plan::run(&command),
        Command::Daemon(Lazy(command)) => daemon::run(&command),
        Command::Server(Lazy(command)) => server::run(&command),
        Command::Trigger(Lazy(command)) => trigger::run(&command),
        Command::Audit(LazyArgs(args)) => audit::run(&args),
        Command::Review(Lazy(command)) => review::run(&command),
        Command::Acp(LazyArgs(args)) => acp::run(&args),
        #[cfg(feature = "mcp")]
        Command::Mcp => mcp::run(),
        #[cfg(any(feature = "docker", feature = "kubernetes"))]
        Command::Contained { handover, arguments } => contained::run(handover.as_deref(), &arguments),
        Command::Markers(args) => markers::run(&args),
        Command::Man { dir } => man::run(&dir),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "cliq", &mut script);
            crate::ui::raw(&script)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}
