//! The phases of a run, from its status document: the one of `cliq status --json` and of the API.

use std::collections::BTreeMap;

use cliq_model::Caveat;
use cliq_orchestrator::{JournalFollower, JournalUpdate, RunView};
use cliq_project::{Project, RunState, RunStatus};
use cliq_protocol::{Outcome, PhaseKind, RunId, Timestamp, Verdict};
use cliq_terminal::{PhaseRow, PhaseState, RunDetail};
use cliq_workflow::ValidatedWorkflow;
use serde_json::Value;

/// Run whose journal is followed.
pub(super) struct FollowedRun {
    pub(super) id: RunId,
    project: Project,
    is_last: bool,
    journal: JournalFollower,
    view: Option<RunView>,
    last_seen: Option<Timestamp>,
    layers: BTreeMap<String, u32>,
}

impl FollowedRun {
    /// Follows a run of a project: the last one, or an earlier one.
    pub(super) fn new(project: Project, id: RunId, is_last: bool) -> Self {
        let dir = project.dir();
        let journal =
            if is_last { dir.journal() } else { dir.history().join(id.as_str()).join("journal.jsonl") };
        let layers = layers(&project, &id);
        Self {
            id,
            project,
            is_last,
            journal: JournalFollower::new(&journal),
            view: None,
            last_seen: None,
            layers,
        }
    }

    /// Whether it is this run, at this place.
    pub(super) fn is(&self, id: &RunId, is_last: bool) -> bool {
        self.id == *id && self.is_last == is_last
    }

    /// Reads what is new. Returns the phases.
    pub(super) fn detail(&mut self) -> Result<RunDetail, String> {
        let is_active = crate::run_process::is_active(self.project.dir()).unwrap_or(false);
        let news = self.journal.read().map_err(|error| error.to_string())?;
        if !matches!(news, JournalUpdate::More(_)) {
            (self.view, self.last_seen) = (None, None);
        }
        if let JournalUpdate::More(records) | JournalUpdate::Afresh(records) = news {
            if !records.is_empty() && self.layers.is_empty() {
                self.layers = layers(&self.project, &self.id);
            }
            if !records.is_empty() && self.view.is_none() {
                self.view =
                    Some(self.workflow().map_or_else(RunView::empty, |workflow| RunView::new(&workflow)));
            }
            if let Some(view) = &mut self.view {
                records.iter().for_each(|record| view.apply(record));
            }
            self.last_seen = records.last().and_then(|record| record.ts.time()).or(self.last_seen);
        }
        let Some(view) = &self.view else { return Err("nothing of this run was recorded".to_owned()) };
        if view.run_id.as_ref().is_some_and(|id| *id != self.id) {
            return Err("the files of this run were put aside".to_owned());
        }
        let mut view = view.clone();
        if !(self.is_last && is_active) {
            view.interrupt(self.last_seen);
        }
        let document = if self.is_last {
            RunStatus::new(&view, &self.project).document()
        } else {
            serde_json::json!(view)
        };
        let mut detail = of_document(&document, &self.layers);
        if RunState::of(Some(&view), self.is_last && is_active) == RunState::Interrupted {
            let how =
                if self.is_last { "the orchestrator died: `r` goes on" } else { "the orchestrator died" };
            detail.remarks.insert(0, how.to_owned());
        }
        Ok(detail)
    }

    fn workflow(&self) -> Option<ValidatedWorkflow> {
        self.project.team_of_run(&self.id)?.workflow()
    }
}

/// Layers of the phases of a run by their names, 1-based: the team as it was when the run started.
pub(super) fn layers(project: &Project, id: &RunId) -> BTreeMap<String, u32> {
    let workflow = project.team_of_run(id).and_then(|team| team.workflow());
    let Some(workflow) = workflow else { return BTreeMap::new() };
    let mut layers = BTreeMap::new();
    for (wave, number) in workflow.waves().into_iter().zip(1..) {
        for id in wave {
            layers.insert(workflow.phase(id).name.to_string(), number);
        }
    }
    layers
}

