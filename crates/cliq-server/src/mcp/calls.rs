//! Calls of tools.

use std::sync::Arc;
use std::time::Duration;

use cliq_gateway::{Filter, NewSignal, SignalStatus};
use cliq_mcp::ProgressReporter;
use cliq_model::{Run, RunFilter, RunSpec, RunState};
use cliq_orchestrator::internals::spawn_blocking;
use cliq_project::Project;
use cliq_protocol::{Budget, PhaseName};
use cliq_review::{Answer, Choice, Event, ReviewFilter, Reviews, Via};
use cliq_supervisor::internals::workspace_files;
use cliq_supervisor::{NewRun, RunRules, TailItem};
use cliq_web::{
    Caller, Core, Problem, changes_of, find_project, find_review, find_run, list_directory, list_handoffs,
    list_plans, list_runs, new_steering, read_handoff,
};
use serde_json::{Map, Value, json};

use super::arguments::Arguments;
use super::{text_of, tools};

/// Default of `seconds` of `run_wait`, and of a start that waits.
const WAIT: u64 = 600;
/// Most bytes of a file that are returned.
const MAX_FILE: usize = 200_000;
/// Most handoffs and files of a result.
const MAX_ITEMS: usize = 100;

/// Call of a caller with a sufficient scope.
pub(super) struct Call<'a> {
    pub(super) core: &'a Arc<Core>,
    pub(super) base_url: &'a str,
    pub(super) caller: Caller,
    pub(super) progress: &'a ProgressReporter,
}

fn text(problem: impl Into<Problem>) -> String {
    text_of(&problem.into())
}

