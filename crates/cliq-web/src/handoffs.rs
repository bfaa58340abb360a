//! Handoffs between phases of a run.

use cliq_model::Run;
use serde::Serialize;
use utoipa::ToSchema;

use crate::logs::directory_of;
use crate::problem::Problem;

/// Maximum size of a handoff that is returned, in bytes.
const MAX_BYTES: u64 = 16 << 20;

/// Handoff in a list.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Handoff)]
pub struct HandoffSummary {
    /// Phase that wrote the handoff.
    pub from: String,
    /// Phase that receives the handoff.
    pub to: String,
    /// Size in bytes.
    pub size: u64,
}

/// Lists the handoffs of a run by channel.
#[must_use]
pub fn list_handoffs(run: &Run) -> Vec<HandoffSummary> {
    let entries =
        directory_of(run).join("channels").read_dir_utf8().into_iter().flatten().filter_map(Result::ok);
    let mut found: Vec<HandoffSummary> = entries
        .filter_map(|entry| {
            let (from, to) = entry.file_name().split_once("--")?;
            let meta = entry.path().join("handoff.json").symlink_metadata().ok()?;
            Some(HandoffSummary { from: from.to_owned(), to: to.to_owned(), size: meta.len() })
        })
        .collect();
    found.sort_by(|a, b| (&a.from, &a.to).cmp(&(&b.from, &b.to)));
    found
}

/// Reads a handoff as text.
///
/// # Errors
/// Returns a problem if there is no such handoff.
pub fn read_handoff(run: &Run, from: &str, to: &str) -> Result<String, Problem> {
    let missing = || Problem::not_found("there is no such handoff");
    let name = |text: &str| cliq_protocol::PhaseName::parse(text).map_err(|_| missing());
    let channel = format!("{}--{}", name(from)?, name(to)?);
    let path = directory_of(run).join("channels").join(channel).join("handoff.json");
    let bytes = cliq_fs::read_limited(&path, MAX_BYTES).map_err(|_| missing())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
