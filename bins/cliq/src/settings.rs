//! Settings as the commands use them.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use cliq_fs::CliqDir;
use cliq_orchestrator::{Durability, Recipient, Timing};
use cliq_settings::Settings;

use crate::failure::Failure;

/// What holds in a project, or outside of any.
pub(crate) fn load(project: Option<&CliqDir>) -> Result<Settings, Failure> {
    let project: Option<Utf8PathBuf> = project.map(CliqDir::settings);
    Ok(Settings::load(cliq_settings::home().as_deref(), project.as_deref())?)
}

/// The times that are set.
pub(crate) fn timing(settings: &Settings) -> Timing {
    let mut timing = Timing::default();
    for (key, field) in [
        ("poll_interval", &mut timing.poll_interval),
        ("phase_timeout", &mut timing.phase_timeout),
        ("gate_agent_timeout", &mut timing.gate_agent_timeout),
    ] {
        if let Some(duration) = settings.duration(key) {
            *field = duration;
        }
    }
    timing
}

/// What a run's records are to be safe against.
pub(crate) fn durability(settings: &Settings) -> Durability {
    match settings.text("durability").as_deref() {
        Some("power") => Durability::Power,
        _ => Durability::Process,
    }
}

/// Whom to tell of a run, by event.
pub(crate) fn notifications(settings: &Settings) -> BTreeMap<String, Vec<Recipient>> {
    let recipient = |channel: String| {
        let (agent, channel) = channel.split_once(':').unwrap_or((&channel, "default"));
        Recipient { agent: agent.to_owned(), channel: channel.to_owned() }
    };
    let lists = settings.lists_below("notifications").into_iter();
    lists.map(|(event, channels)| (event, channels.into_iter().map(recipient).collect())).collect()
}
