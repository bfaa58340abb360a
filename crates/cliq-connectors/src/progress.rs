//! Rate-limited progress messages for transfers.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use cliq_http::size;

/// Interval between progress messages of a transfer.
const EVERY: Duration = Duration::from_secs(2);

/// The progress of a transfer.
pub(crate) struct Bytes<'a> {
    say: &'a (dyn Fn(&str) + Send + Sync),
    what: &'a str,
    last: Mutex<Instant>,
}

impl<'a> Bytes<'a> {
    pub(crate) fn new(say: &'a (dyn Fn(&str) + Send + Sync), what: &'a str) -> Self {
        Self { say, what, last: Mutex::new(Instant::now()) }
    }

    /// So many bytes have come.
    pub(crate) fn at(&self, done: u64, total: Option<u64>) {
        let Ok(mut last) = self.last.lock() else { return };
        if last.elapsed() < EVERY {
            return;
        }
        *last = Instant::now();
        let of = total.map(|total| format!(" of {}", size(total))).unwrap_or_default();
        (self.say)(&format!("{}: {}{of}", self.what, size(done)));
    }
}
