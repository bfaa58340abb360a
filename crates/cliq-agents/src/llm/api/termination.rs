//! Signal to end during a request: its usage is reported first.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use signal_hook::consts::SIGTERM;

/// Handler of the signal to end. There is one in a process.
struct Handler {
    /// Whether the signal ends the process at once.
    is_idle: Arc<AtomicBool>,
    has_come: Arc<AtomicBool>,
}

static HANDLER: OnceLock<Option<Handler>> = OnceLock::new();

/// Period in which the signal to end is deferred.
pub(super) struct Deferred(Option<&'static Handler>);

impl Deferred {
    /// Begins a period. If the handler cannot be installed, the signal ends the process as before.
    pub(super) fn begin() -> Self {
        let handler = HANDLER.get_or_init(|| {
            let handler = Handler { is_idle: Arc::new(AtomicBool::new(true)), has_come: Arc::default() };
            let idle = Arc::clone(&handler.is_idle);
            signal_hook::flag::register_conditional_default(SIGTERM, idle).ok()?;
            signal_hook::flag::register(SIGTERM, Arc::clone(&handler.has_come)).ok()?;
            Some(handler)
        });
        if let Some(handler) = handler {
            handler.is_idle.store(false, Ordering::SeqCst);
        }
        Self(handler.as_ref())
    }

    /// Whether the signal has come.
    pub(super) fn has_come(&self) -> bool {
        self.0.is_some_and(|handler| handler.has_come.load(Ordering::SeqCst))
    }

    /// Ends the process as the signal does.
    pub(super) fn end_process(&self) {
        let _ = signal_hook::low_level::emulate_default_handler(SIGTERM);
    }
}

impl Drop for Deferred {
    fn drop(&mut self) {
        if let Some(handler) = self.0 {
            handler.is_idle.store(true, Ordering::SeqCst);
            if self.has_come() {
                self.end_process();
            }
        }
    }
}
