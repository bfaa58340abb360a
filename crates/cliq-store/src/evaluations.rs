//! Evaluations and their trials.

use async_trait::async_trait;
use cliq_model::{EvaluationRow, EvaluationStore, StoreError, TrialRow, TrialState};

use cliq_protocol::{RunId, Timestamp};

use crate::cells::Cells;
use crate::connection::{Connection, Target};
use crate::error::DatabaseError;
use crate::statement::{Row, arguments};
use crate::store::{SqlStore, on};

/// Statement that reads evaluations with the numbers of their trials.
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, name, directory, document, created_at, ended_at, (SELECT COUNT(*) FROM trials WHERE evaluation = id) AS trials, (SELECT COUNT(*) FROM trials WHERE evaluation = id AND state = 'finished') AS finished FROM evaluations ",
            $rest
        )
    };
}

#[async_trait]
impl EvaluationStore for SqlStore {
    async fn add_evaluation(
        &self,
        evaluation: &EvaluationRow,
        trials: &[TrialRow],
    ) -> Result<(), StoreError> {
        on!(self.writer("the evaluation"), connection => add(connection, evaluation, trials).await)
    }

    async fn evaluations(&self, limit: u32) -> Result<Vec<EvaluationRow>, StoreError> {
        on!(self.reader(), connection => list(connection, limit).await)
    }

    async fn evaluation(&self, id: &str) -> Result<Option<EvaluationRow>, StoreError> {
        on!(self.reader(), connection => find(connection, id).await)
    }

    async fn trials(&self, evaluation: &str) -> Result<Vec<TrialRow>, StoreError> {
        on!(self.reader(), connection => trials_of(connection, evaluation).await)
    }

    async fn trial_of_run(&self, run: &RunId) -> Result<Option<(String, TrialRow)>, StoreError> {
        on!(self.reader(), connection => trial_of_run(connection, run).await)
    }

    async fn save_trial(&self, evaluation: &str, trial: &TrialRow) -> Result<bool, StoreError> {
        on!(self.writer("the trial"), connection => save(connection, evaluation, trial).await)
    }

    async fn end_evaluation(&self, evaluation: &str, at: Timestamp) -> Result<(), StoreError> {
        let sql = "UPDATE evaluations SET ended_at = $2 WHERE id = $1";
        on!(self.writer("the evaluation"), connection => connection.run(sql, arguments![evaluation, at]).await.map(drop))
    }
}

async fn add(
    connection: &mut Connection,
    evaluation: &EvaluationRow,
    trials: &[TrialRow],
) -> Result<(), DatabaseError> {
    let mut transaction = connection.begin().await?;
    let sql =
        "INSERT INTO evaluations (id, name, directory, document, created_at) VALUES ($1, $2, $3, $4, $5)";
    let directory = evaluation.directory.as_str();
    let arguments =
        arguments![&evaluation.id, &evaluation.name, directory, &evaluation.document, evaluation.created_at];
    transaction.run(sql, arguments).await?;
    let sql = "INSERT INTO trials (evaluation, number, variant, case_name, repeat_number, state, attempts, run_id, result) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
    for trial in trials {
        let arguments = arguments![
            &evaluation.id,
            i64::from(trial.number),
            &trial.variant,
            &trial.case,
            i64::from(trial.repeat),
            trial.state.as_str(),
            i64::from(trial.attempts),
            trial.run_id.as_ref().map(RunId::as_str),
            &trial.result
        ];
        transaction.run(sql, arguments).await?;
    }
    transaction.commit().await
}

async fn list(connection: &mut Connection, limit: u32) -> Result<Vec<EvaluationRow>, DatabaseError> {
    let sql = select!("ORDER BY id DESC LIMIT $1");
    connection.run(sql, arguments![i64::from(limit)]).await?.rows.iter().map(evaluation).collect()
}

async fn find(connection: &mut Connection, id: &str) -> Result<Option<EvaluationRow>, DatabaseError> {
    // An id of letters, digits and hyphens has no meaning in a pattern.
    if id.is_empty() || !id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        return Ok(None);
    }
    let pattern = format!("%{id}");
    let sql = select!("WHERE id LIKE $1 LIMIT 2");
    let rows = connection.run(sql, arguments![&pattern]).await?.rows;
    match rows.as_slice() {
        [row] => evaluation(row).map(Some),
        _ => Ok(None),
    }
}

async fn trials_of(connection: &mut Connection, evaluation: &str) -> Result<Vec<TrialRow>, DatabaseError> {
    let sql = "SELECT * FROM trials WHERE evaluation = $1 ORDER BY number";
    connection.run(sql, arguments![evaluation]).await?.rows.iter().map(trial).collect()
}

async fn trial_of_run(
    connection: &mut Connection,
    run: &RunId,
) -> Result<Option<(String, TrialRow)>, DatabaseError> {
    let sql = "SELECT * FROM trials WHERE run_id = $1 ORDER BY evaluation DESC LIMIT 1";
    let answer = connection.run(sql, arguments![run.as_str()]).await?;
    answer.rows.first().map(|row| Ok((row.text("evaluation")?, trial(row)?))).transpose()
}

async fn save(
    connection: &mut Connection,
    evaluation: &str,
    trial: &TrialRow,
) -> Result<bool, DatabaseError> {
    let sql = "UPDATE trials SET state = $3, attempts = $4, run_id = $5, result = $6 WHERE evaluation = $1 AND number = $2 AND state <> 'finished'";
    let arguments = arguments![
        evaluation,
        i64::from(trial.number),
        trial.state.as_str(),
        i64::from(trial.attempts),
        trial.run_id.as_ref().map(RunId::as_str),
        &trial.result
    ];
    Ok(connection.run(sql, arguments).await?.changed == 1)
}

fn evaluation(row: &Row) -> Result<EvaluationRow, DatabaseError> {
    let row = Cells::new(row, "evaluations", &["id"]);
    Ok(EvaluationRow {
        id: row.text("id")?,
        name: row.text("name")?,
        directory: row.text("directory")?.into(),
        document: row.text("document")?,
        created_at: row.time("created_at")?,
        ended_at: row.optional_time("ended_at")?,
        trials: row.count("trials")?,
        finished: row.count("finished")?,
    })
}

fn trial(row: &Row) -> Result<TrialRow, DatabaseError> {
    let row = Cells::new(row, "trials", &["evaluation", "number"]);
    Ok(TrialRow {
        number: row.count("number")?,
        variant: row.text("variant")?,
        case: row.text("case_name")?,
        repeat: row.count("repeat_number")?,
        state: row.word("state", TrialState::parse)?,
        attempts: row.count("attempts")?,
        run_id: row.optional_word("run_id", RunId::parse_uuid)?,
        result: row.text("result")?,
    })
}
