//! Rows as values.

use cliq_gateway::{PlanEvent, PlanRow, Signal, SignalStatus};
use cliq_model::{
    AuditAction, AuditEntry, Caveat, EndedRun, Firing, FiringState, Instance, Lifecycle, PushRow, PushState,
    Run, RunChanges, RunOrigin, RunOutcome, RunState, RunTotals, Scope, SignInAttempt, SourceKind, TaskRow,
    Token, TokenKind, TriggerRow,
};
use cliq_protocol::RunId;

use crate::cells::Cells;
use crate::error::DatabaseError;
use crate::statement::{Answer, Row};

pub(crate) fn signal(row: &Row) -> Result<Signal, DatabaseError> {
    let row = Cells::new(row, "signals", &["id"]);
    Ok(Signal {
        id: row.integer("id")?,
        project: row.text("project")?,
        plan: row.text("plan_file")?,
        kind: row.text("signal_type")?,
        payload: row.text("payload")?,
        status: row.word("status", SignalStatus::parse)?,
        created_at: row.text("created_at")?,
        claimed_by: row.text("claimed_by")?,
        claimed_at: row.text("claimed_at")?,
        processed_at: row.text("processed_at")?,
        result: row.text("result")?,
    })
}

pub(crate) fn plan(row: &Row) -> Result<PlanRow, DatabaseError> {
    let row = Cells::new(row, "plans", &["project", "name"]);
    Ok(PlanRow {
        project: row.text("project")?,
        name: row.text("name")?,
        state: row.text("state")?,
        document: row.text("document")?,
        version: row.integer("version")?,
        created_at: row.time("created_at")?,
        updated_at: row.time("updated_at")?,
    })
}

pub(crate) fn plan_event(row: &Row) -> Result<PlanEvent, DatabaseError> {
    let row = Cells::new(row, "plan_events", &["id"]);
    Ok(PlanEvent {
        id: row.integer("id")?,
        plan: row.text("plan")?,
        at: row.time("at")?,
        kind: row.text("kind")?,
        from: row.text("from_state")?,
        to: row.text("to_state")?,
        signal: row.optional_integer("signal_id")?,
        detail: row.json("detail")?,
    })
}

pub(crate) fn instance(row: &Row) -> Result<Instance, DatabaseError> {
    let row = Cells::new(row, "instances", &["id"]);
    Ok(Instance {
        id: row.text("id")?,
        path: row.text("path")?.into(),
        registered_at: row.time("registered_at")?,
    })
}

pub(crate) fn run(row: &Row) -> Result<Run, DatabaseError> {
    let row = Cells::new(row, "runs", &["id"]);
    Ok(Run {
        id: row.run_id("id")?,
        instance: row.optional_text("instance")?,
        team: row.team("team")?,
        origin: row.word("origin", RunOrigin::parse)?,
        caller: row.text("caller")?,
        request: row.json("request")?,
        workspace: row.text("workspace")?.into(),
        life: Lifecycle {
            state: row.word("state", RunState::parse)?,
            cancel_requested: row.flag("cancel_requested")?,
            began: row.flag("began")?,
            resume: row.flag("resume")?,
            parked: row.flag("parked")?,
            recoveries: row.count("recoveries")?,
            former: row.optional_word("former", RunOutcome::parse)?,
        },
        reason: row.optional_text("reason")?,
        phase: row.optional_text("phase")?,
        queued_at: row.time("queued_at")?,
        started_at: row.optional_time("started_at")?,
        ended_at: row.optional_time("ended_at")?,
        totals: totals(row)?,
        changed: changed(row)?,
        view: row.json("view")?,
        journal_lines: row.count("journal_lines")?,
        last_event: row.integer("last_event")?,
        version: row.integer("version")?,
        replica: row.optional_text("replica")?,
        wake_at: row.optional_time("wake_at")?,
        woken_at: row.optional_time("woken_at")?,
        title: row.text("title")?,
        phases_done: row.count("phases_done")?,
        phases_all: row.count("phases_all")?,
        caveats: caveats(row)?,
    })
}

fn changed(row: Cells<'_>) -> Result<Option<RunChanges>, DatabaseError> {
    if row.optional_integer("changed_files")?.is_none() {
        return Ok(None);
    }
    Ok(Some(RunChanges {
        files: row.count("changed_files")?,
        lines_added: row.count("lines_added")?,
        lines_removed: row.count("lines_removed")?,
    }))
}

fn caveats(row: Cells<'_>) -> Result<Vec<Caveat>, DatabaseError> {
    let text = row.optional_text("caveats")?.unwrap_or_default();
    let words = text.split(' ').filter(|word| !word.is_empty());
    words.map(|word| Caveat::parse(word).ok_or_else(|| row.unknown("caveats", word))).collect()
}

