//! `cliq signal`

use std::io::Read;
use std::process::ExitCode;

use camino::Utf8Path;
use cliq_gateway::{Filter, Inbox, NewSignal, Signal, SignalStatus, Store, WaitingFile};
use comfy_table::{ContentArrangement, Table, presets};
use serde_json::json;

use crate::args::{SignalCommand, SignalStatusName};
use crate::failure::Failure;
use crate::gateway::{self, block_on};
use crate::ui::{self, paint};

pub(super) fn run(command: &SignalCommand) -> Result<ExitCode, Failure> {
    block_on(async {
        match command {
            SignalCommand::Emit { kind, plan, payload, project } => {
                emit(kind, plan, payload, project.project.as_deref()).await
            }
            SignalCommand::List { status, plan, all, json, project } => {
                let project =
                    if *all { None } else { Some(gateway::project_name(project.project.as_deref())?) };
                let filter =
                    Filter { project, plan: plan.clone(), status: status.map(status_of), limit: None };
                let files = waiting_files(&filter)?;
                list(&filter, &files, *json).await
            }
            SignalCommand::Show { id, json } => show(*id, *json).await,
            SignalCommand::Retry { id } => retry(*id).await,
            SignalCommand::History { plan, limit, json, project } => {
                let project = Some(gateway::project_name(project.project.as_deref())?);
                let filter = Filter { project, plan: plan.clone(), status: None, limit: Some(*limit) };
                list(&filter, &[], *json).await
            }
        }
    })
}

fn status_of(name: SignalStatusName) -> SignalStatus {
    match name {
        SignalStatusName::Pending => SignalStatus::Pending,
        SignalStatusName::Processing => SignalStatus::Processing,
        SignalStatusName::Done => SignalStatus::Done,
        SignalStatusName::Failed => SignalStatus::Failed,
    }
}

