//! `cliq audit`, and the records of commands.

use std::process::ExitCode;

use cliq_model::{AuditAction, AuditEntry, AuditFilter, AuditStore};
use cliq_protocol::Timestamp;
use comfy_table::{ContentArrangement, Table, presets};

use crate::args::AuditArgs;
use crate::failure::Failure;
use crate::gateway::{self, block_on};
use crate::{reviews, ui};

/// Number of entries per query of an export.
const BATCH: u32 = 1000;
/// Default number of entries for people.
const LISTED: u32 = 50;

/// Records a command of this machine's user. A command that was carried out does not fail because of its record.
pub(crate) async fn record(store: &dyn AuditStore, action: &str, target: &str) {
    let action = AuditAction {
        ts: cliq_fs::now(),
        actor: reviews::user(),
        person: None,
        via: "command".to_owned(),
        action: action.to_owned(),
        target: target.to_owned(),
        outcome: "ok".to_owned(),
        request_id: None,
        peer: None,
    };
    if let Err(error) = store.add_audit(&action).await {
        ui::warning(&format!("cannot record the command in the audit log: {error}"));
    }
}

pub(super) fn run(args: &AuditArgs) -> Result<ExitCode, Failure> {
    let filter = AuditFilter {
        actor: args.actor.clone(),
        since: time("--since", args.since.as_deref())?,
        until: time("--until", args.until.as_deref())?,
        ..AuditFilter::default()
    };
    block_on(async {
        let store = gateway::open().await?;
        if args.json {
            export(store.as_ref(), filter, args.limit).await
        } else {
            show(store.as_ref(), filter, args.limit).await
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

fn time(name: &str, text: Option<&str>) -> Result<Option<Timestamp>, Failure> {
    let Some(text) = text else { return Ok(None) };
    let time = Timestamp::parse(text).map_err(|_| {
        Failure::usage(format!("{name}: {text:?} is not a time"))
            .hint("write ISO-8601 with its zone, such as 2026-01-31T12:00:00Z")
    })?;
    Ok(Some(time))
}

/// Writes all entries, oldest first, a JSON object per line.
async fn export(store: &dyn AuditStore, mut filter: AuditFilter, limit: Option<u32>) -> Result<(), Failure> {
    let mut left = limit.unwrap_or(u32::MAX);
    filter.after = Some(0);
    while left > 0 {
        filter.limit = BATCH.min(left);
        let entries = store.audit(&filter).await?;
        let Some(last) = entries.last() else { break };
        filter.after = Some(last.id);
        left -= u32::try_from(entries.len()).unwrap_or(left).min(left);
        for entry in &entries {
            let mut line = serde_json::to_vec(entry).map_err(std::io::Error::other)?;
            line.push(b'\n');
            ui::raw(&line)?;
        }
    }
    Ok(())
}

async fn show(store: &dyn AuditStore, mut filter: AuditFilter, limit: Option<u32>) -> Result<(), Failure> {
    filter.limit = limit.unwrap_or(LISTED);
    let entries = store.audit(&filter).await?;
    if entries.is_empty() {
        return Ok(ui::line("no actions are recorded")?);
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(["NR", "TIME", "ACTOR", "VIA", "ACTION", "TARGET", "OUTCOME"]);
    for AuditEntry { id, action } in entries {
        table.add_row([
            id.to_string(),
            action.ts.to_string(),
            ui::plain(&action.actor),
            action.via,
            ui::plain(&action.action),
            ui::plain(&action.target),
            action.outcome,
        ]);
    }
    Ok(ui::line(table.to_string())?)
}
