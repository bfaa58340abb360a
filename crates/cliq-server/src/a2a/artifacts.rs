//! Events of tasks beside those of the journal: the checked workspace, and the end with its artifacts.

use std::io::{Read, Seek, SeekFrom};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use camino::{Utf8Path, Utf8PathBuf};
use cliq_a2a::{Artifact, Content, Part, Version, wire};
use cliq_fs::CliqDir;
use cliq_model::{Run, RunState, ServerEvent, TaskOutcome};
use cliq_orchestrator::{PhaseStatus, RunView};
use cliq_project::{Host, Project};
use cliq_protocol::lenient_json;
use cliq_supervisor::DelegationLog;
use cliq_supervisor::internals::workspace_files;
use serde_json::{Value, json};

/// The last bytes of the orchestrator's log that are in the result.
const LOG_TAIL: u64 = 10 << 10;
/// The most bytes of an output file, and of all of them: more is named and left out.
const MAX_FILE: u64 = 1 << 20;
const MAX_FILES: u64 = 8 << 20;
/// The most files of an output that is a directory.
const MAX_ENTRIES: usize = 100;
/// The most bytes of a handoff that is looked at for an output.
const MAX_HANDOFF: u64 = 4 << 20;

/// Writer of the events that the callers of tasks get.
#[derive(Debug)]
pub(crate) struct TaskArtifacts {
    /// Host of the runs.
    pub(crate) host: Host,
    /// Name of this cliq.
    pub(crate) instance_id: String,
}

impl DelegationLog for TaskArtifacts {
    fn prepared(&self, run: &Run) -> ServerEvent {
        let project = Project::open(&run.workspace, self.host.clone()).ok();
        let requirement = run.request.spec.requirement.as_deref().unwrap_or_default();
        ServerEvent::WorkspacePrepared(cliq_project::internals::check_workspace(
            project.as_ref(),
            requirement,
        ))
    }

    fn finished(&self, run: &Run, view: &RunView, verdicts: &[Value]) -> ServerEvent {
        finished(&self.host, &self.instance_id, run, view, verdicts)
    }
}

/// Returns the end of a task with its artifacts (docs/a2a.md). Reads the workspace.
fn finished(host: &Host, instance_id: &str, run: &Run, view: &RunView, verdicts: &[Value]) -> ServerEvent {
    let status = match run.life.state {
        RunState::Completed => TaskOutcome::Completed,
        RunState::Cancelled => TaskOutcome::Cancelled,
        _ => TaskOutcome::Failed,
    };
    let mut result = json!({"status": status, "instance_id": instance_id});
    if !view.phases.is_empty() {
        result["phases"] = view
            .phases
            .iter()
            .map(|phase| {
                // The run is over: nothing works any more, whatever its journal says last.
                let status = match phase.status {
                    PhaseStatus::Running | PhaseStatus::Waiting => PhaseStatus::Stopped,
                    ended @ (PhaseStatus::Pending
                    | PhaseStatus::Completed
                    | PhaseStatus::Skipped
                    | PhaseStatus::Failed
                    | PhaseStatus::Escalated
                    | PhaseStatus::Stopped) => ended,
                };
                json!({"name": phase.name, "type": phase.kind, "status": status, "iterations": phase.iterations,
                    "duration_ms": phase.duration_ms, "message": phase.message})
            })
            .collect();
    }
    if !verdicts.is_empty() {
        result["gate_verdicts"] = verdicts.into();
    }
    if let Some(text) = log_tail(&run.workspace.join(CliqDir::NAME).join("orchestrator.log")) {
        result["orchestrator_log"] = text.into();
    }
    if status == TaskOutcome::Failed {
        result["escalation"] = json!({"phase": run.phase, "reason": run.reason});
    }
    let mut artifacts = if status == TaskOutcome::Completed { outputs(host, run) } else { Vec::new() };
    artifacts.push(Artifact {
        artifact_id: "pipeline_result".to_owned(),
        name: Some("pipeline_result".to_owned()),
        description: Some("What each phase did".to_owned()),
        parts: vec![Part::data(result)],
    });
    let artifacts: Vec<Value> =
        artifacts.iter().map(|artifact| wire::write_artifact(Version::V1_0, artifact)).collect();
    let (reason, phase) = (run.reason.clone(), run.phase.clone());
    ServerEvent::TaskFinished { status, reason, phase, artifacts }
}

fn log_tail(path: &Utf8Path) -> Option<String> {
    let (mut file, size) = cliq_fs::open_regular(path).ok()?;
    file.seek(SeekFrom::Start(size.saturating_sub(LOG_TAIL))).ok()?;
    let mut bytes = Vec::new();
    file.take(LOG_TAIL).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    // A line that was cut off at its beginning is left out.
    let text = if size > LOG_TAIL { text.split_once('\n').map_or("", |(_, rest)| rest) } else { &text };
    Some(text.to_owned())
}

