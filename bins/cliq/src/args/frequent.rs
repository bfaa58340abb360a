//! The commands that scripts start most often, parsed without the table of all commands: that table takes most of the time of a parse.

use clap::error::Error;
use clap::{Parser, Subcommand};

use super::{Cli, Command, GlobalArgs, RunArgs, StatusArgs};

#[derive(Debug, Parser)]
#[command(name = "cliq", disable_help_flag = true, disable_help_subcommand = true)]
struct FrequentCli {
    #[command(flatten)]
    global: GlobalArgs,
    #[command(subcommand)]
    command: FrequentCommand,
}

#[derive(Debug, Subcommand)]
enum FrequentCommand {
    Run(Box<RunArgs>),
    Status(StatusArgs),
}

/// Parses the arguments of this process. `own` are those that are text, without the name of the program.
pub(crate) fn parse(own: &[String]) -> Result<Cli, Error> {
    if own.iter().any(|argument| argument == "run" || argument == "status")
        && let Ok(FrequentCli { global, command }) = FrequentCli::try_parse()
    {
        let command = match command {
            FrequentCommand::Run(args) => Command::Run(*args),
            FrequentCommand::Status(args) => Command::Status(args),
        };
        return Ok(Cli { global, command });
    }
    // Help, errors and suggestions come from the table of all commands.
    Cli::try_parse()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_parsers_agree() {
        let calls: &[&[&str]] = &[
            &["run"],
            &["-C", "/x", "-vv", "run", "--headless", "--max-parallel", "2", "--input", "a=b"],
            &["run", "-C", "/x", "--resume", "-v"],
            &["run", "--from", "build", "--restore", "--yes"],
            &["status", "--json"],
            &["-v", "status", "--watch"],
        ];
        for call in calls {
            let call = || std::iter::once(&"cliq").chain(*call);
            let fast = FrequentCli::try_parse_from(call()).expect("a frequent command");
            let whole = Cli::try_parse_from(call()).expect("a command");
            let fast = (format!("{:?}", fast.global), format!("{:?}", fast.command));
            assert_eq!(fast, (format!("{:?}", whole.global), format!("{:?}", whole.command)));
        }
        for wrong in [&["cliq", "run", "--help"][..], &["cliq", "status", "--jso"], &["cliq", "plan", "run"]]
        {
            assert!(FrequentCli::try_parse_from(wrong).is_err(), "{wrong:?}");
        }
    }
}
