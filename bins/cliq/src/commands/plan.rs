//! `cliq plan`

mod attach;

use std::collections::BTreeMap;
use std::io::Read;
use std::process::ExitCode;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::ProjectLock;
use cliq_gateway::{PlanEvent, PlanName};
use cliq_lifecycle::{AddError, Command, PlanState, Plans, WorkId, plan_dir, plan_document, read};
use cliq_project::Project;
use cliq_protocol::NewSteering;

use crate::args::PlanCommand;
use crate::failure::{Failure, Kind};
use crate::gateway::{self, block_on};
use crate::project;
use crate::render::plan as show;
use crate::ui::{self, paint};

/// The most bytes of a plan's file.
const LIMIT: u64 = 64 << 20;
/// Polling interval of a followed plan.
const STEP: Duration = Duration::from_millis(300);

pub(super) fn run(command: &PlanCommand) -> Result<ExitCode, Failure> {
    block_on(async {
        match command {
            PlanCommand::Add { file, name } => add(file, name.as_deref()).await,
            PlanCommand::Start { plan } => start(plan).await,
            PlanCommand::Status { plan: None, json, .. } => list(false, *json).await,
            PlanCommand::Status { plan: Some(plan), json, watch } => status(plan, *json, *watch).await,
            PlanCommand::Show { plan, json } => show_plan(plan, *json).await,
            PlanCommand::Events { plan, json } => events(plan, *json).await,
            PlanCommand::Attach { plan, task } => attach::run(plan, task.as_deref()).await,
            PlanCommand::Answer { plan, text, question } => answer(plan, text, *question).await,
            PlanCommand::Steer { plan, text, task, id } => {
                steer(plan, text, task.as_deref(), id.clone()).await
            }
            PlanCommand::Cancel { plan } => person(plan, Command::Cancel).await,
            PlanCommand::StartOver { plan } => person(plan, Command::StartOver).await,
            PlanCommand::Reimplement { plan } => person(plan, Command::Reimplement).await,
            PlanCommand::RequestReview { plan } => person(plan, Command::RequestReview).await,
            PlanCommand::Reopen { plan } => person(plan, Command::Reopen).await,
            PlanCommand::List { all, json } => list(*all, *json).await,
        }
    })
}

fn name_of(text: &str) -> Result<PlanName, Failure> {
    PlanName::parse(text).map_err(Failure::usage)
}

/// The project of plans: where an agent asks, that of its plan.
fn here() -> Result<Project, Failure> {
    let host = project::host();
    match host.environment.get("CLIQ_PROJECT").map(Utf8PathBuf::from) {
        Some(workspace) => Ok(Project::open(&workspace, host)?),
        None => project::open(),
    }
}

async fn plans() -> Result<Plans, Failure> {
    Ok(Plans::new(gateway::open().await?))
}

