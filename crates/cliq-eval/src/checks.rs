//! Checks of the outcome of a trial.

use std::collections::BTreeMap;
use std::fs::File;
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use camino::Utf8Path;
use cliq_expr::Expression;
use cliq_fs::{CliqDir, IoContext};
use cliq_project::internals::split_item;
use cliq_protocol::{Object, shorten};
use regex::RegexBuilder;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::error::EvalError;
use crate::suite::{EndState, FileRule};
use crate::trial::CheckResult;

/// Maximum length of a regular expression, in bytes.
const MAX_PATTERN: usize = 4096;
/// Maximum size of a file whose text is matched, in bytes.
const MAX_TEXT: u64 = 16 << 20;
/// Number of trailing bytes of an output that are kept in a result.
const TAIL: u64 = 2000;
/// Maximum size of a handoff, in bytes.
const MAX_HANDOFF: u64 = 16 << 20;

/// Outcome of a run, for expressions and checks of the end.
#[derive(Debug, Clone)]
pub(crate) struct RunOutcome {
    pub(crate) end: Option<String>,
    pub(crate) cost_usd: Option<f64>,
    pub(crate) tokens: u64,
    pub(crate) duration_ms: u64,
}

fn result(name: &str, pass: bool, detail: impl Into<String>) -> CheckResult {
    CheckResult { name: name.to_owned(), pass, detail: detail.into() }
}

/// Checks the end of the run.
pub(crate) fn check_end(name: &str, expected: EndState, outcome: &RunOutcome) -> CheckResult {
    let end = outcome.end.as_deref().unwrap_or("not recorded");
    let is_met = end == expected.as_str();
    result(name, is_met, if is_met { String::new() } else { format!("the end of the run is: {end}") })
}

/// Compiles the pattern of a check, of at most 4 KiB. The compiled pattern has at most 1 MiB; errors have at most 300 bytes.
pub(crate) fn compile(pattern: &str) -> Result<regex::Regex, String> {
    if pattern.len() > MAX_PATTERN {
        return Err(format!("it has {} bytes; {MAX_PATTERN} is the most", pattern.len()));
    }
    let built = RegexBuilder::new(pattern).multi_line(true).size_limit(1 << 20).build();
    built.map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => "it is too large when compiled: repeat less".to_owned(),
        error => shorten(error.to_string().lines().last().unwrap_or_default(), 300).into_owned(),
    })
}

/// Checks a file. Links that lead out of the workspace are not followed.
pub(crate) fn check_file(name: &str, workspace: &Utf8Path, path: &str, rule: &FileRule) -> CheckResult {
    let full = workspace.join(path);
    let inside = full
        .canonicalize_utf8()
        .ok()
        .filter(|real| workspace.canonicalize_utf8().is_ok_and(|workspace| real.starts_with(workspace)));
    match (rule, inside) {
        (FileRule::Absent, None) | (FileRule::Exists, Some(_)) => result(name, true, ""),
        (FileRule::Absent, Some(_)) => result(name, false, format!("{path} exists")),
        (FileRule::Exists | FileRule::Matches(_), None) => {
            result(name, false, format!("{path} does not exist"))
        }
        (FileRule::Matches(pattern), Some(real)) => {
            let Ok(text) = cliq_fs::read_text(&real, MAX_TEXT) else {
                return result(name, false, format!("{path} cannot be read as text"));
            };
            let matches = compile(pattern).is_ok_and(|pattern| pattern.is_match(&text));
            result(name, matches, if matches { String::new() } else { format!("{path} does not match") })
        }
    }
}

/// Checks an expression. One that cannot be evaluated fails with the reason.
pub(crate) fn check_expression(name: &str, source: &str, dir: &CliqDir, outcome: &RunOutcome) -> CheckResult {
    let values: Object = [
        ("handoff".to_owned(), Value::Object(handoffs(dir))),
        ("end".to_owned(), json!(outcome.end)),
        ("cost".to_owned(), json!(outcome.cost_usd)),
        ("tokens".to_owned(), json!(outcome.tokens)),
        ("duration".to_owned(), json!(outcome.duration_ms as f64 / 1000.0)),
    ]
    .into_iter()
    .collect();
    let evaluated = Expression::parse(source)
        .map_err(|error| error.to_string())
        .and_then(|expression| expression.evaluate(&values).map_err(|error| error.to_string()));
    match evaluated {
        Ok(Value::Bool(true)) => result(name, true, ""),
        Ok(Value::Bool(false)) => result(name, false, format!("`{source}` is false")),
        Ok(other) => result(name, false, format!("`{source}` is {other}, neither true nor false")),
        Err(error) => result(name, false, format!("`{source}`: {error}")),
    }
}

