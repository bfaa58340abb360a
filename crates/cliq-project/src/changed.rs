//! `cliq run --changed`: the phases whose inputs differ from those of the last run, and all that depend on them (docs/changed.md).

use std::collections::{BTreeMap, BTreeSet};

use camino::Utf8PathBuf;
use cliq_orchestrator::{Journal, KeptPhase, KeptWork, RunPlan, RunView};
use cliq_protocol::{PhaseName, RunId};
use cliq_workflow::PhaseId;
use serde::Serialize;

use crate::fingerprints::{Fingerprints, Part, PhaseFingerprints};
use crate::{Project, ProjectError};

/// A phase in a run of what changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ChangedPhase {
    /// The phase.
    pub phase: PhaseName,
    /// Whether it runs; otherwise its outcome in the last run is kept.
    pub runs: bool,
    /// Reason why it runs, in sentences for people.
    pub reasons: Vec<String>,
}

/// Comparison of a plan with the last run.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Comparison {
    /// The last run.
    pub run_id: RunId,
    /// The main phases, in the order of the file.
    pub phases: Vec<ChangedPhase>,
    /// Phases that are kept.
    kept: Vec<KeptPhase>,
}

impl Comparison {
    /// Whether no phase runs.
    #[must_use]
    pub fn is_unchanged(&self) -> bool {
        self.phases.iter().all(|phase| !phase.runs)
    }

    /// Whether a phase runs: a main phase, or a support phase, which may run for a gate. `phase` may be a path of phases of teams in teams.
    #[must_use]
    pub fn runs(&self, phase: &str) -> bool {
        let top = phase.split('/').next().unwrap_or(phase);
        self.phases.iter().find(|row| row.phase.as_str() == top).is_none_or(|row| row.runs)
    }

    /// Returns what a run keeps, for [`RunPlan::kept`].
    #[must_use]
    pub fn kept(&self) -> KeptWork {
        KeptWork::new(self.run_id.clone(), self.kept.clone())
    }
}

/// The last run, wherever its files are.
struct LastRun {
    journal: Journal,
    run_id: RunId,
    /// `.cliq`, or the archive: a new requirement puts the run aside.
    places: Vec<Utf8PathBuf>,
}

impl Project {
    /// Returns the inputs that the last run was given, for a run that has not all of them.
    ///
    /// # Errors
    /// Nothing has run, or the journal cannot be read.
    pub fn last_inputs(&self) -> Result<BTreeMap<String, String>, ProjectError> {
        let last = self.last_run_anywhere()?;
        Ok(last.fingerprints().map(|prints| prints.inputs).unwrap_or_default())
    }

    /// Compares a plan with the last run: which phases run again, and why. Phases that did not complete run too.
    ///
    /// # Errors
    /// Nothing has run, or a journal or a file of the team cannot be read.
    pub fn compare_with_last_run(&self, plan: &RunPlan) -> Result<Comparison, ProjectError> {
        let last = self.last_run_anywhere()?;
        let before = last.fingerprints().map(|prints| prints.phases).unwrap_or_default();
        let mut now = Fingerprints::of(plan)?;
        now.add_files(&plan.workflow, plan.dir.workspace(), &|_| true);
        let view = RunView::of(&last.journal);
        let mut keepable = last.journal.keepable(&plan.workflow);
        let reasons = reasons(plan, &view, &before, &now.phases, &keepable);
        let mut phases = Vec::new();
        for (id, phase) in plan.workflow.phases().filter(|(_, phase)| !phase.support) {
            let reasons = reasons.get(&id).cloned();
            let runs = reasons.is_some();
            if runs {
                keepable.remove(&phase.name);
            }
            phases.push(ChangedPhase {
                phase: phase.name.clone(),
                runs,
                reasons: reasons.unwrap_or_default(),
            });
        }
        let order = plan.workflow.phases().filter_map(|(_, phase)| keepable.remove(&phase.name));
        Ok(Comparison { run_id: last.run_id, kept: order.collect(), phases })
    }

    fn last_run_anywhere(&self) -> Result<LastRun, ProjectError> {
        let dir = self.dir();
        let run_of = |journal: &Journal| journal.run_id().cloned();
        let archive = |run_id: &RunId| dir.history().join(run_id.as_str());
        if let Some(journal) = Journal::read(&dir.journal())?
            && let Some(run_id) = run_of(&journal)
        {
            // Archiving that was interrupted may have moved the fingerprints already.
            let places = vec![dir.root().to_owned(), archive(&run_id)];
            return Ok(LastRun { journal, run_id, places });
        }
        for place in cliq_fs::archives(dir)?.into_iter().rev() {
            let Some(journal) = Journal::read(&place.join("journal.jsonl"))? else { continue };
            if let Some(run_id) = run_of(&journal) {
                return Ok(LastRun { journal, run_id, places: vec![place] });
            }
        }
        Err(ProjectError::NothingRan)
    }
}