async fn emit(kind: &str, plan: &str, payload: &str, project: Option<&str>) -> Result<ExitCode, Failure> {
    let payload = match payload {
        "-" => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text)?;
            text
        }
        text => text.to_owned(),
    };
    let signal =
        NewSignal::parse(kind, plan, &payload).map_err(|refused| Failure::usage(refused.to_string()))?;
    let project = gateway::project_name(project)?;
    if gateway::sends_files() {
        Inbox::of(Utf8Path::new(&project)).send(&signal)?;
        ui::line(format!("{} for {} waits for the daemon", signal.kind(), signal.plan()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let store = gateway::open().await?;
    let id = store.create(&project, &signal).await?;
    ui::line(format!("signal {id}: {} for {}", signal.kind(), signal.plan()))?;
    if store.plan(&project, signal.plan().as_str()).await?.is_none() {
        ui::warning(&format!(
            "there is no plan `{}` in {project} yet: the signal will fail when it is processed",
            signal.plan()
        ));
        ui::hint("`cliq plan list` shows those there are, `cliq plan add FILE` adds one");
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the signal files in the inboxes of a project that a filter includes. Nothing is brought in.
fn waiting_files(filter: &Filter) -> Result<Vec<WaitingFile>, Failure> {
    let Some(project) = filter
        .project
        .as_deref()
        .filter(|_| filter.status.is_none_or(|status| status == SignalStatus::Pending))
    else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    for inbox in Inbox::all_of(Utf8Path::new(project)) {
        found.extend(inbox.waiting()?);
    }
    if let Some(plan) = &filter.plan {
        found.retain(|file| file.signal.as_ref().is_ok_and(|signal| signal.plan().as_str() == plan));
    }
    Ok(found)
}

/// A signal file for `--json`.
fn file_document(file: &WaitingFile) -> serde_json::Value {
    match &file.signal {
        Ok(signal) => json!({"path": file.path, "type": signal.kind(), "plan": signal.plan().as_str(),
            "payload": signal.payload_text()}),
        Err(problem) => json!({"path": file.path, "problem": problem}),
    }
}

fn list_files(files: &[WaitingFile]) -> Result<(), Failure> {
    for file in files {
        let path = ui::plain(file.path.as_str());
        match &file.signal {
            Ok(signal) => ui::line(format!("file pending  {} for {}  {path}", signal.kind(), signal.plan()))?,
            Err(problem) => {
                ui::line(paint(ui::RED, format!("file refused  {path}: {}", first_line(problem))))?;
            }
        }
    }
    if !files.is_empty() {
        ui::hint("the daemon brings files into the queue: `cliq daemon start`");
    }
    Ok(())
}

async fn list(filter: &Filter, files: &[WaitingFile], as_json: bool) -> Result<ExitCode, Failure> {
    let signals = gateway::open().await?.signals(filter).await?;
    if as_json {
        let mut document = json!({"signals": signals});
        if !files.is_empty() {
            document["files"] = files.iter().map(file_document).collect();
        }
        ui::json(&document)?;
        return Ok(ExitCode::SUCCESS);
    }
    if signals.is_empty() && !files.is_empty() {
        list_files(files)?;
        return Ok(ExitCode::SUCCESS);
    }
    if signals.is_empty() {
        ui::line("no signals")?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(["ID", "STATUS", "TYPE", "PLAN", "EMITTED", "RESULT"]);
    for signal in &signals {
        table.add_row([
            signal.id.to_string(),
            signal.status.to_string(),
            signal.kind.clone(),
            ui::plain(&signal.plan),
            signal.created_at.clone(),
            first_line(&signal.result),
        ]);
    }
    for (n, line) in table.lines().enumerate() {
        let line = line.trim_end();
        // Colours after the layout: it counts every character.
        let style = match n.checked_sub(1).and_then(|n| signals.get(n)).map(|signal| signal.status) {
            None => ui::DIM,
            Some(SignalStatus::Failed) => ui::RED,
            Some(SignalStatus::Processing) => ui::CYAN,
            Some(SignalStatus::Done | SignalStatus::Pending) => anstyle::Style::new(),
        };
        ui::line(paint(style, line))?;
    }
    list_files(files)?;
    Ok(ExitCode::SUCCESS)
}

fn coloured(status: SignalStatus) -> String {
    match status {
        SignalStatus::Pending => status.to_string(),
        SignalStatus::Processing => paint(ui::CYAN, status),
        SignalStatus::Done => paint(ui::GREEN, status),
        SignalStatus::Failed => paint(ui::RED, status),
    }
}

fn first_line(text: &str) -> String {
    ui::plain(text.lines().next().unwrap_or_default()).chars().take(80).collect()
}

async fn find(id: i64) -> Result<Signal, Failure> {
    let found = gateway::open().await?.signal(id).await?;
    found.ok_or_else(|| {
        Failure::usage(format!("there is no signal {id}")).hint("`cliq signal list` shows those there are")
    })
}

async fn show(id: i64, as_json: bool) -> Result<ExitCode, Failure> {
    let signal = find(id).await?;
    if as_json {
        ui::json(&signal)?;
        return Ok(ExitCode::SUCCESS);
    }
    ui::line(format!(
        "{} {}  {}",
        paint(ui::BOLD, format!("signal {id}")),
        signal.kind,
        coloured(signal.status)
    ))?;
    let rows = [
        ("plan", &signal.plan),
        ("project", &signal.project),
        ("payload", &signal.payload),
        ("emitted", &signal.created_at),
        ("claimed by", &signal.claimed_by),
        ("claimed", &signal.claimed_at),
        ("processed", &signal.processed_at),
        ("result", &signal.result),
    ];
    for (name, value) in rows.iter().filter(|(_, value)| !value.is_empty()) {
        ui::line(format!("{} {}", paint(ui::DIM, format!("{name:>10}")), ui::plain(value)))?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn retry(id: i64) -> Result<ExitCode, Failure> {
    let signal = find(id).await?;
    if !gateway::open().await?.retry(id).await? {
        return Err(Failure::refused(format!(
            "signal {id} is {}, and only failed ones can be retried",
            signal.status
        )));
    }
    ui::line(format!("signal {id} is pending again"))?;
    Ok(ExitCode::SUCCESS)
}
