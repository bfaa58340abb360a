//! Documents of triggers and firings, for the API, the commands and the pages.

use std::collections::BTreeMap;

use cliq_model::{Firing, FiringState, RunSpec, SourceKind, TriggerRow};
use cliq_protocol::{Budget, RunId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::model::{Source, Trigger};
use crate::plan::{Plan, PlannedRun, plan};
use crate::schedule;

/// Number of next ticks in a document.
const UPCOMING: usize = 5;

/// A firing of a trigger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Firing)]
pub struct FiringDocument {
    /// Number, in the order of arrival.
    pub id: i64,
    /// Trigger.
    pub trigger: String,
    /// Time of the cause, UTC.
    #[schema(value_type = String)]
    pub at: Timestamp,
    /// Description of the cause.
    pub cause: String,
    /// SHA-256 of the payload, in hexadecimal.
    pub digest: String,
    /// State.
    pub state: FiringState,
    /// Concurrency group.
    pub group: Option<String>,
    /// Run that was started.
    #[schema(value_type = Option<String>)]
    pub run_id: Option<RunId>,
    /// Reason why there is no run, or why the firing waits.
    pub reason: Option<String>,
    /// Time of the decision, UTC.
    #[schema(value_type = Option<String>)]
    pub decided_at: Option<Timestamp>,
}

impl From<Firing> for FiringDocument {
    fn from(firing: Firing) -> Self {
        Self {
            id: firing.id,
            trigger: firing.trigger,
            at: firing.at,
            cause: firing.cause,
            digest: firing.digest,
            state: firing.state,
            group: firing.group,
            run_id: firing.run,
            reason: firing.reason,
            decided_at: firing.decided_at,
        }
    }
}

/// A trigger with its state.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Trigger)]
pub struct TriggerDocument {
    /// Name.
    pub name: String,
    /// Kind of the source.
    pub kind: SourceKind,
    /// Source in a line.
    pub source: String,
    /// Preset.
    pub preset: Option<String>,
    /// Conditions, in CEL.
    pub when: Vec<String>,
    /// Team, or `null` for the assembled one of the project.
    pub team: Option<String>,
    /// Project, or `null` for a workspace of its own.
    pub project: Option<String>,
    /// Concurrency group, a template.
    pub group: Option<String>,
    /// Policy of the group: `queue`, `skip` or `cancel`.
    pub policy: Option<String>,
    /// Path for webhooks.
    pub path: Option<String>,
    /// Problem that keeps the trigger from firing.
    pub problem: Option<String>,
    /// Whether the trigger is paused.
    pub paused: bool,
    /// Next ticks of a schedule, UTC.
    pub next: Vec<String>,
    /// Newest firing.
    pub last: Option<FiringDocument>,
}

impl TriggerDocument {
    /// Returns the document of a trigger at `now`. `row` is its stored state, if a server has stored it.
    #[must_use]
    pub fn new(trigger: &Trigger, row: Option<&TriggerRow>, last: Option<Firing>, now: Timestamp) -> Self {
        let (source, path, next, problem) = match &trigger.source {
            Source::Schedule(schedule) => {
                let next = schedule.upcoming(schedule::tick_at(now), UPCOMING);
                let next = next.iter().map(ToString::to_string).collect();
                (format!("{} {}", schedule.cron(), schedule.zone()), None, next, None)
            }
            Source::Webhook(webhook) => {
                let problem = webhook.secret.is_none().then(|| {
                    let name = &webhook.secret_name;
                    format!("the setting triggers.secrets.{name} is not set: requests are refused")
                });
                let path = format!("/hooks/{}", trigger.name);
                (format!("{} signature", webhook.scheme.as_str()), Some(path), Vec::new(), problem)
            }
            Source::After { team, states } => {
                let states: Vec<&str> = states.iter().map(|state| state.as_str()).collect();
                let team = team.as_deref().unwrap_or("any run");
                (format!("{team} {}", states.join(", ")), None, Vec::new(), None)
            }
            Source::Files(files) => (format!("{} in {}", files.text, files.project), None, Vec::new(), None),
        };
        Self {
            name: trigger.name.clone(),
            kind: trigger.source.kind(),
            source,
            preset: trigger.preset.map(|preset| preset.as_str().to_owned()),
            when: trigger.when.iter().map(|when| when.source().to_owned()).collect(),
            team: trigger.run.team.as_ref().map(ToString::to_string),
            project: trigger.run.project.clone(),
            group: trigger.concurrency.as_ref().map(|concurrency| concurrency.group.source().to_owned()),
            policy: trigger.concurrency.as_ref().map(|concurrency| concurrency.policy.as_str().to_owned()),
            path,
            problem,
            paused: row.is_some_and(|row| row.is_paused),
            next,
            last: last.map(FiringDocument::from),
        }
    }
}

/// Payload for a test of a trigger.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TestRequest {
    /// Headers of a webhook. Presets add `x-github-event`.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Body of a webhook.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub body: Value,
    /// Run that ended, for `after`.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub run: Value,
    /// Changed files, for `files`.
    #[serde(default)]
    pub files: Vec<String>,
}

