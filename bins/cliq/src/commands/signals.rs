//! Signals that cancel a run.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Waits for SIGINT, SIGTERM or SIGHUP.
pub(super) async fn interrupted() {
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    let [mut interrupt, mut terminate, mut hangup] = kinds.map(signal);
    tokio::select! {
        () = received(&mut interrupt) => {}
        () = received(&mut terminate) => {}
        () = received(&mut hangup) => {}
    }
}

async fn received(signal: &mut std::io::Result<Signal>) {
    match signal {
        Ok(signal) => drop(signal.recv().await),
        Err(_) => std::future::pending().await,
    }
}