impl LastRun {
    fn fingerprints(&self) -> Option<Fingerprints> {
        self.places.iter().find_map(|place| Fingerprints::read(place))
    }
}

/// Returns the reasons of the phases that run.
fn reasons(
    plan: &RunPlan,
    view: &RunView,
    before: &BTreeMap<PhaseName, PhaseFingerprints>,
    now: &BTreeMap<PhaseName, PhaseFingerprints>,
    keepable: &BTreeMap<PhaseName, KeptPhase>,
) -> BTreeMap<PhaseId, Vec<String>> {
    let workflow = &plan.workflow;
    let nothing = PhaseFingerprints::new();
    let mut found: BTreeMap<PhaseId, Vec<String>> = BTreeMap::new();
    let mut changed_support = BTreeSet::new();
    for (id, phase) in workflow.phases() {
        let now = now.get(&phase.name).unwrap_or(&nothing);
        let differs = before.get(&phase.name).map(|before| differences(before, now));
        if phase.support {
            let has_worked = view.find(&phase.name).is_some_and(|row| row.iterations > 0);
            if has_worked && differs.is_none_or(|differences| !differences.is_empty()) {
                changed_support.insert(id);
            }
            continue;
        }
        let mut reasons = Vec::new();
        match differs {
            Some(differences) => reasons.extend(differences),
            None if view.find(&phase.name).is_none() => reasons.push("it is new".to_owned()),
            None => reasons.push("the last run recorded no fingerprints of it".to_owned()),
        }
        if reasons.is_empty() && !keepable.contains_key(&phase.name) {
            reasons.push("it did not complete in the last run".to_owned());
        }
        if !reasons.is_empty() {
            found.insert(id, reasons);
        }
    }
    for (id, phase) in workflow.phases().filter(|(_, phase)| !phase.support) {
        for target in phase.route_targets.iter().filter(|target| changed_support.contains(target)) {
            let reason = format!("support phase `{}` changed", workflow.phase(*target).name);
            found.entry(id).or_default().push(reason);
        }
    }
    let mut pending: Vec<PhaseId> = found.keys().copied().collect();
    while let Some(id) = pending.pop() {
        let phase = workflow.phase(id);
        for after in &phase.dependents {
            if !found.contains_key(after) {
                found.insert(*after, Vec::new());
                pending.push(*after);
            }
        }
    }
    for id in found.clone().into_keys() {
        let before = workflow.phase(id).depends_on.iter().filter(|id| found.contains_key(id));
        let before: Vec<String> = before.map(|id| format!("`{}`", workflow.phase(*id).name)).collect();
        if let Some(reasons) = found.get_mut(&id)
            && reasons.is_empty()
        {
            reasons.push(format!("it depends on {}", before.join(", ")));
        }
    }
    found
}

/// Returns the differences between fingerprints, in sentences.
fn differences(before: &PhaseFingerprints, now: &PhaseFingerprints) -> Vec<String> {
    let parts: BTreeSet<&Part> = before.keys().chain(now.keys()).collect();
    let mut sentences = Vec::new();
    for part in parts {
        let (old, new) = (before.get(part).map(String::as_str), now.get(part).map(String::as_str));
        let is_unreadable = matches!(part, Part::Files(_)) && new.is_some_and(|new| new.starts_with('!'));
        if old != new || is_unreadable {
            sentences.push(sentence(part, old, new));
        }
    }
    sentences
}

fn sentence(part: &Part, old: Option<&str>, new: Option<&str>) -> String {
    let verb = match (old, new) {
        (None | Some(""), _) => "is new",
        (_, None | Some("")) => "is gone",
        _ => "changed",
    };
    match part {
        Part::Agent => match (old, new) {
            (Some(old), Some(new)) => format!("its agent changed from {old} to {new}"),
            _ => format!("its agent {verb}"),
        },
        Part::Requirement => format!("the requirement {verb}"),
        Part::Role => format!("its role {verb}"),
        Part::AgentFiles => "files of its agent changed".to_owned(),
        Part::Mcp => "`mcp` in team.yml changed".to_owned(),
        Part::Team => "its team changed".to_owned(),
        Part::Input(name) => format!("input `{name}` {verb}"),
        Part::Field(name) => format!("`{name}` in team.yml {verb}"),
        Part::Command(name) => format!("command `{name}` {verb}"),
        Part::Instructions(channel) => format!("instructions.md of channel {channel} {verb}"),
        Part::Files(pattern) => match (old, new) {
            (_, Some(new)) if new.starts_with('!') => {
                format!("files `{pattern}` cannot be compared: {}", &new[1..])
            }
            (None, _) => format!("files `{pattern}` were not recorded, as the last run did not end"),
            _ => format!("files `{pattern}` changed"),
        },
    }
}
