//! Blocking file access, off the threads of the runtime.

/// Runs work that reads or writes files on a thread for blocking work. A file system that does not respond delays its own run, and
/// nothing else of the runtime.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime ends, and nothing waits for the result.
            Err(_) => std::future::pending().await,
        },
    }
}
