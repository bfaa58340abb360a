//! Deadlines and bounds of a client.

use std::time::Duration;

/// Deadlines and bounds of a client.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Answer to each call of the start. Real agents took up to 7 s.
    pub start: Duration,
    /// Silence after which the replay of a continued conversation is over.
    pub replay: Duration,
    /// Silence of the agent in a turn, or `None` for no limit.
    pub silence: Option<Duration>,
    /// Answer to the prompt after a request to cancel.
    pub cancel: Duration,
    /// Usage that follows the answer to the prompt.
    pub usage: Duration,
    /// Output that is still read after the end of the process, and the end of the process after the end of its output.
    pub drain: Duration,
    /// End of the process after the end of its input. SIGTERM follows.
    pub close: Duration,
    /// End of the process group after SIGTERM. SIGKILL follows.
    pub terminate: Duration,
    /// Bytes that may wait for an agent that does not read its input.
    pub input: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            start: Duration::from_secs(120),
            replay: Duration::from_millis(150),
            silence: None,
            cancel: Duration::from_secs(15),
            usage: Duration::from_millis(50),
            drain: Duration::from_millis(500),
            close: Duration::from_millis(300),
            terminate: Duration::from_secs(2),
            input: 64 << 20,
        }
    }
}
