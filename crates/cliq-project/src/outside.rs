//! Preview of what a run would fetch and publish: for `cliq run --dry-run`, and for the question before a run that publishes.

use std::collections::BTreeMap;

use cliq_fs::{CliqDir, DEFAULT_FILE_LIMIT, read_handoff};
use cliq_orchestrator::RunPlan;
use cliq_protocol::{PhaseKind, PhaseName, Timestamp};
use cliq_settings::Settings;
use cliq_workflow::{Phase, Values, is_connector, resolve_text};
use serde::Serialize;
use serde_json::Value;

use crate::{Project, ProjectError};

/// Direction of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OutsideDirection {
    /// From outside to here.
    Fetch,
    /// From here to outside.
    Publish,
}

/// A source or a target of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OutsideEntry {
    /// The phase; with those that it is within, for teams in teams.
    pub phase: String,
    /// Direction.
    pub direction: OutsideDirection,
    /// Agent: `pull`, `push`, or a connector with its action.
    pub by: String,
    /// The local file, or the name of the source.
    pub file: String,
    /// Source or destination. Unresolved templates are kept verbatim.
    pub place: String,
    /// For targets of push phases: what is done where something is there already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// For files that are there: the size in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Whether it was published before, so that nothing would be done.
    pub is_there: bool,
    /// Reason why it would fail now, where that is known. A file that is not there yet may be written by a phase before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl Project {
    /// All that a run of this plan would fetch and publish, in the order of its phases. Sends nothing.
    ///
    /// # Errors
    /// The settings, or the team of a team phase, cannot be read.
    pub fn outside(&self, plan: &RunPlan) -> Result<Vec<OutsideEntry>, ProjectError> {
        let settings = self.settings()?;
        let mut entries = Vec::new();
        self.collect_outside(plan, &settings, "", &mut entries)?;
        Ok(entries)
    }

    fn collect_outside(
        &self,
        plan: &RunPlan,
        settings: &Settings,
        above: &str,
        entries: &mut Vec<OutsideEntry>,
    ) -> Result<(), ProjectError> {
        let inputs = plan.resolved_inputs();
        for (_, phase) in plan.workflow.phases() {
            let title = format!("{above}{}", phase.name);
            if phase.kind == PhaseKind::Team {
                let inner = self.team_phase(&phase.name);
                if inner.has_team() {
                    let mut inner_plan = inner.base_plan(inner.workflow()?, settings);
                    inner_plan.inputs.clone_from(&phase.inputs);
                    inner.collect_outside(&inner_plan, settings, &format!("{title}/"), entries)?;
                }
                continue;
            }
            let by = match (phase.kind, &phase.agent) {
                (PhaseKind::Pull, _) => "pull".to_owned(),
                (PhaseKind::Push, _) => "push".to_owned(),
                (PhaseKind::Standard, Some(agent))
                    if is_connector(agent) && !plan.workflow.agents.contains_key(agent) =>
                {
                    phase.action.as_ref().map_or_else(|| agent.clone(), |action| format!("{agent} {action}"))
                }
                _ => continue,
            };
            let values = Preview { dir: self.dir(), inputs: &inputs, plan, phase, now: cliq_fs::now() };
            for source in &phase.sources {
                entries.push(source_entry(&title, &by, &resolved(source, &values)));
            }
            let targets: Vec<Value> = phase.targets.iter().map(|target| resolved(target, &values)).collect();
            for target in &targets {
                entries.push(self.target_entry(&title, &by, phase, target, settings));
            }
        }
        Ok(())
    }

    fn target_entry(
        &self,
        title: &str,
        by: &str,
        phase: &Phase,
        target: &Value,
        settings: &Settings,
    ) -> OutsideEntry {
        let text = |key: &str| target[key].as_str().map(str::to_owned);
        let mut entry = OutsideEntry {
            phase: title.to_owned(),
            direction: OutsideDirection::Publish,
            by: by.to_owned(),
            file: text("file").unwrap_or_default(),
            place: text("to").or_else(|| text("url")).or_else(|| text("ref")).unwrap_or_default(),
            mode: text("mode"),
            size: None,
            is_there: false,
            problem: None,
        };
        if by != "push" {
            entry.size =
                std::fs::metadata(self.dir().workspace().join(&entry.file)).ok().map(|meta| meta.len());
            return entry;
        }
        self.preview(phase, target, settings, &mut entry);
        entry
    }

    /// Adds what is known of a publication before it happens.
    #[cfg(not(feature = "connectors"))]
    fn preview(&self, _: &Phase, _: &Value, _: &Settings, entry: &mut OutsideEntry) {
        entry.problem =
            Some("this program was built without connectors: the publication has no preview".to_owned());
    }

    /// Adds what is known of a publication before it happens.
    #[cfg(feature = "connectors")]
    fn preview(&self, phase: &Phase, target: &Value, settings: &Settings, entry: &mut OutsideEntry) {
        let (workspace, cliq_dir) = (self.dir().workspace(), self.dir().root());
        let one = std::slice::from_ref(target);
        let preview = cliq_agents::preview(
            workspace,
            cliq_dir,
            phase.name.as_str(),
            one,
            settings,
            &self.host().environment,
        );
        match preview.map(|previews| previews.into_iter().next()) {
            Ok(Some(preview)) => {
                entry.place = preview.to;
                entry.size = Some(preview.size);
                entry.is_there = preview.is_there;
                entry.mode =
                    serde_json::to_value(preview.mode).ok().and_then(|mode| mode.as_str().map(str::to_owned));
            }
            Ok(None) => {}
            Err(error) => entry.problem = Some(error.to_string()),
        }
    }
}