impl TestRequest {
    /// Reads the payload of a test: an object with `headers`, `body`, `run` or `files` and nothing else, or the body of a delivery.
    ///
    /// # Errors
    /// Returns an error if one of these parts has the wrong type.
    pub fn from_payload(payload: Value) -> Result<Self, serde_json::Error> {
        const PARTS: [&str; 4] = ["headers", "body", "run", "files"];
        let is_part = |key: &String| PARTS.contains(&key.as_str());
        match payload.as_object() {
            Some(map) if !map.is_empty() && map.keys().all(is_part) => serde_json::from_value(payload),
            _ => Ok(Self { body: payload, ..Self::default() }),
        }
    }
}

/// Outcome of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = TriggerTestOutcome)]
pub enum PlanOutcome {
    /// A run would start.
    Run,
    /// A condition does not hold.
    #[default]
    Skip,
    /// An expression has no value.
    Fail,
}

/// Result of a test: the run that would start, or the reason for none.
#[derive(Debug, Clone, PartialEq, Default, Serialize, ToSchema)]
#[schema(as = TriggerTest)]
pub struct PlanDocument {
    /// Outcome.
    pub outcome: PlanOutcome,
    /// Reason for no run.
    pub reason: Option<String>,
    /// Team.
    pub team: Option<String>,
    /// Project.
    pub project: Option<String>,
    /// Title.
    pub title: Option<String>,
    /// Requirement.
    pub requirement: Option<String>,
    /// Inputs.
    pub inputs: BTreeMap<String, String>,
    /// Repositories.
    pub repos: Vec<String>,
    /// Agent for phases that name none.
    pub agent: Option<String>,
    /// Budget.
    #[schema(value_type = Object)]
    pub budget: Budget,
    /// Concurrency group.
    pub group: Option<String>,
    /// Policy of the group.
    pub policy: Option<String>,
}

impl PlanDocument {
    fn without_run(outcome: PlanOutcome, reason: String) -> Self {
        Self { outcome, reason: Some(reason), ..Self::default() }
    }
}

impl From<Plan> for PlanDocument {
    fn from(plan: Plan) -> Self {
        match plan {
            Plan::Run(run) => (*run).into(),
            Plan::Skip(reason) => Self::without_run(PlanOutcome::Skip, reason),
            Plan::Fail(reason) => Self::without_run(PlanOutcome::Fail, reason),
        }
    }
}

impl From<PlannedRun> for PlanDocument {
    fn from(PlannedRun { spec, project, group }: PlannedRun) -> Self {
        let RunSpec {
            team,
            title,
            requirement,
            inputs,
            agent,
            // A trigger sets none.
            max_parallel: _,
            budget,
            repos,
            // The sandbox is the choice of the trigger's source too.
            sandbox: _,
            // Not part of what a person reads.
            trace: _,
        } = spec;
        let (group, policy) = group.unzip();
        let policy = policy.map(|policy| policy.as_str().to_owned());
        let (outcome, reason) = (PlanOutcome::Run, None);
        Self {
            outcome,
            reason,
            team,
            project,
            title,
            requirement,
            inputs,
            repos,
            agent,
            budget,
            group,
            policy,
        }
    }
}

/// Returns the outcome of a payload at `now`. Stores and starts nothing.
#[must_use]
pub fn test_trigger(trigger: &Trigger, request: &TestRequest, now: Timestamp) -> PlanDocument {
    let mut values = Map::new();
    values.insert("now".to_owned(), json!(now));
    match &trigger.source {
        Source::Webhook(_) => {
            let headers = request.headers.iter().map(|(name, value)| (name.to_lowercase(), json!(value)));
            let mut headers: Map<String, Value> = headers.collect();
            if let Some(preset) = trigger.preset {
                headers.entry("x-github-event").or_insert_with(|| preset.event().into());
            }
            values.insert("headers".to_owned(), headers.into());
            values.insert("body".to_owned(), request.body.clone());
        }
        Source::After { .. } => drop(values.insert("run".to_owned(), request.run.clone())),
        Source::Files(_) => drop(values.insert("files".to_owned(), json!(request.files))),
        Source::Schedule(_) => {}
    }
    plan(trigger, &values).into()
}