/// The outputs that the team declares. `NAME` is a file or directory of this name in the workspace or among a phase's files; else
/// the content of `NAME.json`; else a field of this name in the data of a handoff.
fn outputs(host: &Host, run: &Run) -> Vec<Artifact> {
    let Ok(workflow) = Project::open(&run.workspace, host.clone()).and_then(|project| project.workflow())
    else {
        return Vec::new();
    };
    let mut left = MAX_FILES;
    let mut artifacts = Vec::new();
    for output in &workflow.outputs {
        let mut parts = Vec::new();
        for file in files(run, &output.name) {
            parts.push(file_part(&run.workspace, &file, &mut left));
        }
        if parts.is_empty() {
            parts.extend(json_file(run, &output.name).map(Part::data));
        }
        if parts.is_empty() {
            parts.extend(handoff_field(run, &output.name).map(Part::data));
        }
        if !parts.is_empty() {
            artifacts.push(Artifact {
                artifact_id: format!("output:{}", output.name),
                name: Some(output.name.clone()),
                description: output.description.clone(),
                parts,
            });
        }
    }
    artifacts
}

/// The files of an output, relative to the workspace.
fn files(run: &Run, name: &str) -> Vec<String> {
    let phases = run.workspace.join(CliqDir::NAME).join("files");
    let phases = phases.read_dir_utf8().into_iter().flatten().filter_map(Result::ok);
    let mut places: Vec<String> =
        phases.map(|phase| format!("{}/files/{}/{name}", CliqDir::NAME, phase.file_name())).collect();
    places.sort();
    places.insert(0, name.to_owned());
    for place in places {
        let Ok(found) = workspace_files::locate(&run.workspace, &place) else { continue };
        if found.is_file() {
            return vec![place];
        }
        if found.is_dir() {
            let mut names: Vec<String> = found
                .read_dir_utf8()
                .into_iter()
                .flatten()
                .filter_map(Result::ok)
                .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
                .map(|entry| format!("{place}/{}", entry.file_name()))
                .collect();
            names.sort();
            names.truncate(MAX_ENTRIES);
            return names;
        }
    }
    Vec::new()
}

/// A file as a part: text as it is, a JSON object as data, anything else as bytes (docs/a2a.md). One that is too large is named only.
fn file_part(workspace: &Utf8Path, place: &str, left: &mut u64) -> Part {
    let path = Utf8PathBuf::from(place);
    let name = path.file_name().unwrap_or(place).to_owned();
    let content = workspace_files::locate(workspace, place)
        .ok()
        .and_then(|found| cliq_fs::read_limited(&found, MAX_FILE.min(*left)).ok());
    let Some(bytes) = content else {
        return Part::data(json!({"file": name, "omitted": "the file is too large to be sent"}));
    };
    *left -= (bytes.len() as u64).min(*left);
    let media_type = match path.extension() {
        Some("md") => "text/markdown",
        Some("json") => "application/json",
        Some("html" | "htm") => "text/html",
        Some("csv") => "text/csv",
        Some("png") => "image/png",
        Some("jpg" | "jpeg") => "image/jpeg",
        Some("svg") => "image/svg+xml",
        Some("pdf") => "application/pdf",
        _ if std::str::from_utf8(&bytes).is_ok() => "text/plain",
        _ => "application/octet-stream",
    };
    let content = match String::from_utf8(bytes) {
        Ok(text) => match path.extension().filter(|extension| *extension == "json") {
            Some(_) => match lenient_json(text.as_bytes()) {
                Ok(value @ Value::Object(_)) => Content::Data(value),
                _ => Content::Text(text),
            },
            None => Content::Text(text),
        },
        Err(error) => Content::Bytes(STANDARD.encode(error.into_bytes())),
    };
    Part { content, metadata: None, filename: Some(name), media_type: Some(media_type.to_owned()) }
}

/// The content of the file `NAME.json`, for an output that is declared as `NAME`.
fn json_file(run: &Run, name: &str) -> Option<Value> {
    let [place] = &files(run, &format!("{name}.json"))[..] else { return None };
    let found = workspace_files::locate(&run.workspace, place).ok()?;
    lenient_json(&cliq_fs::read_limited(&found, MAX_FILE).ok()?).ok()
}

/// A field of the data of a handoff. Where several have it, that of the channel that was written last counts.
fn handoff_field(run: &Run, name: &str) -> Option<Value> {
    let channels = run.workspace.join(CliqDir::NAME).join("channels");
    let mut found: Vec<_> = channels
        .read_dir_utf8()
        .into_iter()
        .flatten()
        .filter_map(Result::ok)
        .filter_map(|entry| {
            let path = entry.path().join("handoff.json");
            let at = path.symlink_metadata().ok()?.modified().ok()?;
            let handoff = lenient_json(&cliq_fs::read_limited(&path, MAX_HANDOFF).ok()?).ok()?;
            Some((at, handoff["data"].get(name)?.clone()))
        })
        .collect();
    found.sort_by_key(|(at, _)| *at);
    found.pop().map(|(_, value)| value)
}
