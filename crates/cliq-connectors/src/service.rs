//! Abstraction of a service.

use serde_json::Value;

use crate::{ConnectorError, Context, Entry, LocalFile, Source, Target};

/// A service that connectors speak to.
pub(crate) trait Service: Sync {
    /// Fetches an entry of `sources` to `.cliq/files/<phase>/<name>`, which `file` is.
    fn fetch(
        &self,
        cx: &Context<'_>,
        source: &Source,
        file: &camino::Utf8Path,
    ) -> Result<Entry, ConnectorError>;

    /// Publishes a file.
    fn publish(
        &self,
        cx: &Context<'_>,
        target: &Target,
        file: &LocalFile,
        intent: &mut Intent<'_>,
    ) -> Result<Entry, ConnectorError>;

    /// Makes one call that changes nothing. Says as whom it speaks.
    fn test(&self, cx: &Context<'_>) -> Result<String, ConnectorError>;
}

/// Journal of a publication: noted before it acts, so that an interrupted publication can find out whether it acted.
pub(crate) struct Intent<'a> {
    /// Last note of an interrupted attempt of the same publication.
    pub(crate) earlier: Option<Value>,
    /// Keeps a note.
    pub(crate) note: &'a mut dyn FnMut(Value) -> Result<(), ConnectorError>,
}

impl Intent<'_> {
    /// Keeps a note, safe from now on.
    pub(crate) fn note(&mut self, value: Value) -> Result<(), ConnectorError> {
        (self.note)(value)
    }

    /// A text of the note of an interrupted try.
    pub(crate) fn earlier(&self, key: &str) -> Option<&str> {
        self.earlier.as_ref()?.get(key)?.as_str()
    }
}

/// An action that a service does not have. Validation finds it first, save in messages that were written by hand.
pub(crate) fn no_action(service: &str, action: &str) -> ConnectorError {
    ConnectorError::new(format!(
        "`{service}` has no action `{action}` here: `cliq agent show {service}` lists those there are"
    ))
}

/// Works on all of `items`, at most `parallel` at the same time. Gives the results in their order.
pub(crate) fn in_parallel<T: Sync, R: Send>(
    items: &[T],
    parallel: usize,
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let next = std::sync::atomic::AtomicUsize::new(0);
    let results = std::sync::Mutex::new((0..items.len()).map(|_| None).collect::<Vec<Option<R>>>());
    std::thread::scope(|scope| {
        for _ in 0..parallel.clamp(1, items.len().max(1)) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    let Some(item) = items.get(index) else { break };
                    let result = work(item);
                    if let Ok(mut results) = results.lock() {
                        results[index] = Some(result);
                    }
                }
            });
        }
    });
    results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner).into_iter().flatten().collect()
}
