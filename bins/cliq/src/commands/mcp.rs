//! `cliq mcp`: the tools of the MCP server, by what the commands of the same names do.

use std::process::ExitCode;
use std::sync::Arc;

use async_trait::async_trait;
use cliq_fs::ProjectLock;
use cliq_gateway::{Filter, NewSignal, SignalStatus, Store};
use cliq_lifecycle::{plan_document, read};
use cliq_mcp::{Backend, CreateSignal, ListSignals};
use cliq_project::{RunState, RunStatus};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::gateway::{self, block_on};
use crate::project;

pub(super) fn run() -> Result<ExitCode, Failure> {
    block_on(async {
        cliq_mcp::serve(Arc::new(ProjectBackend))
            .await
            .map_err(|error| Failure::failed(error.to_string()))?;
        Ok(ExitCode::SUCCESS)
    })
}

/// The project that the server was started in.
struct ProjectBackend;

/// The plan that an agent works on.
fn own_plan() -> Option<String> {
    std::env::var("CLIQ_PLAN").ok().filter(|plan| !plan.is_empty())
}

impl ProjectBackend {
    async fn create(&self, signal: CreateSignal) -> Result<Value, Failure> {
        let plan = signal.plan.or_else(own_plan).ok_or_else(|| Failure::usage("name the plan: `plan`"))?;
        let payload = signal.payload.map_or_else(String::new, cliq_mcp::Payload::into_text);
        let new = NewSignal::parse(&signal.signal_type, &plan, &payload)
            .map_err(|refused| Failure::usage(refused.to_string()))?;
        let project = gateway::project_name(signal.project.as_deref())?;
        let store = gateway::open().await?;
        let id = store.create(&project, &new).await?;
        Ok(json!(store.signal(id).await?))
    }

    async fn list(&self, filter: ListSignals) -> Result<Value, Failure> {
        let status = match filter.status.as_deref() {
            None => None,
            Some(word) => Some(SignalStatus::parse(word).ok_or_else(|| {
                let words = SignalStatus::ALL.map(SignalStatus::as_str).join(", ");
                Failure::usage(format!("`{word}` is not a status; they are: {words}"))
            })?),
        };
        let project = Some(gateway::project_name(None)?);
        let filter = Filter { project, plan: filter.plan, status, limit: Some(filter.limit.unwrap_or(50)) };
        Ok(json!({"signals": gateway::open().await?.signals(&filter).await?}))
    }

    async fn plans(&self, plan: Option<String>) -> Result<Value, Failure> {
        let (project, store) = (gateway::project_name(None)?, gateway::open().await?);
        let Some(plan) = plan.or_else(own_plan) else {
            let rows = store.plans(Some(&project)).await?;
            let plans: Result<Vec<Value>, Failure> =
                rows.iter().map(|row| Ok(plan_document(&read(row)?, row))).collect();
            return Ok(json!({"plans": plans?}));
        };
        let row = store.plan(&project, &plan).await?;
        let row = row.ok_or_else(|| Failure::usage(format!("there is no plan `{plan}` in {project}")))?;
        Ok(plan_document(&read(&row)?, &row))
    }

    fn run(&self) -> Result<Value, Failure> {
        let project = project::open()?;
        let workflow = project.workflow()?;
        let running = ProjectLock::holder(project.dir())?.is_some();
        let mut last = project.last_run(&workflow)?;
        let state = RunState::of(last.as_ref().map(|(_, view)| view), running);
        if state == RunState::Interrupted
            && let Some((journal, view)) = &mut last
        {
            view.interrupt(journal.records.last().and_then(|record| record.ts.time()));
        }
        let view = last.map(|(_, view)| view);
        let document = |view| RunStatus::new(view, &project).document();
        let mut value = view.as_ref().map_or_else(|| json!({}), document);
        value["state"] = state.as_str().into();
        Ok(value)
    }
}

fn message(outcome: Result<Value, Failure>) -> Result<Value, String> {
    outcome.map_err(|failure| failure.text().to_owned())
}

#[async_trait]
impl Backend for ProjectBackend {
    async fn create_signal(&self, signal: CreateSignal) -> Result<Value, String> {
        message(self.create(signal).await)
    }

    async fn list_signals(&self, filter: ListSignals) -> Result<Value, String> {
        message(self.list(filter).await)
    }

    async fn plan_status(&self, plan: Option<String>) -> Result<Value, String> {
        message(self.plans(plan).await)
    }

    async fn run_status(&self) -> Result<Value, String> {
        message(self.run())
    }
}
