//! `cliq server`

mod a2a;
mod background;
mod foreground;
mod options;
mod token;

use std::process::ExitCode;

use crate::args::ServerCommand;
use crate::failure::Failure;

pub(super) use background::{checks, link};

pub(super) fn run(command: &ServerCommand) -> Result<ExitCode, Failure> {
    match command {
        ServerCommand::Run { options } => foreground::run(options),
        ServerCommand::Start { options } => background::start(options),
        ServerCommand::Stop => background::stop(),
        ServerCommand::Status { json } => background::status(*json),
        ServerCommand::Open => background::open(),
        ServerCommand::Logs { access, follow } => background::logs(*access, *follow),
        ServerCommand::A2a(command) => a2a::run(command),
        ServerCommand::Token(command) => token::run(command),
    }
}