async fn add(file: &Utf8Path, name: Option<&str>) -> Result<ExitCode, Failure> {
    let here = here()?;
    let dir = here.dir();
    let bytes = cliq_fs::read_limited(file, LIMIT).map_err(|error| Failure::usage(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|_| Failure::usage(format!("{file} is not UTF-8")))?;
    let stem = file.file_stem().unwrap_or_default();
    let name = match name {
        Some(name) => name_of(name)?,
        None => PlanName::parse(stem)
            .map_err(|why| Failure::usage(why).hint("`--name NAME` gives it another name"))?,
    };
    let plan = plans().await?.add_text(dir.workspace(), &name, &text).await.map_err(|error| match error {
        AddError::Text(problems) => {
            for problem in problems {
                ui::error(&format!("{file}:{}: {}", problem.line, problem.message));
            }
            Failure::reported(Kind::Usage)
        }
        AddError::Step(error) => error.into(),
        other => Failure::failed(other.to_string()),
    })?;
    let (waves, tasks) = (plan.waves.len(), plan.waves.iter().map(|wave| wave.tasks.len()).sum::<usize>());
    let some = |n, what| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let (waves, tasks) = (some(waves, "wave"), some(tasks, "task"));
    ui::line(format!("plan {} is ready: {waves}, {tasks}", paint(ui::BOLD, &name)))?;
    ui::line(format!("next: `cliq plan start {name}`"))?;
    daemon_hint()?;
    Ok(ExitCode::SUCCESS)
}

/// Shows a hint where no daemon runs that would process the signal.
fn daemon_hint() -> Result<(), Failure> {
    if ProjectLock::holder(&super::daemon::place()?)?.is_none() {
        ui::hint(
            "no daemon is running: `cliq daemon start` starts one, `cliq daemon run` shows what it does",
        );
    }
    Ok(())
}

async fn start(plan: &str) -> Result<ExitCode, Failure> {
    let (here, name) = (here()?, name_of(plan)?);
    let id = here.start_plan(&plans().await?, &name).await?;
    ui::line(format!("plan {name} is started (signal {id})"))?;
    ui::line(format!("next: `cliq plan status {name} --watch`"))?;
    daemon_hint()?;
    Ok(ExitCode::SUCCESS)
}

async fn person(plan: &str, command: Command) -> Result<ExitCode, Failure> {
    let (here, name) = (here()?, name_of(plan)?);
    let plans = plans().await?;
    here.command_plan(&plans, &name, command).await?;
    let (stored, _) = plans.load(here.dir().workspace().as_str(), name.as_str()).await?;
    ui::line(format!("plan {name} is {}", show::state(stored.state)))?;
    if !matches!(stored.state, PlanState::Done | PlanState::Cancelled) {
        daemon_hint()?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn answer(plan: &str, text: &str, question: Option<u64>) -> Result<ExitCode, Failure> {
    let text = match text {
        "-" => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text)?;
            text
        }
        text => text.to_owned(),
    };
    if text.trim().is_empty() {
        return Err(Failure::usage("the answer is empty"));
    }
    person(plan, Command::Answer { question, text: text.trim_end().to_owned() }).await
}

async fn steer(plan: &str, text: &str, task: Option<&str>, id: Option<String>) -> Result<ExitCode, Failure> {
    let task =
        task.map(str::parse::<WorkId>).transpose().map_err(|error| Failure::usage(error.to_string()))?;
    let id = id.unwrap_or_else(|| uuid::Uuid::now_v7().to_string());
    let new = NewSteering::new(id, &crate::reviews::user(), &super::steer::text(text)?, None);
    let message = new.map_err(|error| Failure::usage(error.to_string()))?.received_at(cliq_fs::now());
    person(plan, Command::Guide { message, task }).await
}

async fn status(plan: &str, as_json: bool, watch: bool) -> Result<ExitCode, Failure> {
    let (here, name) = (here()?, name_of(plan)?);
    let dir = here.dir();
    let (plans, project) = (plans().await?, dir.workspace().as_str());
    let mut last: BTreeMap<&str, String> = BTreeMap::new();
    loop {
        let (stored, row) = plans.load(project, name.as_str()).await?;
        if as_json {
            ui::json(&plan_document(&stored, &row))?;
            return Ok(ExitCode::SUCCESS);
        }
        let text = show::status(&stored, name.as_str());
        if last.insert("text", text.clone()).is_none_or(|before| before != text) {
            ui::raw_styled(&text)?;
            if watch && !matches!(stored.state, PlanState::Done | PlanState::Cancelled) {
                ui::line("")?;
            }
        }
        if !watch || matches!(stored.state, PlanState::Done | PlanState::Cancelled) {
            return Ok(ExitCode::SUCCESS);
        }
        tokio::time::sleep(STEP).await;
    }
}

async fn show_plan(plan: &str, as_json: bool) -> Result<ExitCode, Failure> {
    let (here, name) = (here()?, name_of(plan)?);
    let dir = here.dir();
    let (stored, row) = plans().await?.load(dir.workspace().as_str(), name.as_str()).await?;
    if as_json {
        let mut value = plan_document(&stored, &row);
        value["file"] = serde_json::json!(stored.file);
        ui::json(&value)?;
    } else {
        ui::raw_styled(&show::whole(&stored, name.as_str(), &plan_dir(dir.workspace(), name.as_str())))?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn events(plan: &str, as_json: bool) -> Result<ExitCode, Failure> {
    let (here, name) = (here()?, name_of(plan)?);
    let dir = here.dir();
    let (plans, project) = (plans().await?, dir.workspace().as_str());
    // One that is not there has no events, and people want to know which of the two it is.
    plans.load(project, name.as_str()).await?;
    let events: Vec<PlanEvent> = plans.store().events(project, name.as_str(), 0).await?;
    for event in &events {
        if as_json {
            let mut line = serde_json::to_vec(event).map_err(std::io::Error::other)?;
            line.push(b'\n');
            ui::raw(&line)?;
        } else {
            ui::line(show::event(event))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn list(all: bool, as_json: bool) -> Result<ExitCode, Failure> {
    let project: Option<Utf8PathBuf> = if all { None } else { Some(here()?.dir().workspace().to_owned()) };
    let rows = plans().await?.store().plans(project.as_ref().map(|path| path.as_str())).await?;
    if as_json {
        let values: Result<Vec<_>, Failure> =
            rows.iter().map(|row| Ok(plan_document(&read(row)?, row))).collect();
        ui::json(&serde_json::json!({"plans": values?}))?;
        return Ok(ExitCode::SUCCESS);
    }
    if rows.is_empty() {
        ui::line("no plans: `cliq plan add FILE` adds one")?;
    }
    for row in &rows {
        let stored = read(row)?;
        let place = if all { format!("  {}", paint(ui::DIM, &row.project)) } else { String::new() };
        ui::line(format!("{}{place}", show::summary(&stored, &row.name)))?;
    }
    Ok(ExitCode::SUCCESS)
}
