//! `cliq server a2a`, and what the server is started with as an A2A agent.

use std::process::ExitCode;

use camino::Utf8Path;
use cliq_fs::{IoContext, write_atomic};
use cliq_server::{A2aOptions, ServerOptions, agent_card};
use cliq_settings::{A2aSettings, ServerSettings, Settings};

use crate::args::A2aCommand;
use crate::failure::Failure;
use crate::gateway::home;
use crate::server_record::server_url;
use crate::{project, ui};

/// The most bytes of the file with the name of this cliq.
const LIMIT: u64 = 1024;

pub(super) fn run(command: &A2aCommand) -> Result<ExitCode, Failure> {
    let A2aCommand::Card { url } = command;
    let home = home()?;
    let settings = Settings::load(Some(&home), None)?;
    let options = options(&settings, &home, &home.join("workspaces"), &[])?;
    let running = server_url()?;
    let configured = || {
        let server = ServerSettings::read(&settings);
        format!("http://{}:{}", server.host, server.port)
    };
    let url = url.clone().or_else(|| options.public_url.clone()).or(running).unwrap_or_else(configured);
    ui::json(&agent_card(&project::host(), &options, url.trim_end_matches('/')))?;
    Ok(ExitCode::SUCCESS)
}

/// The options that the settings give.
pub(super) fn options(
    settings: &Settings,
    home: &Utf8Path,
    workspace_root: &Utf8Path,
    meshes: &[String],
) -> Result<A2aOptions, Failure> {
    A2aOptions::new(settings, workspace_root, meshes, instance_id(home)?).map_err(Failure::usage)
}

/// The name of this cliq, made once and kept in the home.
pub(super) fn instance_id(home: &Utf8Path) -> Result<String, Failure> {
    let file = home.join("instance_id");
    if let Ok(text) = cliq_fs::read_text(&file, LIMIT)
        && !text.trim().is_empty()
    {
        return Ok(text.trim().to_owned());
    }
    // The last part of such an id is random.
    let id = cliq_fs::new_run_id().to_string();
    let id = format!("cliq-{}", id.rsplit('-').next().unwrap_or(&id));
    std::fs::create_dir_all(home).at("create", home)?;
    write_atomic(&file, format!("{id}\n").as_bytes())?;
    Ok(id)
}

/// A line about the agent, where the server is one.
pub(super) fn summary(options: &ServerOptions) -> Result<Option<String>, Failure> {
    let Some(a2a) = &options.a2a else { return Ok(None) };
    let settings = Settings::load(Some(&home()?), None)?;
    let mut text = format!("A2A agent {} of type {}", a2a.instance_id, a2a.agent_type);
    if !A2aSettings::is_set(&settings) {
        text.push_str(
            " (the settings have no `server.a2a`: defaults hold, and the teams of @cliq are offered)",
        );
    }
    if !a2a.meshes.is_empty() {
        let names: Vec<&str> = a2a.meshes.iter().map(|mesh| mesh.name.as_str()).collect();
        text.push_str(", meshes: ");
        text.push_str(&names.join(", "));
    }
    Ok(Some(text))
}
