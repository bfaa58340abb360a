//! Request to cancel a run.

use tokio_util::sync::CancellationToken;

/// Request to cancel a run, shared by the caller and the backend. Clones share the same request.
///
/// ```
/// use cliq_backends::Cancellation;
///
/// let cancellation = Cancellation::new();
/// let of_a_signal_handler = cancellation.clone();
/// of_a_signal_handler.cancel();
/// assert!(cancellation.is_cancelled());
/// ```
#[derive(Debug, Clone, Default)]
pub struct Cancellation {
    token: CancellationToken,
}

impl Cancellation {
    /// Creates a request that has not been made yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes the request. It cannot be withdrawn.
    pub fn cancel(&self) {
        self.token.cancel();
    }

    /// Whether the request has been made.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.token.is_cancelled()
    }

    /// Waits until the request is made.
    pub async fn cancelled(&self) {
        self.token.cancelled().await;
    }
}

#[doc(hidden)]
impl From<CancellationToken> for Cancellation {
    fn from(token: CancellationToken) -> Self {
        Self { token }
    }
}