/// Data of the newest handoff of each phase.
fn handoffs(dir: &CliqDir) -> Object {
    let mut found: Vec<(Option<SystemTime>, String, Value)> = Vec::new();
    let Ok(channels) = dir.channels().read_dir_utf8() else { return Object::new() };
    for channel in channels.filter_map(Result::ok) {
        let Some((from, _)) = channel.file_name().split_once("--") else { continue };
        let file = channel.path().join("handoff.json");
        let Ok(bytes) = cliq_fs::read_limited(&file, MAX_HANDOFF) else { continue };
        let Ok(envelope) = cliq_protocol::lenient_json(&bytes) else { continue };
        let at = std::fs::metadata(&file).and_then(|meta| meta.modified()).ok();
        let data = envelope.get("data").filter(|data| !data.is_null()).cloned().unwrap_or_else(|| json!({}));
        found.push((at, from.to_owned(), data));
    }
    found.sort_by_key(|(at, ..)| *at);
    let mut handoffs: Object = found.into_iter().map(|(_, from, data)| (from, data)).collect();
    // Items of a list are the list of their phase.
    let mut lists: BTreeMap<String, BTreeMap<u32, Value>> = BTreeMap::new();
    for (from, data) in &handoffs {
        if let (phase, Some(item)) = split_item(from) {
            lists.entry(phase.to_owned()).or_default().insert(item, data.clone());
        }
    }
    for (phase, items) in lists {
        handoffs.entry(phase).or_insert_with(|| items.into_values().collect());
    }
    handoffs
}

/// Runs a command in the workspace. All its processes end with it.
///
/// # Errors
/// Returns an error if the command cannot be started: that says nothing about the team.
pub(crate) async fn check_command(
    name: &str,
    command: &str,
    workspace: &Utf8Path,
    limit: Duration,
    log: &Utf8Path,
) -> Result<CheckResult, EvalError> {
    let file = File::create(log).at("create", log)?;
    let other = file.try_clone().at("open", log)?;
    let mut shell = Command::new("sh");
    cliq_orchestrator::internals::leave_terminal(shell.as_std_mut()).at("start sh for", workspace)?;
    let started = shell
        .args(["-c", command])
        .current_dir(workspace)
        .env_remove("CLIQ_ADMIN_TOKEN")
        .stdin(Stdio::null())
        .stdout(file)
        .stderr(other)
        .kill_on_drop(true)
        .spawn();
    let mut child = started.at("start sh for", workspace)?;
    let group = child.id();
    let ended = tokio::time::timeout(limit, child.wait()).await;
    if let Some(group) = group.and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw)
    {
        // Processes that the command left behind.
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    let tail = tail_of(log);
    Ok(match ended {
        Err(_) => {
            child.wait().await.at("end", workspace)?;
            result(name, false, format!("time limit of {} s exceeded\n{tail}", limit.as_secs()))
        }
        Ok(status) => {
            let status = status.at("wait for", workspace)?;
            match status.code() {
                Some(0) => result(name, true, ""),
                Some(code) => result(name, false, format!("exit code {code}\n{tail}").trim_end().to_owned()),
                None => result(name, false, format!("killed by a signal\n{tail}").trim_end().to_owned()),
            }
        }
    })
}

fn tail_of(log: &Utf8Path) -> String {
    use std::io::{Read, Seek, SeekFrom};
    let mut bytes = Vec::new();
    let read = File::open(log).and_then(|mut file| {
        let size = file.metadata()?.len();
        file.seek(SeekFrom::Start(size.saturating_sub(TAIL)))?;
        file.take(TAIL).read_to_end(&mut bytes)
    });
    if read.is_err() {
        return String::new();
    }
    String::from_utf8_lossy(&bytes).trim().to_owned()
}
