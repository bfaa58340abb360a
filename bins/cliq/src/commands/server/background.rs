//! The server in the background: start, stop, status, logs.

use std::fs::OpenOptions;
use std::io::{Read, Seek, SeekFrom};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use cliq_fs::ProjectLock;
use cliq_http::{Client, Limits, Request};
use cliq_model::{RunState, RunStore};
use cliq_project::{Check, CheckStatus};
use serde_json::{Value, json};

use super::super::background::{held, log_since, stop_holder};
use super::a2a;
use super::options::options_of;
use super::token::sign_in_link;
use crate::args::ServerRunArgs;
use crate::failure::Failure;
use crate::gateway::{self, block_on, home};
use crate::server_record::{ServerRecord, running, server_dir};
use crate::ui::{self, paint};

/// Deadline for the start of a server, and for its end.
const BEGINS: Duration = Duration::from_secs(20);
const ENDS: Duration = Duration::from_secs(20);
/// Deadline for a response of the server.
const ANSWER: Duration = Duration::from_secs(3);

fn none_runs() -> Failure {
    Failure::failed("no server is running").hint("`cliq server start` starts one")
}

pub(super) fn start(args: &ServerRunArgs) -> Result<ExitCode, Failure> {
    let dir = server_dir()?;
    ProjectLock::check(&dir).map_err(|error| held(error, "server"))?;
    // What is wrong with the arguments is said here, and not in a log.
    let summary = a2a::summary(&options_of(args)?)?;
    let log = dir.root().join("server.log");
    let file = OpenOptions::new().create(true).append(true).open(&log)?;
    let begins_at = file.metadata()?.len();
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["server", "run", "--detached"]);
    if let Some(port) = args.port {
        command.args(["--port", &port.to_string()]);
    }
    if let Some(host) = &args.host {
        command.args(["--host", host]);
    }
    for (flag, file) in [("--tls-cert", &args.tls_cert), ("--tls-key", &args.tls_key)] {
        if let Some(file) = file {
            command.args([flag, file.canonicalize_utf8().as_ref().unwrap_or(file).as_str()]);
        }
    }
    if args.insecure_http {
        command.arg("--insecure-http");
    }
    if args.a2a {
        command.arg("--a2a");
    }
    for mesh in &args.mesh {
        command.args(["--mesh", mesh]);
    }
    let mut child =
        command.current_dir(home()?).stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file).spawn()?;
    let deadline = Instant::now() + BEGINS;
    let record = loop {
        match running()? {
            Some(record) if record.pid == child.id() => break record,
            _ => {}
        }
        if child.try_wait()?.is_some() || Instant::now() > deadline {
            let text = log_since(&log, begins_at);
            return Err(Failure::failed(format!("the server did not start:\n{}", ui::plain(text.trim()))));
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let link = link(&record)?;
    ui::line(format!("the server is running on {}, process {}", paint(ui::BOLD, &record.url), record.pid))?;
    ui::line(format!("dashboard (this link signs in once): {link}"))?;
    if let Some(summary) = summary {
        ui::line(summary)?;
    }
    ui::line(format!("its log is {log}"))?;
    Ok(ExitCode::SUCCESS)
}

/// Makes a link that signs in once.
pub(in crate::commands) fn link(record: &ServerRecord) -> Result<String, Failure> {
    block_on(async { sign_in_link(gateway::open().await?.as_ref(), &record.url).await })
}

/// Prints a new link to the dashboard.
pub(super) fn open() -> Result<ExitCode, Failure> {
    let record = running()?.ok_or_else(none_runs)?;
    ui::line(link(&record)?)?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn stop() -> Result<ExitCode, Failure> {
    if !stop_holder(&server_dir()?, "server", ENDS)? {
        ui::line("no server is running")?;
        return Ok(ExitCode::SUCCESS);
    }
    ui::line("the server has stopped; runs go on, and the next server follows them")?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the mesh states that a running server reports. Empty if the server does not respond.
fn meshes(record: &ServerRecord) -> Vec<Value> {
    let call = || -> Option<Value> {
        let client = Client::new(Limits { whole: ANSWER, tries: 1, ..Limits::default() });
        let request = Request::get(format!("{}/api/v1/meshes", record.url));
        client.json(&request.secret_header("authorization", format!("Bearer {}", record.token))).ok()
    };
    call().and_then(|mut answer| answer["meshes"].as_array_mut().map(std::mem::take)).unwrap_or_default()
}

pub(super) fn status(as_json: bool) -> Result<ExitCode, Failure> {
    let (record, log) = (running()?, server_dir()?.root().join("server.log"));
    let counts = block_on(async { Ok(gateway::open().await?.counts().await?) })?;
    let count = |state: RunState| counts.iter().find(|(s, _)| *s == state).map_or(0, |(_, n)| *n);
    if as_json {
        let runs: serde_json::Map<_, _> =
            counts.iter().map(|(state, n)| (state.as_str().to_owned(), json!(n))).collect();
        ui::json(&json!({
            "running": record.is_some(),
            "pid": record.as_ref().map(|record| record.pid),
            "url": record.as_ref().map(|record| &record.url),
            "log": log,
            "meshes": record.as_ref().map(meshes).unwrap_or_default(),
            "runs": runs,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let meshes = record.as_ref().map(meshes).unwrap_or_default();
    match record {
        None => ui::line("no server is running: `cliq server start` starts one")?,
        Some(record) => ui::line(format!(
            "the server is {} on {}, process {}",
            paint(ui::GREEN, "running"),
            record.url,
            record.pid
        ))?,
    }
    for mesh in meshes {
        let text = |key: &str| mesh[key].as_str().map(ui::plain).unwrap_or_default();
        let colour = if text("state") == "joined" { ui::GREEN } else { ui::YELLOW };
        let reason = text("reason");
        let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
        ui::line(format!(
            "mesh {} is {} since {}{reason}",
            text("name"),
            paint(colour, text("state")),
            text("since")
        ))?;
    }
    let active = count(RunState::Starting) + count(RunState::Running);
    let (queued, waiting) = (count(RunState::Queued), count(RunState::Waiting));
    ui::line(format!("{active} runs at work, {queued} in the queue, {waiting} waiting for people"))?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the log of the server, or of requests.
pub(super) fn logs(access: bool, follow: bool) -> Result<ExitCode, Failure> {
    let path = server_dir()?.root().join(if access { "access.log" } else { "server.log" });
    let mut at = 0;
    loop {
        let alive = running()?.is_some();
        match cliq_fs::open_regular(&path) {
            Ok((mut file, size)) => {
                // A log that was put aside begins anew.
                file.seek(SeekFrom::Start(if size < at { 0 } else { at }))?;
                let mut bytes = Vec::new();
                at = size.min(at) + file.read_to_end(&mut bytes)? as u64;
                at = at.max(size);
                ui::raw(&bytes)?;
            }
            Err(error) if error.is_not_found() => {
                if !follow {
                    ui::hint("the server has written nothing");
                }
            }
            Err(error) => return Err(error.into()),
        }
        if !(follow && alive) {
            return Ok(ExitCode::SUCCESS);
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Returns the checks of `cliq doctor` for the server and its database. Empty if neither was ever used.
pub(crate) fn checks() -> Vec<Check> {
    let Ok(location) = gateway::location() else {
        return vec![Check::new(
            "database",
            CheckStatus::Missing,
            "the setting `database.url` is not an address of a PostgreSQL database".into(),
        )];
    };
    let mut checks = Vec::new();
    if location.is_shared() || home().is_ok_and(|home| home.join("cliq.db").exists()) {
        checks.push(match block_on(gateway::open()) {
            Ok(_) => Check::new("database", CheckStatus::Ok, location.to_string()),
            Err(failure) => Check::new("database", CheckStatus::Missing, failure.text().to_owned()),
        });
    }
    let record = running().ok().flatten();
    let reachable = record.as_ref().map(|record| {
        std::net::TcpStream::connect_timeout(&([127, 0, 0, 1], record.port).into(), Duration::from_secs(2))
            .is_ok()
    });
    checks.push(match (record, reachable) {
        (Some(record), Some(true)) => {
            Check::new("server", CheckStatus::Ok, format!("running on {}", record.url))
        }
        (Some(record), _) => Check::new(
            "server",
            CheckStatus::Note,
            format!("process {} runs and does not answer on 127.0.0.1:{}", record.pid, record.port),
        ),
        (None, _) => {
            Check::new("server", CheckStatus::Note, "none runs: `cliq server start` starts one".into())
        }
    });
    checks
}
