//! The phase of a connector: its sources are fetched, its targets published.

use serde_json::{Map, Value};

use crate::push::{Publication, Publisher, ledger, publish};
use crate::service::{Service, in_parallel};
use crate::{
    ConnectorError, Context, Publishable, Source, Target, confluence, curl, datadog, google, hubspot, jira,
    s3, zendesk,
};

/// Work of a connector.
#[derive(Debug, Clone, Copy)]
pub struct Work<'a> {
    /// The connector's name.
    pub connector: &'a str,
    /// Action, if the connector has actions.
    pub action: Option<&'a str>,
    /// Sources to fetch.
    pub sources: &'a [Source],
    /// Targets to publish.
    pub targets: &'a [Target],
    /// Files that may be published.
    pub allowed: &'a Publishable,
}

/// Result of a connector: its part of the handoff's `data`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// `data.sources`, by name without extension.
    pub sources: Map<String, Value>,
    /// `data.targets`, by name without extension.
    pub targets: Map<String, Value>,
}

/// Fetches all sources of a connector's phase at the same time, and publishes its targets one after the other. What an interrupted
/// activation of the same run has published is not published again.
///
/// # Errors
/// Names each entry that failed, and why.
pub fn run(
    cx: &Context<'_>,
    work: Work<'_>,
    publisher: Publisher<'_>,
    files_dir: &camino::Utf8Path,
) -> Result<Outcome, ConnectorError> {
    let service = service(work.connector, work.action)?;
    std::fs::create_dir_all(files_dir)
        .map_err(|error| crate::error::file_error("make", files_dir, &error))?;
    crate::files::remove_parts(files_dir);
    let mut outcome = Outcome::default();
    let fetched = in_parallel(work.sources, cx.bounds.parallel, |source| {
        (cx.progress)(&format!("{}: fetching", source.name));
        service
            .fetch(cx, source, &files_dir.join(&source.name))
            .map_err(|error| error.within(&format!("source `{}`", source.name)))
    });
    let mut failed = Vec::new();
    for (source, result) in work.sources.iter().zip(fetched) {
        match result {
            Ok(entry) => drop(
                outcome
                    .sources
                    .insert(source.key().to_owned(), serde_json::to_value(entry).unwrap_or_default()),
            ),
            Err(error) => failed.push(error.message),
        }
    }
    if !failed.is_empty() {
        return Err(ConnectorError::new(failed.join("; ")));
    }
    if work.targets.is_empty() {
        return Ok(outcome);
    }
    let ledger = ledger(cx, publisher.phase)?;
    let by = work
        .action
        .map_or_else(|| work.connector.to_owned(), |action| format!("{} {action}", work.connector));
    let publication = Publication { publisher, by, ledger: &ledger, is_per_run: true };
    for (index, target) in work.targets.iter().enumerate() {
        let key = target.key();
        let place = |error: ConnectorError| error.within(&format!("target `{key}`"));
        let file = work.allowed.open(cx.workspace, target.local()?).map_err(place)?;
        let entry = publish(cx, &publication, index, service.as_ref(), target, &file).map_err(place)?;
        outcome.targets.insert(key, entry);
    }
    Ok(outcome)
}

/// Makes one call that changes nothing. Says as whom the service knows the caller.
///
/// # Errors
/// Settings are missing, the service cannot be reached, or it refuses.
pub fn test(cx: &Context<'_>, connector: &str) -> Result<String, ConnectorError> {
    match connector {
        "sharepoint" => crate::sharepoint::SharePoint.test(cx),
        _ => service(connector, None)?.test(cx),
    }
}

fn service<'a>(connector: &str, action: Option<&'a str>) -> Result<Box<dyn Service + 'a>, ConnectorError> {
    let action = action.unwrap_or_default();
    Ok(match connector {
        "s3" => Box::new(s3::S3),
        "gdrive" => Box::new(google::Drive),
        "curl" => Box::new(curl::Curl),
        "jira" => Box::new(jira::Jira(action)),
        "confluence" => Box::new(confluence::Confluence(action)),
        "zendesk" => Box::new(zendesk::Zendesk(action)),
        "hubspot" => Box::new(hubspot::HubSpot(action)),
        "datadog" => Box::new(datadog::Datadog(action)),
        other => return Err(ConnectorError::new(format!("there is no connector `{other}`"))),
    })
}
