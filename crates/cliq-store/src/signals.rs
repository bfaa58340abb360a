//! Statements on signals that several transactions share.

use cliq_gateway::{Claim, Finish, NewSignal, SignalStatus};
use cliq_model::Outcome;

use crate::connection::Target;
use crate::error::DatabaseError;
use crate::statement::arguments;
use crate::time::now;

const INSERT_SQLITE: &str = "INSERT INTO signals (project, plan_file, signal_type, payload, status, created_at) VALUES ($1, $2, $3, $4, 'pending', $5)";
const INSERT_POSTGRES: &str = "INSERT INTO signals (project, plan_file, signal_type, payload, status, created_at) VALUES ($1, $2, $3, $4, 'pending', $5) RETURNING id";

/// Adds a signal and returns its id.
pub(crate) async fn insert(
    target: &mut impl Target,
    is_postgres: bool,
    project: &str,
    signal: &NewSignal,
) -> Result<i64, DatabaseError> {
    let (kind, payload, now) = (signal.kind().as_str(), signal.payload_text(), now());
    let arguments = arguments![project, signal.plan().as_str(), kind, &payload, now];
    let answer = target.run(if is_postgres { INSERT_POSTGRES } else { INSERT_SQLITE }, arguments).await?;
    answer.rows.first().map_or(Ok(answer.inserted), |row| row.integer("id"))
}

/// Records the result of a claimed signal, unless the claim has expired.
pub(crate) async fn finish(
    target: &mut impl Target,
    claim: &Claim,
    finish: &Finish,
) -> Result<Outcome, DatabaseError> {
    let (status, result) = match finish {
        Finish::Done(result) => (SignalStatus::Done, result),
        Finish::Failed(why) => (SignalStatus::Failed, why),
    };
    let answer = target
        .run(
            "UPDATE signals SET status = $1, processed_at = $2, result = $3 WHERE id = $4 AND status = 'processing' AND claimed_by = $5",
            arguments![status.as_str(), now(), result, claim.signal(), claim.holder()],
        )
        .await?;
    Ok(if answer.changed == 1 { Outcome::Applied } else { Outcome::Stale })
}
