//! Evaluations and trials.

use cliq_model::{EvaluationRow, EvaluationStore, TrialRow, TrialState};

use super::test_database::{Place, at};

fn evaluation(id: &str) -> EvaluationRow {
    EvaluationRow {
        id: id.to_owned(),
        name: "süite".to_owned(),
        directory: "/some/where".into(),
        document: "{\"a\": \"b\"}".to_owned(),
        created_at: at("2026-11-25"),
        ended_at: None,
        trials: 3,
        finished: 0,
    }
}

fn trial(number: u32) -> TrialRow {
    TrialRow {
        number,
        variant: "v".to_owned(),
        case: "c".to_owned(),
        repeat: number,
        state: TrialState::Pending,
        attempts: 0,
        run_id: None,
        result: String::new(),
    }
}

pub(crate) async fn an_evaluation_is_stored_with_its_trials(place: &impl Place) {
    let store = place.store().await;
    let (first, second) = (evaluation("01a2-aaaa-1111"), evaluation("01a3-bbbb-2222"));
    let trials: Vec<TrialRow> = (1..=3).map(trial).collect();
    store.add_evaluation(&first, &trials).await.unwrap();
    store.add_evaluation(&second, &[]).await.unwrap();
    let found = store.evaluation("01a2-aaaa-1111").await.unwrap().unwrap();
    assert_eq!(found, first);
    assert_eq!(store.evaluation("2222").await.unwrap().unwrap().id, second.id, "by its end");
    for unknown in ["", "0", "%", "_", "01a2", "-"] {
        assert_eq!(store.evaluation(unknown).await.unwrap(), None, "{unknown}");
    }
    let ids: Vec<String> = store.evaluations(10).await.unwrap().into_iter().map(|row| row.id).collect();
    assert_eq!(ids, [second.id.as_str(), first.id.as_str()], "newest first");
    assert_eq!(store.trials(&first.id).await.unwrap(), trials);
    // The same id again changes nothing.
    assert!(store.add_evaluation(&first, &trials).await.is_err());
    store.end_evaluation(&first.id, at("2026-11-25T01:00:00.000Z")).await.unwrap();
    assert!(store.evaluation(&first.id).await.unwrap().unwrap().ended_at.is_some());
}

pub(crate) async fn a_trial_finishes_once(place: &impl Place) {
    let store = place.store().await;
    let row = evaluation("01a2-aaaa-1111");
    store.add_evaluation(&row, &[trial(1), trial(2)]).await.unwrap();
    let mut one = trial(1);
    (one.state, one.run_id) = (TrialState::Running, Some(cliq_fs::new_run_id()));
    assert!(store.save_trial(&row.id, &one).await.unwrap());
    (one.state, one.result) = (TrialState::Finished, "{\"outcome\": \"passed\"}".to_owned());
    // Of several who finish it at the same moment one counts.
    let attempts = (0..8).map(|_| store.save_trial(&row.id, &one));
    let stored = futures_util::future::join_all(attempts).await;
    assert_eq!(stored.into_iter().filter(|stored| *stored.as_ref().unwrap()).count(), 1);
    one.result = "{\"outcome\": \"failed\"}".to_owned();
    assert!(!store.save_trial(&row.id, &one).await.unwrap());
    (one.state, one.result) = (TrialState::Pending, String::new());
    assert!(!store.save_trial(&row.id, &one).await.unwrap());
    let trials = store.trials(&row.id).await.unwrap();
    assert_eq!(
        (trials[0].state, trials[0].result.as_str()),
        (TrialState::Finished, "{\"outcome\": \"passed\"}")
    );
    assert_eq!(trials[1], trial(2));
    assert_eq!(store.evaluation(&row.id).await.unwrap().unwrap().finished, 1);
    assert!(!store.save_trial("other", &one).await.unwrap());
}