/// Adds the phases of a team that have not started, in the order of the team: the document of a server has those that were heard of.
pub(super) fn add_pending(
    detail: &mut RunDetail,
    workflow: &ValidatedWorkflow,
    layers: &BTreeMap<String, u32>,
) {
    let mut at = 0;
    for (_, phase) in workflow.phases() {
        let name = phase.name.as_str();
        if let Some(found) = detail.phases.iter().position(|row| row.name == name) {
            detail.phases[found].is_support = phase.support;
            // Items and phases of a team follow their phase.
            let below = detail.phases[found + 1..].iter().take_while(|row| row.depth > 0).count();
            at = at.max(found + 1 + below);
            continue;
        }
        let row = PhaseRow {
            name: name.to_owned(),
            title: None,
            layer: layers.get(name).copied(),
            depth: 0,
            kind: phase.kind.as_str().to_owned(),
            is_gate: phase.kind.is_gate(),
            is_support: phase.support,
            state: PhaseState::Pending,
            iterations: 0,
            verdict: None,
            worked_ms: 0,
            since_ms: None,
            message: None,
            tokens: 0,
            review: None,
        };
        detail.phases.insert(at, row);
        at += 1;
    }
}

/// Phases of a status document.
pub(super) fn of_document(document: &Value, layers: &BTreeMap<String, u32>) -> RunDetail {
    let mut phases = Vec::new();
    add_phases(&mut phases, document, "", 0, layers);
    let mut remarks: Vec<String> = Caveat::of_document(document)
        .iter()
        .map(|caveat| format!("{}: {}", caveat.label(), caveat.sentence()))
        .collect();
    if let Some(until) = document["waiting"]["until"].as_str() {
        remarks.push(format!("parked until {until}"));
    }
    RunDetail {
        phases,
        reason: document["reason"].as_str().map(str::to_owned),
        remarks,
        requirement: document["requirement"].as_str().map(str::to_owned),
    }
}

fn add_phases(
    rows: &mut Vec<PhaseRow>,
    document: &Value,
    prefix: &str,
    depth: u16,
    layers: &BTreeMap<String, u32>,
) {
    for phase in document["phases"].as_array().into_iter().flatten() {
        let Some(name) = phase["name"].as_str() else { continue };
        let kind = phase["type"].as_str().unwrap_or_default();
        let is_item = name.contains('.');
        let text = |field: &str| phase[field].as_str().map(str::to_owned);
        let number = |field: &str| phase[field].as_i64().unwrap_or(0);
        let usage = &phase["usage"];
        let tokens = |field: &str| usage[field].as_u64().unwrap_or(0);
        let inner = &phase["run"];
        rows.push(PhaseRow {
            name: format!("{prefix}{name}"),
            title: text("title"),
            layer: layers.get(name).copied().filter(|_| depth == 0),
            depth: depth + u16::from(is_item),
            kind: kind.to_owned(),
            is_gate: PhaseKind::ALL.iter().any(|known| known.as_str() == kind && known.is_gate()),
            is_support: phase["support"].as_bool().unwrap_or(false),
            state: PhaseState::parse(phase["status"].as_str().unwrap_or_default()),
            iterations: u32::try_from(number("iterations")).unwrap_or(0),
            verdict: Verdict::from_value(phase["verdict"].clone()).ok().map(|verdict| sentence(&verdict)),
            worked_ms: number("duration_ms"),
            since_ms: phase["running_since_ms"].as_i64(),
            message: text("message"),
            tokens: tokens("tokens_in") + tokens("tokens_out"),
            // The phase around a team's has the review of the inner one too.
            review: phase["review"]["id"].as_str().filter(|_| inner.is_null()).map(str::to_owned),
        });
        if !inner.is_null() {
            add_phases(rows, inner, &format!("{prefix}{name}/"), depth + 1, layers);
        }
    }
}

fn sentence(verdict: &Verdict) -> String {
    match &verdict.outcome {
        Outcome::Pass => "PASS".to_owned(),
        Outcome::Route(to) => format!("ROUTE to {to}"),
        Outcome::Escalate => "ESCALATE".to_owned(),
    }
}
