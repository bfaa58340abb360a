//! `cliq acp --setup`: sets up an agent in a terminal, for editors that sign in there.

use std::process::ExitCode;

use cliq_agents::{ModelAgent, Usable};
use cliq_settings::Settings;

use crate::args::SettingsCommand;
use crate::commands::settings;
use crate::failure::Failure;
use crate::{project, ui};

pub(super) fn run() -> Result<ExitCode, Failure> {
    let host = project::host();
    let load = || Settings::load(host.home.as_deref(), None);
    let settings = load()?;
    let agents = ModelAgent::all(&settings);
    let mut usable = Vec::new();
    ui::line("agents for phases that name none:")?;
    for agent in &agents {
        match agent.usable(&settings, &host.environment) {
            Usable::Yes(how) => {
                ui::line(format!("  {} {:<16} {how}", ui::paint(ui::GREEN, "✓"), agent.name))?;
                usable.push(agent.name.clone());
            }
            Usable::No(why) => ui::line(format!("  {} {:<16} {why}", ui::paint(ui::DIM, "-"), agent.name))?,
        }
    }
    let current = host.default_agent(&settings);
    if usable.is_empty() {
        return Err(Failure::failed("no agent is set up on this machine").hint(
            "install the program of a vendor, or set the variable of its key; docs/models.md lists them",
        ));
    }
    if ui::can_ask() {
        let shown = current.clone().unwrap_or_default();
        let name = ui::ask(&format!("agent [{shown}]:"))?;
        if !name.is_empty() {
            if !usable.contains(&name) {
                return Err(Failure::usage(format!("`{name}` is not an agent that can work here"))
                    .hint(format!("choose one of: {}", usable.join(", "))));
            }
            let (key, global) = ("default_agent".to_owned(), true);
            return settings::run(&SettingsCommand::Set { key, value: name, global });
        }
    }
    match current {
        Some(name) => {
            ui::line(format!("phases that name no agent use {name}"))?;
            Ok(ExitCode::SUCCESS)
        }
        None => Err(Failure::failed("no agent was chosen")),
    }
}
