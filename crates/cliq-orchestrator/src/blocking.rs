//! Blocking work, off the threads of the runtime.

use std::any::Any;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::task::{JoinError, JoinHandle};

type AnyResult = Box<dyn Any + Send>;
type Work = Box<dyn FnOnce() -> AnyResult + Send>;

/// Result of blocking work that is running, as of [`spawn_blocking`]. The work continues if this is dropped.
#[derive(Debug)]
pub struct BlockingTask<T> {
    task: JoinHandle<AnyResult>,
    result: PhantomData<fn() -> T>,
}

impl<T: 'static> Future for BlockingTask<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.task).poll(context).map_ok(|result| match result.downcast() {
            Ok(result) => *result,
            Err(_) => unreachable!("the result is of the work of this task"),
        })
    }
}

/// Runs work on a thread for blocking work, as [`tokio::task::spawn_blocking`] does. All kinds of work are one type of task: what the
/// runtime does with a task is compiled once, and not again for each closure
/// (docs/decisions/0089-blocking-work-is-one-type-of-task.md).
///
/// # Errors
/// The result is an error if the work panics, or the runtime ends before it begins.
pub fn spawn_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> BlockingTask<T> {
    let work: Work = Box::new(move || Box::new(work()));
    BlockingTask { task: tokio::task::spawn_blocking(work), result: PhantomData }
}

/// Runs work on a thread for blocking work, in the span of the caller. A file system that does not respond delays its caller, and
/// nothing else of the runtime. A panic of the work is one of the caller.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let span = tracing::Span::current();
    match spawn_blocking(move || span.in_scope(work)).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime ends, and nothing waits for the result.
            Err(_) => std::future::pending().await,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_returns_its_result_or_its_panic() {
        assert_eq!(spawn_blocking(|| "text".to_owned()).await.expect("a result"), "text");
        spawn_blocking(|| ()).await.expect("a result");
        let failed = spawn_blocking(|| -> u8 { panic!("no result") }).await.expect_err("a panic");
        assert_eq!(failed.into_panic().downcast_ref::<&str>(), Some(&"no result"));
        assert_eq!(blocking(|| vec![1, 2]).await, [1, 2]);
    }

    #[tokio::test]
    #[should_panic = "no result"]
    async fn panic_of_the_work_is_one_of_the_caller() {
        blocking(|| panic!("no result")).await
    }
}
