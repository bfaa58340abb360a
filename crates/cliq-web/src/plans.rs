//! Documents of plans.

use cliq_lifecycle::{plan_document, read};
use serde_json::Value;

use crate::core::Core;
use crate::problem::Problem;

/// Returns the documents of the plans of one project, or of all projects.
///
/// # Errors
/// Returns a problem if the store fails or a stored plan cannot be read.
pub async fn list_plans(core: &Core, project: Option<&str>) -> Result<Vec<Value>, Problem> {
    let rows = core.signals.plans(project).await?;
    rows.iter().map(|row| Ok(plan_document(&read(row)?, row))).collect()
}