fn source_entry(title: &str, by: &str, source: &Value) -> OutsideEntry {
    let text = |key: &str| source[key].as_str().map(str::to_owned);
    OutsideEntry {
        phase: title.to_owned(),
        direction: OutsideDirection::Fetch,
        by: by.to_owned(),
        file: text("name").unwrap_or_default(),
        place: text("url").or_else(|| text("ref")).unwrap_or_default(),
        mode: None,
        size: None,
        is_there: false,
        problem: None,
    }
}

/// An entry with the templates replaced that have a value now.
fn resolved(entry: &Value, values: &Preview<'_>) -> Value {
    match entry {
        Value::String(text) => resolve_text(text, values).unwrap_or_else(|_| text.clone()).into(),
        Value::Array(items) => items.iter().map(|item| resolved(item, values)).collect(),
        Value::Object(map) => {
            Value::Object(map.iter().map(|(key, item)| (key.clone(), resolved(item, values))).collect())
        }
        other => other.clone(),
    }
}

/// The values that templates have before a run.
struct Preview<'a> {
    dir: &'a CliqDir,
    inputs: &'a BTreeMap<String, String>,
    plan: &'a RunPlan,
    phase: &'a Phase,
    now: Timestamp,
}

impl Values for Preview<'_> {
    fn input(&self, key: &str) -> Option<String> {
        self.inputs.get(key).cloned()
    }

    fn handoff(&self, phase: &PhaseName) -> Result<Value, String> {
        let channel = self.dir.channel(phase, &self.phase.name);
        let envelope =
            read_handoff(&channel, phase, DEFAULT_FILE_LIMIT).map_err(|error| error.to_string())?;
        envelope
            .and_then(|envelope| envelope.data())
            .map(Value::Object)
            .ok_or_else(|| "it has not run yet".to_owned())
    }

    fn item(&self) -> Option<Value> {
        None
    }

    fn index(&self) -> Option<u32> {
        None
    }

    fn team_name(&self) -> String {
        self.plan.workflow.name.to_string()
    }

    fn date(&self) -> String {
        self.now.to_string().chars().take(10).collect()
    }

    fn timestamp(&self) -> String {
        self.now.to_string()
    }

    fn phase(&self) -> String {
        self.phase.name.to_string()
    }

    fn run_id(&self) -> String {
        self.plan.run_id.as_ref().map_or_else(|| "RUN-ID".to_owned(), ToString::to_string)
    }
}
