//! Settings: `CLIQ_HOME/settings.json`, and over it `.cliq/settings.json`.

use std::fs;
use std::io;

use camino::Utf8Path;
use cliq_fs::CliqDir;
use cliq_orchestrator::Timing;
use cliq_workflow::{nearest, parse_duration};
use serde_json::Value;

use crate::failure::Failure;
use crate::home;

const KEYS: &[(&str, &str)] = &[
    ("default_agent", "the agent for phases that name none, a text"),
    (
        "poll_interval",
        "how often signal files are looked at where nothing tells of changes, a duration such as \"3s\"",
    ),
    ("phase_timeout", "how long a phase may take, a duration such as \"20m\""),
    ("gate_agent_timeout", "how long the agent of a gate may take, a duration such as \"15m\""),
    ("max_parallel", "how many phases may work at the same time, a whole number"),
];

/// What is set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Settings {
    pub(crate) default_agent: Option<String>,
    pub(crate) max_parallel: Option<usize>,
    pub(crate) timing: Timing,
}

/// Reads both files. What is missing has its default.
pub(crate) fn load(project: Option<&CliqDir>) -> Result<Settings, Failure> {
    let mut settings = Settings::default();
    let files =
        home::dir().map(|home| home.join("settings.json")).into_iter().chain(project.map(CliqDir::settings));
    for file in files {
        apply(&file, &mut settings)?;
    }
    Ok(settings)
}

fn apply(file: &Utf8Path, settings: &mut Settings) -> Result<(), Failure> {
    let text = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Failure::failed(format!("cannot read {file}: {error}"))),
    };
    let value: Value =
        serde_json::from_str(&text).map_err(|error| Failure::usage(format!("{file}: {error}")))?;
    let Value::Object(map) = value else {
        return Err(Failure::usage(format!("{file}: settings are a JSON object")));
    };
    for (key, value) in map {
        set(&key, &value, settings).map_err(|why| Failure::usage(format!("{file}: {why}")))?;
    }
    Ok(())
}

fn set(key: &str, value: &Value, settings: &mut Settings) -> Result<(), String> {
    let Some((_, about)) = KEYS.iter().find(|(name, _)| *name == key) else {
        let names = KEYS.iter().map(|(name, _)| *name);
        return Err(match nearest(key, names.clone()) {
            Some(near) => format!("there is no setting `{key}`: did you mean `{near}`?"),
            None => {
                format!("there is no setting `{key}`: there are {}", names.collect::<Vec<_>>().join(", "))
            }
        });
    };
    let wrong = || format!("`{key}` is {about}; here is {value}");
    let duration = || value.as_str().and_then(|text| parse_duration(text).ok()).ok_or_else(wrong);
    match key {
        "default_agent" => settings.default_agent = Some(value.as_str().ok_or_else(wrong)?.to_owned()),
        "max_parallel" => {
            let number = value.as_u64().filter(|n| *n > 0).and_then(|n| usize::try_from(n).ok());
            settings.max_parallel = Some(number.ok_or_else(wrong)?);
        }
        "poll_interval" => settings.timing.poll_interval = duration()?,
        "phase_timeout" => settings.timing.phase_timeout = duration()?,
        _ => settings.timing.gate_agent_timeout = duration()?,
    }
    Ok(())
}
