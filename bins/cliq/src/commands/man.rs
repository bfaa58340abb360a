//! `cliq man`

use std::fs;
use std::process::ExitCode;

use camino::Utf8Path;
use clap::CommandFactory;
use cliq_fs::IoContext;

use crate::args::Cli;
use crate::failure::Failure;
use crate::ui;

pub(super) fn run(dir: &Utf8Path) -> Result<ExitCode, Failure> {
    fs::create_dir_all(dir).at("create", dir)?;
    clap_mangen::generate_to(Cli::command(), dir).at("write man pages to", dir)?;
    ui::line(format!("wrote the man pages of cliq to {dir}: `man -l {dir}/cliq.1` shows the first"))?;
    Ok(ExitCode::SUCCESS)
}