/// Reads the id of a run.
pub(crate) fn run_id(row: &Row) -> Result<RunId, DatabaseError> {
    let row = Cells::new(row, "runs", &["id"]);
    row.run_id("id")
}

pub(crate) fn runs_of(answer: &Answer) -> Result<Vec<Run>, DatabaseError> {
    answer.rows.iter().map(run).collect()
}

/// Reads the task part of a row.
pub(crate) fn task(row: &Row) -> Result<TaskRow, DatabaseError> {
    let row = Cells::new(row, "a2a_tasks", &["id"]);
    Ok(TaskRow {
        owner: row.text("owner")?,
        context_id: row.text("context_id")?,
        message_id: row.text("message_id")?,
        messages: row.text("messages")?,
        updated_at: row.time("updated_at")?,
    })
}

pub(crate) fn push(row: &Row) -> Result<PushRow, DatabaseError> {
    let row = Cells::new(row, "a2a_push", &["task_id", "id"]);
    Ok(PushRow {
        task_id: row.run_id("task_id")?,
        id: row.text("id")?,
        protocol: row.text("protocol")?,
        url: row.text("url")?,
        token: row.optional_text("token")?,
        scheme: row.optional_text("scheme")?,
        credentials: row.optional_text("credentials")?,
        event: row.integer("event")?,
        part: row.integer("part")?,
        state: row.word("state", PushState::parse)?,
        attempts: row.integer("attempts")?,
        failing_since: row.optional_time("failing_since")?,
        next_at: row.time("next_at")?,
        reason: row.optional_text("reason")?,
        version: row.integer("version")?,
    })
}

pub(crate) fn totals(row: Cells<'_>) -> Result<RunTotals, DatabaseError> {
    Ok(RunTotals {
        tokens_in: row.count("tokens_in")?,
        tokens_out: row.count("tokens_out")?,
        cost_usd: row.optional_real("cost_usd")?,
    })
}

pub(crate) fn token(row: &Row) -> Result<Token, DatabaseError> {
    let row = Cells::new(row, "tokens", &["id"]);
    Ok(Token {
        id: row.text("id")?,
        label: row.text("label")?,
        scope: row.word("scope", Scope::parse)?,
        created_at: row.time("created_at")?,
        expires_at: row.optional_time("expires_at")?,
        kind: row.word("kind", TokenKind::parse)?,
        hash: row.text("hash")?,
        person: row.optional_json("person")?,
    })
}

pub(crate) fn trigger(row: &Row) -> Result<TriggerRow, DatabaseError> {
    let row = Cells::new(row, "triggers", &["name"]);
    Ok(TriggerRow {
        name: row.text("name")?,
        kind: row.word("kind", SourceKind::parse)?,
        is_paused: row.flag("paused")?,
        mark: row.text("mark")?,
        version: row.integer("version")?,
    })
}

pub(crate) fn firing(row: &Row) -> Result<Firing, DatabaseError> {
    let row = Cells::new(row, "firings", &["id"]);
    Ok(Firing {
        id: row.integer("id")?,
        trigger: row.text("trigger_name")?,
        at: row.time("at")?,
        cause: row.text("cause")?,
        digest: row.text("digest")?,
        payload: row.text("payload")?,
        depth: row.count("depth")?,
        state: row.word("state", FiringState::parse)?,
        group: row.optional_text("group_name")?,
        run: row.optional_word("run_id", RunId::parse_uuid)?,
        reason: row.optional_text("reason")?,
        decided_at: row.optional_time("decided_at")?,
    })
}

pub(crate) fn ended_run(row: &Row) -> Result<EndedRun, DatabaseError> {
    let row = Cells::new(row, "run_ends", &["run_id", "event"]);
    Ok(EndedRun {
        run: row.run_id("run_id")?,
        event: row.integer("event")?,
        state: row.word("state", RunState::parse)?,
        at: row.time("at")?,
    })
}

pub(crate) fn audit_entry(row: &Row) -> Result<AuditEntry, DatabaseError> {
    let row = Cells::new(row, "audit", &["id"]);
    Ok(AuditEntry {
        id: row.integer("id")?,
        action: AuditAction {
            ts: row.time("ts")?,
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
    let row = Cells::new(row, "sign_ins", &["state"]);
    Ok(SignInAttempt {
        state: row.text("state")?,
        browser: row.text("browser")?,
        nonce: row.text("nonce")?,
        verifier: row.text("verifier")?,
        expires_at: row.time("expires_at")?,
    })
}
