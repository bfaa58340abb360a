//! Rows as values.

use cliq_gateway::{PlanEvent, PlanRow, Signal, SignalStatus};
use cliq_model::{
    AuditAction, AuditEntry, Caveat, EndedRun, Firing, FiringState, Instance, Lifecycle, PushRow, PushState,
    Run, RunOrigin, RunOutcome, RunState, RunTotals, Scope, SignInAttempt, SourceKind, TaskRow, Token,
    TokenKind, TriggerRow,
};
use cliq_protocol::RunId;

use crate::error::DatabaseError;
use crate::statement::{Answer, Row};

fn unknown(column: &str, found: &str) -> DatabaseError {
    DatabaseError::column(column, format!("`{found}` is not a value of this column"))
}

/// The value of a column that a word stands for.
fn word<T>(row: &Row, column: &str, parse: impl Fn(&str) -> Option<T>) -> Result<T, DatabaseError> {
    let text = row.text(column)?;
    parse(&text).ok_or_else(|| unknown(column, &text))
}

pub(crate) fn signal(row: &Row) -> Result<Signal, DatabaseError> {
    Ok(Signal {
        id: row.integer("id")?,
        project: row.text("project")?,
        plan: row.text("plan_file")?,
        kind: row.text("signal_type")?,
        payload: row.text("payload")?,
        status: word(row, "status", SignalStatus::parse)?,
        created_at: row.text("created_at")?,
        claimed_by: row.text("claimed_by")?,
        claimed_at: row.text("claimed_at")?,
        processed_at: row.text("processed_at")?,
        result: row.text("result")?,
    })
}

pub(crate) fn plan(row: &Row) -> Result<PlanRow, DatabaseError> {
    Ok(PlanRow {
        project: row.text("project")?,
        name: row.text("name")?,
        state: row.text("state")?,
        document: row.text("document")?,
        version: row.integer("version")?,
        created_at: row.text("created_at")?,
        updated_at: row.text("updated_at")?,
    })
}

pub(crate) fn plan_event(row: &Row) -> Result<PlanEvent, DatabaseError> {
    Ok(PlanEvent {
        id: row.integer("id")?,
        plan: row.text("plan")?,
        at: row.text("at")?,
        kind: row.text("kind")?,
        from: row.text("from_state")?,
        to: row.text("to_state")?,
        signal: row.optional_integer("signal_id")?,
        detail: serde_json::from_str(&row.text("detail")?).unwrap_or_default(),
    })
}

pub(crate) fn instance(row: &Row) -> Result<Instance, DatabaseError> {
    Ok(Instance {
        id: row.text("id")?,
        path: row.text("path")?.into(),
        registered_at: row.text("registered_at")?,
    })
}

pub(crate) fn run(row: &Row) -> Result<Run, DatabaseError> {
    let request = row.text("request")?;
    let view = row.text("view")?;
    Ok(Run {
        id: word(row, "id", RunId::parse_uuid)?,
        instance: row.optional_text("instance")?,
        team: row.text("team")?,
        origin: word(row, "origin", RunOrigin::parse)?,
        caller: row.text("caller")?,
        request: serde_json::from_str(&request).map_err(|_| unknown("request", &request))?,
        workspace: row.text("workspace")?.into(),
        life: Lifecycle {
            state: word(row, "state", RunState::parse)?,
            cancel_requested: row.flag("cancel_requested")?,
            began: row.flag("began")?,
            resume: row.flag("resume")?,
            parked: row.flag("parked")?,
            recoveries: u32::try_from(row.integer("recoveries")?).unwrap_or(u32::MAX),
            former: match row.optional_text("former")? {
                Some(text) => Some(RunOutcome::parse(&text).ok_or_else(|| unknown("former", &text))?),
                None => None,
            },
        },
        reason: row.optional_text("reason")?,
        phase: row.optional_text("phase")?,
        queued_at: row.text("queued_at")?,
        started_at: row.optional_text("started_at")?,
        ended_at: row.optional_text("ended_at")?,
        totals: totals(row)?,
        view: serde_json::from_str(&view).unwrap_or_default(),
        journal_lines: row.count("journal_lines")?,
        last_event: row.integer("last_event")?,
        version: row.integer("version")?,
        replica: row.optional_text("replica")?,
        wake_at: row.optional_text("wake_at")?,
        woken_at: row.optional_text("woken_at")?,
        title: row.text("title")?,
        phases_done: row.count("phases_done")?,
        phases_all: row.count("phases_all")?,
        caveats: row
            .optional_text("caveats")?
            .iter()
            .flat_map(|text| text.split(' '))
            .filter_map(Caveat::parse)
            .collect(),
    })
}