impl Call<'_> {
    pub(super) async fn perform(&self, name: &str, arguments: Map<String, Value>) -> Result<Value, String> {
        let mut arguments = Arguments(arguments);
        match name {
            "run_list" => self.list(arguments).await,
            "run_status" => {
                let id = arguments.needed("run_id")?;
                arguments.end()?;
                self.status(&id).await
            }
            "run_wait" => {
                let (id, seconds) = (arguments.needed("run_id")?, arguments.number("seconds")?);
                arguments.end()?;
                let run = self.core.run(&id).await.map_err(text)?;
                self.wait(&run, seconds.unwrap_or(WAIT).clamp(1, 3600)).await
            }
            "run_result" => {
                let id = arguments.needed("run_id")?;
                arguments.end()?;
                self.result(&id).await
            }
            "run_file" => self.file(arguments).await,
            "run_steer" => self.steer(arguments).await,
            "run_cancel" => {
                let id = arguments.needed("run_id")?;
                arguments.end()?;
                let run = self.core.run(&id).await.map_err(text)?;
                let cancelled = self.core.supervisor.cancel(&run.id, &self.caller.label).await;
                cancelled.map_err(|error| text(Problem::of_change(error, "cancelled")))?;
                self.status(&id).await
            }
            "review_list" => {
                arguments.end()?;
                let filter = ReviewFilter { pending: true, limit: 100, ..ReviewFilter::default() };
                let reviews = self.core.reviews.list(&filter).await.map_err(text)?;
                Ok(json!({"reviews": reviews.iter().map(crate::api::review_document).collect::<Vec<_>>()}))
            }
            "review_answer" => self.answer(arguments).await,
            "plan_status" => {
                let name = arguments.text("plan")?;
                arguments.end()?;
                let mut plans = list_plans(self.core, None).await.map_err(text)?;
                plans.retain(|plan| name.as_deref().is_none_or(|name| plan["name"] == name));
                Ok(json!({"plans": plans}))
            }
            "signal_list" => self.signals(arguments).await,
            "signal_create" => self.emit(arguments).await,
            team => self.start(team, arguments).await,
        }
    }

    async fn list(&self, mut arguments: Arguments) -> Result<Value, String> {
        let (query, state, limit) =
            (arguments.text("query")?, arguments.text("state")?, arguments.number("limit")?);
        arguments.end()?;
        let states =
            state.map(|word| RunState::parse(&word).ok_or_else(|| format!("`{word}` is not a state")));
        let filter = RunFilter {
            states: states.transpose()?.into_iter().collect(),
            words: RunFilter::words_of(query.as_deref().unwrap_or_default()),
            limit: u32::try_from(limit.unwrap_or(20).clamp(1, 100)).unwrap_or(20),
            ..RunFilter::default()
        };
        let (runs, _) = list_runs(self.core, filter).await.map_err(text)?;
        Ok(json!({"runs": runs}))
    }

    async fn status(&self, id: &str) -> Result<Value, String> {
        let (run, document) = find_run(self.core, id).await.map_err(text)?;
        let mut value = json!(document);
        value["run_id"] = run.id.as_str().into();
        value["page"] = format!("{}/runs/{}", self.base_url, run.id).into();
        Ok(value)
    }

    /// Starts a run of a team, and waits for its end if asked to.
    async fn start(&self, tool: &str, mut arguments: Arguments) -> Result<Value, String> {
        let (host, name) = (self.core.host().clone(), tool.to_owned());
        let team = spawn_blocking(move || tools::team_of(&host, &name)).await;
        let team = team.map_err(|error| error.to_string())??;
        let budget = match arguments.0.remove("budget_usd") {
            None | Some(Value::Null) => None,
            Some(value) => Some(value.as_f64().ok_or("`budget_usd` is a number")?),
        };
        let waits = arguments.flag("wait")?;
        let instance = arguments.text("project")?;
        let spec = RunSpec {
            team: Some(team),
            title: arguments.text("title")?,
            requirement: arguments.text("requirement")?,
            inputs: arguments.rest()?,
            budget: Budget { tokens: None, usd: budget },
            trace: crate::trace::incoming(),
            ..RunSpec::default()
        };
        let new = NewRun::new(spec).with_instance(instance).with_caller(&self.caller.label);
        let checked = self.core.supervisor.check(new, &RunRules::for_token()).await.map_err(text)?;
        let run = self.core.supervisor.submit(checked).await.map_err(text)?;
        if waits {
            return self.wait(&run, 3600).await;
        }
        Ok(json!({
            "run_id": run.id.as_str(),
            "state": run.life.state.as_str(),
            "title": run.title,
            "page": format!("{}/runs/{}", self.base_url, run.id),
        }))
    }

    /// Follows a run until it ends, waits for a person, or the time is over. The run goes on in each case.
    async fn wait(&self, run: &Run, seconds: u64) -> Result<Value, String> {
        let deadline = tokio::time::Instant::now() + Duration::from_secs(seconds);
        let mut tail = self.core.supervisor.tail(&run.id, run.last_event);
        let mut reported = None;
        loop {
            let current = self.core.run(run.id.as_str()).await.map_err(text)?;
            let state = (current.phases_done, current.life.state);
            if reported != Some(state) {
                reported = Some(state);
                let all = (current.phases_all > 0).then_some(current.phases_all as f64);
                let message = format!("{}: {}", current.title, current.life.state.as_str());
                self.progress.report(current.phases_done as f64, all, message).await;
            }
            if current.life.state.is_final() || current.life.state == RunState::Waiting {
                return self.status(run.id.as_str()).await;
            }
            match tokio::time::timeout_at(deadline, tail.next()).await {
                Err(_) => return self.status(run.id.as_str()).await,
                Ok(Err(error)) => return Err(text(error)),
                // The row of the run is written with its last event.
                Ok(Ok(TailItem::End)) => tokio::time::sleep(Duration::from_millis(20)).await,
                Ok(Ok(TailItem::Stopping)) => {
                    return Err("the server stops; the run goes on: call run_wait again".to_owned());
                }
                Ok(Ok(TailItem::Events(_) | TailItem::Idle)) => {}
            }
        }
    }

    async fn result(&self, id: &str) -> Result<Value, String> {
        let run = self.core.run(id).await.map_err(text)?;
        let mut status = self.status(id).await?;
        let (workspace, host) = (run.workspace.clone(), self.core.host().clone());
        let read = self.core.in_workspace(&workspace, move || {
            let project = Project::open(&run.workspace, host).ok();
            let handoffs: Vec<Value> = list_handoffs(&run)
                .into_iter()
                .take(MAX_ITEMS)
                .filter_map(|handoff| {
                    let text = read_handoff(&run, &handoff.from, &handoff.to).ok()?;
                    let envelope = cliq_protocol::lenient_json(text.as_bytes()).ok()?;
                    Some(json!({"from": handoff.from, "to": handoff.to, "text": envelope["text"], "data": envelope["data"]}))
                })
                .collect();
            let changes = project.and_then(|project| changes_of(&project, &run.id, None, false).ok());
            let changes = changes.into_iter().flatten().flat_map(|activation| activation.changes);
            (handoffs, changes.take(MAX_ITEMS).map(|change| json!(change)).collect::<Vec<_>>())
        });
        let (handoffs, files) = read.await.map_err(text)?;
        let mut result = Map::new();
        for key in ["run_id", "title", "team", "state", "reason", "page", "usage"] {
            result.insert(key.to_owned(), status[key].take());
        }
        result.insert("handoffs".to_owned(), handoffs.into());
        result.insert("changed_files".to_owned(), files.into());
        Ok(Value::Object(result))
    }

    async fn file(&self, mut arguments: Arguments) -> Result<Value, String> {
        let (id, path) = (arguments.needed("run_id")?, arguments.text("path")?.unwrap_or_default());
        arguments.end()?;
        let run = self.core.run(&id).await.map_err(text)?;
        let page = format!("{}/runs/{id}/files", self.base_url);
        self.core.in_project(&run, move |run, _| Ok(file_document(run, &path, &page))).await.map_err(text)?
    }

    async fn steer(&self, mut arguments: Arguments) -> Result<Value, String> {
        let (id, words, phase) =
            (arguments.needed("run_id")?, arguments.needed("text")?, arguments.text("phase")?);
        arguments.end()?;
        let run = self.core.run(&id).await.map_err(text)?;
        let new = new_steering(&self.caller, None, &words, phase.as_deref()).map_err(text)?;
        let message = self.core.supervisor.steer(&run.id, new).await;
        let message = message.map_err(|error| text(Problem::of_steering(error)))?;
        Ok(json!({"run_id": id, "message_id": message.id}))
    }

    async fn answer(&self, mut arguments: Arguments) -> Result<Value, String> {
        let (id, decision) = (arguments.needed("review_id")?, arguments.needed("decision")?);
        let (reason, to) = (arguments.text("reason")?, arguments.text("to")?);
        let (reviewer, inputs) = (arguments.text("reviewer")?, arguments.object("inputs")?);
        arguments.end()?;
        let review = find_review(self.core.reviews.as_ref(), &id).await.map_err(text)?;
        let to = to.as_deref().map(PhaseName::parse).transpose().map_err(|error| error.to_string())?;
        let choice = match decision.as_str() {
            "approve" => Choice::Approve,
            "reject" => Choice::Reject,
            "request_changes" => Choice::RequestChanges { to },
            other => return Err(format!("`{other}` is not approve, request_changes or reject")),
        };
        let reviewer = self.core.people.reviewer_for(&review, &self.caller, reviewer.as_deref());
        let reviewer = reviewer.map_err(text)?;
        let answer =
            Answer { reviewer, actor: self.caller.actor().to_owned(), via: Via::Api, choice, reason, inputs };
        let review = self.core.reviews.apply(&review.id, Event::Answer(answer)).await.map_err(text)?;
        Ok(crate::api::review_document(&review))
    }

    async fn signals(&self, mut arguments: Arguments) -> Result<Value, String> {
        let (plan, status) = (arguments.text("plan")?, arguments.text("status")?);
        let limit = arguments.number("limit")?.unwrap_or(50).clamp(1, 200);
        arguments.end()?;
        let status =
            status.map(|word| SignalStatus::parse(&word).ok_or_else(|| format!("`{word}` is not a status")));
        let limit = u32::try_from(limit).ok();
        let filter = Filter { project: None, plan, status: status.transpose()?, limit };
        let signals = self.core.signals.signals(&filter).await.map_err(text)?;
        Ok(json!({"signals": signals}))
    }

    async fn emit(&self, mut arguments: Arguments) -> Result<Value, String> {
        let (project, plan, kind) =
            (arguments.needed("project")?, arguments.needed("plan")?, arguments.needed("type")?);
        let payload = arguments.object("payload")?;
        arguments.end()?;
        let instance = find_project(self.core, &project).await.map_err(text)?;
        let payload = if payload.is_empty() { String::new() } else { Value::Object(payload).to_string() };
        let signal = NewSignal::parse(&kind, &plan, &payload).map_err(|refused| refused.to_string())?;
        let id = self.core.signals.create(instance.path.as_str(), &signal).await.map_err(text)?;
        Ok(json!({"signal_id": id}))
    }
}

/// Returns a file of a run's workspace as text, or the entries of a directory.
fn file_document(run: &Run, path: &str, page: &str) -> Result<Value, String> {
    let found = workspace_files::locate(&run.workspace, path).map_err(text)?;
    if found.is_dir() {
        return Ok(json!({"path": path, "entries": list_directory(&run.workspace, path).map_err(text)?}));
    }
    let bytes = workspace_files::read(&run.workspace, path).map_err(text)?;
    let part = &bytes[..bytes.len().min(MAX_FILE)];
    let Ok(content) = std::str::from_utf8(part) else {
        return Err(format!("{path} is not text; its page is {page}"));
    };
    Ok(json!({"path": path, "content": content, "bytes": bytes.len(), "is_cut": bytes.len() > MAX_FILE}))
}
