//! Evaluations and their trials.

use async_trait::async_trait;
use cliq_protocol::{RunId, Timestamp};

use super::{MemoryStore, State, first};
use crate::evaluation::{EvaluationRow, TrialRow, TrialState};
use crate::store::{EvaluationStore, StoreError};

/// Returns an evaluation with the numbers of its trials.
fn counted(state: &State, evaluation: &EvaluationRow) -> EvaluationRow {
    let trials = || state.trials.iter().filter(|((of, _), _)| *of == evaluation.id).map(|(_, trial)| trial);
    let finished = trials().filter(|trial| trial.state == TrialState::Finished).count() as u64;
    EvaluationRow { trials: trials().count() as u64, finished, ..evaluation.clone() }
}

#[async_trait]
impl EvaluationStore for MemoryStore {
    async fn add_evaluation(
        &self,
        evaluation: &EvaluationRow,
        trials: &[TrialRow],
    ) -> Result<(), StoreError> {
        let added = self.transaction(|state| {
            if state.evaluations.contains_key(&evaluation.id) {
                return None;
            }
            state.evaluations.insert(evaluation.id.clone(), evaluation.clone());
            for trial in trials {
                state.trials.insert((evaluation.id.clone(), trial.number), trial.clone());
            }
            Some(())
        })?;
        added.ok_or_else(|| StoreError::new(format!("the evaluation {} is stored already", evaluation.id)))
    }

    async fn evaluations(&self, limit: u32) -> Result<Vec<EvaluationRow>, StoreError> {
        self.call(|state| {
            first(state.evaluations.values().rev().map(|evaluation| counted(state, evaluation)), limit)
        })
    }

    async fn evaluation(&self, id: &str) -> Result<Option<EvaluationRow>, StoreError> {
        self.call(|state| {
            let mut found = state.evaluations.values().filter(|evaluation| evaluation.id.ends_with(id));
            let only = found.next().filter(|_| !id.is_empty() && found.next().is_none())?;
            Some(counted(state, only))
        })
    }

    async fn trials(&self, evaluation: &str) -> Result<Vec<TrialRow>, StoreError> {
        self.call(|state| {
            let trials = state.trials.iter().filter(|((of, _), _)| of == evaluation);
            trials.map(|(_, trial)| trial.clone()).collect()
        })
    }

    async fn trial_of_run(&self, run: &RunId) -> Result<Option<(String, TrialRow)>, StoreError> {
        self.call(|state| {
            let mut trials = state.trials.iter().rev();
            let found = trials.find(|(_, trial)| trial.run_id.as_ref() == Some(run));
            found.map(|((of, _), trial)| (of.clone(), trial.clone()))
        })
    }

    async fn save_trial(&self, evaluation: &str, trial: &TrialRow) -> Result<bool, StoreError> {
        self.call(|state| {
            let known = state.trials.get_mut(&(evaluation.to_owned(), trial.number));
            let Some(known) = known.filter(|known| known.state != TrialState::Finished) else { return false };
            known.state = trial.state;
            known.attempts = trial.attempts;
            known.run_id.clone_from(&trial.run_id);
            known.result.clone_from(&trial.result);
            true
        })
    }

    async fn end_evaluation(&self, evaluation: &str, at: Timestamp) -> Result<(), StoreError> {
        self.call(|state| {
            if let Some(known) = state.evaluations.get_mut(evaluation) {
                known.ended_at = Some(at);
            }
        })
    }
}