/// Reads the id of a run.
pub(crate) fn run_id(row: &Row) -> Result<RunId, DatabaseError> {
    word(row, "id", RunId::parse_uuid)
}

pub(crate) fn runs_of(answer: &Answer) -> Result<Vec<Run>, DatabaseError> {
    answer.rows.iter().map(run).collect()
}

/// Reads the task part of a row.
pub(crate) fn task(row: &Row) -> Result<TaskRow, DatabaseError> {
    Ok(TaskRow {
        owner: row.text("owner")?,
        context_id: row.text("context_id")?,
        message_id: row.text("message_id")?,
        messages: row.text("messages")?,
        updated_at: row.text("updated_at")?,
    })
}

pub(crate) fn push(row: &Row) -> Result<PushRow, DatabaseError> {
    Ok(PushRow {
        task_id: word(row, "task_id", RunId::parse_uuid)?,
        id: row.text("id")?,
        protocol: row.text("protocol")?,
        url: row.text("url")?,
        token: row.optional_text("token")?,
        scheme: row.optional_text("scheme")?,
        credentials: row.optional_text("credentials")?,
        event: row.integer("event")?,
        part: row.integer("part")?,
        state: word(row, "state", PushState::parse)?,
        attempts: row.integer("attempts")?,
        failing_since: row.optional_text("failing_since")?,
        next_at: row.text("next_at")?,
        reason: row.optional_text("reason")?,
        version: row.integer("version")?,
    })
}

pub(crate) fn totals(row: &Row) -> Result<RunTotals, DatabaseError> {
    Ok(RunTotals {
        tokens_in: row.count("tokens_in")?,
        tokens_out: row.count("tokens_out")?,
        cost_usd: row.optional_real("cost_usd")?,
    })
}

pub(crate) fn token(row: &Row) -> Result<Token, DatabaseError> {
    Ok(Token {
        id: row.text("id")?,
        label: row.text("label")?,
        scope: word(row, "scope", Scope::parse)?,
        created_at: row.text("created_at")?,
        expires_at: row.optional_text("expires_at")?,
        kind: word(row, "kind", TokenKind::parse)?,
        hash: row.text("hash")?,
        person: row.optional_text("person")?.and_then(|text| serde_json::from_str(&text).ok()),
    })
}

pub(crate) fn trigger(row: &Row) -> Result<TriggerRow, DatabaseError> {
    Ok(TriggerRow {
        name: row.text("name")?,
        kind: word(row, "kind", SourceKind::parse)?,
        is_paused: row.flag("paused")?,
        mark: row.text("mark")?,
        version: row.integer("version")?,
    })
}

pub(crate) fn firing(row: &Row) -> Result<Firing, DatabaseError> {
    Ok(Firing {
        id: row.integer("id")?,
        trigger: row.text("trigger_name")?,
        at: row.text("at")?,
        cause: row.text("cause")?,
        digest: row.text("digest")?,
        payload: row.text("payload")?,
        depth: u32::try_from(row.integer("depth")?).unwrap_or(u32::MAX),
        state: word(row, "state", FiringState::parse)?,
        group: row.optional_text("group_name")?,
        run: row.optional_text("run_id")?.as_deref().and_then(RunId::parse_uuid),
        reason: row.optional_text("reason")?,
        decided_at: row.optional_text("decided_at")?,
    })
}

pub(crate) fn ended_run(row: &Row) -> Result<EndedRun, DatabaseError> {
    Ok(EndedRun {
        run: word(row, "run_id", RunId::parse_uuid)?,
        event: row.integer("event")?,
        state: word(row, "state", RunState::parse)?,
        at: row.text("at")?,
    })
}

pub(crate) fn audit_entry(row: &Row) -> Result<AuditEntry, DatabaseError> {
    Ok(AuditEntry {
        id: row.integer("id")?,
        action: AuditAction {
            ts: row.text("ts")?,
            actor: row.text("actor")?,
            person: row.optional_text("person")?,
            via: row.text("via")?,
            action: row.text("action")?,
            target: row.text("target")?,
            outcome: row.text("outcome")?,
            request_id: row.optional_text("request_id")?,
            peer: row.optional_text("peer")?,
        },
    })
}

pub(crate) fn sign_in(row: &Row) -> Result<SignInAttempt, DatabaseError> {
    Ok(SignInAttempt {
        state: row.text("state")?,
        browser: row.text("browser")?,
        nonce: row.text("nonce")?,
        verifier: row.text("verifier")?,
        expires_at: row.text("expires_at")?,
    })
}
