//! Triggers of the file, read again when it changes.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::time::Duration;

use camino::Utf8Path;
use cliq_document::Severity;

use super::{Inner, StartError};
use crate::file::{TriggersCheck, read_file, triggers_path};
use crate::model::{Source, Trigger};
use cliq_model::NewTrigger;

/// Interval between two looks at the file.
const EVERY: Duration = Duration::from_secs(1);

/// Triggers of the file.
#[derive(Debug, Default)]
pub(super) struct Catalog {
    pub(super) triggers: Vec<Arc<Trigger>>,
    by_name: HashMap<String, Arc<Trigger>>,
    pub(super) problem: Option<String>,
}

impl Catalog {
    fn new(triggers: Vec<Trigger>) -> Self {
        let triggers: Vec<Arc<Trigger>> = triggers.into_iter().map(Arc::new).collect();
        let by_name = triggers.iter().map(|trigger| (trigger.name.clone(), Arc::clone(trigger))).collect();
        Self { triggers, by_name, problem: None }
    }

    pub(super) fn find(&self, name: &str) -> Option<Arc<Trigger>> {
        self.by_name.get(name).map(Arc::clone)
    }
}

impl Trigger {
    /// Returns the trigger as a new row.
    pub(super) fn row(&self, now: &str) -> NewTrigger {
        let mark = if matches!(self.source, Source::Schedule(_)) { now } else { "" };
        NewTrigger { name: self.name.clone(), kind: self.source.kind(), mark: mark.to_owned() }
    }
}

/// Reads the triggers of a home.
pub(super) fn load(home: &Utf8Path) -> Result<Catalog, StartError> {
    let checked = read_file(home).map_err(StartError::File)?;
    if checked.has_errors() {
        return Err(StartError::Invalid(Box::new(checked)));
    }
    warn(&checked);
    Ok(Catalog::new(checked.triggers))
}

fn warn(checked: &TriggersCheck) {
    for problem in &checked.diagnostics {
        let (line, message, help) = (problem.span.line, &problem.message, &problem.help);
        match problem.severity {
            Severity::Error => tracing::error!(line, help, "triggers.yml: {message}"),
            Severity::Warning => tracing::warn!(line, help, "triggers.yml: {message}"),
        }
    }
}

type Stamp = Option<(u64, u64, i64, i64)>;

fn stamp(path: &Utf8Path) -> Stamp {
    let meta = std::fs::metadata(path).ok()?;
    Some((meta.ino(), meta.len(), meta.mtime(), meta.mtime_nsec()))
}

fn stamps(home: &Utf8Path) -> [Stamp; 2] {
    [stamp(&triggers_path(home)), stamp(&home.join("settings.json"))]
}

/// Reads the file again when it or the settings have changed. A text with errors is reported, and the last valid one stays in force.
pub(super) async fn run(inner: Arc<Inner>) {
    let mut known = stamps(&inner.home);
    loop {
        tokio::select! {
            () = inner.stopping.cancelled() => return,
            () = tokio::time::sleep(EVERY) => {}
        }
        let found = stamps(&inner.home);
        if found == known {
            continue;
        }
        let home = inner.home.clone();
        let loaded = tokio::task::spawn_blocking(move || load(&home)).await;
        let catalog = match loaded {
            Ok(Ok(catalog)) => catalog,
            Ok(Err(error)) => {
                if let StartError::Invalid(checked) = &error {
                    warn(checked);
                }
                let problem = problem_of(&error);
                tracing::error!(problem, "the triggers stay as they were");
                let before = inner.catalog();
                Catalog {
                    triggers: before.triggers.clone(),
                    by_name: before.by_name.clone(),
                    problem: Some(problem),
                }
            }
            Err(error) => {
                tracing::error!(%error, "cannot read the triggers; retrying");
                continue;
            }
        };
        tracing::info!(triggers = catalog.triggers.len(), "read the triggers");
        inner.catalog.send_replace(Arc::new(catalog));
        match inner.sync().await {
            Ok(()) => {
                known = found;
                // Sources look at the rows that were stored.
                inner.catalog.send_modify(|_| {});
            }
            Err(error) => tracing::error!(%error, "cannot store the triggers; retrying"),
        }
    }
}

fn problem_of(error: &StartError) -> String {
    let StartError::Invalid(checked) = error else { return error.to_string() };
    let first = checked.diagnostics.iter().find(|problem| problem.severity == Severity::Error);
    match first {
        Some(problem) => format!("triggers.yml, line {}: {}", problem.span.line, problem.message),
        None => error.to_string(),
    }
}
