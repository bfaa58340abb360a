//! Context of connectors.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_http::{Client, Guard, Limits};

use crate::ConnectorError;

/// A setting of an agent, by its path below `agents.`, such as `jira.api_token`: the environment's value before the file's.
pub type Lookup<'a> = dyn Fn(&str) -> Option<String> + Sync + 'a;

/// Gets sentences about what is being done.
pub type Progress = Arc<dyn Fn(&str) + Send + Sync>;

/// Bounds of what is fetched and how.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bounds {
    /// The most bytes of one file.
    pub file: u64,
    /// The most bytes of a document that is converted: a page, a PDF.
    pub document: u64,
    /// Maximum number of entries at the same time.
    pub parallel: usize,
    /// The most files of a folder or a prefix.
    pub files: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { file: 5 << 30, document: 64 << 20, parallel: 8, files: 10_000 }
    }
}

/// Context of connectors: directories, HTTP client, settings.
pub struct Context<'a> {
    /// The directory that agents work in.
    pub workspace: &'a Utf8Path,
    /// The project's `.cliq`.
    pub cliq_dir: &'a Utf8Path,
    /// For addresses that a person set.
    pub client: Client,
    /// For addresses that a caller chose.
    pub guarded: Client,
    /// Lookup of settings.
    pub lookup: &'a Lookup<'a>,
    /// The program that converts documents, and its arguments: it calls [`crate::convert::child`] with the kind of the document.
    pub converter: (Utf8PathBuf, Vec<String>),
    /// Bounds.
    pub bounds: Bounds,
    /// The cliq home, where grants of people are kept.
    pub home: Option<Utf8PathBuf>,
    /// Gets sentences about what is being done.
    pub progress: Progress,
    /// Access tokens that are still valid, and until when.
    tokens: Mutex<BTreeMap<String, (String, Instant)>>,
}

impl<'a> Context<'a> {
    /// A context with the usual limits.
    #[must_use]
    pub fn new(
        workspace: &'a Utf8Path,
        cliq_dir: &'a Utf8Path,
        lookup: &'a Lookup<'a>,
        converter: (Utf8PathBuf, Vec<String>),
        progress: Progress,
    ) -> Self {
        let (said, guarded_said) = (Arc::clone(&progress), Arc::clone(&progress));
        Self {
            workspace,
            cliq_dir,
            client: Client::new(Limits::default()).with_notice(move |text| said(text)),
            guarded: Client::guarded(Limits::default(), &Guard::default())
                .with_notice(move |text| guarded_said(text)),
            lookup,
            converter,
            bounds: Bounds::default(),
            home: None,
            progress,
            tokens: Mutex::default(),
        }
    }

    pub(crate) fn tokens(&self) -> MutexGuard<'_, BTreeMap<String, (String, Instant)>> {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The client for an entry.
    pub(crate) fn client_for(&self, is_guarded: bool) -> &Client {
        if is_guarded { &self.guarded } else { &self.client }
    }

    /// A setting.
    pub(crate) fn setting(&self, path: &str) -> Option<String> {
        (self.lookup)(path).filter(|value| !value.trim().is_empty())
    }

    /// A setting that has to be there.
    pub(crate) fn required(&self, path: &str, variable: &str) -> Result<String, ConnectorError> {
        self.setting(path).ok_or_else(|| {
            ConnectorError::new(format!(
                "`agents.{path}` is not set: `cliq settings set -g agents.{path} -` sets it, or the variable {variable}"
            ))
        })
    }

    /// A path as agents know it: relative to the workspace where it is inside.
    pub(crate) fn shown(&self, path: &Utf8Path) -> String {
        path.strip_prefix(self.workspace).unwrap_or(path).to_string()
    }
}
